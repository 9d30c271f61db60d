"""The engine delta: Delta Lake on a Spark session."""
