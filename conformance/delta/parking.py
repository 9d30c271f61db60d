"""A statement that stops at a phase of its transaction, until it is told to go on.

``conformance.delta.watching`` says how Delta's transactions are held. A statement that has nothing to record never comes
to its commit, and what writes other tables only never to one of the table that is asked for: it is parked *or* it
has ended. What it has in other threads belongs to it: none of its transactions goes beyond the phase while it is
parked, and it has not ended while one of them waits or commits.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from uuid import uuid4

from isolitmus.conformance.delta.watching import Watch
from isolitmus.conformance.workers import Worker
from isolitmus.model.errors import TimeLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from isolitmus.conformance.delta.session import Session
    from isolitmus.conformance.delta.watching import Attempt, Gate, Phase
    from isolitmus.conformance.workers import Interruption

__all__ = ["HeldTransaction", "Parking"]

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
        """Whether the statement has returned or failed, and nothing of it is under way in another thread."""
        return self._worker.ended and not self.gate.holds and self.gate.settled

    @property
    def attempts(self) -> tuple[Attempt, ...]:
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
    """Starts statements, waits for them within a time limit, and leaves none behind. Given the path of a table it
    holds the transactions on that one, and those of other threads, too, that begin while it waits.

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
        self._watch = Watch(session)
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
        """Let a parked statement's transaction go, and wait for the statement to come to a phase of its next
        one, or end.
        """
        with self._step(transaction, stop, ""):
            transaction.gate.open_once(stop)

    def advance(self, transaction: HeldTransaction[Any]) -> None:
        """Let a statement that is parked before a snapshot go on to its commit, or from there to its next transaction's
        snapshot, or its end.
        """
        with self._step(transaction, "init", ""):
            transaction.gate.advance()

    def finish(self, transaction: HeldTransaction[Any]) -> None:
        """Release a parked statement and wait for its end."""
        with self._step(transaction, None, "end after its commit was let through"):
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
                    f"come to {_WHERE[stop]}, nor end",
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
