"""A schedule carried out where transactions wait for each other.

A step that has to wait is put off, and the schedule goes on. As soon as it need not wait any more, the transaction goes on with
it, and with its own later steps that have come up meanwhile, before the next step of the schedule; whoever has
waited longest first, statement by statement: nobody begins the next one while another need not wait any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from isolitmus.checker.locking.events import DEADLOCK, Scanned, Wrote
from isolitmus.checker.locking.locks import Lock, LockTable, doomed
from isolitmus.checker.locking.overlaps import WRITE_CONFLICT, SireadMarks
from isolitmus.checker.locking.rows import Store
from isolitmus.checker.locking.rules import rules_of
from isolitmus.checker.locking.scans import Hit, Passed, Shared
from isolitmus.checker.locking.statements import UnderWay
from isolitmus.checker.running.execute import observed_run, stages
from isolitmus.model.errors import StepBeyond, UndeterminedError, WaitsForEver
from isolitmus.model.execution import Event, Execution, RowRead, RowWrite
from isolitmus.model.expression import EvaluationError
from isolitmus.model.file import TableRow
from isolitmus.model.number import many
from isolitmus.model.run import Wait
from isolitmus.model.statement import statements_of
from isolitmus.specs.formats import format_named
from isolitmus.specs.toml_file import Source

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from isolitmus.checker.locking.locks import Circle
    from isolitmus.checker.locking.rules import Rules
    from isolitmus.checker.locking.scans import Trace
    from isolitmus.model.execution import Database
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.schema import Schema
    from isolitmus.model.spec import Spec
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Row

__all__ = ["LitmusUnderWay", "SessionUnderWay", "by_itself", "effect_of", "stepwise"]


def stepwise(litmus: Litmus, protocol: Spec | None) -> Execution:
    """The execution of a litmus test under a protocol. A step to a row that a scan does not give under it ends
    the scan; StepBeyond if it does not give that without any locks either. UndeterminedError if several need not wait
    any more at once, over heaps, and who of them is faster makes a difference.
    """
    database = stages(format_named(litmus.format), litmus.tables, litmus.init)[-1]
    rules = rules_of(protocol)
    running = LitmusUnderWay(litmus, database, rules)
    done = running.execution()
    if running.raced and rules.keep == "heaps":
        from isolitmus.checker.comparing import compare

        other = LitmusUnderWay(litmus, database, rules)
        other.last_first = True
        runs = [observed_run(litmus, one, "") for one in (done, other.execution())]
        if compare(*runs):
            raise UndeterminedError(
                f"{litmus.name}: {' and '.join(running.raced)} need not wait any more at once, and who of them is"
                " faster makes a difference"
            )
    if running.beyond and protocol is not None:  # under this protocol scans may give less
        stepwise(litmus, None)
    elif running.beyond:
        file = litmus.path.name if litmus.path is not None else f"{litmus.name}.toml"
        raise StepBeyond(f"{Source(file, litmus.text).place('schedule')}: {running.beyond}")
    return done


def by_itself(litmus: Litmus, name: str, database: Database, _inits: object) -> Scanned:
    """What a transaction does all by itself."""
    client = litmus.client(name)
    one = UnderWay(name, _work(database, litmus.tables), client.scan, client.each)
    return _through(one, litmus.transactions[name])


def effect_of(
    statement: Statement, database: Database, name: str, tables: Mapping[str, Schema]
) -> Scanned:
    """What a statement, or a sequence of them, does all by itself."""
    return _through(UnderWay(name, _work(database, tables), (), each=False), statement)


def _work(database: Database, tables: Mapping[str, Schema]) -> Shared:
    return Shared(Store(database, tables), LockTable(), rules_of(None))


def _through(one: UnderWay, statement: Statement) -> Scanned:
    try:
        emitted = [
            hit.values
            for part in statements_of(statement)
            for hit in one.run(part)
            if isinstance(hit, Hit)
        ]
    except EvaluationError as error:
        return Scanned(error=error)
    return _effect(one, tuple(emitted), ())


@dataclass(slots=True)
class SessionUnderWay:
    """A transaction with its client: what it has been asked for and has not done yet."""

    transaction: UnderWay
    """What it has read and written."""
    statements: tuple[Statement, ...]
    """What it consists of."""
    going: Iterator[Lock | Hit | Passed | None]
    """What is left of it."""
    steps: list[Step] = field(default_factory=list)
    """What it has been asked for and has not done."""
    wants: Lock | None = None
    """What it waits for."""
    at: str = ""
    """The step in which it waits."""
    told: Lock | None = None
    """That which it was last seen to wait for."""
    since: int = 0
    """Of all waits so far, which was its last."""
    ran: int = 0
    """How many of its statements are over."""
    came: list[Hit | Passed | None] = field(default_factory=list)
    """The steps of its plan so far; None: a statement was over."""
    emitted: list[Row] = field(default_factory=list)
    """The rows that its scans came to and were about."""
    waits: list[Wait] = field(default_factory=list)
    """When it waited, and for whom."""
    ended: bool = False
    """Whether it has committed, or has ended otherwise."""
    versions: tuple[int, int] | None = None
    """The versions that there were last when it began, and when it ended, or so far."""


class LitmusUnderWay:
    """A litmus test under way."""

    beyond: str
    """Which step comes where its transaction gives no such row; empty: none."""
    raced: tuple[str, ...]
    """The first transactions of which several need not wait any more at once."""
    last_first: bool
    """Whether of those goes on first who has waited shortest."""

    def __init__(self, litmus: Litmus, database: Database, rules: Rules) -> None:
        self.litmus = litmus
        appends = rules.updates == "append"
        overlaps = SireadMarks(rules) if rules.siread else None
        store = Store(database, litmus.tables, appends=appends)
        locks = LockTable(heap=rules.keep == "heaps")
        self.work = Shared(store, locks, rules, overlaps)
        self.beyond = ""
        self.waited = 0
        self.last_first, self.raced = False, ()
        self.states: list[Database] = [self.work.store.database()]
        self.events: list[Event] = []
        self.sessions: dict[str, SessionUnderWay] = {}
        for name, transaction in litmus.transactions.items():
            client = litmus.client(name)
            one = UnderWay(name, self.work, client.scan, client.each)
            parts = statements_of(transaction)
            self.sessions[name] = SessionUnderWay(one, parts, _going(one, parts))

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
                f"{self.litmus.name}: {' and '.join(stuck)} wait for each other, which nobody sees: who closed the circle"
                " told one who was in none (docs/locking.md)"
            )

    def wake(self) -> None:
        """Let go on who need not wait, first who has waited longest: all who do not wait any more with what they
        waited in, then one with the next that it was asked for.
        """
        while True:
            self.freed()
            for session in self.sessions.values():
                if session.wants is None:
                    session.told = None
                else:
                    self.tell(session, self.work.locks.behind(session.wants))
            able = [s for s in self.sessions.values() if s.steps and s.wants is None]
            if not able:
                return
            self.advance(min(able, key=lambda session: session.since or self.waited + 1))

    def freed(self) -> None:
        """Let go on who need not wait any more."""
        locks = self.work.locks
        while able := [lock for lock in locks.waiting if not locks.behind(lock)]:
            free = able[-1 if self.last_first else 0]
            self.raced = self.raced or (tuple(lock.owner for lock in able) if able[1:] else ())
            session = self.sessions[free.owner]
            session.wants = None
            self.advance(
                session, freed=True
            )  # it has its place in the queue until it has what it wanted
            if session.wants != free and free in locks.waiting:
                locks.waiting.remove(free)

    def advance(self, session: SessionUnderWay, *, freed: bool = False) -> None:
        """Do what a transaction was asked for, until it is done or has to wait, or another statement would begin;
        whoever is ``freed`` does not commit either before all are that are.
        """
        if session.versions is None:
            session.versions = len(self.states) - 1, len(self.states) - 1
        while session.steps and not session.ended:
            step = session.steps[0]
            if self.reached(session, step):
                session.steps.pop(0)
                if step.action == "rollback":
                    self.end(session, rolled_back=True)
                elif step.ends:
                    self.commit(session)
                if not session.steps:
                    session.since = 0
                continue
            try:
                event = next(session.going)
            except EvaluationError as error:
                conflict = error.exception if error.exception == WRITE_CONFLICT else None
                self.end(session, error=None if conflict else error, conflict=conflict)
                return
            if isinstance(event, Lock):
                self.wait(session, step, event)
                return
            session.came.append(event)
            if event is None:
                session.ran += 1
                if freed or session.ran < len(session.statements):
                    return
                continue
            if isinstance(event, Hit):
                session.emitted.append(event.values)

    def remembered(self) -> Hashable:
        """Where versions of rows stand, what was read, and what scans have yet to come to, as far as that matters."""
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

    def reached(self, session: SessionUnderWay, step: Step) -> bool:
        """Whether a transaction has come as far as a step says."""
        match step.action:
            case "scan":
                assert step.number is not None
                came = len(session.emitted)
                over = session.ran == len(session.statements)
                if came > step.number or (over and came < step.number):
                    self.beyond = self.beyond or (
                        f"schedule step '{step}' comes where the scans of {step.transaction} have given"
                        f" {many(came, 'row')}{_instead(step, came, over=over)}"
                    )
                return came >= step.number or over
            case "step":
                assert step.number is not None
                went, over = len(session.came), session.ran == len(session.statements)
                if over and went < step.number:
                    self.beyond = self.beyond or (
                        f"schedule step '{step}' comes where the scans of {step.transaction} have gone"
                        f" {many(went, 'step')}{_instead(step, went, over=over)}"
                    )
                return went >= step.number or over
            case "statement":
                return session.ran >= (step.number or 0)
            case "commit" | "both":
                return session.ran == len(session.statements)
            case _:
                return True

    def wait(self, session: SessionUnderWay, step: Step, wanted: Lock) -> None:
        """Put a transaction into the queue; if it then waits for itself, one of those in the circle ends."""
        locks, name = self.work.locks, session.transaction.name
        locks.wait(wanted)
        self.waited += 1
        session.wants, session.at, session.since = wanted, str(step), self.waited
        if self.work.rules.victim == "fewest-locks":
            found = doomed(locks, name)
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

    def tell(self, session: SessionUnderWay, behind: tuple[str, ...]) -> None:
        """A transaction waits, which anybody sees once nobody goes on; of a deadlock it is told."""
        if session.told != session.wants:
            session.told = session.wants
            session.waits.append(Wait(session.at, behind))

    def victim(self, circle: tuple[str, ...], requester: str) -> str:
        """Which of those who wait for each other ends."""
        locks = self.work.locks
        if self.work.rules.victim == "earliest":
            return next(lock.owner for lock in locks.waiting if lock.owner in circle)
        return requester

    def commit(self, session: SessionUnderWay) -> None:
        """What it wrote is there for all; what it held is free."""
        name, store = session.transaction.name, self.work.store
        try:
            if self.work.overlaps is not None:
                self.work.overlaps.commit(name)
        except EvaluationError as error:
            self.end(session, conflict=error.exception)
            return
        done = _effect(session.transaction, tuple(session.emitted), tuple(session.waits))
        store.commit(name)
        version = len(self.states) if done.writes else None
        self.over(session, Event(name, done, 0, version, session=self.litmus.client(name).session))
        if version is not None:
            self.states.append(store.database())

    def end(
        self,
        session: SessionUnderWay,
        *,
        error: EvaluationError | None = None,
        conflict: str | None = None,
        rolled_back: bool = False,
    ) -> None:
        """A transaction ends without a commit: what it wrote is gone."""
        name = session.transaction.name
        done = _effect(session.transaction, tuple(session.emitted), tuple(session.waits), error)
        self.work.store.undo(name)
        if self.work.overlaps is not None:
            self.work.overlaps.undo(name)
        self.over(session, Event(name, done, 0, conflict=conflict, rolled_back=rolled_back))

    def over(self, session: SessionUnderWay, event: Event) -> None:
        session.ended, session.wants = True, None
        if session.versions is not None:
            session.versions = session.versions[0], len(self.states) - 1
        session.steps.clear()
        close = getattr(session.going, "close", None)
        if close is not None:
            close()
        self.work.locks.leave(session.transaction.name)
        self.events.append(event)


def _instead(step: Step, came: int, *, over: bool) -> str:
    """What would have been right of a step to a row that a scan does not give, or has given."""
    if not over:
        return f"; use {replace(step, number=came + 1)}"
    return f" and are over; {f'use {replace(step, number=came)}' if came else 'leave it out'}"


def _going(one: UnderWay, parts: tuple[Statement, ...]) -> Iterator[Lock | Hit | Passed | None]:
    """The statements one after another; None after each."""
    for part in parts:
        yield from one.run(part)
        yield None


def _effect(
    one: UnderWay,
    emitted: tuple[Row, ...],
    waits: tuple[Wait, ...],
    error: EvaluationError | None = None,
) -> Scanned:
    """What a transaction has done before it ends."""
    writes = tuple(_writes(one))
    tables = sorted({write.table for write in writes})
    return Scanned(
        reads=tuple(map(_read, one.traces)),
        writes=writes,
        footprint=Wrote(tables[0]) if tables else None,  # type: ignore[arg-type]
        rows=None if one.rows is None else tuple(one.rows),
        error=error,
        emitted=emitted,
        waits=waits,
        traces=tuple(one.traces),
        store=one.work.store,
    )


def _read(trace: Trace) -> RowRead:
    """A scan as a read by predicate: of rows that it emitted, the versions that it read."""
    matched = (TableRow(v.row.id, v.version.writer, v.version.values or ()) for v in trace.visits)
    return RowRead(trace.table, trace.words, trace.asks, tuple(matched))


def _writes(one: UnderWay) -> Iterator[RowWrite]:
    """What it leaves of each row that it wrote."""
    for rows in one.work.store.rows.values():
        for row in rows:
            mine = [v for v in row.versions if v.writer == one.name and v.undone is None]
            if mine:
                first = row.versions.index(mine[0])
                before = next(
                    (v.values for v in reversed(row.versions[:first]) if v.committed is not None),
                    None,
                )
                if before != mine[-1].values or before is not None:
                    yield RowWrite(row.table, row.id, before, mine[-1].values)
