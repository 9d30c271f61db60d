"""What a commit leaves of a table in which the files that it replaces are no longer what it had read.

Open-source Delta never lets such a commit through: its checks go by file. A protocol that goes by row
does, and then the rows count, not the files: the state after a commit is the state before it with the
rows deleted, rewritten and inserted that the commit deletes, rewrites and inserts (S_i = S_{i-1} + W_i).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.table import File, TableState

if TYPE_CHECKING:
    from collections.abc import Collection

    from isolitmus.model.execution import Effect
    from isolitmus.model.table import TableRow

__all__ = ["replayed"]


def replayed(state: TableState, done: Effect) -> TableState:
    """The state after a commit: as the log replays it, files removed and added, if every file that it
    removes is what it had read; else row by row.

    >>> from isolitmus.model.execution import Effect, RowWrite
    >>> from isolitmus.model.table import TableRow
    >>> a, b = TableRow("a", "", (1,)), TableRow("b", "", (2,))
    >>> state = TableState((File.of("rewritten", (), (b,)),))  # a was deleted in the meantime
    >>> delete = Effect(writes=(RowWrite("t", "b", (2,), None),), removes=frozenset({"both"}),
    ...                 adds=(File.of("rest", (), (a,)),))
    >>> replayed(state, delete).rows()
    ()
    """
    if _as_read(state, done):
        return state.replay(done.removes, done.adds)
    gone = {write.id for write in done.writes if write.before is not None}
    wrote = {write.id for write in done.writes if write.after is not None}
    kept = [_only(file, [row for row in file.rows if row.id not in gone]) for file in state.files]
    new = [_only(file, [row for row in file.rows if row.id in wrote]) for file in done.adds]
    return TableState(tuple(file for file in (*kept, *new) if file.rows))


def _as_read(state: TableState, done: Effect) -> bool:
    """Whether the files to be removed hold just the rows that the commit replaces or carries over."""
    live = [file for file in state.files if file.path in done.removes]
    if len(live) < len(done.removes):
        return False
    wrote = {write.id for write in done.writes}
    found = {row for file in live for row in file.rows if row.id not in wrote}
    return found == {row for file in done.adds for row in file.rows if row.id not in wrote}


def _only(file: File, rows: Collection[TableRow]) -> File:
    """The file with some of its rows."""
    if len(rows) == len(file.rows):
        return file
    return File.of(file.path, file.partition, tuple(rows)) if rows else replace(file, rows=())
