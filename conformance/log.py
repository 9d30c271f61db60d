"""The commits in a Delta table's log, read from its JSON files on a local path.

One file for each version, one action on each line (Delta's protocol, "Delta Log Entries"). Nothing
here starts Spark: a log is what other people left behind, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["Commit", "identity", "latest", "live_files", "read_commits"]

Action = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table: what the commit says of itself, and the files that it adds and removes.

    Actions are dictionaries as in the log. Fields that a writer left out are None, and so are the
    ``metadata`` and the ``protocol`` of a commit that leaves them as they were.
    """

    version: int
    info: Mapping[str, Any] = field(default_factory=dict)
    adds: tuple[Action, ...] = ()
    removes: tuple[Action, ...] = ()
    metadata: Action | None = None
    protocol: Action | None = None

    @property
    def schema(self) -> str | None:
        """The schema (Spark's JSON) of a commit that writes the metadata."""
        return None if self.metadata is None else self.metadata["schemaString"]

    @property
    def read_version(self) -> int | None:
        """The version that the transaction read."""
        return self.info.get("readVersion")

    @property
    def isolation_level(self) -> str | None:
        """The level at which it was checked: not always the table's (TransactionHelper.scala)."""
        return self.info.get("isolationLevel")

    @property
    def blind(self) -> bool | None:
        """Whether it claims to have read nothing and only added files."""
        return self.info.get("isBlindAppend")

    @property
    def operation(self) -> str | None:
        """The command, such as ``WRITE``, ``DELETE`` or ``OPTIMIZE``."""
        return self.info.get("operation")

    @property
    def words(self) -> str:
        """The commit for a person.

        >>> add = {"path": "f", "partitionValues": {"day": "3"}}
        >>> Commit(8, {"operation": "WRITE", "isBlindAppend": True}, (add,)).words
        'version 8 (WRITE: 1 file added in day=3, a blind append)'
        """
        counts = ((len(self.adds), "added"), (len(self.removes), "removed"))
        files = " and ".join(
            f"{count} file{'s' if count > 1 else ''} {what}" for count, what in counts if count
        )
        folders = {
            ", ".join(f"{k}={v}" for k, v in action["partitionValues"].items())
            for action in (*self.adds, *self.removes)
            if action.get("partitionValues")
        }
        where = f" in {'; '.join(sorted(folders))}" if folders else ""
        blind = ", a blind append" if self.blind else ""
        said = f"{files}{where}{blind}" if files else "no file"
        return f"version {self.version} ({self.operation}: {said})"


def latest(table: Path) -> int:
    """The newest version of the table at this path; −1 if it has none."""
    return max((int(p.stem) for p in _files(table)), default=-1)


def read_commits(table: Path, since: int = -1) -> tuple[Commit, ...]:
    """The commits with versions above ``since``, oldest first."""
    files = sorted((int(p.stem), p) for p in _files(table))
    return tuple(_read(version, path) for version, path in files if version > since)


def live_files(commits: Iterable[Commit]) -> tuple[Action, ...]:
    """The ``add`` actions that are in force after the commits, which begin with version 0.

    A file is its path together with its deletion vector: a commit that deletes rows by a vector
    removes the one and adds the other.
    """
    files: dict[tuple[str, str], Action] = {}
    for commit in commits:
        for action in commit.removes:
            files.pop(identity(action), None)
        for action in commit.adds:
            files[identity(action)] = action
    return tuple(files.values())


def _files(table: Path) -> list[Path]:
    return [p for p in (table / "_delta_log").glob("*.json") if p.stem.isdigit()]


def _read(version: int, path: Path) -> Commit:
    actions = [json.loads(line) for line in path.read_text().splitlines() if line]
    return Commit(
        version,
        next((a["commitInfo"] for a in actions if "commitInfo" in a), {}),
        tuple(a["add"] for a in actions if "add" in a),
        tuple(a["remove"] for a in actions if "remove" in a),
        next((a["metaData"] for a in actions if "metaData" in a), None),
        next((a["protocol"] for a in actions if "protocol" in a), None),
    )


def identity(action: Action) -> tuple[str, str]:
    """What makes an entry of the table: path and deletion vector (PROTOCOL.md)."""
    vector = action.get("deletionVector") or {}
    parts = (vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset"))
    return action["path"], "|".join(map(str, parts))
