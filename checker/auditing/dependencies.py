"""Dependencies between commits of a log, and the concurrent commits that each commit did not see.

Dependencies are Adya's, as far as a log shows them: certain, possible, or none. The rules, each
with its premise (besides those of ``checker.auditing.read_set``):

- **A write changes the matching rows of a condition** *certainly* if it adds a file with at least
  one row, all of whose rows match, and removes no file that might hold a matching row (the matching
  rows are new), or the other way round. The premise is that statistics and partition values are
  true. It changes them *possibly* if any file that it adds or removes may hold a matching row.
  Files marked dataChange: false are ignored: they move rows.
- **rw, A did not see W**: A does not see W, and W changes the read set of A. Also possible if the
  read set of A is unknown.
- **wr, X saw I**: the version that X read contains I, and I changes the read set of X. Also certain
  if X is a DELETE, UPDATE or MERGE (they remove only files with rows that they change) and removes
  a file that I added when I removed none: those rows are I's.
- **ww, J wrote after I**: J saw I, and both remove or replace rows: possible only.

A commit whose writer makes Delta's conflict check has passed it: it saw every concurrent change to
the reads that Delta tracks, unless its level permits otherwise. This excludes possible
dependencies, never certain ones.

The commits of a log become two dependency graphs, one of certain and one of possible dependencies;
the possible one contains the certain one. Nodes are commits. ``so`` is empty, because a log does
not record sessions. Aborted transactions and transactions that only read are absent.

A commit did not see the window between the version that it read and its own. Findings about it:

- **reorder**: A did not see W: by its reads (Adya's rw) A precedes W, but the log has it after.
  Certain if the dependency is certain.
- **missed-conflict**: the same, but Delta's conflict check at the level that A records would have
  aborted A.
- **bridge** (every violation of write-serializable that Delta's check admits has one, see
  specs/protocols/delta-write-serializable-repaired.cat): A did not see the blind append I. X, not a
  blind append, read version(I) or later and committed before A. If A read what I added, X read it
  too, and X read what A changed, these three dependencies form a cycle. Certain only if all three
  are. This is conflict serializability: the log does not show whether some order of the writers
  gives the same rows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolitmus.checker.auditing.read_set import (
    count_live_rows,
    describe_commit,
    is_checked,
    match_file,
    only_moves_data,
    partition_conditions,
    read_set_of,
)
from isolitmus.model.audit import Finding
from isolitmus.model.frame import FrameBuilder
from isolitmus.model.vocabulary import relations_of, sets_of
from isolitmus.specs.logs.actions import metadata_fields, read_metadata_action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from isolitmus.checker.auditing.read_set import CommitReads, FileMatch
    from isolitmus.model.audit import Certainty
    from isolitmus.model.delta.log import LogCommit, LogFile, LogMetadata
    from isolitmus.model.frame import Frame


@dataclass(frozen=True, slots=True)
class AuditedCommit:
    """Commit with its read set; ``metadata`` is the table's at that commit."""

    commit: LogCommit
    metadata: LogMetadata
    reads: CommitReads

    @classmethod
    def of(cls, commit: LogCommit, metadata: LogMetadata) -> AuditedCommit:
        return cls(commit, metadata, read_set_of(commit, metadata))

    @property
    def version(self) -> int:
        return self.commit.version


def changes(reader: AuditedCommit, writer: LogCommit) -> Certainty | None:
    """Return whether a writer changes the read set of another commit; None if it does not."""
    if not writer.changes_rows:
        return None
    match reader.reads.kind:
        case "nothing":
            return None
        case "unknown":
            return "possible"
    adds = [(file, _matches(reader, file)) for file in writer.adds if file.data_change]
    removes = [(file, _matches(reader, file)) for file in writer.removes if file.data_change]
    if not (_any(adds) or _any(removes)):
        return None
    if (_surely(adds) and not _any(removes)) or (_surely(removes) and not _any(adds)):
        return "certain"
    return "possible"


def missed_write(reader: AuditedCommit, writer: LogCommit) -> Certainty | None:
    """Return whether an earlier, unseen commit changed the read set of a commit."""
    found = changes(reader, writer)
    if found == "possible" and is_allowed_to_miss(reader.commit, writer) is False:
        return None
    return found


def is_allowed_to_miss(reader: LogCommit, writer: LogCommit) -> bool | None:
    """Return whether a commit's level lets it commit without seeing files that a writer added.

    This holds whatever the commit read. None if the conflict check of the commit's writer is
    unknown. Source: ConflictChecker.scala lines 1134-1161.
    """
    if not is_checked(reader):
        return None
    match reader.level:
        case "SnapshotIsolation":
            return True
        case "WriteSerializable":
            return writer.blind is True and reader.metadata is None
        case _:
            return False


def read_from(reader: AuditedCommit, writer: LogCommit) -> Certainty | None:
    """Return whether a commit read what an earlier commit, which it saw, wrote."""
    added = {file.path for file in writer.adds if file.data_change}
    rewrites = (reader.commit.operation or "").upper() in ("DELETE", "UPDATE", "MERGE")
    took = added.intersection(f.path for f in reader.commit.removes if f.data_change)
    if took and rewrites and not writer.removes:
        return "certain"
    found = changes(reader, writer)
    return "possible" if took and found is None else found


def wrote_next_version(later: LogCommit, earlier: LogCommit) -> bool:
    """Return whether a commit may have overwritten a row of an earlier commit, which it saw."""
    return earlier.changes_rows and any(file.data_change for file in later.removes)


def _matches(reader: AuditedCommit, file: LogFile) -> FileMatch:
    """Return whether all, perhaps some, or none of a file's rows are in a commit's read set."""
    if reader.reads.kind == "partitions":
        if file.partition is None:
            return "perhaps"
        return "all" if tuple(sorted(file.partition.items())) in reader.reads.partitions else "none"
    found = [match_file(one, file, reader.metadata) for one in reader.reads.conditions]
    if "none" in found:
        return "none"
    return "all" if all(one == "all" for one in found) else "perhaps"


def adds_meet_read_set(reader: AuditedCommit, files: Iterable[LogFile]) -> Certainty | None:
    """Return whether added files conflict with a commit's read set, as Delta compares them.

    Delta compares partitions, whatever rows they contain and whether or not the files change data
    (ConflictChecker.scala lines 1000-1102).
    """
    found = [_meets(reader, file) for file in files]
    return "certain" if "all" in found else "possible" if "perhaps" in found else None


def removes_meet_read_set(reader: AuditedCommit, files: Iterable[LogFile]) -> Certainty | None:
    """Return whether removed files may be among those that a commit reads."""
    found = [_matches(reader, file) for file in files]
    sure = "all" in found and reader.reads.kind != "unknown"
    return "certain" if sure else "possible" if {"all", "perhaps"} & {*found} else None


def _meets(reader: AuditedCommit, file: LogFile) -> FileMatch:
    """Return whether an added file conflicts with a read set by its partition, as in Delta."""
    if not reader.metadata.partitioned_by:
        return "all"
    if reader.reads.kind != "rows":
        return "perhaps" if reader.reads.kind == "unknown" else _matches(reader, file)
    found: list[FileMatch] = []
    for one in reader.reads.conditions:
        parts = partition_conditions(one, reader.metadata)
        found += (
            ["perhaps"] if parts is None else [match_file(p, file, reader.metadata) for p in parts]
        )
    return "none" if "none" in found else "perhaps" if "perhaps" in found else "all"


def _any(files: Iterable[tuple[LogFile, FileMatch]]) -> bool:
    return any(found != "none" for _, found in files)


def _surely(files: Iterable[tuple[LogFile, FileMatch]]) -> bool:
    return any(found == "all" and (count_live_rows(file) or 0) > 0 for file, found in files)


KINDS = (*relations_of("histories"), "log")


def dependency_frames(commits: Sequence[AuditedCommit]) -> tuple[Frame, Frame]:
    """Return the frame of certain and the frame of possible dependencies of consecutive commits."""
    names = [_name(seen) for seen in commits]
    certain, possible = (FrameBuilder(names, KINDS, sets_of("histories")) for _ in range(2))
    for builder in (certain, possible):
        for i in range(len(commits)):
            builder.put("Writer", i)
    for i, earlier in enumerate(commits):
        for j in range(i + 1, len(commits)):
            later = commits[j]
            for builder in (certain, possible):
                builder.add("log", i, j, "earlier")
            for relation, a, b, certainty, kind, nouns in _pairs(earlier, later):
                source, target = (i, j) if (a, b) == (earlier, later) else (j, i)
                sure = certainty == "certain"
                for builder in (certain, possible) if sure else (possible,):
                    builder.add(relation, source, target, kind, **nouns, certain=sure)
    return certain.build(), possible.build()


def _name(seen: AuditedCommit) -> str:
    return f"version {seen.version}"


def _pairs(
    earlier: AuditedCommit, later: AuditedCommit
) -> Iterator[tuple[str, AuditedCommit, AuditedCommit, Certainty, str, dict[str, object]]]:
    """Yield the dependencies between two commits.

    Each is a tuple of relation, source, target, certainty, kind of reason and nouns of the reason.
    """
    read = later.commit.read_version
    i, j = _name(earlier), _name(later)
    overwrote = changes(earlier, later.commit)
    if overwrote is not None:
        yield "rw", earlier, later, overwrote, "audit overwrote", {"writer": j, "reader": i}
    if read is None:
        return
    if earlier.version > read:
        passed = missed_write(later, earlier.commit)
        if passed is not None:
            nouns = {"reader": j, "version": read, "writer": i}
            yield "rw", later, earlier, passed, "audit missed", nouns
        return
    read_it = read_from(later, earlier.commit)
    if read_it is not None:
        yield "wr", earlier, later, read_it, "audit read", {"reader": j, "writer": i}
    if wrote_next_version(later.commit, earlier.commit):
        yield "ww", earlier, later, "possible", "audit wrote", {"writer": j, "before": i}


LONGEST = 1_000
"""Maximum number of commits of a window that are checked: the newest."""
COMMITS = 1_000
"""Maximum number of commits that are kept; older ones are read again on demand."""
FILES = 20_000
"""Maximum number of file actions in kept commits; older commits are read again on demand."""
NEWEST = 100
"""Maximum number of concurrent commits that are reported for one commit."""
SHOWN = 20
"""Maximum number of versions, missed by one commit, that are listed."""


class RecentCommits:
    """Newest commits with their metadata; older ones are read again on demand."""

    def __init__(self, read: Callable[[int], LogCommit], oldest: int) -> None:
        self._read = read
        self._kept: deque[tuple[LogCommit, LogMetadata]] = deque()
        self._files = 0
        self.oldest = oldest
        self.cut = 0
        self.before = 0

    def add(self, commit: LogCommit, metadata: LogMetadata) -> None:
        """Append a commit, and drop the oldest ones beyond COMMITS commits or FILES files."""
        self._kept.append((commit, metadata))
        self._files += len(commit.adds) + len(commit.removes)
        while len(self._kept) > COMMITS or (self._files > FILES and len(self._kept) > 1):
            gone, _ = self._kept.popleft()
            self._files -= len(gone.adds) + len(gone.removes)

    def to_json(self) -> dict[str, Any]:
        """Return the state for `restore`: counters, and each metadata with its first version."""
        since: list[tuple[int, LogMetadata]] = []
        for commit, metadata in self._kept:
            if not since or since[-1][1] is not metadata:
                since.append((commit.version, metadata))
        fields = [[version, metadata_fields(metadata)] for version, metadata in since]
        return {"metadata": fields, "cut": self.cut, "before": self.before}

    def restore(self, said: dict[str, Any], last: int) -> LogMetadata:
        """Read the kept commits up to ``last`` again, if they exist; return the last metadata."""
        self.cut, self.before = said["cut"], said["before"]
        since = [
            (version, read_metadata_action(fields, "evidence"))
            for version, fields in said["metadata"]
        ]
        ends = [*(version for version, _ in since[1:]), last + 1]
        for (first, metadata), after in zip(since, ends, strict=True):
            for version in range(max(first, self.oldest), after):
                self.add(self._read(version), metadata)
        return since[-1][1]

    def between(self, read: int, version: int) -> Iterator[tuple[LogCommit, LogMetadata | None]]:
        """Yield commits and metadata after ``read`` and before ``version``, oldest first.

        The metadata is None if it is not kept. Of a window longer than `LONGEST`, only the newest
        commits are yielded.
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
        """Yield kept commits after ``read``, newest first, at most ``NEWEST``."""
        for k in range(1, min(len(self._kept), NEWEST) + 1):
            if self._kept[-k][0].version <= read:
                return
            yield self._kept[-k]


@dataclass(frozen=True, slots=True)
class MissedCommit:
    """Concurrent commit that another commit did not see.

    ``may`` says whether the level permits that; None if unknown.
    """

    writer: LogCommit
    certainty: Certainty
    may: bool | None


def missed_commits(
    reader: AuditedCommit, window: Sequence[tuple[LogCommit, LogMetadata | None]]
) -> list[MissedCommit]:
    """Return the commits of its window that changed a commit's read set and that it did not see."""
    found = []
    for writer, _ in window:
        certainty = missed_write(reader, writer)
        if certainty is not None:
            found.append(MissedCommit(writer, certainty, is_allowed_to_miss(reader.commit, writer)))
    return found


def find_reorders(reader: AuditedCommit, passed: Sequence[MissedCommit]) -> Iterator[Finding]:
    """Yield at most one finding of each kind and certainty, with the commits not seen."""
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
    """Return the text of a finding about a commit and concurrent commits that it did not see."""
    first = describe_commit(some[0])
    first += ", a blind append" if some[0].blind else ""
    first += f" (and {len(some) - 1:,} more)" if len(some) > 1 else ""
    commit = reader.commit
    start = f"{describe_commit(commit)} read version {commit.read_version} and"
    where = _where(reader)
    if kind == "missed-conflict":
        return (
            f"{start} did not see {first}, which changed rows in its read set{where}: Delta's"
            f" conflict check at {commit.level} rejects that"
        )
    order = (
        f"its reads place version {reader.version} before version {some[0].version}, but the log"
        " has it after"
    )
    if certain:
        return f"{start} did not see {first}, which changed rows in its read set{where}: {order}"
    if reader.reads.kind == "unknown":
        return (
            f"{start} did not see {first}; the log does not record what it read: if it read those"
            f" rows, {order}"
        )
    return (
        f"{start} did not see {first}, which may have changed rows in its read set{where}: if so,"
        f" {order}"
    )


def _where(reader: AuditedCommit) -> str:
    """Return the read set of a commit in parentheses, shortened to about 100 characters."""
    if reader.reads.everything:
        return " (all rows)"
    if reader.reads.kind == "partitions":
        return " (the partitions that it overwrites)"
    text = " AND ".join(c.shown for c in reader.reads.conditions)
    return f" ({text[:97]}…)" if len(text) > 100 else f" ({text})"


def find_bridges(
    reader: AuditedCommit,
    passed: Sequence[MissedCommit],
    window: Sequence[tuple[LogCommit, LogMetadata | None]],
) -> Iterator[Finding]:
    """Yield at most one finding for a commit: a certain bridge if there is one, else the first."""
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
    reader: AuditedCommit, one: MissedCommit, commit: LogCommit, metadata: LogMetadata | None
) -> Finding | None:
    """Return the bridge that a commit forms by reading a missed blind append; None if it cannot."""
    append = one.writer
    if commit.version <= append.version or commit.blind is True or only_moves_data(commit):
        return None
    read = commit.read_version
    if read is not None and read < append.version:
        return None
    between = AuditedCommit.of(commit, metadata or reader.metadata)
    read_it = read_from(between, append) if metadata is not None else "possible"
    if read_it is None:
        return None
    back = changes(between, reader.commit)
    sure = read is not None and "possible" not in (one.certainty, read_it) and back == "certain"
    last, middle = describe_commit(reader.commit), describe_commit(commit)
    versions = append.version, commit.version, reader.version
    if sure and metadata is not None:
        cycle = " → ".join(f"version {v}" for v in (versions[2], *versions))
        why = (
            f"{last} did not see {describe_commit(append)}, a blind append, which {middle} read,"
            f" and {middle} read rows that {last} changed: cycle {cycle}: no serial order satisfies"
            " these dependencies, and write-serializable forbids them (the log does not show"
            " whether another order gives the same rows)"
        )
        return Finding("bridge", versions, "certain", why)
    why = (
        f"{last} did not see {describe_commit(append)}, a blind append, which {middle} may have"
        f" read before {last} committed: if {middle} also read what {last} changed, these"
        " dependencies form a cycle, which write-serializable forbids"
    )
    return Finding("bridge", versions, "possible", why)
