"""Changes of rows: files removed, rewritten or marked; MERGE.

MERGE: ClassicMergeExecutor.scala and, where all clauses insert, InsertOnlyMergeExecutor.scala.

How rows go: whole files removed, files rewritten without them, or marked in deletion vectors.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.delta.snapshot import DELTA_CAST
from isolitmus.model.delta.data_file import TableRow
from isolitmus.model.execution import Effect, RowRead, RowWrite, births
from isolitmus.model.sql.conditions import holds, may_hold
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from isolitmus.checker.delta.read_set import Access
    from isolitmus.checker.delta.snapshot import RowTest, Snapshot
    from isolitmus.model.delta.data_file import File
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql import statement as st
    from isolitmus.model.sql.values import Row

__all__ = ["Removal", "add_deletion_vectors", "merge_effect", "plan_removal"]


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


def plan_removal(
    snapshot: Snapshot, schema: Schema, access: Access, verb: str = "delete"
) -> Removal:
    """Partition predicates alone remove whole files; else files with matching rows lose them, by
    rewriting or, in a table with deletion vectors, by marking (DeleteCommand.scala). ``verb`` is
    the command that does so, ``access`` its read of the table.
    """
    read = snapshot.read(access)
    filters = access.filters(schema)
    candidates = filters.files(schema, snapshot.files(schema.name), skipping=snapshot.skipping)
    if not filters.data:
        return Removal(read, candidates, (), ())
    gone = {row.id for row in read.matched}
    touched = tuple(f for f in candidates if any(row.id in gone for row in f.rows))
    if snapshot.vectors(schema, verb):
        # DELETE then looks for rows even where no file is left (DeleteCommand.scala,
        # findTouchedFiles)
        scanned = bool(candidates) or verb == "delete"
        return Removal(read, touched, add_deletion_vectors(touched, gone), (), scanned)
    kept = tuple(row for file in touched for row in file.rows if row.id not in gone)
    return Removal(read, touched, (), kept, bool(candidates))


def add_deletion_vectors(touched: Iterable[File], gone: Container[str]) -> tuple[File, ...]:
    """The touched files with longer deletion vectors; one whose rows are all gone is not added
    again (DMLWithDeletionVectorsHelper.scala, processUnmodifiedData).
    """
    return tuple(file for file in (f.marked(gone) for f in touched) if file.rows)


def merge_effect(snapshot: Snapshot, statement: st.Merge) -> Effect:
    """The effect of a MERGE on a snapshot.

    At row level it reads the target rows that ON pairs with some source row; if no clause inserts,
    only those for which some clause's condition holds; and those paired with none for which a
    clause WHEN NOT MATCHED BY SOURCE has a condition that holds. A file is rewritten if it holds a
    row that was read, and with such a clause always; with deletion vectors, changed rows are
    marked.
    """
    schema = snapshot.schemas[statement.target]
    found = snapshot.accesses(statement)
    statement = _bound(snapshot.planned(), statement)
    source = snapshot.query(statement.source)
    sources = [row for branch in source.branches for row in branch]

    @cache
    def pairs(target: Row) -> list[Row]:
        return [s for s in sources if holds(statement.on, (target, s))]

    @cache
    def concerned(target: Row) -> bool:
        return _concerned(statement, target, pairs(target), holds)

    @cache
    def others(target: Row) -> bool:
        paired = [s for s in sources if may_hold(statement.on, (target, s))]
        return _concerned(statement, target, paired, may_hold)

    words = f"{schema.name} ON {statement.on}"
    words += " OR BY NO SOURCE" if statement.by_source else ""
    read = RowRead(schema.name, words, others, snapshot.matching(schema.name, concerned))
    live = snapshot.files(schema.name)
    touched: tuple[File, ...] = ()
    if statement.matched or statement.by_source:
        _refuse_ambiguity(statement, found[0].filters(schema).files(schema, live), pairs)
        every = bool(statement.by_source)
        touched = tuple(f for f in live if every or any(concerned(r.values) for r in f.rows))
    vectors = snapshot.vectors(schema, "merge")
    kept: list[TableRow] = []
    writes: list[RowWrite] = []
    for row in (row for file in touched for row in file.rows):
        after = _changed(snapshot, schema, statement, row, pairs(row.values))
        if after is not None and (after is not row or not vectors):
            kept.append(after)
        if after is not row:
            values = None if after is None else after.values
            writes.append(RowWrite(schema.name, row.id, row.values, values))
    removes = touched
    again: tuple[File, ...] = ()
    if vectors:
        gone = {write.id for write in writes}
        removes = tuple(f for f in touched if any(row.id in gone for row in f.rows))
        again = add_deletion_vectors(removes, gone)
    targets = [row.values for file in live for row in file.rows]
    new = (
        [s for s in branch if not any(holds(statement.on, (t, s)) for t in targets)]
        for branch in source.branches
    )
    fresh = ([v for s in rows if (v := _not_matched(statement, s)) is not None] for rows in new)
    inserts = snapshot.inserted(schema, fresh, DELTA_CAST)
    inserted = [row for branch in inserts for row in branch]
    writes += births(schema.name, inserted)
    # without rewrites nothing shuffles the source but, in a partitioned table, the repartitioning
    # before the write: else each branch of its UNION ALL writes files of its own
    together = bool(touched) or bool(schema.partition_indexes)
    adds = (*again, *snapshot.written(schema, [[*kept, *inserted]] if together else inserts))
    footprint = snapshot.footprint(schema, found, adds, removes, scanned=True)
    looked_up = [access for access in found if access.role == "value" and writes]
    reads = (read, *source.reads, *map(snapshot.read, looked_up))
    return Effect(reads, tuple(writes), adds, footprint.removes, footprint, "MERGE")


def _concerned(statement: st.Merge, target: Row, paired: list[Row], test: RowTest) -> bool:
    """Whether a row of the target, with these of the source, is one that the statement is about."""
    if not paired:
        return any(test(c.condition, (target,)) for c in statement.by_source)
    return bool(statement.not_matched) or any(
        test(c.condition, (target, s)) for c in statement.matched for s in paired
    )


def _bound(snapshot: Snapshot, statement: st.Merge) -> st.Merge:
    """The statement with what the subqueries in its values range over."""

    def sets(clause: st.MatchedClause) -> st.MatchedClause:
        values = snapshot.bound(value for _, value in clause.sets)
        indexes = (index for index, _ in clause.sets)
        return replace(clause, sets=tuple(zip(indexes, values, strict=True)))

    def values(clause: st.NotMatchedClause) -> st.NotMatchedClause:
        return replace(clause, values=snapshot.bound(clause.values))

    return replace(
        statement,
        matched=tuple(map(sets, statement.matched)),
        by_source=tuple(map(sets, statement.by_source)),
        not_matched=tuple(map(values, statement.not_matched)),
    )


def _refuse_ambiguity(
    statement: st.Merge, read: tuple[File, ...], pairs: Callable[[Row], list[Row]]
) -> None:
    """Two source rows for one target row in the files read are an error, whatever the clauses'
    conditions, but for one unconditional DELETE (findTouchedFiles).
    """
    one_delete = [(c.action, c.condition) for c in statement.matched] == [("delete", None)]
    if not one_delete and any(len(pairs(row.values)) > 1 for f in read for row in f.rows):
        raise EvaluationError(
            "DeltaUnsupportedOperationException", "several source rows match one target row"
        )


def _changed(
    snapshot: Snapshot, schema: Schema, statement: st.Merge, row: TableRow, sources: list[Row]
) -> TableRow | None:
    """A row of a touched file after the first clause that holds: itself, rewritten, or None where
    it was deleted.
    """
    clauses = statement.matched if sources else statement.by_source
    pairs: list[tuple[Row, ...]] = [(row.values, source) for source in sources]
    for rows in pairs or [(row.values,)]:
        for clause in clauses:
            if not holds(clause.condition, rows):
                continue
            if clause.action == "delete":
                return None
            after = snapshot.assigned(schema, clause.sets, row.values, rows)
            return TableRow(row.id, snapshot.writer, after)
    return row


def _not_matched(statement: st.Merge, source: Row) -> Row | None:
    """The row that the first clause inserts for a source row; None if no clause holds."""
    for clause in statement.not_matched:
        if holds(clause.condition, ((), source)):
            return tuple(evaluate(value, ((), source)) for value in clause.values)
    return None
