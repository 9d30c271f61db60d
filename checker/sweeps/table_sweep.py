"""Sweep: exact counts of all candidates of a scope, or of all schedules, by protocol and level.

Candidates of most formats are paths of commits and are counted by the kernel. Where candidates are
schedules, each is executed under each protocol and judged by each level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from isolitmus.checker.universes.exercised_names import (
    NONE_OPEN,
    ExerciseRecord,
    Unexercised,
)
from isolitmus.checker.universes.recheck import recheck_candidate
from isolitmus.checker.universes.schedules import ScheduledCandidate, casts, judged_orders
from isolitmus.checker.universes.scope_vocabulary import PAIR, watch_proposals, watch_scope
from isolitmus.checker.universes.tables import candidate, of_format
from isolitmus.model.budget import Budget
from isolitmus.model.display import TextResult, about_duration, count_of
from isolitmus.model.errors import Ended, IsolitmusError, LitmusError
from isolitmus.model.records import Records, Tabular
from isolitmus.model.scope import LARGEST
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.spec_catalogue import spec as named
from isolitmus.specs.registries import format_named

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

LIMIT = 20_000_000
"""Maximal number of candidates of a sweep, by default."""
FEW = 100_000
"""Number of candidates below which a sweep uses one process."""
SAMPLE = 3.0
"""Seconds spent on a part of a sweep to estimate the time of all of it."""
MOST_ASKED = 3
"""Maximal number of transactions of which a solver is asked what they exercise."""
PACE = 5
"""Maximal number of transactions of that part; a shard of more may take minutes."""


@dataclass(frozen=True, slots=True, repr=False)
class Sweep(TextResult, Tabular):
    """Counts of the candidates of a scope with n transactions."""

    scope: str
    """Name of the scope."""
    transactions: int
    """Number of transactions of each candidate."""
    candidates: int
    """Number of candidates."""
    protocols: dict[str, Tally]
    """Counts by protocol."""
    smallest: dict[tuple[str, str], Litmus]
    """Smallest candidate that a protocol admits and a level forbids, by the names of both."""
    seconds: float
    failed: int = 0
    """Number of candidates with a statement that fails at run time after commits that some protocol
    admits; none of them is admitted.
    """
    failure: FailedStatement | None = None
    """The first such statement."""
    counted: int = 0
    """Number of candidates counted."""
    ended: str | None = None
    """Reason why the sweep ended early; counts are then of the counted candidates. None if not."""
    at_most: tuple[str, ...] = ()
    """Protocols whose admitted count is an upper bound (``at-most``)."""
    unexercised: Unexercised = NONE_OPEN
    """Parts of the protocols and levels that no candidate made non-empty."""

    @property
    def records(self) -> Records:
        """Admitted and forbidden counts, one row per protocol and level."""
        whole = (self.scope, self.transactions, self.candidates, self.counted)
        rows = (
            (*whole, name, of.admitted, of.silent, of.unexplained, of.not_log_order, level, number,
             of.for_conflicts_alone.get(level))
            for name, of in self.protocols.items()
            for level, number in of.forbidden.items()
        )  # fmt: skip
        return Records(
            ("scope", "transactions", "candidates", "counted", "protocol", "admitted", "silent",
             "unexplained", "not_log_order", "level", "forbidden", "for_conflicts_alone"),
            tuple(rows),
        )  # fmt: skip

    def to_json(self) -> dict[str, object]:
        """Return the counts in the format of docs/interface.md, 6."""
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
            **self.unexercised.to_json(),
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }

    def _file(self, protocol: str, level: str) -> str:
        """Return the smallest candidate as the text of a litmus file."""
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
    """Count all candidates of a scope with n transactions.

    All transactions are writers; where candidates are schedules, there are also readers.

    Parameters
    ----------
    scope : Scope, name or path
        Statements and initial tables.
    transactions : int
        Number of transactions of each candidate.
    protocols, levels : sequence of specs, names or paths, optional
        Default: those of the scope, else Delta's two levels and their promises.
    limit : int
        Maximal number of candidates.
    cores : int
        Number of processes, which import the main module of the program anew.
    budget : Budget, optional
        Limits of time and memory (default: three quarters of the free memory). Once spent, the
        result has what was counted until then.
    progress : callable, optional
        Called with the number of candidates counted so far.

    Returns
    -------
    Sweep
        Counts, and the smallest example of each pair of protocol and level.

    Raises
    ------
    IsolitmusError
        If there are more than ``limit`` candidates; the message has their number and a time
        estimate.

    Examples
    --------
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
        record = ExerciseRecord(*work.protocols, *work.levels)
        counts, smallest, beyond, ended = sweep_schedules(
            work, budget or Budget(), progress, record
        )
        return Sweep(
            scope.title, transactions, candidates_in(scope, transactions) - beyond, counts.of,
            dict(smallest), monotonic() - start, counted=counts.candidates, ended=ended,
            unexercised=record.result(unknown=ended is not None),
        )  # fmt: skip
    total, ended = nothing(work), None
    try:
        tally(work, total, budget or Budget(), cores, progress)
    except (Ended, MemoryError) as end:
        ended = str(end) or "memory was used up"
    return finish_sweep(work, total, monotonic() - start, ended)


def tally_sweep(work: Work, budget: Budget | None = None) -> Tallies:
    """Return the counts of a sweep, without its smallest candidates as litmus tests.

    Raises
    ------
    Limit
        If the budget is spent.
    """
    total = nothing(work)
    tally(work, total, budget or Budget())
    return total


def nothing(work: Work) -> Tallies:
    """Return the tallies of a sweep before anything is counted."""
    return Tallies.none([p.name for p in work.protocols], [s.name for s in work.levels])


def tally(
    work: Work, total: Tallies, budget: Budget, cores: int = 1, progress: Progress | None = None
) -> None:
    """Add the counts of a sweep to ``total``.

    If Ended is raised, ``total`` has what was counted until then.
    """
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
    """Return the specification of a sweep; parameters as in `sweep`.

    Raises
    ------
    IsolitmusError
        If the sweep does not support it, or for more than ``limit`` candidates.
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
    """Return the number of candidates of a scope with n transactions.

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> candidates_in(scope("table"), 3), candidates_in(scope("scans"), 2)
    (10368, 225)
    """
    if format_named(scope.format).carry_out is None:
        return count_candidates(scope, transactions)
    return sum(cast.size for cast in casts(scope, transactions))


def _estimate(work: Work) -> float:
    """Return the estimated seconds of a sweep on one core.

    A part of it is counted, once memos are warm; at most PACE transactions are used for the pace.
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
    """Return a sweep with its counts and its smallest candidates as litmus tests, judged again."""
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
        _unexercised(work) if ended is None else NONE_OPEN,
    )


def _unexercised(work: Work) -> Unexercised:
    """Return the parts of the specs that no candidate of a sweep makes non-empty.

    Of up to MOST_ASKED transactions the solver is asked, if it can search the scope exactly;
    otherwise the answer is about up to PAIR transactions, and says so.
    """
    record = ExerciseRecord(*work.protocols, *work.levels)
    writers = replace(work.scope, readers=())
    watch_scope(record, writers, min(PAIR, work.n), lambda: None)
    if work.n <= PAIR or not record.open:
        return record.result()
    make_solver = format_named(work.scope.format).solver
    solver = None if make_solver is None else make_solver()
    asked = *work.protocols, *work.levels
    exact = solver is not None and solver.unsupported_scope(writers, *asked) is None
    if solver is None or not exact or work.n > MOST_ASKED:
        pairs = f"no candidate with up to {PAIR} transactions has such a transaction or pair"
        return record.result(among=pairs)
    watch_proposals(record, solver, writers, [work.n], Budget())
    return record.result()


def example(work: Work, found: First, protocol: str, level: str) -> Litmus:
    """Return the first candidate that a protocol admits and a level forbids, judged again."""
    specs = {spec.name: spec for spec in (*work.protocols, *work.levels)}
    init, _, choices = found
    made = candidate(work.scope, work.scope.inits[init], choices, ())
    assert made is not None
    return recheck_candidate(made, specs[protocol], specs[level], unexplained=False)[0]


def sweep_schedules(
    work: Work,
    budget: Budget,
    progress: Callable[[int], None] | None,
    record: ExerciseRecord | None = None,
) -> tuple[Tallies, Mapping[tuple[str, str], Litmus], int, str | None]:
    """Count all schedules of a scope with n transactions, readers among them.

    A protocol admits the schedules in which all transactions commit. A ``record`` looks at the
    graphs of all executions.

    Returns
    -------
    tallies : Tallies
        Counts by protocol.
    smallest : mapping of (str, str) to Litmus
        First schedule that a protocol admits and a level forbids, judged again.
    beyond : int
        Number of schedules that are invalid since a reader stops after its end.
    ended : str or None
        Reason why the sweep ended early.
    """
    count = ScheduleCount(work.protocols, work.levels, record=record)
    ended = None
    try:
        for cast in casts(work.scope, work.n):
            count.all_of(cast, budget.check)
            if progress is not None:
                progress(count.tallies.candidates)
    except (Ended, MemoryError) as end:
        ended = str(end) or "memory was used up"
    return count.tallies, count.files(), count.beyond, ended


class JudgedRun(NamedTuple):
    """Outcome of a schedule under a protocol that admits it."""

    unexplained: bool
    """True if some version is produced by no serial order of the writers."""
    not_log_order: bool
    """True if the commit order does not produce the last version."""
    forbidden: frozenset[str]
    """Levels that forbid it."""


class ScheduleCount:
    """Counts so far, and the first schedule that each protocol admits and each level forbids.

    Parameters
    ----------
    protocols, levels : sequence of Spec
        Specs whose verdicts are counted.
    seen : callable
        Called with each protocol, its outcome, and a schedule that has it, if it admits it.
    record : ExerciseRecord, optional
        Looks at the graph of each execution.
    """

    def __init__(
        self,
        protocols: Sequence[Spec],
        levels: Sequence[Spec],
        seen: Callable[[Spec, JudgedRun, ScheduledCandidate], object] = lambda *_: None,
        *,
        record: ExerciseRecord | None = None,
    ) -> None:
        self.record = record
        self.protocols, self.levels, self.seen = protocols, levels, seen
        self.tallies = Tallies.none([p.name for p in protocols], [s.name for s in levels])
        self.admits = {p.name: compile_spec(p) for p in protocols}
        self.permits = {s.name: compile_spec(s) for s in levels}
        self.beyond = 0
        self.first: dict[tuple[str, str], tuple[ScheduledCandidate, Spec, Spec]] = {}

    def all_of(self, cast: Cast, check: Callable[[], None]) -> None:
        """Count all schedules of a cast."""
        executors: dict[tuple[str, ...], ModelExecutor] = {}

        def judge(litmus: Litmus, executions: Sequence[Execution]) -> tuple[JudgedRun | None, ...]:
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
    ) -> JudgedRun | None:
        """Return the outcome under a protocol; None if the protocol does not admit it."""
        aborts = any(event.aborted for event in execution.events)
        if aborts and (self.record is None or not self.record.open):
            return None
        seen = format_named(execution.format).frame(execution.events, reasons=False)
        if self.record is not None:
            self.record.look(seen)
        if aborts:
            return None
        if not self.admits[protocol.name](seen):
            return None
        forbidden = {name for name, permits in self.permits.items() if not permits(seen)}
        return JudgedRun(*_unlike(execution, executor), frozenset(forbidden))

    def admitted(
        self, protocol: Spec, run: JudgedRun, number: int, first: ScheduledCandidate
    ) -> None:
        """Count ``number`` schedules that a protocol admits; ``first`` is the first of them."""
        self.seen(protocol, run, first)
        tally = self.tallies.of[protocol.name]
        tally.admitted += number
        tally.unexplained += number * run.unexplained
        tally.not_log_order += number * run.not_log_order
        for level in self.levels:
            if level.name in run.forbidden:
                tally.forbidden[level.name] += number
                self.first.setdefault((protocol.name, level.name), (first, protocol, level))

    def files(self) -> dict[tuple[str, str], Litmus]:
        """Return the first schedules as litmus tests, judged again."""
        return {
            key: recheck_candidate(found, a, b, unexplained=False)[0]
            for key, (found, a, b) in self.first.items()
        }


def _unlike(execution: Execution, executor: ModelExecutor) -> tuple[bool, bool]:
    """Return whether some version, and whether the last one, is unexplained.

    The first is by any serial order of the writers, the second by the order of their commits.
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
