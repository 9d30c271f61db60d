"""Delta's transactions as they happen: seen in whatever thread they begin, and held at a phase.

Delta asks for an observer whenever it begins a transaction (DeltaLog.startTransaction), and finds it by the thread
(TransactionExecutionObserver.scala). Its own observer for tests, which holds phases (fuzzer/), serves one
transaction of one thread, and knows neither the table nor the version that is read. So while somebody watches,
Delta finds ours on every thread (``Watch.java``): it sees the transaction itself, asks whose it is and of which
table, and gives it an observer of its own. Java's, because an exception has to pass through it as it is.

Held are INIT (the statement is analysed, its snapshot not taken, but where it brings its own: OPTIMIZE), PREPARE
(it has read and written its data files) and COMMIT (it knows its level and whether it is blind, and has tried no
version yet): at none of them does it hold a lock.

Whose a transaction is says a Spark property of its thread, which Spark hands on to the threads that are started
there, a streaming query's or a ``pyspark.InheritableThread``. A thread of Python's says nothing: it is theirs who
are in the middle of a step, since nobody else is then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from isolitmus.conformance.delta.session import in_java
from isolitmus.model.errors import EngineUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session

__all__ = ["Attempt", "Gate", "Phase", "Watch", "made_by", "read_by"]

Phase = Literal["init", "prepare", "commit"]
"""Where a transaction can be held: at the start of this phase."""
PHASES: tuple[Phase, ...] = get_args(Phase)
NONE = -2
"""No version, in what Java tells: −1 is that of a table that is not there yet."""

_compiling = Lock()


@dataclass(frozen=True, slots=True)
class Attempt:
    """A transaction as Delta has it. One that has neither made a version nor failed has nothing to commit, or
    is under way.
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
        """The versions between what it read and what it made, or those that were there when it failed."""
        read = -1 if self.read_version is None else self.read_version
        end = self.version if self.failed_at is None else self.failed_at + 1
        return range(read + 1, read + 1 if end is None or not self.tried else end)


def read_by(attempts: Iterable[Attempt]) -> int | None:
    """What the first of these read that came to its commit, or else the first; None if none has."""
    reads = sorted(attempts, key=lambda attempt: not attempt.tried)
    return reads[0].read_version if reads else None


def made_by(attempts: Iterable[Attempt]) -> tuple[int, ...]:
    """The versions that these made."""
    return tuple(sorted(a.version for a in attempts if a.version is not None))


class Gate:
    """Where the transactions of one callable pass, those on a table (None: on any), and are held."""

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
        """Let what is held go on by a step, to its commit, and from there to its end; others are held as before."""
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
    def attempts(self) -> tuple[Attempt, ...]:
        """The transactions that have begun, in this order."""
        return tuple(_attempt(*line.split()) for line in self.java.attempts().splitlines())


class Watch:
    """Makes gates; a context manager: it watches for the length of the block."""

    def __init__(self, session: Session) -> None:
        self._context = in_java(session.spark).sparkContext()
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
        """A gate by a name that no other has, for a table at a path or for any, that holds at a phase."""
        self._names.append(name)
        path = None if table is None else str(table.resolve())
        return Gate(self._java.gate(name, path, _number(stop)))

    def attribute(self, gate: Gate | None) -> None:
        """Whose the transactions are, from now on, of threads that say nothing; None: nobody's."""
        self._java.attribute(None if gate is None else gate.java)


def _number(phase: Phase | None) -> int:
    return len(PHASES) if phase is None else PHASES.index(phase)


def _attempt(identity: str, read: str, phase: str, version: str, failed_at: str) -> Attempt:
    def number(text: str) -> int | None:
        return None if int(text) == NONE else int(text)

    return Attempt(identity, number(read), PHASES[int(phase)], number(version), number(failed_at))


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
            "the transactions of this Spark's Delta cannot be watched; those of delta-spark 4.4.0 can:"
            f" {str(getattr(error, 'java_exception', error)).splitlines()[0]}"
        ) from error
