# ruff: noqa: A002, ARG001, ARG002, N803, PLR0917, SLF001 - each function has the signature of the one that it replaces
"""Streaming queries of a function: what one of their batches writes.

No streaming query is started. A batch has any rows, made from the tables that the query reads. It
is written to a table, or given to the function of ``foreachBatch`` once. Batches of a query run
beside the rest of the program, so what they execute is told with the line that starts the query.

Delta's streaming sink writes a batch like an INSERT, but sets the version of an application, which
only another run of the same query sets as well (DeltaSink.scala, addBatchWithStatusImpl).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.jobs.sql.spark_plans import plan_tables
from isolitmus.specs.sql.configuration import OVERWRITE_MODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.jobs.recording.frame_statements import FrameStatements
    from isolitmus.jobs.recording.run_record import RunRecord
    from isolitmus.jobs.recording.sql_texts import SqlTexts

BATCH = "_isolitmus_batch"
"""Attribute of a DataFrame that stands for a batch, which is not empty."""
GIVEN = "_isolitmus_stream"
"""Attribute of a stream's writer or reader: what it was asked for before."""
SETTERS = ("format", "outputMode", "option", "options", "queryName")
PRINTED = ("console", "memory", "noop")
SOURCES = ("json", "parquet", "text", "csv", "xml", "orc")
"""Methods of a reader that read files."""
FIXED = {
    "text": "value STRING",
    "kafka": (
        "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,"
        " timestampType INT"
    ),
}
"""Columns of the sources that have the same ones always."""
WORDS = {"append": "append", "complete": "overwrite"}
"""Mode of a batch write by the output mode of a query."""


class StreamStatements:
    """Recorder of streaming queries."""

    def __init__(self, recorder: RunRecord, texts: SqlTexts, frames: FrameStatements) -> None:
        self._recorder = recorder
        self._texts = texts
        self._frames = frames

    def replace_in(self, replace: Callable[..., None]) -> None:
        """Replace the methods that start streaming queries, and their sources."""
        from pyspark.sql.streaming.query import StreamingQueryManager
        from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

        for name in SETTERS:
            replace(DataStreamWriter, name, _setter(name))
        for name in ("foreachBatch", "foreach"):
            replace(DataStreamWriter, name, _keeper(name))
        replace(DataStreamWriter, "start", self._start)
        replace(DataStreamWriter, "toTable", self._to_table)
        replace(StreamingQueryManager, "awaitAnyTermination", _do_nothing)
        for name in ("format", "schema"):
            replace(DataStreamReader, name, _setter(name))
        replace(DataStreamReader, "load", self._load)
        for name in SOURCES:
            replace(DataStreamReader, name, self._source(name))

    # Sources

    def _load(
        self, original: Any, reader: Any, path: Any = None, format: Any = None,
        schema: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if isinstance(path, str) and (known := self._recorder.tables.at(path)):
            return reader.table(known)
        given = _given(reader)
        found = format or given.get("format")
        columns = schema or given.get("schema") or FIXED.get(str(found))
        if columns is not None and found not in (None, "delta", "rate"):
            return self._any_stream(reader._spark, columns)
        return original(reader, path, format, schema, **options)

    def _source(self, name: str) -> Callable[..., Any]:
        def body(
            original: Any, reader: Any, path: Any, schema: Any = None, *args: Any, **options: Any
        ) -> Any:
            columns = schema or _given(reader).get("schema") or FIXED.get(name)
            if columns is None:
                return original(reader, path, schema, *args, **options)
            return self._any_stream(reader._spark, columns)

        return body

    def _any_stream(self, spark: Any, columns: Any) -> Any:
        """Return a stream of any rows with these columns."""
        schema = spark.createDataFrame([], columns).schema
        return _with_columns(spark.readStream.format("rate").load(), schema)

    # Sinks

    def _start(
        self, original: Any, writer: Any, path: Any = None, format: Any = None,
        outputMode: Any = None, partitionBy: Any = None, queryName: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        given = _asked(writer, format, outputMode, options)
        path = given["options"].get("path") if path is None else path
        form = given.get("format") or "delta"
        if "foreachBatch" in given:
            self._call(writer._df, given["foreachBatch"])
        elif "foreach" in given:
            self._recorder.left_out("foreach executes Python on each row of a stream")
        elif form in PRINTED:
            self._recorder.left_out(f"a stream is written to {form}")
        elif form != "delta":
            at = "" if path is None else f" to '{path}'"
            self._recorder.left_out(f"a stream writes {form}{at}")
        elif (known := self._recorder.tables.at(str(path))) is None:
            self._recorder.gap(self._texts.elsewhere("a stream", str(path)))
        else:
            self._write(writer._df, known, given)
        return _EndedQuery(queryName or given.get("queryName"))

    def _to_table(
        self, original: Any, writer: Any, tableName: str, format: Any = None,
        outputMode: Any = None, partitionBy: Any = None, queryName: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        given = _asked(writer, format, outputMode, options)
        if self._recorder.tables.named(tableName) is None:
            self._recorder.gap(
                f"a stream writes to the table {tableName}, which no DDL declares; add its CREATE"
                " TABLE",
            )
        elif given.get("format") not in (None, "delta"):
            self._recorder.gap(f"a stream writes to {tableName} with format '{given['format']}'")
        else:
            self._write(writer._df, tableName, given)
        return _EndedQuery(queryName or given.get("queryName"))

    def _write(self, frame: Any, table: str, given: dict[str, Any]) -> None:
        """Record the write of a batch by Delta's sink."""
        recorder = self._recorder
        name = recorder.tables.named(table) or table
        line = recorder.line
        mode = WORDS.get(given.get("outputMode") or "append")
        if mode is None:
            recorder.gap(
                f"a stream to {name} in output mode '{given['outputMode']}'; Delta has none"
            )
        elif name in self._tables(frame):
            recorder.gap(f"a stream that writes to {name}, which it reads, is not understood")
        elif name in recorder.tables.numbered:
            recorder.gap(f"a stream to {name}, which has an identity column, is not understood")
        else:
            options = {**given["options"]}
            if mode == "overwrite":
                options[OVERWRITE_MODE.rpartition(".")[2]] = "static"
            batch = self._batch(frame)
            texts = self._frames.insertion(batch, table, mode, options, by_name=True)
            if isinstance(texts, str):
                recorder.gap(texts)
                return
            with recorder.in_stream(line, sink=name):
                recorder.statements(texts, line)

    def _call(self, frame: Any, function: Callable[..., Any]) -> None:
        """Call the function of a foreachBatch once."""
        batch = self._batch(frame)
        batch.__dict__[BATCH] = True
        with self._recorder.in_stream(self._recorder.line):
            self._recorder.call_batch(function, batch, 0)

    def _tables(self, frame: Any) -> list[str]:
        """Return the tables that a stream reads."""
        return [*plan_tables(self._texts.export.plan(frame))]

    def _batch(self, frame: Any) -> Any:
        """Return a DataFrame of any rows of the tables that a stream reads, without rows here."""
        spark = self._recorder.spark
        tables = self._tables(frame)
        if not tables:
            return spark.createDataFrame([], frame.schema)
        found = spark.table(tables[0])
        for one in tables[1:]:
            found = found.crossJoin(spark.table(one))
        return _with_columns(found, frame.schema).limit(1)


class _EndedQuery:
    """Stand-in for a streaming query, which has processed what there was."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.id = self.runId = "00000000-0000-0000-0000-000000000000"
        self.isActive = False
        self.lastProgress = None
        self.recentProgress: list[Any] = []
        self.status = {"message": "Stopped", "isDataAvailable": False, "isTriggerActive": False}

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802 - PySpark's
        """Return as a query does that has ended."""
        return None if timeout is None else True

    def exception(self) -> None:
        """Return the exception that ended the query: none."""

    processAllAvailable = stop = exception  # noqa: N815 - PySpark's names


def _with_columns(frame: Any, schema: Any) -> Any:
    """Return a DataFrame with these columns, whose values are NULL."""
    from pyspark.sql import functions

    return frame.select(
        *(functions.lit(None).cast(one.dataType).alias(one.name) for one in schema.fields)
    )


def _setter(name: str) -> Callable[..., Any]:
    """Return the method that keeps what a writer or reader is asked for."""

    def body(original: Any, writer: Any, *args: Any, **options: Any) -> Any:
        given = _given(writer)
        if name == "option":
            given["options"][args[0]] = args[1] if len(args) > 1 else options.get("value")
        elif name == "options":
            given["options"].update(options)
        else:
            value = args[0] if args else next(iter(options.values()), None)
            given[name] = str(value).lower() if name in ("format", "outputMode") else value
        return original(writer, *args, **options)

    return body


def _keeper(name: str) -> Callable[..., Any]:
    """Return the method that keeps a function, which is not passed to the JVM."""

    def body(original: Any, writer: Any, *args: Any, **options: Any) -> Any:
        _given(writer)[name] = args[0] if args else next(iter(options.values()), None)
        return writer

    return body


def _given(writer: Any) -> dict[str, Any]:
    """Return what a stream's writer or reader was asked for."""
    found: dict[str, Any] = writer.__dict__.setdefault(GIVEN, {"options": {}})
    return found


def _asked(writer: Any, format: Any, mode: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return what a writer was asked for, with the arguments of its start."""
    given = {**_given(writer)}
    given["options"] = {**given["options"], **options}
    if format is not None:
        given["format"] = str(format).lower()
    if mode is not None:
        given["outputMode"] = str(mode).lower()
    return given


def _do_nothing(original: Any, *args: Any, **options: Any) -> None:
    """Stand for a method that waits for queries, which have ended."""
