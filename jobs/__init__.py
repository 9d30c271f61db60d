"""Jobs on tables: SQL, dbt, bundles, notebooks, PySpark; predict, robust, invariants, lint."""
