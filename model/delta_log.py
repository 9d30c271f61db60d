"""What a Delta table's log says: commits with the files that they add and remove, and the claims beside.

One commit is one version of a table (Delta's PROTOCOL.md, "Delta Log Entries"). A field that a writer
left out is None: not every writer says what it read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LogCommit", "LogFile", "Metadata", "Protocol"]

DEFAULT_LEVEL = "Serializable"
"""The level of a table that says nothing (DeltaConfig.scala, ISOLATION_LEVEL)."""
LEVEL_KEY = "delta.isolationLevel"
"""The key of a table's level; Delta reads it as it stands, capital L (DeltaConfig.scala, fromMap)."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A data file as an ``add`` or ``remove`` names it; with its deletion vector it is one entry.

    ``vector`` is the vector's unique id (empty: none) and ``marked`` the number of rows that it marks as
    deleted; ``partition`` is None where the action does not say it; ``stats`` is JSON, as written.
    """

    path: str
    vector: str = ""
    marked: int = 0
    partition: Mapping[str, str | None] | None = None
    data_change: bool = True
    stats: str | None = None

    @property
    def entry(self) -> tuple[str, str]:
        """What makes an entry of the table: path and deletion vector (PROTOCOL.md)."""
        return self.path, self.vector


@dataclass(frozen=True, slots=True)
class Metadata:
    """A table's metadata, as far as its conflicts depend on it.

    ``types`` are the top-level columns by lower-case name, with the name in files (column mapping) and
    the type as Delta writes it; a type that has parts is the word ``nested``, a string that compares in
    another way ``special``.
    """

    types: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """The isolation level that commits are to be checked at."""
        return self.configuration.get(LEVEL_KEY, DEFAULT_LEVEL)


@dataclass(frozen=True, slots=True)
class Protocol:
    """The versions and features that readers and writers of a table must know."""

    reader: int
    writer: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogCommit:
    """One version of a table: its actions, and what ``commitInfo`` says of them.

    >>> claims = {"operation": "WRITE", "isBlindAppend": True}
    >>> commit = LogCommit(7, claims, adds=(LogFile("f"),))
    >>> commit.operation, commit.blind, commit.read_version, commit.changes_rows
    ('WRITE', True, None, True)
    """

    version: int
    info: Mapping[str, Any] = field(default_factory=dict)
    adds: tuple[LogFile, ...] = ()
    removes: tuple[LogFile, ...] = ()
    changes: int = 0
    metadata: Metadata | None = None
    protocol: Protocol | None = None

    @property
    def operation(self) -> str | None:
        """The command, such as ``WRITE``, ``DELETE`` or ``OPTIMIZE``."""
        return self.info.get("operation")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the commit says of its command, such as its mode and predicate."""
        return self.info.get("operationParameters") or {}

    @property
    def blind(self) -> bool | None:
        """Whether it claims to have read nothing and only added files."""
        return self.info.get("isBlindAppend")

    @property
    def level(self) -> str | None:
        """The level that it says it was checked at: not always the table's."""
        return self.info.get("isolationLevel")

    @property
    def engine(self) -> str | None:
        """The program that wrote it."""
        return self.info.get("engineInfo")

    @property
    def read_version(self) -> int | None:
        """The version that it read; −1, the empty table, for version 0."""
        said: int | None = self.info.get("readVersion")
        return -1 if said is None and self.version == 0 else said

    @property
    def changes_rows(self) -> bool:
        """Whether it says that it adds or removes rows, and does not only move them."""
        return any(f.data_change for f in (*self.adds, *self.removes))
