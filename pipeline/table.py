"""A Delta table for results of one kind, which a property of the table names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.delta_log import LogMetadata
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.delta_log import is_delta_table, open_log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Table", "held", "schema"]


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


def schema(columns: Mapping[str, str]) -> str:
    """Columns and their types as SQL has them."""
    return ", ".join(f"{column} {kind}" for column, kind in columns.items())


class Table:
    """A table at a path, made if there is none; a row is there for good once its commit is.

    ``columns`` are types by name. ``key`` and ``said`` are the property that names what the table holds.
    """

    def __init__(
        self, spark: Any, path: Path, columns: Mapping[str, str], key: str, said: str
    ) -> None:
        from delta.tables import DeltaTable

        self._spark, self._path = spark, str(path.resolve())
        if not is_delta_table(path):
            made = DeltaTable.create(spark).location(self._path).property(key, said)
            for name, kind in columns.items():
                made = made.addColumn(name, kind)
            made.execute()

    def append(self, rows: Any) -> None:
        """Write the rows of a DataFrame, all in one commit."""
        rows.repartition(1).write.format("delta").mode("append").save(self._path)

    def rows(self, where: str) -> Any:
        """The rows of which a condition holds, as a DataFrame."""
        return self._spark.read.format("delta").load(self._path).where(where)
