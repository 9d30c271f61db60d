"""Tables of a litmus test on Delta: made, filled, written by streams, gone afterwards.

The tables of a litmus test on a real engine: made in a database of their own, gone afterwards.

The isolation level of a real table, set where SQL cannot.

A micro-batch of a streaming query, given to Delta's streaming sink as Spark does it.

A streaming query has a thread of its own, and batches that come when it makes them. A litmus test's
batch is one statement: so it goes to the sink on the statement's thread. The sink is made by the
data source, as DataStreamWriter makes it, in an output mode; the id of the query is the thread's
property that Spark sets; the batch is planned first, and then added (Spark 4.2.0,
MicroBatchExecution.scala, runBatch: "queryPlanning", "addBatch"). There is no offset, no checkpoint
and no query to end. What Delta does is the same as for a query of Structured Streaming
(tests/conformance/delta/test_streaming.py compares their logs): it tells the batch of one apart
only to cast, rename or add columns, and here they are what the table has.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta import raw_commits as raw
from isolitmus.conformance.delta.session import java_session
from isolitmus.model.delta.log import DEFAULT_LEVEL, LEVEL_KEY
from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql.statement import Clone, Convert, Create, Replace
from isolitmus.specs.files.table_ddl import table_ddl
from isolitmus.specs.sql.parameters import spark_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from isolitmus.conformance.delta.session import Session
    from isolitmus.model.litmus import DataFrameWrite, Litmus
    from isolitmus.model.schema import Schema

__all__ = [
    "PROTOCOLS",
    "EngineTables",
    "make_tables",
    "place_tables",
    "set_level",
    "write_micro_batch",
]


def set_level(session: Session, path: Path, level: str) -> None:
    """Commit the isolation level through Delta's own transaction API.

    SQL accepts only Serializable (DeltaConfig.scala, ISOLATION_LEVEL), but the check is made where
    a user's properties come in, not at commit.
    """
    transaction = session.delta_log(path).startTransaction()
    action = json.loads(transaction.metadata().json())
    action["metaData"]["configuration"][LEVEL_KEY] = level
    operations = session.java("org.apache.spark.sql.delta.DeltaOperations")
    operation = operations.SetTableProperties(session.mapping({LEVEL_KEY: level}))
    transaction.commit(session.sequence([session.delta_action(action)]), operation)


QUERY_ID = "sql.streaming.queryId"
"""StreamExecution.QUERY_ID_KEY."""


def write_micro_batch(  # noqa: PLR0917
    frame: Any, path: Path, mode: str, batch: tuple[str, int], session: Session, spark: Any
) -> None:
    """Add a DataFrame to the table at a path, in output mode ``append`` or ``complete``, as
    ``batch``: the id of its query, and its number.
    """
    java, modes = java_session(spark), session.java("org.apache.spark.sql.streaming.OutputMode")
    output = modes.Append() if mode == "append" else modes.Complete()
    source = session.java("org.apache.spark.sql.delta.sources.DeltaDataSource")()
    sink = source.createSink(
        java.sqlContext(), session.mapping({"path": str(path)}), session.sequence([]), output
    )
    session.activate(spark)  # as the thread of a query does
    query, number = batch
    java.sparkContext().setLocalProperty(QUERY_ID, query)
    try:
        rows = frame._jdf  # noqa: SLF001
        rows.queryExecution().executedPlan()
        sink.addBatch(number, rows)
    finally:
        java.sparkContext().setLocalProperty(QUERY_ID, None)


PROTOCOLS = {
    "delta-serializable": "Serializable",
    "delta-write-serializable": "WriteSerializable",
    "delta-snapshot-isolation": "SnapshotIsolation",
}
"""The protocols that this engine implements, and the value of ``delta.isolationLevel`` for each."""


class EngineTables:
    """The tables of one litmus test; ``paths`` tells where each one's files and log are."""

    def __init__(self, litmus: Litmus, session: Session, directory: Path) -> None:
        self.schemas = litmus.tables
        self._transactions = tuple(litmus.transactions.values())
        self._init = litmus.init
        self._raw = not litmus.init and all(isinstance(t, Raw) for t in self._transactions)
        self._session = session
        self._database = directory.name
        self.paths = {name: directory / name.lower() for name in litmus.tables}

    def keep_logs(self, folder: Path) -> None:
        """Copy the logs, without data, to a folder by name each: what an audit reads."""
        for name, path in self.paths.items():
            log = path / "_delta_log"
            if log.is_dir():
                shutil.copytree(log, folder / name / log.name)

    def client(self, target: str | None = None) -> Any:
        """A new SparkSession in which the test's table names resolve, to write ``target``."""
        spark = self._session.fresh(self.layout(target))
        spark.catalog.setCurrentDatabase(self._database)
        return spark

    def alias(self, name: str | None) -> Path:
        """Another path to a table (None: the only one), which Delta takes for another table."""
        path = next(p for n, p in self.paths.items() if name is None or _same(n, name))
        other = path.with_name(f"{path.name}-by-another-path")
        if not other.is_symlink():
            other.symlink_to(path)
        return other

    def layout(self, target: str | None) -> dict[str, str]:
        """The confs that cut the files of a table as its schema says."""
        schema = next((s for n, s in self.schemas.items() if _same(n, target)), None)
        if schema is None or schema.rows_per_file is None:
            return {}
        return {"spark.sql.files.maxRecordsPerFile": str(schema.rows_per_file)}

    def raw_body(self, statement: Raw, spark: Any) -> Callable[[], None]:
        """A raw transaction as a callable."""
        name = statement.target
        return raw.raw_body(statement, self.schemas[name], self.paths[name], self._session, spark)

    def add_batch(
        self, frame: Any, write: DataFrameWrite, batch: tuple[str, int], spark: Any
    ) -> None:
        """Give a DataFrame to the streaming sink, as a batch of a query."""
        write_micro_batch(frame, self.paths[write.table], write.mode, batch, self._session, spark)

    def create(self, level: str) -> None:
        """Create the tables that are to be there, empty, at this isolation level."""
        spark = self._session.spark
        if self._raw:
            raw.activate_session(self._session, self._session.fresh())
        for name, schema in self.schemas.items():
            if schema.parquet:
                self._fill_parquet(name, schema, level)
            if not schema.exists:
                continue
            if self._raw:
                given = None if level == DEFAULT_LEVEL else level
                raw.create_empty(self._session, self.paths[name], schema, given)
                raw.commit_files(self._session, self.paths[name], schema)
                continue
            spark.sql(table_ddl(f"{self._database}.`{name}`", schema))
            if level != DEFAULT_LEVEL and LEVEL_KEY not in schema.properties:
                set_level(self._session, self.paths[name], level)
            raw.commit_files(self._session, self.paths[name], schema)

    @property
    def key(self) -> Hashable | None:
        """What decides how the tables are when the schedule starts, but for their level; None if
        they cannot be copied: a statement that makes a table asks where its files are.
        """
        makes = (Create, Clone, Replace, Convert)
        if self._raw or not self._init or any(isinstance(t, makes) for t in self._transactions):
            return None
        schemas = tuple(repr(schema) for schema in self.schemas.values())
        return (*schemas, *(statement.sql for statement in self._init))

    def keep(self, folder: Path) -> None:
        """Copy the tables' files and logs into a folder."""
        for name, path in self.paths.items():
            if path.exists():
                shutil.copytree(path, folder / name)

    def copy(self, folder: Path) -> None:
        """Make the tables that ``keep`` has copied there."""
        for name, path in self.paths.items():
            if (folder / name).exists():
                shutil.copytree(folder / name, path)
                table = f"{self._database}.`{name}`"
                self._session.spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{path}'")

    def _fill_parquet(self, name: str, schema: Schema, level: str) -> None:
        """Create a Parquet table with rows, whose properties have the level that it is to have."""
        level_said = {} if level == DEFAULT_LEVEL else {LEVEL_KEY: level}
        properties = {**schema.properties, **level_said}
        spark = self.client(name)
        spark.sql(table_ddl(f"`{name}`", replace(schema, properties=properties), "parquet"))
        rows = (f"({', '.join(map(spark_literal, row))})" for row in schema.parquet)
        spark.sql(f"INSERT INTO `{name}` VALUES {', '.join(rows)}")


@contextmanager
def make_tables(litmus: Litmus, level: str, session: Session) -> Iterator[EngineTables]:
    """The tables of the litmus test, empty, at a level; the database and its files go
    afterwards.
    """
    with place_tables(litmus, session) as tables:
        tables.create(level)
        yield tables


@contextmanager
def place_tables(litmus: Litmus, session: Session) -> Iterator[EngineTables]:
    """A place for the tables of the litmus test; the database and its files go afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="litmus_", dir=session.directory))
    spark = session.spark
    spark.sql(f"CREATE DATABASE {directory.name} LOCATION '{directory}'")
    try:
        yield EngineTables(litmus, session, directory)
    finally:
        found = list(directory.iterdir())  # with what statements made, and other paths to tables
        spark.sql(f"DROP DATABASE {directory.name} CASCADE")
        for table in found:
            session.forget(table)
        shutil.rmtree(directory, ignore_errors=True)


def _same(name: str, other: str | None) -> bool:
    return other is not None and name.lower() == other.lower()
