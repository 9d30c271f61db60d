"""Statements that change what a table is rather than its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.sql.origin import Resolved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Column
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.query import Query

__all__ = [
    "AddColumns",
    "AddConstraint",
    "Change",
    "Clone",
    "ClusterBy",
    "CommentColumn",
    "Convert",
    "Create",
    "Definition",
    "DropColumn",
    "DropConstraint",
    "DropFeature",
    "DropNotNull",
    "How",
    "RemoveMapping",
    "RenameColumn",
    "Replace",
    "Restore",
    "SetProperties",
    "SyncIdentity",
    "UnsetProperties",
    "UpgradeUniform",
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
    """``SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')``, or ``UNSET`` of it: columns have the names in
    the files that they have in the table, so every file is written anew.
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
    """``ALTER COLUMN name SYNC IDENTITY``: the values of an identity column go on after those that are
    there.
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
    """``RESTORE TABLE target TO VERSION AS OF {init[version]}``: what an init statement has left."""

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
