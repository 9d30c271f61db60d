"""What a commit had not seen: the window between the version that it read and its own.

- **reorder**: A passed by W: by what it read (Adya's rw) A stands before W, though the log has it after.
  Certain if the dependency is.
- **missed-conflict**: the same, where Delta's check at the level that A logs would have refused A.
- **bridge** (every violation of write-serializable that Delta's check lets through has one, see
  specs/protocols/delta-write-serializable-repaired.cat): A passed by the blind append I, and X, no blind append, read version(I) or later and was
  committed before A. If A read what I added, and X read it too, and X read what A changed, these three
  dependencies are a cycle. Certain only if all three are. That is the conflict form of the level: whether
  some order of the writers gives the same rows all the same is not in the log.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolitmus.checker.auditing.dependencies import AuditedCommit, changes, missed, passes, saw
from isolitmus.checker.auditing.read_set import moves_only, said
from isolitmus.model.audit import Finding
from isolitmus.specs.logs.actions import fields_of, metadata_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.model.certainty import Certainty
    from isolitmus.model.delta.log import LogCommit, LogMetadata

__all__ = ["LONGEST", "Missed", "Recent", "bridges", "reorders"]

LONGEST = 1_000
"""Of a longer window the newest commits are looked at."""
COMMITS = 1_000
FILES = 20_000
"""So many commits with so many file actions are kept; older ones are read again when asked for."""
NEWEST = 100
"""Of those that a commit overlapped, so many are told of."""
SHOWN = 20
"""So many of the versions that one commit missed are listed."""


class Recent:
    """The newest commits with the metadata they had, and the older ones by reading them again."""

    def __init__(self, read: Callable[[int], LogCommit], oldest: int) -> None:
        self._read = read
        self._kept: deque[tuple[LogCommit, LogMetadata]] = deque()
        self._files = 0
        self.oldest = oldest
        self.cut = 0
        self.before = 0

    def add(self, commit: LogCommit, metadata: LogMetadata) -> None:
        self._kept.append((commit, metadata))
        self._files += len(commit.adds) + len(commit.removes)
        while len(self._kept) > COMMITS or (self._files > FILES and len(self._kept) > 1):
            gone, _ = self._kept.popleft()
            self._files -= len(gone.adds) + len(gone.removes)

    def to_json(self) -> dict[str, Any]:
        """Which commits are kept, for ``restore``: the first of them, and each metadata with the version since when."""
        since: list[tuple[int, LogMetadata]] = []
        for commit, metadata in self._kept:
            if not since or since[-1][1] is not metadata:
                since.append((commit.version, metadata))
        fields = [[version, fields_of(metadata)] for version, metadata in since]
        return {"metadata": fields, "cut": self.cut, "before": self.before}

    def restore(self, said: dict[str, Any], last: int) -> LogMetadata:
        """Read the commits that were kept again, up to ``last``, as far as they are there; the metadata as it was last."""
        self.cut, self.before = said["cut"], said["before"]
        since = [(version, metadata_of(fields, "evidence")) for version, fields in said["metadata"]]
        ends = [*(version for version, _ in since[1:]), last + 1]
        for (first, metadata), after in zip(since, ends, strict=True):
            for version in range(max(first, self.oldest), after):
                self.add(self._read(version), metadata)
        return since[-1][1]

    def between(self, read: int, version: int) -> Iterator[tuple[LogCommit, LogMetadata | None]]:
        """The commits after ``read`` and before ``version``, oldest first; those of which the metadata
        is not kept have None.
        """
        first = read + 1
        if version - first > LONGEST:
            self.cut += 1
            first = version - LONGEST
        if first < self.oldest:
            self.before += 1
            first = self.oldest
        kept = self._kept[0][0].version if self._kept else version
        for earlier in range(first, min(kept, version)):
            yield self._read(earlier), None
        start = max(first - kept, 0)
        for k in range(start, len(self._kept)):
            yield self._kept[k]

    def newest(self, read: int) -> Iterator[tuple[LogCommit, LogMetadata]]:
        """The commits after ``read`` that are kept, the newest of them first, at most ``NEWEST``."""
        for k in range(1, min(len(self._kept), NEWEST) + 1):
            if self._kept[-k][0].version <= read:
                return
            yield self._kept[-k]


@dataclass(frozen=True, slots=True)
class Missed:
    """One commit that another passed by."""

    writer: LogCommit
    certainty: Certainty
    may: bool | None


def all_missed(
    reader: AuditedCommit, window: Sequence[tuple[LogCommit, LogMetadata | None]]
) -> list[Missed]:
    """What a commit missed of its window."""
    found = []
    for writer, _ in window:
        certainty = missed(reader, writer)
        if certainty is not None:
            found.append(Missed(writer, certainty, passes(reader.commit, writer)))
    return found


def reorders(reader: AuditedCommit, passed: Sequence[Missed]) -> Iterator[Finding]:
    """At most one finding of each kind and certainty for one commit, with what it missed."""
    for kind, group in (
        ("reorder", [m for m in passed if m.may is not False]),
        ("missed-conflict", [m for m in passed if m.may is False]),
    ):
        for certainty in ("certain", "possible"):
            some = [m.writer for m in group if m.certainty == certainty]
            if some:
                versions = (*(w.version for w in some[:SHOWN]), reader.version)
                why = _why(reader, some, kind, certainty == "certain")
                yield Finding(
                    kind, versions, "certain" if certainty == "certain" else "possible", why
                )


def _why(reader: AuditedCommit, some: Sequence[LogCommit], kind: str, certain: bool) -> str:
    first = said(some[0])
    first += ", a blind append" if some[0].blind else ""
    first += f" (and by {len(some) - 1:,} more)" if len(some) > 1 else ""
    commit = reader.commit
    start = f"{said(commit)} read version {commit.read_version} and"
    where = _where(reader)
    if kind == "missed-conflict":
        return (
            f"{start} missed {first}, which changed rows that it reads{where}: Delta's check"
            f" at {commit.level} refuses that"
        )
    before = f"version {reader.version} comes before version {some[0].version}, though the log has it after"
    if certain:
        return (
            f"{start} passed by {first}, which changed rows that it reads{where}: by what it read,"
            f" {before}"
        )
    if reader.reads.kind == "unknown":
        return (
            f"{start} passed by {first}; what it read the log does not say: if that met those rows,"
            f" {before}"
        )
    return f"{start} passed by {first}, which may have changed rows that it reads{where}: if so, {before}"


def _where(reader: AuditedCommit) -> str:
    if reader.reads.everything:
        return " (all rows)"
    if reader.reads.kind == "partitions":
        return " (the partitions that it overwrites)"
    text = " AND ".join(c.shown for c in reader.reads.conditions)
    return f" ({text[:97]}…)" if len(text) > 100 else f" ({text})"


def bridges(
    reader: AuditedCommit,
    passed: Sequence[Missed],
    window: Sequence[tuple[LogCommit, LogMetadata | None]],
) -> Iterator[Finding]:
    """At most one finding for one commit: the surest bridge, or the first."""
    best: Finding | None = None
    for one in passed:
        if one.may is False or one.writer.blind is not True:
            continue
        for commit, metadata in window:
            found = _bridge(reader, one, commit, metadata)
            if found is not None and (best is None or found.certainty == "certain"):
                best = found
            if best is not None and best.certainty == "certain":
                yield best
                return
    if best is not None:
        yield best


def _bridge(
    reader: AuditedCommit, one: Missed, commit: LogCommit, metadata: LogMetadata | None
) -> Finding | None:
    append = one.writer
    if commit.version <= append.version or commit.blind is True or moves_only(commit):
        return None
    read = commit.read_version
    if read is not None and read < append.version:
        return None
    between = AuditedCommit.of(commit, metadata or reader.metadata)
    read_it = saw(between, append) if metadata is not None else "possible"
    if read_it is None:
        return None
    back = changes(between, reader.commit)
    sure = read is not None and "possible" not in (one.certainty, read_it) and back == "certain"
    last, middle = said(reader.commit), said(commit)
    versions = append.version, commit.version, reader.version
    if sure and metadata is not None:
        why = (
            f"{last} passed by {said(append)}, a blind append, which {middle} read, and {middle} read rows"
            f" that {last} changed: {last} would have to come before itself, which write-serializable"
            " forbids (whether another order gives the same rows, no log shows)"
        )
        return Finding("bridge", versions, "certain", why)
    why = (
        f"{last} passed by {said(append)}, a blind append, which {middle} may have read before {last} was"
        f" committed: if {middle} also read what {last} changed, {last} would have to come before itself,"
        " which write-serializable forbids"
    )
    return Finding("bridge", versions, "possible", why)
