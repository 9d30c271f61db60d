"""Queries of the SQL fragment, origins of resolved statements, and parts that are not modelled.

A query is the list of branches of a UNION ALL. A branch consists of constant rows, or is a SELECT
from one or several tables. An ``Origin`` lets a statement be resolved again after its tables were
altered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.model.display import Command
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql.expression import Opaque, Parameter, subqueries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.sql.expression import ColumnRef, Expr
    from isolitmus.model.sql.schema import Schema


@dataclass(frozen=True, slots=True)
class Values:
    """``VALUES (…), (…)`` or ``SELECT … [WHERE where]`` without FROM: constant rows, perhaps with
    subqueries.
    """

    rows: tuple[tuple[Expr, ...], ...]
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """``SELECT items FROM table WHERE where [GROUP BY keys]``."""

    table: str
    """Table that it reads."""
    items: tuple[Expr, ...]
    """Selected expressions."""
    where: Expr | None
    """Condition on the rows; None for all rows."""
    grouped: bool
    """True if the items are keys and aggregates."""
    version: int | None = None
    """Number of the init statement (from 1) whose result it reads: ``VERSION AS OF {init[1]}``."""
    keys: tuple[ColumnRef, ...] = ()
    """Columns of GROUP BY."""
    alias: bool = False
    """True if it uses another path to the files of the table, ``delta.`{alias}` ``."""

    @property
    def seen(self) -> bool:
        """True if a transaction that writes the table tracks the query as a read of the table."""
        return self.version is None and not self.alias


JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]
"""Kind of a join of a source with the earlier ones."""


@dataclass(frozen=True, slots=True)
class JoinSource:
    """Side of a join, with its kind and condition."""

    query: Query
    how: JoinKind = "inner"
    on: Expr | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """``SELECT items FROM a JOIN b ON … WHERE where [GROUP BY keys]``: each source is a side."""

    sources: tuple[JoinSource, ...]
    """Sources in the order in which they are joined."""
    items: tuple[Expr, ...]
    """Selected expressions."""
    where: Expr | None
    """Condition on the rows; None for all rows."""
    grouped: bool
    """True if the items are keys and aggregates."""
    keys: tuple[ColumnRef, ...] = ()
    """Columns of GROUP BY."""


Branch = Values | Select | Joined
Query = tuple[Branch, ...]
"""Branches of a UNION ALL; a single branch is a plain query."""


def source_tables(query: Query) -> frozenset[str]:
    """Return the tables that a query reads."""
    tables = {branch.table for branch in query if isinstance(branch, Select)}
    for branch in query:
        if isinstance(branch, Joined):
            tables = tables.union(*(source_tables(source.query) for source in branch.sources))
        rows = branch.rows if isinstance(branch, Values) else (branch.items,)
        parts = subqueries(branch.where, *(item for row in rows for item in row))
        tables |= {part.table for part in parts}
    return frozenset(tables)


def items_of(branch: Branch) -> tuple[Expr, ...]:
    """Return the expressions of a branch's columns (of its first row, for VALUES)."""
    return branch.rows[0] if isinstance(branch, Values) else branch.items


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a resolved statement: parsed ``syntax``, and ``tables`` that it was resolved on."""

    syntax: Any
    tables: Mapping[str, Schema]


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Resolved(Command):
    """Statement with resolved names; two are equal if they do the same, whatever their origin."""

    origin: Origin | None = field(default=None, compare=False)


@memoize_by_identity
def unknown_parts(noun: object) -> tuple[Opaque | Parameter, ...]:
    """Return the opaque expressions and the parameters anywhere in a statement.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> tables = {"t": Schema("t", (Column("id", "INT"),))}
    >>> delete = read_statement("DELETE FROM t WHERE id > 1 AND mine(id) = 2", tables, opaque=True)
    >>> [str(part) for part in unknown_parts(delete)]
    ['mine(id) = 2']
    """
    return tuple(_parts(noun))


def _parts(noun: object) -> Iterator[Opaque | Parameter]:
    """Yield the uninterpreted sources and parameters in a syntax tree, except in origins."""
    if isinstance(noun, Opaque | Parameter):
        yield noun
    elif isinstance(noun, tuple):
        for each in noun:
            yield from _parts(each)
    elif is_dataclass(noun) and not isinstance(noun, Origin | type):
        for one in fields(noun):
            yield from _parts(getattr(noun, one.name))
