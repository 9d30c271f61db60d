"""SQL of jobs: statements rewritten into the modelled fragment, and what is known of their queries."""
