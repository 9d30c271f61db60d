"""A scope: what may vary in a search over tables, and how far it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.schema import Schema
    from isolitmus.model.statement import Statement

__all__ = ["FRESH", "Scope", "fresh"]

FRESH = "{fresh}"


def fresh(position: int) -> int:
    """The value of ``{fresh}`` at a commit position (from 1): sums of them tell which are in.

    >>> [fresh(1), fresh(2), fresh(3)]
    [100, 200, 400]
    """
    return 100 << (position - 1)


@dataclass(frozen=True, slots=True)
class Scope:
    """Initial tables, statements, readers, and how many transactions.

    A candidate is an initial table (one of ``inits``), a statement for each commit position and a
    version that it read, and some readers, each at a version. ``statements[k][i]`` is statement k
    at position i+1, with ``{fresh}`` filled in. ``readers`` are asked by ``separate`` only.
    """

    name: str
    title: str
    source: str
    tables: Mapping[str, Schema]
    inits: tuple[tuple[Statement, ...], ...]
    statements: tuple[tuple[Statement, ...], ...]
    readers: tuple[Statement, ...]
    transactions: tuple[int, ...]
    noops: Literal["skip", "keep"] = "skip"
    protocols: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    text: str = ""
    path: Path | None = None
