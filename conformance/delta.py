"""The engine PySpark with Delta: a litmus test carried out for real, and what was seen.

Each transaction is a SparkSession of its own that gets the author's text unchanged. ``x.start``
runs the statement up to its commit, ``x.commit`` lets the commit go and waits for the end, ``x``
alone runs the statement as anybody would. Whatever a commit says of itself is read from the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.failure import understand
from isolitmus.conformance.parking import Parking
from isolitmus.conformance.tables import made, table_level
from isolitmus.conformance.threads import interruptible
from isolitmus.conformance.versions import Chronicle, plain_row
from isolitmus.model.errors import EngineUnavailable, LitmusError
from isolitmus.model.run import Run, TransactionRun
from isolitmus.model.statement import Read
from isolitmus.model.values import sort_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.conformance.parking import Transaction
    from isolitmus.conformance.session import Session
    from isolitmus.conformance.tables import Tables
    from isolitmus.conformance.threads import Interruption
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Rows

__all__ = ["ENGINE", "replay"]

ENGINE = "delta"
"""This engine's name on the command line and in results."""


def replay(litmus: Litmus, protocol: str, session: Session, *, seconds: float = 180.0) -> Run:
    """Carry out the schedule on real tables of the protocol's isolation level.

    ``seconds`` is the time limit of each step (the first one of a cold session can take 20 on a
    loaded machine). Raises UnknownName for a protocol that Delta does not have, LitmusError if an
    init statement fails, TimeLimit, and EngineUnavailable if the JVM dies; a transaction that fails
    is an outcome. Leaves no table, no thread and no parked statement behind, whatever happens.
    """
    level = table_level(protocol)

    def carry_out(interruption: Interruption) -> Run:
        from py4j.protocol import Py4JNetworkError

        try:
            with (
                made(litmus, level, session) as tables,
                Parking(session, interruption, seconds) as parking,
            ):
                _initialise(litmus, tables, parking, session)
                return _Replay(litmus, tables, parking, session).run(protocol)
        except (Py4JNetworkError, ConnectionError) as error:
            raise EngineUnavailable(f"Spark's JVM ended during '{litmus.name}': {error}") from error

    return interruptible(carry_out)


def _initialise(litmus: Litmus, tables: Tables, parking: Parking, session: Session) -> None:
    for statement in litmus.init:
        body = _body(statement, tables.client(_target(statement)))
        transaction = parking.start(f"init statement {statement.sql!r}", body)
        if transaction.error is not None:
            failure = understand(transaction.error, session.jvm)
            raise LitmusError(
                f"{litmus.name}: init statement '{statement.sql}' fails on Delta with"
                f" {failure.error_class or failure.exception}"
            ) from transaction.error


@dataclass(slots=True)
class _Started:
    """A transaction under way: its thread, the version when it started, its commits so far."""

    thread: Transaction[Rows | None]
    version: int
    commits: tuple[int, ...] = ()


class _Replay:
    def __init__(self, litmus: Litmus, tables: Tables, parking: Parking, session: Session) -> None:
        self._litmus = litmus
        self._tables = tables
        self._parking = parking
        self._session = session
        self._chronicle = Chronicle(tables.paths)
        self._started: dict[str, _Started] = {}

    def run(self, protocol: str) -> Run:
        for step in self._litmus.schedule.steps:
            self._take(step)
        return Run(
            litmus=self._litmus.name,
            engine=ENGINE,
            engine_version=self._session.version,
            protocol=protocol,
            base=next(iter(self._chronicle.base.values())),
            transactions={name: self._observed(name) for name in self._litmus.transactions},
            versions=self._chronicle.rows(self._session),
        )

    def _take(self, step: Step) -> None:
        name = step.transaction
        statement = self._litmus.transactions[name]
        if step.action == "commit":
            self._parking.finish(self._started[name].thread)
        else:
            stops = step.action == "start" and not isinstance(statement, Read)
            body = _body(statement, self._tables.client(_target(statement)))
            version = self._chronicle.version
            thread = self._parking.start(
                f"{name}, {statement.sql!r},", body, "commit" if stops else None
            )
            self._started[name] = _Started(thread, version)
        self._started[name].commits += self._chronicle.update()

    def _observed(self, name: str) -> TransactionRun:
        started = self._started[name]
        error = started.thread.error
        if error is not None:
            failure = understand(error, self._session.jvm)
            return TransactionRun(
                failure.outcome,
                failure.exception,
                failure.error_class,
                started.version,
                version=max(started.commits, default=None),
                commits=started.commits,
            )
        if isinstance(self._litmus.transactions[name], Read):
            return TransactionRun(
                "committed", read_version=started.version, rows=started.thread.result()
            )
        if not started.commits:
            return TransactionRun("no-op", read_version=started.version)
        last = self._chronicle.commit(started.commits[-1])
        return TransactionRun(
            "committed",
            read_version=self._chronicle.read_version(started.commits[0], started.version),
            version=started.commits[-1],
            commits=started.commits,
            blind=last.blind,
            isolation_level=last.isolation_level,
            operation=last.operation,
        )


def _target(statement: Statement) -> str | None:
    return None if isinstance(statement, Read) else statement.target


def _body(statement: Statement, client: Any) -> Callable[[], Rows | None]:
    """The statement as a callable: runs the author's text, returns the rows of a reader."""

    def body() -> Rows | None:
        rows = client.sql(statement.sql).collect()
        return sort_rows(map(plain_row, rows)) if isinstance(statement, Read) else None

    return body
