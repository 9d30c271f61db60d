"""PostgreSQL server of its own, and connections to it.

The server lives in a temporary folder and is reached by a socket there, never by a port. It refuses
to run as root; then it runs as another user, who owns the folder. A shell in between stops the
server once its standard input ends, so the server ends with this process in any case.

libpq sends a statement without waiting for it, so no statement needs a thread here. A statement is
held by an advisory lock that it waits for.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import select
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.workers import GRACE, end_child
from isolitmus.databases.sessions.connections import (
    COMMIT,
    LIMIT,
    ROLLBACK,
    Connection,
    SqlFailure,
    StatementError,
)
from isolitmus.model.errors import EngineUnavailable, brief

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.databases.sessions.connections import Doing
    from isolitmus.model.sql.values import Rows

START_LIMIT = 60.0
"""Time limit in seconds for the server to accept connections."""
PLACES = Path("/usr/lib/postgresql")
"""Folder of Debian's releases, which are not on PATH."""
USERS = ("postgres", "nobody")
"""Users that may run the server if this process is root."""
DEADLOCK = 0.005
"""Time in seconds after which a waiting connection checks for a deadlock, once, and logs it.

Before that, no connection is reported to wait.
"""
OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "16MB",
    "max_connections": "30",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "enable_bitmapscan": "off",
    "enable_indexonlyscan": "off",
    "enable_seqscan": "off",
    "deadlock_timeout": f"{DEADLOCK * 1000:g}ms",
    "log_lock_waits": "on",
    "log_min_messages": "fatal",
    "timezone": "UTC",
}
GUARD = (
    '"$@" </dev/null & server=$!; exec >&-; read -r _; kill -INT $server; wait $server; rm -rf "$0"'
)
"""Shell command that runs the server and, once its standard input ends, stops it.

It does a fast shutdown and deletes the folder. The standard output of the shell belongs to the
server, whose end closes it.
"""
LOOKED = re.compile(
    r"still waiting for \w+ on (?:(transaction) (\d+)|(tuple) \((\d+),(\d+)\) of relation (\d+))"
)
CIRCLE = re.compile(
    r"Process (\d+) waits for \w+ on (?:(transaction) (\d+)|(tuple) \((\d+),(\d+)\) of relation"
    r" (\d+)|[^;]*)[^;]*;"
    r" blocked by process (\d+)"
)
GATE = """
CREATE FUNCTION pass(VARIADIC words text[]) RETURNS int LANGUAGE plpgsql COST 1000000 AS $$
DECLARE came int := current_setting('isolitmus.passed')::int + 1;
BEGIN
  PERFORM set_config('isolitmus.passed', came::text, false);
  RAISE NOTICE '%', array_to_json(words);
  PERFORM pg_advisory_lock_shared(hashtext(words[1]), came);
  PERFORM pg_advisory_unlock_shared(hashtext(words[1]), came);
  RETURN 1;
END $$
"""
"""SQL function that is called at each row of a scan."""
THROUGH = (
    "\nCREATE FUNCTION through(name text, anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE"
    " AS $$ BEGIN RETURN true; END $$\n"
)
"""SQL function, the predicate of partial indexes: always true, unknown to the planner."""
UNSEEN = """
CREATE FUNCTION unseen(writer xid) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT NOT pg_visible_in_snapshot(writer::text::xid8, pg_current_snapshot())
    AND writer::text::xid8 <> pg_current_xact_id_if_assigned()
$$
"""
"""SQL function: whether a row version is invisible to the statement's snapshot, and not its own.

The statement then rechecks the version after its writer has committed.
"""
WAITS = """
SELECT a.pid, l.locktype, concat_ws(' ', l.locktype, l.relation, l.page, l.tuple, l.transactionid),
       concat_ws(' ', r.locktype, r.relation, r.page, r.tuple), pg_blocking_pids(a.pid)
FROM unnest(%s::int[]) AS a(pid) LEFT JOIN pg_locks l ON l.pid = a.pid AND NOT l.granted
     LEFT JOIN pg_locks r ON r.pid = a.pid AND r.granted AND r.locktype = 'tuple'
"""
"""Query for the lock that each connection waits for, and the row.

The first connection in the queue for a row holds the lock of the row and waits for its writer.
"""


@dataclass(slots=True)
class _Client:
    """Connection with its last request and the result of that."""

    connection: Any
    busy: bool = False
    stop: int = 0
    passed: list[tuple[str | None, ...]] = field(default_factory=list)
    rows: Rows | None = None
    changed: int = 0
    failure: SqlFailure | None = None
    behind: tuple[int, ...] = ()
    wants: str = ""
    lock: str = ""
    """Lock that it waits for; it changes once the connection is first in the queue for a row."""
    looked: str = ""
    """Last lock that it waited for when its deadlock check found no deadlock."""
    waited: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Locks that its statement waited for, each with its wish and the processes waited for."""
    last: tuple[str, tuple[int, ...]] = "", ()
    """Wish of its last reported wait, and the processes it waited for."""
    commits: bool = False
    """True if its last request is a commit."""

    @property
    def pid(self) -> int:
        """Process id of its server process."""
        return int(self.connection.pgconn.backend_pid)

    def told(self, said: Any) -> None:
        """Process a notice of the server: a row that a scan has reached, or a wait that goes on."""
        if said.severity_nonlocalized == "NOTICE":
            self.passed.append(tuple(json.loads(said.message_primary)[1:]))
        elif found := LOOKED.search(said.message_primary):
            self.looked = _lock(found.groups())

    def hear(self) -> None:
        """Process the results that have arrived."""
        from psycopg.adapt import Transformer
        from psycopg.pq import DiagnosticField, ExecStatus

        pgconn = self.connection.pgconn
        pgconn.consume_input()
        while self.busy and not pgconn.is_busy():
            result = pgconn.get_result()
            if result is None:
                self.busy = False
            elif result.status == ExecStatus.TUPLES_OK:
                values = Transformer(self.connection)
                values.set_pgresult(result)
                self.rows = tuple(values.load_rows(0, result.ntuples, tuple))
            elif result.status == ExecStatus.FATAL_ERROR:
                code = result.error_field(DiagnosticField.SQLSTATE) or b""
                message = result.error_message.decode().strip()
                self.failure = SqlFailure(code.decode(), message, _circle(message))
            else:
                self.changed = result.command_tuples or 0

    def shown(self, *, held: bool, clients: Mapping[int, tuple[str, _Client]]) -> Connection:
        """Return the state of the connection, with names for processes."""
        names = {pid: name for pid, (name, _) in clients.items()}
        state: Doing = (
            "idle" if not self.busy else "held" if held else "waits" if self.behind else "runs"
        )
        behind = tuple(sorted(names[pid] for pid in self.behind if pid in names))
        failure = self.failure
        if failure is not None:
            named = []
            for waiting, others, lock in failure.circle:
                name, client = clients[int(waiting)]
                wants, seen = client.waited.get(lock) or (
                    client.since_told(lock, others, clients),
                    (),
                )
                pids = {*map(int, others), *seen}
                known = tuple(sorted(names[pid] for pid in pids if pid in names))
                named.append((name, known, wants))
            failure = replace(failure, circle=tuple(named))
        waits = (behind, self.wants) if state == "waits" else ((), "")
        self.last = (self.wants, self.behind) if state == "waits" else ("", ())
        return Connection(state, *waits, tuple(self.passed), self.rows, self.changed, failure)

    def since_told(
        self, lock: str, others: Sequence[str], clients: Mapping[int, tuple[str, _Client]]
    ) -> str:
        """Return what a connection wanted that waited for a lock between two polls.

        That is the row of its last reported wait, if the connections it now waits for were ahead of
        it there and none of these has committed another version of the row. Otherwise it is the
        lock.
        """
        wants, behind = self.last
        ended = (clients[pid][1] for pid in behind if pid in clients)
        stays = not any(one.commits and one.failure is None for one in ended)
        return wants if stays and {*map(int, others)} <= {*behind} else lock


class PostgresServer:
    """Running server (``databases.sessions.connections.Server``).

    ``release`` is the version that it reports.
    """

    def __init__(self, own: Any) -> None:
        self._own = own
        self._clients: dict[str, _Client] = {}
        self.release = str(own.info.parameter_status("server_version")).partition(" ")[0]
        self.run(GATE)
        self.run(THROUGH)
        self.run(UNSEEN)
        self.run(f"SET lock_timeout = '{LIMIT:g}s'")

    def run(self, statement: str) -> Rows:
        """Run a statement outside all transactions; raise StatementError if it fails."""
        return self._run(statement)

    def _run(self, statement: str, *values: object) -> Rows:
        """Run a statement on the server's own connection; return its rows, empty if it has none."""
        import psycopg

        try:
            found = self._own.execute(statement, values or None)
        except psycopg.Error as error:
            if self._own.closed:
                raise EngineUnavailable(f"PostgreSQL ended: {brief(str(error))}") from error
            raise StatementError(SqlFailure(error.sqlstate or "", brief(str(error)))) from error
        return tuple(found.fetchall()) if found.description is not None else ()

    def open(self, name: str, level: str) -> None:
        """Open a named connection with a transaction at an isolation level."""
        client = _Client(self._connected())
        self._clients[name] = client
        client.connection.execute("SET client_min_messages = log")
        client.connection.add_notice_handler(client.told)
        client.connection.execute(f"BEGIN ISOLATION LEVEL {level}")

    def _connected(self) -> Any:
        """Return a new autocommit connection that loads NUMERIC as int and prepares nothing."""
        import psycopg
        from psycopg.types.numeric import IntLoader

        made = psycopg.connect(self._own.info.dsn, autocommit=True, prepare_threshold=None)
        made.adapters.register_loader("numeric", IntLoader)  # the type of SUM of BIGINT
        return made

    def ask(self, name: str, statement: str, stop: int = 0) -> None:
        """Send a statement to a connection; it is held at the row of this number (0: at none)."""
        client = self._clients[name]
        self._hold(name, client, stop)
        client.passed, client.rows, client.changed, client.failure = [], None, 0, None
        client.behind, client.wants, client.lock, client.looked = (), "", "", ""
        client.waited, client.last, client.commits = {}, ("", ()), statement == COMMIT
        counted = "" if statement in (COMMIT, ROLLBACK) else "SET isolitmus.passed = 0; "
        client.busy = True
        client.connection.pgconn.send_query(f"{counted}{statement}".encode())
        while client.connection.pgconn.flush():
            pass

    def let(self, name: str, stop: int = 0) -> None:
        """Release a held statement up to the row of this number (0: to its end)."""
        self._hold(name, self._clients[name], stop)

    def _hold(self, name: str, client: _Client, stop: int) -> None:
        """Hold at the row of this number from now on, and at no other (0: at none)."""
        if stop:
            self._run("SELECT pg_advisory_lock(hashtext(%s), %s)", name, stop)
        if client.stop:
            self._run("SELECT pg_advisory_unlock(hashtext(%s), %s)", name, client.stop)
        client.stop = stop

    def cancel(self, name: str) -> None:
        """Cancel the held statement of a connection."""
        self._run("SELECT pg_cancel_backend(%s)", self._clients[name].pid)

    def settle(self, seconds: float = LIMIT) -> Mapping[str, Connection]:
        """Wait until no connection can proceed by itself, and return the state of each."""
        end = time.monotonic() + seconds
        held: frozenset[int] = frozenset()
        while any(client.busy for client in self._clients.values()):
            before = [client.busy for client in self._clients.values()]
            held = self._waits()
            still = all(
                not client.busy
                or client.pid in held
                or (client.behind and client.looked == client.lock)
                for client in self._clients.values()
            )
            self._hear(0 if still else DEADLOCK / 5)
            after = [client.busy for client in self._clients.values()]
            if (still and before == after) or time.monotonic() > end:
                break
        clients = {client.pid: (name, client) for name, client in self._clients.items()}
        return {
            name: client.shown(held=client.pid in held, clients=clients)
            for name, client in self._clients.items()
        }

    def _waits(self) -> frozenset[int]:
        """Return the processes whose statements are held, and update what the others wait for."""
        busy = {client.pid: client for client in self._clients.values() if client.busy}
        held: set[int] = set()
        told: Any = self._run(WAITS, list(busy))
        for pid, kind, lock, row, behind in told:
            client = busy[pid]
            if kind == "advisory":
                held.add(pid)
            waits = bool(behind) and kind not in ("advisory", None)  # None: it does not wait yet
            client.behind = tuple(sorted(set(behind))) if waits else ()
            client.wants = (row or lock) if waits else ""
            client.lock = lock if waits else ""
        for client in busy.values():
            # a queue for a row, whose head waits for the writer of the row
            if client.lock.startswith("tuple"):
                first = (busy[pid].behind for pid in client.behind if pid in busy)
                client.behind = tuple(
                    sorted({*client.behind, *(pid for pids in first for pid in pids)})
                )
        for client in busy.values():
            if client.lock:
                client.waited[client.lock] = client.wants, client.behind
        return frozenset(held)

    def _hear(self, seconds: float) -> None:
        """Process what arrives, waiting up to ``seconds`` for it."""
        import psycopg

        busy = [client for client in self._clients.values() if client.busy]
        select.select([client.connection.pgconn.socket for client in busy], [], [], seconds)
        try:
            for client in busy:
                client.hear()
        except psycopg.OperationalError as error:
            raise EngineUnavailable(f"PostgreSQL ended: {brief(str(error))}") from error

    def close(self) -> None:
        """Close every connection, busy or not; raise EngineUnavailable if one does not end."""
        for name, client in self._clients.items():
            self._hold(name, client, 0)
            if client.busy:  # an idle connection is closed without waiting
                kill = "SELECT pg_terminate_backend(%s, %s)"
                if self._run(kill, client.pid, int(GRACE * 1000)) != ((True,),):
                    raise EngineUnavailable(
                        f"a statement of PostgreSQL did not end within {GRACE:g} s after the"
                        " request to end"
                    )
            client.connection.close()
        self._clients.clear()

    def leave(self) -> None:
        """Drop all connections, also if one did not end or the server ended."""
        for client in self._clients.values():
            client.connection.close()


def _circle(message: str) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """Return the cycle of a deadlock: for each process, the one it waits for and the lock."""
    return tuple((a, (b,), _lock(lock)) for a, *lock, b in CIRCLE.findall(message))


def _lock(words: Sequence[str | None]) -> str:
    """Return the lock in a message, matched by ``LOOKED`` or ``CIRCLE``, as ``WAITS`` has it."""
    transaction, number, kind, page, row, relation = words
    if transaction:
        return f"transactionid {number}"
    return f"tuple {relation} {page} {row}" if kind else ""


@contextmanager
def open_postgres() -> Iterator[PostgresServer]:
    """Start a PostgreSQL server that ends with the block.

    Raises EngineUnavailable, with the remedy, if it cannot start.
    """
    place = postgres_programs()
    folder = Path(tempfile.mkdtemp(prefix="isolitmus_postgres_"))
    try:
        with _launched(place, folder) as own:
            server = PostgresServer(own)
            try:
                yield server
            finally:
                server.leave()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def postgres_programs() -> Path:
    """Return the folder of PostgreSQL's programs.

    Raises EngineUnavailable, with the remedy, if they or psycopg are missing.
    """
    if find_spec("psycopg") is None:
        raise EngineUnavailable(
            "PostgreSQL needs psycopg, which is not installed; `pip install"
            " 'isolitmus[postgres]'` installs it"
        )
    here = shutil.which("postgres")
    debian = sorted(map(str, PLACES.glob("*/bin/postgres")), key=_release, reverse=True)
    for path in ([here] if here else []) + debian:
        place = Path(path).resolve().parent
        if (place / "initdb").exists():
            return place
    raise EngineUnavailable(
        "no PostgreSQL server found on PATH or in /usr/lib/postgresql; `make engines`"
        " installs it where possible, otherwise a package such as Debian's postgresql"
    )


def _release(path: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", path))


def _user() -> dict[str, Any]:
    """Return Popen's arguments for the user of the server; empty unless this process is root."""
    if os.getuid() != 0:
        return {}
    for name in USERS:
        with suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise EngineUnavailable(
        f"PostgreSQL refuses to run as root, and there is no user {' or '.join(USERS)} here; run"
        " isolitmus as another user"
    )


@contextmanager
def _launched(place: Path, folder: Path) -> Iterator[Any]:
    """Start a server in an empty folder and yield a connection to it."""
    user = _user()
    if user:
        os.chown(folder, user["user"], user["group"])
    data, log = folder / "data", folder / "server.log"
    make = (
        *(place / "initdb", "-D", data, "-U", "isolitmus", "--auth=trust", "--no-sync"),
        *("--no-instructions", "--encoding=UTF8", "--locale=C"),
    )
    made = subprocess.run(  # noqa: S603 - PostgreSQL's own
        make, capture_output=True, text=True, check=False, cwd=folder, **user
    )
    if made.returncode:
        raise EngineUnavailable(f"PostgreSQL's initdb failed: {brief(made.stderr or made.stdout)}")
    options = [word for key, value in OPTIONS.items() for word in ("-c", f"{key}={value}")]
    serve = [place / "postgres", "-D", data, "-k", folder, *options]
    with log.open("wb") as output:
        process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", GUARD, str(folder), *map(str, serve)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=folder,
            start_new_session=True,  # the terminal's Ctrl-C reaches Python only
            **user,
        )
    try:
        with _first(process, folder, log) as own:
            yield own
    finally:
        end_child(process)


def _first(process: subprocess.Popen[bytes], folder: Path, log: Path) -> Any:
    """Return the first connection, as soon as the server accepts any."""
    import psycopg

    assert process.stdout is not None
    end = time.monotonic() + START_LIMIT
    while True:
        try:
            return psycopg.connect(
                host=str(folder),
                dbname="postgres",
                user="isolitmus",
                autocommit=True,
                prepare_threshold=None,
            )
        except psycopg.OperationalError as error:
            ended = bool(select.select([process.stdout], [], [], 0.02)[0])
            if ended or time.monotonic() > end:
                why = log.read_text(errors="replace").strip() or str(error)
                raise EngineUnavailable(f"PostgreSQL does not start: {brief(why)}") from None
