"""Histories of registers that other tools recorded, judged in bulk: polynomial levels in polynomial time."""
