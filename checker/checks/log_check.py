"""Isolation levels of a Delta log, with certain and possible dependencies kept apart.

A level is forbidden only if the certain dependencies violate it, and allowed only if not even the
possible ones do. Everything else is unknown, with the reason.

**Parts of the log suffice.** All dependencies point forward in the log, except the rw edges from a
commit to concurrent commits that it did not see. A cycle has to go back by such edges. It therefore
lies within a range of versions that is covered by overlapping windows of such commits. This holds
for a spec that only forbids cycles in unions, compositions and intersections of dependencies
(`only_forbids_cycles`). Other specs are checked on short logs as a whole.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.auditing.dependencies import AuditedCommit, dependency_frames
from isolitmus.checker.auditing.log_audit import LogPass
from isolitmus.checker.checks.history_verdicts import HistoryVerdicts
from isolitmus.checker.judge.graph_semantics import judge, missing_names
from isolitmus.checker.judge.spec_properties import is_increasing
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of, render
from isolitmus.model.errors import Limit
from isolitmus.model.spec import Binary, Bracket, Name, Unary
from isolitmus.model.verdict import Allowed, Forbidden, Needs, Unknown
from isolitmus.specs.logs.delta_log import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.checker.auditing.dependencies import MissedCommit
    from isolitmus.model.delta.log import LogMetadata
    from isolitmus.model.spec import CatExpr, Spec
    from isolitmus.model.verdict import Verdict
    from isolitmus.specs.logs.delta_log import DeltaLog

MOST = 150
"""Maximum number of commits that are judged together."""
WITNESS = 40
"""Maximum number of commits of a log for which a serial order is shown."""
BROKEN = ("removed-twice", "two-live-entries", "blind-flag", "no-data-change", "read-version")
"""Findings that make the table's versions differ from its commits' claims; then nothing is judged.
"""
ASSUMED = (
    "commits record correctly the version read, predicates, blind appends and statistics",
    "each commit is a session of its own; a log does not record sessions",
    (
        "who only reads is not in the log, nor are reads that Delta does not track (subqueries in"
        " SET, caches)"
    ),
    "only rows are checked, not changes of the table's metadata",
    "no commit missed a concurrent commit that Delta's check rejects at its level",
)


@dataclass(slots=True)
class _Stretch:
    """Range of versions that overlapping windows of unseen commits cover.

    ``first`` is the first commit that another one did not see, ``last`` the last commit that did
    not see one. ``certain`` contains the windows (first, last) of commits that certainly missed
    another one.
    """

    first: int
    last: int
    certain: list[tuple[int, int]]


class _Seen:
    """Result of one pass over the log: windows of unseen commits, metadata over time, what is
    unknown.
    """

    def __init__(self, log: DeltaLog, budget: Budget) -> None:
        self.log, self.budget = log, budget
        self.windows: list[tuple[int, int, int | None]] = []
        self.files = 0
        self.silent = 0
        self._since: list[int] = []
        self._metadata: list[LogMetadata] = []
        one = LogPass(log, self._missed, self._commit, budget)
        broken = (f.why for found in one.findings() for f in found if f.kind in BROKEN)
        self.broken = next(broken, "")
        others = sum(1 for _ in broken)
        self.broken += f" (and {others:,} more such)" if others else ""
        self.reasons = list(self._reasons(one))

    def _missed(self, reader: AuditedCommit, passed: list[MissedCommit]) -> None:
        sure = [m.writer.version for m in passed if m.certainty == "certain"]
        first = min(m.writer.version for m in passed)
        self.windows.append((first, reader.version, min(sure, default=None)))

    def _commit(self, seen: AuditedCommit) -> None:
        """Count a commit's files, note an unknown read version, and record its metadata."""
        commit, metadata = seen.commit, seen.metadata
        self.files += len(commit.adds) + len(commit.removes)
        known = commit.read_version
        if (known is None or known >= commit.version) and seen.reads.kind != "nothing":
            self.silent += 1
        if not self._metadata or self._metadata[-1] is not metadata:
            self._since.append(commit.version)
            self._metadata.append(metadata)

    def _reasons(self, one: LogPass) -> Iterator[str]:
        """Yield the reasons why dependencies of the log are unknown."""
        if self.silent:
            does, it = ("does", "it") if self.silent == 1 else ("do", "they")
            yield f"{count_of(self.silent, 'commit')} {does} not say which version {it} read"
        if one.recent.before or one.recent.cut:
            n = one.recent.before + one.recent.cut
            yield (
                f"{count_of(n, 'commit')} read a version so old that not all between was looked at"
            )

    def commits(self, first: int, last: int) -> list[AuditedCommit]:
        """Return the commits of a range of versions, each with its metadata."""
        return [
            AuditedCommit.of(self.log.commit(v), self._metadata[bisect_right(self._since, v) - 1])
            for v in range(max(first, self.log.first), last + 1)
        ]

    def stretches(self) -> list[_Stretch]:
        """Return the ranges of versions that overlapping windows cover, in log order."""
        found: list[_Stretch] = []
        for first, last, sure in sorted(self.windows, key=lambda w: (w[0], w[1])):
            if not found or first > found[-1].last:
                found.append(_Stretch(first, last, []))
            stretch = found[-1]
            stretch.last = max(stretch.last, last)
            if sure is not None:
                stretch.certain.append((sure, last))
        return found


def check_log(
    table: Path, levels: Sequence[Spec], *, budget: Budget | None = None
) -> HistoryVerdicts:
    """Judge the log of a table at each level.

    Commits count as transactions, and the files that they add and remove as operations.

    Parameters
    ----------
    table : Path
        Folder of the Delta table.
    levels : sequence of Spec
        Levels to judge.
    budget : Budget, optional
        Limits; default: three quarters of the free memory. Levels not judged before it is spent are
        unknown.

    Raises
    ------
    LogError
        If the folder has no readable log.
    """
    start = monotonic()
    log = open_log(table)
    commits = log.last - log.first + 1
    assumed: tuple[str, ...] = ASSUMED
    verdicts: dict[str, Verdict] = {}
    files = 0
    try:
        seen = _Seen(log, budget or Budget())
        files = seen.files
        for spec in levels:
            verdicts[spec.name] = _judge(seen, spec)
    except Limit as limit:
        read = f"; {limit.examined:,} of {commits:,} commits were read until then"
        why = Unknown(f"{limit}{read if limit.examined else ''}")
        verdicts |= {spec.name: why for spec in levels if spec.name not in verdicts}
    if log.base is not None:
        assumed = (*assumed, f"the commits to version {log.first - 1} are not judged")
    titles = {spec.name: spec.title for spec in levels}
    took = monotonic() - start
    return HistoryVerdicts(str(table), commits, files, verdicts, took, assumed, titles=titles)


def only_forbids_cycles(spec: Spec) -> bool:
    """Return whether a spec only forbids cycles of dependencies.

    >>> from isolitmus.specs.files.spec_catalogue import level, protocol
    >>> only_forbids_cycles(level("write-serializable"))
    True
    >>> only_forbids_cycles(protocol("delta-serializable"))
    False
    """
    return is_increasing(spec) and all(
        not _inverse(axiom.expr, spec) and (axiom.test != "empty" or _of_the_aborted(axiom.expr))
        for axiom in spec.axioms
    )


def _inverse(expr: CatExpr, spec: Spec) -> bool:
    """Return whether an expression contains an inverse, with its definitions unfolded."""
    match expr:
        case Name(name):
            return name in spec.definitions and _inverse(spec.definitions[name], spec)
        case Binary(_, left, right):
            return _inverse(left, spec) or _inverse(right, spec)
        case Unary(op, operand):
            return op == "^-1" or _inverse(operand, spec)
        case Bracket():
            return False


def _of_the_aborted(expr: CatExpr) -> bool:
    """Return whether an expression begins with ``[Aborted]``, which is empty in a log."""
    while isinstance(expr, Binary) and expr.op == ";":
        expr = expr.left
    return expr == Bracket(Name("Aborted"))


def _judge(seen: _Seen, spec: Spec) -> Verdict:
    """Return the verdict of a level on a log, from the dependency graphs of its stretches."""
    log = seen.log
    lone, _ = (
        dependency_frames(seen.commits(log.first, log.first))
        if log.first <= log.last
        else dependency_frames([])
    )
    lacking = missing_names(lone, spec)
    if lacking:
        return Needs(lacking)
    if seen.broken:
        return Unknown(f"the table's versions are not what its commits say: {seen.broken}")
    stretches = seen.stretches()
    if not only_forbids_cycles(spec) or isinstance(judge(lone, spec), Forbidden):
        if log.last - log.first >= MOST or not is_increasing(spec):
            return Unknown(f"of a log this level is asked only of up to {MOST} commits as a whole")
        stretches = [_Stretch(log.first, log.last, [])]
    reasons = list(seen.reasons)
    orders: dict[int, tuple[int, tuple[str, ...]]] = {}
    maybe: list[str] = []
    for stretch in stretches:
        seen.budget.check()
        if stretch.last - stretch.first >= MOST:
            for first, last in stretch.certain:
                if last - first < MOST:
                    seen.budget.check()
                    verdict = judge(dependency_frames(seen.commits(first, last))[0], spec)
                    if isinstance(verdict, Forbidden):
                        return verdict
            reasons.append(
                f"versions {stretch.first} to {stretch.last} overlap one another; up to {MOST}"
                " commits are judged together"
            )
            continue
        certain, possible = dependency_frames(seen.commits(stretch.first, stretch.last))
        verdict = judge(certain, spec)
        if isinstance(verdict, Forbidden):
            return verdict
        verdict = judge(possible, spec)
        if isinstance(verdict, Forbidden):
            maybe.append(_maybe(verdict))
        elif isinstance(verdict, Allowed):
            orders[stretch.first] = stretch.last, verdict.witness
    if maybe:
        places = "one place" if len(maybe) == 1 else f"{len(maybe):,} places"
        reasons.insert(0, f"in {places} the log does not exclude a violation: {maybe[0]}")
    if reasons:
        return Unknown("; ".join(reasons))
    return Allowed(_order(log, orders))


def _maybe(verdict: Forbidden) -> str:
    *steps, _ = render(verdict.violations[0]).splitlines()
    return ", ".join(steps)


def _order(log: DeltaLog, stretches: Mapping[int, tuple[int, tuple[str, ...]]]) -> tuple[str, ...]:
    """Return the order of the log, with the serial order of each range in its place."""
    if log.last - log.first >= WITNESS:
        return ()
    order: list[str] = []
    version = log.first
    while version <= log.last:
        last, names = stretches.get(version, (version, (f"version {version}",)))
        order += names
        version = last + 1
    return tuple(name.replace("version ", "v") for name in order)
