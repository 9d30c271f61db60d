"""A number and what it counts, as people write them."""

from __future__ import annotations

__all__ = ["lasting", "many"]


def lasting(seconds: float) -> str:
    """How long something takes, about.

    >>> lasting(0.2), lasting(7300), lasting(100)
    ('1 s', '2 hours', '100 s')
    """
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def many(number: int, one: str, several: str = "") -> str:
    """So many of something; ``several`` is its plural, by default ``one`` with an s.

    >>> many(1, "finding"), many(1200, "finding"), many(0, "history", "histories")
    ('1 finding', '1,200 findings', '0 histories')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
