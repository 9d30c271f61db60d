"""Functions of PySpark as jobs: their statements are recorded while they run on empty tables."""
