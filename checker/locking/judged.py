"""A litmus test under way whose run is to be judged: which states are one for frames and for serial orders.

A frame knows times by what came before what: whether a version was written, committed or undone when a scan came past
a place, when its snapshot was taken, or when another committed. Two ways that agree on these, on who holds and wants
which locks, and on what each transaction was shown have the same frames at their ends, however they go on.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import stages
from isolitmus.checker.locking.protocol_rules import rules_of
from isolitmus.checker.locking.simulation import LitmusUnderWay
from isolitmus.checker.locking.step_orders import shown_by
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from isolitmus.checker.locking.row_versions import Stored
    from isolitmus.checker.locking.scans import Trace
    from isolitmus.checker.locking.simulation import SessionUnderWay
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

__all__ = ["JudgedWalk", "judged_walks"]


def judged_walks(litmus: Litmus, protocol: Spec | None) -> Callable[[], JudgedWalk]:
    """What begins a walk through a litmus test, as often as it is called."""
    database = stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    return lambda: JudgedWalk(litmus, database, rules)


class JudgedWalk(LitmusUnderWay):
    """A litmus test under way by steps that are chosen one by one (``model.format.Stepwise``)."""

    def state(self, *, judged: bool) -> Hashable:
        """All that what comes next depends on; ``judged``: and all that frames and serial orders depend on."""
        locks, sessions = self.work.locks, self.sessions.values()
        stored = [row for rows in self.work.store.rows.values() for row in rows]
        times = sorted(set(self._times(stored))) if judged else []
        rows = tuple(_row(row, times) for row in stored)
        ended = tuple((event.name, event.aborted) for event in self.events) if judged else ()
        return (
            rows,
            tuple(_session(session, times) for session in sessions),
            frozenset(locks.held.items()),
            locks.asked,
            ended,
            self.remembered(),
        )

    def _times(self, stored: list[Stored]) -> Iterator[int]:
        """The times that others are compared with."""
        for row in stored:
            yield from (v.committed for v in row.versions if v.committed is not None)
        for session in self.sessions.values():
            yield from session.transaction.moments
            for trace in session.transaction.traces:
                yield trace.began
                yield from (at for _, at in trace.passed)
                yield from (visit.at for visit in trace.visits)
                yield from trace.again.values()


def _row(row: Stored, times: list[int]) -> Hashable:
    """A row with its versions, each with what came before it was written, committed and undone."""

    def before(time: int | None) -> int | None:
        return None if time is None else bisect_left(times, time)

    return (
        row.table,
        row.id,
        *(
            (v.values, v.writer, before(v.written), before(v.committed), before(v.undone))
            for v in row.versions
        ),
    )


def _session(session: SessionUnderWay, times: list[int]) -> Hashable:
    """How far a transaction has come, what it has still to do, and what it was shown when."""
    one = session.transaction
    seen = tuple(_trace(trace, times) for trace in one.traces) if times else ()
    moments = tuple(bisect_left(times, moment) for moment in one.moments) if times else ()
    steps = tuple((step.action, step.number) for step in session.steps)
    return session.ended, session.wants, steps, tuple(map(shown_by, session.came)), moments, seen


def _trace(trace: Trace, times: list[int]) -> Hashable:
    """What a scan did, and when."""

    def rank(time: int) -> int:
        return bisect_left(times, time)

    return (
        trace.statement,
        rank(trace.began),
        tuple((v.row.id, v.row.versions.index(v.version), v.position, rank(v.at)) for v in trace.visits),
        tuple((place, rank(at)) for place, at in trace.passed),
        tuple((row, rank(at)) for row, at in trace.again.items()),
    )  # fmt: skip
