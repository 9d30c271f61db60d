"""Execution of litmus tests step by step, in the scheduled order, in all thread orders, or freely.

`FreeWalk` and `JudgedWalk` execute a test by freely chosen steps, whatever its schedule says. Their
``state`` decides which interleavings are followed only once.

The state of `FreeWalk` distinguishes what the final state shows: the rows with their versions,
locks held and requested, and what each transaction has read so far, which alone determines what it
does next.

The state of `JudgedWalk` also distinguishes dependency graphs and serial orders. A graph depends on
the order of events only: whether a version was written, committed or rolled back when a scan passed
a position, when its snapshot was taken, or when another transaction committed. Two walks that agree
on these, on locks, and on what each transaction has read have equal graphs at their ends, however
they continue.

`run_stepwise` executes the schedule of a test. Over heaps, and where versions are appended (rules
``keep heaps``, ``updates append``), transactions that no longer have to wait resume in parallel
threads. Each order of their actions, over heaps lock by lock, else row by row, is executed from the
start; continuations of a state already reached are left out. Two orders are assumed: the
transaction that let the others resume completes its step before they do, and they have acquired
what they waited for before it requests that again.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import initial_stages, observed_run
from isolitmus.databases.locking.final_state import FinalStates, table_rows
from isolitmus.databases.locking.protocol_rules import rules_of
from isolitmus.databases.locking.scans import MatchingRow
from isolitmus.databases.locking.simulation import Simulation
from isolitmus.model.errors import StepBeyond, UndeterminedError, WaitsForEver
from isolitmus.model.run import SeveralRuns
from isolitmus.model.schedule import Schedule, Step
from isolitmus.specs.files.toml_reader import Source
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from isolitmus.databases.locking.protocol_rules import ProtocolRules
    from isolitmus.databases.locking.row_versions import StoredRow
    from isolitmus.databases.locking.scans import ScanTrace
    from isolitmus.databases.locking.simulation import SessionSimulation
    from isolitmus.model.execution import Database, Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

DATED = ("statement", "transaction")
"""Visibility rules that see the state at some time."""


def free_walks(litmus: Litmus, protocol: Spec, ends: FinalStates) -> Callable[[], FreeWalk]:
    """Return a function that starts a walk through a litmus test, to count interleavings."""
    database = initial_stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    return lambda: FreeWalk(litmus, database, rules, ends)


class FreeWalk(Simulation):
    """Litmus test executed by freely chosen steps (``universes.schedules.Walk``)."""

    def __init__(
        self, litmus: Litmus, database: Database, rules: ProtocolRules, ends: FinalStates
    ) -> None:
        super().__init__(litmus, database, rules)
        self.ends = ends
        self.chosen: list[Step | str] = []
        """Steps taken; the name of the transaction while its step is not complete."""

    def go(self, name: str) -> None:
        """Take a transaction's next step."""
        session = self.sessions[name]
        over = session.ran == len(session.statements)
        session.steps.append(
            Step(name, "commit") if over else Step(name, "step", len(session.came) + 1)
        )
        self.chosen.append(name)
        self.wake()
        while single := next(filter(_through, self.sessions.values()), None):
            single.steps.append(Step(single.transaction.name, "commit"))
            self.wake()
        for at, step in enumerate(self.chosen):
            if isinstance(step, str) and not self.sessions[step].steps:
                of = self.sessions[step]
                self.chosen[at] = (
                    Step(step, "both") if of.ended else Step(step, "step", len(of.came))
                )

    @property
    def dated(self) -> bool:
        """True if snapshots are visible, so that commit times matter."""
        return not {self.work.rules.see, self.work.rules.searched}.isdisjoint(DATED)

    def able(self) -> list[str]:
        """Return the transactions that can go on."""
        return [n for n, s in self.sessions.items() if not s.ended and s.wants is None]

    def state(self) -> Hashable:
        """Return all that later steps and the final state depend on."""
        end, versions = self.ends.told(self), bool(self.ends.queries)
        store, locks = self.work.store, self.work.locks
        going = [s for s in self.sessions.values() if not s.ended]
        stored = [row for rows in store.rows.values() for row in rows]
        seen = {m for s in going for m in s.transaction.moments} if self.dated else set()
        moments = {v.committed for row in stored for v in row.versions if v.committed is not None}
        rank = {m: k for k, m in enumerate(sorted(moments | seen)) if self.dated}
        rows = tuple(
            (
                row.table,
                row.id,
                frozenset(row.taken),
                *(
                    (
                        frozenset(k for k, at in v.put.items() if at is None),
                        v.values,
                        v.writer,
                        v.committed is None,
                        rank.get(v.committed or 0),
                        v.undone is None,
                    )
                    for v in row.versions
                ),
            )
            for row in stored
        )
        sessions = tuple(
            (
                end[name]
                if session.ended
                else (
                    session.wants,
                    session.versions if versions else None,
                    tuple(map(rank.get, session.transaction.moments)),
                    tuple(map(step_result, session.came)),
                )
            )
            for name, session in self.sessions.items()
        )
        past = tuple(map(table_rows, self.states)) if versions else ()
        return rows, sessions, self.held, locks.asked, past, self.remembered()

    @property
    def schedule(self) -> Schedule:
        """Schedule of the chosen steps, without those followed by one of the same transaction."""
        steps = [step for step in self.chosen if isinstance(step, Step)]
        kept = [
            step
            for step, after in zip(steps, [*steps[1:], None], strict=True)
            if after is None or after.transaction != step.transaction
        ]
        return Schedule(tuple(kept))


def _through(session: SessionSimulation) -> bool:
    """Return whether a transaction of one statement has completed it and can commit."""
    over = session.ran == len(session.statements) == 1
    return over and not session.ended and session.wants is None and not session.steps


def step_result(step: object) -> object:
    """Return what a step has shown to its transaction.

    For a matching row this is its id, and the index of its version; any other step is returned as
    it is.
    """
    if isinstance(step, MatchingRow):
        return step.row.id, next(k for k, v in enumerate(step.row.versions) if v is step.version)
    return step


def count_switches(path: tuple[str, ...]) -> int:
    """Return the number of switches between transactions in a path."""
    return sum(one != other for one, other in pairwise(path))


def judged_walks(litmus: Litmus, protocol: Spec | None) -> Callable[[], JudgedWalk]:
    """Return a function that starts a walk through a litmus test, for judging its runs."""
    database = initial_stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    return lambda: JudgedWalk(litmus, database, rules)


class JudgedWalk(Simulation):
    """Litmus test executed by freely chosen steps, for judgement (``model.format.Stepwise``)."""

    def state(self, *, judged: bool) -> Hashable:
        """Return all that later steps depend on.

        With ``judged`` also all that dependency graphs and serial orders depend on.
        """
        locks, sessions = self.work.locks, self.sessions.values()
        stored = [row for rows in self.work.store.rows.values() for row in rows]
        times = sorted(set(self._times(stored))) if judged else []
        rows = tuple(_row(row, times) for row in stored)
        ended = tuple((event.name, event.aborted) for event in self.events) if judged else ()
        return (
            rows,
            tuple(_session(session, times) for session in sessions),
            self.held,
            locks.asked,
            ended,
            self.remembered(),
        )

    def _times(self, stored: list[StoredRow]) -> Iterator[int]:
        """Yield the times with which other times are compared."""
        for row in stored:
            yield from (v.committed for v in row.versions if v.committed is not None)
        for session in self.sessions.values():
            yield from session.transaction.moments
            for trace in session.transaction.traces:
                yield trace.began
                yield from (at for _, at in trace.passed)
                yield from (visit.at for visit in trace.visits)
                yield from trace.again.values()


def _row(row: StoredRow, times: list[int]) -> Hashable:
    """Return a row with its versions, and the ranks of their times in `times`."""

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


def _session(session: SessionSimulation, times: list[int]) -> Hashable:
    """Return the progress of a transaction, its pending steps, and what it has read when."""
    one = session.transaction
    seen = tuple(_trace(trace, times) for trace in one.traces) if times else ()
    moments = tuple(bisect_left(times, moment) for moment in one.moments) if times else ()
    steps = tuple((step.action, step.number) for step in session.steps)
    return session.ended, session.wants, steps, tuple(map(step_result, session.came)), moments, seen


def _trace(trace: ScanTrace, times: list[int]) -> Hashable:
    """Return the actions of a scan, with their ranks in `times`."""

    def rank(time: int) -> int:
        return bisect_left(times, time)

    return (
        trace.statement,
        rank(trace.began),
        tuple(
            (v.row.id, v.row.versions.index(v.version), v.position, rank(v.at))
            for v in trace.visits
        ),
        tuple((place, rank(at)) for place, at in trace.passed),
        tuple((row, rank(at)) for row, at in trace.again.items()),
    )


def run_stepwise(litmus: Litmus, protocol: Spec | None) -> Execution:
    """Return the execution of a litmus test under a protocol.

    A step at a row that the scan does not return under the protocol ends the scan.

    Raises
    ------
    StepBeyond
        If the scan does not return that row without any locks either.
    SeveralRuns
        If the result depends on which thread is faster.
    UndeterminedError
        If in some order of threads transactions wait forever.
    """
    database = initial_stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    running = Simulation(litmus, database, rules)
    done = running.execution()
    if running.beyond and protocol is not None:
        # under this protocol scans may return fewer rows
        run_stepwise(litmus, None)
    elif running.beyond:
        file = litmus.path.name if litmus.path is not None else f"{litmus.name}.toml"
        raise StepBeyond(f"{Source(file, litmus.text).place('schedule')}: {running.beyond}")
    if protocol is not None and rules.threads:
        _refuse_raced(litmus, database, protocol, done)
    return done


class _Known(Exception):
    """Raised at a state that another order has reached."""


class _Order:
    """One order of threads: choices as given at first, then the default choice."""

    def __init__(self, begin: tuple[int, ...], known: set[Hashable]) -> None:
        self.begin, self.known = begin, known
        self.chosen: list[int] = []
        self.able: list[tuple[str, ...]] = []

    def choose(self, running: Simulation, able: Sequence[SessionSimulation]) -> int:
        """Return which thread goes on; raise _Known at a state reached before."""
        at = len(self.chosen)
        if at >= len(self.begin):
            state = _state(running, able)
            if state in self.known:
                raise _Known
            self.known.add(state)
        choice = self.begin[at] if at < len(self.begin) else 0
        self.chosen.append(choice)
        self.able.append(tuple(one.transaction.name for one in able))
        return choice


def _refuse_raced(litmus: Litmus, database: Database, protocol: Spec, done: Execution) -> None:
    """Raise SeveralRuns if some order of threads has another result.

    Raises UndeterminedError if in some order transactions wait forever.
    """
    from isolitmus.checker.execution.run_diff import run_differences

    runs = [observed_run(litmus, done, protocol.name)]
    at_once: tuple[str, ...] = ()
    known: set[Hashable] = set()
    left: list[tuple[int, ...]] = [()]
    while left:
        order = _Order(left.pop(), known)
        running = Simulation(litmus, database, rules_of(protocol))
        running.choose = order.choose
        try:
            other = observed_run(litmus, running.execution(), protocol.name)
            if all(run_differences(one, other) for one in runs):
                runs.append(other)
                at_once = at_once or order.able[len(order.begin) - 1]
        except _Known:
            pass
        except WaitsForEver as error:
            names = order.able[len(order.begin) - 1]
            first = names[order.begin[-1]]
            raise UndeterminedError(
                f"{error}, if {first} is the fastest of {' and '.join(names)}"
            ) from None
        left += [
            (*order.chosen[:k], choice)
            for k in range(len(order.begin), len(order.chosen))
            for choice in range(1, len(order.able[k]))
        ]
    if at_once:
        raise SeveralRuns(
            f"{litmus.name}: {' and '.join(at_once)} go on at once, and who of them is faster makes"
            f" a difference: {len(runs)} runs are possible",
            tuple(runs),
        )


def _state(running: Simulation, able: Sequence[SessionSimulation]) -> Hashable:
    """Return all that later steps and the final state depend on."""
    store, locks = running.work.store, running.work.locks
    rows = tuple(
        (
            row.id,
            tuple(sorted(row.taken.items())),
            *(
                (
                    v.values,
                    v.writer,
                    v.committed is None,
                    v.undone is None,
                    frozenset(k for k, at in v.put.items() if at is None),
                )
                for v in row.versions
            ),
        )
        for stored in store.rows.values()
        for row in stored
    )
    sessions = tuple(
        (
            tuple(one.steps), one.wants, one.at, one.told, one.since, one.ran, one.ended,
            tuple(one.waits), tuple(map(step_result, one.turns)),
        )
        for one in running.sessions.values()
    )  # fmt: skip
    going = tuple(one.transaction.name for one in able)
    held = tuple(locks.held.items())
    times = (
        tuple(
            (v.committed, v.undone)
            for stored in store.rows.values()
            for row in stored
            for v in row.versions
        ),
        tuple(one.transaction.moments for one in running.sessions.values()),
    )
    return (
        rows,
        sessions,
        going,
        held,
        locks.asked,
        times if store.appends else None,
        running.remembered(),
        len(running.events),
        tuple(map(table_rows, running.states)),
    )
