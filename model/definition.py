"""Statements that change what a table is rather than its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.expression import Expr
    from isolitmus.model.schema import Column
    from isolitmus.model.statement import Query

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
    "How",
    "Late",
    "RenameColumn",
    "Replace",
    "Restore",
    "SetProperties",
    "SyncIdentity",
    "UnsetProperties",
]


@dataclass(frozen=True, slots=True)
class SetProperties:
    """``SET TBLPROPERTIES``; ``COMMENT ON TABLE`` is the property ``comment``, and what begins with
    ``delta.feature.`` asks for a feature.
    """

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    """``UNSET TBLPROPERTIES [IF EXISTS]``."""

    keys: tuple[str, ...]
    if_exists: bool


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
    """``DROP FEATURE name``, of a feature whose removal is one commit, or that cannot be removed."""

    name: str


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
    | AddColumns
    | DropColumn
    | RenameColumn
    | CommentColumn
    | AddConstraint
    | DropConstraint
    | DropFeature
    | ClusterBy
    | SyncIdentity
)


@dataclass(frozen=True, slots=True)
class Definition:
    """``ALTER TABLE target …`` or ``COMMENT ON TABLE target IS …``."""

    sql: str
    target: str
    change: Change


@dataclass(frozen=True, slots=True)
class Restore:
    """``RESTORE TABLE target TO VERSION AS OF {init[version]}``: what an init statement has left."""

    sql: str
    target: str
    version: int


@dataclass(frozen=True, slots=True)
class Replace:
    """``[CREATE OR] REPLACE TABLE target …``: another table under the same name, with the columns that
    the first one was declared with; empty, or with what ``query`` gives.
    """

    sql: str
    target: str
    query: Query | None
    create: bool
    properties: Mapping[str, str] = field(default_factory=dict)


How = Literal["create", "create if not exists", "create or replace", "replace"]
"""In which way a statement makes a table."""


@dataclass(frozen=True, slots=True)
class Create:
    """``CREATE TABLE [IF NOT EXISTS] target …``: a table with the columns that it is declared with;
    empty, or with what ``query`` gives.
    """

    sql: str
    target: str
    query: Query | None
    if_not_exists: bool
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Clone:
    """``CREATE TABLE target SHALLOW CLONE source``: a table with the files that another one has, as it
    is or, with ``version``, as that init statement has left it.
    """

    sql: str
    target: str
    source: str
    version: int | None
    how: How


@dataclass(frozen=True, slots=True)
class Convert:
    """``CONVERT TO DELTA target``: the files of a Parquet table become those of a Delta table."""

    sql: str
    target: str


@dataclass(frozen=True, slots=True)
class Late:
    """A statement on columns that another one adds: it is read when it runs."""

    sql: str
    target: str
