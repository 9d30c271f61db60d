"""Scope of a search over tables: what varies, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.display import ReadableRepr, count_of, first_lines, text_digest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement

FRESH = "{fresh}"
LARGEST = 8
"""Maximum number of transactions of a scope or of a search in it."""


def fresh(position: int) -> int:
    """Return the value of ``{fresh}`` at a commit position (from 1); a sum of them identifies its
    terms.

    Examples
    --------
    >>> [fresh(1), fresh(2), fresh(3)]
    [100, 200, 400]
    """
    return 100 << (position - 1)


@dataclass(frozen=True, slots=True)
class Scope(ReadableRepr):
    """Scope of a search: initial tables, statements, readers, and numbers of transactions.

    A candidate is an initial table (one of ``inits``), a statement for each commit position and a
    version that it read, and some readers, each at a version.
    """

    name: str
    """Name of its file."""
    title: str
    """Description in one line."""
    source: str
    """Source of the scope."""
    tables: Mapping[str, Schema]
    """Declared schemas of the tables, by name."""
    inits: tuple[tuple[Statement, ...], ...]
    """Initial tables: for each, the statements that create it."""
    statements: tuple[tuple[Statement, ...], ...]
    """``statements[k][i]`` is statement k at position i+1, with ``{fresh}`` filled in."""
    readers: tuple[Statement, ...]
    """Queries, some of which ``separate`` adds to a candidate; a sweep uses none."""
    transactions: tuple[int, ...]
    """Default numbers of transactions of a search."""
    noops: Literal["skip", "keep"] = "skip"
    """True if candidates are kept in which a statement records nothing."""
    protocols: tuple[str, ...] = ()
    """Default protocols of a sweep."""
    levels: tuple[str, ...] = ()
    """Default levels of a sweep."""
    text: str = ""
    """Text of the file as it was read."""
    path: Path | None = None
    """Path of the file; None if the scope was generated."""
    jobs: Mapping[str, str] = field(default_factory=dict)
    """Names of statements, by their text; others are named by their operation."""
    format: str = field(kw_only=True)
    """Name of the format of its statements (``model.format``)."""
    scan: str | tuple[str, ...] = ()
    """Index that its readers scan, if statements are scans (``model.litmus``)."""

    @property
    def digest(self) -> str:
        """Digest of its text."""
        return text_digest(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """Return the name, the title, and what varies."""
        at = " or ".join(map(str, self.transactions))
        return first_lines(
            [
                f"{self.name}: {self.title}",
                f"  {at} transactions, on {count_of(len(self.inits), 'table')} to begin with",
                *(f"  {first}" for first, *_ in self.statements),
                *(f"  {reader}" for reader in self.readers),
            ]
        )
