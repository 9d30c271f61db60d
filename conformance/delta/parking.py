"""Parking of statements at a phase of their transactions, and the watch that makes it possible.

A statement that stops at a phase of its transaction, until it is told to go on.

``conformance.delta.parking`` says how Delta's transactions are held. A statement that has nothing
to record never comes to its commit, and what writes other tables only never to one of the table
that is asked for: it is parked *or* it has ended. What it has in other threads belongs to it: none
of its transactions goes beyond the phase while it is parked, and it has not ended while one of them
waits or commits.

Delta's transactions as they happen: seen in whatever thread they begin, and held at a phase.

Delta asks for an observer whenever it begins a transaction (DeltaLog.startTransaction), and finds
it by the thread (TransactionExecutionObserver.scala). Its own observer for tests, which holds
phases (fuzzer/), serves one transaction of one thread, and knows neither the table nor the version
that is read. So while somebody watches, Delta finds ours on every thread (``Watch.java``): it sees
the transaction itself, asks whose it is and of which table, and gives it an observer of its own.
Java's, because an exception has to pass through it as it is.

Held are INIT (the statement is analysed, its snapshot not taken, but where it brings its own:
OPTIMIZE), PREPARE (it has read and written its data files) and COMMIT (it knows its level and
whether it is blind, and has tried no version yet): at none of them does it hold a lock.

Whose a transaction is says a Spark property of its thread, which Spark hands on to the threads that
are started there, a streaming query's or a ``pyspark.InheritableThread``. A thread of Python's says
nothing: it is theirs who are in the middle of a step, since nobody else is then.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, get_args
from uuid import uuid4

from isolitmus.conformance.delta.session import java_session
from isolitmus.conformance.workers import Worker
from isolitmus.model.errors import EngineUnavailable, TimeLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

    from isolitmus.conformance.delta.session import Session
    from isolitmus.conformance.workers import Interruption

__all__ = [
    "CommitAttempt",
    "Gate",
    "HeldTransaction",
    "Parking",
    "Phase",
    "TransactionWatch",
    "version_read_by",
    "versions_made_by",
]

Phase = Literal["init", "prepare", "commit"]
"""Where a transaction can be held: at the start of this phase."""
PHASES: tuple[Phase, ...] = get_args(Phase)
NONE = -2
"""No version, in what Java tells: −1 is that of a table that is not there yet."""

_compiling = Lock()


@dataclass(frozen=True, slots=True)
class CommitAttempt:
    """A transaction as Delta has it. One that has neither made a version nor failed has nothing to
    commit, or is under way.
    """

    id: str
    """What its commit has as ``txnId``."""
    read_version: int | None
    """The version that it read; None while it has not."""
    phase: Phase
    """The last one that it came to."""
    version: int | None
    """The version that it made."""
    failed_at: int | None
    """The newest version when its commit failed."""

    @property
    def tried(self) -> bool:
        """Whether it came to its commit."""
        return self.phase == "commit"

    @property
    def met(self) -> range:
        """The versions between what it read and what it made, or those that were there when it
        failed.
        """
        read = -1 if self.read_version is None else self.read_version
        end = self.version if self.failed_at is None else self.failed_at + 1
        return range(read + 1, read + 1 if end is None or not self.tried else end)


def version_read_by(attempts: Iterable[CommitAttempt]) -> int | None:
    """What the first of these read that came to its commit, or else the first; None if none has."""
    reads = sorted(attempts, key=lambda attempt: not attempt.tried)
    return reads[0].read_version if reads else None


def versions_made_by(attempts: Iterable[CommitAttempt]) -> tuple[int, ...]:
    """The versions that these made."""
    return tuple(sorted(a.version for a in attempts if a.version is not None))


class Gate:
    """Where the transactions of one callable pass, those on a table (None: on any), and are
    held.
    """

    def __init__(self, java: Any) -> None:
        self.java = java

    def enter(self) -> None:
        """The calling thread is the callable's."""
        self.java.enter()

    def leave(self) -> None:
        """It is not any more."""
        self.java.leave()

    def open(self, until: Phase | None) -> None:
        """Hold at a phase, and those after it, from now on; None: let everything go."""
        self.java.open(_number(until))

    def open_once(self, until: Phase) -> None:
        """Let go to its end what is held, and hold the other transactions."""
        self.java.openOnce(_number(until))

    def advance(self) -> None:
        """Let what is held go on by a step, to its commit, and from there to its end; others are
        held as before.
        """
        self.java.advance()

    @property
    def reads(self) -> bool:
        """Whether a transaction waits here that has not come to its commit."""
        return bool(self.java.reads())

    @property
    def holds(self) -> bool:
        """Whether a transaction waits here."""
        return bool(self.java.holds())

    @property
    def settled(self) -> bool:
        """Whether no other thread of the callable is at its commit."""
        return bool(self.java.settled())

    @property
    def attempts(self) -> tuple[CommitAttempt, ...]:
        """The transactions that have begun, in this order."""
        return tuple(_attempt(*line.split()) for line in self.java.attempts().splitlines())


class TransactionWatch:
    """Makes gates; a context manager: it watches for the length of the block."""

    def __init__(self, session: Session) -> None:
        self._context = java_session(session.spark).sparkContext()
        with _compiling:
            self._java = _watch(session.jvm)
        self._names: list[str] = []

    def __enter__(self) -> Self:
        self._java.come(self._context)
        return self

    def __exit__(self, *_: object) -> None:
        self._java.go()
        for name in self._names:
            self._java.forget(name)

    def gate(self, name: str, table: Path | None, stop: Phase | None) -> Gate:
        """A gate by a name that no other has, for a table at a path or for any, that holds at a
        phase.
        """
        self._names.append(name)
        path = None if table is None else str(table.resolve())
        return Gate(self._java.gate(name, path, _number(stop)))

    def attribute(self, gate: Gate | None) -> None:
        """Whose the transactions are, from now on, of threads that say nothing; None: nobody's."""
        self._java.attribute(None if gate is None else gate.java)


def _number(phase: Phase | None) -> int:
    return len(PHASES) if phase is None else PHASES.index(phase)


def _attempt(identity: str, read: str, phase: str, version: str, failed_at: str) -> CommitAttempt:
    def number(text: str) -> int | None:
        return None if int(text) == NONE else int(text)

    return CommitAttempt(
        identity, number(read), PHASES[int(phase)], number(version), number(failed_at)
    )


@lru_cache(maxsize=1)
def _watch(jvm: Any) -> Any:
    """The one watch of a JVM. EngineUnavailable, one sentence, where Delta is another one."""
    from py4j.protocol import Py4JError

    source = (
        resources.files("isolitmus.conformance.delta").joinpath("Watch.java").read_text("utf-8")
    )
    try:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(source)
        return compiler.getClassLoader().loadClass("isolitmus.Watch").newInstance()
    except Py4JError as error:
        raise EngineUnavailable(
            "cannot observe the transactions of this version of Delta (supported:"
            " delta-spark 4.4.0):"
            f" {str(getattr(error, 'java_exception', error)).splitlines()[0]}"
        ) from error


T = TypeVar("T")

LAST_SECONDS = 15
"""How long an abandoned statement may take to notice that its jobs are cancelled."""


class HeldTransaction(Generic[T]):
    """One statement in a thread of its own; made by a Parking, which also sees to its end."""

    def __init__(
        self, name: str, body: Callable[[], T], session: Session, group: str, gate: Gate
    ) -> None:
        self.name = name
        self.gate = gate
        self._session = session
        self._group = group
        self._worker = Worker(group, lambda: self._run(body))

    def start(self) -> None:
        """Start the statement."""
        self._worker.start()

    def _run(self, body: Callable[[], T]) -> T:
        context = self._session.spark.sparkContext
        context.setJobGroup(self._group, self.name, interruptOnCancel=True)
        self.gate.enter()
        try:
            return body()
        finally:
            self.gate.leave()

    @property
    def held(self) -> bool:
        """Whether it waits to be let go."""
        return self.gate.holds

    @property
    def ended(self) -> bool:
        """Whether the statement has returned or failed, and nothing of it is under way in another
        thread.
        """
        return self._worker.ended and not self.gate.holds and self.gate.settled

    @property
    def attempts(self) -> tuple[CommitAttempt, ...]:
        """Its transactions, those on the table that is asked for."""
        return self.gate.attempts

    @property
    def error(self) -> BaseException | None:
        """What the statement raised, once it has ended."""
        return self._worker.error

    def result(self) -> T:
        """What the statement returned once it has ended; raises what it raised."""
        return self._worker.value()

    def abandon(self) -> None:
        """Let everything go and end the thread, whatever the statement is doing."""
        self.gate.open(None)
        for _ in range(LAST_SECONDS):  # more than once: between two jobs there is none to cancel
            if self.ended:
                break
            self._session.spark.sparkContext.cancelJobGroup(self._group)
            self._worker.join(1)


class Parking:
    """Starts statements, waits for them within a time limit, and leaves none behind. Given the path
    of a table it holds the transactions on that one, and those of other threads, too, that begin
    while it waits.

    A context manager: at the end of the block, however it comes, every statement that has not ended
    is released, its jobs are cancelled and its thread is waited for.
    """

    def __init__(
        self,
        session: Session,
        interruption: Interruption,
        seconds: float,
        table: Path | None = None,
    ) -> None:
        self._session = session
        self._interruption = interruption
        self._seconds = seconds
        self._table = table
        self._watch = TransactionWatch(session)
        self._started: list[HeldTransaction[Any]] = []

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for transaction in self._started:
                transaction.gate.open(None)
            for transaction in self._started:
                transaction.abandon()
        finally:
            self._watch.__exit__()

    def start(
        self, name: str, body: Callable[[], T], stop: Phase | None = None
    ) -> HeldTransaction[T]:
        """Start a statement; it returns parked at the phase ``stop``, or ended.

        One that is not to stop runs to its end. TimeLimit says of ``name`` what it did not do.
        """
        group = f"isolitmus-{uuid4().hex}"
        gate = self._watch.gate(group, self._table, stop)
        transaction = HeldTransaction(name, body, self._session, group, gate)
        self._started.append(transaction)
        with self._step(transaction, stop, "end"):
            transaction.start()
        return transaction

    def move(self, transaction: HeldTransaction[Any], stop: Phase) -> None:
        """Let a parked statement go on to a later phase, and wait for it to come there, or end."""
        with self._step(transaction, stop, ""):
            transaction.gate.open(stop)

    def next(self, transaction: HeldTransaction[Any], stop: Phase) -> None:
        """Let a parked statement's transaction go, and wait for the statement to come to a phase of
        its next one, or end.
        """
        with self._step(transaction, stop, ""):
            transaction.gate.open_once(stop)

    def advance(self, transaction: HeldTransaction[Any]) -> None:
        """Let a statement that is parked before a snapshot go on to its commit, or from there to
        its next transaction's snapshot, or its end.
        """
        with self._step(transaction, "init", ""):
            transaction.gate.advance()

    def finish(self, transaction: HeldTransaction[Any]) -> None:
        """Release a parked statement and wait for its end."""
        with self._step(transaction, None, "end after its commit was released"):
            transaction.gate.open(None)

    @contextmanager
    def _step(
        self, transaction: HeldTransaction[Any], stop: Phase | None, missing: str
    ) -> Iterator[None]:
        """Wait, after the block, for a statement to come to a phase, or end."""
        if self._table is not None:
            self._watch.attribute(transaction.gate)
        try:
            yield
            if stop is None:
                self._wait(transaction, lambda: transaction.ended, missing)
            else:
                self._wait(
                    transaction,
                    lambda: transaction.held or transaction.ended,
                    f"reach {_WHERE[stop]} or end",
                )
        finally:
            if self._table is not None:
                self._watch.attribute(None)

    def _wait(
        self, transaction: HeldTransaction[Any], condition: Callable[[], bool], missing: str
    ) -> None:
        if not self._interruption.wait_for(condition, self._seconds):
            raise TimeLimit(f"{transaction.name} did not {missing} within {self._seconds:g} s")


_WHERE: dict[Phase, str] = {
    "init": "its snapshot",
    "prepare": "the end of its reads",
    "commit": "its commit",
}
