"""A number and what it counts, as people write them."""

from __future__ import annotations

__all__ = ["many"]


def many(number: int, one: str, several: str = "") -> str:
    """So many of something; ``several`` is its plural, by default ``one`` with an s.

    >>> many(1, "finding"), many(1200, "finding"), many(0, "history", "histories")
    ('1 finding', '1,200 findings', '0 histories')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
