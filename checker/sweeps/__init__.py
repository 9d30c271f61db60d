"""Sweeps: exact counts of all candidates of a scope."""
