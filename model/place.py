"""Place of a statement in a user's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Place(NamedTuple):
    """Lines of a file, and the column at which a statement begins; both count from 1.

    Examples
    --------
    >>> print(Place("models/load.sql", 3, 1, 7))
    models/load.sql:3:1
    """

    file: str
    """Path relative to the folder that the user named, with slashes; else the file's name."""
    line: int
    """Line of the first word, after comments."""
    column: int
    """Column of the first word."""
    end_line: int
    """Last line."""
    path: Path | None = None
    """Path of the file; None if the text is in no file."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
