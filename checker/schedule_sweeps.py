"""Sweeps where candidates are schedules: each carried out under each protocol, and judged by each level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.counting.tally import Tallies
from isolitmus.checker.reading.admission import admission
from isolitmus.checker.running.serial import ModelExecutor, gives, unexplained
from isolitmus.checker.searching.recheck import recheck_candidate
from isolitmus.checker.searching.schedule_search import carried_out_under
from isolitmus.checker.searching.schedules import Scheduled, casts, schedules_of
from isolitmus.model.errors import Ended
from isolitmus.specs.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.checker.counting.tally import Tally
    from isolitmus.checker.counting.work import Work
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
            executor = ModelExecutor(Scheduled(cast, next(schedules_of(cast.stops))).litmus())
            for order in schedules_of(cast.stops):
                budget.check()
                count.one(Scheduled(cast, order), executor)
            if progress is not None:
                progress(count.tallies.candidates)
    except (Ended, MemoryError) as end:
        ended = str(end) or "memory was used up"
    return count.tallies, count.files(), count.beyond, ended


class _ScheduleCount:
    """The counts so far, and the first of what each protocol admits and each level forbids."""

    def __init__(self, protocols: Sequence[Spec], levels: Sequence[Spec]) -> None:
        self.protocols, self.levels = protocols, levels
        self.tallies = Tallies.none([p.name for p in protocols], [s.name for s in levels])
        self.admits = {p.name: admission(p) for p in protocols}
        self.permits = {s.name: admission(s) for s in levels}
        self.beyond = 0
        self.first: dict[tuple[str, str], tuple[Scheduled, Spec, Spec]] = {}

    def one(self, candidate: Scheduled, executor: ModelExecutor) -> None:
        """Count one."""
        litmus = candidate.litmus()
        executions = [carried_out_under(litmus, protocol) for protocol in self.protocols]
        if None in executions:
            self.beyond += 1
            return
        self.tallies.candidates += 1
        for protocol, execution in zip(self.protocols, executions, strict=True):
            assert execution is not None
            if any(event.aborted for event in execution.events):
                continue
            seen = format_named(litmus.format).frame(execution.events, reasons=False)
            if not self.admits[protocol.name](seen):
                continue
            tally = self.tallies.of[protocol.name]
            tally.admitted += 1
            _explain(execution, executor, tally)
            for level in self.levels:
                if not self.permits[level.name](seen):
                    tally.forbidden[level.name] += 1
                    self.first.setdefault((protocol.name, level.name), (candidate, protocol, level))

    def files(self) -> dict[tuple[str, str], Litmus]:
        """The first of each as a litmus test, judged anew."""
        return {
            key: recheck_candidate(found, a, b, unexplained=False)[0]
            for key, (found, a, b) in self.first.items()
        }


def _explain(execution: Execution, executor: ModelExecutor, tally: Tally) -> None:
    """Count it if no serial order of the writers gives some version, and if that of their commits does not give the last."""
    writers = sorted(
        (e for e in execution.events if e.version is not None), key=lambda e: e.commits
    )
    names = tuple(event.name for event in writers)
    versions = [{n: t.rows() for n, t in state.items()} for state in execution.states]
    so_far = [names[:k] for k in range(len(versions))]
    tally.unexplained += bool(unexplained(executor, so_far, versions))
    tally.not_log_order += not gives(executor, names, versions[-1])
