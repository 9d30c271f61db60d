"""Data files: the rows that one holds, and what Delta records of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from isolitmus.model.sql.values import Row, Value

__all__ = ["File", "FileKey", "RawFile", "Stats", "TableRow"]

FileKey = tuple[str, str | None]
"""A file's path and the name of its deletion vector."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One version of one row: ``id`` is the row's identity over all time, ``writer`` the
    transaction that installed this version (``""`` for those that were there before the schedule).
    """

    id: str
    writer: str
    values: Row


@dataclass(frozen=True, slots=True)
class Stats:
    """What Delta records of a column in a file: least and greatest value (None: no value),
    NULLs.
    """

    least: Value
    greatest: Value
    nulls: int


@dataclass(frozen=True, slots=True)
class File:
    """A data file."""

    path: str
    """It tells the partition and who wrote it: ``part=0/insert-0``, the first file of insert."""
    partition: Row
    """The values of the partition columns."""
    rows: tuple[TableRow, ...]
    """Those that are live."""
    stats: tuple[Stats | None, ...]
    """By column, of all its rows; None: not known."""
    dead: int = 0
    """How many rows a deletion vector hides."""
    vector: str | None = None
    """The deletion vector of a file that is only said to be there."""

    @property
    def key(self) -> FileKey:
        """What the log tells files apart by: the path and the vector."""
        return self.path, self.vector

    @classmethod
    def of(cls, path: str, partition: Row, rows: tuple[TableRow, ...]) -> File:
        """The file with its statistics computed from its rows (at least one)."""
        columns = zip(*(row.values for row in rows), strict=True)
        return cls(path, partition, rows, tuple(_stats(column) for column in columns))

    def marked(self, gone: Container[str]) -> File:
        """The file with a deletion vector that also hides the rows of these ids.

        >>> rows = TableRow("a", "", (1,)), TableRow("b", "", (2,))
        >>> File.of("f", (), rows).marked({"a"})
        File(path='f', partition=(), rows=(TableRow(id='b', writer='', values=(2,)),), \
stats=(Stats(least=1, greatest=2, nulls=0),), dead=1, vector=None)
        """
        left = tuple(row for row in self.rows if row.id not in gone)
        return replace(self, rows=left, dead=self.dead + len(self.rows) - len(left))


def _stats(column: tuple[Value, ...]) -> Stats:
    values = [v for v in column if v is not None]
    nulls = len(column) - len(values)
    if not values:
        return Stats(None, None, nulls)
    return Stats(min(values), max(values), nulls)


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file that is said to be there: nothing reads it. ``stats`` as in the log, ``vector`` the
    name of its deletion vector.
    """

    path: str
    partition: Row = ()
    stats: Mapping[str, Any] | None = None
    vector: str | None = None
