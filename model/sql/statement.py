"""Statements: a small tree for each kind of SQL statement that a transaction may run.

The model executes a tree and computes its footprint; ``sql`` is the text as written, which engines
receive unchanged. Some statements change the definition of a table instead of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.sql.query import Resolved, Select
from isolitmus.model.sql.raw_transaction import Raw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.query import Query
    from isolitmus.model.sql.schema import Column


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``SET TBLPROPERTIES``; ``COMMENT ON TABLE`` is the property ``comment``.

    A property with prefix ``delta.feature.`` requests a feature.
    """

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``UNSET TBLPROPERTIES [IF EXISTS]``; missing properties are ignored in both forms."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EarlierCommit:
    """Commit that ``SET TBLPROPERTIES`` makes before its own, when it enables row tracking.

    It adds the table feature, or assigns row ids to files that have none
    (RowTrackingBackfillCommand.scala).
    """


@dataclass(frozen=True, slots=True)
class RemoveMapping:
    """``SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')``, or ``UNSET`` of it.

    Column names in files become those of the table, so every file is rewritten.
    """

    unset: bool
    """True if the property is removed as well."""


@dataclass(frozen=True, slots=True)
class AddColumns:
    """``ADD COLUMNS``, at the end; existing rows get NULL."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class DropColumns:
    """``DROP COLUMNS (name, …)``, for a table whose columns are mapped by name: no file changes."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """``RENAME COLUMN name TO other``, for a table whose columns are mapped by name."""

    name: str
    other: str


@dataclass(frozen=True, slots=True)
class CommentColumn:
    """``ALTER COLUMN name COMMENT 'text'``."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class DropNotNull:
    """``ALTER COLUMN name DROP NOT NULL``; every column is nullable already."""

    name: str


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """``ADD CONSTRAINT name CHECK (condition)``: every row, existing ones included, must satisfy
    it.

    ``text`` is the condition as written.
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
    """``ALTER COLUMN name SYNC IDENTITY``: an identity column continues after existing values."""

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
    | DropColumns
    | RenameColumn
    | CommentColumn
    | DropNotNull
    | AddConstraint
    | DropConstraint
    | DropFeature
    | ClusterBy
    | EarlierCommit
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
    """``RESTORE TABLE target TO VERSION AS OF {init[version]}``: result of an init statement."""

    sql: str
    target: str
    version: int


@dataclass(frozen=True, slots=True, repr=False)
class Replace(Resolved):
    """``[CREATE OR] REPLACE TABLE target …``: another table with the same name."""

    sql: str
    """Text as written."""
    target: str
    """Table, with the columns that the first one was declared with."""
    query: Query | None
    """Contents of the table afterwards; None for an empty table."""
    create: bool
    """True if the table need not exist."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the table."""
    comment: str | None = None
    """Description of the table, if it is given."""


How = Literal["create", "create if not exists", "create or replace", "replace"]
"""Form of a statement that creates a table."""


@dataclass(frozen=True, slots=True, repr=False)
class Create(Resolved):
    """``CREATE TABLE [IF NOT EXISTS] target …``."""

    sql: str
    """Text as written."""
    target: str
    """Table, with its declared columns."""
    query: Query | None
    """Initial contents of the table; None for an empty table."""
    if_not_exists: bool
    """True if nothing happens if the table exists."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the table."""
    comment: str | None = None
    """Description of the table, if it is given."""


@dataclass(frozen=True, slots=True, repr=False)
class Clone(Resolved):
    """``CREATE TABLE target SHALLOW CLONE source``: a table with the files of another one."""

    sql: str
    """Text as written."""
    target: str
    """Table that is created."""
    source: str
    """Table whose files it has."""
    version: int | None
    """Number of the init statement (from 1) whose result is cloned; None for the newest version."""
    how: How
    """Effect on an existing table."""


@dataclass(frozen=True, slots=True, repr=False)
class Convert(Resolved):
    """``CONVERT TO DELTA target``: files of a Parquet table become those of a Delta table."""

    sql: str
    target: str


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an INSERT that its text does not contain."""

    dynamic: bool = False
    """True if an overwrite replaces only the partitions for which the query has rows."""
    data_change: bool = True
    """Value of the DataFrame writer's option dataChange."""
    grows: tuple[Column, ...] | None = None
    """With mergeSchema: columns of the query that are not declared."""
    stream: bool = False
    """True if it is a micro-batch of the streaming sink, in output mode append or (overwriting)
    complete.
    """
    makes: bool = False
    """True if it creates a missing table, as the DataFrame writer does, unlike INSERT in SQL."""
    using: tuple[int, ...] = ()
    """Option replaceUsing: columns in which a replaced row equals a new row."""


@dataclass(frozen=True, slots=True, repr=False)
class Insert(Resolved):
    """``INSERT INTO`` or ``INSERT OVERWRITE``."""

    sql: str
    """Text as written."""
    target: str
    """Target table."""
    query: Query
    """Rows that are written."""
    overwrite: bool = False
    """True if existing rows are removed."""
    where: Expr | None = None
    """Condition on the rows that are removed (``REPLACE WHERE``, ``PARTITION (part = 1)``)."""
    generates: tuple[int, ...] = ()
    """Positions of omitted identity columns, for which the query gives NULL."""
    options: Options = field(default_factory=Options)
    """Options of a write by the DataFrame API."""


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
    """``WHEN MATCHED [AND condition] THEN UPDATE SET … | DELETE``; no sets for a delete.

    It also stands for ``WHEN NOT MATCHED BY SOURCE``, which has only the target's row.
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
    """``MERGE INTO target USING source ON on WHEN …``; side 0 is the target, side 1 the source."""

    sql: str
    """Text as written."""
    target: str
    """Target table."""
    source: Query
    """Source rows."""
    on: Expr
    """Join condition of target and source rows."""
    matched: tuple[MatchedClause, ...]
    """Clauses for target rows with a match."""
    not_matched: tuple[NotMatchedClause, ...]
    """Clauses for source rows without a match."""
    by_source: tuple[MatchedClause, ...] = ()
    """Clauses for target rows without a match."""


@dataclass(frozen=True, slots=True, repr=False)
class Optimize(Resolved):
    """``OPTIMIZE target [WHERE where]``: compacts the files of each partition, changes no row."""

    sql: str
    """Text as written."""
    target: str
    """Table that is compacted."""
    where: Expr | None
    """Condition on the partitions; None for all."""
    rewrite: Literal["several", "all", "vector"] = "several"
    """Files to rewrite: those of partitions with ``several`` files, ``all`` (ZORDER BY), or those
    with a deletion ``vector`` (``REORG TABLE target [WHERE where] APPLY (PURGE)``).
    """
    zorder: tuple[str, ...] = ()
    """Columns of ZORDER BY."""


@dataclass(frozen=True, slots=True, repr=False)
class Truncate(Resolved):
    """``TRUNCATE TABLE target``: removes all files."""

    sql: str
    target: str


@dataclass(frozen=True, slots=True, repr=False)
class Vacuum(Resolved):
    """``VACUUM target``: two empty commits, before and after the deletion of files.

    It deletes files that no version has needed for a week; in a test there are none.
    """

    sql: str
    target: str


@dataclass(frozen=True, slots=True, repr=False)
class Read(Resolved):
    """Query that only reads."""

    sql: str
    query: Query


@dataclass(frozen=True, slots=True, repr=False)
class Block(Resolved):
    """Several statements in one transaction, in a format that supports this.

    ``sql`` is the text of all; ``target`` is empty, as each statement has its own. ``single`` says
    that there is one statement, not written as a list.
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
    """Return the statements of a transaction, in order."""
    return transaction.statements if isinstance(transaction, Block) else (transaction,)


def altered_table(statement: Statement) -> str | None:
    """Return the table of which a statement changes columns, constraints or properties of Delta.

    A comment, the clustering and other properties affect no statement.

    Examples
    --------
    >>> altered_table(Definition("…", "t", SetProperties({"delta.appendOnly": "true"})))
    't'
    >>> altered_table(Definition("…", "t", SetProperties({"team": "us"}))) is None
    True
    """
    match statement:
        case (
            Definition(change=SetProperties(properties=keys) | UnsetProperties(keys=keys))
            | Replace(properties=keys)
        ):
            return statement.target if any(key.startswith("delta.") for key in keys) else None
        case Definition(
            change=CommentColumn() | DropNotNull() | ClusterBy() | SyncIdentity() | EarlierCommit()
        ):
            return None
        case Definition(target=target):
            return target
    return None


def untracked_queries(statement: Statement) -> tuple[Select, ...]:
    """Return the queries of a statement that read a table without Delta tracking the read."""
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
