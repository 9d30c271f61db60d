"""What those see who share a database with others, where a litmus test has no word for it: Derby
and PostgreSQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.conformance.databases.connections import COMMIT
from isolitmus.conformance.derby.server import open_derby
from isolitmus.conformance.observations.record import ObservationResult
from isolitmus.conformance.postgres.server import open_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from isolitmus.conformance.databases.connections import Server
    from isolitmus.conformance.observations.record import Facts

__all__ = ["DECLARED", "SERVERS", "UNCOMMITTED", "DatabaseObservation"]

SERVERS: Mapping[str, Callable[[], AbstractContextManager[Server]]] = {
    "derby": open_derby,
    "postgres": open_postgres,
}
"""What starts a database, by the engine's name."""
VIOLATIONS = {"23503": "ForeignKeyViolation", "23513": "CheckViolation", "23514": "CheckViolation"}
"""The constraints that a statement breaks, by SQLSTATE."""
READ_COMMITTED = "read committed"


@dataclass(frozen=True, slots=True)
class DatabaseObservation:
    """What is asked of real databases, all of which are expected to show the same."""

    name: str
    """By which it is asked for."""
    title: str
    """What it shows, in a sentence."""
    expected: Facts
    """The facts that it is to show."""
    observe: Callable[[_Clients], Facts]
    """What was seen."""
    engines: tuple[str, ...]
    """The engines that can be asked."""
    wide: bool = False
    """Whether it takes long."""

    def made(self, server: Server) -> ObservationResult:
        """Look, on a server on which nothing of it stays; StatementError if what is not asked
        fails.
        """
        clients = _Clients(server)
        try:
            return ObservationResult(self.name, self.expected, self.observe(clients))
        finally:
            clients.leave()


class _Clients:
    """The clients of a server, one statement at a time, none of which has to wait."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.made: list[str] = []

    def make(self, table: str, columns: str, *rows: str) -> None:
        """Make a table with these rows."""
        self.server.run(f"CREATE TABLE {table} ({columns})")
        self.made.append(table)
        for row in rows:
            self.server.run(f"INSERT INTO {table} VALUES ({row})")

    def begin(self, level: str, *names: str) -> None:
        """Begin transactions at a level."""
        for name in names:
            self.server.open(name, level)

    def say(self, name: str, statement: str) -> str:
        """How a statement of a transaction ends: what it gives or ``done``, or the class of its
        error.
        """
        self.server.ask(name, statement)
        seen = self.server.settle()[name]
        if seen.failure is not None:
            return VIOLATIONS.get(seen.failure.state, seen.failure.state)
        return "done" if seen.rows is None else str(seen.rows[0][0])

    def end(self) -> None:
        """End all transactions; what is not committed is undone."""
        self.server.close()

    def number(self, query: str) -> object:
        """The number that a query gives, of what is committed."""
        return self.server.run(query)[0][0]

    def leave(self) -> None:
        """End all, and drop the tables."""
        self.end()
        while self.made:
            self.server.run(f"DROP TABLE {self.made.pop()}")


# Rules by hand, and declared ones


def _declared(clients: _Clients) -> Facts:
    found: dict[str, object] = {}
    for how, key, check in (
        ("by hand", "", ""),
        ("declared", " REFERENCES parent (id)", " CHECK (balance >= 0)"),
    ):
        found |= {f"{fact}, {how}": seen for fact, seen in _orphaned(clients, key).items()}
        found |= {f"{fact}, {how}": seen for fact, seen in _overdrawn(clients, check).items()}
    return found


def _orphaned(clients: _Clients, key: str) -> Facts:
    """One looks for the parent and inserts a child; another looks for children and deletes the
    parent.
    """
    clients.make("parent", "id INT NOT NULL PRIMARY KEY", "1")
    clients.make("child", f"parent INT{key}")
    clients.begin(READ_COMMITTED, "a", "b")
    seen = clients.say("a", "SELECT COUNT(*) FROM parent WHERE id = 1")
    none = clients.say("b", "SELECT COUNT(*) FROM child WHERE parent = 1")
    assert (seen, none) == ("1", "0")
    clients.say("a", "INSERT INTO child VALUES (1)")
    clients.say("a", COMMIT)
    deleted = clients.say("b", "DELETE FROM parent WHERE id = 1")
    clients.say("b", COMMIT)
    clients.end()
    orphans = clients.number(
        "SELECT COUNT(*) FROM child WHERE parent NOT IN (SELECT id FROM parent)"
    )
    clients.leave()
    return {"the DELETE": deleted, "children without a parent": orphans}


def _overdrawn(clients: _Clients, check: str) -> Facts:
    """Two look whether 100 cover 80, and take them."""
    clients.make("account", f"balance INT{check}", "100")
    clients.begin(READ_COMMITTED, "a", "b")
    seen = [clients.say(name, "SELECT balance FROM account") for name in "ab"]
    assert seen == ["100", "100"]
    taken = ""
    for name in "ab":
        taken = clients.say(name, "UPDATE account SET balance = balance - 80")
        clients.say(name, COMMIT)
    clients.end()
    missing = clients.number("SELECT COUNT(*) FROM account WHERE balance < 0")
    clients.leave()
    return {"the second UPDATE": taken, "accounts below zero": missing}


DECLARED = DatabaseObservation(
    "declared-constraints",
    "Two transactions at READ COMMITTED each check that a rule allows their change, and then"
    " make it: checked by hand, both rules are violated; a FOREIGN KEY and a CHECK reject the"
    " second change",
    {
        "the DELETE, by hand": "done",
        "children without a parent, by hand": 1,
        "the second UPDATE, by hand": "done",
        "accounts below zero, by hand": 1,
        "the DELETE, declared": "ForeignKeyViolation",
        "children without a parent, declared": 0,
        "the second UPDATE, declared": "CheckViolation",
        "accounts below zero, declared": 0,
    },
    _declared,
    ("derby", "postgres"),
)


# READ UNCOMMITTED


def _uncommitted(clients: _Clients) -> Facts:
    clients.make("account", "balance INT", "100")
    clients.begin(READ_COMMITTED, "writer")
    clients.begin("read uncommitted", "reader")
    query = "SELECT balance FROM account"
    found: dict[str, object] = {"level": clients.say("reader", "SHOW transaction_isolation")}
    found["at first"] = int(clients.say("reader", query))
    clients.say("writer", "UPDATE account SET balance = 20")
    found["while the change is not committed"] = int(clients.say("reader", query))
    clients.say("writer", COMMIT)
    found["once it is committed"] = int(clients.say("reader", query))
    return found


UNCOMMITTED = DatabaseObservation(
    "read-uncommitted",
    "A transaction at READ UNCOMMITTED reads a row three times while another one changes it:"
    " PostgreSQL returns what READ COMMITTED returns",
    {
        "level": "read uncommitted",
        "at first": 100,
        "while the change is not committed": 100,
        "once it is committed": 20,
    },
    _uncommitted,
    ("postgres",),
)
