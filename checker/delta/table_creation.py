"""Statements that create tables: CREATE, REPLACE, SHALLOW CLONE, CONVERT TO DELTA.

**CREATE TABLE**, and CREATE OR REPLACE TABLE and a DataFrame write if there is no table. The new
table is version 0 of its log: metadata, protocol and the rows of the query, if there is one. The
statement has read only that the table does not exist; a concurrent creation conflicts with its
protocol. It cannot set an isolation level: the table is Serializable (CreateDeltaTableCommand.scala
117-541).

**SHALLOW CLONE** makes a table with the files of another one, where they are. It copies the
metadata of its source, including isolation level and constraints, and the files, which keep their
rows, statistics and deletion vectors. The source is taken as it was when the statement was
analysed. None of its reads is recorded, least of all in the log of the source, and commitLarge
tries one version only (CloneTableBase.scala 202-330). At row level it reads every row of the
source.

**CONVERT TO DELTA** makes the files of a Parquet table version 0 of a Delta table. It keeps the
properties of the Parquet table, including an isolation level: the only way in which SQL makes a
table that is WriteSerializable. It does not see concurrent additions to the folder or conversions;
commitLarge tries version 0 only (ConvertToDeltaCommand.scala 100-140 and 355-420).

**REPLACE TABLE** puts another table, with another identity, in place of one. It reads all of the
old table, and what its query reads, and removes every file. It writes its own metadata: the
declared columns, no constraint, no isolation level, and of Delta's properties only those in
`OUTLIVES` (CreateDeltaTableCommand.scala 308-324, 492-521 and 822-838; OptimisticTransaction.scala,
updateMetadataForNewTableInReplace).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING

from isolitmus.checker.delta.metadata_changes import definition_write, no_change, refuse_level
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.row_changes import plan_removal
from isolitmus.checker.delta.snapshot import NOTHING
from isolitmus.model.delta.footprint import Actions, Footprint, Settings
from isolitmus.model.delta.header import Header
from isolitmus.model.execution import Effect, births
from isolitmus.model.sql.data_file import TableRow
from isolitmus.model.sql.statement import Clone, Create, Replace
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.delta.header import Metadata
    from isolitmus.model.sql.data_file import File
    from isolitmus.model.sql.query import Query
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Convert, Insert, Statement

EARLY = (
    "AnalysisException",
    "CannotReplaceMissingTableException",
    "TableAlreadyExistsException",
)
"""Suffixes of the exceptions that are raised before anything is done."""


def create_effect(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: Create | Replace
) -> Effect:
    """Return the effect of a CREATE, or of a REPLACE of a table that does not exist.

    A CREATE without a query requires an empty folder. With a query, or as a clone, an existing
    folder is accepted, because it may be left from a failed attempt. CREATE OR REPLACE with rows
    removes the existing files: there are none, but that counts as a read.

    Raises
    ------
    EvaluationError
        If the statement fails.
    """
    name, query = statement.target, statement.query
    if isinstance(statement, Create) and name in snapshot.database:
        if statement.if_not_exists:
            return no_change(snapshot, name, creation_operation(statement))
        raise EvaluationError("TableAlreadyExistsException", f"there is a table {name}")
    if isinstance(statement, Replace) and not statement.create:
        raise EvaluationError("CannotReplaceMissingTableException", f"there is no table {name}")
    refuse_level(
        statement.properties,
        "IllegalArgumentException",
        documented=snapshot.outside.documented,
    )
    schema = replace(declared[name], properties=statement.properties)
    if query is None and name in snapshot.outside.folders:
        raise EvaluationError("DeltaAnalysisException", f"the folder of {name} is not empty")
    removes = query is not None and isinstance(statement, Replace)
    made = _made(snapshot, schema, query, creation_operation(statement), removes=removes)
    footprint = made.footprint
    if statement.comment is None or footprint is None or footprint.actions.metadata is None:
        return made
    described = replace(footprint.actions.metadata, description=statement.comment)
    actions = replace(footprint.actions, metadata=described)
    return replace(made, footprint=replace(footprint, actions=actions))


def first_write_effect(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: Insert
) -> Effect:
    """Return the effect of a DataFrame write to a path without a table (WriteIntoDelta.scala).

    An overwrite looks for files there, which is a read.
    """
    schema = replace(declared[statement.target], properties={})
    return _made(snapshot, schema, statement.query, "WRITE", removes=statement.overwrite)


def _made(
    snapshot: Snapshot, schema: Schema, query: Query | None, name: str, *, removes: bool
) -> Effect:
    """Return the effect of creating a table with the rows of a query.

    ``removes`` says whether it would remove existing files.
    """
    result = NOTHING if query is None else snapshot.query(query)
    branches = snapshot.inserted(schema, result.branches)
    adds = snapshot.written(schema, branches)
    header = Header.of(schema)
    writer = snapshot.writer
    metadata = replace(header.metadata, id=writer, created=writer, levelled=False)
    footprint = Footprint(
        schema,
        predicates=((),) if removes else (),
        adds=tuple(file.partition for file in adds),
        data_change=bool(adds),
        actions=Actions(metadata, header.features),
        settings=Settings(default_level=True),
        header=Header(),
    )
    writes = (
        *births(schema.name, chain(*branches)),
        *definition_write(schema.name, None, metadata),
    )
    return Effect(result.reads, writes, adds, footprint=footprint, operation=name)


def creation_operation(statement: Create | Replace) -> str:
    """Return the operation name in the log (CreateDeltaTableCommand.scala, getOperation)."""
    verb = "REPLACE TABLE" if isinstance(statement, Replace) else "CREATE TABLE"
    verb = f"CREATE OR {verb}" if isinstance(statement, Replace) and statement.create else verb
    return verb if statement.query is None else f"{verb} AS SELECT"


def created_folder(statement: Statement, done: Effect, *, prepared: bool) -> frozenset[str]:
    """Return the table whose folder a statement has created so far, if any.

    With a query, or in a clone, the folder exists as soon as the statement has read, even if it
    fails later; else once it has ``prepared`` its commit.
    """
    match statement:
        case Create(target=target, query=query) | Replace(target=target, query=query):
            early = done.error is not None and done.error.exception.endswith(EARLY)
            made = not early if query is not None else done.error is None and prepared
        case Clone(target=target):
            made = done.error is None
        case _:
            return frozenset()
    return frozenset((target,)) if made else frozenset()


CLONE_OPERATION = "CLONE"
REFUSED = "DeltaAnalysisException"


def clone_effect(snapshot: Snapshot, declared: Mapping[str, Schema], statement: Clone) -> Effect:
    """Return the effect of a clone on a snapshot; it fails if it would replace a table with
    files.
    """
    name, source = statement.target, statement.source
    origin = snapshot.planned() if statement.version is None else snapshot.init(statement.version)
    origin = replace(origin, schemas=declared)  # later alterations do not matter
    if source not in origin.database:
        raise EvaluationError("AnalysisException", f"there is no table {source}")
    there = name in snapshot.database
    if there and statement.how == "create if not exists":
        return no_change(snapshot, name, CLONE_OPERATION)
    if there and statement.how == "create":
        raise EvaluationError(REFUSED, f"there is a table {name}")
    if not there and statement.how == "replace":
        raise EvaluationError(REFUSED, f"there is no table {name}")
    if there and snapshot.files(name):
        raise EvaluationError("DeltaIllegalStateException", f"{name} is not empty")
    before = snapshot.header(name) if there else None
    header = origin.header(source)
    metadata = _metadata(snapshot.writer, name, before, source, header.metadata)
    schema = replace(declared[name], columns=metadata.columns, properties=metadata.configuration)
    adds = _copied(schema, snapshot.writer, origin.files(source))
    footprint = Footprint(
        schema,
        adds=tuple(file.partition for file in adds),
        data_change=bool(adds),
        actions=Actions(
            metadata,
            header.features if before is None else header.features | before.features,
            header.domains,
        ),
        settings=Settings(large=True),
        header=before or Header(),
    )
    writes = (
        *births(name, (row for file in adds for row in file.rows)),
        *definition_write(name, None if before is None else before.metadata, metadata),
    )
    found = accesses(statement, declared)
    reads = tuple(
        replace(origin.read(a), version=origin.version) for a in found if a.version is None
    )
    return Effect(reads, writes, adds, footprint=footprint, operation=CLONE_OPERATION)


def _metadata(
    writer: str, name: str, before: Header | None, source: str, copied: Metadata
) -> Metadata:
    """Return the clone's metadata: the source's, with an existing table's identity."""
    created = copied.created if source == name else copied.created or source
    if before is None:
        return replace(copied, id=writer, name=None, description=None, created=created)
    own = before.metadata
    return replace(copied, id=own.id, name=own.name, description=own.description, created=created)


def _copied(schema: Schema, writer: str, files: tuple[File, ...]) -> tuple[File, ...]:
    """Return the files as those of another table, with new row identities."""
    fresh = count()
    copies: list[File] = []
    for number, file in enumerate(files):
        folder = f"{schema.folder(file.partition)}/" if file.partition else ""
        rows = tuple(TableRow(f"{writer}.{next(fresh)}", writer, row.values) for row in file.rows)
        copies.append(replace(file, path=f"{folder}{writer}-{number}", rows=rows))
    return tuple(copies)


CONVERT_OPERATION = "CONVERT"


def convert_effect(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: Convert
) -> Effect:
    """Return the effect of a CONVERT on a snapshot; a table that is Delta already is left as it
    is.
    """
    name, writer = statement.target, snapshot.writer
    if name in snapshot.database:
        return no_change(snapshot, name, CONVERT_OPERATION)
    schema = declared[name]
    branches = snapshot.inserted(schema, [schema.parquet])
    adds = snapshot.written(schema, branches)
    header = Header.of(schema)
    metadata = replace(header.metadata, id=writer, created=writer)
    footprint = Footprint(
        schema,
        adds=tuple(file.partition for file in adds),
        actions=Actions(metadata, header.features),
        settings=Settings(large=True),
        header=Header(),
    )
    writes = (*births(name, chain(*branches)), *definition_write(name, None, metadata))
    return Effect((), writes, adds, footprint=footprint, operation=CONVERT_OPERATION)


OUTLIVES = ("delta.enableDeletionVectors", "delta.checkpointPolicy", "delta.enableRowTracking")
"""Properties that the new table keeps from the old one (QOL_TABLE_FEATURES_AND_PROPERTIES)."""


def replace_effect(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: Replace
) -> Effect:
    """Return the effect of a REPLACE on a snapshot."""
    refuse_level(
        statement.properties,
        "IllegalArgumentException",
        documented=snapshot.outside.documented,
    )
    header = snapshot.header(statement.target)
    kept = {k: v for k, v in header.metadata.configuration.items() if k in OUTLIVES}
    schema = replace(declared[statement.target], properties={**kept, **statement.properties})
    new, writer = Header.of(schema), snapshot.writer
    metadata = replace(
        new.metadata,
        id=writer,
        created=writer,
        levelled=False,
        description=statement.comment,
    )
    features = header.features | new.features if new.features - header.features else None
    query = statement.query
    result = NOTHING if query is None else snapshot.query(query)
    branches = snapshot.inserted(schema, result.branches)
    found = accesses(statement, snapshot.schemas)
    gone = plan_removal(snapshot, schema, found[0])
    adds = snapshot.written(schema, branches)
    footprint = replace(
        snapshot.footprint(schema, found, adds, gone.removes),
        actions=Actions(metadata, features, header.domains),
        settings=Settings(default_level=True),
        header=header,
    )
    writes = (
        *gone.writes,
        *births(schema.name, chain(*branches)),
        *definition_write(schema.name, header.metadata, metadata),
    )
    reads = (gone.read, *result.reads)
    return Effect(reads, writes, adds, footprint.removes, footprint, creation_operation(statement))
