"""The files of a table as its commits come and go, and what cannot be: entries twice, removed twice.

An entry is a path with its deletion vector (PROTOCOL.md). What was removed is remembered for a while
only, so that memory is bounded: the newest ``REMEMBERED`` entries. A file whose entry came back later
than that is not found; that it was not live is still known.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from isolitmus.checker.auditing.conditions import live
from isolitmus.checker.auditing.read_set import said
from isolitmus.model.audit import Finding
from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.delta.log import LogCommit, LogFile

__all__ = ["Files"]

REMEMBERED = 100_000
BRINGS_BACK = ("RESTORE", "CLONE")
"""Operations that put back what was removed: that is what they are for."""
NO_ENTRIES = "DELETION VECTOR TOMBSTONES"
"""Its removes name files of vectors, which are no entries of the table (DROP FEATURE)."""


class Files:
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
                f"{said(commit)} removes {_named(file)}, which was not in the table, unless under"
                " another name"
            )
            return Finding("removed-twice", (commit.version,), "possible", why)
        read = commit.read_version
        unseen = "" if read is None or before <= read else ", unseen by it,"
        why = (
            f"{said(commit)} removes {_named(file)}, which version {before}{unseen} had removed already:"
            " what one of the two did to its rows is lost or done twice"
        )
        return Finding("removed-twice", (before, commit.version), "certain", why)

    def _moved_rows(self, commit: LogCommit) -> Iterator[Finding]:
        """Files that say that no data changes hold as many rows as they replace."""
        added = [live(f) for f in commit.adds if f.entry not in self]
        removed = [live(f) for f in commit.removes]
        if None in added or None in removed:
            return
        more = sum(n or 0 for n in added) - sum(n or 0 for n in removed)
        if more:
            what = f"{many(abs(more), 'row')} {'more' if more > 0 else 'fewer'} than it removes"
            why = f"{said(commit)} says that it changes no data, but adds {what}"
            yield Finding("no-data-change", (commit.version,), "certain", why)


def _named(file: LogFile) -> str:
    return f"{file.path} with vector {file.vector}" if file.vector else file.path


def _back(commit: LogCommit, file: LogFile, before: int | None) -> Finding:
    why = f"{said(commit)} adds {_named(file)}, which version {before} had removed"
    return Finding("comes-back", (before or 0, commit.version), "certain", why)


def _twice(commit: LogCommit, file: LogFile) -> Finding:
    why = (
        f"{said(commit)} adds {_named(file)} while the table has the same file with another vector:"
        " its rows are read twice"
    )
    return Finding("two-live-entries", (commit.version,), "certain", why)
