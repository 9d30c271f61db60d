"""Audit of a table's log in one pass, oldest commit first, in bounded memory.

The result is findings and an overview. Memory holds the live files of the table, the newest commits
(``dependencies.RecentCommits``), removed entries (``commit_checks.REMEMBERED``), and the first
``KEPT`` findings of each kind and certainty; all findings are counted. Anomalies that no log
records (docs/delta.md, 5) are not found: reads that Delta does not track, a commit marked as a
blind append although a client read before it, aborted statements, and statements with nothing to
record.

A *near miss*: L committed after W and did not see it, so the two were concurrent. If L had
committed first, W would not have seen L. Delta's conflict check would then have aborted W. Or, if
its level permits that, and L changes the read set of W, W would have committed without seeing L.
Certain near misses are counted, and apart from them the possible ones, which the log does not
exclude.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from isolitmus.checker.auditing.commit_checks import (
    LiveFiles,
    SilentCommits,
    find_false_claims,
    find_level_change,
)
from isolitmus.checker.auditing.dependencies import (
    LONGEST,
    AuditedCommit,
    RecentCommits,
    adds_meet_read_set,
    changes,
    find_bridges,
    find_reorders,
    is_allowed_to_miss,
    missed_commits,
    removes_meet_read_set,
)
from isolitmus.model.audit import KINDS, REORDERED, Audit, CommitSpan, Finding, NearMiss, Overview
from isolitmus.model.budget import Budget
from isolitmus.model.delta.log import LogFile, LogMetadata
from isolitmus.model.display import count_of
from isolitmus.model.errors import Ended, Limit, LogError
from isolitmus.specs.disk.input_files import is_delta_table
from isolitmus.specs.files.evidence_files import edited_evidence, read_audit_file, write_audit_file
from isolitmus.specs.logs.delta_log import (
    has_version,
    latest_version,
    open_log,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from isolitmus.checker.auditing.dependencies import MissedCommit
    from isolitmus.model.audit import Certainty
    from isolitmus.model.delta.log import LogCommit
    from isolitmus.specs.logs.delta_log import DeltaLog

NEAR_MISSES_KEPT = 100
"""Maximum number of near misses that are kept."""
COUNTED = ("operations", "levels", "writers", "pairs", "near_counts")
"""Names of the counters."""
DRAWN = 60
"""Maximum number of commits that are drawn: the newest."""
NAMES = 50
"""Maximum number of operations, levels, writers and pairs that are counted separately."""


class OverlapCounts:
    """Counters and examples for the overview of an audit."""

    def __init__(self) -> None:
        self.operations: Counter[str] = Counter()
        self.levels: Counter[str] = Counter()
        self.writers: Counter[str] = Counter()
        self.pairs: Counter[str] = Counter()
        self.near_counts: Counter[str] = Counter()
        self.near: list[NearMiss] = []
        self.spans: deque[CommitSpan] = deque(maxlen=DRAWN)
        self.overlapping = 0
        self.first = self.last = 0

    def hear(self, commit: LogCommit) -> None:
        """Count a commit; commits come in log order."""
        operation = _operation(commit)
        _count(self.operations, operation)
        _count(self.levels, commit.level or "not said")
        _count(self.writers, commit.engine or "a writer without a name")
        self.first = self.first or commit.timestamp
        self.last = commit.timestamp or self.last
        blind = commit.blind is True
        self.spans.append(CommitSpan(commit.version, commit.read_version, operation, blind))

    def overlap(
        self, later: AuditedCommit, window: Iterable[tuple[LogCommit, LogMetadata]]
    ) -> None:
        """Count a commit with the newest of the concurrent commits that it did not see."""
        self.overlapping += 1
        for commit, metadata in window:
            _count(self.pairs, f"{_operation(later.commit)} beside {_operation(commit)}")
            earlier = AuditedCommit.of(commit, metadata)
            missed = _near(earlier, later)
            if missed is not None:
                self.near_counts[f"{missed.end}, {missed.certainty}"] += 1
                if len(self.near) < NEAR_MISSES_KEPT:
                    self.near.append(missed)

    def to_json(self) -> dict[str, Any]:
        """Return the state for `restore`; counters keep their order, which breaks ties."""
        found: dict[str, Any] = {name: getattr(self, name) for name in COUNTED}
        found |= {"near": [asdict(one) for one in self.near]}
        found |= {"spans": [asdict(one) for one in self.spans]}
        return found | {"overlapping": self.overlapping, "first": self.first, "last": self.last}

    def restore(self, said: dict[str, Any]) -> None:
        """Restore the state that `to_json` returned."""
        for name in COUNTED:
            setattr(self, name, Counter(said[name]))
        self.near = [NearMiss(**one) for one in said["near"]]
        self.spans.extend(CommitSpan(**one) for one in said["spans"])
        self.overlapping, self.first, self.last = (
            said[name] for name in ("overlapping", "first", "last")
        )

    def overview(self) -> Overview:
        """Return the overview so far; the most frequent first."""
        return Overview(
            dict(self.operations.most_common()),
            dict(self.levels.most_common()),
            dict(self.writers.most_common()),
            self.first,
            self.last,
            self.overlapping,
            dict(self.pairs.most_common()),
            tuple(self.near),
            dict(self.near_counts.most_common()),
            tuple(self.spans),
        )


def _near(earlier: AuditedCommit, later: AuditedCommit) -> NearMiss | None:
    """Return the near miss of two commits: the earlier one's outcome if the later were first."""
    first, second = earlier.commit, later.commit
    may = is_allowed_to_miss(first, second)
    if may is None or earlier.reads.kind == "nothing":
        return None
    end, certainty = REORDERED, changes(earlier, second)
    if not may:
        end, certainty = "ConcurrentAppendException", adds_meet_read_set(earlier, second.adds)
        if certainty is None:
            end, certainty = (
                "ConcurrentDeleteReadException",
                removes_meet_read_set(earlier, second.removes),
            )
            if (first.read_version or 0) < (second.read_version or 0):
                # the file may not have existed in the version that the earlier commit read
                certainty = certainty and "possible"
    return certainty and NearMiss(first.version, second.version, end, certainty)


def _operation(commit: LogCommit) -> str:
    return commit.operation or "an operation without a name"


def _count(counts: Counter[str], name: str) -> None:
    counts[name if name in counts or len(counts) < NAMES else "others"] += 1


KEPT = 1_000
"""Maximum number of findings of each kind and certainty that are kept."""
EVERY, SHARE = 10.0, 20
"""Minimum time between two writes of evidence, in seconds; it takes at most 1/SHARE of the time."""
ORDER = list(KINDS)


class LogPass:
    """One pass over a log.

    ``on_missed`` is called for every commit that did not see a change of its read set,
    ``on_commit`` for every commit; ``overlaps`` counts both. Once the ``budget`` is spent, a Limit
    is raised with the number of examined commits.
    """

    def __init__(
        self,
        log: DeltaLog,
        on_missed: Callable[[AuditedCommit, list[MissedCommit]], None] | None = None,
        on_commit: Callable[[AuditedCommit], None] | None = None,
        budget: Budget | None = None,
        overlaps: OverlapCounts | None = None,
    ) -> None:
        self.log, self.budget = log, budget or Budget()
        self.overlaps = overlaps
        self.begun = self.examined = 0
        self.files = LiveFiles()
        self.silence = SilentCommits()
        self.recent = RecentCommits(log.commit, log.oldest)
        self.metadata: LogMetadata | None = None
        self._on_missed = on_missed
        self._on_commit = on_commit
        self._protocol = False

    def findings(
        self, progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Finding, ...]]:
        """Yield the findings of each commit that was not examined yet, in log order."""
        try:
            if not self.examined:
                self._begin()
            for commit in self.log.commits(self.log.first + self.examined):
                self.budget.check()
                if progress is not None and commit.version % 1000 == 0:
                    progress(commit.version)
                yield tuple(self.take(commit))
        except Limit as limit:
            limit.examined = self.examined
            raise

    def to_json(self) -> dict[str, Any]:
        """Return the state after the examined commits (at least one), for `restore`."""
        return {
            "examined": self.examined,
            "files": self.files.to_json(),
            "silence": self.silence.to_json(),
            "recent": self.recent.to_json(),
            "overlaps": self.overlaps and self.overlaps.to_json(),
        }

    def restore(self, said: dict[str, Any]) -> None:
        """Restore the state that `to_json` returned, to continue from there."""
        self.begun = self.examined = said["examined"]
        self._protocol = True
        self.files.restore(said["files"])
        self.silence.restore(said["silence"])
        self.metadata = self.recent.restore(said["recent"], self.log.first + self.examined - 1)
        if self.overlaps is not None:
            self.overlaps.restore(said["overlaps"])

    def notes(self, log: DeltaLog) -> tuple[str, ...]:
        """Return sentences about parts of a log that were not examined."""
        found = []
        if log.first:
            found.append(
                f"The log begins with version {log.oldest}: the commits up to version"
                f" {log.first - 1} were not audited; a checkpoint describes the table after them."
            )
        newer = log.newer()
        if newer:
            were = "was" if newer == 1 else "were"
            found.append(
                f"The table was written during the audit: {count_of(newer, 'version')} after"
                f" {log.last} {were} not audited."
            )
        if self.recent.before:
            found.append(
                f"{count_of(self.recent.before, 'commit')} read a version before"
                f" {self.recent.oldest}: concurrent commits before that version are no longer in"
                " the log."
            )
        if self.recent.cut:
            found.append(
                f"{count_of(self.recent.cut, 'commit')} with more than {LONGEST:,} concurrent"
                f" commits: only the newest {LONGEST:,} of these were checked."
            )
        forgotten = self.files.forgotten
        if forgotten:
            are, one = ("is", "it") if forgotten == 1 else ("are", "one")
            found.append(
                f"{count_of(forgotten, 'removed file')} {are} no longer remembered: if {one} was"
                " added again, the audit does not find that."
            )
        return tuple(found)

    def _begin(self) -> None:
        """Read the log's start: live files, metadata, and whether it has a protocol."""
        for part in self.log.begin():
            self.budget.check()
            if isinstance(part, LogFile):
                self.files.begin(part)
            elif isinstance(part, LogMetadata):
                self.metadata = part
            else:
                self._protocol = True
        if self.log.base is not None:
            self._known(self.log.base.version)

    def _known(self, version: int) -> LogMetadata:
        """Return the metadata; raise LogError if the log has no metaData or protocol action yet."""
        if self.metadata is None or not self._protocol:
            lacks = "metaData" if self.metadata is None else "protocol"
            raise LogError(
                f"{self.log.table}: no {lacks} action up to version {version}; the first version of"
                " a table must have one"
            )
        return self.metadata

    def take(self, commit: LogCommit) -> Iterator[Finding]:
        """Yield the findings of the next commit."""
        self.begun += 1
        yield from find_level_change(commit, self.metadata)
        self.metadata = commit.metadata or self.metadata
        self._protocol |= commit.protocol is not None
        metadata = self._known(commit.version)
        yield from find_false_claims(commit, metadata)
        self.silence.hear(commit)
        if self.overlaps is not None:
            self.overlaps.hear(commit)
        yield from self.files.apply(commit)
        if self._on_commit is not None:
            self._on_commit(AuditedCommit.of(commit, metadata))
        read = commit.read_version
        if read is not None and -1 <= read < commit.version - 1:
            yield from self._window(AuditedCommit.of(commit, metadata), read)
        self.recent.add(commit, metadata)
        self.examined += 1

    def _window(self, reader: AuditedCommit, read: int) -> Iterator[Finding]:
        """Yield the findings about a commit and the concurrent commits that it missed."""
        if self.overlaps is not None:
            self.overlaps.overlap(reader, self.recent.newest(read))
        if reader.reads.kind == "nothing":
            return
        window = list(self.recent.between(read, reader.version))
        passed = missed_commits(reader, window)
        if passed:
            if self._on_missed is not None:
                self._on_missed(reader, passed)
            yield from find_reorders(reader, passed)
            yield from find_bridges(reader, passed, window)


class FollowedAudit:
    """Audit of a table that continues as commits arrive.

    Parameters
    ----------
    table : Path
        Path of the table.
    budget : Budget, optional
        Limits; default: three quarters of the free memory. Once they are reached, the audit ends
        with what was found until then.
    evidence : Path, optional
        File for the state, written from time to time and by `save`. If it exists, the audit
        continues from it. If it can no longer be written, as on a full disk, the audit ends.
    on_finding : callable, optional
        Called once for each finding of the commits that this object audits, also for those beyond
        the first KEPT. A writer that records nothing is one finding, at its first such commit.

    Raises
    ------
    LogError
        If the log cannot be read, or if the evidence is of another log, of another release, or
        edited.
    """

    def __init__(
        self,
        table: Path,
        budget: Budget | None = None,
        evidence: Path | None = None,
        on_finding: Callable[[Finding], None] | None = None,
    ) -> None:
        self.table, self._start = table, monotonic()
        self._log = open_log(table)
        self._overlaps = OverlapCounts()
        self._pass = LogPass(self._log, budget=budget, overlaps=self._overlaps)
        self._counts: Counter[tuple[str, Certainty]] = Counter()
        self._kept: list[Finding] = []
        self._ended: str | None = None
        self._newest: LogCommit | None = None
        self._evidence = evidence
        self._on_finding = on_finding
        self._told = self._saved = self._silent = 0
        self._due = inf if evidence is None else self._start + EVERY
        if evidence is not None:
            self._go_on(evidence)

    def there(self, progress: Callable[[int], None] | None = None) -> None:
        """Audit the commits that existed when the log was opened.

        ``progress`` is called from time to time with the version reached.
        """
        self._newest = self._log.commit(self._log.last)
        try:
            for found in self._pass.findings(progress):
                self._keep(found)
                if self._ended is not None:
                    return
        except (Limit, MemoryError) as limit:
            self._ended = str(limit) or "memory was used up"
        self.save()

    @property
    def is_ended(self) -> bool:
        """True if a limit or a full disk ended the audit: no further commit is audited."""
        return self._ended is not None

    def came(self) -> Iterator[tuple[LogCommit, tuple[Finding, ...]]]:
        """Yield the commits that have arrived since, each with its findings.

        A commit that is still being written is left for the next call.
        """
        if not is_delta_table(self.table):
            raise LogError(
                f"{self.table}: its folder _delta_log is gone: the table was removed while it was"
                " followed"
            )
        if not has_version(self.table, self._log.last + 1):
            self._refuse_a_gap()
        self._refuse_another(self._log.last, self._newest, "followed")
        while self._ended is None and has_version(self.table, self._log.last + 1):
            log = replace(self._log, last=self._log.last + 1)
            try:
                commit = log.commit(log.last)
            except LogError:
                if not has_version(self.table, log.last + 1):
                    return
                raise
            try:
                self._pass.budget.check()
            except Limit as limit:
                self._ended = str(limit)
                return
            self._log, self._newest = log, commit
            found = tuple(self._pass.take(commit))
            self._keep(found)
            yield commit, found

    def _refuse_a_gap(self) -> None:
        """Raise LogError if the next commit is missing but later ones exist."""
        version, newest = self._log.last + 1, latest_version(self.table)
        if newest > version and not has_version(self.table, version):
            raise LogError(
                f"{self.table}: version {version} is missing but version {newest} exists: the log"
                " was cleaned up while it was followed; run the audit again"
            )

    def _refuse_another(self, version: int, read: LogCommit | None, what: str) -> None:
        """Raise LogError if the commit of an examined version is no longer the same."""
        if not has_version(self.table, version) or self._log.commit(version) != read:
            raise LogError(
                f"{self.table}: version {version} has changed: the table was recreated while it was"
                f" {what}; run the audit again"
            )

    def audit(self) -> Audit:
        """Return the result so far."""
        log, notes, counts = self._log, self._pass.notes(self._log), Counter(self._counts)
        kept = list(self._kept)
        for finding in self._pass.silence.findings():
            counts[finding.kind, finding.certainty] += 1
            kept.append(finding)
        if self._ended is not None:
            whole = count_of(log.last - log.first + 1, "commit")
            done = f"{self._pass.examined:,} of {whole} were audited"
            notes += (f"Unknown: {self._ended}; {done}.",)
        if any(number > KEPT for number in counts.values()):
            notes += (f"The first {KEPT:,} findings of each kind and certainty are listed.",)
        kept.sort(key=lambda f: (ORDER.index(f.kind), f.certainty))
        ordered = sorted(counts.items(), key=lambda item: (ORDER.index(item[0][0]), item[0][1]))
        return Audit(
            str(self.table),
            log.first,
            log.first + self._pass.examined - 1,
            tuple(kept),
            dict(ordered),
            notes,
            monotonic() - self._start,
            self._ended,
            self._overlaps.overview(),
        )

    def _keep(self, found: Iterable[Finding]) -> None:
        """Count findings, keep the first KEPT of each kind, and save the state when due."""
        for finding in found:
            self._report(finding)
            key = finding.kind, finding.certainty
            self._counts[key] += 1
            if self._counts[key] <= KEPT:
                self._kept.append(finding)
        silence = self._pass.silence
        for finding in silence.findings(self._silent) if len(silence) > self._silent else ():
            self._report(finding)
        self._silent = len(silence)
        self._told = self._pass.examined
        if monotonic() > self._due:
            self.save()

    def _report(self, finding: Finding) -> None:
        if self._on_finding is not None:
            self._on_finding(finding)

    def save(self) -> None:
        """Write the state as evidence.

        Nothing is written without a file, without new findings, or in the middle of a commit.
        LogError if the log is no longer the one that was read.
        """
        done, log = self._pass.examined, self._log
        whole = done == self._told == self._pass.begun
        if self._evidence is None or not whole or done == self._saved:
            return
        start, last = monotonic(), log.first + done - 1
        digest = log.digest(last)
        (read, _), *_ = self._pass.recent.newest(last - 1)
        self._refuse_another(last, read, "audited")
        said = {
            "first": log.first,
            "oldest": log.oldest,
            "newest": digest,
            "pass": self._pass.to_json(),
            "counts": [[*key, number] for key, number in self._counts.items()],
            "findings": [finding.to_json() for finding in self._kept],
        }
        try:
            write_audit_file(self._evidence, said)
        except Ended as problem:
            self._ended = str(problem)
        self._saved, now = done, monotonic()
        self._due = now + max(EVERY, SHARE * (now - start))

    def _go_on(self, evidence: Path) -> None:
        """Continue from a file of evidence, if it exists."""
        said = read_audit_file(evidence)
        if said is None:
            return
        log = self._log
        try:
            last = said["first"] + said["pass"]["examined"] - 1
            if not log.oldest <= last <= log.last or log.digest(last) != said["newest"]:
                raise LogError(
                    f"{evidence}: its last commit, version {last}, is not in the log of"
                    f" {self.table}: the file belongs to another table, or the table was recreated;"
                    " pass a new file"
                )
            self._log = replace(log, first=said["first"], oldest=said["oldest"], base=None)
            self._pass.log = self._log
            self._pass.restore(said["pass"])
            self._counts.update({(kind, sure): n for kind, sure, n in said["counts"]})
            self._kept = [Finding.of_json(finding) for finding in said["findings"]]
        except (KeyError, TypeError, ValueError, IndexError):
            raise edited_evidence(evidence) from None
        self._told = self._saved = self._pass.examined
        self._silent = len(self._pass.silence)


def audit(
    table: Path | str,
    *,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
    evidence: Path | str | None = None,
) -> Audit:
    """Audit the log of a table.

    Parameters
    ----------
    table : Path or str
        Path of the table.
    budget : Budget, optional
        Limits; default: three quarters of the free memory. Once they are reached, the result has
        what was found until then.
    progress : callable, optional
        Called from time to time with the version that the audit has reached.
    evidence : Path or str, optional
        File for the state, from which the audit continues (see `FollowedAudit`).

    Returns
    -------
    Audit
        Findings with their certainty, and an overview of the log.

    Raises
    ------
    LogError
        If the log cannot be read.

    Examples
    --------
    >>> def test_no_reorder(delta_spark, tmp_path):
    ...     delta_spark.sql(f"CREATE TABLE delta.`{tmp_path}` (id INT) USING delta")
    ...     assert not audit(tmp_path).findings
    """
    one = FollowedAudit(Path(table), budget, None if evidence is None else Path(evidence))
    one.there(progress)
    return one.audit()
