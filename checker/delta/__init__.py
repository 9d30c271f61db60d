"""Delta semantics: read sets and write sets of statements, effects of commits, conflicts."""
