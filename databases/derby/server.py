"""Derby server in its own JVM, controlled by lines on its standard input (verbs: Connections.java).

Derby is among PySpark's jars, and so is Janino, which compiles and runs Connections.java. No port
is open; the server ends when its standard input does. The database is in memory.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from sqlglot import expressions as exp

from isolitmus.conformance.java import find_java
from isolitmus.conformance.workers import GRACE, end_child
from isolitmus.databases.sessions.connections import (
    LIMIT,
    Connection,
    SqlFailure,
    StatementError,
)
from isolitmus.databases.sessions.gated_sql import Dialect
from isolitmus.databases.sessions.schedule_runner import SqlEngine, database_engine
from isolitmus.model.errors import EngineUnavailable, Refused, brief

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.sql.schema import Column, Index, Schema
    from isolitmus.model.sql.values import Rows, Value

START_LIMIT = 60.0
"""Time limit in seconds to start Java and create a database."""
JARS = ("derby-*.jar", "derbyshared-*.jar", "janino-*.jar", "commons-compiler-*.jar")
CIRCLE = re.compile(
    r"Lock : ([^\n]*)\n\s*Waiting XID : \{(\d+), (\w+)\} , (\w+), |Granted XID : ([^\n]*)"
)
GRANTED = re.compile(r"\{(\d+), ")
LEVELS = {
    "read uncommitted": 1,
    "read committed": 2,
    "repeatable read": 4,
    "serializable": 8,
}
"""Isolation levels as numbers of java.sql.Connection."""
OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    f"-Dderby.stream.error.file={os.devnull}",  # else derby.log in the current folder
    "-XX:TieredStopAtLevel=1",  # no code runs long enough for the second compiler
    "-Dderby.storage.indexStats.auto=false",  # no background thread that reads tables
    # without rules, scanning a heap with few rows costs less than using its index
    "-Dderby.optimizer.ruleBasedOptimization=true",
    "-Dderby.optimizer.noTimeout=true",  # else the best plan found in time is used
    "-Dderby.locks.waitTimeout=-1",  # timeouts are detected by this module
    "-Dderby.locks.deadlockTimeout=0",  # each wait checks for a deadlock when it begins
)
GATE = (
    'CREATE FUNCTION "PASS" (WORD VARCHAR(1000) ...) RETURNS INT LANGUAGE JAVA PARAMETER STYLE'
    " DERBY DETERMINISTIC NO SQL EXTERNAL NAME 'isolitmus.Connections.pass'"
)
"""SQL function that is called at each row of a scan."""


class DerbyServer:
    """Running Derby (``databases.sessions.connections.Server``).

    ``release`` is the version that it reports.
    """

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self._process, self._said = process, said
        self.release = str(self._ask(START_LIMIT, "hello")).partition(" ")[0]
        self.run(GATE)

    def run(self, statement: str) -> Rows:
        """Run a statement outside all transactions; raise StatementError if it fails."""
        return _rows(self._ask(LIMIT, "run", statement))

    def open(self, name: str, level: str) -> None:
        """Open a named connection with a transaction at an isolation level."""
        self._ask(LIMIT, "open", name, LEVELS[level])

    def ask(self, name: str, statement: str, stop: int = 0) -> None:
        """Send a statement to a connection; it is held at the row of this number (0: at none)."""
        self._ask(LIMIT, "ask", name, stop, statement)

    def let(self, name: str, stop: int = 0) -> None:
        """Release a held statement up to the row of this number (0: to its end)."""
        self._ask(LIMIT, "let", name, stop)

    def cancel(self, name: str) -> None:
        """Cancel the held statement of a connection."""
        self._ask(LIMIT, "cancel", name)

    def settle(self, seconds: float = LIMIT) -> Mapping[str, Connection]:
        """Wait until no connection can proceed by itself, and return the state of each."""
        told = self._ask(seconds, "settle", int(seconds * 1000))
        return {name: _connection(one) for name, one in told.items()}

    def close(self) -> None:
        """Close every connection; raise EngineUnavailable if one does not end."""
        if not self._ask(GRACE, "close", int(GRACE * 1000)):
            raise EngineUnavailable(
                f"a statement of Derby did not end within {GRACE:g} s after the request to end"
            )

    def _ask(self, seconds: float, *words: object) -> Any:
        """Send a request and return its reply.

        Raises StatementError if Derby rejects it, EngineUnavailable if Derby has ended or does not
        answer within ``seconds`` and a grace period.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = " ".join(quote(str(word), safe="") for word in words)
        try:
            self._process.stdin.write(f"{request}\n".encode())
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], seconds + GRACE)[0]:
                raise EngineUnavailable(f"Derby did not answer in {seconds + GRACE:g} s")
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise EngineUnavailable(self._why())
        answer = json.loads(line)
        if "error" in answer:
            raise StatementError(SqlFailure(**answer["error"]))
        return answer["reply"]

    def _why(self) -> str:
        """Return the reason why the JVM ended: its signal, or exit status and output."""
        status = self._process.wait(GRACE)
        if status < 0:
            return f"Derby's JVM was killed by {signal.Signals(-status).name}"
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip() or "no output"
        return f"Derby's JVM ended with exit status {status}: {brief(said)}"


@contextmanager
def open_derby() -> Iterator[DerbyServer]:
    """Start a Derby server that ends with the block.

    Raises EngineUnavailable, with the remedy, if it cannot start.
    """
    java, found = find_java(), derby_jars()
    with tempfile.TemporaryFile() as said, _launched(java.command, found, said) as process:
        yield DerbyServer(process, said)


def derby_jars() -> tuple[Path, ...]:
    """Return the jars of Derby and Janino; raise EngineUnavailable without PySpark."""
    package = find_spec("pyspark")
    places = package.submodule_search_locations if package is not None else None
    below = Path(next(iter(places))) / "jars" if places else None
    found = [sorted(below.glob(name)) for name in JARS] if below is not None else []
    if not found or not all(found):
        raise EngineUnavailable(
            "Derby comes with PySpark, which is not installed; `pip install"
            " 'isolitmus[spark]'` installs it"
        )
    return tuple(paths[-1] for paths in found)


@contextmanager
def _launched(
    java: str, found: tuple[Path, ...], said: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process of a Derby server, which is ended afterwards."""
    source = Path(__file__).with_name("Connections.java")
    command = [
        *(java, *OPTIONS, "-cp", os.pathsep.join(map(str, found))),
        *("org.codehaus.janino.SimpleCompiler", str(source), "isolitmus.Connections"),
    ]
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own java
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            cwd=tempfile.gettempdir(),
            start_new_session=True,  # the terminal's Ctrl-C reaches Python only
        )
    except OSError as error:
        raise EngineUnavailable(f"Java does not start: {error}") from error
    try:
        yield process
    finally:
        end_child(process)


def _connection(told: Mapping[str, Any]) -> Connection:
    """Return the state of a connection from the server's JSON."""
    failure = told["failure"]
    return Connection(
        told["state"],
        tuple(told["behind"]),
        told["wants"],
        tuple(map(tuple, told["passed"])),
        None if told["rows"] is None else _rows(told["rows"]),
        told["changed"],
        None if failure is None else _failure(**failure),
        told["path"],
    )


def _failure(state: str, message: str) -> SqlFailure:
    """Return a failure; the message of a deadlock is parsed into its cycle.

    For each lock, Derby reports who waits for it (a transaction number and a user) and the numbers
    of those who hold it.
    """
    names: dict[str, str] = {}
    behind: list[tuple[str, list[str], str]] = []
    for lock, number, mode, name, granted in CIRCLE.findall(message):
        if number:
            names[number] = name
            behind.append((name, [], f"{mode} {lock.replace(', ', ' ')}"))
        elif behind:
            behind[-1][1].extend(GRANTED.findall(granted))
    waiting = [name for name, _, _ in behind]
    # each waits for the next one, the last for the first, besides other holders of the lock
    circle = tuple(
        (name, tuple(sorted({after, *(names[o] for o in others if o in names)} - {name})), wants)
        for (name, others, wants), after in zip(behind, [*waiting[1:], *waiting[:1]], strict=True)
    )
    return SqlFailure(state, message, circle)


def _rows(told: list[list[Any]]) -> Rows:
    return tuple(tuple(map(_value, row)) for row in told)


def _value(told: Any) -> Value:
    return date.fromisoformat(told["date"]) if isinstance(told, dict) else told


COMPARED = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
LONGEST = 1000
WIDEST = 20
TYPES = {
    "INT": "INT",
    "BIGINT": "BIGINT",
    "STRING": f"VARCHAR({LONGEST})",
    "DATE": "DATE",
    "BOOLEAN": "BOOLEAN",
}


def _text(tree: exp.Expr) -> str:
    """Return SQL for Derby: ``FETCH FIRST`` for ``LIMIT``, without ``NULLS FIRST`` and ``LAST``."""
    tree = tree.copy()
    for limit in list(tree.find_all(exp.Limit)):
        limit.replace(exp.Fetch(direction="FIRST", count=limit.expression))
    return tree.sql(dialect="postgres").replace(" NULLS FIRST", "").replace(" NULLS LAST", "")


def _cell(column: Column, value: exp.Expr) -> exp.Expr:
    if column.type == "STRING":
        return value
    return _characters(value)


def _characters(value: exp.Expr) -> exp.Expr:
    """Return a value padded with blanks; to Derby, each result of TRIM is another value."""
    return exp.Cast(this=exp.Paren(this=value), to=exp.DataType.build(f"CHAR({WIDEST})"))


def _hint(index: Index | None) -> str:
    """Return the optimizer hint for an index.

    By default Derby fetches 16 rows at a time, and no statement of others could run in between.
    """
    name = "null" if index is None else index.name.upper()
    return f"--DERBY-PROPERTIES index={name}, bulkFetch=1\n"


def _steer(tree: exp.Update | exp.Delete, schema: Schema, index: Index | None) -> None:
    """Rewrite an UPDATE or DELETE so that it uses an index.

    They take no hint, and use an index exactly if their condition compares its first column with a
    constant. So the first columns of other indexes are hidden in an expression.
    """
    where = tree.args["where"]
    wanted = None if index is None else index.columns[0]
    hidden = {one.columns[0] for one in schema.indexes} - {wanted}
    compared = False
    for node in list(where.find_all(exp.Column)):
        if node.find_ancestor(exp.Select, exp.Anonymous) is not None:
            continue
        place = schema.index(node.name)
        compared |= place == wanted and isinstance(node.parent, COMPARED)
        if place in hidden:
            node.replace(exp.Coalesce(this=node.copy(), expressions=[node.copy()]))
    if index is not None and not compared:
        column = schema.columns[index.columns[0]].name
        raise Refused(
            f"UPDATE and DELETE use {index.name} only if their condition compares {column}"
            " with a constant"
        )


DERBY_SQL = Dialect(
    _text, TYPES, _cell, _hint, _steer, "SELECT * FROM {} WITH UR",
    dirty=True, snapshot=False, first=_characters,
)  # fmt: skip


SQL = SqlEngine(
    "derby",
    "Derby",
    DERBY_SQL,
    {
        "derby-read-uncommitted": "read uncommitted",
        "derby-read-committed": "read committed",
        "derby-repeatable-read": "repeatable read",
        "derby-serializable": "serializable",
    },
    {"40001": "Deadlock"},
    {"23505": "DuplicateKey", "22003": "OutOfRange", "22012": "DivisionByZero"},
)

DERBY = database_engine(
    SQL,
    "Apache Derby, which is among PySpark's jars: locks on rows, held as each of its levels says",
    open_derby,
    ready=derby_jars,
)
