"""What one commit says of itself, held against its actions and the table's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.checker.auditing.read_set import said
from isolitmus.model.audit import Finding
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.delta.log import LogCommit, LogMetadata

    _Key = tuple[str, tuple[tuple[str, str], ...]]

__all__ = ["Silence", "false_claims", "level_change"]

READ = ("DELETE", "UPDATE", "TRUNCATE")
"""Commands that read by what they are: no commit of theirs is a blind append."""
SHOWN = 20
"""So many versions of those that record nothing are listed."""
WRITERS = 100
"""So many writers are told apart."""


def false_claims(commit: LogCommit, metadata: LogMetadata) -> Iterator[Finding]:
    """The claims of a commit that cannot be true, or that its table does not allow."""
    one = (commit.version,)
    if commit.blind:
        for what in _not_blind(commit):
            why = f"{said(commit)} calls itself a blind append, but {what}"
            yield Finding("blind-flag", one, "certain", why)
    read = commit.read_version
    if read is not None and not -1 <= read < commit.version:
        why = f"{said(commit)} says that it read version {read}, which is not before it"
        yield Finding("read-version", one, "certain", why)
    too_weak = _too_weak(commit, metadata)
    if too_weak:
        yield Finding("level-used", one, "certain", f"{said(commit)} {too_weak}")


def _not_blind(commit: LogCommit) -> Iterator[str]:
    if commit.removes:
        yield f"removes {many(len(commit.removes), 'file')}"
    if commit.changes:
        yield f"has {many(commit.changes, 'file')} of changes to rows that were there"
    if (commit.operation or "").upper() in READ:
        yield "its command reads what it changes"


def _too_weak(commit: LogCommit, metadata: LogMetadata) -> str | None:
    """TransactionHelper.scala lines 113-146: which level a commit may be checked at.

    Databricks' default is not Delta's, so of a table that says nothing only Apache Spark's commits are
    judged.
    """
    stated = LEVEL_KEY in metadata.configuration
    if not stated and not (commit.engine or "").startswith("Apache-Spark/"):
        return None
    if metadata.level == "Serializable" and commit.level == "WriteSerializable":
        return "was checked at WriteSerializable; the table's level is Serializable"
    strict = metadata.level in ("Serializable", "WriteSerializable")
    if strict and commit.level == "SnapshotIsolation" and commit.changes_rows:
        return f"changes rows and was checked at SnapshotIsolation; the table's level is {metadata.level}"
    return None


def level_change(commit: LogCommit, before: LogMetadata | None) -> Iterator[Finding]:
    """The finding that a commit changes the table's level; the first metadata change nothing."""
    if commit.metadata is None or before is None:
        return
    old, new = (m.configuration.get(LEVEL_KEY) for m in (before, commit.metadata))
    if old != new:
        was, is_ = (level or "not said (Delta's default is Serializable)" for level in (old, new))
        why = f"{said(commit)} changes the table's isolation level: it was {was}, now it is {is_}"
        yield Finding("level-change", (commit.version,), "certain", why)


class Silence:
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
        key = commit.engine or "a writer without a name", tuple(lacking)
        if key not in self._counts and len(self._counts) >= WRITERS:
            key = "further writers", tuple(lacking)
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
            who = "one commit does" if count == 1 else f"{count:,} commits do"
            texts = " nor ".join(several if count > 1 else one for one, several in lacking)
            why = (
                f"{who} not say {texts} (by {engine}): what may have been missed, the log does not"
                " show"
            )
            yield Finding("records-nothing", tuple(self._versions[key]), "certain", why)
