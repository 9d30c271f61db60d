"""Statements, a small tree for each kind of SQL that a transaction may run.

Statements: a small tree for each kind of SQL that a transaction may run.

A tree is executed by the model and asked for its footprint; ``sql`` is the author's text, which
engines receive unchanged.

Statements that change what a table is rather than its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql.query import Resolved, Select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Column
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.query import Query

__all__ = [
    "AddColumns",
    "AddConstraint",
    "Block",
    "Change",
    "Clone",
    "ClusterBy",
    "CommentColumn",
    "Convert",
    "Create",
    "Definition",
    "Delete",
    "DropColumn",
    "DropConstraint",
    "DropFeature",
    "DropNotNull",
    "How",
    "Insert",
    "MatchedClause",
    "Merge",
    "NotMatchedClause",
    "Optimize",
    "Options",
    "Read",
    "RemoveMapping",
    "RenameColumn",
    "Replace",
    "Restore",
    "SetProperties",
    "Statement",
    "SyncIdentity",
    "Truncate",
    "UnsetProperties",
    "Update",
    "UpgradeUniform",
    "Vacuum",
    "statements_of",
    "untracked_queries",
]


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``SET TBLPROPERTIES``; ``COMMENT ON TABLE`` is the property ``comment``, and what begins with
    ``delta.feature.`` asks for a feature.
    """

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``UNSET TBLPROPERTIES [IF EXISTS]``; what is not there stays away, either way."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveMapping:
    """``SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')``, or ``UNSET`` of it: columns have
    the names in the files that they have in the table, so every file is written anew.
    """

    unset: bool
    """Whether the property goes, too."""


@dataclass(frozen=True, slots=True)
class AddColumns:
    """``ADD COLUMNS``, at the end; the rows that are there have NULL."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class DropColumn:
    """``DROP COLUMN name``, of a table whose columns are mapped by name: no file changes."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """``RENAME COLUMN name TO other``, of such a table."""

    name: str
    other: str


@dataclass(frozen=True, slots=True)
class CommentColumn:
    """``ALTER COLUMN name COMMENT 'text'``."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class DropNotNull:
    """``ALTER COLUMN name DROP NOT NULL``; every column takes NULL already."""

    name: str


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """``ADD CONSTRAINT name CHECK (condition)``: every row must make it true, also those that are
    there. ``text`` is the condition as written.
    """

    name: str
    text: str
    condition: Expr


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """``DROP CONSTRAINT [IF EXISTS] name``."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class DropFeature:
    """``DROP FEATURE name``."""

    name: str


@dataclass(frozen=True, slots=True)
class UpgradeUniform:
    """``REORG TABLE target APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = version))``."""

    version: int


@dataclass(frozen=True, slots=True)
class SyncIdentity:
    """``ALTER COLUMN name SYNC IDENTITY``: the values of an identity column go on after those that
    are there.
    """

    name: str


@dataclass(frozen=True, slots=True)
class ClusterBy:
    """``CLUSTER BY (columns)`` or ``CLUSTER BY NONE``."""

    columns: tuple[str, ...]


Change = (
    SetProperties
    | UnsetProperties
    | RemoveMapping
    | AddColumns
    | DropColumn
    | RenameColumn
    | CommentColumn
    | DropNotNull
    | AddConstraint
    | DropConstraint
    | DropFeature
    | ClusterBy
    | SyncIdentity
    | UpgradeUniform
)


@dataclass(frozen=True, slots=True, repr=False)
class Definition(Resolved):
    """``ALTER TABLE target …`` or ``COMMENT ON TABLE target IS …``."""

    sql: str
    target: str
    change: Change


@dataclass(frozen=True, slots=True, repr=False)
class Restore(Resolved):
    """``RESTORE TABLE target TO VERSION AS OF {init[version]}``: what an init statement has
    left.
    """

    sql: str
    target: str
    version: int


@dataclass(frozen=True, slots=True, repr=False)
class Replace(Resolved):
    """``[CREATE OR] REPLACE TABLE target …``: another table under the same name."""

    sql: str
    """As written."""
    target: str
    """The table, with the columns that the first one was declared with."""
    query: Query | None
    """What the table has afterwards; None: nothing."""
    create: bool
    """It need not be there."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Those that it is given."""


How = Literal["create", "create if not exists", "create or replace", "replace"]
"""In which way a statement makes a table."""


@dataclass(frozen=True, slots=True, repr=False)
class Create(Resolved):
    """``CREATE TABLE [IF NOT EXISTS] target …``."""

    sql: str
    """As written."""
    target: str
    """The table, with the columns that it is declared with."""
    query: Query | None
    """What the table has at first; None: nothing."""
    if_not_exists: bool
    """Nothing happens if it is there."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Those that it is given."""


@dataclass(frozen=True, slots=True, repr=False)
class Clone(Resolved):
    """``CREATE TABLE target SHALLOW CLONE source``: a table with the files that another one has."""

    sql: str
    """As written."""
    target: str
    """The table that is made."""
    source: str
    """The table whose files it has."""
    version: int | None
    """As this init statement (from 1) has left it; None: as it is."""
    how: How
    """What becomes of a table that is there."""


@dataclass(frozen=True, slots=True, repr=False)
class Convert(Resolved):
    """``CONVERT TO DELTA target``: the files of a Parquet table become those of a Delta table."""

    sql: str
    target: str


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
    """It is a micro-batch of the streaming sink, in output mode append or, overwriting,
    complete.
    """
    makes: bool = False
    """It makes the table if that is not there, as the DataFrame writer does, and no INSERT of
    SQL.
    """
    using: tuple[int, ...] = ()
    """The option replaceUsing: the columns in which a row that is replaced equals one that
    comes.
    """


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
    """``MERGE INTO target USING source ON on WHEN …``; in expressions side 0 is the target, 1 the
    source.
    """

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
    """Which files: those of partitions with ``several``, ``all`` (ZORDER BY), or those with a
    deletion ``vector`` (``REORG TABLE target [WHERE where] APPLY (PURGE)``)."""
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
    """Several statements that are one transaction, in a format that has such; ``sql`` is all of
    them, and the ``target`` none: each has its own. ``single``: it is one, and not written as a
    list.
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
