"""Delta logs and checkpoints, read without Spark."""
