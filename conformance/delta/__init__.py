"""The engine delta: Delta Lake on Spark."""
