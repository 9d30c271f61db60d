"""Delta tables of results: their columns, their location, and writes of each row exactly once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.disk.input_files import is_delta_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from sqlglot import expressions as exp

    from isolitmus.specs.disk.output_files import Location


class ResultColumn(NamedTuple):
    """Column of a table of results."""

    type: str
    """Type in SQL."""
    comment: str
    """Meaning, which is also the column's comment in the table."""
    null: bool = False
    """True if it may be NULL."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Declaration of a table of results."""

    name: str
    """Name of the table, also in its folder."""
    row: str
    """Meaning of a row."""
    columns: Mapping[str, ResultColumn]
    """Columns by name."""
    by: tuple[str, ...] = ()
    """Partition columns."""
    checks: Mapping[str, str] = field(default_factory=dict)
    """CHECK constraints, by name."""

    @property
    def schema(self) -> str:
        """Columns and their types in SQL."""
        return ", ".join(f"{name} {column.type}" for name, column in self.columns.items())

    @property
    def type(self) -> str:
        """SQL type of a row as a struct."""
        inside = ", ".join(f"{name}: {column.type}" for name, column in self.columns.items())
        return f"STRUCT<{inside}>"


def table_property(out: Location, key: str, spark: Any = None) -> str | None:
    """Return a property of the table at a place, "" if it is not set, None if there is no table.

    For a folder of this machine this needs no Spark; for other places, the result without Spark is
    None.

    Raises
    ------
    IsolitmusError
        The place holds something else.
    LogError
        The log cannot be read.
    """
    path = out.path
    if path is None:
        return None if spark is None else _property(spark, out, key)
    if not is_delta_table(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise IsolitmusError(f"--out {out}: exists and is not a Delta table")
        return None
    from isolitmus.model.delta.log import LogMetadata
    from isolitmus.specs.logs.delta_log import open_log

    log, metadata = open_log(path), None
    for part in log.begin():
        metadata = part if isinstance(part, LogMetadata) else metadata
    for commit in log.commits():
        metadata = commit.metadata or metadata
    return "" if metadata is None else metadata.configuration.get(key, "")


def refuse_without(what: str, out: Location, key: str, said: str, spark: Any = None) -> None:
    """Raise IsolitmusError if a place holds a table whose property has another value.

    For a folder this needs no Spark.

    Parameters
    ----------
    what : str
        Content of the table, for the message.
    out : Location
        Place of the table.
    key, said : str
        Name and expected value of the property.
    spark : SparkSession, optional
        Session to read other places than folders.
    """
    if table_property(out, key, spark) not in {None, said}:
        raise IsolitmusError(
            f"--out {out}: this table holds no {what}; name a folder that is not there yet"
        )


def _property(spark: Any, out: Location, key: str) -> str | None:
    """Return a property of a Delta table, empty if it is not set; None if there is no table."""
    from pyspark.errors import AnalysisException

    try:
        detail = spark.sql(f"DESCRIBE DETAIL {out.sql}").first()
    except AnalysisException:
        return None
    return str(detail["properties"].get(key, ""))


class Table:
    """Table at a place, created as declared if missing; rows are durable once their commit is.

    ``key`` and ``said`` are name and value of the property that says what the table holds.
    """

    def __init__(
        self, spark: Any, place: Location, declared: ResultTable, key: str, said: str
    ) -> None:
        self._spark, self._place, self.declared = spark, place, declared
        columns = ", ".join(
            f"`{name}` {column.type}{'' if column.null else ' NOT NULL'} COMMENT"
            f" {text_literal(column.comment)}"
            for name, column in declared.columns.items()
        )
        by = f" PARTITIONED BY ({', '.join(declared.by)})" if declared.by else ""
        checks = {f"delta.constraints.{name}": check for name, check in declared.checks.items()}
        properties = ", ".join(
            f"{text_literal(name)} = {text_literal(value)}"
            for name, value in {key: said, **checks}.items()
        )
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {place.sql} ({columns}) USING delta{by}"
            f" COMMENT {text_literal(declared.row)} TBLPROPERTIES ({properties})"
        )

    def append(self, rows: Any) -> None:
        """Append the rows of a DataFrame, in one commit."""
        self._write(self._writer(rows, "append"))

    def replace(self, where: str, rows: Any) -> None:
        """Replace the rows that match a condition by those of a DataFrame, in one commit.

        If two writers do so concurrently with the same rows, the table has them once, or one writer
        fails.
        """
        self._write(self._writer(rows, "overwrite").option("replaceWhere", where))

    def rows(self, where: str = "true") -> Any:
        """Return the rows that match a condition, as a DataFrame."""
        return self._spark.sql(f"SELECT * FROM {self._place.sql}").where(where)

    def _writer(self, rows: Any, mode: str) -> Any:
        return rows.repartition(1).write.format("delta").mode(mode)

    def _write(self, writer: Any) -> None:
        """Save a DataFrame with this writer, by name in a catalog or by address."""
        if self._place.address is None:
            writer.saveAsTable(self._place.sql)
        else:
            writer.save(self._place.address)


def text_literal(words: str) -> str:
    """Return a string literal of Spark's SQL."""
    escaped = words.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


ARROW = {
    "BIGINT": "int64",
    "BOOLEAN": "bool_",
    "DATE": "date32",
    "DOUBLE": "float64",
    "FLOAT": "float32",
    "INT": "int32",
    "SMALLINT": "int16",
    "TEXT": "string",
    "TINYINT": "int8",
}
"""Function of PyArrow that makes a type, by sqlglot's name of the type."""


@cache
def arrow_type(sql: str) -> pa.DataType:
    """Return the Arrow type that Spark accepts for a SQL type; raise KeyError if unsupported.

    Examples
    --------
    >>> str(arrow_type("ARRAY<STRUCT<id: INT, name: STRING>>"))
    'list<item: struct<id: int32, name: string>>'
    """
    from sqlglot import expressions as exp

    return _of(exp.DataType.build(sql, dialect="spark"))


def _of(type_: exp.DataType) -> pa.DataType:
    """Return the Arrow type of a parsed SQL type; DECIMAL without digits is DECIMAL(10,0)."""
    import pyarrow as pa

    inside = type_.expressions
    match type_.this.name:
        case "ARRAY":
            return pa.list_(_of(inside[0]))
        case "STRUCT":
            return pa.struct([(part.name, _of(part.args["kind"])) for part in inside])
        case "DECIMAL":
            precision, scale = (int(part.name) for part in inside) if inside else (10, 0)
            return pa.decimal128(precision, scale)
        case "TIMESTAMPTZ":
            return pa.timestamp("us", "UTC")
        case name:
            return getattr(pa, ARROW[name])()
