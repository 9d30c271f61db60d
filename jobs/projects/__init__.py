"""Projects of other tools, read into statements of jobs: dbt."""
