"""What statements do: effects on a snapshot, executions, their frames, serial explanations."""
