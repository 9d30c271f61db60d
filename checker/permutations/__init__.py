"""PostgreSQL's isolation tests as histories: each statement on its snapshot, row by row, and what was printed compared."""
