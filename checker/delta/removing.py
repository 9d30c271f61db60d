"""How rows go: whole files removed, files rewritten without them, or marked in deletion vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.execution import RowWrite

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from isolitmus.checker.delta.read_set import Access
    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.delta.data_file import File, TableRow
    from isolitmus.model.execution import RowRead
    from isolitmus.model.schema import Schema

__all__ = ["Removal", "removal", "with_vectors"]


class Removal(NamedTuple):
    """A DELETE as its actions."""

    read: RowRead
    """What it has read."""
    removes: tuple[File, ...]
    """The files that it removes."""
    marked: tuple[File, ...]
    """Those of them that it adds again with a deletion vector."""
    kept: tuple[TableRow, ...]
    """The rows of the others, which have to be written again."""
    scanned: bool = False
    """It looked at rows to know which."""

    @property
    def writes(self) -> tuple[RowWrite, ...]:
        """The rows that go."""
        table = self.read.table
        return tuple(RowWrite(table, row.id, row.values, None) for row in self.read.matched)


def removal(snapshot: Snapshot, schema: Schema, access: Access, verb: str = "delete") -> Removal:
    """Partition predicates alone remove whole files; else files with matching rows lose them, by
    rewriting or, in a table with deletion vectors, by marking (DeleteCommand.scala). ``verb`` is the
    command that does so, ``access`` its read of the table.
    """
    read = snapshot.read(access)
    filters = access.filters(schema)
    candidates = filters.files(schema, snapshot.files(schema.name), skipping=snapshot.skipping)
    if not filters.data:
        return Removal(read, candidates, (), ())
    gone = {row.id for row in read.matched}
    touched = tuple(f for f in candidates if any(row.id in gone for row in f.rows))
    if snapshot.vectors(schema, verb):
        # DELETE then looks for rows even where no file is left (DeleteCommand.scala, findTouchedFiles)
        scanned = bool(candidates) or verb == "delete"
        return Removal(read, touched, with_vectors(touched, gone), (), scanned)
    kept = tuple(row for file in touched for row in file.rows if row.id not in gone)
    return Removal(read, touched, (), kept, bool(candidates))


def with_vectors(touched: Iterable[File], gone: Container[str]) -> tuple[File, ...]:
    """The touched files with longer deletion vectors; one whose rows are all gone is not added again
    (DMLWithDeletionVectorsHelper.scala, processUnmodifiedData).
    """
    return tuple(file for file in (f.marked(gone) for f in touched) if file.rows)
