"""Queries: the branches of a UNION ALL, each rows of constants or a SELECT from one table, or from several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.model.sql.expression import subqueries

if TYPE_CHECKING:
    from isolitmus.model.sql.expression import ColumnRef, Expr

__all__ = [
    "Branch",
    "JoinKind",
    "JoinSource",
    "Joined",
    "Query",
    "Select",
    "Values",
    "items_of",
    "sources",
]


@dataclass(frozen=True, slots=True)
class Values:
    """``VALUES (…), (…)`` or ``SELECT … [WHERE where]`` without FROM: rows of constants; what varies
    in them is subqueries.
    """

    rows: tuple[tuple[Expr, ...], ...]
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """``SELECT items FROM table WHERE where [GROUP BY keys]``."""

    table: str
    """The table that it reads."""
    items: tuple[Expr, ...]
    """What is selected."""
    where: Expr | None
    """Of which rows; None: of all."""
    grouped: bool
    """The items are keys and aggregates."""
    version: int | None = None
    """From the table as that init statement (from 1) has left it: ``VERSION AS OF {init[1]}``."""
    keys: tuple[ColumnRef, ...] = ()
    """The columns of GROUP BY."""
    alias: bool = False
    """By another path to the files of the table, ``delta.`{alias}` ``."""

    @property
    def seen(self) -> bool:
        """Whether a transaction that writes the table takes note of it as a read of the table."""
        return self.version is None and not self.alias


JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]
"""How a source is joined with those before it."""


@dataclass(frozen=True, slots=True)
class JoinSource:
    """What a side of a join gives."""

    query: Query
    how: JoinKind = "inner"
    on: Expr | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """``SELECT items FROM a JOIN b ON … WHERE where [GROUP BY keys]``: each source is a side."""

    sources: tuple[JoinSource, ...]
    """In the order in which they are joined."""
    items: tuple[Expr, ...]
    """What is selected."""
    where: Expr | None
    """Of which rows; None: of all."""
    grouped: bool
    """The items are keys and aggregates."""
    keys: tuple[ColumnRef, ...] = ()
    """The columns of GROUP BY."""


Branch = Values | Select | Joined
Query = tuple[Branch, ...]
"""The branches of a UNION ALL; one branch is a plain query."""


def sources(query: Query) -> frozenset[str]:
    """The tables that a query reads."""
    tables = {branch.table for branch in query if isinstance(branch, Select)}
    for branch in query:
        if isinstance(branch, Joined):
            tables = tables.union(*(sources(source.query) for source in branch.sources))
        rows = branch.rows if isinstance(branch, Values) else (branch.items,)
        parts = subqueries(branch.where, *(item for row in rows for item in row))
        tables |= {part.table for part in parts}
    return frozenset(tables)


def items_of(branch: Branch) -> tuple[Expr, ...]:
    """The expressions of a branch's columns (of its first row, for VALUES)."""
    return branch.rows[0] if isinstance(branch, Values) else branch.items
