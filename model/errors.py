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
    "LogError",
    "Refused",
    "SpecError",
    "SqlError",
    "TimeLimit",
    "UnknownName",
    "brief",
    "clip",
    "excerpt",
    "near",
]


WIDTH = 120
"""How much of a line a message shows."""
LISTED = 12
"""How many names a message lists."""


class IsolitmusError(Exception):
    """The root of every error that isolitmus raises on purpose; its text is one sentence for a person."""


class SpecError(IsolitmusError):
    """A spec file (``.cat``) that does not read, or names what its frame cannot have."""


class SqlError(IsolitmusError):
    """A statement outside the fragment of SQL that the model understands."""


class LitmusError(IsolitmusError):
    """A litmus or scope file that does not read or contradicts itself."""


class LogError(IsolitmusError):
    """A table's log that cannot be read: it is none, has a gap, or holds what is unknown."""


class Refused(LitmusError):
    """A litmus test that an engine cannot carry out: which statement, and why."""


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

    Of many names the first few are listed.
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"; known: {', '.join(names[:LISTED])}{more}" if names else ""


def brief(text: str, most: int = 400) -> str:
    """A text for a message, on one line; of a long one the beginning and the end.

    >>> brief("a value that is much too long to be shown", 15)
    'a value… shown'
    """
    line = " ".join(text.split())
    half = most // 2
    return line if len(line) <= most else f"{line[:half].rstrip()}…{line[-half + 1 :]}"


def excerpt(text: str, line: int, column: int) -> str:
    r"""The line of a text that an error is about, with a caret below the column (both from 1).


    >>> print(excerpt("let a =\n b | wx", 2, 6))
    <BLANKLINE>
        b | wx
            ^
    """
    lines = text.split("\n")
    shown, column = clip(lines[min(line, len(lines)) - 1], column)
    stripped = shown.lstrip()
    indent = max(column - 1 - (len(shown) - len(stripped)), 0)
    return f"\n    {stripped.rstrip()}\n    {' ' * indent}^"


def clip(line: str, column: int) -> tuple[str, int]:
    """A line as a terminal can show it, and the column (from 1) there: of a long line only the part
    around the column, and blanks for what does not print.

    >>> clip("x" * 1000, 500) == ("x" * WIDTH, WIDTH // 2 + 1)
    True
    """
    start = max(column - 1 - WIDTH // 2, 0) if len(line) > WIDTH else 0
    shown = "".join(c if c.isprintable() or c == "\t" else " " for c in line[start : start + WIDTH])
    return shown, column - start
