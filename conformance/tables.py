"""The tables of a litmus test on a real engine: made in a database of their own, gone afterwards."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.conformance import raw
from isolitmus.conformance.streaming import add_batch
from isolitmus.model.errors import UnknownName, near
from isolitmus.model.raw import Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.conformance.session import Session
    from isolitmus.model.client import Write
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schema import Schema

__all__ = ["PROTOCOLS", "Tables", "made", "table_level"]

PROTOCOLS = {
    "delta-serializable": "Serializable",
    "delta-write-serializable": "WriteSerializable",
    "delta-snapshot-isolation": "SnapshotIsolation",
}
"""The protocols that this engine implements, and the value of ``delta.isolationLevel`` for each."""

ISOLATION_LEVEL = "delta.isolationLevel"
DEFAULT_LEVEL = "Serializable"
"""The level of a table that says nothing (DeltaConfig.scala)."""


def table_level(protocol: str) -> str:
    """The isolation level of the tables under a protocol; UnknownName if Delta has no such thing."""
    if protocol not in PROTOCOLS:
        raise UnknownName(
            f"PySpark with Delta does not implement the protocol '{protocol}'"
            f"{near(protocol, PROTOCOLS)}"
        )
    return PROTOCOLS[protocol]


class Tables:
    """The tables of one litmus test; ``paths`` tells where each one's files and log are."""

    def __init__(self, litmus: Litmus, session: Session, directory: Path) -> None:
        self.schemas = litmus.tables
        self._raw = all(isinstance(t, Raw) for t in litmus.transactions.values())
        self._session = session
        self._database = directory.name
        self.paths = {name: directory / name.lower() for name in litmus.tables}

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

    def add_batch(self, frame: Any, write: Write, batch: tuple[str, int], spark: Any) -> None:
        """Give a DataFrame to the streaming sink, as a batch of a query."""
        add_batch(frame, self.paths[write.table], write.mode, batch, self._session, spark)

    def create(self, level: str) -> None:
        """Create the tables that are to be there, empty, at this isolation level."""
        spark = self._session.spark
        for name, schema in self.schemas.items():
            if not schema.exists:
                continue
            if self._raw:
                given = None if level == DEFAULT_LEVEL else level
                raw.create(self._session, self.paths[name], schema, given)
                raw.fill(self._session, self.paths[name], schema)
                continue
            spark.sql(_ddl(f"{self._database}.`{name}`", schema))
            if level != DEFAULT_LEVEL:
                _set_level(self._session, self.paths[name], level)
            raw.fill(self._session, self.paths[name], schema)


@contextmanager
def made(litmus: Litmus, level: str, session: Session) -> Iterator[Tables]:
    """The tables of the litmus test, empty, at a level; the database and its files go afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="litmus_", dir=session.directory))
    spark = session.spark
    spark.sql(f"CREATE DATABASE {directory.name} LOCATION '{directory}'")
    try:
        tables = Tables(litmus, session, directory)
        tables.create(level)
        yield tables
    finally:
        spark.sql(f"DROP DATABASE {directory.name} CASCADE")
        shutil.rmtree(directory, ignore_errors=True)


def _ddl(name: str, schema: Schema) -> str:
    parts = [f"CREATE TABLE {name} ({schema.ddl()}) USING delta"]
    if schema.partitioned_by:
        parts.append(f"PARTITIONED BY ({', '.join(schema.partitioned_by)})")
    if schema.clustered_by:
        parts.append(f"CLUSTER BY ({', '.join(schema.clustered_by)})")
    if schema.properties:
        pairs = (f"{_text(key)} = {_text(value)}" for key, value in schema.properties.items())
        parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
    return " ".join(parts)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _same(name: str, other: str | None) -> bool:
    return other is not None and name.lower() == other.lower()


def _set_level(session: Session, path: Path, level: str) -> None:
    """Commit the isolation level through Delta's own transaction API.

    SQL accepts only Serializable (DeltaConfig.scala, ISOLATION_LEVEL), but the check is made where
    a user's properties come in, not at commit.
    """
    transaction = session.delta_log(path).startTransaction()
    action = json.loads(transaction.metadata().json())
    action["metaData"]["configuration"][ISOLATION_LEVEL] = level
    operations = session.jvm.org.apache.spark.sql.delta.DeltaOperations
    operation = operations.SetTableProperties(session.mapping({ISOLATION_LEVEL: level}))
    transaction.commit(session.sequence([session.delta_action(action)]), operation)
