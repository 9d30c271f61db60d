"""SQL of jobs: texts rewritten into the modelled fragment, and what their queries say."""
