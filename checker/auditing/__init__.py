"""What the log of a table shows: dependencies, findings, winning commits."""
