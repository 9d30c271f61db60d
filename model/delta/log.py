"""What a Delta table's log says: commits with the files that they add and remove, and the claims
beside.

One commit is one version of a table (Delta's PROTOCOL.md, "Delta Log Entries"). A field that a
writer left out is None: not every writer says what it read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "DEFAULT_LEVEL",
    "LEVEL_KEY",
    "LogCommit",
    "LogFile",
    "LogMetadata",
    "LogProtocol",
    "live_files",
]

DEFAULT_LEVEL = "Serializable"
"""The level of a table that says nothing (DeltaConfig.scala, ISOLATION_LEVEL)."""
LEVEL_KEY = "delta.isolationLevel"
"""The key of a table's level; Delta reads it as it stands, capital L (DeltaConfig.scala,
fromMap).
"""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A data file as an ``add`` or ``remove`` names it; with its deletion vector it is one
    entry.
    """

    path: str
    """Where it is, from the table's folder or as a whole."""
    vector: str = ""
    """The unique id of its deletion vector; empty: none."""
    marked: int = 0
    """The number of rows that the vector marks as deleted."""
    partition: Mapping[str, str | None] | None = None
    """The values of the partition columns; None: the action does not say them."""
    data_change: bool = True
    """False: the action changes no row of the table."""
    stats: str | None = None
    """JSON, as written."""
    action: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """All that the action says of it."""

    @property
    def entry(self) -> tuple[str, str]:
        """What makes an entry of the table: path and deletion vector (PROTOCOL.md)."""
        return self.path, self.vector


@dataclass(frozen=True, slots=True)
class LogMetadata:
    """A table's metadata, as far as its conflicts depend on it.

    ``types`` are the top-level columns by lower-case name, with the name in files (column mapping)
    and the type as Delta writes it; a type that has parts is the word ``nested``, a string that
    compares in another way ``special``. ``schema`` is all that it says of the columns, Spark's
    JSON.
    """

    types: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    schema: str = field(default="", compare=False)

    @property
    def level(self) -> str:
        """The isolation level that commits are to be checked at."""
        return self.configuration.get(LEVEL_KEY, DEFAULT_LEVEL)

    @property
    def plain(self) -> Mapping[str, str]:
        """The properties besides the level."""
        return {key: value for key, value in self.configuration.items() if key != LEVEL_KEY}


@dataclass(frozen=True, slots=True)
class LogProtocol:
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
    """The one that it makes."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """What ``commitInfo`` says."""
    adds: tuple[LogFile, ...] = ()
    """Files that come."""
    removes: tuple[LogFile, ...] = ()
    """Files that go."""
    changes: int = 0
    """How many files of changes to rows (``cdc``) it has."""
    metadata: LogMetadata | None = None
    """The table's from then on; None: as before."""
    protocol: LogProtocol | None = None
    """Delta's reader and writer versions from then on; None: as before."""
    applications: tuple[str, ...] = ()
    """The applications whose version it sets (``txn``)."""
    domains: tuple[str, ...] = ()
    """The metadata domains that it sets (``domainMetadata``)."""

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
    def transaction(self) -> str | None:
        """The id of the transaction, which is no other's."""
        return self.info.get("txnId")

    @property
    def timestamp(self) -> int:
        """When it says that it was committed, in milliseconds."""
        said: int = self.info.get("timestamp", 0)
        return said

    @property
    def changes_rows(self) -> bool:
        """Whether it says that it adds or removes rows, and does not only move them."""
        return any(f.data_change for f in (*self.adds, *self.removes))

    @property
    def words(self) -> str:
        """The commit for a person.

        >>> add = LogFile("f", partition={"day": "3"})
        >>> LogCommit(8, {"operation": "WRITE", "isBlindAppend": True}, (add,)).words
        'version 8 (WRITE: 1 file added in day=3, a blind append)'
        """
        counts = ((len(self.adds), "added"), (len(self.removes), "removed"))
        files = " and ".join(
            f"{count} file{'s' if count > 1 else ''} {what}" for count, what in counts if count
        )
        folders = {
            ", ".join(f"{k}={v}" for k, v in file.partition.items())
            for file in (*self.adds, *self.removes)
            if file.partition
        }
        where = f" in {'; '.join(sorted(folders))}" if folders else ""
        blind = ", a blind append" if self.blind else ""
        said = f"{files}{where}{blind}" if files else "no file"
        return f"version {self.version} ({self.operation}: {said})"


def live_files(commits: Iterable[LogCommit], before: Iterable[LogFile] = ()) -> tuple[LogFile, ...]:
    """The files that are in force after the commits, which begin with version 0, or where these
    were ``before``.

    A file is its path together with its deletion vector: a commit that deletes rows by a vector
    removes the one and adds the other.

    >>> marked = LogFile("f", "v", 1)
    >>> deleted = LogCommit(1, adds=(marked,), removes=(LogFile("f"),))
    >>> live_files([LogCommit(0, adds=(LogFile("f"),)), deleted]) == (marked,)
    True
    """
    files = {file.entry: file for file in before}
    for commit in commits:
        for file in commit.removes:
            files.pop(file.entry, None)
        for file in commit.adds:
            files[file.entry] = file
    return tuple(files.values())
