"""The engine postgres: a PostgreSQL server of its own in a temporary folder."""
