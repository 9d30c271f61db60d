"""Log of a Delta table on a local path, read without Spark, one commit at a time.

The folder is listed once, at the beginning: later versions of a table that is being written are
counted but not read. If old commits were deleted, a checkpoint provides the files of the table
(``specs.logs.actions``), and the log is read from there.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.model.errors import LogError
from isolitmus.specs.disk.input_files import (
    is_delta_table,
    is_folder,
    is_there,
    open_file,
    read_if_there,
    read_json,
    read_lines,
    read_small,
)
from isolitmus.specs.disk.repository import check_inside, end_of_reading
from isolitmus.specs.logs.actions import (
    NAME,
    Checkpoint,
    NotAnAction,
    build_commit,
    find_checkpoints,
    parse_action,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isolitmus.model.delta.log import LogCommit, LogFile, LogMetadata, LogProtocol

REMOTE = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+:/")
"""Address of an object store, as in a path."""
COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """Commits of a table as of the opening of the log."""

    table: Path
    """Folder of the table."""
    oldest: int
    """First version whose commit exists."""
    first: int
    """First version from which on the table's files are known commit by commit."""
    last: int
    """Newest version."""
    base: Checkpoint | None = None
    """Checkpoint of version ``first − 1`` with the files until then; None if ``first`` is 0."""

    def commits(self, since: int | None = None) -> Iterator[LogCommit]:
        """Yield the commits from ``first`` or `since` on, in order."""
        return map(self.commit, range(self.first if since is None else since, self.last + 1))

    def commit(self, version: int) -> LogCommit:
        """Return one commit, from ``oldest`` to ``last``; LogError if it cannot be read."""
        return _commit(self.table, version, newest=version == self.last)

    def digest(self, version: int) -> str:
        """Return a digest of a commit's file; LogError if it cannot be read."""
        import hashlib

        with open_file(_place(self.table, version), LogError) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def begin(self) -> Iterator[LogFile | LogMetadata | LogProtocol]:
        """Yield the state of the table before ``first``: nothing, or the contents of the
        checkpoint.

        The checkpoint is compared with the commit of its version if that still exists.
        """
        if self.base is None:
            return
        adds: set[tuple[str, str]] = set()
        removes: set[tuple[str, str]] = set()
        if self.base.version >= self.oldest:
            commit = self.commit(self.base.version)
            adds = {file.entry for file in commit.adds}
            removes = {file.entry for file in commit.removes} - adds
        for part in self.base.state():
            entry = getattr(part, "entry", None)
            if entry in removes:
                self._another(f"has {entry[0]}, which that version removes")
            adds.discard(entry)
            yield part
        if adds:
            self._another(f"lacks {min(adds)[0]}, which that version adds")

    def newer(self) -> int:
        """Return the number of versions committed since the log was opened."""
        versions, _ = _list(self.table)
        return max(versions, default=self.last) - self.last

    def _another(self, why: str) -> None:
        """Raise LogError because the checkpoint contradicts the commit of its version."""
        assert self.base is not None
        raise LogError(
            f"{self.base.files[0]}: not a checkpoint of version {self.base.version}: it {why}"
        )


def open_log(table: Path) -> DeltaLog:
    """Return the log of the table at a path; LogError if there is none, or if it has a gap."""
    if REMOTE.match(str(table)):
        raise LogError(
            f"{table}: tables are read from folders of this machine; only its folder _delta_log is"
            " needed, without the data: copy that"
        )
    if not is_folder(table):
        raise LogError(f"{table}: there is no such folder; expected the folder of a Delta table")
    if not is_delta_table(table):
        raise LogError(f"{table}: not a Delta table: it has no folder _delta_log")
    versions, names = _list(table)
    if not versions:
        raise LogError(
            f"{table}: not a Delta table: _delta_log has no commit, such as {0:020}.json"
        )
    oldest, last = versions[0], versions[-1]
    whole = find_checkpoints(table / "_delta_log", names)
    _last_checkpoint(table, whole, last)
    base = None
    if oldest > 0:
        base = next((c for c in whole if oldest - 1 <= c.version <= last), None)
        if base is None:
            raise LogError(
                f"{table}: the log begins with version {oldest}, and no whole checkpoint of version"
                f" {oldest - 1} or later says what the table was before"
            )
    for before, version in pairwise(versions):
        if version != before + 1:
            raise LogError(
                f"{table}: the log has a gap: version {before + 1} is missing"
                f" (_delta_log/{before + 1:020}.json), version {version} is there"
            )
    return DeltaLog(table, oldest, 0 if base is None else base.version + 1, last, base)


def latest_version(table: Path) -> int:
    """Return the newest version of the table at a path; −1 if there is none."""
    return max(_list(table)[0], default=-1) if is_delta_table(table) else -1


def has_version(table: Path, version: int) -> bool:
    """Return whether the commit of a version exists."""
    return is_there(_place(table, version))


def commits_since(table: Path, version: int = -1) -> tuple[LogCommit, ...]:
    """Return the existing commits after a version, oldest first; LogError if one cannot be read."""
    later = [v for v in _list(table)[0] if v > version] if is_delta_table(table) else []
    return tuple(_commit(table, v, newest=v == later[-1]) for v in later)


def _commit(table: Path, version: int, *, newest: bool) -> LogCommit:
    from isolitmus.specs.logs.typed_commits import decode_commit  # executors have no msgspec

    path = _place(table, version)
    try:
        data = read_small(path, LogError)
    except LogError:  # reported below
        data = None
    found = None if data is None else decode_commit(version, data)
    return build_commit(version, _actions(path, newest=newest)) if found is None else found


def _place(table: Path, version: int) -> str:
    return f"{table}/_delta_log/{version:020}.json"


def _list(table: Path) -> tuple[list[int], list[str]]:
    """Return the versions with a commit, sorted, and the names of checkpoint files."""
    versions: list[int] = []
    names: list[str] = []
    try:
        with os.scandir(table / "_delta_log") as entries:
            for entry in entries:
                if entry.is_symlink():
                    check_inside(table / "_delta_log" / entry.name, LogError, end_of_reading(table))
                if COMMIT.fullmatch(entry.name):
                    versions.append(int(entry.name[:20]))
                elif NAME.fullmatch(entry.name):
                    names.append(entry.name)
    except OSError as problem:
        raise LogError(f"cannot read {table / '_delta_log'}: {problem.strerror}") from None
    return sorted(versions), names


def _last_checkpoint(table: Path, whole: list[Checkpoint], last: int) -> None:
    """Check that the checkpoint named in ``_last_checkpoint`` exists.

    A file that does not parse is ignored: it is a hint, which Delta does not need either.
    """
    path = table / "_delta_log" / "_last_checkpoint"
    hint = read_if_there(path, LogError)
    try:
        said = read_json(hint or "{}")["version"]
    except (ValueError, TypeError, KeyError):
        return
    there = [checkpoint.version for checkpoint in whole]
    if said not in there:
        known = f"the newest that is there is of version {there[-1]}" if there else "there is none"
        raise LogError(f"{path}: it says that the last checkpoint is of version {said}; {known}")
    if said > last:
        raise LogError(f"{path}: it says version {said}; the newest commit is version {last}")


def _actions(path: str, *, newest: bool) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield the place, name and fields of each action; LogError says if the file was cleaned up."""
    try:
        yield from _read_actions(path, newest=newest)
    except LogError:
        if os.path.lexists(path):
            raise
        raise LogError(
            f"{path}: it was there a moment ago (the log is being cleaned up); ask again"
        ) from None


def _read_actions(path: str, *, newest: bool) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield the place, name and fields of each action of a commit; refuse an empty commit."""
    empty = True
    for number, line in enumerate(read_lines(path, LogError), 1):
        if not line.strip():
            continue
        empty = False
        where = f"{path}:{number}"
        try:
            yield where, *parse_action(line, where)
        except NotAnAction as error:
            if newest:
                raise LogError(
                    f"{error}; it is the newest commit: perhaps it is being written"
                ) from None
            raise
    if empty:
        raise LogError(f"{path}: this commit is empty; its writer may have died")
