"""Sweeps where candidates are schedules: each carried out under each protocol, and judged by each level."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.execution.serial_orders import ModelExecutor, gives, unexplained
from isolitmus.checker.judge.compiled_semantics import admission
from isolitmus.checker.sweeps.tally import Tallies
from isolitmus.checker.universes.cast_orders import judged_orders
from isolitmus.checker.universes.recheck import recheck_candidate
from isolitmus.checker.universes.schedules import Scheduled, casts
from isolitmus.model.errors import Ended
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.universes.schedules import Cast
    from isolitmus.model.budget import Budget
    from isolitmus.model.execution import Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

__all__ = ["sweep_schedules"]


def sweep_schedules(
    work: Work, budget: Budget, progress: Callable[[int], None] | None
) -> tuple[Tallies, Mapping[tuple[str, str], Litmus], int, str | None]:
    """Count every schedule of a scope with so many transactions, readers among them: the tallies, the first of what each
    protocol admits and each level forbids, judged anew, how many are none since a reader stops after its end, and what
    ended it before all were counted, if something did.
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
        self.admits = {p.name: admission(p) for p in protocols}
        self.permits = {s.name: admission(s) for s in levels}
        self.beyond = 0
        self.first: dict[tuple[str, str], tuple[Scheduled, Spec, Spec]] = {}

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
                    self.admitted(protocol, run, ways.number, Scheduled(cast, ways.path))

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

    def admitted(self, protocol: Spec, run: _JudgedRun, number: int, first: Scheduled) -> None:
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
    """Whether no serial order of the writers gives some version, and whether that of their commits does not give the last."""
    writers = sorted(
        (e for e in execution.events if e.version is not None), key=lambda e: e.commits
    )
    names = tuple(event.name for event in writers)
    versions = [{n: t.rows() for n, t in state.items()} for state in execution.states]
    so_far = [names[:k] for k in range(len(versions))]
    return (
        bool(unexplained(executor, so_far, versions)),
        not gives(executor, names, versions[-1]),
    )
