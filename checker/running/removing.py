"""How rows go: whole files removed, files rewritten without them, or marked in deletion vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.running.skipping import command_filters
from isolitmus.model.execution import RowWrite

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from isolitmus.checker.running.skipping import Filters
    from isolitmus.checker.running.snapshot import Snapshot
    from isolitmus.model import expression as ex
    from isolitmus.model.execution import RowRead
    from isolitmus.model.schema import Schema
    from isolitmus.model.table import File, TableRow

__all__ = ["Removal", "marked", "removal"]


class Removal(NamedTuple):
    """A DELETE as its actions: its read and filters, the files that it removes, those of them that it
    adds again with a deletion vector, and the rows of the others that have to be written again;
    ``scanned``: it looked at rows to know which.
    """

    read: RowRead
    filters: Filters
    removes: tuple[File, ...]
    marked: tuple[File, ...]
    kept: tuple[TableRow, ...]
    scanned: bool = False

    @property
    def writes(self) -> tuple[RowWrite, ...]:
        """The rows that go."""
        table = self.read.table
        return tuple(RowWrite(table, row.id, row.values, None) for row in self.read.matched)


def removal(
    snapshot: Snapshot,
    schema: Schema,
    where: ex.Expr | None,
    verb: str = "delete",
    filters: Filters | None = None,
) -> Removal:
    """Partition predicates alone remove whole files; else files with matching rows lose them, by
    rewriting or, in a table with deletion vectors, by marking (DeleteCommand.scala). ``verb`` is the
    command that does so; ``filters`` are what the condition comes to, unless it is as in a DELETE.
    """
    read = snapshot.select(schema.name, where)
    filters = command_filters(schema, where) if filters is None else filters
    candidates = filters.files(schema, snapshot.files(schema.name), skipping=snapshot.skipping)
    if not filters.data:
        return Removal(read, filters, candidates, (), ())
    gone = {row.id for row in read.matched}
    touched = tuple(f for f in candidates if any(row.id in gone for row in f.rows))
    if snapshot.vectors(schema, verb):
        # DELETE then looks for rows even where no file is left (DeleteCommand.scala, findTouchedFiles)
        scanned = bool(candidates) or verb == "delete"
        return Removal(read, filters, touched, marked(touched, gone), (), scanned)
    kept = tuple(row for file in touched for row in file.rows if row.id not in gone)
    return Removal(read, filters, touched, (), kept, bool(candidates))


def marked(touched: Iterable[File], gone: Container[str]) -> tuple[File, ...]:
    """The touched files with longer deletion vectors; one whose rows are all gone is not added again
    (DMLWithDeletionVectorsHelper.scala, processUnmodifiedData).
    """
    return tuple(file for file in (f.marked(gone) for f in touched) if file.rows)
