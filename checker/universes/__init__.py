"""Search spaces: abstract histories, statements on tables, schedules."""
