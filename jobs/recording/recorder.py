"""Recorder of the statements of a function of PySpark.

While the function runs, the methods of PySpark and Delta that read or write tables are replaced.
Each tells what it is asked for, as SQL, and then does it on the empty tables of the run. Nothing is
executed that may write outside the warehouse of the run: writes to paths, maintenance. Streaming
queries are not started.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.recording.frame_statements import FrameStatements
from isolitmus.jobs.recording.run_record import RunRecord
from isolitmus.jobs.recording.sql_texts import SqlTexts
from isolitmus.jobs.recording.stream_statements import BATCH, StreamStatements
from isolitmus.jobs.recording.traced_values import (
    TracedRow,
    TracedRows,
    TracedValue,
    plain_value,
)
from isolitmus.jobs.sql.spark_plans import plan_tables
from isolitmus.specs.sql.configuration import JOB_CONFS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.jobs.sql.spark_plans import PlanNode

OF_PYTHON = ("LocalRelation", "OneRowRelation", "Range", "LogicalRDD")
"""Operators whose rows come from the program."""
GIVEN_AWAY = (
    "toPandas", "toArrow", "toLocalIterator", "foreach", "foreachPartition", "rdd", "checkpoint",
    "localCheckpoint", "approxQuantile", "corr", "cov", "crosstab", "freqItems", "summary",
    "describe", "pandas_api", "tail",
)  # fmt: skip
"""Methods and properties of a DataFrame whose results are not traced."""
FEW_ROWS = 20
"""Number of rows of a program up to which they are kept; more are any rows."""
PRINTED = ("show",)
"""Methods that print rows and return nothing."""
PAUSE = 0.02
"""Seconds that a program sleeps at most after a statement aborted."""
ROWS = ("collect", "take", "head", "first")


@dataclass(slots=True)
class Recorder(RunRecord):
    """Record of the run of one function that replaces the methods of PySpark to be told."""

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
            StreamStatements(self, texts, frames).replace_in(replace)
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
            if getattr(self.here, "inside", False):
                if not always:
                    return function(*args, **options)
                return body(function, *args, **options)
            self.here.inside = True
            try:
                return body(function, *args, **options)
            finally:
                self.here.inside = False

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
            made = original(spark, plain_value(data), *args, **options)
            if type(data) in (list, tuple) and len(data) <= FEW_ROWS:
                texts.export.keep_rows(made, made.collect())
            return made

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

        replace(DataFrame, "count", partial(self._count, texts))
        replace(DataFrame, "isEmpty", partial(self._is_empty, texts))
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

        def sleep(original: Any, seconds: float) -> None:
            original(min(seconds, PAUSE) if self.conflicts.aborted else seconds)

        replace(time, "sleep", sleep)
        replace(DataFrame, "cache", cached)
        replace(DataFrame, "persist", cached)
        replace(JavaMember, "__call__", member, always=True)

    def _count(self, texts: SqlTexts, original: Any, frame: Any) -> Any:
        """Return the traced number of rows of a DataFrame."""
        plan = texts.export.plan(frame)
        value = original(frame)
        if not _has_tables(plan):
            return value
        name = self.free_name("count")
        use = self.read("count()", texts.counted(frame), [*plan_tables(plan)], name)
        many = self.number_of_rows(name, value)
        return TracedValue(value, f":{name}", self.tokens, use, many)

    def _is_empty(self, texts: SqlTexts, original: Any, frame: Any) -> Any:
        """Return whether a DataFrame has no rows, which may have both outcomes."""
        if BATCH in frame.__dict__:
            return False
        plan = texts.export.plan(frame)
        if not _has_tables(plan):
            return original(frame)
        name = self.free_name("count")
        self.read("isEmpty()", texts.counted(frame), [*plan_tables(plan)], name)
        return self.number_of_rows(name, frame.count()).compare("=", 0)

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

            def column(place: int) -> Any:
                name = self.free_name(columns[place])
                query = texts.query(frame, [plan.columns[place].id])
                with_use = self.read(f"{call}()", query, tables, name, whole)
                found = TracedValue(row[place], f":{name}", self.tokens, with_use)
                return found.used() if row[place] is None and self.tests_identity else found

            only = TracedRow(row, column, use)
        if isinstance(value, list):
            if only is not None:
                return TracedRows(value, use, only)
            many = self.free_name("count")
            self.read(f"{call}()", texts.counted(frame), tables, many, whole)
            return TracedRows(value, use, many=self.number_of_rows(many, len(value)))
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
