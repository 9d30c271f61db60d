"""Statements: a small tree for each kind of SQL that a transaction may run.

A tree is executed by the model and asked for its footprint; ``sql`` is the author's text, which
engines receive unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql.definition import Clone, Convert, Create, Definition, Replace, Restore
from isolitmus.model.sql.origin import Resolved
from isolitmus.model.sql.query import Select

if TYPE_CHECKING:
    from isolitmus.model.schema import Column
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.query import Query

__all__ = [
    "Block",
    "Delete",
    "Insert",
    "MatchedClause",
    "Merge",
    "NotMatchedClause",
    "Optimize",
    "Options",
    "Read",
    "Statement",
    "Truncate",
    "Update",
    "Vacuum",
    "statements_of",
    "untracked_queries",
]


@dataclass(frozen=True, slots=True)
class Options:
    """What a client says of an INSERT besides its text."""

    dynamic: bool = False
    """An overwrite replaces the partitions that the query has rows for."""
    data_change: bool = True
    """The DataFrame writer's option dataChange."""
    grows: tuple[Column, ...] | None = None
    """With mergeSchema: the columns that the query gives besides those that are declared."""
    stream: bool = False
    """It is a micro-batch of the streaming sink, in output mode append or, overwriting, complete."""
    makes: bool = False
    """It makes the table if that is not there, as the DataFrame writer does, and no INSERT of SQL."""
    using: tuple[int, ...] = ()
    """The option replaceUsing: the columns in which a row that is replaced equals one that comes."""


@dataclass(frozen=True, slots=True, repr=False)
class Insert(Resolved):
    """``INSERT INTO`` or ``INSERT OVERWRITE``."""

    sql: str
    """As written."""
    target: str
    """The table that is written into."""
    query: Query
    """The rows that are written."""
    overwrite: bool = False
    """The rows that were there go."""
    where: Expr | None = None
    """Only those go of which it holds (``REPLACE WHERE``, ``PARTITION (part = 1)``)."""
    generates: tuple[int, ...] = ()
    """The identity columns that it leaves out, by place; the query gives NULL for them."""
    options: Options = field(default_factory=Options)
    """Those of a write by the DataFrame API."""


@dataclass(frozen=True, slots=True, repr=False)
class Delete(Resolved):
    """``DELETE FROM target WHERE where``."""

    sql: str
    target: str
    where: Expr | None


@dataclass(frozen=True, slots=True, repr=False)
class Update(Resolved):
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


@dataclass(frozen=True, slots=True, repr=False)
class Merge(Resolved):
    """``MERGE INTO target USING source ON on WHEN …``; in expressions side 0 is the target, 1 the source."""

    sql: str
    """As written."""
    target: str
    """The table that is changed."""
    source: Query
    """The rows that it is merged with."""
    on: Expr
    """Which of them a row of the table is paired with."""
    matched: tuple[MatchedClause, ...]
    """What becomes of rows of the table that have a pair."""
    not_matched: tuple[NotMatchedClause, ...]
    """What becomes of rows of the source that have none."""
    by_source: tuple[MatchedClause, ...] = ()
    """What becomes of rows of the table that have none."""


@dataclass(frozen=True, slots=True, repr=False)
class Optimize(Resolved):
    """``OPTIMIZE target [WHERE where]``: compacts the files of each partition, changes no row."""

    sql: str
    """As written."""
    target: str
    """The table that is compacted."""
    where: Expr | None
    """Of which partitions; None: of all."""
    rewrite: Literal["several", "all", "vector"] = "several"
    """Which files: those of partitions with ``several``, ``all`` (ZORDER BY), or those with a deletion
    ``vector`` (``REORG TABLE target [WHERE where] APPLY (PURGE)``)."""
    zorder: tuple[str, ...] = ()
    """The columns of ZORDER BY."""


@dataclass(frozen=True, slots=True, repr=False)
class Truncate(Resolved):
    """``TRUNCATE TABLE target``: removes all files."""

    sql: str
    target: str


@dataclass(frozen=True, slots=True, repr=False)
class Vacuum(Resolved):
    """``VACUUM target``: two commits that hold nothing, one before and one after files go that no
    version has needed for a week; so none does in a test.
    """

    sql: str
    target: str


@dataclass(frozen=True, slots=True, repr=False)
class Read(Resolved):
    """A query that only reads."""

    sql: str
    query: Query


@dataclass(frozen=True, slots=True, repr=False)
class Block(Resolved):
    """Several statements that are one transaction, in a format that has such; ``sql`` is all of them, and
    the ``target`` none: each has its own. ``single``: it is one, and not written as a list.
    """

    sql: str
    statements: tuple[Statement, ...]
    target: str = ""
    single: bool = False


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
    | Raw
    | Block
)


def statements_of(transaction: Statement) -> tuple[Statement, ...]:
    """The statements of a transaction, in order."""
    return transaction.statements if isinstance(transaction, Block) else (transaction,)


def untracked_queries(statement: Statement) -> tuple[Select, ...]:
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
