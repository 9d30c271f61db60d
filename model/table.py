"""The state of tables: rows with hidden identities, in files, in partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.values import sort_rows

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from isolitmus.model.header import Header
    from isolitmus.model.values import Row, Rows, Value

__all__ = ["File", "Stats", "TableRow", "TableState", "widened"]


@dataclass(frozen=True, slots=True)
class TableRow:
    """One version of one row: ``id`` is the row's identity over all time, ``writer`` the transaction
    that installed this version (``""`` for those that were there before the schedule).
    """

    id: str
    writer: str
    values: Row


@dataclass(frozen=True, slots=True)
class Stats:
    """What Delta records of a column in a file: least and greatest value (None: no value), NULLs."""

    least: Value
    greatest: Value
    nulls: int


@dataclass(frozen=True, slots=True)
class File:
    """A data file: its path, the values of the partition columns, its live rows, statistics by column.

    The path tells the partition and who wrote it: ``part=0/insert-0``, the first file of insert.
    ``dead`` counts the rows that a deletion vector hides; the statistics are still those of all.
    """

    path: str
    partition: Row
    rows: tuple[TableRow, ...]
    stats: tuple[Stats | None, ...]
    dead: int = 0

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
stats=(Stats(least=1, greatest=2, nulls=0),), dead=1)
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
class TableState:
    """The live files of one table, in the order in which they were added.

    ``header`` is what the log says besides, None while that is what the test declares.
    """

    files: tuple[File, ...] = ()
    header: Header | None = None

    def rows(self) -> Rows:
        """The contents as a sorted bag, without the columns that were dropped."""
        rows = (row.values for file in self.files for row in file.rows)
        columns = () if self.header is None else self.header.metadata.columns
        if all(column.name for column in columns):
            return sort_rows(rows)
        shown = [i for i, column in enumerate(columns) if column.name]
        return sort_rows(tuple(row[i] for i in shown) for row in rows)

    def replay(self, removes: frozenset[str], adds: Iterable[File]) -> TableState:
        """The state after a commit, as the log replays: files removed by path, then files added."""
        return replace(self, files=(*(f for f in self.files if f.path not in removes), *adds))

    def under(self, header: Header) -> TableState:
        """The state when the log says this besides: its rows have every column."""
        width = len(header.metadata.columns)
        return TableState(tuple(_widened(file, width) for file in self.files), header)


def widened(row: Row, width: int) -> Row:
    """A row with NULL in the columns that came after it.

    >>> widened((1,), 3)
    (1, None, None)
    """
    return row + (None,) * (width - len(row))


def _widened(file: File, width: int) -> File:
    """The file with so many columns: it knows nothing of those that came, and some may go again."""
    if len(file.stats) == width:
        return file
    rows = tuple(replace(row, values=widened(row.values[:width], width)) for row in file.rows)
    stats = file.stats[:width]
    return replace(file, rows=rows, stats=stats + (None,) * (width - len(stats)))
