"""PostgreSQL's isolation tests, executed on versions of rows."""
