"""What can go wrong, one class for each kind of thing that a user hands in."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "EngineUnavailable",
    "FrameError",
    "HistoryError",
    "IsolitmusError",
    "LitmusError",
    "SpecError",
    "SqlError",
    "TimeLimit",
    "UnknownName",
    "excerpt",
    "near",
]


class IsolitmusError(Exception):
    """The root of every error that isolitmus raises on purpose; its text is one sentence for a person."""


class SpecError(IsolitmusError):
    """A spec file (``.cat``) that does not read, or names what its frame cannot have."""


class SqlError(IsolitmusError):
    """A statement outside the fragment of SQL that the model understands."""


class LitmusError(IsolitmusError):
    """A litmus or scope file that does not read or contradicts itself."""


class HistoryError(IsolitmusError):
    """A history that no database could have produced as it stands."""


class FrameError(IsolitmusError):
    """A relation or set that does not fit its frame."""


class UnknownName(IsolitmusError):
    """A name that the catalogue does not have."""


class EngineUnavailable(IsolitmusError):
    """An engine that could not be started: no Java, no jar, no package (exit status 4)."""


class TimeLimit(IsolitmusError):
    """A time limit ended the work before it was done (exit status 3)."""


def near(name: str, known: Iterable[str]) -> str:
    """The end of an error message: what would have been right.

    >>> near("serialisable", ["serializable", "snapshot-isolation"])
    "; did you mean 'serializable'?"
    >>> near("x", ["so", "wr"])
    '; known: so, wr'
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""


def excerpt(text: str, line: int, column: int) -> str:
    r"""The line of a text that an error is about, with a caret below the column (both from 1).

    >>> print(excerpt("let a =\n b | wx", 2, 6))
    <BLANKLINE>
        b | wx
            ^
    """
    lines = text.splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1]
    stripped = shown.lstrip()
    indent = max(column - 1 - (len(shown) - len(stripped)), 0)
    return f"\n    {stripped.rstrip()}\n    {' ' * indent}^"
