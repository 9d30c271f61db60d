"""What a statement does on a snapshot: rows read and written, files added and removed, footprint.

Command by command as Delta 4.4.0 on Spark does it (delta.md 4; commands/*.scala), in the default
layout: one file per partition and write; a rewrite merges the files that it touched into one per
partition. A statement's effect depends on nothing but the snapshot and the name of its transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.running.cloning import cloned
from isolitmus.checker.running.converting import converted
from isolitmus.checker.running.creating import created
from isolitmus.checker.running.definitions import current, define, rebased, reread, restore
from isolitmus.checker.running.growing import grown
from isolitmus.checker.running.identity import generated, marked
from isolitmus.checker.running.merging import merge
from isolitmus.checker.running.raw import raw_effect
from isolitmus.checker.running.removing import removal
from isolitmus.checker.running.replacing import replaced
from isolitmus.checker.running.skipping import Filters, command_filters, in_partitions, like_some
from isolitmus.checker.running.snapshot import INSIDE, Outside, Snapshot, assigned
from isolitmus.checker.running.streaming import micro_batch
from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.condition import UndeterminedError, holds
from isolitmus.model.definition import Clone, Convert, Create, Definition, Late, Replace, Restore
from isolitmus.model.errors import LitmusError
from isolitmus.model.execution import Effect, RowWrite, births
from isolitmus.model.footprint import Footprint, Marks
from isolitmus.model.header import CLUSTERING
from isolitmus.model.raw import Raw
from isolitmus.model.table import File, TableRow
from isolitmus.model.values import sort_rows
from isolitmus.specs.confs import VACUUM_LOGGING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.execution import Database
    from isolitmus.model.schema import Schema
    from isolitmus.model.values import Row, Rows

__all__ = ["effect"]


def effect(
    statement: st.Statement,
    database: Database,
    writer: str,
    schemas: Mapping[str, Schema],
    outside: Outside = INSIDE,
) -> Effect:
    """The effect of the statement when the transaction ``writer`` runs it on the snapshot; some of what
    it reads may be ``outside`` the transaction.

    A failure at run time (overflow, a MERGE that matches a row twice) is an effect with ``error``.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.model.table import TableState
    >>> from isolitmus.specs.sql import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> insert = read_statement("INSERT INTO t VALUES (1), (2)", {"t": t})
    >>> done = effect(insert, {"t": TableState()}, "a", {"t": t})
    >>> done.footprint.blind, [row.values for row in done.adds[0].rows]
    (True, [(1,), (2,)])
    """
    altered = current(database, schemas)
    snapshot = Snapshot(database, writer, altered, outside)
    try:
        if isinstance(statement, Restore):
            return restore(snapshot, schemas, statement)
        if isinstance(statement, Replace) and statement.target in database:
            return replaced(snapshot, schemas, statement)
        if isinstance(statement, Create | Replace):
            return created(snapshot, schemas, statement)
        if isinstance(statement, Convert):
            return converted(snapshot, schemas, statement)
        if isinstance(statement, Clone):
            return cloned(snapshot, schemas, statement)
        if isinstance(statement, st.Insert) and statement.grows is not None:
            return grown(snapshot, schemas, statement, _insert)
        if altered is schemas and not isinstance(statement, Late | Definition):
            return _effect(snapshot, statement)
        return rebased(snapshot, _effect(snapshot, reread(statement, altered)))
    except ex.EvaluationError as error:
        return Effect(error=error)
    except UndeterminedError as error:
        raise LitmusError(f"'{statement.sql}': {error}") from None


def _effect(snapshot: Snapshot, statement: st.Statement) -> Effect:
    match statement:
        case st.Read():
            return _read(snapshot, statement)
        case st.Insert():
            return _insert(snapshot, statement)
        case st.Delete():
            return _delete(snapshot, statement)
        case st.Update():
            return _update(snapshot, statement)
        case st.Merge():
            return merge(snapshot, statement)
        case st.Truncate():
            return _truncate(snapshot, statement)
        case st.Optimize():
            return _optimize(snapshot, statement)
        case st.Vacuum():
            return _vacuum(snapshot, statement)
        case Raw():
            return raw_effect(snapshot, statement)
        case Definition():
            return define(snapshot, statement)
        case Late() | Restore() | Replace() | Create() | Clone() | Convert():
            raise AssertionError(f"'{statement.sql}' is dealt with before")


def _read(snapshot: Snapshot, statement: st.Read) -> Effect:
    result = snapshot.query(statement.query)
    rows: Rows = sort_rows(row for branch in result.branches for row in branch)
    return Effect(reads=result.reads, rows=rows)


def _insert(snapshot: Snapshot, statement: st.Insert) -> Effect:
    """Append, or replace everything, the rows of a condition, or the partitions written to
    (WriteIntoDelta.scala).
    """
    schema = snapshot.schemas[statement.target]
    if statement.stream:  # planned before its transaction starts, which sees no scan
        result = snapshot.planned().query(statement.query)
    else:
        result = snapshot.query(statement.query, statement.target)
    branches = snapshot.inserted(schema, generated(snapshot, statement, result.branches))
    new = [row for branch in branches for row in branch]
    writes = births(schema.name, new)
    scans, reads, adds = result.scans, result.reads, snapshot.written(schema, branches)
    removes: tuple[File, ...] = ()
    scanned = result.scanned
    if statement.overwrite:
        dynamic = statement.dynamic and bool(schema.partition_indexes)
        where, filters = statement.where, None
        if dynamic:
            where = in_partitions(schema, (file.partition for file in adds))
        if statement.using:
            where = like_some(schema, statement.using, (row.values for row in new))
            filters = Filters((), (where,))
        gone = removal(snapshot, schema, where, filters=filters)
        if statement.where is not None and not all(holds(where, (row.values,)) for row in new):
            raise ex.EvaluationError("DeltaInvariantViolationException", f"not {where}")
        reads, writes = (gone.read, *reads), (*gone.writes, *writes)
        adds = (*gone.marked, *snapshot.written(schema, [gone.kept, *branches]))
        removes = gone.removes
        # the partitions that are replaced are found without recording a file as read
        scans = scans if dynamic else (gone.filters, *scans)
        scanned |= gone.scanned
    footprint = snapshot.footprint(schema, scans, adds, removes, scanned=scanned)
    if statement.overwrite and dynamic:
        footprint = replace(footprint, predicates=(gone.filters.partition, *footprint.predicates))
    if not statement.data_change:
        footprint = replace(footprint, data_change=False)
    if statement.using and schema.partition_indexes:
        partitions = set(statement.using) <= set(schema.partition_indexes)
        footprint = replace(footprint, marks=Marks(unbound=partitions))
    done = Effect(reads, writes, adds, footprint.removes, footprint, "WRITE")
    if statement.stream:
        return micro_batch(statement, done, footprint)
    return marked(snapshot, statement, len(new), done)


def _delete(snapshot: Snapshot, statement: st.Delete) -> Effect:
    schema = snapshot.schemas[statement.target]
    gone = removal(snapshot, schema, statement.where)
    adds = (*gone.marked, *snapshot.written(schema, [gone.kept]))
    footprint = snapshot.footprint(schema, [gone.filters], adds, gone.removes, scanned=gone.scanned)
    return Effect((gone.read,), gone.writes, adds, footprint.removes, footprint, "DELETE")


def _update(snapshot: Snapshot, statement: st.Update) -> Effect:
    """Touched files are rewritten together, rows that move among them; with deletion vectors only
    the new rows are written, unless whole partitions change (UpdateCommand.scala).
    """
    schema = snapshot.schemas[statement.target]
    gone = removal(snapshot, schema, statement.where, "update")
    planned = snapshot.planned()
    sets = tuple((i, planned.bound((value,))[0]) for i, value in statement.sets)
    # the values of subqueries are read, but nobody records it (delta.md 8, H1)
    looked = [planned.lookup(s) for s in ex.subqueries(*(v for _, v in sets)) if gone.read.matched]
    vectors = snapshot.vectors(schema, "update")
    after = {row.id: assigned(schema, sets, row.values, (row.values,)) for row in gone.read.matched}
    rewritten = [
        TableRow(row.id, snapshot.writer, after[row.id]) if row.id in after else row
        for file in gone.removes
        for row in file.rows
        if row.id in after or not vectors
    ]
    writes = tuple(RowWrite(schema.name, r.id, r.values, after[r.id]) for r in gone.read.matched)
    adds = (*gone.marked, *snapshot.written(schema, [rewritten]))
    scanned = gone.scanned or bool(gone.removes)
    footprint = snapshot.footprint(schema, [gone.filters], adds, gone.removes, scanned=scanned)
    reads = (gone.read, *looked)
    return Effect(reads, writes, adds, footprint.removes, footprint, "UPDATE")


def _truncate(snapshot: Snapshot, statement: st.Truncate) -> Effect:
    """A DELETE of all rows; of an empty table it does not even try to commit
    (TruncateDeltaTableCommand.scala).
    """
    schema = snapshot.schemas[statement.target]
    gone = removal(snapshot, schema, None)
    footprint = snapshot.footprint(schema, [gone.filters], (), gone.removes)
    footprint = replace(footprint, changes_data=bool(gone.removes))
    return Effect((gone.read,), gone.writes, (), footprint.removes, footprint, "TRUNCATE")


def _optimize(snapshot: Snapshot, statement: st.Optimize) -> Effect:
    """The chosen files of each partition become one; no row changes (OptimizeTableCommand.scala).
    It records its predicate and just the files it rewrites.
    """
    schema = snapshot.schemas[statement.target]
    if CLUSTERING in snapshot.header(schema.name).domains and statement.rewrite != "vector":
        raise LitmusError(
            f"'{statement.sql}' is on a table that is clustered by then: which files it rewrites is"
            " not modelled"
        )
    filters = command_filters(schema, statement.where)
    by_partition: dict[Row, list[File]] = {}
    for file in filters.files(schema, snapshot.files(schema.name)):
        if statement.rewrite != "vector" or file.dead:
            by_partition.setdefault(file.partition, []).append(file)
    least = 2 if statement.rewrite == "several" else 1
    removed = [f for files in by_partition.values() if len(files) >= least for f in files]
    adds = snapshot.written(schema, [[row for file in removed for row in file.rows]])
    footprint = Footprint(
        schema,
        predicates=(filters.partition,),
        files=frozenset(f.path for f in removed),
        adds=tuple(f.partition for f in adds),
        removes=frozenset(f.path for f in removed),
        data_change=False,
        changes_data=False,
        orders=statement.rewrite == "all",
    )
    operation = "REORG" if statement.rewrite == "vector" else "OPTIMIZE"
    return Effect((), (), adds, footprint.removes, footprint, operation)


def _vacuum(snapshot: Snapshot, statement: st.Vacuum) -> Effect:
    """Two empty commits, recorded all the same, unless the log is not to have them
    (VacuumCommand.scala, logVacuumStart and logVacuumEnd).
    """
    schema = snapshot.schemas[statement.target]
    snapshot.files(schema.name)  # the table is there
    footprint = Footprint(schema, data_change=False, changes_data=False)
    if snapshot.outside.confs.get(VACUUM_LOGGING, "").lower() == "false":
        return Effect(footprint=footprint, operation="VACUUM")
    footprint = replace(footprint, marks=Marks(always=True))
    return Effect(footprint=footprint, operation="VACUUM START", closing="VACUUM END")
