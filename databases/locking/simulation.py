"""Execution of a schedule whose transactions wait for each other.

A step that has to wait is postponed, and the schedule goes on. As soon as the step no longer has to
wait, its transaction resumes before the next step of the schedule: it takes that step, and its own
later steps that have come up meanwhile. The transaction that has waited longest resumes first. They
resume statement by statement: none begins its next statement while another one can resume.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from isolitmus.databases.locking.events import DEADLOCK, done_so_far
from isolitmus.databases.locking.lock_table import Lock, LockTable, Resource, find_deadlock_victim
from isolitmus.databases.locking.query_plans import lookups
from isolitmus.databases.locking.row_versions import RowStore
from isolitmus.databases.locking.scans import LockGranted, MatchingRow, PassedEntry, SharedState
from isolitmus.databases.locking.serializable_snapshots import WRITE_CONFLICT, SireadMarks
from isolitmus.databases.locking.statement_execution import RunningTransaction
from isolitmus.model.display import count_of
from isolitmus.model.errors import WaitsForEver
from isolitmus.model.execution import Event, Execution
from isolitmus.model.run import Wait
from isolitmus.model.sql.statement import statements_of
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from isolitmus.databases.locking.lock_table import Circle
    from isolitmus.databases.locking.protocol_rules import ProtocolRules
    from isolitmus.model.execution import Database
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row


@dataclass(slots=True)
class SessionSimulation:
    """Transaction with its client: the requested steps, and those already taken."""

    transaction: RunningTransaction
    """Its reads and writes so far."""
    statements: tuple[Statement, ...]
    going: Iterator[Lock | LockGranted | MatchingRow | PassedEntry | None]
    """Iterator over the remaining events of its plan."""
    steps: list[Step] = field(default_factory=list)
    """Schedule steps that were requested and not taken yet."""
    wants: Lock | None = None
    """Lock that it waits for."""
    at: str = ""
    """Step in which it waits."""
    told: tuple[Lock, tuple[str, ...]] | None = None
    """Last recorded wait: the lock and, outside of the queues, the blocking transactions."""
    since: int = 0
    """Number of its last wait among all waits so far."""
    ran: int = 0
    """Number of its completed statements."""
    turns: list[Lock | LockGranted | MatchingRow | PassedEntry | None] = field(default_factory=list)
    """All events of its plan so far."""
    came: list[MatchingRow | PassedEntry | None] = field(default_factory=list)
    """Scan steps so far; None where a statement ended."""
    emitted: list[Row] = field(default_factory=list)
    """Matching rows that its scans reached."""
    waits: list[Wait] = field(default_factory=list)
    """Waits so far: the step, and the transactions waited for."""
    ended: bool = False
    """True if it has committed, aborted or rolled back."""
    versions: tuple[int, int] | None = None
    """Index of the newest table version when it began, and when it ended or so far."""

    @property
    def scans_again(self) -> bool:
        """True if the current statement has subqueries, which are scans of their own."""
        return self.ran < len(self.statements) and bool(lookups(self.statements[self.ran]))

    @property
    def through(self) -> bool:
        """True if its statements are complete and its end was requested.

        No other transaction acts in between.
        """
        return self.ran == len(self.statements) and bool(self.steps)


class Simulation:
    """Execution of a litmus test, step by step."""

    beyond: str
    """Error text for the first step at a row that the scan does not return; empty if there is none.
    """
    choose: Callable[[Simulation, Sequence[SessionSimulation]], int]
    """Function that chooses which of several transactions resumes.

    By default the one that has been running longest, then the one that has waited longest.
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
        """Execute the whole schedule."""
        for step in self.litmus.schedule.steps:
            self.take(step)
        return self.done()

    def take(self, step: Step) -> None:
        """Take a step of the schedule."""
        session = self.sessions[step.transaction]
        if not session.ended:
            session.steps.append(step)
            self.wake()

    def done(self) -> Execution:
        """Return the execution after the last step."""
        self.none_waits_for_ever()
        return Execution(tuple(self.events), tuple(self.states), self.litmus.format)

    def none_waits_for_ever(self) -> None:
        """Raise WaitsForEver if a transaction has not ended."""
        stuck = [name for name, session in self.sessions.items() if not session.ended]
        if stuck:
            raise WaitsForEver(
                f"{self.litmus.name}: {' and '.join(stuck)} wait for each other, and no deadlock is"
                " detected: the transaction that closed the cycle woke one outside it (see the"
                " page locking)"
            )

    def wake(self) -> None:
        """Resume the transactions that no longer have to wait, the longest waiting first.

        All of them finish the step in which they waited; then one takes its next requested step,
        and so on.
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
        """Run the requested step of a transaction, then all transactions that can resume.

        Each of these runs in a thread of its own, until it ends its step or waits again.
        """
        locks = self.work.locks
        self.before, self.left = self.waited, []
        moving: list[SessionSimulation] = []
        while asked is not None and (self.move(asked) or asked.through):
            if locks.heap and asked.scans_again and self.freed():
                moving.append(asked)  # its subqueries take so long that others may be faster
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
                locks.waiting.remove(free)  # it kept its place in the queue until now
        locks.raced = False

    def freed(self) -> list[SessionSimulation]:
        """Return the queued transactions that no longer have to wait, the longest waiting first."""
        locks = self.work.locks
        return [self.sessions[lock.owner] for lock in locks.waiting if not locks.behind(lock)]

    def move(self, session: SessionSimulation) -> bool:
        """Run a transaction up to its next event, and return whether it goes on by itself.

        It goes on if it has not reached the end of its step or of a statement, and does not have to
        wait.
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

    @property
    def held(self) -> Hashable:
        """Held locks, as far as later steps depend on them."""
        return self.work.locks.held_state(ordered=self.work.rules.victim == "fewest-locks")

    def remembered(self) -> Hashable:
        """Return the part of the state that determines the future besides locks and rows.

        It consists of the places of row versions, the recorded reads, and the versions that scans
        have yet to reach; None if versions are not appended.
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
        """Return whether a transaction has reached the point that a step names."""
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
        """Queue the request of a transaction, and resolve the deadlocks that this causes."""
        locks, name = self.work.locks, session.transaction.name
        locks.wait(wanted)
        self.waited += 1
        session.wants, session.at, session.since = wanted, str(step), self.waited
        if self.work.rules.victim == "fewest-locks":
            found = find_deadlock_victim(locks, name)
            if found is not None:
                self.broken(*found)
            return
        # a request with several blockers may close several cycles
        while circle := locks.cycle(name):
            behind = {lock.owner: locks.behind(lock) for lock in locks.waiting}
            self.broken(self.victim(circle, name), tuple((one, behind[one]) for one in circle))

    def broken(self, victim: str, circle: Circle) -> None:
        """Abort the victim of a deadlock."""
        for name, behind in circle:
            self.tell(self.sessions[name], behind)
        self.end(self.sessions[victim], conflict=DEADLOCK)

    def tell(self, session: SessionSimulation, behind: tuple[str, ...]) -> None:
        """Record a wait of a transaction.

        A wait is recorded when no transaction can go on, or when it is part of a deadlock.
        """
        assert session.wants is not None
        told = session.wants, behind if session.wants in self.work.locks.loose else ()
        if session.told != told:
            session.told = told
            session.waits.append(Wait(session.at, behind))

    def victim(self, circle: tuple[str, ...], requester: str) -> str:
        """Return the transaction of a cycle that aborts."""
        locks = self.work.locks
        if self.work.rules.victim == "earliest":
            return next(lock.owner for lock in locks.waiting if lock.owner in circle)
        looks = [requester]
        if locks.versions:
            looks += [name for name in circle if name != requester and self.looks(name)]
        sessions = [self.sessions[name] for name in looks]
        return looks[self.choose(self, sessions) if len(looks) > 1 else 0]

    def looks(self, name: str) -> bool:
        """Return whether a waiting transaction may still have to check for a deadlock.

        A database checks some time after a wait has begun. A check is due if the wait began since
        all transactions were blocked, or if a transaction that it waited for has left and it is
        first in the queue.
        """
        session, locks = self.sessions[name], self.work.locks
        assert session.wants is not None
        if session.since > self.before:
            return True
        first = session.wants in locks.loose or not locks.ahead_at(session.wants)
        return first and any(one in self.left for one in session.waits[-1].behind)

    def commit(self, session: SessionSimulation) -> None:
        """Commit a transaction: its writes become visible, and its locks are released."""
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
        """Remove from the queues the requests for rows that now have a newer version.

        These requests are repeated for the newer version, in no order.
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
        """End a transaction without a commit, and roll back its writes."""
        name = session.transaction.name
        done = done_so_far(session.transaction, tuple(session.emitted), tuple(session.waits), error)
        self.work.store.undo(name)
        if self.work.overlaps is not None:
            self.work.overlaps.undo(name)
        self.over(session, Event(name, done, 0, conflict=conflict, rolled_back=rolled_back))

    def over(self, session: SessionSimulation, event: Event) -> None:
        """End a transaction: close its plan, release its locks, and record its event."""
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
    """Return the suggested fix for a step at a row that a scan does not return, or has passed."""
    if not over:
        return f"; use {replace(step, number=came + 1)}"
    return f" and are over; {f'use {replace(step, number=came)}' if came else 'leave it out'}"


def _going(
    one: RunningTransaction, parts: tuple[Statement, ...]
) -> Iterator[Lock | LockGranted | MatchingRow | PassedEntry | None]:
    """Yield the events of the statements one after another, and None after each statement."""
    for part in parts:
        yield from one.run(part)
        yield None
