"""Black-box histories of other tools: polynomial checks, constraints, SAT, explanations."""
