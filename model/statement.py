"""Statements: a small tree for each kind of SQL that a transaction may run.

A tree is executed by the model and asked for its footprint; ``sql`` is the author's text, which
engines receive unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from isolitmus.model.definition import Clone, Convert, Create, Definition, Late, Replace, Restore
from isolitmus.model.raw import Raw

if TYPE_CHECKING:
    from isolitmus.model.expression import ColumnRef, Expr
    from isolitmus.model.schema import Column

__all__ = [
    "Branch",
    "Delete",
    "Insert",
    "MatchedClause",
    "Merge",
    "NotMatchedClause",
    "Optimize",
    "Query",
    "Read",
    "Select",
    "Statement",
    "Truncate",
    "Update",
    "Vacuum",
    "Values",
    "read_anew",
    "unseen",
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
    """``SELECT items FROM table WHERE where [GROUP BY keys]``; ``grouped`` where the items are keys and
    aggregates. With ``version`` from the table as that init statement (from 1) has left it:
    ``VERSION AS OF {init[1]}``; with ``alias`` by another path to its files, ``delta.`{alias}` ``.
    """

    table: str
    items: tuple[Expr, ...]
    where: Expr | None
    grouped: bool
    version: int | None = None
    keys: tuple[ColumnRef, ...] = ()
    alias: bool = False

    @property
    def seen(self) -> bool:
        """Whether a transaction that writes the table takes note of it as a read of the table."""
        return self.version is None and not self.alias


Branch = Values | Select
Query = tuple[Branch, ...]
"""The branches of a UNION ALL; one branch is a plain query."""


@dataclass(frozen=True, slots=True)
class Insert:
    """``INSERT INTO`` or, with ``overwrite``, ``INSERT OVERWRITE`` of the whole table; with ``where``
    of the rows where it holds (``REPLACE WHERE``, ``PARTITION (part = 1)``), with ``dynamic`` of the
    partitions that the query has rows for. ``data_change`` False is the DataFrame writer's option, and
    so is ``grows`` (mergeSchema): the columns that the query gives besides those that are declared,
    None without it. ``stream``: it is a micro-batch of the streaming sink, in output mode append or,
    with ``overwrite``, complete. ``generates``: the identity columns that it leaves out; the query
    gives NULL for them. ``using``: the columns in which a row that is replaced equals one that comes
    (the option replaceUsing).
    """

    sql: str
    target: str
    query: Query
    overwrite: bool = False
    where: Expr | None = None
    dynamic: bool = False
    data_change: bool = True
    grows: tuple[Column, ...] | None = None
    stream: bool = False
    generates: tuple[int, ...] = ()
    using: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """``DELETE FROM target WHERE where``."""

    sql: str
    target: str
    where: Expr | None


@dataclass(frozen=True, slots=True)
class Update:
    """``UPDATE target SET column = value … WHERE where``; sets are (column index, value)."""

    sql: str
    target: str
    sets: tuple[tuple[int, Expr], ...]
    where: Expr | None


@dataclass(frozen=True, slots=True)
class MatchedClause:
    """``WHEN MATCHED [AND condition] THEN UPDATE SET … | DELETE``; no sets for a delete. Also the
    ``WHEN NOT MATCHED BY SOURCE`` clauses, which have the target's row alone.
    """

    action: Literal["update", "delete"]
    condition: Expr | None
    sets: tuple[tuple[int, Expr], ...] = ()


@dataclass(frozen=True, slots=True)
class NotMatchedClause:
    """``WHEN NOT MATCHED [AND condition] THEN INSERT …``; one value for each target column."""

    condition: Expr | None
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """``MERGE INTO target USING source ON on WHEN …``; in expressions side 0 is the target, 1 the source."""

    sql: str
    target: str
    source: Query
    on: Expr
    matched: tuple[MatchedClause, ...]
    not_matched: tuple[NotMatchedClause, ...]
    by_source: tuple[MatchedClause, ...] = ()


@dataclass(frozen=True, slots=True)
class Optimize:
    """``OPTIMIZE target [WHERE where]``: compacts the files of each partition, changes no row.

    ``rewrite`` says which files: those of partitions with ``several``, ``all`` (ZORDER BY), or those
    with a deletion ``vector`` (``REORG TABLE target [WHERE where] APPLY (PURGE)``).
    """

    sql: str
    target: str
    where: Expr | None
    rewrite: Literal["several", "all", "vector"] = "several"


@dataclass(frozen=True, slots=True)
class Truncate:
    """``TRUNCATE TABLE target``: removes all files."""

    sql: str
    target: str


@dataclass(frozen=True, slots=True)
class Vacuum:
    """``VACUUM target``: two commits that hold nothing, one before and one after files go that no
    version has needed for a week; so none does in a test.
    """

    sql: str
    target: str


@dataclass(frozen=True, slots=True)
class Read:
    """A query that only reads."""

    sql: str
    query: Query


Statement = (
    Insert
    | Delete
    | Update
    | Merge
    | Optimize
    | Truncate
    | Vacuum
    | Read
    | Definition
    | Restore
    | Replace
    | Create
    | Clone
    | Convert
    | Late
    | Raw
)


def read_anew(statement: Statement, read: Statement) -> Statement:
    """A statement as its text was read once more: what only its client says of it stays."""
    if not isinstance(statement, Insert) or not isinstance(read, Insert):
        return read
    return replace(
        read,
        dynamic=statement.dynamic,
        data_change=statement.data_change,
        stream=statement.stream,
        using=statement.using,
    )


def unseen(statement: Statement) -> tuple[Select, ...]:
    """The queries of a statement that read a table in a way of which Delta takes no note."""
    match statement:
        case (
            Insert(query=query)
            | Read(query=query)
            | Merge(source=query)
            | Replace(query=tuple(query))
            | Create(query=tuple(query))
        ):
            return tuple(b for b in query if isinstance(b, Select) and not b.seen)
        case Restore(target=target, version=version):
            return (Select(target, (), None, grouped=False, version=version),)
        case Clone(source=source, version=int(version)):
            return (Select(source, (), None, grouped=False, version=version),)
        case _:
            return ()
