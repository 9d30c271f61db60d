"""Invariants: whether jobs keep them at a level, decided by formulas over rows."""
