"""Connections to a database: statements that run beside each other, are held at a row, or wait for
one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.values import Rows

__all__ = [
    "COMMIT",
    "IDLE",
    "LIMIT",
    "ROLLBACK",
    "Connection",
    "Doing",
    "Server",
    "SqlFailure",
    "StatementError",
]

COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
LIMIT = 30.0
"""Seconds in which every statement must have come to its end, to a row where it is held, or to
wait.
"""
Doing = Literal["idle", "held", "waits", "runs"]


@dataclass(frozen=True, slots=True)
class SqlFailure:
    """Why a statement failed: its SQLSTATE, and what the database said."""

    state: str
    message: str
    circle: tuple[tuple[str, tuple[str, ...], str], ...] = ()
    """In a deadlock: who waited, for whom, and for what (``Connection.wants``), if that is told."""


class StatementError(Exception):
    """A statement that is nobody's of a litmus test has failed."""

    def __init__(self, failure: SqlFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a connection is, and what became of its last statement."""

    state: Doing
    """``idle``: between two statements; ``held`` at a row; it ``waits`` for others; or it
    ``runs``.
    """
    behind: tuple[str, ...] = ()
    """For whom it waits: who has what it wants, and who was before it, sorted."""
    wants: str = ""
    """For what it waits, in the database's words."""
    passed: tuple[tuple[str | None, ...], ...] = ()
    """The rows at which its statement came by, the one where it is held included, as texts."""
    rows: Rows | None = None
    """What its last statement gave; None: it is no query, or not through."""
    changed: int = 0
    """How many rows its last statement wrote."""
    failure: SqlFailure | None = None
    """Why its last statement failed."""
    path: str | None = None
    """The index by which its last statement, an UPDATE or DELETE, went; empty: by none. None: that
    is not told.
    """


IDLE = Connection("idle")
"""One that was not asked for anything yet."""


class Server(Protocol):
    """A database that connections are opened to."""

    @property
    def release(self) -> str:
        """What it says of itself."""

    def run(self, statement: str) -> Rows:
        """A statement of no transaction, and what it gives; StatementError if it fails."""

    def open(self, name: str, level: str) -> None:
        """A connection by a name, with a transaction at an isolation level."""

    def ask(self, name: str, statement: str, stop: int = 0) -> None:
        """A statement on a connection, COMMIT and ROLLBACK among them; it is held at the row of
        this number that comes by (0: at none).
        """

    def let(self, name: str, stop: int = 0) -> None:
        """What is held goes on, to the row of this number, counted from the statement's first (0:
        to its end).
        """

    def cancel(self, name: str) -> None:
        """The statement that is held fails, and its transaction lives on."""

    def settle(self, seconds: float = LIMIT) -> Mapping[str, Connection]:
        """Where each connection is, once none of them gets any further by itself; one that does not
        come so far in time ``runs``.
        """

    def close(self) -> None:
        """Every connection is closed, whatever it was doing, and what it did not commit is undone;
        EngineUnavailable if one does not end.
        """
