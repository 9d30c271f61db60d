"""Changes of rows by DELETE, UPDATE and MERGE.

DELETE removes whole files, rewrites files without the rows, or marks the rows in deletion vectors.
MERGE follows ClassicMergeExecutor.scala and, if all clauses insert, InsertOnlyMergeExecutor.scala.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.delta.snapshot import DELTA_CAST
from isolitmus.model.execution import Effect, RowRead, RowWrite, births
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.conditions import columns_in, holds, may_hold
from isolitmus.model.sql.data_file import TableRow
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from isolitmus.checker.delta.read_set import Access
    from isolitmus.checker.delta.snapshot import RowTest, Snapshot
    from isolitmus.model.sql import statement as st
    from isolitmus.model.sql.data_file import File
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.values import Row


class Removal(NamedTuple):
    """Removal of rows, as actions on files."""

    read: RowRead
    """Read of the removed rows."""
    removes: tuple[File, ...]
    """Removed files."""
    marked: tuple[File, ...]
    """Removed files that are added again with a deletion vector."""
    kept: tuple[TableRow, ...]
    """Remaining rows of the other files, which have to be written again."""
    scanned: bool = False
    """True if rows were read to find the files."""

    @property
    def writes(self) -> tuple[RowWrite, ...]:
        """Deletions of the rows."""
        table = self.read.table
        return tuple(RowWrite(table, row.id, row.values, None) for row in self.read.matched)


def plan_removal(
    snapshot: Snapshot, schema: Schema, access: Access, verb: str = "delete"
) -> Removal:
    """Return the removal of the rows that an access reads.

    With a predicate on partitions only, whole files are removed. Otherwise files with matching rows
    are rewritten or, in a table with deletion vectors, marked (DeleteCommand.scala).

    Parameters
    ----------
    snapshot : Snapshot
        Tables that the statement reads.
    schema : Schema
        The target.
    access : Access
        Read of the target.
    verb : str
        Command, as in the confs for deletion vectors.
    """
    read = snapshot.read(access)
    filters = access.filters(schema)
    candidates = filters.files(schema, snapshot.files(schema.name), skipping=snapshot.skipping)
    if not filters.data:
        return Removal(read, candidates, (), ())
    gone = {row.id for row in read.matched}
    touched = tuple(f for f in candidates if any(row.id in gone for row in f.rows))
    if snapshot.vectors(schema, verb):
        # DELETE then scans for rows even if no candidate file is left (DeleteCommand.scala,
        # findTouchedFiles)
        scanned = bool(candidates) or verb == "delete"
        again = add_deletion_vectors(touched, gone, snapshot.writer)
        return Removal(read, touched, again, (), scanned)
    kept = tuple(row for file in touched for row in file.rows if row.id not in gone)
    return Removal(read, touched, (), kept, bool(candidates))


def add_deletion_vectors(
    touched: Iterable[File], gone: Container[str], writer: str
) -> tuple[File, ...]:
    """Return the touched files with extended deletion vectors.

    A file without remaining rows is not added again (DMLWithDeletionVectorsHelper.scala,
    processUnmodifiedData).
    """
    return tuple(file for file in (f.marked(gone, writer) for f in touched) if file.rows)


def merge_effect(snapshot: Snapshot, statement: st.Merge) -> Effect:
    """Return the effect of a MERGE on a snapshot.

    At row level it reads the target rows that ON pairs with some source row; if no clause inserts,
    only those for which some clause's condition holds. It also reads unpaired rows for which the
    condition of a clause WHEN NOT MATCHED BY SOURCE holds. A file is rewritten if it holds a row
    that was read, and with such a clause always; with deletion vectors, changed rows are marked.
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
        again = add_deletion_vectors(removes, gone, snapshot.writer)
    targets = [row.values for file in live for row in file.rows]
    new = (
        [s for s in branch if not any(holds(statement.on, (t, s)) for t in targets)]
        for branch in source.branches
    )
    fresh = ([v for s in rows if (v := _not_matched(statement, s)) is not None] for rows in new)
    inserts = snapshot.inserted(schema, fresh, DELTA_CAST)
    inserted = [row for branch in inserts for row in branch]
    writes += births(schema.name, inserted)
    # Rewrites shuffle the source, and so does the repartitioning before a write to a partitioned
    # table. Without either, each branch of the source's UNION ALL writes files of its own.
    together = bool(touched) or bool(schema.partition_indexes)
    adds = (*again, *snapshot.written(schema, [[*kept, *inserted]] if together else inserts))
    footprint = snapshot.footprint(schema, found, adds, removes, scanned=True)
    footprint = replace(footprint, merge_keys=_merge_keys(statement.on, sources))
    looked_up = [access for access in found if access.role == "value" and writes]
    reads = (read, *source.reads, *map(snapshot.read, looked_up))
    return Effect(reads, tuple(writes), adds, footprint.removes, footprint, "MERGE")


def _merge_keys(on: ex.Expr, sources: list[Row]) -> dict[tuple[int, ...], frozenset[Row]]:
    """Return the target columns that ON equates with the source, and the source's values of them.

    A source row with NULL in one of these has no key. Other conditions of ON are ignored.
    """
    equated: dict[int, ex.Expr] = {}
    for part in ex.conjuncts(on):
        if isinstance(part, ex.Compare) and part.op == "=":
            for column, value in ((part.left, part.right), (part.right, part.left)):
                sides = {inner.side for inner in columns_in(value)}
                if isinstance(column, ex.ColumnRef) and column.side == 0 and sides == {1}:
                    equated.setdefault(column.index, value)
    columns = tuple(sorted(equated))
    keys = (tuple(evaluate(equated[c], ((), source)) for c in columns) for source in sources)
    return {columns: frozenset(key for key in keys if None not in key)} if columns else {}


def _concerned(statement: st.Merge, target: Row, paired: list[Row], test: RowTest) -> bool:
    """Return whether the statement concerns a target row that is paired with these source rows."""
    if not paired:
        return any(test(c.condition, (target,)) for c in statement.by_source)
    return bool(statement.not_matched) or any(
        test(c.condition, (target, s)) for c in statement.matched for s in paired
    )


def _bound(snapshot: Snapshot, statement: st.Merge) -> st.Merge:
    """Return the statement with the tables of subqueries in its values bound to rows."""

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
    """Raise EvaluationError if several source rows match one target row in the files read.

    The clauses' conditions do not matter, but a single unconditional DELETE is allowed
    (findTouchedFiles).
    """
    one_delete = [(c.action, c.condition) for c in statement.matched] == [("delete", None)]
    if not one_delete and any(len(pairs(row.values)) > 1 for f in read for row in f.rows):
        raise EvaluationError(
            "DeltaUnsupportedOperationException", "several source rows match one target row"
        )


def _changed(
    snapshot: Snapshot, schema: Schema, statement: st.Merge, row: TableRow, sources: list[Row]
) -> TableRow | None:
    """Return a row of a touched file after the first clause that holds.

    The result is the row itself, a rewritten row, or None if it was deleted.
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
    """Return the row that the first clause inserts for a source row; None if no clause holds."""
    for clause in statement.not_matched:
        if holds(clause.condition, ((), source)):
            return tuple(evaluate(value, ((), source)) for value in clause.values)
    return None
