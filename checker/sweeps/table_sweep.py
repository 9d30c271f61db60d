"""The verb ``sweep``, of candidates of a scope or of schedules.

The verb ``sweep``: every candidate of a scope, counted exactly under protocols and levels.

Sweeps where candidates are schedules: each carried out under each protocol, and judged by each
level.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.execution.commit_loop import initial_database
from isolitmus.checker.execution.serial_orders import (
    ModelExecutor,
    is_serial_order,
    unexplained_versions,
)
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.sweeps.shard_runner import Work, count_shards, make_kernel, work_parts
from isolitmus.checker.sweeps.tally import Tallies, Tally, count_candidates, make_shards
from isolitmus.checker.universes.recheck import recheck_candidate
from isolitmus.checker.universes.schedules import ScheduledCandidate, casts, judged_orders
from isolitmus.checker.universes.tables import candidate, of_format
from isolitmus.model.budget import Budget
from isolitmus.model.display import TextResult, about_duration, count_of
from isolitmus.model.errors import Ended, IsolitmusError, LitmusError
from isolitmus.model.records import Records, Tabular
from isolitmus.model.scope import LARGEST
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.catalogue import spec as named
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.sweeps.tally import FailedStatement, First
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.scope import Scope

    Progress = Callable[[int], None]
    from collections.abc import Callable, Mapping

    from isolitmus.checker.universes.schedules import Cast
    from isolitmus.model.execution import Execution
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = [
    "LIMIT",
    "Sweep",
    "candidates_in",
    "example",
    "finish_sweep",
    "sweep",
    "sweep_schedules",
    "sweep_work",
    "tally_sweep",
]

LIMIT = 20_000_000
"""The most candidates that are swept unless more are asked for."""
FEW = 100_000
"""So many candidates are counted before other processes would have started."""
SAMPLE = 3.0
"""Seconds for which a part of a sweep is counted, to say how long all of it would take."""
PACE = 5
"""The most transactions of that part: one shard of more may take minutes."""


@dataclass(frozen=True, slots=True, repr=False)
class Sweep(TextResult, Tabular):
    """The counts of a scope's candidates with so many transactions."""

    scope: str
    """The name of the scope."""
    transactions: int
    """How many each candidate has."""
    candidates: int
    """How many there are."""
    protocols: dict[str, Tally]
    """The counts, by protocol."""
    smallest: dict[tuple[str, str], Litmus]
    """The smallest that a protocol admits and a level forbids, by both their names."""
    seconds: float
    """What it took."""
    failed: int = 0
    """Those with a statement that fails at run time after commits that some protocol admits; none
    is admitted.
    """
    failure: FailedStatement | None = None
    """The first such statement."""
    counted: int = 0
    """How many were counted."""
    ended: str | None = None
    """What ended it before all were counted, if something did: then the counts are those of the
    counted ones.
    """
    at_most: tuple[str, ...] = ()
    """The protocols that admit at most what is counted (``at-most``)."""

    @property
    def records(self) -> Records:
        """What each protocol admits, and how much of that each level forbids: a row for both their
        names.
        """
        whole = (self.scope, self.transactions, self.candidates, self.counted)
        rows = (
            (*whole, name, of.admitted, of.silent, of.unexplained, of.not_log_order, level, number,
             of.for_conflicts_alone.get(level))
            for name, of in self.protocols.items()
            for level, number in of.forbidden.items()
        )  # fmt: skip
        return Records(
            ("scope", "transactions", "candidates", "counted", "protocol", "admitted", "silent", "unexplained",
             "not_log_order", "level", "forbidden", "for_conflicts_alone"),
            tuple(rows),
        )  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """The counts as docs/interface.md, 6, has them."""
        return {
            "scope": self.scope,
            "transactions": self.transactions,
            "candidates": self.candidates,
            "protocols": {
                name: {
                    "admitted": counts.admitted,
                    "silent": counts.silent,
                    "levels": {
                        level: {
                            "forbidden": number,
                            "smallest": self._file(name, level) if number else None,
                        }
                        for level, number in counts.forbidden.items()
                    },
                    "unexplained": counts.unexplained,
                    "not_log_order": counts.not_log_order,
                    "for_conflicts_alone": counts.for_conflicts_alone,
                }
                for name, counts in self.protocols.items()
            },
            "failed": self.failed,
            "counted": self.counted,
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }

    def _file(self, protocol: str, level: str) -> str:
        """The file of the smallest."""
        from isolitmus.checker.universes.recheck import with_expectations

        return with_expectations(self.smallest[protocol, level], protocol, level).text


def sweep(
    scope: Scope | NameOrPath,
    transactions: int,
    *,
    protocols: Sequence[SpecLike] | None = None,
    levels: Sequence[SpecLike] | None = None,
    limit: int = LIMIT,
    cores: int = 1,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Count every candidate of the scope with so many ``transactions``, all of them writers; where
    candidates are schedules, readers among them.

    The scope, ``protocols`` and ``levels`` may be names or paths of files; by default they are the
    scope's own, else Delta's two levels and what they promise. With more ``cores`` in so many
    processes, which import the program's main module anew. Once the ``budget`` (default: three
    quarters of the memory that is free) is spent, what was counted until then. IsolitmusError if
    there are more than ``limit`` candidates, with how many there are and about how long they would
    take.

    >>> done = sweep("two-partitions", 2)
    >>> done.candidates, done.protocols["delta-serializable"].forbidden["log-serializable"]
    (196, 0)
    """
    start = monotonic()
    scope = named_scope(scope)
    work = sweep_work(
        scope, transactions, protocols=protocols, levels=levels, limit=limit, cores=cores
    )
    if format_named(scope.format).carry_out is not None:
        counts, smallest, beyond, ended = sweep_schedules(work, budget or Budget(), progress)
        return Sweep(
            scope.title, transactions, candidates_in(scope, transactions) - beyond, counts.of, dict(smallest),
            monotonic() - start, counted=counts.candidates, ended=ended,
        )  # fmt: skip
    total, ended = nothing(work), None
    try:
        tally(work, total, budget or Budget(), cores, progress)
    except (Ended, MemoryError) as end:
        ended = str(end) or "memory was used up"
    return finish_sweep(work, total, monotonic() - start, ended)


def tally_sweep(work: Work, budget: Budget | None = None) -> Tallies:
    """What a sweep counts, without its first examples as litmus tests. A Limit once the budget is
    spent.
    """
    total = nothing(work)
    tally(work, total, budget or Budget())
    return total


def nothing(work: Work) -> Tallies:
    """The tallies of a sweep before anything is counted."""
    return Tallies.none([p.name for p in work.protocols], [s.name for s in work.levels])


def tally(
    work: Work, total: Tallies, budget: Budget, cores: int = 1, progress: Progress | None = None
) -> None:
    """Add what a sweep counts; if it is Ended, what was counted until then is there."""
    cut = work_parts(work)
    processes = 1 if cut.candidates < FEW else min(cores, len(cut))
    for _, tallies in count_shards(work, range(len(cut)), processes, budget):
        tallies.candidates = cut.each
        total.add(tallies)
        if progress is not None:
            progress(total.candidates)


def sweep_work(
    scope: Scope,
    transactions: int,
    *,
    protocols: Sequence[SpecLike] | None = None,
    levels: Sequence[SpecLike] | None = None,
    limit: int = LIMIT,
    cores: int = 1,
) -> Work:
    """What a sweep counts. IsolitmusError for what it cannot, or for more than ``limit``
    candidates.
    """
    if not 1 <= transactions <= LARGEST:
        raise IsolitmusError(
            f"{transactions:,} transactions requested; a sweep supports 1 to {LARGEST}"
        )
    usual = format_named(scope.format)
    asked = [named(name) for name in protocols or scope.protocols or usual.protocols]
    judged = [named(name) for name in levels or scope.levels or usual.levels]
    for what, given in (("protocol", asked), ("level", judged)):
        if not given:
            raise IsolitmusError(
                f"scope {scope.name} names no {what}, and format {scope.format} has no default;"
                " name one"
            )
    form = of_format(scope, *asked, *judged)
    for spec in (*asked, *judged):
        if form.carry_out is None and needs_reads(spec):
            raise IsolitmusError(f"{spec.name} needs single reads, which a sweep does not support")
        lacking = sorted(spec.needs.difference(form.terms))
        if lacking:
            raise IsolitmusError(
                f"{spec.name} needs {', '.join(lacking)}, which the transactions of a sweep do not"
                " have"
            )
    for init in scope.inits:
        try:
            initial_database(form, scope.tables, init)
        except LitmusError as error:
            raise LitmusError(f"scope {scope.name}: {error}") from None
    work = Work(scope, transactions, tuple(asked), tuple(judged))
    total = candidates_in(scope, transactions)
    if total > limit:
        pace = ""
        if form.carry_out is None:
            seconds = about_duration(_estimate(work) / cores)
            pace = f" on {cores} core{'s' if cores > 1 else ''} this takes about {seconds};"
        raise IsolitmusError(
            f"scope {scope.name} has {count_of(total, 'candidate')} with"
            f" {count_of(transactions, 'transaction')}, more than the limit of {limit:,};{pace} to"
            f" run it, add --limit {total}"
        )
    return work


def candidates_in(scope: Scope, transactions: int) -> int:
    """How many candidates of a scope have so many transactions.

    >>> from isolitmus.specs import scope
    >>> candidates_in(scope("table"), 3), candidates_in(scope("scans"), 2)
    (10368, 225)
    """
    if format_named(scope.format).carry_out is None:
        return count_candidates(scope, transactions)
    return sum(cast.size for cast in casts(scope, transactions))


def _estimate(work: Work) -> float:
    """How many seconds a sweep would take about on one core, from a part of it once that is warm;
    of one with many transactions, at the pace of some fewer.
    """
    few = work._replace(n=min(work.n, PACE))
    cut = make_shards(few.scope, few.n, LIMIT // 1000)
    own = make_kernel(few)
    warm, done = 0.0, 0
    start = monotonic()
    for index in range(len(cut) // 3, len(cut)):
        own.count(cut[index])
        passed = monotonic() - start
        if passed < SAMPLE / 2:
            warm = passed
            continue
        done += 1
        if passed > SAMPLE:
            break
    return (
        (monotonic() - start - warm)
        / max(done, 1)
        / cut.each
        * count_candidates(work.scope, work.n)
    )


def finish_sweep(work: Work, total: Tallies, seconds: float, ended: str | None = None) -> Sweep:
    """A sweep with its counts, the first of what each level forbids as litmus tests, judged
    anew.
    """
    smallest = {
        (name, level): example(work, found, name, level)
        for name, tally in total.of.items()
        for level, found in tally.first.items()
    }
    return Sweep(
        work.scope.title,
        work.n,
        count_candidates(work.scope, work.n),
        total.of,
        smallest,
        seconds,
        total.failed,
        total.failure,
        total.candidates,
        ended,
        tuple(spec.name for spec in work.protocols if spec.at_most),
    )


def example(work: Work, found: First, protocol: str, level: str) -> Litmus:
    """What a sweep has found first of what the one admits and the other forbids, judged anew."""
    specs = {spec.name: spec for spec in (*work.protocols, *work.levels)}
    init, _, choices = found
    made = candidate(work.scope, work.scope.inits[init], choices, ())
    assert made is not None
    return recheck_candidate(made, specs[protocol], specs[level], unexplained=False)[0]


def sweep_schedules(
    work: Work, budget: Budget, progress: Callable[[int], None] | None
) -> tuple[Tallies, Mapping[tuple[str, str], Litmus], int, str | None]:
    """Count every schedule of a scope with so many transactions, readers among them: the tallies,
    the first of what each protocol admits and each level forbids, judged anew, how many are none
    since a reader stops after its end, and what ended it before all were counted, if something did.
    A protocol admits those in which all commit.
    """
    count = _ScheduleCount(work.protocols, work.levels)
    ended = None
    try:
        for cast in casts(work.scope, work.n):
            count.all_of(cast, budget.check)
            if progress is not None:
                progress(count.tallies.candidates)
    except (Ended, MemoryError) as end:
        ended = str(end) or "memory was used up"
    return count.tallies, count.files(), count.beyond, ended


class _JudgedRun(NamedTuple):
    """What a schedule comes to under a protocol that admits it."""

    unexplained: bool
    """Whether no serial order of the writers gives some version."""
    not_log_order: bool
    """Whether that of their commits does not give the last."""
    forbidden: frozenset[str]
    """The levels that forbid it."""


class _ScheduleCount:
    """The counts so far, and the first of what each protocol admits and each level forbids."""

    def __init__(self, protocols: Sequence[Spec], levels: Sequence[Spec]) -> None:
        self.protocols, self.levels = protocols, levels
        self.tallies = Tallies.none([p.name for p in protocols], [s.name for s in levels])
        self.admits = {p.name: compile_spec(p) for p in protocols}
        self.permits = {s.name: compile_spec(s) for s in levels}
        self.beyond = 0
        self.first: dict[tuple[str, str], tuple[ScheduledCandidate, Spec, Spec]] = {}

    def all_of(self, cast: Cast, check: Callable[[], None]) -> None:
        """Count all schedules of some transactions."""
        executors: dict[tuple[str, ...], ModelExecutor] = {}

        def judge(litmus: Litmus, executions: Sequence[Execution]) -> tuple[_JudgedRun | None, ...]:
            executor = executors.setdefault(cast.names, ModelExecutor(litmus))
            return tuple(
                self.judged(protocol, execution, executor)
                for protocol, execution in zip(self.protocols, executions, strict=True)
            )

        orders = judged_orders(cast, self.protocols, judge, check)
        if (none := orders.pop(None, None)) is not None:
            self.beyond += none.number
        for runs, ways in sorted(orders.items(), key=lambda one: one[1].path):
            assert runs is not None
            self.tallies.candidates += ways.number
            for protocol, run in zip(self.protocols, runs, strict=True):
                if run is not None:
                    self.admitted(protocol, run, ways.number, ScheduledCandidate(cast, ways.path))

    def judged(
        self, protocol: Spec, execution: Execution, executor: ModelExecutor
    ) -> _JudgedRun | None:
        """What comes out under a protocol; None if that does not admit it."""
        if any(event.aborted for event in execution.events):
            return None
        seen = format_named(execution.format).frame(execution.events, reasons=False)
        if not self.admits[protocol.name](seen):
            return None
        forbidden = {name for name, permits in self.permits.items() if not permits(seen)}
        return _JudgedRun(*_unlike(execution, executor), frozenset(forbidden))

    def admitted(
        self, protocol: Spec, run: _JudgedRun, number: int, first: ScheduledCandidate
    ) -> None:
        """Count so many schedules that a protocol admits, the first of which is one."""
        tally = self.tallies.of[protocol.name]
        tally.admitted += number
        tally.unexplained += number * run.unexplained
        tally.not_log_order += number * run.not_log_order
        for level in self.levels:
            if level.name in run.forbidden:
                tally.forbidden[level.name] += number
                self.first.setdefault((protocol.name, level.name), (first, protocol, level))

    def files(self) -> dict[tuple[str, str], Litmus]:
        """The first of each as a litmus test, judged anew."""
        return {
            key: recheck_candidate(found, a, b, unexplained=False)[0]
            for key, (found, a, b) in self.first.items()
        }


def _unlike(execution: Execution, executor: ModelExecutor) -> tuple[bool, bool]:
    """Whether no serial order of the writers gives some version, and whether that of their commits
    does not give the last.
    """
    writers = sorted(
        (e for e in execution.events if e.version is not None), key=lambda e: e.commits
    )
    names = tuple(event.name for event in writers)
    versions = [{n: t.rows() for n, t in state.items()} for state in execution.states]
    so_far = [names[:k] for k in range(len(versions))]
    return (
        bool(unexplained_versions(executor, so_far, versions)),
        not is_serial_order(executor, names, versions[-1]),
    )
