"""Delta tables for results: what their columns are, and how rows get there exactly once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.delta_log import LogMetadata
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.delta_log import is_delta_table, open_log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["ResultColumn", "ResultTable", "Table", "held"]


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


def held(out: Path, key: str) -> str | None:
    """What the table at a path says under a property, "" if nothing; None if no table is there.

    Needs no Spark. IsolitmusError if there is something else; LogError if the log does not read.
    """
    if not is_delta_table(out):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise IsolitmusError(f"--out {out}: there is something, and it is no Delta table")
        return None
    log, metadata = open_log(out), None
    for part in log.begin():
        metadata = part if isinstance(part, LogMetadata) else metadata
    for commit in log.commits():
        metadata = commit.metadata or metadata
    return "" if metadata is None else metadata.configuration.get(key, "")


class Table:
    """A table at a path, made as declared if there is none; a row is there for good once its commit is.

    ``key`` and ``said`` are the property that names what the table holds.
    """

    def __init__(self, spark: Any, path: Path, declared: ResultTable, key: str, said: str) -> None:
        from delta.tables import DeltaTable

        self._spark, self._path, self.declared = spark, str(path.resolve()), declared
        if is_delta_table(path):
            return
        made = DeltaTable.create(spark).location(self._path).property(key, said)
        for name, check in declared.checks.items():
            made = made.property(f"delta.constraints.{name}", check)
        for name, column in declared.columns.items():
            made = made.addColumn(name, column.type, nullable=column.null, comment=column.comment)
        if declared.by:
            made = made.partitionedBy(*declared.by)
        made.comment(declared.row).execute()

    def append(self, rows: Any) -> None:
        """Write the rows of a DataFrame, all in one commit."""
        self._writer(rows, "append").save(self._path)

    def replace(self, where: str, rows: Any) -> None:
        """Write the rows of a DataFrame in the place of those of which a condition holds, in one commit. Two that
        do so at one time with the same rows leave them there once, or one of them fails.
        """
        self._writer(rows, "overwrite").option("replaceWhere", where).save(self._path)

    def rows(self, where: str = "true") -> Any:
        """The rows of which a condition holds, as a DataFrame."""
        return self._spark.read.format("delta").load(self._path).where(where)

    def _writer(self, rows: Any, mode: str) -> Any:
        return rows.repartition(1).write.format("delta").mode(mode)
