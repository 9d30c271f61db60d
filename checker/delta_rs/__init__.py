"""delta-rs on the log of Delta: what it takes a statement to read."""
