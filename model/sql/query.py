"""Queries, what a statement was resolved from, and which of its parts are not modelled.

Queries: the branches of a UNION ALL, each rows of constants or a SELECT from one table, or from
several.

What a statement was resolved from, so that it can be resolved again on tables that were altered.

What of a statement nobody can compute: opaque expressions, and parameters without a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.model.display import Command
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql.expression import Opaque, Parameter, subqueries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.expression import ColumnRef, Expr

__all__ = [
    "Branch",
    "JoinKind",
    "JoinSource",
    "Joined",
    "Origin",
    "Query",
    "Resolved",
    "Select",
    "Values",
    "items_of",
    "source_tables",
    "unknown_parts",
]


@dataclass(frozen=True, slots=True)
class Values:
    """``VALUES (…), (…)`` or ``SELECT … [WHERE where]`` without FROM: rows of constants; what
    varies in them is subqueries.
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


def source_tables(query: Query) -> frozenset[str]:
    """The tables that a query reads."""
    tables = {branch.table for branch in query if isinstance(branch, Select)}
    for branch in query:
        if isinstance(branch, Joined):
            tables = tables.union(*(source_tables(source.query) for source in branch.sources))
        rows = branch.rows if isinstance(branch, Values) else (branch.items,)
        parts = subqueries(branch.where, *(item for row in rows for item in row))
        tables |= {part.table for part in parts}
    return frozenset(tables)


def items_of(branch: Branch) -> tuple[Expr, ...]:
    """The expressions of a branch's columns (of its first row, for VALUES)."""
    return branch.rows[0] if isinstance(branch, Values) else branch.items


@dataclass(frozen=True, slots=True)
class Origin:
    """The ``syntax`` of a statement, which is the business of those who read it, and the ``tables``
    as they were when its names were resolved.
    """

    syntax: Any
    tables: Mapping[str, Schema]


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Resolved(Command):
    """A statement whose names have been resolved: two are the same if they do the same, wherever
    they come from.
    """

    origin: Origin | None = field(default=None, compare=False)


@memoize_by_identity
def unknown_parts(noun: object) -> tuple[Opaque | Parameter, ...]:
    """The opaque expressions and the parameters in a statement, wherever they stand in it.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> tables = {"t": Schema("t", (Column("id", "INT"),))}
    >>> delete = read_statement("DELETE FROM t WHERE id > 1 AND mine(id) = 2", tables, opaque=True)
    >>> [str(part) for part in unknown_parts(delete)]
    ['mine(id) = 2']
    """
    return tuple(_parts(noun))


def _parts(noun: object) -> Iterator[Opaque | Parameter]:
    if isinstance(noun, Opaque | Parameter):
        yield noun
    elif isinstance(noun, tuple):
        for each in noun:
            yield from _parts(each)
    elif is_dataclass(noun) and not isinstance(noun, Origin | type):
        for one in fields(noun):
            yield from _parts(getattr(noun, one.name))
