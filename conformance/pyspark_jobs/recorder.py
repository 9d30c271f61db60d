"""Recorder of the statements of a function of PySpark.

While the function runs, the methods of PySpark and Delta that read or write tables are replaced.
Each tells what it is asked for, as SQL, and then does it on the empty tables of the run. Nothing is
executed that may write outside the warehouse of the run: writes to paths, streams, maintenance.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.pyspark_jobs.frame_statements import FrameStatements
from isolitmus.conformance.pyspark_jobs.sql_texts import SqlTexts
from isolitmus.conformance.pyspark_jobs.traced_values import (
    TokenTable,
    TracedRow,
    TracedRows,
    TracedValue,
    plain_value,
)
from isolitmus.specs.sql.configuration import JOB_CONFS, OVERWRITE_MODE
from isolitmus.specs.sql.spark_plans import plan_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session
    from isolitmus.specs.sql.spark_plans import PlanNode

__all__ = ["Recorder", "RunTables"]

DEFAULTS = {OVERWRITE_MODE: "static"}
"""Values of settings that are not set."""
OF_PYTHON = ("LocalRelation", "OneRowRelation", "Range", "LogicalRDD")
"""Operators whose rows come from the program."""
GIVEN_AWAY = (
    "toPandas", "toArrow", "toLocalIterator", "foreach", "foreachPartition", "rdd", "checkpoint",
    "localCheckpoint", "approxQuantile", "corr", "cov", "crosstab", "freqItems", "summary",
    "describe", "pandas_api", "isEmpty", "tail",
)  # fmt: skip
"""Methods and properties of a DataFrame whose results are not traced."""
PRINTED = ("show",)
"""Methods that print rows and return nothing."""
ROWS = ("collect", "take", "head", "first")


@dataclass(frozen=True, slots=True)
class RunTables:
    """Declared tables of a run."""

    names: Mapping[str, str]
    """Name of each table by its name in Spark's catalog, in lower case."""
    paths: Mapping[str, str]
    """Name in Spark's catalog of each table with a LOCATION, by that path."""

    def at(self, path: str) -> str | None:
        """Return the table at a path, if the DDL declares one."""
        return self.paths.get(path.removeprefix("file:").replace("//", "/").rstrip("/"))

    def named(self, name: str) -> str | None:
        """Return the declared table of a name, which may have a database and a catalog."""
        folded = name.replace("`", "").lower().removeprefix("spark_catalog.")
        return self.names.get(folded, self.names.get(f"default.{folded}"))


@dataclass(slots=True)
class Recorder:
    """Recorder of one function.

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
    tokens: TokenTable = field(default_factory=TokenTable)
    _here: threading.local = field(default_factory=threading.local)
    _names: set[str] = field(default_factory=set)
    _confs: dict[str, str] = field(default_factory=dict)

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
            self.tell({"kind": "statement", "line": line, "sql": one})

    def gap(self, problem: str, tables: list[str] | None = None) -> None:
        """Record a statement that has no SQL; ``tables`` are those that it concerns, if known."""
        self.tell({"kind": "gap", "line": self.line, "problem": problem, "tables": tables})

    def argument(self, name: str, type_: str) -> None:
        """Record the type of an argument of a statement."""
        self.tell({"kind": "argument", "line": self.line, "name": name, "sql": type_})

    def left_out(self, problem: str) -> None:
        """Record an effect that concerns no table, and is not executed."""
        self.tell({"kind": "left out", "line": self.line, "problem": problem})

    def read(
        self, call: str, query: str, tables: list[str], name: str, of: str = ""
    ) -> Callable[[], None]:
        """Record an action, or a value of the action ``of``; return the function that reports the
        use of its result.
        """
        line, told = self.line, threading.Event()
        self.tell(
            {"kind": "read", "line": line, "call": call, "sql": query, "tables": tables,
             "name": name, "of": of}
        )  # fmt: skip

        def use() -> None:
            if not told.is_set():
                told.set()
                self.tell({"kind": "used", "line": self.line or line, "name": name})

        return use

    def free_name(self, name: str) -> str:
        """Return a name for the result of an action."""
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_") or "value"
        k = 1
        while f"{base}_{k}" in self._names:
            k += 1
        self._names.add(f"{base}_{k}")
        return f"{base}_{k}"

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Replace the methods of PySpark and Delta for the block."""
        done: list[tuple[Any, str, Any]] = []

        def replace(
            owner: Any, name: str, body: Callable[..., Any], *, always: bool = False
        ) -> None:
            original = owner.__dict__.get(name)
            if original is None:
                return
            done.append((owner, name, original))
            setattr(owner, name, self._wrapped(original, body, always=always))

        texts = SqlTexts(self)
        frames = FrameStatements(self, texts)
        try:
            self._replace_reads(replace, texts)
            texts.replace_in(replace)
            frames.replace_in(replace)
            yield
        finally:
            for owner, name, original in reversed(done):
                setattr(owner, name, original)
            for value in self.tokens.lost():
                value.used()

    def _wrapped(self, original: Any, body: Callable[..., Any], *, always: bool) -> Any:
        """Return a method that calls ``body`` with the original, unless PySpark itself calls it."""
        function: Any = original
        if isinstance(original, property):
            function = original.fget
        elif isinstance(original, classmethod | staticmethod):
            function = original.__func__

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if getattr(self._here, "inside", False):
                if not always:
                    return function(*args, **options)
                return body(function, *args, **options)
            self._here.inside = True
            try:
                return body(function, *args, **options)
            finally:
                self._here.inside = False

        if isinstance(original, property):
            return property(call)
        if isinstance(original, classmethod):
            return classmethod(call)
        return staticmethod(call) if isinstance(original, staticmethod) else call

    def _replace_reads(self, replace: Callable[..., None], texts: SqlTexts) -> None:
        """Replace what gives a program the rows of tables."""
        from py4j.java_gateway import JavaMember
        from pyspark.sql import SparkSession
        from pyspark.sql.classic.dataframe import DataFrame
        from pyspark.sql.conf import RuntimeConfig

        def count(original: Any, frame: Any) -> Any:
            plan = texts.export.plan(frame)
            value = original(frame)
            if not _has_tables(plan):
                return value
            name = self.free_name("count")
            query = texts.counted(frame)
            use = self.read("count()", query, [*plan_tables(plan)], name)
            return TracedValue(value, f":{name}", self.tokens, use)

        def rows(call: str) -> Callable[..., Any]:
            def body(original: Any, frame: Any, *args: Any, **options: Any) -> Any:
                plan = texts.export.plan(frame)
                value = original(frame, *args, **options)
                return self._traced(call, frame, plan, value, texts) if _has_tables(plan) else value

            return body

        def given(call: str, *, uses: bool) -> Callable[..., Any]:
            def body(original: Any, frame: Any, *args: Any, **options: Any) -> Any:
                plan = texts.export.plan(frame)
                if _has_tables(plan):
                    name = self.free_name(call)
                    use = self.read(f"{call}()", texts.query(frame), [*plan_tables(plan)], name)
                    if uses:
                        use()
                return original(frame, *args, **options)

            return body

        def passed(one: Any) -> Any:
            """Return an argument for the JVM; a traced value in it is used there."""
            if type(one) is str:
                return texts.used_text(one)
            return one.used() if type(one) in (TracedValue, TracedRow, TracedRows) else one

        def member(original: Any, called: Any, *args: Any) -> Any:
            return original(called, *map(passed, args))

        def frame(original: Any, spark: Any, data: Any, *args: Any, **options: Any) -> Any:
            return original(spark, plain_value(data), *args, **options)

        def conf(original: Any, confs: Any, key: str, value: Any) -> Any:
            self._check_conf(key)
            return original(confs, key, plain_value(value))

        def config(original: Any, builder: Any, key: Any = None, *args: Any, **more: Any) -> Any:
            for one in (key, *more.get("map", ())):
                self._check_conf(str(one))
            return original(builder, key, *args, **more)

        def cached(original: Any, frame: Any, *args: Any) -> Any:
            self.left_out(f"{original.__name__}(), after which rows may be older than their use")
            return original(frame, *args)

        replace(DataFrame, "count", count)
        for name in ROWS:
            replace(DataFrame, name, rows(name))
        for name in GIVEN_AWAY:
            replace(DataFrame, name, given(name, uses=True))
        for name in PRINTED:
            replace(DataFrame, name, given(name, uses=False))
        replace(SparkSession, "createDataFrame", frame)
        replace(SparkSession, "stop", _do_nothing)
        replace(RuntimeConfig, "set", conf)
        replace(SparkSession.Builder, "config", config)
        replace(DataFrame, "cache", cached)
        replace(DataFrame, "persist", cached)
        replace(JavaMember, "__call__", member, always=True)

    def _check_conf(self, key: str) -> None:
        """Record a gap for a setting that may affect commits, and that jobs do not have."""
        if key.startswith("spark.databricks.") and key not in JOB_CONFS:
            self.gap(f"unsupported: the conf {key} may affect commits")

    def _traced(self, call: str, frame: Any, plan: PlanNode, value: Any, texts: SqlTexts) -> Any:
        """Return the rows of an action as traced ones."""
        tables = [*plan_tables(plan)]
        whole = self.free_name(call)
        use = self.read(f"{call}()", texts.query(frame), tables, whole)
        row = value[0] if isinstance(value, list) and len(value) == 1 else value
        only = None
        if _has_one_row(plan) and row is not None and not isinstance(row, list):
            columns = [one.name for one in plan.columns]

            def column(place: int) -> TracedValue:
                name = self.free_name(columns[place])
                query = texts.query(frame, [plan.columns[place].id])
                with_use = self.read(f"{call}()", query, tables, name, whole)
                found = TracedValue(row[place], f":{name}", self.tokens, with_use)
                if found.plain is None and self.tests_identity:
                    found.used()
                return found

            only = TracedRow(row, column, use)
        if isinstance(value, list):
            return TracedRows(value, use, only)
        if only is None:  # None, or the row of an unordered or empty table
            use()
            return value
        return only


def _has_tables(plan: PlanNode) -> bool:
    """Return whether a plan reads anything but rows that the program made."""
    below = (*plan.children, *plan.subqueries)
    return any(map(_has_tables, below)) or (not plan.children and plan.kind not in OF_PYTHON)


def _has_one_row(plan: PlanNode) -> bool:
    """Return whether a plan has one row, whatever its tables contain."""
    if plan.kind in ("Project", "SubqueryAlias", "Sort"):
        return _has_one_row(plan.children[0])
    return plan.kind == "Aggregate" and not plan.keys


def _do_nothing(original: Any, spark: Any) -> None:
    """Stand for ``SparkSession.stop``: the session is that of other functions as well."""
