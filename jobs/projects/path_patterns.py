"""Patterns of paths: ``*`` and ``?`` within one name, ``**`` for any number of folders.

A pattern is an automaton whose states are its parts: a path is read once, name by name, so that a
pattern of many ``**`` costs no more than its length times that of the path.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from isolitmus.model.sql.evaluation import wildcard_expression


def matches_path(pattern: str, path: str, *, below: bool = False) -> bool:
    """Return whether a pattern matches a path, or with `below` a path or a folder above it.

    Examples
    --------
    >>> matches_path("models/**/old_*.sql", "models/a/b/old_x.sql")
    True
    >>> matches_path("models", "models/a.sql"), matches_path("models", "models/a.sql", below=True)
    (False, True)
    >>> matches_path("models/**", "models"), matches_path("models/**", "models/a/b.sql")
    (False, True)
    """
    parts = _parts(pattern)
    end = len(parts)
    states = _with_skipped({0}, parts)
    for name in path.split("/"):
        following: set[int] = set()
        for state in states - {end}:
            part = parts[state]
            if part is None:
                # the last ** stands for one name at least
                following |= {state, end} if state == end - 1 else {state}
            elif part.matches(name):
                following.add(state + 1)
        states = _with_skipped(following, parts)
        if below and end in states:
            return True
        if not states:
            return False
    return end in states


class _NamePattern(NamedTuple):
    """Pattern of one name."""

    text: str
    least: int
    """Number of characters of the shortest name that it matches."""

    def matches(self, name: str) -> bool:
        """Return whether a name matches; the pattern may be much longer than any name."""
        return self.least <= len(name) and _expression(self.text).fullmatch(name) is not None


@cache
def _expression(text: str) -> re.Pattern[str]:
    """Return the regular expression of the pattern of a name."""
    return re.compile(wildcard_expression(text, "*", "?"), re.DOTALL)


def _with_skipped(states: set[int], parts: tuple[_NamePattern | None, ...]) -> set[int]:
    """Return the states with those after a ``**`` that stands for no folder."""
    last = len(parts) - 1
    return states | {k + 1 for k in states if k < last and parts[k] is None}


@cache
def _parts(pattern: str) -> tuple[_NamePattern | None, ...]:
    """Return the pattern of each name; None for ``**``, of which adjacent ones are one."""
    names = pattern.split("/")
    return tuple(
        None if name == "**" else _NamePattern(name, len(name) - name.count("*"))
        for k, name in enumerate(names)
        if name != "**" or names[k - 1 : k] != ["**"]
    )
