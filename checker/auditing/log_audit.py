"""The verb ``audit``: one pass over a table's log, oldest commit first, in bounded memory.

In memory are the live files of the table, the newest commits (``windows.Recent``), entries that were
removed (``files.REMEMBERED``), and of each kind of finding and certainty the first ``KEPT``; all of them
are counted. Nothing is said of what no log shows (docs/delta.md, 5): reads that Delta does not track, a commit
that calls itself a blind append although a client read first, statements that were refused or had nothing
to record.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from isolitmus.checker.auditing.commit_checks import Silence, false_claims, level_change
from isolitmus.checker.auditing.dependencies import AuditedCommit
from isolitmus.checker.auditing.files import Files
from isolitmus.checker.auditing.overview import Overlaps
from isolitmus.checker.auditing.windows import LONGEST, Recent, all_missed, bridges, reorders
from isolitmus.model.audit import KINDS, Audit, Finding
from isolitmus.model.budget import Budget
from isolitmus.model.delta.log import LogFile, LogMetadata
from isolitmus.model.errors import Ended, Limit, LogError
from isolitmus.model.number import many
from isolitmus.specs.files.audit_file import edited, read_audit_file, write_audit_file
from isolitmus.specs.logs.delta_log import has_version, latest, open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from isolitmus.checker.auditing.windows import Missed
    from isolitmus.model.certainty import Certainty
    from isolitmus.model.delta.log import LogCommit
    from isolitmus.specs.logs.delta_log import DeltaLog

__all__ = ["FollowedAudit", "Pass", "audit"]

KEPT = 1_000
EVERY, SHARE = 10.0, 20
"""Evidence is written after so many seconds at the earliest, and takes one part of the time in so many at most."""
ORDER = list(KINDS)


class Pass:
    """One pass over a log; ``on_missed`` is told of every commit that missed something, ``on_commit`` of
    every commit, and ``overlaps`` of both. A Limit, with how many commits were looked at, once the ``budget`` is spent.
    """

    def __init__(
        self,
        log: DeltaLog,
        on_missed: Callable[[AuditedCommit, list[Missed]], None] | None = None,
        on_commit: Callable[[AuditedCommit], None] | None = None,
        budget: Budget | None = None,
        overlaps: Overlaps | None = None,
    ) -> None:
        self.log, self.budget = log, budget or Budget()
        self.overlaps = overlaps
        self.begun = self.examined = 0
        self.files = Files()
        self.silence = Silence()
        self.recent = Recent(log.commit, log.oldest)
        self.metadata: LogMetadata | None = None
        self._on_missed = on_missed
        self._on_commit = on_commit
        self._protocol = False

    def findings(
        self, progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Finding, ...]]:
        """What each commit shows that was not looked at yet, in their order."""
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
        """What is known after the commits that were looked at (one at least), for ``restore``."""
        return {
            "examined": self.examined,
            "files": self.files.to_json(),
            "silence": self.silence.to_json(),
            "recent": self.recent.to_json(),
            "overlaps": self.overlaps and self.overlaps.to_json(),
        }

    def restore(self, said: dict[str, Any]) -> None:
        """Take up what was known, to go on from there."""
        self.begun = self.examined = said["examined"]
        self._protocol = True
        self.files.restore(said["files"])
        self.silence.restore(said["silence"])
        self.metadata = self.recent.restore(said["recent"], self.log.first + self.examined - 1)
        if self.overlaps is not None:
            self.overlaps.restore(said["overlaps"])

    def notes(self, log: DeltaLog) -> tuple[str, ...]:
        """What was not looked at of a log, a sentence each."""
        found = []
        if log.first:
            found.append(
                f"The log begins with version {log.oldest}: the commits to version {log.first - 1} were"
                " not audited, a checkpoint says what the table was after them."
            )
        newer = log.newer()
        if newer:
            are = "is" if newer == 1 else "are"
            found.append(
                f"The table was written meanwhile: {many(newer, 'version')} after {log.last} {are} not"
                " audited."
            )
        if self.recent.before:
            found.append(
                f"{many(self.recent.before, 'commit')} read a version before {self.recent.oldest}: what was"
                " missed before that is gone."
            )
        if self.recent.cut:
            found.append(
                f"{many(self.recent.cut, 'commit')} had not seen more than {LONGEST:,} others: the"
                f" newest {LONGEST:,} of those were looked at."
            )
        forgotten = self.files.forgotten
        if forgotten:
            are, they = ("is", "it") if forgotten == 1 else ("are", "one")
            found.append(
                f"{many(forgotten, 'removed file')} {are} forgotten: had {they} come back, it would not"
                " be found."
            )
        return tuple(found)

    def _begin(self) -> None:
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
        if self.metadata is None or not self._protocol:
            lacks = "metaData" if self.metadata is None else "protocol"
            raise LogError(
                f"{self.log.table}: there is no {lacks} up to version {version}; the first version of a"
                " table has one"
            )
        return self.metadata

    def take(self, commit: LogCommit) -> Iterator[Finding]:
        """What the next commit shows."""
        self.begun += 1
        yield from level_change(commit, self.metadata)
        self.metadata = commit.metadata or self.metadata
        self._protocol |= commit.protocol is not None
        metadata = self._known(commit.version)
        yield from false_claims(commit, metadata)
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
        if self.overlaps is not None:
            self.overlaps.overlap(reader, self.recent.newest(read))
        if reader.reads.kind == "nothing":
            return
        window = list(self.recent.between(read, reader.version))
        passed = all_missed(reader, window)
        if passed:
            if self._on_missed is not None:
                self._on_missed(reader, passed)
            yield from reorders(reader, passed)
            yield from bridges(reader, passed, window)


class FollowedAudit:
    """An audit of the table at a path that goes on as commits come; LogError if its log is none that reads.

    Once the ``budget`` (default: three quarters of the memory that is free) is spent, it ends with what was found until
    then. ``evidence`` is a file in which it keeps what it knows, from time to time and with ``save``; where such a file is
    there, it goes on from that: LogError if it is of another log, another release, or edited. If it cannot be written any
    more, as on a full disk, that ends the audit, too.
    """

    def __init__(
        self, table: Path, budget: Budget | None = None, evidence: Path | None = None
    ) -> None:
        self.table, self._start = table, monotonic()
        self._log = open_log(table)
        self._overlaps = Overlaps()
        self._pass = Pass(self._log, budget=budget, overlaps=self._overlaps)
        self._counts: Counter[tuple[str, Certainty]] = Counter()
        self._kept: list[Finding] = []
        self._ended: str | None = None
        self._newest: LogCommit | None = None
        self._evidence = evidence
        self._told = self._saved = 0
        self._due = inf if evidence is None else self._start + EVERY
        if evidence is not None:
            self._go_on(evidence)

    def there(self, progress: Callable[[int], None] | None = None) -> None:
        """Audit what was there when the log was opened; ``progress`` is told the version, from time to time."""
        self._newest = self._log.commit(self._log.last)
        try:
            for found in self._pass.findings(progress):
                self._keep(found)
                if self._ended is not None:
                    return
        except (Limit, MemoryError) as limit:
            self._ended = str(limit) or "memory was used up"
        self.save()

    def came(self) -> Iterator[tuple[LogCommit, tuple[Finding, ...]]]:
        """The commits that have come since, each with what it shows. One that is still being written is left for the
        next time.
        """
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
        """LogError if later commits than the next one are there."""
        version, newest = self._log.last + 1, latest(self.table)
        if newest > version and not has_version(self.table, version):
            raise LogError(
                f"{self.table}: version {version} is gone, and version {newest} is there: the log was cleaned up while"
                " it was followed; ask again"
            )

    def _refuse_another(self, version: int, read: LogCommit | None, what: str) -> None:
        """LogError if the commit of a version that was looked at is not the one that is there now."""
        if not has_version(self.table, version) or self._log.commit(version) != read:
            raise LogError(
                f"{self.table}: version {version} is another one than before: the table was made anew while it was"
                f" {what}; ask again"
            )

    def audit(self) -> Audit:
        """What was found so far."""
        log, notes, counts = self._log, self._pass.notes(self._log), Counter(self._counts)
        kept = list(self._kept)
        for finding in self._pass.silence.findings():
            counts[finding.kind, finding.certainty] += 1
            kept.append(finding)
        if self._ended is not None:
            whole = many(log.last - log.first + 1, "commit")
            done = f"{self._pass.examined:,} of {whole} were audited until then"
            notes += (f"Unknown: {self._ended}; {done}.",)
        if any(number > KEPT for number in counts.values()):
            notes += (f"Of each kind and certainty the first {KEPT:,} findings are listed.",)
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
        for finding in found:
            key = finding.kind, finding.certainty
            self._counts[key] += 1
            if self._counts[key] <= KEPT:
                self._kept.append(finding)
        self._told = self._pass.examined
        if monotonic() > self._due:
            self.save()

    def save(self) -> None:
        """Write what is known as evidence, if there is a file for it, something new, and whatever was begun is done.
        LogError if the log is not the one that was read.
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
        """Take up what is in a file of evidence, if it is there."""
        said = read_audit_file(evidence)
        if said is None:
            return
        log = self._log
        try:
            last = said["first"] + said["pass"]["examined"] - 1
            if not log.oldest <= last <= log.last or log.digest(last) != said["newest"]:
                raise LogError(
                    f"{evidence}: it knows another version {last} than {self.table} has, or it is gone from there: the"
                    " file is of another table, or the table was made anew; name a file that is not there yet"
                )
            self._log = replace(log, first=said["first"], oldest=said["oldest"], base=None)
            self._pass.log = self._log
            self._pass.restore(said["pass"])
            self._counts.update({(kind, sure): n for kind, sure, n in said["counts"]})
            self._kept = [Finding.of_json(finding) for finding in said["findings"]]
        except (KeyError, TypeError, ValueError, IndexError):
            raise edited(evidence) from None
        self._told = self._saved = self._pass.examined


def audit(
    table: Path | str,
    *,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
    evidence: Path | str | None = None,
) -> Audit:
    """What the log of the table at a path shows. LogError if it is none that reads.

    Once the ``budget`` (default: three quarters of the memory that is free) is spent, what was found until then.
    ``progress`` is told the version where the audit is, from time to time. ``evidence`` is a file in which it keeps what it
    knows, and from which it goes on, as ``FollowedAudit`` says.
    """
    one = FollowedAudit(Path(table), budget, None if evidence is None else Path(evidence))
    one.there(progress)
    return one.audit()
