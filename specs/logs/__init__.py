"""Readers of Delta logs and checkpoints, without Spark."""
