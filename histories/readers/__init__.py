"""Readers of histories that other tools record: AWDIT, Plume, dbcop, Cobra, Elle, PostgreSQL."""

__all__ = ["ENDINGS", "RECORDED"]

RECORDED = ("awdit", "cobra", "dbcop", "elle", "plume")
"""Formats of recorded histories, named after their tools."""
ENDINGS = (".bincode", ".edn", ".hist", ".json", ".log", ".txt")
"""File extensions of recorded histories."""
