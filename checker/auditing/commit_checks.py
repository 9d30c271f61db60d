"""Checks of single commits: false claims, and files that are added or removed inconsistently.

The claims of a commit are compared with its actions and the table's metadata. `LiveFiles` follows
the files of the table and finds entries that are in it twice, or removed twice. An entry is a path
with its deletion vector (PROTOCOL.md). To bound memory, only the newest ``REMEMBERED`` removed
entries are kept. If an older one is added again, it is not found; that it was not live is still
known.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Any

from isolitmus.checker.auditing.read_set import count_live_rows, describe_commit
from isolitmus.model.audit import Finding
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.display import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.delta.log import LogCommit, LogMetadata

    _Key = tuple[str, tuple[tuple[str, str], ...]]
    from isolitmus.model.delta.log import LogFile

READ = ("DELETE", "UPDATE", "TRUNCATE")
"""Commands that always read; none of their commits is a blind append."""
SHOWN = 20
"""Maximum number of versions listed in a finding about commits that record nothing."""
WRITERS = 100
"""Maximum number of writers that are counted separately."""


def find_false_claims(commit: LogCommit, metadata: LogMetadata) -> Iterator[Finding]:
    """Yield the claims of a commit that cannot be true, or that its table does not allow."""
    one = (commit.version,)
    if commit.blind:
        for what in _not_blind(commit):
            why = f"{describe_commit(commit)} is marked as a blind append, but {what}"
            yield Finding("blind-flag", one, "certain", why)
    read = commit.read_version
    if read is not None and not -1 <= read < commit.version:
        why = f"{describe_commit(commit)} records read version {read}, which is not before it"
        yield Finding("read-version", one, "certain", why)
    too_weak = _too_weak(commit, metadata)
    if too_weak:
        yield Finding("level-used", one, "certain", f"{describe_commit(commit)} {too_weak}")


def _not_blind(commit: LogCommit) -> Iterator[str]:
    """Yield the reasons why a commit cannot be a blind append."""
    if commit.removes:
        yield f"removes {count_of(len(commit.removes), 'file')}"
    if commit.changes:
        yield f"has {count_of(commit.changes, 'file')} of changes to existing rows"
    if (commit.operation or "").upper() in READ:
        yield "its command reads the rows that it changes"


def _too_weak(commit: LogCommit, metadata: LogMetadata) -> str | None:
    """Return how a commit was checked at a level that the table does not allow; None if it was not.

    TransactionHelper.scala lines 113-146. Databricks has another default than Delta, so if a table
    does not set a level, only commits of Apache Spark are checked.
    """
    stated = LEVEL_KEY in metadata.configuration
    if not stated and not (commit.engine or "").startswith("Apache-Spark/"):
        return None
    if metadata.level == "Serializable" and commit.level == "WriteSerializable":
        return "was checked at WriteSerializable; the table's level is Serializable"
    strict = metadata.level in ("Serializable", "WriteSerializable")
    if strict and commit.level == "SnapshotIsolation" and commit.changes_rows:
        return (
            "changes rows and was checked at SnapshotIsolation; the table's level is"
            f" {metadata.level}"
        )
    return None


def find_level_change(commit: LogCommit, before: LogMetadata | None) -> Iterator[Finding]:
    """Yield a finding if a commit changes the table's level; its first metadata is no change."""
    if commit.metadata is None or before is None:
        return
    old, new = (m.configuration.get(LEVEL_KEY) for m in (before, commit.metadata))
    if old != new:
        was, is_ = (level or "not set (Delta's default is Serializable)" for level in (old, new))
        why = (
            f"{describe_commit(commit)} changes the isolation level of the table from {was} to"
            f" {is_}"
        )
        yield Finding("level-change", (commit.version,), "certain", why)


class SilentCommits:
    """Commits that do not record what they read, by writer."""

    def __init__(self) -> None:
        self._versions: dict[_Key, list[int]] = {}
        self._counts: dict[_Key, int] = {}

    def hear(self, commit: LogCommit) -> None:
        """Count a commit that changes files but omits its read version or its blind-append flag."""
        if not (commit.adds or commit.removes):
            return
        lacking = []
        if commit.read_version is None:
            lacking.append(("which version it read", "which version they read"))
        if commit.blind is None and commit.version > 0:
            lacking.append(("whether it is a blind append", "whether they are blind appends"))
        if not lacking:
            return
        key = commit.engine or "an unnamed writer", tuple(lacking)
        if key not in self._counts and len(self._counts) >= WRITERS:
            key = "other writers", tuple(lacking)
        self._counts[key] = self._counts.get(key, 0) + 1
        versions = self._versions.setdefault(key, [])
        if len(versions) < SHOWN:
            versions.append(commit.version)

    def to_json(self) -> list[Any]:
        """Return the state for `restore`."""
        return [[key, self._counts[key], versions] for key, versions in self._versions.items()]

    def restore(self, said: list[Any]) -> None:
        """Restore the state that `to_json` returned."""
        for (engine, lacking), count, versions in said:
            key = engine, tuple((one, several) for one, several in lacking)
            self._counts[key], self._versions[key] = count, versions

    def __len__(self) -> int:
        return len(self._counts)

    def findings(self, since: int = 0) -> Iterator[Finding]:
        """Yield one finding for each writer after the first ``since``, with its first versions."""
        for key, count in islice(self._counts.items(), since, None):
            engine, lacking = key
            who = "one commit" if count == 1 else f"{count:,} commits"
            do, they = ("does", "it") if count == 1 else ("do", "they")
            texts = " or ".join(several if count > 1 else one for one, several in lacking)
            why = (
                f"{who} by {engine} {do} not record {texts}: the log does not show which concurrent"
                f" changes {they} did not see"
            )
            yield Finding("records-nothing", tuple(self._versions[key]), "certain", why)


REMEMBERED = 100_000
"""Maximum number of removed entries that are kept."""
BRINGS_BACK = ("RESTORE", "CLONE")
"""Operations that may add removed entries again."""
NO_ENTRIES = "DELETION VECTOR TOMBSTONES"
"""Operation whose removes name deletion vector files, not entries of the table (DROP FEATURE)."""


class LiveFiles:
    """Entries of the table after the commits so far."""

    def __init__(self) -> None:
        self._live: dict[str, tuple[str, ...]] = {}
        self._removed: OrderedDict[tuple[str, str], int] = OrderedDict()
        self.forgotten = 0

    def __contains__(self, entry: tuple[str, str]) -> bool:
        return entry[1] in self._live.get(entry[0], ())

    def begin(self, file: LogFile) -> None:
        """Add an entry of the table before the first commit."""
        self._live[file.path] = (*self._live.get(file.path, ()), file.vector)

    def to_json(self) -> dict[str, Any]:
        """Return the state for `restore`."""
        removed = [[*entry, version] for entry, version in self._removed.items()]
        return {"live": self._live, "removed": removed, "forgotten": self.forgotten}

    def restore(self, said: dict[str, Any]) -> None:
        """Restore the state that `to_json` returned."""
        self._live = {path: tuple(vectors) for path, vectors in said["live"].items()}
        self._removed = OrderedDict(
            ((p, vector), version) for p, vector, version in said["removed"]
        )
        self.forgotten = said["forgotten"]

    def apply(self, commit: LogCommit) -> Iterator[Finding]:
        """Apply a commit's removes and adds; yield findings about those that are inconsistent."""
        operation = (commit.operation or "").upper()
        if operation == NO_ENTRIES:
            return
        if commit.adds and not commit.changes_rows:
            yield from self._moved_rows(commit)
        for file in commit.removes:
            if file.entry in self:
                self._drop(file.entry, commit.version)
            else:
                yield self._not_there(commit, file)
        for file in commit.adds:
            before = self._removed.pop(file.entry, None)
            if before not in (None, commit.version) and operation not in BRINGS_BACK:
                yield _back(commit, file, before)
            there = self._live.get(file.path)
            others = there and tuple(v for v in there if v != file.vector)
            self._live[file.path] = (*others, file.vector) if others else (file.vector,)
            if others:
                yield _twice(commit, file)

    def _drop(self, entry: tuple[str, str], version: int) -> None:
        """Move an entry from the live files to the removed ones, of which the newest are kept."""
        path, vector = entry
        there = self._live.pop(path)
        if len(there) > 1:
            self._live[path] = tuple(v for v in there if v != vector)
        self._removed[entry] = version
        if len(self._removed) > REMEMBERED:
            self._removed.popitem(last=False)
            self.forgotten += 1

    def _not_there(self, commit: LogCommit, file: LogFile) -> Finding:
        """Return the finding that a commit removes an entry that is not live."""
        before = self._removed.get(file.entry)
        if before is None:
            why = (
                f"{describe_commit(commit)} removes {_named(file)}, which was not in the table,"
                " unless under another name"
            )
            return Finding("removed-twice", (commit.version,), "possible", why)
        read = commit.read_version
        unseen = "" if read is None or before <= read else f" (it did not see version {before})"
        why = (
            f"{describe_commit(commit)} removes {_named(file)}, which version {before} had already"
            f" removed{unseen}: the change that one of the two made to its rows is lost or applied"
            " twice"
        )
        return Finding("removed-twice", (before, commit.version), "certain", why)

    def _moved_rows(self, commit: LogCommit) -> Iterator[Finding]:
        """Yield a finding if a dataChange: false commit does not add as many rows as it removes."""
        added = [count_live_rows(f) for f in commit.adds if f.entry not in self]
        removed = [count_live_rows(f) for f in commit.removes]
        if None in added or None in removed:
            return
        more = sum(n or 0 for n in added) - sum(n or 0 for n in removed)
        if more:
            what = f"{count_of(abs(more), 'row')} {'more' if more > 0 else 'fewer'} than it removes"
            why = f"{describe_commit(commit)} is marked dataChange: false, but adds {what}"
            yield Finding("no-data-change", (commit.version,), "certain", why)


def _named(file: LogFile) -> str:
    return f"{file.path} with vector {file.vector}" if file.vector else file.path


def _back(commit: LogCommit, file: LogFile, before: int | None) -> Finding:
    why = f"{describe_commit(commit)} adds {_named(file)}, which version {before} had removed"
    return Finding("comes-back", (before or 0, commit.version), "certain", why)


def _twice(commit: LogCommit, file: LogFile) -> Finding:
    """Return the finding that a commit adds a live file with another deletion vector."""
    why = (
        f"{describe_commit(commit)} adds {_named(file)} while the table has the same file with"
        " another deletion vector: its rows are read twice"
    )
    return Finding("two-live-entries", (commit.version,), "certain", why)
