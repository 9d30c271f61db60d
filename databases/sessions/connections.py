"""Interface of database servers whose connections run statements concurrently.

A statement can be held at a row of its scan, or wait for another connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.values import Rows

COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
LIMIT = 30.0
"""Time limit in seconds for every statement to end, to reach the row where it is held, or to wait.
"""
Doing = Literal["idle", "held", "waits", "runs"]


@dataclass(frozen=True, slots=True)
class SqlFailure:
    """Failure of a statement: its SQLSTATE and the database's message."""

    state: str
    message: str
    circle: tuple[tuple[str, tuple[str, ...], str], ...] = ()
    """Cycle of a deadlock, if reported.

    Each entry has a waiting connection, those it waits for, and what it waits for
    (``Connection.wants``).
    """


class StatementError(Exception):
    """Failure of a statement that belongs to no transaction of a litmus test."""

    def __init__(self, failure: SqlFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Connection:
    """State of a connection and the result of its last statement."""

    state: Doing
    """``idle`` between statements, ``held`` at a row, ``waits`` for others, or ``runs``."""
    behind: tuple[str, ...] = ()
    """Connections that it waits for, sorted: lock holders, and those ahead in the queue."""
    wants: str = ""
    """Lock that it waits for, in the database's words."""
    passed: tuple[tuple[str | None, ...], ...] = ()
    """Rows that the scans of its statement returned, as texts, including the one where it is held.
    """
    rows: Rows | None = None
    """Result of its last statement; None if that is no query or has not ended."""
    changed: int = 0
    """Number of rows that its last statement wrote."""
    failure: SqlFailure | None = None
    """Failure of its last statement."""
    path: str | None = None
    """Index that its last statement, an UPDATE or DELETE, used; empty for none, None if unknown."""


IDLE = Connection("idle")
"""Connection that has had no request yet."""


class Server(Protocol):
    """Database server to which connections are opened."""

    @property
    def release(self) -> str:
        """Version that the server reports."""

    def run(self, statement: str) -> Rows:
        """Run a statement outside all transactions; raise StatementError if it fails."""

    def open(self, name: str, level: str) -> None:
        """Open a named connection with a transaction at an isolation level."""

    def ask(self, name: str, statement: str, stop: int = 0) -> None:
        """Send a statement to a connection, COMMIT and ROLLBACK included.

        Parameters
        ----------
        name : str
            Name of the connection.
        statement : str
            Statement to run.
        stop : int
            Number of the row at which the statement is held, counted from 1; 0 for none.
        """

    def let(self, name: str, stop: int = 0) -> None:
        """Release a held statement up to the row of this number; 0: to its end.

        Rows are counted from the statement's first one.
        """

    def cancel(self, name: str) -> None:
        """Cancel the held statement of a connection; its transaction goes on."""

    def settle(self, seconds: float = LIMIT) -> Mapping[str, Connection]:
        """Wait until no connection can proceed by itself, and return the state of each.

        A connection that does not get there in time has the state ``runs``.
        """

    def close(self) -> None:
        """Close every connection, whatever it is doing, and undo what it has not committed.

        Raises EngineUnavailable if a connection does not end.
        """
