"""A schedule carried out where transactions wait for each other.

A step that has to wait is put off, and the schedule goes on. As soon as it need not wait any more,
the transaction goes on with it, and with its own later steps that have come up meanwhile, before
the next step of the schedule; whoever has waited longest first, statement by statement: nobody
begins the next one while another need not wait any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from isolitmus.checker.locking.events import DEADLOCK, done_so_far
from isolitmus.checker.locking.lock_table import Lock, LockTable, Resource, find_deadlock_victim
from isolitmus.checker.locking.query_plans import lookups
from isolitmus.checker.locking.row_versions import RowStore
from isolitmus.checker.locking.scans import LockGranted, MatchingRow, PassedEntry, SharedState
from isolitmus.checker.locking.serializable_snapshots import WRITE_CONFLICT, SireadMarks
from isolitmus.checker.locking.statement_execution import RunningTransaction
from isolitmus.model.display import count_of
from isolitmus.model.errors import WaitsForEver
from isolitmus.model.execution import Event, Execution
from isolitmus.model.run import Wait
from isolitmus.model.sql.statement import statements_of
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from isolitmus.checker.locking.lock_table import Circle
    from isolitmus.checker.locking.protocol_rules import ProtocolRules
    from isolitmus.model.execution import Database
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row

__all__ = ["SessionSimulation", "Simulation"]


@dataclass(slots=True)
class SessionSimulation:
    """A transaction with its client: what it has been asked for and has not done yet."""

    transaction: RunningTransaction
    """What it has read and written."""
    statements: tuple[Statement, ...]
    """What it consists of."""
    going: Iterator[Lock | LockGranted | MatchingRow | PassedEntry | None]
    """What is left of it."""
    steps: list[Step] = field(default_factory=list)
    """What it has been asked for and has not done."""
    wants: Lock | None = None
    """What it waits for."""
    at: str = ""
    """The step in which it waits."""
    told: tuple[Lock, tuple[str, ...]] | None = None
    """That which it was last seen to wait for; if it has no place in a queue, also behind whom."""
    since: int = 0
    """Of all waits so far, which was its last."""
    ran: int = 0
    """How many of its statements are over."""
    turns: list[Lock | LockGranted | MatchingRow | PassedEntry | None] = field(default_factory=list)
    """All that its plan did so far."""
    came: list[MatchingRow | PassedEntry | None] = field(default_factory=list)
    """The steps of its plan so far; None: a statement was over."""
    emitted: list[Row] = field(default_factory=list)
    """The rows that its scans came to and were about."""
    waits: list[Wait] = field(default_factory=list)
    """When it waited, and for whom."""
    ended: bool = False
    """Whether it has committed, or has ended otherwise."""
    versions: tuple[int, int] | None = None
    """The versions that there were last when it began, and when it ended, or so far."""

    @property
    def scans_again(self) -> bool:
        """Whether its statement has subqueries, which are scans of their own."""
        return self.ran < len(self.statements) and bool(lookups(self.statements[self.ran]))

    @property
    def through(self) -> bool:
        """Whether its statements are over and it was asked for more, its end: nobody comes
        between.
        """
        return self.ran == len(self.statements) and bool(self.steps)


class Simulation:
    """A litmus test under way."""

    beyond: str
    """Which step comes where its transaction gives no such row; empty: none."""
    choose: Callable[[Simulation, Sequence[SessionSimulation]], int]
    """Who of several goes on that could: by default who has gone on longest, then who has waited
    longest.
    """

    def __init__(self, litmus: Litmus, database: Database, rules: ProtocolRules) -> None:
        self.litmus = litmus
        appends = rules.updates == "append"
        overlaps = SireadMarks(rules) if rules.siread else None
        store = RowStore(database, litmus.tables, appends=appends)
        locks = LockTable(heap=rules.keep == "heaps", versions=appends)
        self.work = SharedState(store, locks, rules, overlaps)
        self.beyond = ""
        self.waited = 0
        self.before = 0
        self.left: list[str] = []
        self.choose = lambda _, __: 0
        self.states: list[Database] = [self.work.store.database()]
        self.events: list[Event] = []
        self.sessions: dict[str, SessionSimulation] = {}
        for name, transaction in litmus.transactions.items():
            client = litmus.client(name)
            one = RunningTransaction(name, self.work, client.scan, client.each)
            parts = statements_of(transaction)
            self.sessions[name] = SessionSimulation(one, parts, _going(one, parts))

    def execution(self) -> Execution:
        """All of it."""
        for step in self.litmus.schedule.steps:
            self.take(step)
        return self.done()

    def take(self, step: Step) -> None:
        """A step of the schedule."""
        session = self.sessions[step.transaction]
        if not session.ended:
            session.steps.append(step)
            self.wake()

    def done(self) -> Execution:
        """What has happened, when all is over."""
        self.none_waits_for_ever()
        return Execution(tuple(self.events), tuple(self.states), self.litmus.format)

    def none_waits_for_ever(self) -> None:
        """WaitsForEver if somebody has not ended, where nobody goes on."""
        stuck = [name for name, session in self.sessions.items() if not session.ended]
        if stuck:
            raise WaitsForEver(
                f"{self.litmus.name}: {' and '.join(stuck)} wait for each other, which nobody sees:"
                " who closed the circle told one who was in none (docs/locking.md)"
            )

    def wake(self) -> None:
        """Let go on who need not wait, first who has waited longest: all who do not wait any more
        with what they waited in, then one with the next that it was asked for.
        """
        asked: SessionSimulation | None = None
        while True:
            self.settle(asked)
            for session in self.sessions.values():
                if session.wants is None:
                    session.told = None
                else:
                    self.tell(session, self.work.locks.behind(session.wants))
            able = [s for s in self.sessions.values() if s.steps and s.wants is None]
            if not able:
                return
            asked = min(able, key=lambda session: session.since or self.waited + 1)

    def settle(self, asked: SessionSimulation | None) -> None:
        """Let somebody do what he was asked for, and then whoever need not wait any more what he
        waited in, each in a thread of his own, until nobody gets any further.
        """
        locks = self.work.locks
        self.before, self.left = self.waited, []
        moving: list[SessionSimulation] = []
        while asked is not None and (self.move(asked) or asked.through):
            if locks.heap and asked.scans_again and self.freed():
                moving.append(asked)  # it has so much to do that others may be faster
                break
        while able := [*moving, *self.freed()]:
            locks.raced = len(able) > 1
            session = able[self.choose(self, able) if locks.raced else 0]
            free, session.wants = session.wants, None
            if free is not None:
                moving.append(session)
            if not self.move(session):
                moving.remove(session)
            if session.wants != free and free in locks.waiting:
                locks.waiting.remove(free)  # it had its place in the queue until now
        locks.raced = False

    def freed(self) -> list[SessionSimulation]:
        """Those who wait and need not any more, first who has waited longest."""
        locks = self.work.locks
        return [self.sessions[lock.owner] for lock in locks.waiting if not locks.behind(lock)]

    def move(self, session: SessionSimulation) -> bool:
        """Do one thing that a transaction was asked for; whether it goes on by itself: it has not
        come as far as its step says, or to the end of a statement, and need not wait.
        """
        if session.versions is None:
            session.versions = len(self.states) - 1, len(self.states) - 1
        step = session.steps[0]
        if self.reached(session, step):
            session.steps.pop(0)
            if step.action == "rollback":
                self.end(session, rolled_back=True)
            elif step.ends:
                self.commit(session)
            if not session.steps:
                session.since = 0
            return False
        try:
            event = next(session.going)
        except EvaluationError as error:
            conflict = error.exception if error.exception == WRITE_CONFLICT else None
            self.end(session, error=None if conflict else error, conflict=conflict)
            return False
        session.turns.append(event)
        if isinstance(event, Lock):
            self.wait(session, step, event)
            return False
        if isinstance(event, LockGranted):
            return True
        session.came.append(event)
        if event is None:
            session.ran += 1
        elif isinstance(event, MatchingRow):
            session.emitted.append(event.values)
        return event is not None

    def remembered(self) -> Hashable:
        """Where versions of rows stand, what was read, and what scans have yet to come to, as far
        as that matters.
        """
        store, overlaps = self.work.store, self.work.overlaps
        if not store.appends:
            return None
        every = [image for table in store.rows for _, image in store.versions(table)]
        going = (s.transaction for s in self.sessions.values() if not s.ended)
        left = tuple(
            tuple(image.place for _, image in trace.watch.left)
            for one in going
            for trace in one.traces
            if trace.watch is not None
        )
        places = tuple((image.place, image.root) for image in every)
        return places, None if overlaps is None else overlaps.state(), left

    def reached(self, session: SessionSimulation, step: Step) -> bool:
        """Whether a transaction has come as far as a step says."""
        match step.action:
            case "scan":
                assert step.number is not None
                came = len(session.emitted)
                over = session.ran == len(session.statements)
                if came > step.number or (over and came < step.number):
                    self.beyond = self.beyond or (
                        f"schedule step '{step}' comes where the scans of {step.transaction} have"
                        f" given {count_of(came, 'row')}{_instead(step, came, over=over)}"
                    )
                return came >= step.number or over
            case "step":
                assert step.number is not None
                went, over = len(session.came), session.ran == len(session.statements)
                if over and went < step.number:
                    self.beyond = self.beyond or (
                        f"schedule step '{step}' comes where the scans of {step.transaction} have"
                        f" gone {count_of(went, 'step')}{_instead(step, went, over=over)}"
                    )
                return went >= step.number or over
            case "statement":
                return session.ran >= (step.number or 0)
            case "commit" | "both":
                return session.ran == len(session.statements)
            case _:
                return True

    def wait(self, session: SessionSimulation, step: Step, wanted: Lock) -> None:
        """Put a transaction into the queue; if it then waits for itself, one of those in the circle
        ends.
        """
        locks, name = self.work.locks, session.transaction.name
        locks.wait(wanted)
        self.waited += 1
        session.wants, session.at, session.since = wanted, str(step), self.waited
        if self.work.rules.victim == "fewest-locks":
            found = find_deadlock_victim(locks, name)
            if found is not None:
                self.broken(*found)
            return
        while circle := locks.cycle(name):  # who waits for several may be in several circles
            behind = {lock.owner: locks.behind(lock) for lock in locks.waiting}
            self.broken(self.victim(circle, name), tuple((one, behind[one]) for one in circle))

    def broken(self, victim: str, circle: Circle) -> None:
        """One of those who wait for each other ends."""
        for name, behind in circle:
            self.tell(self.sessions[name], behind)
        self.end(self.sessions[victim], conflict=DEADLOCK)

    def tell(self, session: SessionSimulation, behind: tuple[str, ...]) -> None:
        """A transaction waits, which anybody sees once nobody goes on; of a deadlock it is told."""
        assert session.wants is not None
        told = session.wants, behind if session.wants in self.work.locks.loose else ()
        if session.told != told:
            session.told = told
            session.waits.append(Wait(session.at, behind))

    def victim(self, circle: tuple[str, ...], requester: str) -> str:
        """Which of those who wait for each other ends."""
        locks = self.work.locks
        if self.work.rules.victim == "earliest":
            return next(lock.owner for lock in locks.waiting if lock.owner in circle)
        looks = [requester]
        if locks.versions:
            looks += [name for name in circle if name != requester and self.looks(name)]
        sessions = [self.sessions[name] for name in looks]
        return looks[self.choose(self, sessions) if len(looks) > 1 else 0]

    def looks(self, name: str) -> bool:
        """Whether who waits may not have looked for a deadlock yet, where that is done some time
        after a wait has begun: it began since all stood still, or anew since one for whom it waited
        has left, and it is not behind another in the queue.
        """
        session, locks = self.sessions[name], self.work.locks
        assert session.wants is not None
        if session.since > self.before:
            return True
        first = session.wants in locks.loose or not locks.ahead_at(session.wants)
        return first and any(one in self.left for one in session.waits[-1].behind)

    def commit(self, session: SessionSimulation) -> None:
        """What it wrote is there for all; what it held is free."""
        name, store = session.transaction.name, self.work.store
        try:
            if self.work.overlaps is not None:
                self.work.overlaps.commit(name)
        except EvaluationError as error:
            self.end(session, conflict=error.exception)
            return
        done = done_so_far(session.transaction, tuple(session.emitted), tuple(session.waits))
        store.commit(name)
        self.loosen(name)
        version = None if done.footprint is None else len(self.states)
        self.over(session, Event(name, done, 0, version, session=self.litmus.client(name).session))
        if version is not None:
            self.states.append(store.database())

    def loosen(self, writer: str) -> None:
        """Those in the queues of rows of which there is another version now ask anew, for that one,
        who first may.
        """
        store, locks = self.work.store, self.work.locks
        rows = {Resource("row", row.table, row.id) for row in store.wrote(writer)}
        if locks.versions:
            locks.loose |= {lock for lock in locks.waiting if lock.place in rows}

    def end(
        self,
        session: SessionSimulation,
        *,
        error: EvaluationError | None = None,
        conflict: str | None = None,
        rolled_back: bool = False,
    ) -> None:
        """A transaction ends without a commit: what it wrote is gone."""
        name = session.transaction.name
        done = done_so_far(session.transaction, tuple(session.emitted), tuple(session.waits), error)
        self.work.store.undo(name)
        if self.work.overlaps is not None:
            self.work.overlaps.undo(name)
        self.over(session, Event(name, done, 0, conflict=conflict, rolled_back=rolled_back))

    def over(self, session: SessionSimulation, event: Event) -> None:
        session.ended, session.wants = True, None
        if session.versions is not None:
            session.versions = session.versions[0], len(self.states) - 1
        session.steps.clear()
        close = getattr(session.going, "close", None)
        if close is not None:
            close()
        self.work.locks.leave(session.transaction.name)
        self.left.append(session.transaction.name)
        self.events.append(event)


def _instead(step: Step, came: int, *, over: bool) -> str:
    """What would have been right of a step to a row that a scan does not give, or has given."""
    if not over:
        return f"; use {replace(step, number=came + 1)}"
    return f" and are over; {f'use {replace(step, number=came)}' if came else 'leave it out'}"


def _going(
    one: RunningTransaction, parts: tuple[Statement, ...]
) -> Iterator[Lock | LockGranted | MatchingRow | PassedEntry | None]:
    """The statements one after another; None after each."""
    for part in parts:
        yield from one.run(part)
        yield None
