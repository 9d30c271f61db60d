"""Jobs on tables: readers of SQL, dbt, bundles, notebooks and PySpark; predict, robust, invariants, lint."""
