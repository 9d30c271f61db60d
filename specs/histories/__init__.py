"""Readers of histories that other tools record: AWDIT, Plume, dbcop, Cobra, Elle, PostgreSQL."""


RECORDED = ("awdit", "cobra", "dbcop", "elle", "plume")
"""Formats of recorded histories, named after their tools."""
"""Formats in which an abstract history is written."""
ENDINGS = (".bincode", ".edn", ".hist", ".json", ".log", ".txt")
"""File extensions of recorded histories."""
