"""Observations of concurrent clients of Derby and PostgreSQL that litmus tests cannot express."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.databases.derby.server import open_derby
from isolitmus.databases.observations.record import ObservationResult
from isolitmus.databases.postgres.server import open_postgres
from isolitmus.databases.sessions.connections import COMMIT, StatementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from isolitmus.databases.observations.record import Facts
    from isolitmus.databases.sessions.connections import Server

SERVERS: Mapping[str, Callable[[], AbstractContextManager[Server]]] = {
    "derby": open_derby,
    "postgres": open_postgres,
}
"""Function that starts a database, by the engine's name."""
VIOLATIONS = {"23503": "ForeignKeyViolation", "23513": "CheckViolation", "23514": "CheckViolation"}
"""Violated constraints, by SQLSTATE."""
READ_COMMITTED = "read committed"


@dataclass(frozen=True, slots=True)
class DatabaseObservation:
    """Experiment on real databases, all of which are expected to show the same facts."""

    name: str
    """Name of the experiment."""
    title: str
    """Description in a sentence."""
    expected: Facts
    """Expected facts."""
    observe: Callable[[_Clients], Facts]
    """Function that makes the experiment and returns its facts."""
    engines: tuple[str, ...]
    """Engines that it runs on."""
    wide: bool = False
    """True if it takes long."""

    def made(self, server: Server) -> ObservationResult:
        """Make the experiment on a server and clean up; return the result.

        Raises StatementError if a statement outside the observation fails.
        """
        clients = _Clients(server)
        try:
            return ObservationResult(self.name, self.expected, self.observe(clients))
        finally:
            clients.leave()


class _Clients:
    """Clients of a server, one statement at a time, none of which has to wait."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.made: list[str] = []

    def make(self, table: str, columns: str, *rows: str) -> None:
        """Create a table with these rows."""
        self.server.run(f"CREATE TABLE {table} ({columns})")
        self.made.append(table)
        for row in rows:
            self.server.run(f"INSERT INTO {table} VALUES ({row})")

    def begin(self, level: str, *names: str) -> None:
        """Begin transactions at a level."""
        for name in names:
            self.server.open(name, level)

    def say(self, name: str, statement: str) -> str:
        """Run a transaction's statement; return its first value, ``done``, or its error class."""
        self.server.ask(name, statement)
        seen = self.server.settle()[name]
        if seen.failure is not None:
            return VIOLATIONS.get(seen.failure.state, seen.failure.state)
        return "done" if seen.rows is None else str(seen.rows[0][0])

    def end(self) -> None:
        """End all transactions; undo what is not committed."""
        self.server.close()

    def number(self, query: str) -> object:
        """Return the number that a query of committed data gives."""
        return self.server.run(query)[0][0]

    def leave(self) -> None:
        """End all transactions, and drop the tables."""
        self.end()
        while self.made:
            self.server.run(f"DROP TABLE {self.made.pop()}")


# Rules checked by hand, and declared constraints


def _declared(clients: _Clients) -> Facts:
    """Run orphan and overdraft anomalies without and with declared constraints."""
    found: dict[str, object] = {}
    for how, key, check in (
        ("by hand", "", ""),
        ("declared", " REFERENCES parent (id)", " CHECK (balance >= 0)"),
    ):
        found |= {f"{fact}, {how}": seen for fact, seen in _orphaned(clients, key).items()}
        found |= {f"{fact}, {how}": seen for fact, seen in _overdrawn(clients, check).items()}
    return found


def _orphaned(clients: _Clients, key: str) -> Facts:
    """Insert a child after looking for the parent; delete the parent after looking for children."""
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
    """Take 80 twice after each transaction has checked that the balance is 100."""
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
    """Query a row at READ UNCOMMITTED before, during and after another transaction's UPDATE."""
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


# Level of a connection that asks for none


def _default(clients: _Clients) -> Facts:
    """Ask a connection that has set no level for its level."""
    try:
        level = clients.number("VALUES CURRENT ISOLATION")
    except StatementError:  # not Derby
        level = clients.number("SHOW transaction_isolation")
    return {"level": DERBY_LEVELS.get(str(level).strip(), level)}


DERBY_LEVELS = {"UR": "read uncommitted", "CS": "read committed", "RS": "repeatable read"}
"""Levels that CURRENT ISOLATION abbreviates (Derby Reference Manual, CURRENT ISOLATION)."""
DEFAULT = DatabaseObservation(
    "default-level",
    "A connection that has set no isolation level is at READ COMMITTED",
    {"level": "read committed"},
    _default,
    ("derby", "postgres"),
)


# Granularity of locks


def _granularity(clients: _Clients) -> Facts:
    """Return what a transaction locks: as LOCKSIZE asks, otherwise, and after an escalation."""
    clients.make("t", "id INT NOT NULL PRIMARY KEY, v INT", *(f"{k}, 0" for k in range(1, 4)))
    found: dict[str, object] = {}
    seek, count = "SELECT v FROM t WHERE id = 1", "SELECT COUNT(*) FROM t"
    update = "UPDATE t SET v = 1 WHERE id BETWEEN {} AND {}"
    for size, what, level, statement in (
        ("ROW", "one changed row", READ_COMMITTED, update.format(1, 1)),
        ("TABLE", "one changed row", READ_COMMITTED, update.format(1, 1)),
        ("TABLE", "one row that is read at REPEATABLE READ", "repeatable read", seek),
        ("ROW", "all rows, read at SERIALIZABLE", "serializable", count),
    ):
        clients.server.run(f"ALTER TABLE t LOCKSIZE {size}")
        clients.begin(level, "a")
        clients.say("a", statement)
        found[f"LOCKSIZE {size}, {what}"] = _locked(clients)
        clients.end()
    while (rows := clients.number(count)) != MANY:
        clients.server.run(
            f"INSERT INTO t SELECT id + {rows}, 0 FROM t WHERE id + {rows} <= {MANY}"
        )
    clients.begin(READ_COMMITTED, "a")
    for first, last in ((1, MANY // 2), (MANY // 2 + 1, MANY)):
        clients.say("a", update.format(first, last))
        found[f"LOCKSIZE ROW, {last:,} changed rows"] = _locked(clients)
    return found


def _locked(clients: _Clients) -> str:
    """Return the unit of the locks on table t, those of intent apart."""
    query = (
        "SELECT DISTINCT TYPE FROM SYSCS_DIAG.LOCK_TABLE"
        " WHERE TABLENAME = 'T' AND MODE NOT LIKE 'I%'"
    )
    return " and ".join(str(kind).lower() for (kind,) in clients.server.run(query))


MANY = 8000
"""Number of rows; Derby locks the table from 5,000 on (derby.locks.escalationThreshold)."""
GRANULARITY = DatabaseObservation(
    "lock-granularity",
    "Derby locks rows or the table as LOCKSIZE asks, but not always; and many locks of rows become"
    " one of the table",
    {
        "LOCKSIZE ROW, one changed row": "row",
        "LOCKSIZE TABLE, one changed row": "table",
        "LOCKSIZE TABLE, one row that is read at REPEATABLE READ": "row",
        "LOCKSIZE ROW, all rows, read at SERIALIZABLE": "table",
        "LOCKSIZE ROW, 4,000 changed rows": "row",
        "LOCKSIZE ROW, 8,000 changed rows": "table",
    },
    _granularity,
    ("derby",),
)
