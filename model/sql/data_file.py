"""Data files: their rows, and the statistics that Delta records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from isolitmus.model.sql.values import Row, Value

FileKey = tuple[str, str | None]
"""Path of a file and name of its deletion vector."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """Version of a row.

    ``id`` is the identity of the row over all versions. ``writer`` is the transaction that wrote
    this version (``""`` for rows from before the schedule).
    """

    id: str
    writer: str
    values: Row


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of a column in a file: minimum and maximum (None: no value), number of NULLs."""

    least: Value
    greatest: Value
    nulls: int


@dataclass(frozen=True, slots=True)
class File:
    """Data file."""

    path: str
    """Path, which contains the partition and the writer: ``part=0/insert-0`` is the first file of
    insert.
    """
    partition: Row
    """Values of the partition columns."""
    rows: tuple[TableRow, ...]
    """Live rows."""
    stats: tuple[Stats | None, ...]
    """Statistics of all its rows, by column; None if not known."""
    dead: int = 0
    """Number of rows that a deletion vector hides."""
    vector: str | None = None
    """Deletion vector of a file that is only declared."""
    marker: str = ""
    """Transaction that wrote its deletion vector.

    A transaction writes one for a path, so path and marker tell two vectors of a file apart.
    """

    @property
    def key(self) -> FileKey:
        """Path and deletion vector, which identify a file in the log."""
        return self.path, self.vector

    @classmethod
    def of(cls, path: str, partition: Row, rows: tuple[TableRow, ...]) -> File:
        """Return a file with statistics computed from its rows (at least one)."""
        columns = zip(*(row.values for row in rows), strict=True)
        return cls(path, partition, rows, tuple(_stats(column) for column in columns))

    def marked(self, gone: Container[str], marker: str) -> File:
        """Return the file with a transaction's deletion vector, which also hides these rows, by id.

        Examples
        --------
        >>> rows = TableRow("a", "", (1,)), TableRow("b", "", (2,))
        >>> File.of("f", (), rows).marked({"a"}, "delete")
        File(path='f', partition=(), rows=(TableRow(id='b', writer='', values=(2,)),), \
stats=(Stats(least=1, greatest=2, nulls=0),), dead=1, vector=None, marker='delete')
        """
        left = tuple(row for row in self.rows if row.id not in gone)
        dead = self.dead + len(self.rows) - len(left)
        return self if dead == self.dead else replace(self, rows=left, dead=dead, marker=marker)


def _stats(column: tuple[Value, ...]) -> Stats:
    """Return minimum, maximum and null count of a column; no bounds if all values are NULL."""
    values = [v for v in column if v is not None]
    nulls = len(column) - len(values)
    if not values:
        return Stats(None, None, nulls)
    return Stats(min(values), max(values), nulls)


@dataclass(frozen=True, slots=True)
class RawFile:
    """Declared file that nothing reads.

    ``stats`` are as in the log; ``vector`` is the name of its deletion vector.
    """

    path: str
    partition: Row = ()
    stats: Mapping[str, Any] | None = None
    vector: str | None = None
