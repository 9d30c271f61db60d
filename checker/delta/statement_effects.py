"""Effects of statements on a snapshot: rows read and written, files added and removed, footprint.

Commands behave as in Delta 4.4.0 on Spark (docs/statements.md; commands/*.scala), in the default
layout: one file per partition and write; a rewrite merges the files that it touched into one per
partition. The effect of a statement depends only on the snapshot and the name of its transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.data_skipping import equals_some, in_some_partition
from isolitmus.checker.delta.identity_columns import advance_high_water_marks, generate_values
from isolitmus.checker.delta.metadata_changes import (
    alter_table,
    analyse_again,
    current_schemas,
    merge_schema,
    rebase_effect,
    restore_table,
)
from isolitmus.checker.delta.planned_conditions import (
    fold_constants,
    refuse_opaque,
    refuse_random,
    refuse_subquery,
    replace_opaque_parts,
)
from isolitmus.checker.delta.raw_transaction import raw_effect
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.row_changes import merge_effect, plan_removal
from isolitmus.checker.delta.row_tracking import refuse_earlier_commits
from isolitmus.checker.delta.snapshot import DELTA_CAST, INSIDE, SPARK_CAST, OutsideReads, Snapshot
from isolitmus.checker.delta.statement_kinds import statement_kinds
from isolitmus.checker.delta.table_creation import (
    clone_effect,
    convert_effect,
    create_effect,
    first_write_effect,
    replace_effect,
)
from isolitmus.model.delta.footprint import Footprint, Settings
from isolitmus.model.delta.header import CLUSTERING
from isolitmus.model.errors import LitmusError, UndeterminedError, brief
from isolitmus.model.execution import Effect, RowWrite, births
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import holds
from isolitmus.model.sql.data_file import File, TableRow
from isolitmus.model.sql.nondeterminism import OpenQuestion
from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.statement import Clone, Convert, Create, Definition, Replace, Restore
from isolitmus.model.sql.types import EvaluationError
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.sql.configuration import VACUUM_LOGGING
from isolitmus.specs.sql.unsupported_pairs import refuse_together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import NoReturn

    from isolitmus.checker.delta.read_set import Access
    from isolitmus.model.execution import Database, RowRead
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.values import Row, Rows

STREAMING = "STREAMING UPDATE"
"""Operation name of a micro-batch of the streaming sink in the log."""


def statement_effect(
    statement: st.Statement,
    database: Database,
    writer: str,
    schemas: Mapping[str, Schema],
    outside: OutsideReads = INSIDE,
) -> Effect:
    """Return the effect of a statement on a snapshot.

    A failure at run time (overflow, a MERGE that matches a row twice) is an effect with ``error``.

    Parameters
    ----------
    statement : Statement
        The statement.
    database : Database
        Tables of the snapshot.
    writer : str
        Name of its transaction.
    schemas : mapping of str to Schema
        Declared tables.
    outside : OutsideReads
        Reads outside the transaction, and settings.

    Raises
    ------
    UndeterminedError
        If the model cannot compute the effect.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.model.delta.table import TableState
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> insert = read_statement("INSERT INTO t VALUES (1), (2)", {"t": t})
    >>> done = statement_effect(insert, {"t": TableState()}, "a", {"t": t})
    >>> done.footprint.blind, [row.values for row in done.adds[0].rows]
    (True, [(1,), (2,)])
    """
    altered = current_schemas(database, schemas)
    snapshot = Snapshot(database, writer, altered, outside)
    try:
        if not outside.documented and getattr(statement, "target", None) in database:
            refuse_random(statement)
        refuse_opaque(statement)
        return _kept(_of_kind(statement, _any_effect(snapshot, schemas, statement)))
    except EvaluationError as error:
        return Effect(error=error)
    except OpenQuestion:
        raise
    except UndeterminedError as error:
        raise UndeterminedError(f"'{brief(statement.sql, 120)}': {error}") from None


def _any_effect(
    snapshot: Snapshot, schemas: Mapping[str, Schema], statement: st.Statement
) -> Effect:
    """Return the effect of a statement; raise EvaluationError if it fails."""
    altered, database = snapshot.schemas, snapshot.database
    if isinstance(statement, Restore):
        return restore_table(snapshot, schemas, statement)
    if isinstance(statement, Replace) and statement.target in database:
        _refuse_removal(altered[statement.target])
        return replace_effect(snapshot, schemas, statement)
    if isinstance(statement, Create | Replace):
        return create_effect(snapshot, schemas, statement)
    if (
        isinstance(statement, st.Insert)
        and statement.options.makes
        and statement.target not in database
    ):
        return first_write_effect(snapshot, schemas, statement)
    if isinstance(statement, Convert):
        return convert_effect(snapshot, schemas, statement)
    if isinstance(statement, Clone):
        return clone_effect(snapshot, schemas, statement)
    if isinstance(statement, st.Insert) and statement.options.grows is not None:
        return merge_schema(snapshot, schemas, statement, _effect)
    if isinstance(statement, Definition) and not snapshot.outside.documented:
        refuse_earlier_commits(snapshot, statement)
    statement = replace_opaque_parts(analyse_again(statement, altered), snapshot.outside.choices)
    if altered is schemas and not isinstance(statement, Definition):
        return _effect(snapshot, statement)
    return rebase_effect(snapshot, _effect(snapshot, statement))


def _refuse_removal(schema: Schema) -> None:
    """Raise EvaluationError if the table is append-only (DeltaLog.scala, assertRemovable).

    Statements that remove rows fail so whatever they find in the table.
    """
    if schema.append_only:
        raise EvaluationError(
            "DeltaUnsupportedOperationException",
            f"{schema.name} is for appends only",
            "DELTA_CANNOT_MODIFY_APPEND_ONLY",
        )


def _of_kind(statement: st.Statement, done: Effect) -> Effect:
    """Return the effect with the statement's kinds in its footprint."""
    found = statement_kinds(statement)
    if done.footprint is None or not found:
        return done
    return replace(done, footprint=replace(done.footprint, kinds=found))


def _kept(effect: Effect) -> Effect:
    """Return the effect; EvaluationError if its commit removes rows from an append-only table.

    Source: OptimisticTransaction.scala, prepareCommit; commitLarge does not check this.
    """
    footprint = effect.footprint
    changes = footprint is not None and footprint.data_change and not footprint.settings.large
    if footprint is not None and changes and footprint.removes:
        _refuse_removal(footprint.schema)
    return effect


def _effect(snapshot: Snapshot, statement: st.Statement) -> Effect:
    """Return the effect of a statement on a snapshot, by its type."""
    target = getattr(statement, "target", None)
    if target is None or target in snapshot.database:  # otherwise analysis fails first
        if not snapshot.outside.documented:
            refuse_subquery(statement)
        schema = None if target is None else snapshot.schemas[target]
        fold_constants(statement, schema, insert=SPARK_CAST, update=DELTA_CAST)
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
            return merge_effect(snapshot, statement)
        case st.Truncate():
            return _truncate(snapshot, statement)
        case st.Optimize():
            return _optimize(snapshot, statement)
        case st.Vacuum():
            return _vacuum(snapshot, statement)
        case Raw():
            return raw_effect(snapshot, statement)
        case Definition():
            return alter_table(snapshot, statement)
        case Restore() | Replace() | Create() | Clone() | Convert() | st.Block():
            raise AssertionError(f"'{statement.sql}' is dealt with before")


def _read(snapshot: Snapshot, statement: st.Read) -> Effect:
    result = snapshot.query(statement.query)
    rows: Rows = sort_rows(row for branch in result.branches for row in branch)
    return Effect(reads=result.reads, rows=rows)


def _insert(snapshot: Snapshot, statement: st.Insert) -> Effect:
    """Return the effect of an append or an overwrite (WriteIntoDelta.scala).

    An overwrite replaces all rows, those of a condition, or those of the partitions written to.
    """
    schema = snapshot.schemas[statement.target]
    if statement.overwrite:
        _refuse_removal(schema)
    result = (snapshot.planned() if statement.options.stream else snapshot).query(statement.query)
    branches = snapshot.inserted(schema, generate_values(snapshot, statement, result.branches))
    new = [row for branch in branches for row in branch]
    writes = births(schema.name, new)
    found, reads, adds = (
        accesses(statement, snapshot.schemas),
        result.reads,
        snapshot.written(schema, branches),
    )
    removes: tuple[File, ...] = ()
    scanned = False
    if statement.overwrite:
        replaced = found[0]
        if replaced.role == "using":
            where = equals_some(schema, statement.options.using, (row.values for row in new))
            replaced = replace(replaced, where=where)
        elif replaced.tracked == "predicate":
            where = in_some_partition(schema, (file.partition for file in adds))
            replaced = replace(replaced, where=where)
        gone = plan_removal(snapshot, schema, replaced)
        if statement.where is not None and not all(
            holds(replaced.where, (row.values,)) for row in new
        ):
            raise EvaluationError("DeltaInvariantViolationException", f"not {replaced.where}")
        reads, writes = (gone.read, *reads), (*gone.writes, *writes)
        adds = (*gone.marked, *snapshot.written(schema, [gone.kept, *branches]))
        removes, scanned = gone.removes, gone.scanned
        found = (replaced, *found[1:])
    footprint = snapshot.footprint(schema, found, adds, removes, scanned=scanned)
    if not statement.options.data_change:
        footprint = replace(footprint, data_change=False)
    if statement.options.using and schema.partition_indexes:
        partitions = set(statement.options.using) <= set(schema.partition_indexes)
        footprint = replace(footprint, unbound=partitions)
    done = Effect(reads, writes, adds, footprint.removes, footprint, "WRITE")
    if statement.options.stream:
        return replace(done, operation=STREAMING)
    return advance_high_water_marks(snapshot, statement, len(new), done)


def _delete(snapshot: Snapshot, statement: st.Delete) -> Effect:
    """Return the effect of a DELETE, which rewrites files or marks their rows as deleted."""
    schema = snapshot.schemas[statement.target]
    _refuse_removal(schema)
    target, *queried = snapshot.accesses(statement)
    gone = plan_removal(snapshot, schema, _bound(snapshot, target))
    adds = (*gone.marked, *snapshot.written(schema, [gone.kept]))
    found = [target, *queried]
    footprint = snapshot.footprint(schema, found, adds, gone.removes, scanned=gone.scanned)
    reads = (gone.read, *_queried(snapshot, target, queried))
    return Effect(reads, gone.writes, adds, footprint.removes, footprint, "DELETE")


def _bound(snapshot: Snapshot, target: Access) -> Access:
    """Return the access with the tables of subqueries in its condition bound to rows."""
    if target.where is None:
        return target
    return replace(target, where=snapshot.bound((target.where,))[0])


def _queried(snapshot: Snapshot, target: Access, queried: Sequence[Access]) -> Iterator[RowRead]:
    """Yield the reads of subqueries in the condition of a DELETE or UPDATE."""
    around = [row.values for file in snapshot.files(target.table) for row in file.rows]
    return (snapshot.read(access, around) for access in queried if access.role == "subquery")


def _update(snapshot: Snapshot, statement: st.Update) -> Effect:
    """Return the effect of an UPDATE (UpdateCommand.scala).

    Touched files are rewritten together, including rows that move between partitions. With deletion
    vectors only the new rows are written, unless whole partitions change.
    """
    schema = snapshot.schemas[statement.target]
    _refuse_removal(schema)
    target, *others = snapshot.accesses(statement)
    values = [access for access in others if access.role == "value"]
    gone = plan_removal(snapshot, schema, _bound(snapshot, target), "update")
    planned = snapshot.planned()
    sets = tuple((i, planned.bound((value,))[0]) for i, value in statement.sets)
    vectors = snapshot.vectors(schema, "update")
    after = {
        row.id: snapshot.assigned(schema, sets, row.values, (row.values,))
        for row in gone.read.matched
    }
    rewritten = [
        TableRow(row.id, snapshot.writer, after[row.id]) if row.id in after else row
        for file in gone.removes
        for row in file.rows
        if row.id in after or not vectors
    ]
    writes = tuple(RowWrite(schema.name, r.id, r.values, after[r.id]) for r in gone.read.matched)
    adds = (*gone.marked, *snapshot.written(schema, [rewritten]))
    scanned = gone.scanned or bool(gone.removes)
    footprint = snapshot.footprint(schema, [target, *others], adds, gone.removes, scanned=scanned)
    reads = (gone.read, *_queried(snapshot, target, others))
    reads += tuple(snapshot.read(value) for value in values if gone.read.matched)
    return Effect(reads, writes, adds, footprint.removes, footprint, "UPDATE")


def _truncate(snapshot: Snapshot, statement: st.Truncate) -> Effect:
    """Return the effect of a DELETE of all rows.

    On an empty table TRUNCATE does not even try to commit (TruncateDeltaTableCommand.scala).
    """
    schema = snapshot.schemas[statement.target]
    _refuse_removal(schema)
    found = accesses(statement, snapshot.schemas)
    gone = plan_removal(snapshot, schema, found[0])
    footprint = snapshot.footprint(schema, found, (), gone.removes)
    footprint = replace(footprint, changes_data=bool(gone.removes))
    return Effect((gone.read,), gone.writes, (), footprint.removes, footprint, "TRUNCATE")


def _optimize(snapshot: Snapshot, statement: st.Optimize) -> Effect:
    """Return the effect of OPTIMIZE or REORG: the chosen files of each partition become one.

    No row changes (OptimizeTableCommand.scala). The predicate and only the rewritten files are
    recorded as read.
    """
    schema = snapshot.schemas[statement.target]
    if CLUSTERING in snapshot.header(schema.name).domains and statement.rewrite != "vector":
        refuse_together({"OPTIMIZE", "a clustered table"}, _refuse, f"'{statement.sql}'")
    (target,) = accesses(statement, snapshot.schemas)
    by_partition: dict[Row, list[File]] = {}
    for file in target.filters(schema).files(schema, snapshot.files(schema.name)):
        if statement.rewrite != "vector" or file.dead:
            by_partition.setdefault(file.partition, []).append(file)
    least = 2 if statement.rewrite == "several" else 1
    removed = [f for files in by_partition.values() if len(files) >= least for f in files]
    adds = snapshot.written(schema, [[row for file in removed for row in file.rows]])
    footprint = snapshot.footprint(schema, [target], adds, removed)
    footprint = replace(
        footprint,
        files=footprint.removes,
        data_change=False,
        changes_data=False,
        orders=statement.rewrite == "all",
    )
    operation = "REORG" if statement.rewrite == "vector" else "OPTIMIZE"
    return Effect((), (), adds, footprint.removes, footprint, operation)


def _vacuum(snapshot: Snapshot, statement: st.Vacuum) -> Effect:
    """Return the effect of VACUUM: two empty commits, recorded unless logging is disabled.

    Source: VacuumCommand.scala, logVacuumStart and logVacuumEnd.
    """
    schema = snapshot.schemas[statement.target]
    snapshot.files(schema.name)  # fails if the table does not exist
    footprint = Footprint(schema, data_change=False, changes_data=False)
    if snapshot.outside.confs.get(VACUUM_LOGGING, "").lower() == "false":
        return Effect(footprint=footprint, operation="VACUUM")
    footprint = replace(footprint, settings=Settings(always=True))
    return Effect(footprint=footprint, operation="VACUUM START", closing="VACUUM END")


def _refuse(problem: str) -> NoReturn:
    raise LitmusError(problem)
