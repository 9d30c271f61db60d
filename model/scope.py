"""A scope: what may vary in a search over tables, and how far it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.defaults import DELTA
from isolitmus.model.display import ReadableRepr, count_of, first_lines, text_digest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.statement import Statement

__all__ = ["FRESH", "LARGEST", "Scope", "fresh"]

FRESH = "{fresh}"
LARGEST = 8
"""The most transactions that a scope, or a search in it, may ask for."""


def fresh(position: int) -> int:
    """The value of ``{fresh}`` at a commit position (from 1): sums of them tell which are in.

    >>> [fresh(1), fresh(2), fresh(3)]
    [100, 200, 400]
    """
    return 100 << (position - 1)


@dataclass(frozen=True, slots=True)
class Scope(ReadableRepr):
    """Initial tables, statements, readers, and how many transactions.

    A candidate is an initial table (one of ``inits``), a statement for each commit position and a
    version that it read, and some readers, each at a version.
    """

    name: str
    """The name of its file."""
    title: str
    """What varies, in a line."""
    source: str
    """Where it comes from."""
    tables: Mapping[str, Schema]
    """What the tables are declared to be, by name."""
    inits: tuple[tuple[Statement, ...], ...]
    """The initial tables: of each the statements that make it."""
    statements: tuple[tuple[Statement, ...], ...]
    """``statements[k][i]`` is statement k at position i+1, with ``{fresh}`` filled in."""
    readers: tuple[Statement, ...]
    """Queries, of which ``separate`` adds some to a candidate; a sweep has none."""
    transactions: tuple[int, ...]
    """The numbers of transactions that a search goes through if nobody says others."""
    noops: Literal["skip", "keep"] = "skip"
    """Whether candidates count in which a statement records nothing."""
    protocols: tuple[str, ...] = ()
    """Those that a sweep counts if nobody names others."""
    levels: tuple[str, ...] = ()
    """Those that a sweep judges by if nobody names others."""
    text: str = ""
    """The file as it was read."""
    path: Path | None = None
    """Where the file is; None: it was made up."""
    jobs: Mapping[str, str] = field(default_factory=dict)
    """What to call a statement, by its text; others are called by what they do."""
    format: str = DELTA
    """The name of what its statements are for (``model.format``)."""
    scan: str | tuple[str, ...] = ()
    """By which index its readers go, where statements are scans (``model.litmus``)."""

    @property
    def digest(self) -> str:
        """What tells its text from others."""
        return text_digest(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """What it is called, and what varies."""
        at = " or ".join(map(str, self.transactions))
        return first_lines(
            [
                f"{self.name}: {self.title}",
                f"  {at} transactions, on {count_of(len(self.inits), 'table')} to begin with",
                *(f"  {first}" for first, *_ in self.statements),
                *(f"  {reader}" for reader in self.readers),
            ]
        )
