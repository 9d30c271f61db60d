"""Where a history is looked for: two universes, each by a solver and by enumeration."""
