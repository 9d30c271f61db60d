"""The universes of a search: abstract histories, statements on tables, schedules."""
