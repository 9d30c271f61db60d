"""The clients of a litmus test's transactions on Spark: their sessions, and what each runs in its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.table_versions import plain_row
from isolitmus.model.client import CacheTable
from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql.statement import Read
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.sql.binding import bind, scalar
from isolitmus.specs.sql.parameters import bound
from isolitmus.specs.sql.placeholders import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.conformance.delta.tables import EngineTables
    from isolitmus.model.client import DataFrameWrite
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Rows, Value

__all__ = ["Clients", "body", "target"]

WRITE = "spark.databricks.delta.write"
"""The beginning of the confs of idempotent writes (DeltaSQLConf.scala)."""


class Clients:
    """Opens a SparkSession for each transaction, or for those that share one."""

    def __init__(self, litmus: Litmus, tables: EngineTables, inits: Sequence[int]) -> None:
        self._litmus = litmus
        self._tables = tables
        self._inits = inits
        self._open: dict[str, Any] = {}
        self._shared: dict[str, Any] = {}
        self._confs: dict[str, dict[str, str | None]] = {}
        self._values: dict[str, dict[str, Value]] = {}

    def __contains__(self, name: str) -> bool:
        """Whether a transaction's client has been at work."""
        return name in self._open

    def open(self, name: str) -> None:
        """Open the session of a transaction's client; confs of the one before it in it are gone."""
        session = self._litmus.client(name).session
        if session is None:
            self._open[name] = self._tables.client()
            return
        spark = self._shared.setdefault(session, None) or self._tables.client()
        self._open[name] = self._shared[session] = spark
        for key, value in self._confs.pop(session, {}).items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)

    def asking(self, name: str) -> Callable[[], None]:
        """What the client runs and reads outside the transaction, as a callable."""
        spark, client = self._open[name], self._litmus.client(name)

        def ask() -> None:
            for aside in client.before:
                spark.sql(aside.sql).collect()
            self._values[name] = {
                parameter: scalar(query.sql, self._rows(spark, query.sql))
                for parameter, query in client.let.items()
            }

        return ask

    def statement(self, name: str) -> Callable[[], Rows | None]:
        """The transaction's own statement as a callable; its confs are set."""
        spark, client = self._open[name], self._litmus.client(name)
        statement = self._litmus.transactions[name]
        confs = {**self._tables.layout(target(statement)), **client.conf}
        stream = client.write is not None and client.write.stream
        if client.app is not None and not stream:
            app, version = client.app
            confs |= {f"{WRITE}.txnAppId": app, f"{WRITE}.txnVersion": str(version)}
        if client.session is not None:
            self._confs[client.session] = {key: spark.conf.get(key, None) for key in confs}
        for key, value in confs.items():
            spark.conf.set(key, value)
        values = self._values.get(name, {})
        if isinstance(statement, Raw):
            return self._tables.raw_body(statement, spark)
        if client.write is not None:
            query = self._placed(bound(client.write.query, values))
            options = {k: bound(value, values) for k, value in client.write.options.items()}
            write = replace(client.write, query=query, options=options)
            return _write(write, client.app, spark, self._tables)
        bound_statement = bind(statement, values)
        return body(replace(bound_statement, sql=self._placed(bound_statement.sql)), spark)

    def _placed(self, sql: str) -> str:
        return placed(sql, self._inits, self._tables.alias)

    def _rows(self, spark: Any, sql: str) -> Rows:
        return tuple(map(plain_row, spark.sql(self._placed(sql)).collect()))

    def close(self) -> None:
        """Uncache what they cached: a cache belongs to all sessions of the JVM."""
        for name, spark in self._open.items():
            for aside in self._litmus.client(name).before:
                if isinstance(aside, CacheTable):
                    spark.sql(f"UNCACHE TABLE IF EXISTS `{aside.table}`").collect()


def target(statement: Statement) -> str | None:
    """The table that a statement writes."""
    return None if isinstance(statement, Read) else statement.target


def body(statement: Statement, spark: Any) -> Callable[[], Rows | None]:
    """The statement as a callable: runs the author's text, returns the rows of a reader."""

    def run() -> Rows | None:
        rows = spark.sql(statement.sql).collect()
        return sort_rows(map(plain_row, rows)) if isinstance(statement, Read) else None

    return run


def _write(
    write: DataFrameWrite, app: tuple[str, int] | None, spark: Any, tables: EngineTables
) -> Callable[[], Rows | None]:
    """A write of the DataFrame API, into the table's path: the columns by position, as INSERT has them;
    those that it adds have their own names. Or a micro-batch, of this query and number.
    """
    schema = tables.schemas[write.table]
    names = [c.name for c in schema.columns]
    columns = [f"CAST(`{c.name}` AS {c.type}) AS `{c.name}`" for c in schema.columns]

    def run() -> None:
        query = spark.sql(write.query)
        more = query.columns[len(names) :] if write.merges else []
        frame = query.toDF(*names, *more).selectExpr(*columns, *(f"`{name}`" for name in more))
        if write.stream and app is not None:
            tables.add_batch(frame, write, app, spark)
            return
        writer = frame.write.format("delta").mode(write.mode)
        writer.options(**write.options).save(str(tables.paths[write.table]))

    return run
