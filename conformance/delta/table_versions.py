"""History of the commits of several tables, and the rows of every table at each version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from isolitmus.model.delta.log import live_files
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.logs.delta_log import commits_since, latest_version

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session
    from isolitmus.model.delta.log import LogCommit, LogFile
    from isolitmus.model.sql.values import Row, Rows, Value

ReadVersions = Callable[["Path", int, int], Mapping[int, "Rows"]]
"""Function that reads the rows of the table at a path, at its versions from the first to the last.
"""


class CommitHistory:
    """Commits to all tables in the order in which they happened, from now on.

    Version 0 is now, version k the state after the k-th commit to any table. ``base`` is the
    engine's own number of version 0 for each table; −1 if the table does not exist.
    """

    def __init__(self, tables: Mapping[str, Path]) -> None:
        self._tables = tables
        self.base = {name: latest_version(path) for name, path in tables.items()}
        self._commits: list[tuple[str, LogCommit]] = []

    @property
    def version(self) -> int:
        """Newest version."""
        return len(self._commits)

    def commit(self, version: int) -> LogCommit:
        """Return the commit of this version (from 1)."""
        return self._commits[version - 1][1]

    def update(self) -> tuple[int, ...]:
        """Add the commits made since the last update, and return their versions."""
        before = self._at(self.version)
        new = [
            (name, commit)
            for name, path in self._tables.items()
            for commit in commits_since(path, before[name])
        ]
        first = self.version + 1
        self._commits += sorted(new, key=lambda entry: entry[1].timestamp)
        return tuple(range(first, self.version + 1))

    def read_version(self, version: int, started: int) -> int:
        """Return the version that this commit records as read.

        It differs from ``started``, the version at its start, if a statement retried with a new
        snapshot.
        """
        table, commit = self._commits[version - 1]
        return self.version_of(table, commit.read_version, started)

    def version_of(self, table: str, own: int | None, started: int) -> int:
        """Return the version at which a table had its version ``own``.

        It is ``started`` if the table had ``own`` then, since others may have committed meanwhile,
        or if ``own`` is None.
        """
        if own is None or self._at(started)[table] == own:
            return started
        return max(k for k in range(self.version + 1) if self._at(k)[table] <= own)

    def rows(
        self, read: ReadVersions, without: Container[str] = ()
    ) -> tuple[Mapping[str, Rows], ...]:
        """Return the rows of every existing table at every version.

        Tables in ``without`` are left out; their rows cannot be read.
        """
        last = self._at(self.version)
        states = {
            name: read(path, max(self.base[name], 0), last[name])
            for name, path in self._tables.items()
            if name not in without and last[name] >= 0
        }
        return tuple(
            {n: states[n][at] for n, at in self._at(k).items() if n in states and at >= 0}
            for k in range(self.version + 1)
        )

    def _at(self, version: int) -> dict[str, int]:
        """Return each table's own version at a version of the history."""
        own = dict(self.base)
        for name, commit in self._commits[:version]:
            own[name] = commit.version
        return own


def rows_by_version(session: Session, path: Path, first: int, last: int) -> dict[int, Rows]:
    """Return the rows of one table at its versions first..last, with one Spark query per schema.

    Delta reads the files that its log lists for each version, with deletion vectors. VERSION AS OF
    gives the same rows and takes ten times as long, because it reconstructs each state with a Spark
    job. States are cached: a file's name is unique among all tables, and a file never changes.
    """
    commits = commits_since(path)
    states, unread = {}, {}
    for version in range(first, last + 1):
        schema = _schema(commits, version)
        files = live_files(c for c in commits if c.version <= version)
        states[version] = state = schema, frozenset(file.entry for file in files)
        if state not in session.rows:
            unread[state] = version, schema, files
    if unread:
        newest = _schema(commits, commits[-1].version)
        found = _read(session, path, list(unread.values()), newest)
        session.rows.update({state: found[version] for state, (version, *_) in unread.items()})
    return {version: session.rows[state] for version, state in states.items()}


def _read(
    session: Session,
    path: Path,
    wanted: Sequence[tuple[int, str, Sequence[LogFile]]],
    newest: str,
) -> dict[int, Rows]:
    """Return the rows at these versions.

    Each version comes with its schema and files; ``newest`` is the schema of the newest version.
    """
    from pyspark.sql import DataFrame

    log, none = session.delta_log(path), session.scala("scala.None")
    snapshots = {newest: log.update(False, none, none)}
    frames: dict[str, list[DataFrame]] = {}
    for version, schema, files in wanted:
        if schema not in snapshots:
            snapshots[schema] = log.getSnapshotAt(version, none, none, False)
        adds = session.sequence(session.delta_action({"add": file.action}) for file in files)
        frame = DataFrame(log.createDataFrame(snapshots[schema], adds, False, none), session.spark)
        named = frame.selectExpr(f"{version} AS `version of the table`", "*")
        frames.setdefault(schema, []).append(named)
    unions = (reduce(lambda a, b: a.unionAll(b), several) for several in frames.values())
    rows: dict[int, list[Row]] = {version: [] for version, *_ in wanted}
    for union in unions:
        for version, *values in union.collect():
            rows[version].append(plain_row(values))
    return {version: sort_rows(found) for version, found in rows.items()}


def rows_by_file(
    session: Session, path: Path, version: int, files: Sequence[LogFile]
) -> dict[str, Rows]:
    """Return the live rows of each file of a table at a version, by the path in its ``add``."""
    from pyspark.sql import DataFrame

    log, none = session.delta_log(path), session.scala("scala.None")
    log.update(False, none, none)
    snapshot = log.getSnapshotAt(version, none, none, False)
    adds = session.sequence(session.delta_action({"add": file.action}) for file in files)
    frame = DataFrame(log.createDataFrame(snapshot, adds, False, none), session.spark)
    found: dict[str, list[Row]] = {}
    for file, *values in frame.selectExpr("_metadata.file_name", "*").collect():
        found.setdefault(file, []).append(plain_row(values))
    names = {file.path: unquote(file.path).rpartition("/")[2] for file in files}
    return {path: sort_rows(found.get(name, ())) for path, name in names.items()}


def _schema(commits: Sequence[LogCommit], version: int) -> str:
    """Return the schema of a table at a version."""
    known = [c.metadata for c in commits if c.version <= version and c.metadata is not None]
    return known[-1].schema


def plain_row(values: Iterable[Any]) -> Row:
    """Return a row of Spark with the model's values; other values become text."""
    return tuple(map(_plain, values))


def _plain(value: Any) -> Value:
    if value is None or isinstance(value, int | str | bool | date | float | Decimal):
        return value
    return str(value)
