"""State of a table: rows with hidden identities, in files and partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.sql.values import sort_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.delta.header import Header
    from isolitmus.model.sql.data_file import File, FileKey
    from isolitmus.model.sql.values import Row, Rows


@dataclass(frozen=True, slots=True)
class TableState:
    """Live files of one table, in the order in which they were added.

    ``header`` is the header in the log; None as long as it is the declared one.
    """

    files: tuple[File, ...] = ()
    header: Header | None = None

    def rows(self) -> Rows:
        """Return the contents as a sorted bag, without dropped columns."""
        rows = (row.values for file in self.files for row in file.rows)
        columns = () if self.header is None else self.header.metadata.columns
        if all(column.name for column in columns):
            return sort_rows(rows)
        shown = [i for i, column in enumerate(columns) if column.name]
        return sort_rows(tuple(row[i] for i in shown) for row in rows)

    def replay(self, removes: frozenset[str | FileKey], adds: Iterable[File]) -> TableState:
        """Return the state after a commit, as in log replay.

        Files are removed, by path or by key, before files are added. A file that is added again
        replaces itself.
        """
        added = tuple(adds)
        gone = removes | {file.key for file in added}
        kept = (f for f in self.files if f.path not in removes and f.key not in gone)
        return replace(self, files=(*kept, *added))

    def of_nobody(self) -> TableState:
        """Return the state with rows that no transaction wrote."""
        files = (
            replace(file, rows=tuple(replace(row, writer="") for row in file.rows))
            for file in self.files
        )
        return replace(self, files=tuple(files))

    def under(self, header: Header) -> TableState:
        """Return the state with this header; rows get all its columns."""
        width = len(header.metadata.columns)
        return TableState(tuple(_widened(file, width) for file in self.files), header)


def widen_row(row: Row, width: int) -> Row:
    """Return a row with NULL in the columns that were added after it.

    Examples
    --------
    >>> widen_row((1,), 3)
    (1, None, None)
    """
    return row + (None,) * (width - len(row))


def _widened(file: File, width: int) -> File:
    """Return the file with `width` columns: added ones have no statistics, and trailing ones may be
    cut.
    """
    if len(file.stats) == width:
        return file
    rows = tuple(replace(row, values=widen_row(row.values[:width], width)) for row in file.rows)
    stats = file.stats[:width]
    return replace(file, rows=rows, stats=stats + (None,) * (width - len(stats)))
