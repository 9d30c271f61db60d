"""Commands about jobs: predict, robust, lint."""
