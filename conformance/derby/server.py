"""Derby in a JVM of its own, and what is said to it: lines, one at a time (Connections.java has the
verbs).

Derby is found among PySpark's jars, and so is Janino, which compiles and runs the other side. No
port is open: it is talked to by its standard input, and ends with that. The database is in memory.
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

from isolitmus.conformance.databases.connections import (
    LIMIT,
    Connection,
    SqlFailure,
    StatementError,
)
from isolitmus.conformance.java import find_java
from isolitmus.conformance.workers import GRACE, end_child
from isolitmus.model.errors import EngineUnavailable, brief

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.sql.values import Rows, Value

__all__ = ["DerbyServer", "derby_jars", "open_derby"]

START_LIMIT = 60.0
"""Seconds for Java to start and Derby to make a database."""
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
"""java.sql.Connection's numbers."""
OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    f"-Dderby.stream.error.file={os.devnull}",  # else derby.log where it runs
    "-XX:TieredStopAtLevel=1",  # nothing runs long enough for more
    "-Dderby.storage.indexStats.auto=false",  # no thread that reads tables by itself
    "-Dderby.optimizer.ruleBasedOptimization=true",  # else a heap of few rows is cheaper than its index
    "-Dderby.optimizer.noTimeout=true",  # else the plan is the best that was found in time
    "-Dderby.locks.waitTimeout=-1",  # who waits too long is told here
    "-Dderby.locks.deadlockTimeout=0",  # each wait looks for a deadlock when it begins
)
GATE = (
    'CREATE FUNCTION "PASS" (WORD VARCHAR(1000) ...) RETURNS INT LANGUAGE JAVA PARAMETER STYLE'
    " DERBY DETERMINISTIC NO SQL EXTERNAL NAME 'isolitmus.Connections.pass'"
)
"""What is called at each row of a scan."""


class DerbyServer:
    """A running Derby (``conformance.databases.connections.Server``); ``release`` is what it says
    of itself.
    """

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self._process, self._said = process, said
        self.release = str(self._ask(START_LIMIT, "hello")).partition(" ")[0]
        self.run(GATE)

    def run(self, statement: str) -> Rows:
        """A statement of no transaction, and what it gives; StatementError if it fails."""
        return _rows(self._ask(LIMIT, "run", statement))

    def open(self, name: str, level: str) -> None:
        """A connection by a name, with a transaction at an isolation level."""
        self._ask(LIMIT, "open", name, LEVELS[level])

    def ask(self, name: str, statement: str, stop: int = 0) -> None:
        """A statement on a connection, held at the row of a number."""
        self._ask(LIMIT, "ask", name, stop, statement)

    def let(self, name: str, stop: int = 0) -> None:
        """What is held goes on."""
        self._ask(LIMIT, "let", name, stop)

    def cancel(self, name: str) -> None:
        """The statement that is held fails."""
        self._ask(LIMIT, "cancel", name)

    def settle(self, seconds: float = LIMIT) -> Mapping[str, Connection]:
        """Where each connection is, once none of them gets any further by itself."""
        told = self._ask(seconds, "settle", int(seconds * 1000))
        return {name: _connection(one) for name, one in told.items()}

    def close(self) -> None:
        """Every connection is closed; EngineUnavailable if one does not end."""
        if not self._ask(GRACE, "close", int(GRACE * 1000)):
            raise EngineUnavailable(
                f"a statement of Derby did not end within {GRACE:g} s after the request to end"
            )

    def _ask(self, seconds: float, *words: object) -> Any:
        """The reply to a request; StatementError if Derby refuses it, EngineUnavailable if it has
        ended, or does not answer in this time and some more.
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
        status = self._process.wait(GRACE)
        if status < 0:
            return f"Derby's JVM was killed by {signal.Signals(-status).name}"
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip() or "no output"
        return f"Derby's JVM ended with exit status {status}: {brief(said)}"


@contextmanager
def open_derby() -> Iterator[DerbyServer]:
    """A Derby of our own, which ends with the block; EngineUnavailable, with the remedy, if it
    cannot start.
    """
    java, found = find_java(), derby_jars()
    with tempfile.TemporaryFile() as said, _launched(java.command, found, said) as process:
        yield DerbyServer(process, said)


def derby_jars() -> tuple[Path, ...]:
    """Derby's jars and Janino's; EngineUnavailable, with the remedy, where PySpark is not."""
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
    """Of a deadlock Derby tells, lock by lock, who waits for it, a number and a user, and the
    numbers of those who have it.
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
    circle = tuple(  # each waits for the next, the last for the first, whoever else has the lock
        (name, tuple(sorted({after, *(names[o] for o in others if o in names)} - {name})), wants)
        for (name, others, wants), after in zip(behind, [*waiting[1:], *waiting[:1]], strict=True)
    )
    return SqlFailure(state, message, circle)


def _rows(told: list[list[Any]]) -> Rows:
    return tuple(tuple(map(_value, row)) for row in told)


def _value(told: Any) -> Value:
    return date.fromisoformat(told["date"]) if isinstance(told, dict) else told
