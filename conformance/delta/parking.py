"""Transactions of Delta held at phases, and statements parked there until they are released.

Delta asks for an observer when it begins a transaction (DeltaLog.startTransaction), and looks it up
by thread (TransactionExecutionObserver.scala). Its own observer for tests, which holds phases
(fuzzer/), serves one transaction of one thread, and knows neither the table nor the version that is
read. So while a watch is active, Delta finds the observer of ``Watch.java`` on every thread. It
sees the transaction itself, determines its owner and its table, and gives it an observer of its
own. It is written in Java because an exception has to pass through it unchanged.

A transaction can be held at INIT (the statement is analysed, and its snapshot not taken, unless it
brings its own: OPTIMIZE), PREPARE (it has read and written its data files) and COMMIT (it knows its
level and whether it is blind, and has tried no version yet). It holds no lock at any of them.

The owner of a transaction is a Spark property of its thread. Spark passes it on to threads that are
started there, such as a streaming query's or a ``pyspark.InheritableThread``. A thread of Python
has no such property: its transactions belong to the statement whose step is in progress, since only
one is at a time.

A statement that records nothing never reaches its commit, and one that writes only other tables
never reaches a commit on the observed table. It is then not parked, but has ended. Transactions in
other threads of a statement belong to it: none of them passes the phase while it is parked, and it
has not ended while one of them waits or commits.
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

Phase = Literal["init", "prepare", "commit"]
"""Phase at whose start a transaction can be held."""
PHASES: tuple[Phase, ...] = get_args(Phase)
NONE = -2
"""Sentinel for "no version" in the output of Watch.java; −1 is the version of a missing table."""

_compiling = Lock()


@dataclass(frozen=True, slots=True)
class CommitAttempt:
    """Transaction as Delta reports it.

    One without a version or a failure has nothing to commit, or is still running.
    """

    id: str
    """``txnId`` of its commit."""
    read_version: int | None
    """Version that it read; None before its snapshot."""
    phase: Phase
    """Last phase that it reached."""
    version: int | None
    """Version that it committed."""
    failed_at: int | None
    """Newest version when its commit failed."""

    @property
    def tried(self) -> bool:
        """True if it reached its commit."""
        return self.phase == "commit"

    @property
    def met(self) -> range:
        """Versions of concurrent commits: after its snapshot, before its own commit or failure."""
        read = -1 if self.read_version is None else self.read_version
        end = self.version if self.failed_at is None else self.failed_at + 1
        return range(read + 1, read + 1 if end is None or not self.tried else end)


def version_read_by(attempts: Iterable[CommitAttempt]) -> int | None:
    """Return the read version of the first transaction that reached its commit, else of the first.

    None if there is no transaction.
    """
    reads = sorted(attempts, key=lambda attempt: not attempt.tried)
    return reads[0].read_version if reads else None


def versions_made_by(attempts: Iterable[CommitAttempt]) -> tuple[int, ...]:
    """Return the versions that these transactions committed, sorted."""
    return tuple(sorted(a.version for a in attempts if a.version is not None))


class Gate:
    """Point that holds the transactions of one callable, on one table or on any table."""

    def __init__(self, java: Any) -> None:
        self.java = java

    def enter(self) -> None:
        """Assign the calling thread to the callable."""
        self.java.enter()

    def leave(self) -> None:
        """End the assignment of the calling thread."""
        self.java.leave()

    def open(self, until: Phase | None) -> None:
        """Hold transactions at this phase and the later ones from now on; None: release all."""
        self.java.open(_number(until))

    def open_once(self, until: Phase) -> None:
        """Release the held transactions to their end, and hold the others at this phase."""
        self.java.openOnce(_number(until))

    def advance(self) -> None:
        """Release the held transactions by a step: to their commit, and from there to their end.

        Other transactions are held as before.
        """
        self.java.advance()

    @property
    def reads(self) -> bool:
        """True if a transaction is held here before its commit."""
        return bool(self.java.reads())

    @property
    def holds(self) -> bool:
        """True if a transaction is held here."""
        return bool(self.java.holds())

    @property
    def settled(self) -> bool:
        """True if no other thread of the callable is at its commit."""
        return bool(self.java.settled())

    @property
    def attempts(self) -> tuple[CommitAttempt, ...]:
        """Transactions that have begun, in order."""
        return tuple(_attempt(*line.split()) for line in self.java.attempts().splitlines())


class TransactionWatch:
    """Context manager that observes the transactions of a session and creates gates for them."""

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
        """Return a gate that holds transactions at a phase.

        Parameters
        ----------
        name : str
            Unique name of the gate.
        table : Path or None
            Path of the table whose transactions are held; None for any table.
        stop : Phase or None
            Phase at which they are held; None for none.
        """
        self._names.append(name)
        path = None if table is None else str(table.resolve())
        return Gate(self._java.gate(name, path, _number(stop)))

    def attribute(self, gate: Gate | None) -> None:
        """Assign transactions of threads without an owner to a gate (None: to none) from now on."""
        self._java.attribute(None if gate is None else gate.java)


def _number(phase: Phase | None) -> int:
    return len(PHASES) if phase is None else PHASES.index(phase)


def _attempt(identity: str, read: str, phase: str, version: str, failed_at: str) -> CommitAttempt:
    """Parse the fields of a commit attempt; the number ``NONE`` stands for None."""

    def number(text: str) -> int | None:
        return None if int(text) == NONE else int(text)

    return CommitAttempt(
        identity, number(read), PHASES[int(phase)], number(version), number(failed_at)
    )


@lru_cache(maxsize=1)
def _watch(jvm: Any) -> Any:
    """Return the one watch of a JVM; raise EngineUnavailable for another version of Delta."""
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
"""Time in seconds for an abandoned statement to notice that its jobs are cancelled."""


class HeldTransaction(Generic[T]):
    """Statement in its own thread; created and ended by a ``Parking``."""

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
        """Run the statement inside the gate, in its own Spark job group."""
        context = self._session.spark.sparkContext
        context.setJobGroup(self._group, self.name, interruptOnCancel=True)
        self.gate.enter()
        try:
            return body()
        finally:
            self.gate.leave()

    @property
    def held(self) -> bool:
        """True if it waits for its release."""
        return self.gate.holds

    @property
    def ended(self) -> bool:
        """True if the statement has ended, and none of its transactions runs in another thread."""
        return self._worker.ended and not self.gate.holds and self.gate.settled

    @property
    def attempts(self) -> tuple[CommitAttempt, ...]:
        """Transactions of the statement on the observed table."""
        return self.gate.attempts

    @property
    def error(self) -> BaseException | None:
        """Exception of the statement, once it has ended."""
        return self._worker.error

    def result(self) -> T:
        """Return the statement's result once it has ended; raise its exception."""
        return self._worker.value()

    def abandon(self) -> None:
        """Release the statement and end its thread, whatever it is doing."""
        self.gate.open(None)
        for _ in range(LAST_SECONDS):  # repeated, since between two jobs there is none to cancel
            if self.ended:
                break
            self._session.spark.sparkContext.cancelJobGroup(self._group)
            self._worker.join(1)


class Parking:
    """Context manager that starts statements, waits for them with a time limit, and ends them.

    With the path of a table, it holds the transactions on that table, including those of other
    threads that begin while it waits. At the end of the block, every statement that has not ended
    is released, its jobs are cancelled and its thread is joined.
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
        """Start a statement and return it parked at the phase ``stop``, or ended.

        Without a phase it runs to its end. Raises TimeLimit, with ``name``, if it does not get
        there.
        """
        group = f"isolitmus-{uuid4().hex}"
        gate = self._watch.gate(group, self._table, stop)
        transaction = HeldTransaction(name, body, self._session, group, gate)
        self._started.append(transaction)
        with self._step(transaction, stop, "end"):
            transaction.start()
        return transaction

    def move(self, transaction: HeldTransaction[Any], stop: Phase) -> None:
        """Release a parked statement to a later phase, and wait until it gets there or ends."""
        with self._step(transaction, stop, ""):
            transaction.gate.open(stop)

    def next(self, transaction: HeldTransaction[Any], stop: Phase) -> None:
        """Release the transaction of a parked statement, and wait for its next one or the end."""
        with self._step(transaction, stop, ""):
            transaction.gate.open_once(stop)

    def advance(self, transaction: HeldTransaction[Any]) -> None:
        """Release a parked statement by a step.

        The step is from before a snapshot to the commit, and from there to the next transaction's
        snapshot, or the end.
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
        """Wait, after the block, until a statement reaches a phase or ends."""
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
