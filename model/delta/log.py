"""Log of a Delta table: commits with added and removed files and the fields of ``commitInfo``.

One commit is one version of a table (Delta's PROTOCOL.md, "Delta Log Entries"). A field that a
writer left out is None: not every writer records what it read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DEFAULT_LEVEL = "Serializable"
"""Isolation level of a table without one in its properties (DeltaConfig.scala, ISOLATION_LEVEL)."""
LEVEL_KEY = "delta.isolationLevel"
"""Property with a table's isolation level; Delta compares it exactly, with capital L
(DeltaConfig.scala, fromMap).
"""


@dataclass(frozen=True, slots=True)
class LogFile:
    """Data file in an ``add`` or ``remove`` action; an entry is a file with its deletion vector."""

    path: str
    """Path, relative to the table's folder or absolute."""
    vector: str = ""
    """Unique id of its deletion vector; empty if there is none."""
    marked: int = 0
    """Number of rows that the vector marks as deleted."""
    partition: Mapping[str, str | None] | None = None
    """Values of the partition columns; None if the action does not contain them."""
    data_change: bool = True
    """True if the action changes rows of the table."""
    stats: str | None = None
    """Statistics in JSON, as written."""
    written: Mapping[str, Any] | bytes = field(default_factory=dict, compare=False, repr=False)
    """Fields of the action, or its line in the commit."""

    @property
    def action(self) -> Mapping[str, Any]:
        """All fields of the action."""
        if not isinstance(self.written, bytes):
            return self.written
        (fields,) = json.loads(self.written).values()
        found: Mapping[str, Any] = fields
        return found

    @property
    def entry(self) -> tuple[str, str]:
        """Path and deletion vector, which identify an entry of the table (PROTOCOL.md)."""
        return self.path, self.vector


@dataclass(frozen=True, slots=True)
class LogMetadata:
    """Metadata of a table, as far as conflicts depend on them.

    ``types`` maps top-level columns (lower-case names) to the name in files (column mapping) and
    the type as Delta writes it. A nested type is the word ``nested``, a string with another
    collation ``special``. ``schema`` is the whole schema, in Spark's JSON.
    """

    types: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    schema: str = field(default="", compare=False)

    @property
    def level(self) -> str:
        """Isolation level at which commits are to be checked."""
        return self.configuration.get(LEVEL_KEY, DEFAULT_LEVEL)

    @property
    def plain(self) -> Mapping[str, str]:
        """Properties other than the isolation level."""
        return {key: value for key, value in self.configuration.items() if key != LEVEL_KEY}


@dataclass(frozen=True, slots=True)
class LogProtocol:
    """Versions and features that readers and writers of a table must support."""

    reader: int
    writer: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogCommit:
    """Version of a table: its actions and its ``commitInfo``.

    Examples
    --------
    >>> claims = {"operation": "WRITE", "isBlindAppend": True}
    >>> commit = LogCommit(7, claims, adds=(LogFile("f"),))
    >>> commit.operation, commit.blind, commit.read_version, commit.changes_rows
    ('WRITE', True, None, True)
    """

    version: int
    """Version that it makes."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``commitInfo``."""
    adds: tuple[LogFile, ...] = ()
    """Added files."""
    removes: tuple[LogFile, ...] = ()
    """Removed files."""
    changes: int = 0
    """Number of change data files (``cdc``)."""
    metadata: LogMetadata | None = None
    """Metadata of the table from then on; None if unchanged."""
    protocol: LogProtocol | None = None
    """Reader and writer versions from then on; None if unchanged."""
    applications: tuple[str, ...] = ()
    """Applications whose version it sets (``txn``)."""
    domains: tuple[str, ...] = ()
    """Metadata domains that it sets (``domainMetadata``)."""

    @property
    def operation(self) -> str | None:
        """Operation, such as ``WRITE``, ``DELETE`` or ``OPTIMIZE``."""
        return self.info.get("operation")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the operation, such as its mode and predicate."""
        return self.info.get("operationParameters") or {}

    @property
    def blind(self) -> bool | None:
        """True if it is marked as a blind append."""
        return self.info.get("isBlindAppend")

    @property
    def level(self) -> str | None:
        """Isolation level that it records; not always that of the table."""
        return self.info.get("isolationLevel")

    @property
    def engine(self) -> str | None:
        """Program that wrote it."""
        return self.info.get("engineInfo")

    @property
    def read_version(self) -> int | None:
        """Version that it read; −1, the empty table, for version 0."""
        said: int | None = self.info.get("readVersion")
        return -1 if said is None and self.version == 0 else said

    @property
    def transaction(self) -> str | None:
        """Unique id of the transaction."""
        return self.info.get("txnId")

    @property
    def timestamp(self) -> int:
        """Recorded commit time in milliseconds; 0 if not recorded."""
        said: int = self.info.get("timestamp", 0)
        return said

    @property
    def changes_rows(self) -> bool:
        """True if some action is marked as changing data."""
        return any(f.data_change for f in (*self.adds, *self.removes))

    @property
    def words(self) -> str:
        """Description of the commit.

        Examples
        --------
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
    """Return the files that are live after the commits.

    A file is its path together with its deletion vector: a commit that deletes rows by a vector
    removes the one entry and adds the other.

    Parameters
    ----------
    commits : iterable of LogCommit
        Commits in order, from version 0 unless `before` is given.
    before : iterable of LogFile
        Live files before the first commit.

    Examples
    --------
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
