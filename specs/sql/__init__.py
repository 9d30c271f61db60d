"""SQL text to statements; the only home of sqlglot."""
