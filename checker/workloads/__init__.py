"""Jobs that share a table: predictions, robustness, repairs."""
