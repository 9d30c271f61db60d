"""What the log of a table shows: dependencies that are certain, those that are possible, findings."""
