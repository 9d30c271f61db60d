"""The engine postgres: PostgreSQL, as a server of its own in a temporary folder."""
