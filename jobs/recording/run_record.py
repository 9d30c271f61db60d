"""Record of what a function of PySpark does, told step by step."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.recording.conflicts import Conflicts
from isolitmus.jobs.recording.path_choices import NumberOfRows, PathChoices
from isolitmus.jobs.recording.traced_values import TokenTable
from isolitmus.specs.sql.configuration import JOB_CONFS, OVERWRITE_MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session

DEFAULTS = {OVERWRITE_MODE: "static"}
"""Values of settings that are not set."""


@dataclass(frozen=True, slots=True)
class RunTables:
    """Declared tables of a run."""

    names: Mapping[str, str]
    """Name of each table by its name in Spark's catalog, in lower case."""
    paths: Mapping[str, str]
    """Name in Spark's catalog of each table with a LOCATION, by that path."""
    numbered: frozenset[str] = frozenset()
    """Tables that have an identity column."""

    def at(self, path: str) -> str | None:
        """Return the table at a path, if the DDL declares one."""
        return self.paths.get(path.removeprefix("file:").replace("//", "/").rstrip("/"))

    def named(self, name: str) -> str | None:
        """Return the declared table of a name, which may have a database and a catalog."""
        folded = name.replace("`", "").lower().removeprefix("spark_catalog.")
        return self.names.get(folded, self.names.get(f"default.{folded}"))


@dataclass(slots=True)
class RunRecord:
    """Record of the run of one function, which is told while the function runs.

    Parameters
    ----------
    session : Session
        Running Spark.
    spark : SparkSession
        Session of the function.
    tables : RunTables
        Declared tables.
    file : Path
        File of the function, in whose lines statements are placed.
    tell : callable
        Receives each record, a mapping that JSON can express.
    tests_identity : bool
        Whether the program compares objects by identity (``is None``), which a traced value does
        not notice.
    """

    session: Session
    spark: Any
    tables: RunTables
    file: Path
    tell: Callable[[dict[str, Any]], None]
    tests_identity: bool = True
    choices: PathChoices = field(default_factory=PathChoices)
    """Outcomes of comparisons of this run, and of statements that may abort."""
    conflicts: Conflicts = field(init=False)
    tokens: TokenTable = field(default_factory=TokenTable)
    stream: Mapping[str, Any] = field(default_factory=dict)
    """Streaming query whose batch is being recorded: its line and the table of its sink."""
    here: threading.local = field(default_factory=threading.local)
    """Whether the thread is in a method that the recorder replaces."""
    _names: set[str] = field(default_factory=set)
    _noted: set[str] = field(default_factory=set)
    _confs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tokens.note = self.note
        self.conflicts = Conflicts(self.choices, self.file.read_text("utf-8"))

    @property
    def line(self) -> int:
        """Line of the function's file that is running; 0 if none is."""
        frame = sys._getframe()  # noqa: SLF001 - the caller's place
        found: Any = frame
        while found is not None:
            if found.f_code.co_filename == str(self.file):
                return int(found.f_lineno)
            found = found.f_back
        return 0

    @contextmanager
    def in_stream(self, line: int, sink: str = "") -> Iterator[None]:
        """Tell what the block records as that of a batch of the streaming query in a line."""
        before = self.stream, self._confs
        self.stream, self._confs = {"stream": line, "sink": sink}, {}
        try:
            yield
        finally:
            self.stream, self._confs = before

    def call_batch(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function of the program, whose calls of PySpark are recorded."""
        before, self.here.inside = getattr(self.here, "inside", False), False
        try:
            function(*args)
        finally:
            self.here.inside = before

    def _say(self, record: dict[str, Any]) -> None:
        """Tell a record, with the streaming query that it belongs to."""
        self.tell({**record, **self.stream})

    def statement(self, sql: str, line: int | None = None) -> None:
        """Record a statement, after the settings of its session that have changed."""
        self.statements([sql], line or self.line)

    def statements(self, texts: list[str], line: int) -> None:
        """Record statements, among which SET is for the next one."""
        for key in JOB_CONFS:
            value = self.spark.conf.get(key, None)
            if value is None and key in self._confs:
                value = DEFAULTS.get(key, "")
            if value is not None and value.lower() != self._confs.get(key, DEFAULTS.get(key)):
                self._confs[key] = value.lower()
                texts = [f"SET {key} = {value.lower()}", *texts]
        for one in texts:
            self._say({"kind": "statement", "line": line, "sql": one})

    def attempt(self, text: str) -> None:
        """Raise the exception of a conflict in place of a statement, if it aborts on this path."""
        line = self.line
        error = self.conflicts.next_abort((line, text))
        if error is not None:
            self._say({"kind": "aborted", "line": line, "problem": type(error).__name__})
            raise error

    def gap(self, problem: str, tables: list[str] | None = None) -> None:
        """Record a statement that has no SQL; ``tables`` are those that it concerns, if known."""
        self._say({"kind": "gap", "line": self.line, "problem": problem, "tables": tables})

    def argument(self, name: str, type_: str) -> None:
        """Record the type of an argument of a statement."""
        self._say({"kind": "argument", "line": self.line, "name": name, "sql": type_})

    def note(self, problem: str) -> None:
        """Record what differs between this run and one of the program, once."""
        if problem not in self._noted:
            self._noted.add(problem)
            self._say({"kind": "note", "line": self.line, "problem": problem})

    def left_out(self, problem: str) -> None:
        """Record an effect that concerns no table, and is not executed."""
        self._say({"kind": "left out", "line": self.line, "problem": problem})

    def read(
        self, call: str, query: str, tables: list[str], name: str, of: str = ""
    ) -> Callable[[], None]:
        """Record an action, or a value of the action ``of``; return the function that reports the
        use of its result.
        """
        line, told = self.line, threading.Event()
        self._say(
            {"kind": "read", "line": line, "call": call, "sql": query, "tables": tables,
             "name": name, "of": of}
        )  # fmt: skip

        def use() -> None:
            if not told.is_set():
                told.set()
                self._say({"kind": "used", "line": self.line or line, "name": name})

        return use

    def number_of_rows(self, name: str, value: int) -> NumberOfRows:
        """Return the number of rows that an action returned; its comparisons are recorded."""

        def tell(known: str) -> None:
            self._say(
                {"kind": "decided", "line": self.line, "name": name, "sql": f":{name} {known}"}
            )

        return NumberOfRows(self.choices, value, tell)

    def free_name(self, name: str) -> str:
        """Return a name for the result of an action."""
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_") or "value"
        k = 1
        while f"{base}_{k}" in self._names:
            k += 1
        self._names.add(f"{base}_{k}")
        return f"{base}_{k}"
