"""Orders of steps: chosen one by one, by threads, or all that are to be judged.

A litmus test under way by steps that are chosen one by one, whatever its schedule says.

What states have to tell apart is what their ends show: the rows with their versions, who holds
which locks and waits for which, and what each transaction was shown so far, on which alone depends
what it does next.

A litmus test under way whose run is to be judged: which states are one for frames and for serial
orders.

A frame knows times by what came before what: whether a version was written, committed or undone
when a scan came past a place, when its snapshot was taken, or when another committed. Two ways that
agree on these, on who holds and wants which locks, and on what each transaction was shown have the
same frames at their ends, however they go on.

A litmus test carried out, in every order in which threads may go on.

Over heaps and where versions stand behind each other (``rules``: ``keep heaps``, ``updates
append``), those who need not wait any more go on in threads of their own, beside each other. Each
order of what they do, over heaps lock by lock, else row by row, is carried out from the start; what
comes after a state that another order had come to is left out. Who has let them go on is taken to
be through with what he was asked for before they are, and they to have what they waited for before
he asks for it again.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import initial_stages, observed_run
from isolitmus.checker.locking.final_state import FinalStates, table_rows
from isolitmus.checker.locking.protocol_rules import rules_of
from isolitmus.checker.locking.scans import MatchingRow
from isolitmus.checker.locking.simulation import Simulation
from isolitmus.model.errors import StepBeyond, UndeterminedError, WaitsForEver
from isolitmus.model.run import SeveralRuns
from isolitmus.model.schedule import Schedule, Step
from isolitmus.specs.files.toml_reader import Source
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from isolitmus.checker.locking.protocol_rules import ProtocolRules
    from isolitmus.checker.locking.row_versions import StoredRow
    from isolitmus.checker.locking.scans import ScanTrace
    from isolitmus.checker.locking.simulation import SessionSimulation
    from isolitmus.model.execution import Database, Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

__all__ = [
    "FreeWalk",
    "JudgedWalk",
    "count_switches",
    "free_walks",
    "judged_walks",
    "run_stepwise",
    "step_result",
]

DATED = ("statement", "transaction")
"""What is seen as of a time."""


def free_walks(litmus: Litmus, protocol: Spec, ends: FinalStates) -> Callable[[], FreeWalk]:
    """What begins a walk through a litmus test, as often as it is called."""
    database = initial_stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    return lambda: FreeWalk(litmus, database, rules, ends)


class FreeWalk(Simulation):
    """A litmus test under way by steps that are chosen one by one
    (``universes.schedules.Walk``).
    """

    def __init__(
        self, litmus: Litmus, database: Database, rules: ProtocolRules, ends: FinalStates
    ) -> None:
        super().__init__(litmus, database, rules)
        self.ends = ends
        self.chosen: list[Step | str] = []
        """Who went, each with the step that it came to once it has come there."""

    def go(self, name: str) -> None:
        """A transaction's next step."""
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
        """Whether snapshots are seen, so that it matters when what was committed."""
        return not {self.work.rules.see, self.work.rules.searched}.isdisjoint(DATED)

    def able(self) -> list[str]:
        """Those that can go on."""
        return [n for n, s in self.sessions.items() if not s.ended and s.wants is None]

    def state(self) -> Hashable:
        """All that what comes next, and what there is to see at the end, depends on."""
        end, versions = self.ends.told(self), bool(self.ends.queries)
        store, locks = self.work.store, self.work.locks
        going = [s for s in self.sessions.values() if not s.ended]
        stored = [row for rows in store.rows.values() for row in rows]
        seen = {m for s in going for m in s.transaction.moments} if self.dated else set()
        moments = {v.committed for row in stored for v in row.versions if v.committed is not None}
        rank = {m: k for k, m in enumerate(sorted(moments | seen)) if self.dated}
        rows = tuple(
            (row.table, row.id, frozenset(row.taken), *((frozenset(k for k, at in v.put.items() if at is None), v.values, v.writer, v.committed is None, rank.get(v.committed or 0), v.undone is None) for v in row.versions))
            for row in stored
        )  # fmt: skip
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
        held = frozenset(locks.held.items())
        return rows, sessions, held, locks.asked, past, self.remembered()

    @property
    def schedule(self) -> Schedule:
        """The steps that were chosen, without those that another of the same transaction
        follows.
        """
        steps = [step for step in self.chosen if isinstance(step, Step)]
        kept = [
            step
            for step, after in zip(steps, [*steps[1:], None], strict=True)
            if after is None or after.transaction != step.transaction
        ]
        return Schedule(tuple(kept))


def _through(session: SessionSimulation) -> bool:
    """Whether the one statement of a transaction is over, and it can commit."""
    over = session.ran == len(session.statements) == 1
    return over and not session.ended and session.wants is None and not session.steps


def step_result(step: object) -> object:
    """What a step has shown its transaction."""
    if isinstance(step, MatchingRow):
        return step.row.id, next(k for k, v in enumerate(step.row.versions) if v is step.version)
    return step


def count_switches(path: tuple[str, ...]) -> int:
    """How often it is another's turn."""
    return sum(one != other for one, other in pairwise(path))


def judged_walks(litmus: Litmus, protocol: Spec | None) -> Callable[[], JudgedWalk]:
    """What begins a walk through a litmus test, as often as it is called."""
    database = initial_stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    return lambda: JudgedWalk(litmus, database, rules)


class JudgedWalk(Simulation):
    """A litmus test under way by steps that are chosen one by one (``model.format.Stepwise``)."""

    def state(self, *, judged: bool) -> Hashable:
        """All that what comes next depends on; ``judged``: and all that frames and serial orders
        depend on.
        """
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

    def _times(self, stored: list[StoredRow]) -> Iterator[int]:
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


def _row(row: StoredRow, times: list[int]) -> Hashable:
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


def _session(session: SessionSimulation, times: list[int]) -> Hashable:
    """How far a transaction has come, what it has still to do, and what it was shown when."""
    one = session.transaction
    seen = tuple(_trace(trace, times) for trace in one.traces) if times else ()
    moments = tuple(bisect_left(times, moment) for moment in one.moments) if times else ()
    steps = tuple((step.action, step.number) for step in session.steps)
    return session.ended, session.wants, steps, tuple(map(step_result, session.came)), moments, seen


def _trace(trace: ScanTrace, times: list[int]) -> Hashable:
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


def run_stepwise(litmus: Litmus, protocol: Spec | None) -> Execution:
    """The execution of a litmus test under a protocol. A step to a row that a scan does not give
    under it ends the scan; StepBeyond if it does not give that without any locks either.
    SeveralRuns if it makes a difference whose thread is faster.
    """
    database = initial_stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    running = Simulation(litmus, database, rules)
    done = running.execution()
    if running.beyond and protocol is not None:  # under this protocol scans may give less
        run_stepwise(litmus, None)
    elif running.beyond:
        file = litmus.path.name if litmus.path is not None else f"{litmus.name}.toml"
        raise StepBeyond(f"{Source(file, litmus.text).place('schedule')}: {running.beyond}")
    if protocol is not None and rules.threads:
        _refuse_raced(litmus, database, protocol, done)
    return done


class _Known(Exception):
    """A state that another order had come to."""


class _Order:
    """One order: who goes on at each moment at which several could, first as it is told, then as by
    default.
    """

    def __init__(self, begin: tuple[int, ...], known: set[Hashable]) -> None:
        self.begin, self.known = begin, known
        self.chosen: list[int] = []
        self.able: list[tuple[str, ...]] = []

    def choose(self, running: Simulation, able: Sequence[SessionSimulation]) -> int:
        """Who goes on; _Known if that was looked at already."""
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
    """SeveralRuns if threads may go on in an order that has another end than this;
    UndeterminedError if in one of them some wait for each other for ever.
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
    """All that what comes next, and what there is to see at the end, depends on."""
    store, locks = running.work.store, running.work.locks
    rows = tuple(
        (row.id, tuple(sorted(row.taken.items())), *((v.values, v.writer, v.committed is None, v.undone is None, frozenset(k for k, at in v.put.items() if at is None)) for v in row.versions))
        for stored in store.rows.values()
        for row in stored
    )  # fmt: skip
    sessions = tuple(
        (
            tuple(one.steps), one.wants, one.at, one.told, one.since, one.ran, one.ended, tuple(one.waits),
            tuple(map(step_result, one.turns)),
        )
        for one in running.sessions.values()
    )  # fmt: skip
    going = tuple(one.transaction.name for one in able)
    held = tuple(locks.held.items())
    times = (
        tuple((v.committed, v.undone) for stored in store.rows.values() for row in stored for v in row.versions),
        tuple(one.transaction.moments for one in running.sessions.values()),
    )  # fmt: skip
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
