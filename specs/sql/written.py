"""A text that is read in the place of what an author wrote: where each part of it stands there.

A statement is read with values for its parameters, and the query of a DataFrame write as an INSERT;
a message points into the author's own text all the same.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.errors import SqlError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.errors import SqlProblem

__all__ = ["Part", "as_written", "located", "standing"]


class Part(NamedTuple):
    """A part of what is read, and where its author has it."""

    read: str
    """As it is read."""
    text: str
    """The author's."""
    label: str
    """What a message calls that text."""
    start: int = 0
    """Its place there."""
    copied: bool = True
    """False: it is not there, something else is."""


def as_written(error: SqlError, parts: Sequence[Part]) -> SqlError:
    """An error of reading the parts, one after another, as one that points at what was written.

    >>> parts = [Part("INSERT INTO t ", "SELECT x", "query", copied=False), Part("SELECT x", "SELECT x", "query")]
    >>> print(as_written(located("", "INSERT INTO t SELECT x", 21, "no column 'x' here"), parts))
    query:1:8: no column 'x' here
        SELECT x
               ^
    """
    if error.start is None:
        return error
    left = error.start
    for part in parts:
        if left < len(part.read) or part is parts[-1]:
            start = part.start + (left if part.copied else 0)
            return located(part.label, part.text, start, error.problem, error.kind)
        left -= len(part.read)
    return error


@contextmanager
def standing(label: str, file: str, start: int | None) -> Iterator[None]:
    """Let an error in a text of SQL point into the file in which the text begins there; None: it is not there as it
    was read.

    >>> with standing("jobs.toml", 'sql = "DELETE FROM t"', 7):
    ...     raise located("SQL", "DELETE FROM t", 12, "no table 't'")
    Traceback (most recent call last):
    isolitmus.model.errors.SqlError: jobs.toml:1:20: no table 't'
        sql = "DELETE FROM t"
                           ^
    """
    try:
        yield
    except SqlError as error:
        if start is None or error.start is None:
            raise
        raise located(label, file, start + error.start, error.problem, error.kind) from None


def located(
    label: str, text: str, start: int, problem: str, kind: SqlProblem = "outside"
) -> SqlError:
    """An error at a place of a text, a position from 0."""
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    said = f"{label}:{line}:{column}: {problem}{excerpt(text, line, column)}"
    return SqlError(said, problem=problem, start=start, kind=kind)
