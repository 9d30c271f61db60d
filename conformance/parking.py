"""A statement that stops at a phase of its transaction, until it is told to go on.

Delta lets an observer hold a transaction at the start of each phase
(fuzzer/PhaseLockingTransactionExecutionObserver.scala, in the released jar). Held here are
INIT (the statement is analysed, its snapshot not taken), PREPARE (it has read and written its data
files) and COMMIT (it knows its level and whether it is blind, and has tried no version yet): at none
of them does it hold a lock. What follows from Delta's rules:

* A barrier must be opened exactly once, and all of them on every way out: an aborting transaction
  waits for COMMIT, BACKFILL and POST_COMMIT as well.
* A statement with nothing to record never reaches COMMIT, and one that brings its own snapshot
  (OPTIMIZE) never reaches INIT: it is parked *or* it has ended.
* An observer serves one transaction. OPTIMIZE starts a second one on the same thread after a
  conflict, to see whether it may retry (OptimizeTableCommand.scala, commitAndRetry); with the same
  observer that would fail with IllegalStateTransitionException in place of the conflict. So the
  observer that does nothing is chained behind ours, and a second transaction runs freely, unless it is
  to be held, too: then it gets an observer of its own, chained behind the first.
* Between the two, a chained observer waits for the exit of POST_COMMIT, which nobody else opens.

A post-commit hook with a transaction of its own (auto-compaction) runs before the chain advances,
fails on our observer and is swallowed by Delta: a parked statement does not auto-compact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar
from uuid import uuid4

from isolitmus.conformance.threads import Worker
from isolitmus.model.errors import TimeLimit

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from isolitmus.conformance.session import Session
    from isolitmus.conformance.threads import Interruption

__all__ = ["Parking", "Phase", "Transaction"]

T = TypeVar("T")
Phase = Literal["init", "prepare", "commit"]
"""Where a statement can be held: at the start of this phase."""

LAST_SECONDS = 15
"""How long an abandoned statement may take to notice that its jobs are cancelled."""


class Transaction(Generic[T]):
    """One statement in a thread of its own; made by a Parking, which also sees to its end."""

    def __init__(
        self, name: str, body: Callable[[], T], session: Session, stop: Phase | None
    ) -> None:
        self.name = name
        self._session = session
        self._group = f"isolitmus-{uuid4().hex}"
        self._brake = None if stop is None else _Brake(name, session)
        self.go_on(stop)
        self._worker = Worker(self._group, lambda: self._run(body))
        self._worker.start()

    def _run(self, body: Callable[[], T]) -> T:
        context = self._session.spark.sparkContext
        context.setJobGroup(self._group, self.name, interruptOnCancel=True)
        if self._brake is None:
            return body()
        self._brake.install()
        try:
            return body()
        finally:
            self._brake.remove()

    @property
    def ended(self) -> bool:
        """Whether the statement has returned or failed."""
        return self._worker.ended

    def reached(self, phase: Phase) -> bool:
        """Whether the statement has come to this phase (it may have been let through since)."""
        return self._brake is not None and self._brake.reached(phase)

    def go_on(self, until: Phase | None = None) -> None:
        """Let a parked statement go on, to its end or until it comes to a phase."""
        if self._brake is not None:
            self._brake.release(until)

    def pass_on(self, until: Phase) -> None:
        """Let a parked statement's transaction go, and hold the next one that it starts at a phase."""
        if self._brake is not None:
            self._brake.chain()
            self._brake.release(until)

    @property
    def error(self) -> BaseException | None:
        """What the statement raised, once it has ended."""
        return self._worker.error

    def result(self) -> T:
        """What the statement returned once it has ended; raises what it raised."""
        return self._worker.value()

    def abandon(self) -> None:
        """Let everything go and end the thread, whatever the statement is doing."""
        self.go_on()
        for _ in range(LAST_SECONDS):  # more than once: between two jobs there is none to cancel
            if self.ended:
                break
            self._session.spark.sparkContext.cancelJobGroup(self._group)
            self._worker.join(1)


class Parking:
    """Starts statements, waits for them within a time limit, and leaves none behind.

    A context manager: at the end of the block, however it comes, every statement that has not ended
    is released, its jobs are cancelled and its thread is waited for.
    """

    def __init__(self, session: Session, interruption: Interruption, seconds: float) -> None:
        self._session = session
        self._interruption = interruption
        self._seconds = seconds
        self._started: list[Transaction[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for transaction in self._started:
            transaction.go_on()
        for transaction in self._started:
            transaction.abandon()

    def start(self, name: str, body: Callable[[], T], stop: Phase | None = None) -> Transaction[T]:
        """Start a statement; it returns parked at the phase ``stop``, or ended.

        One that is not to stop runs to its end. TimeLimit says of ``name`` what it did not do.
        """
        transaction = Transaction(name, body, self._session, stop)
        self._started.append(transaction)
        self._until(transaction, stop, "end")
        return transaction

    def move(self, transaction: Transaction[Any], stop: Phase) -> None:
        """Let a parked statement go on to a later phase, and wait for it to come there, or end."""
        transaction.go_on(stop)
        self._until(transaction, stop, "")

    def next(self, transaction: Transaction[Any], stop: Phase) -> None:
        """Let a parked statement's transaction go, and wait for the statement to come to a phase of its next
        one, or end.
        """
        transaction.pass_on(stop)
        self._until(transaction, stop, "")

    def finish(self, transaction: Transaction[Any]) -> None:
        """Release a parked statement and wait for its end."""
        transaction.go_on()
        self._until(transaction, None, "end after its commit was let through")

    def _until(self, transaction: Transaction[Any], stop: Phase | None, missing: str) -> None:
        if stop is None:
            self._wait(transaction, lambda: transaction.ended, missing)
            return
        self._wait(
            transaction,
            lambda: transaction.reached(stop) or transaction.ended,
            f"come to {_WHERE[stop]}, nor end",
        )

    def _wait(
        self, transaction: Transaction[Any], condition: Callable[[], bool], missing: str
    ) -> None:
        if not self._interruption.wait_for(condition, self._seconds):
            raise TimeLimit(f"{transaction.name} did not {missing} within {self._seconds:g} s")


_WHERE: dict[Phase, str] = {
    "init": "its snapshot",
    "prepare": "the end of its reads",
    "commit": "its commit",
}


class _Brake:
    """Delta's observer of one transaction after another, each held at the entry of its phases."""

    def __init__(self, name: str, session: Session) -> None:
        package = "org.apache.spark.sql.delta"
        self._name = name
        self._current = session.scala(f"{package}.TransactionExecutionObserver")
        self._idle = session.scala(f"{package}.NoOpTransactionExecutionObserver")
        self._session = session
        self._observer = self._observe()

    def _observe(self) -> Any:
        """An observer of a transaction, all of its barriers shut."""
        fuzzer = "org.apache.spark.sql.delta.fuzzer"
        phases = self._session.java(f"{fuzzer}.OptimisticTransactionPhases").forName(self._name)
        observer = self._session.java(f"{fuzzer}.PhaseLockingTransactionExecutionObserver")(phases)
        observer.setNextObserver(self._idle, True)
        self._phases: dict[Phase, Any] = {
            "init": phases.initialPhase(),
            "prepare": phases.preparePhase(),
            "commit": phases.commitPhase(),
        }
        self._shut: list[tuple[Phase | None, Any]] = [
            *((phase, lock.entryBarrier()) for phase, lock in self._phases.items()),
            (None, phases.backfillPhase().entryBarrier()),
            (None, phases.postCommitPhase().entryBarrier()),
            (None, phases.postCommitPhase().exitBarrier()),
        ]
        return observer

    def install(self) -> None:
        """Observe the transactions of the calling thread."""
        self._current.setObserver(self._observer)

    def remove(self) -> None:
        """Observe them no longer."""
        self._current.setObserver(self._idle)

    def chain(self) -> None:
        """Let the transaction go; from its end on the next one is observed."""
        observer, shut = self._observer, self._shut
        self._observer = self._observe()
        observer.setNextObserver(self._observer, True)
        for _, barrier in shut:
            barrier.unblock()

    def reached(self, phase: Phase) -> bool:
        return bool(self._phases[phase].hasReached())

    def release(self, until: Phase | None) -> None:
        """Open every barrier that is still shut and stands before a phase (None: all), each once."""
        shut = [phase for phase, _ in self._shut]
        ahead = len(shut) if until is None else shut.index(until) if until in shut else 0
        for _ in range(ahead):
            self._shut.pop(0)[1].unblock()
