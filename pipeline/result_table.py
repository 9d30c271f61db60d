"""Tables of results on Delta: columns, location, rows exactly once.

Delta tables for results: what their columns are, and how rows get there exactly once.

Where tables of results are.

SQL's types as Arrow's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.delta.log import LogMetadata
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.disk.input_files import real_path
from isolitmus.specs.logs.delta_log import is_delta_table, open_log

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Location",
    "ResultColumn",
    "ResultTable",
    "Table",
    "refuse_without",
    "table_property",
    "text_literal",
]


class ResultColumn(NamedTuple):
    """A column of a table."""

    type: str
    """As SQL has it."""
    comment: str
    """What it holds; the table says so, too."""
    null: bool = False
    """Whether it may be NULL."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """What a table of results is."""

    name: str
    """What it is called, in its folder if it has one."""
    row: str
    """What a row of it is."""
    columns: Mapping[str, ResultColumn]
    """By name."""
    by: tuple[str, ...] = ()
    """The columns that it is partitioned by."""
    checks: Mapping[str, str] = field(default_factory=dict)
    """CHECK constraints, by name."""

    @property
    def schema(self) -> str:
        """The columns and their types as SQL has them."""
        return ", ".join(f"{name} {column.type}" for name, column in self.columns.items())

    @property
    def type(self) -> str:
        """A row of it as a struct."""
        inside = ", ".join(f"{name}: {column.type}" for name, column in self.columns.items())
        return f"STRUCT<{inside}>"


def table_property(out: Location, key: str, spark: Any = None) -> str | None:
    """What the table at a place says under a property, "" if nothing; None if no table is there.

    Needs no Spark for a folder of this machine; of other places without Spark nothing is known.
    IsolitmusError if there is something else; LogError if the log does not read.
    """
    path = out.path
    if path is None:
        return None if spark is None else _property(spark, out, key)
    if not is_delta_table(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise IsolitmusError(f"--out {out}: there is something, and it is no Delta table")
        return None
    log, metadata = open_log(path), None
    for part in log.begin():
        metadata = part if isinstance(part, LogMetadata) else metadata
    for commit in log.commits():
        metadata = commit.metadata or metadata
    return "" if metadata is None else metadata.configuration.get(key, "")


def refuse_without(what: str, out: Location, key: str, said: str, spark: Any = None) -> None:
    """IsolitmusError if there is something at a place that does not say under a property that it
    holds that; needs no Spark for a folder.
    """
    if table_property(out, key, spark) not in {None, said}:
        raise IsolitmusError(
            f"--out {out}: this table holds no {what}; name a folder that is not there yet"
        )


def _property(spark: Any, out: Location, key: str) -> str | None:
    from pyspark.errors import AnalysisException

    try:
        detail = spark.sql(f"DESCRIBE DETAIL {out.sql}").first()
    except AnalysisException:
        return None
    return str(detail["properties"].get(key, ""))


class Table:
    """A table at a place, made as declared if there is none; a row is there for good once its
    commit is.

    ``key`` and ``said`` are the property that names what the table holds.
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
        """Write the rows of a DataFrame, all in one commit."""
        self._write(self._writer(rows, "append"))

    def replace(self, where: str, rows: Any) -> None:
        """Write the rows of a DataFrame in the place of those of which a condition holds, in one
        commit. Two that do so at one time with the same rows leave them there once, or one of them
        fails.
        """
        self._write(self._writer(rows, "overwrite").option("replaceWhere", where))

    def rows(self, where: str = "true") -> Any:
        """The rows of which a condition holds, as a DataFrame."""
        return self._spark.sql(f"SELECT * FROM {self._place.sql}").where(where)

    def _writer(self, rows: Any, mode: str) -> Any:
        return rows.repartition(1).write.format("delta").mode(mode)

    def _write(self, writer: Any) -> None:
        if self._place.address is None:
            writer.saveAsTable(self._place.sql)
        else:
            writer.save(self._place.address)


def text_literal(words: str) -> str:
    """A literal of Spark's SQL."""
    escaped = words.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:/")
NAMES = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){1,2}")


@dataclass(frozen=True, slots=True)
class Location:
    """A folder of this machine, an address that Spark reads (``s3a://…``, ``hdfs://…``), or names
    of a catalog.

    >>> Location("s3a://bucket/data").inside("counts").sql, Location("main.results").inside("counts").sql
    ('delta.`s3a://bucket/data/counts`', '`main`.`results`.`counts`')
    """

    text: str
    """As the user has it. Names with a dot between them are a catalog's, unless there is such a
    folder.
    """

    @classmethod
    def of(cls, out: Location | Path | str) -> Location:
        """The place that a user names."""
        return out if isinstance(out, Location) else cls(str(out))

    @property
    def path(self) -> Path | None:
        """The folder, if it is one of this machine."""
        return None if ADDRESS.match(self.text) or self._named else Path(self.text)

    @property
    def address(self) -> str | None:
        """What Spark reads it by; None: it has a name in a catalog."""
        if self._named:
            return None
        return self.text if self.path is None else str(real_path(self.path))

    @property
    def sql(self) -> str:
        """What SQL calls it."""
        if self.address is None:
            return ".".join(f"`{name}`" for name in self.text.split("."))
        return f"delta.`{self.address.replace('`', '``')}`"

    def inside(self, name: str) -> Location:
        """What has this name in it."""
        return Location(f"{self.text.rstrip('/')}{'.' if self._named else '/'}{name}")

    def __str__(self) -> str:
        return self.text

    @property
    def _named(self) -> bool:
        return NAMES.fullmatch(self.text) is not None and not Path(self.text).exists()
