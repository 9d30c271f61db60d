"""Checks of single commits: claims that cannot be true, files that cannot be.

What one commit says of itself, held against its actions and the table's metadata.

The files of a table as its commits come and go, and what cannot be: entries twice, removed twice.

An entry is a path with its deletion vector (PROTOCOL.md). What was removed is remembered for a
while only, so that memory is bounded: the newest ``REMEMBERED`` entries. A file whose entry came
back later than that is not found; that it was not live is still known.
"""

from __future__ import annotations

from collections import OrderedDict
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

__all__ = ["LiveFiles", "SilentCommits", "find_false_claims", "find_level_change"]

READ = ("DELETE", "UPDATE", "TRUNCATE")
"""Commands that read by what they are: no commit of theirs is a blind append."""
SHOWN = 20
"""So many versions of those that record nothing are listed."""
WRITERS = 100
"""So many writers are told apart."""


def find_false_claims(commit: LogCommit, metadata: LogMetadata) -> Iterator[Finding]:
    """The claims of a commit that cannot be true, or that its table does not allow."""
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
    if commit.removes:
        yield f"removes {count_of(len(commit.removes), 'file')}"
    if commit.changes:
        yield f"has {count_of(commit.changes, 'file')} of changes to existing rows"
    if (commit.operation or "").upper() in READ:
        yield "its command reads the rows that it changes"


def _too_weak(commit: LogCommit, metadata: LogMetadata) -> str | None:
    """TransactionHelper.scala lines 113-146: which level a commit may be checked at.

    Databricks' default is not Delta's, so of a table that says nothing only Apache Spark's commits
    are judged.
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
    """The finding that a commit changes the table's level; the first metadata change nothing."""
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
    """The commits that do not say what they read, by their writers."""

    def __init__(self) -> None:
        self._versions: dict[_Key, list[int]] = {}
        self._counts: dict[_Key, int] = {}

    def hear(self, commit: LogCommit) -> None:
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
        """What was heard, for ``restore``."""
        return [[key, self._counts[key], versions] for key, versions in self._versions.items()]

    def restore(self, said: list[Any]) -> None:
        """Take up what was heard before."""
        for (engine, lacking), count, versions in said:
            key = engine, tuple((one, several) for one, several in lacking)
            self._counts[key], self._versions[key] = count, versions

    def findings(self) -> Iterator[Finding]:
        """One finding for each writer; its versions are the first of them."""
        for key, count in self._counts.items():
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
BRINGS_BACK = ("RESTORE", "CLONE")
"""Operations that put back what was removed: that is what they are for."""
NO_ENTRIES = "DELETION VECTOR TOMBSTONES"
"""Its removes name files of vectors, which are no entries of the table (DROP FEATURE)."""


class LiveFiles:
    """The live entries after the commits so far; ``rows`` of those that say it."""

    def __init__(self) -> None:
        self._live: dict[str, tuple[str, ...]] = {}
        self._removed: OrderedDict[tuple[str, str], int] = OrderedDict()
        self.forgotten = 0

    def __contains__(self, entry: tuple[str, str]) -> bool:
        return entry[1] in self._live.get(entry[0], ())

    def begin(self, file: LogFile) -> None:
        """An entry of the table as it was before the first commit."""
        self._live[file.path] = (*self._live.get(file.path, ()), file.vector)

    def to_json(self) -> dict[str, Any]:
        """The entries, for ``restore``."""
        removed = [[*entry, version] for entry, version in self._removed.items()]
        return {"live": self._live, "removed": removed, "forgotten": self.forgotten}

    def restore(self, said: dict[str, Any]) -> None:
        """Take up the entries as they were."""
        self._live = {path: tuple(vectors) for path, vectors in said["live"].items()}
        self._removed = OrderedDict(
            ((p, vector), version) for p, vector, version in said["removed"]
        )
        self.forgotten = said["forgotten"]

    def apply(self, commit: LogCommit) -> Iterator[Finding]:
        """Take a commit's removes and adds; what of them cannot be, or should not."""
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
        path, vector = entry
        there = self._live.pop(path)
        if len(there) > 1:
            self._live[path] = tuple(v for v in there if v != vector)
        self._removed[entry] = version
        if len(self._removed) > REMEMBERED:
            self._removed.popitem(last=False)
            self.forgotten += 1

    def _not_there(self, commit: LogCommit, file: LogFile) -> Finding:
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
        """Files that say that no data changes hold as many rows as they replace."""
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
    why = (
        f"{describe_commit(commit)} adds {_named(file)} while the table has the same file with"
        " another deletion vector: its rows are read twice"
    )
    return Finding("two-live-entries", (commit.version,), "certain", why)
