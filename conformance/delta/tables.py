"""Tables of a litmus test on Delta: creation, isolation level, and writes of streams.

The tables are created in a database of their own, which is dropped afterwards. The isolation level
is set by a commit, since SQL rejects some levels.

A streaming query has its own thread, and makes its batches when it likes. The batch of a litmus
test is one statement, so it is added to Delta's streaming sink on the statement's thread, as Spark
does it. The data source creates the sink, as in DataStreamWriter, in an output mode; the query id
is the property of the thread that Spark sets; the batch is planned first and then added (Spark
4.2.0, MicroBatchExecution.scala, runBatch: "queryPlanning", "addBatch"). There is no offset, no
checkpoint and no query to end. Delta does the same as for a query of Structured Streaming
(tests/conformance/delta/test_streaming.py compares their logs): it treats such a batch differently
only to cast, rename or add columns, and here the columns are those of the table.
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
from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.statement import Clone, Convert, Create, Replace
from isolitmus.specs.files.table_ddl import table_ddl
from isolitmus.specs.sql.parameters import spark_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from isolitmus.conformance.delta.session import Session
    from isolitmus.model.litmus import DataFrameWrite, Litmus
    from isolitmus.model.sql.schema import Schema


def set_level(session: Session, path: Path, level: str) -> None:
    """Commit the isolation level through Delta's own transaction API.

    SQL accepts only Serializable (DeltaConfig.scala, ISOLATION_LEVEL), but the value is checked
    where a user's properties are read, not at commit.
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
    """Add a DataFrame to the table at a path as a micro-batch of a streaming query.

    Parameters
    ----------
    frame : DataFrame
        Rows of the batch.
    path : Path
        Path of the table.
    mode : str
        Output mode, ``append`` or ``complete``.
    batch : (str, int)
        Id of the query and number of the batch.
    session : Session
        Session with Delta.
    spark : SparkSession
        Session that is active on the query's thread.
    """
    java, modes = java_session(spark), session.java("org.apache.spark.sql.streaming.OutputMode")
    output = modes.Append() if mode == "append" else modes.Complete()
    source = session.java("org.apache.spark.sql.delta.sources.DeltaDataSource")()
    sink = source.createSink(
        java.sqlContext(), session.mapping({"path": str(path)}), session.sequence([]), output
    )
    session.activate(spark)  # as on the thread of a streaming query
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
"""Protocols that this engine implements, with the value of ``delta.isolationLevel`` for each."""


class EngineTables:
    """Tables of one litmus test; ``paths`` has the folder with files and log of each."""

    def __init__(self, litmus: Litmus, session: Session, directory: Path) -> None:
        self.schemas = litmus.tables
        self._transactions = tuple(litmus.transactions.values())
        self._init = litmus.init
        self._raw = not litmus.init and all(isinstance(t, Raw) for t in self._transactions)
        self._session = session
        self._database = directory.name
        self.paths = {name: directory / name.lower() for name in litmus.tables}

    def keep_logs(self, folder: Path) -> None:
        """Copy the logs, without data files, to a folder for each table."""
        for name, path in self.paths.items():
            log = path / "_delta_log"
            if log.is_dir():
                shutil.copytree(log, folder / name / log.name)

    def client(self, target: str | None = None) -> Any:
        """Return a new SparkSession that resolves the test's table names, to write ``target``."""
        spark = self._session.fresh(self.layout(target))
        spark.catalog.setCurrentDatabase(self._database)
        return spark

    def alias(self, name: str | None) -> Path:
        """Return another path to a table (None: the only one); to Delta it is another table."""
        path = next(p for n, p in self.paths.items() if name is None or _same(n, name))
        other = path.with_name(f"{path.name}-by-another-path")
        if not other.is_symlink():
            other.symlink_to(path)
        return other

    def layout(self, target: str | None) -> dict[str, str]:
        """Return the confs for the number of rows per file that a table's schema declares."""
        schema = next((s for n, s in self.schemas.items() if _same(n, target)), None)
        if schema is None or schema.rows_per_file is None:
            return {}
        return {"spark.sql.files.maxRecordsPerFile": str(schema.rows_per_file)}

    def raw_body(self, statement: Raw, spark: Any) -> Callable[[], None]:
        """Return a callable that runs a raw transaction."""
        name = statement.target
        return raw.raw_body(statement, self.schemas[name], self.paths[name], self._session, spark)

    def add_batch(
        self, frame: Any, write: DataFrameWrite, batch: tuple[str, int], spark: Any
    ) -> None:
        """Add a DataFrame to the streaming sink, as a batch of a query."""
        write_micro_batch(frame, self.paths[write.table], write.mode, batch, self._session, spark)

    def create(self, level: str) -> None:
        """Create the tables that exist at the start, empty, at this isolation level."""
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
        """Key of the state of the tables when the schedule starts, apart from their level.

        None if the tables cannot be copied, because a statement that makes a table depends on where
        its files are.
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
        """Create the tables that ``keep`` has copied to a folder."""
        for name, path in self.paths.items():
            if (folder / name).exists():
                shutil.copytree(folder / name, path)
                table = f"{self._database}.`{name}`"
                self._session.spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{path}'")

    def _fill_parquet(self, name: str, schema: Schema, level: str) -> None:
        """Create a Parquet table with rows and with the isolation level among its properties."""
        level_said = {} if level == DEFAULT_LEVEL else {LEVEL_KEY: level}
        properties = {**schema.properties, **level_said}
        spark = self.client(name)
        spark.sql(table_ddl(f"`{name}`", replace(schema, properties=properties), "parquet"))
        rows = (f"({', '.join(map(spark_literal, row))})" for row in schema.parquet)
        spark.sql(f"INSERT INTO `{name}` VALUES {', '.join(rows)}")


@contextmanager
def make_tables(litmus: Litmus, level: str, session: Session) -> Iterator[EngineTables]:
    """Yield the tables of the litmus test, empty, at a level; drop the database afterwards."""
    with place_tables(litmus, session) as tables:
        tables.create(level)
        yield tables


@contextmanager
def place_tables(litmus: Litmus, session: Session) -> Iterator[EngineTables]:
    """Yield the place for the tables of the litmus test; drop the database afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="litmus_", dir=session.directory))
    spark = session.spark
    spark.sql(f"CREATE DATABASE {directory.name} LOCATION '{directory}'")
    try:
        yield EngineTables(litmus, session, directory)
    finally:
        found = list(directory.iterdir())  # includes tables made by statements, and aliases
        spark.sql(f"DROP DATABASE {directory.name} CASCADE")
        for table in found:
            session.forget(table)
        shutil.rmtree(directory, ignore_errors=True)


def _same(name: str, other: str | None) -> bool:
    return other is not None and name.lower() == other.lower()
