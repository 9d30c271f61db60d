"""What a statement does on a snapshot: rows read and written, files added and removed, footprint.

Command by command as Delta 4.4.0 on Spark does it (delta.md 4; commands/*.scala), in the default
layout: one file per partition and write; a rewrite merges the files that it touched into one per
partition. A statement's effect depends on nothing but the snapshot and the name of its transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.running.merging import merge
from isolitmus.checker.running.skipping import Filters, command_filters
from isolitmus.checker.running.snapshot import Snapshot, assigned
from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.execution import Effect, RowWrite
from isolitmus.model.footprint import Footprint
from isolitmus.model.table import File, TableRow
from isolitmus.model.values import sort_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.execution import Database, RowRead
    from isolitmus.model.schema import Schema
    from isolitmus.model.values import Row, Rows

__all__ = ["effect"]


def effect(
    statement: st.Statement,
    database: Database,
    writer: str,
    schemas: Mapping[str, Schema],
    cached: frozenset[str] = frozenset(),
) -> Effect:
    """The effect of the statement when the transaction ``writer`` runs it on the snapshot, with some
    tables cached.

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
    snapshot = Snapshot(database, writer, schemas, cached)
    try:
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
            case st.Optimize():
                return _optimize(snapshot, statement)
    except ex.EvaluationError as error:
        return Effect(error=error)


def _read(snapshot: Snapshot, statement: st.Read) -> Effect:
    result = snapshot.query(statement.query)
    rows: Rows = sort_rows(row for branch in result.branches for row in branch)
    return Effect(reads=result.reads, rows=rows)


def _insert(snapshot: Snapshot, statement: st.Insert) -> Effect:
    """Append; with ``overwrite`` everything live is read and removed (WriteIntoDelta.scala)."""
    schema = snapshot.schemas[statement.target]
    result = snapshot.query(statement.query, statement.target)
    branches: list[tuple[TableRow, ...]] = []
    for rows in result.branches:
        branches.append(snapshot.inserted(schema, rows, sum(map(len, branches))))
    adds = snapshot.written(schema, branches)
    writes = tuple(
        RowWrite(schema.name, row.id, None, row.values) for branch in branches for row in branch
    )
    if not statement.overwrite:
        footprint = snapshot.footprint(schema, result.scans, adds)
        return Effect(result.reads, writes, adds, frozenset(), footprint, "WRITE")
    everything = snapshot.select(schema.name, None)
    killed = tuple(RowWrite(schema.name, r.id, r.values, None) for r in everything.matched)
    scans = (Filters((), ()), *result.scans)
    footprint = snapshot.footprint(schema, scans, adds, snapshot.files(schema.name))
    reads = (everything, *result.reads)
    return Effect(reads, killed + writes, adds, footprint.removes, footprint, "WRITE")


def _delete(snapshot: Snapshot, statement: st.Delete) -> Effect:
    """Partition predicates alone remove whole files; else touched files lose their matching
    rows and what is left of them is rewritten together (DeleteCommand.scala).
    """
    schema = snapshot.schemas[statement.target]
    read = snapshot.select(schema.name, statement.where)
    writes = tuple(RowWrite(schema.name, r.id, r.values, None) for r in read.matched)
    filters = command_filters(schema, statement.where)
    touched = _touched(snapshot, schema, filters, read)
    kept = [row for file in touched for row in file.rows if not read.matches(row.values)]
    adds = snapshot.written(schema, [kept])
    footprint = snapshot.footprint(schema, [filters], adds, touched)
    return Effect((read,), writes, adds, footprint.removes, footprint, "DELETE")


def _touched(
    snapshot: Snapshot, schema: Schema, filters: Filters, read: RowRead
) -> tuple[File, ...]:
    """The files that a DELETE or UPDATE replaces."""
    candidates = filters.files(schema, snapshot.files(schema.name))
    if not filters.data:
        return candidates
    return tuple(f for f in candidates if any(read.matches(row.values) for row in f.rows))


def _update(snapshot: Snapshot, statement: st.Update) -> Effect:
    """Touched files are rewritten together, rows that move among them (UpdateCommand.scala)."""
    schema = snapshot.schemas[statement.target]
    read = snapshot.select(schema.name, statement.where)
    filters = command_filters(schema, statement.where)
    touched = _touched(snapshot, schema, filters, read)
    rewritten: list[TableRow] = []
    writes: list[RowWrite] = []
    for row in (row for file in touched for row in file.rows):
        if read.matches(row.values):
            after = assigned(schema, statement.sets, row.values, (row.values,))
            rewritten.append(TableRow(row.id, snapshot.writer, after))
            writes.append(RowWrite(schema.name, row.id, row.values, after))
        else:
            rewritten.append(row)
    adds = snapshot.written(schema, [rewritten])
    footprint = snapshot.footprint(schema, [filters], adds, touched)
    return Effect((read,), tuple(writes), adds, footprint.removes, footprint, "UPDATE")


def _optimize(snapshot: Snapshot, statement: st.Optimize) -> Effect:
    """The files of each partition that has more than one become one; no row changes
    (OptimizeTableCommand.scala). It records its predicate and just the files it compacts.
    """
    schema = snapshot.schemas[statement.target]
    filters = command_filters(schema, statement.where)
    by_partition: dict[Row, list[File]] = {}
    for file in filters.files(schema, snapshot.files(schema.name)):
        by_partition.setdefault(file.partition, []).append(file)
    removed = [f for files in by_partition.values() if len(files) > 1 for f in files]
    adds = snapshot.written(schema, [[row for file in removed for row in file.rows]])
    footprint = Footprint(
        schema,
        predicates=(filters.partition,),
        files=frozenset(f.path for f in removed),
        adds=tuple(f.partition for f in adds),
        removes=frozenset(f.path for f in removed),
        data_change=False,
        changes_data=False,
    )
    return Effect((), (), adds, footprint.removes, footprint, "OPTIMIZE")
