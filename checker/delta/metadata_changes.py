"""Changes of a table's metadata: ALTER TABLE, RESTORE, schema evolution.

These statements change the metadata, the protocol or the clustering of a table. At row level the
definition of a table (its columns and constraints) is one item: every statement that touches the
table reads it, and one that changes it writes it (docs/semantics.md, 3.1). A comment, a property or
the clustering is no part of it, because no statement behaves differently for them.

`merge_schema` is an append that may add columns: a DataFrame write with ``mergeSchema``. Its
columns are matched with the table's by name. Columns that the table lacks are appended, with new
metadata in the same commit, which still is a blind append; columns that the write lacks are NULL
(ImplicitMetadataOperation.scala 63-160).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, reduce
from operator import itemgetter
from typing import TYPE_CHECKING

from isolitmus.checker.delta.identity_columns import sync_identity
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.row_tracking import earlier_commit, with_row_tracking_columns
from isolitmus.model.delta.footprint import FILES_ONLY, Actions, Footprint, Settings
from isolitmus.model.delta.header import (
    ASKING,
    CLUSTERED,
    CLUSTERING,
    CONSTRAINT,
    MAPPING_MODE,
    SUPPORTED,
    Header,
    are_numbered,
    features_named,
    needed_features,
)
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.delta.table import widen_row
from isolitmus.model.errors import LitmusError, SqlError
from isolitmus.model.execution import Effect, RowRead, RowWrite
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import columns_in
from isolitmus.model.sql.data_file import TableRow
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.schema import Schema
from isolitmus.model.sql.types import EvaluationError
from isolitmus.specs.sql.configuration import LEVELS, SEVERAL, UPGRADED
from isolitmus.specs.sql.statements import resolve, resolve_again, syntax_of
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.delta.header import Metadata
    from isolitmus.model.errors import SqlProblem
    from isolitmus.model.execution import Database, Event
    from isolitmus.model.sql.schema import Column

NAMES: Mapping[type[df.Change], str] = {
    df.SetProperties: "SET TBLPROPERTIES",
    df.UnsetProperties: "UNSET TBLPROPERTIES",
    df.RemoveMapping: "REMOVE COLUMN MAPPING",
    df.AddColumns: "ADD COLUMNS",
    df.DropColumns: "DROP COLUMNS",
    df.RenameColumn: "RENAME COLUMN",
    df.CommentColumn: "CHANGE COLUMN",
    df.DropNotNull: "CHANGE COLUMN",
    df.AddConstraint: "ADD CONSTRAINT",
    df.DropConstraint: "DROP CONSTRAINT",
    df.DropFeature: "DROP FEATURE",
    df.UpgradeUniform: "REORG TABLE UPGRADE UNIFORM",
    df.ClusterBy: "CLUSTER BY",
    df.SyncIdentity: "CHANGE COLUMN",
}
"""Operation name that the log records for each change (DeltaOperations.scala)."""
VECTORS = "delta.enableDeletionVectors"
UNASKED = {MAPPING_MODE: "none", "delta.checkpointPolicy": "classic"}
"""Values of properties of dropped features, where they are not false."""
REMOVABLE = ("checkConstraints", "materializePartitionColumns")
"""Features that one commit can drop if the table does not need them."""


def current_schemas(database: Database, schemas: Mapping[str, Schema]) -> Mapping[str, Schema]:
    """Return the current schemas of the tables."""
    altered = {
        name: _schema(schemas[name], state.header)
        for name, state in database.items()
        if state.header is not None
    }
    return {**schemas, **altered} if altered else schemas


def _schema(declared: Schema, header: Header) -> Schema:
    """Return a declared schema with the columns, partitioning and properties of the metadata."""
    metadata = header.metadata
    return replace(
        declared,
        columns=metadata.columns,
        partitioned_by=metadata.partitioned_by,
        properties=metadata.configuration,
    )


def alter_table(snapshot: Snapshot, statement: df.Definition) -> Effect:
    """Return the effect of a definition on a snapshot.

    ADD CONSTRAINT reads every row and every file. Removing column mapping rewrites every file,
    whatever its number of rows (RemoveColumnMappingCommand.scala).

    Raises
    ------
    EvaluationError
        If the statement fails.
    """
    schema = snapshot.schemas[statement.target]
    header = snapshot.header(statement.target)
    change = statement.change
    if isinstance(change, df.ClusterBy):
        return _clustered(schema, header, change)
    if isinstance(change, df.SyncIdentity):
        return sync_identity(snapshot, statement, change.name, NAMES[df.SyncIdentity])
    documented = snapshot.outside.documented
    if isinstance(change, df.EarlierCommit):
        if documented:  # one change of metadata, as in a serial order
            return no_change(snapshot, schema.name, NAMES[df.SetProperties])
        return earlier_commit(snapshot, statement)
    if not documented:
        _refuse_several(statement.sql, change, header)
    metadata = _changed(header.metadata, change, documented=documented)
    features = _features(header, metadata, change)
    metadata = with_row_tracking_columns(
        header, metadata, features or header.features, snapshot.writer
    )
    found = accesses(statement, snapshot.schemas)
    reads = tuple(snapshot.read(access) for access in found if access.role != "compact")
    gone = snapshot.files(schema.name) if isinstance(change, df.RemoveMapping) else ()
    whole = replace(schema, rows_per_file=None)
    adds = snapshot.written(whole, [[row for file in gone for row in file.rows]])
    if isinstance(change, df.AddConstraint):
        for row in (row for read in reads for row in read.matched):
            if evaluate(change.condition, (row.values,)) is not True:
                raise EvaluationError("DeltaAnalysisException", f"a row is not {change.text}")
    footprint = replace(
        snapshot.footprint(schema, found, adds, gone),
        data_change=False,
        changes_data=False,
        actions=Actions(metadata, features),
        settings=Settings(default_level=not metadata.levelled),
    )
    writes = definition_write(schema.name, header.metadata, metadata)
    return Effect(reads, writes, adds, footprint.removes, footprint, NAMES[type(change)])


def _clustered(schema: Schema, header: Header, change: df.ClusterBy) -> Effect:
    """Return the effect of CLUSTER BY, which sets a domain.

    A table that is not clustered gets the feature first; CLUSTER BY NONE does nothing on such a
    table (AlterTableClusterByDeltaCommand).
    """
    if schema.partitioned_by:
        raise EvaluationError("DeltaAnalysisException", f"{schema.name} is partitioned")
    actions = Actions(domains=frozenset({CLUSTERING}))
    if not header.features >= CLUSTERED:
        features = header.features | CLUSTERED
        actions = (
            Actions(header.metadata, features, actions.domains) if change.columns else FILES_ONLY
        )
    footprint = Footprint(schema, data_change=False, changes_data=False, actions=actions)
    return Effect(footprint=footprint, operation=NAMES[type(change)])


def _features(header: Header, metadata: Metadata, change: df.Change) -> frozenset[str] | None:
    """Return the features of the protocol that a definition writes; None if it writes none.

    They include features that it names, even if an old protocol has them by its number, and those
    that its properties need (OptimisticTransaction.scala, updateMetadataInternal). Dropped features
    are missing.
    """
    has = header.features
    if isinstance(change, df.UpgradeUniform):
        return (has | {"columnMapping"}) - {"deletionVectors"}
    if isinstance(change, df.DropFeature):
        if change.name not in has or change.name not in {*REMOVABLE, *SEVERAL}:
            raise EvaluationError("DeltaTableFeatureException", f"{change.name} cannot go")
        if change.name == "checkConstraints" and _constraints(metadata.configuration):
            raise EvaluationError("DeltaAnalysisException", "there are constraints")
        return has - {change.name}
    wanted = (
        features_named(change.properties) if isinstance(change, df.SetProperties) else frozenset()
    )
    again = bool(wanted) and are_numbered(has)
    lacking = (wanted | needed_features(metadata.configuration)) - has
    return has | lacking if lacking or again else None


def restore_table(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: df.Restore
) -> Effect:
    """Return the effect of RESTORE: an earlier version's files, metadata and at least features.

    No read is recorded, and commitLarge needs none (RestoreTableCommand.scala). At row level the
    statement reads every row, since the rows that it removes or restores depend on them.
    """
    name = statement.target
    earlier = snapshot.outside.inits[statement.version][name]
    if snapshot.database[name] is earlier:  # no commit since then (DeltaAnalysis.scala)
        return no_change(snapshot, name, "RESTORE")
    header = earlier.header or Header.of(declared[name])
    now = snapshot.header(name)
    read = snapshot.read(accesses(statement, snapshot.schemas)[0])
    here, there = snapshot.files(name), earlier.files
    live = {row.id: row.values for row in read.matched}
    wanted = {row.id: row.values for file in there for row in file.rows}
    width = len(header.metadata.columns)  # a column that is added or goes rewrites no row
    fitted = {id_: widen_row(values[:width], width) for id_, values in live.items()}
    writes = tuple(
        RowWrite(name, id_, live.get(id_), wanted.get(id_))
        for id_ in sorted(live.keys() | wanted.keys())
        if fitted.get(id_) != wanted.get(id_)
    )
    changed = {write.id for write in writes}
    known = {(file.path, file.marker) for file in here}
    adds = tuple(
        replace(
            file,
            rows=tuple(
                replace(row, writer=snapshot.writer) if row.id in changed else row
                for row in file.rows
            ),
        )
        for file in there
        if (file.path, file.marker) not in known
    )
    kept = {(file.path, file.marker) for file in there}
    gone = tuple(file for file in here if (file.path, file.marker) not in kept)
    removes = frozenset(file.path for file in gone)
    features = header.features | now.features
    metadata = with_row_tracking_columns(now, header.metadata, features, snapshot.writer)
    domains = (header.domains | now.domains) & {CLUSTERING}
    footprint = Footprint(
        snapshot.schemas[name],
        adds=tuple(file.partition for file in adds),
        removes=removes,
        removed=gone,
        actions=Actions(metadata, features, domains),
        settings=Settings(large=True),
        header=now,
    )
    writes += definition_write(name, now.metadata, header.metadata)
    return Effect((read,), writes, adds, removes, footprint, "RESTORE")


def no_change(snapshot: Snapshot, table: str, name: str) -> Effect:
    """Return the effect of a statement that leaves a table as it is."""
    schema, header = snapshot.schemas[table], snapshot.header(table)
    footprint = Footprint(schema, data_change=False, changes_data=False, header=header)
    return Effect(footprint=footprint, operation=name)


def definition_write(table: str, before: Metadata | None, after: Metadata) -> tuple[RowWrite, ...]:
    """Return the write of the item of a table's definition, if the definition changes.

    ``before`` is None for a table that does not exist yet.
    """
    old = None if before is None else definition_row(before)
    new, name = definition_row(after), definition_item(table)
    return () if old == new else (RowWrite(name, name, old, new),)


def read_definitions(
    database: Database, schemas: Mapping[str, Schema], names: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return the definitions of some tables, which every statement that touches them reads."""
    headers = {
        name: database[name].header or Header.of(schemas[name]) for name in names & database.keys()
    }
    return {name: definition_row(header.metadata) for name, header in headers.items()}


def definition_item(table: str) -> str:
    """Return the name of the item that stands for the definition of a table."""
    return f"the definition of {table}"


def definition_row(metadata: Metadata) -> tuple[str, ...]:
    """Return the definition of a table as a row: its columns and constraints.

    >>> from isolitmus.model.delta.header import Metadata
    >>> from isolitmus.model.sql.schema import Column
    >>> definition_row(Metadata((Column("id", "INT"),), (), {"delta.constraints.small": "id < 9"}))
    ('id INT', 'CHECK (id < 9)')
    """
    columns = (f"{c.name} {c.type}" for c in metadata.columns if c.name)
    checks = (f"CHECK ({text})" for _, text in _constraints(metadata.configuration))
    return (*columns, *checks)


def _constraints(configuration: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted((k, v) for k, v in configuration.items() if k.startswith(CONSTRAINT))


def _changed(metadata: Metadata, change: df.Change, *, documented: bool) -> Metadata:
    """Return the metadata after a change; raise EvaluationError if Delta rejects it."""
    configuration = dict(metadata.configuration)
    match change:
        case df.SetProperties(properties):
            own = (k for k in properties if k != "comment" and not k.startswith(SUPPORTED))
            rest = {key: properties[key] for key in own}
            if LEVEL_KEY in rest:
                # the catalog wraps its exception
                refuse_level(rest, "SparkException", documented=documented)
                metadata = replace(metadata, levelled=False)
            text = properties.get("comment", metadata.description)
            return replace(metadata, configuration=configuration | rest, description=text)
        case df.UnsetProperties(keys):
            # with or without IF EXISTS (AbstractDeltaCatalog.scala, RemoveProperty)
            for key in keys:
                configuration.pop(key, None)
        case df.RemoveMapping(unset):
            configuration[MAPPING_MODE] = "none"
            if unset:
                configuration.pop(MAPPING_MODE)
        case df.AddColumns(columns):
            return replace(metadata, columns=(*metadata.columns, *columns))
        case df.DropColumns(names):
            return reduce(lambda left, name: _renamed(left, name, ""), names, metadata)
        case df.RenameColumn(name, other):
            return _renamed(metadata, name, other)
        case df.CommentColumn(name, text):
            return replace(metadata, comments={**metadata.comments, name.lower(): text})
        case df.AddConstraint(name, text):
            if CONSTRAINT + name in configuration:
                raise EvaluationError("DeltaAnalysisException", f"there is a constraint {name}")
            configuration[CONSTRAINT + name] = text
        case df.DropConstraint(name, if_exists):
            if CONSTRAINT + name not in configuration and not if_exists:
                raise EvaluationError("DeltaAnalysisException", f"no constraint {name}")
            configuration.pop(CONSTRAINT + name, None)
        case df.DropFeature(name):
            asked = [key for key, (feature, _) in ASKING.items() if feature == name]
            configuration |= {
                key: UNASKED.get(key, "false") for key in asked if key in configuration
            }
        case df.UpgradeUniform(version):
            configuration |= {
                "delta.universalFormat.enabledFormats": "iceberg",
                f"delta.enableIcebergCompatV{version}": "true",
                MAPPING_MODE: "name",
            }
            if VECTORS in configuration:
                configuration[VECTORS] = "false"
        case df.ClusterBy() | df.SyncIdentity() | df.DropNotNull():
            return metadata
    return replace(metadata, configuration=configuration)


def _refuse_several(sql: str, change: df.Change, header: Header) -> None:
    """Raise LitmusError for a change that takes several commits in open-source Delta."""
    match change:
        case df.UpgradeUniform():
            why = UPGRADED
        case df.DropFeature(name) if name in SEVERAL and name in header.features:
            why = SEVERAL[name]
        case _:
            return
    raise LitmusError(
        f"'{sql}' is several commits in open-source Delta, which are not modelled: {why}. The first"
        " changes the table's metadata: concurrent transactions abort with"
        " MetadataChangedException. Under databricks-* it is one change of metadata, as its"
        " documentation says"
    )


def refuse_level(
    properties: Mapping[str, str], exception: str, *, documented: bool = False
) -> None:
    """Raise ``exception`` for an isolation level that Delta does not accept from users.

    Open-source Delta accepts only Serializable, its default (DeltaConfig.scala, ISOLATION_LEVEL).
    With ``documented``, as on Databricks, WriteSerializable is accepted too.
    """
    level = properties.get(LEVEL_KEY, LEVELS[0]).lower()
    known = [one.lower() for one in LEVELS]
    if level not in known:
        raise EvaluationError(
            "DeltaIllegalArgumentException",
            f"no isolation level {level}",
            "DELTA_INVALID_ISOLATION_LEVEL",
        )
    if level not in known[: 1 + documented]:
        raise EvaluationError(exception, f"{LEVEL_KEY} must be {LEVELS[0]}")


def _renamed(metadata: Metadata, name: str, other: str) -> Metadata:
    """Return the metadata with a column renamed in schema and partitioning; an empty name drops it.

    The table must map columns by name. A column that a constraint uses cannot be changed. A
    partition column, or the only other column, cannot be dropped.
    """
    here = Schema("t", metadata.columns, metadata.partitioned_by)
    index = here.index(name)
    held = set(here.shown) - set(here.partition_indexes)
    if not metadata.mapped or (not other and (index not in held or len(held) == 1)):
        raise EvaluationError("DeltaAnalysisException", f"{name} is not mapped, or needed")
    for _, text in _constraints(metadata.configuration):
        if any(column.index == index for column in columns_in(_condition("t", here.columns, text))):
            raise EvaluationError("DeltaAnalysisException", f"CHECK {text}")
    there = here.renamed(name, other)
    return replace(metadata, columns=there.columns, partitioned_by=there.partitioned_by)


def analyse_again(statement: st.Statement, schemas: Mapping[str, Schema]) -> st.Statement:
    """Return the statement resolved on the current tables, if they have changed.

    Raises
    ------
    EvaluationError
        With an error of Spark's analysis, if the statement is no longer valid.
    """
    if isinstance(statement, Raw) or statement.origin is None:
        return statement
    before = statement.origin.tables
    if all(_columns(before.get(name)) == _columns(now) for name, now in schemas.items()):
        return statement
    try:
        return resolve_again(statement, syntax_of(statement), schemas)
    except SqlError as error:
        # Spark raises ExtendedAnalysisException, with the plan, if it has one: for an unresolved
        # name, and for a column that exists already
        definition = isinstance(statement, df.Definition)
        planned: SqlProblem = "column there" if definition else "no column"
        plan = "Extended" if error.kind == planned else ""
        raise EvaluationError(f"{plan}AnalysisException", str(error)) from None


def _columns(schema: Schema | None) -> object:
    return None if schema is None else (schema.columns, schema.partitioned_by)


def rebase_effect(snapshot: Snapshot, effect: Effect) -> Effect:
    """Return an effect on tables that were altered.

    Constraints are checked, the footprint has the current header, and the statement's reads accept
    rows with fewer columns.
    """
    footprint = effect.footprint
    if footprint is not None:
        broken = violated_constraint(footprint.schema, effect)
        if broken is not None:
            raise EvaluationError("DeltaInvariantViolationException", f"CHECK {broken}")
        header = snapshot.header(footprint.schema.name)
        footprint = replace(footprint, header=header)
        if not header.metadata.levelled:
            settings = replace(footprint.settings, default_level=True)
            footprint = replace(footprint, settings=settings)
        effect = replace(effect, footprint=footprint)
    return replace(effect, reads=tuple(_widened(snapshot, read) for read in effect.reads))


def _widened(snapshot: Snapshot, read: RowRead) -> RowRead:
    width, matches = len(snapshot.schemas[read.table].columns), read.matches
    return replace(read, matches=lambda row: matches(widen_row(row, width)))


def add_definition_reads(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events, each with reads of items that it touches and that some event changes.

    Items are table definitions, and whatever else an event writes that is no row.
    """
    written: dict[str, list[tuple[int, RowWrite]]] = {}
    for event in events:
        for write in event.effect.writes if event.version is not None else ():
            if write.id == write.table and event.version is not None:
                written.setdefault(write.table, []).append((event.version, write))
    return [_reading(event, written, events) for event in events] if written else events


def _reading(
    event: Event, written: Mapping[str, list[tuple[int, RowWrite]]], events: Sequence[Event]
) -> Event:
    """Return an event that also reads the items it touches, at its read version."""
    footprint = event.effect.footprint
    touched = {read.table for read in event.effect.reads}
    touched |= set() if footprint is None else {footprint.schema.name}
    items = {definition_item(table) for table in touched}
    items |= {write.id for write in event.effect.writes if write.id == write.table}
    reads: list[RowRead] = []
    for name in sorted(items):
        if name not in written:
            continue
        seen = [
            (v, w) for v, w in sorted(written[name], key=itemgetter(0)) if v <= event.read_version
        ]
        values = seen[-1][1].after if seen else min(written[name], key=itemgetter(0))[1].before
        writer = next((e.name for e in events if seen and e.version == seen[-1][0]), "")
        row = TableRow(name, writer, values or ())
        reads.append(RowRead(name, name, lambda _: False, (row,)))
    return replace(event, effect=replace(event.effect, reads=(*event.effect.reads, *reads)))


def violated_constraint(schema: Schema, effect: Effect) -> str | None:
    """Return the constraint that a written row violates; None if there is none."""
    for key, text in _constraints(schema.properties):
        condition = _condition(schema.name, schema.columns, text)
        for write in effect.writes:
            row = write.after
            if row is None or write.table != schema.name:
                continue
            if evaluate(condition, (row,)) is not True:
                return key.removeprefix(CONSTRAINT)
    return None


@cache
def _constraint(name: str, text: str) -> Syntax:
    return Syntax(f"DELETE FROM {name} WHERE {text}")


@cache
def _condition(name: str, columns: tuple[Column, ...], text: str) -> ex.Expr:
    statement = resolve(_constraint(name, text), {name: Schema(name, columns)})
    condition: ex.Expr = statement.where  # type: ignore[union-attr, assignment]
    return condition


def merge_schema(
    snapshot: Snapshot,
    declared: Mapping[str, Schema],
    statement: st.Insert,
    insert: Callable[[Snapshot, st.Insert], Effect],
) -> Effect:
    """Return the effect of an append that may add columns.

    ``insert`` inserts its rows. Its query has the declared columns, and then those of
    ``statement.options.grows``.
    """
    schema = snapshot.schemas[statement.target]
    given = (*declared[statement.target].columns, *(statement.options.grows or ()))
    lacking = tuple(column for column in given if schema.index(column.name) is None)
    wider = replace(schema, columns=(*schema.columns, *lacking))
    order = {column.name.lower(): k for k, column in enumerate(given)}

    def placed(items: tuple[ex.Expr, ...]) -> tuple[ex.Expr, ...]:
        return tuple(
            items[order[c.name.lower()]] if c.name.lower() in order else ex.Const(None, c.type)
            for c in wider.columns
        )

    query = tuple(
        (
            replace(branch, rows=tuple(map(placed, branch.rows)))
            if isinstance(branch, qu.Values)
            else replace(branch, items=placed(branch.items))
        )
        for branch in statement.query
    )
    widened = replace(snapshot, schemas={**snapshot.schemas, schema.name: wider})
    done = rebase_effect(snapshot, insert(widened, replace(statement, query=query)))
    footprint = done.footprint
    if not lacking or footprint is None:
        return done
    header = snapshot.header(schema.name)
    metadata = replace(header.metadata, columns=wider.columns)
    footprint = replace(footprint, actions=replace(footprint.actions, metadata=metadata))
    writes = (*done.writes, *definition_write(schema.name, header.metadata, metadata))
    return replace(done, writes=writes, footprint=footprint)
