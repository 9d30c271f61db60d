"""Tables that are made: CREATE, REPLACE, SHALLOW CLONE, CONVERT TO DELTA.

What CREATE TABLE does, and where there is no table CREATE OR REPLACE TABLE and a DataFrame write.

The new table is version 0 of its log: metadata, protocol and the rows of the query, if there is
one. Of the table it has read nothing, but that it was not there; who makes it, too, in the meantime
meets its protocol. It says no isolation level, for that cannot be said: the table is Serializable
(CreateDeltaTableCommand.scala 117-541).

What SHALLOW CLONE does: a table that has the files of another one, where they lie.

It copies the metadata of its source, isolation level, constraints and all, and the files, which
keep their rows, statistics and deletion vectors; the source is taken as it was when the statement
was analysed. Nothing that it reads is recorded, least of all in the log of the source, and
commitLarge tries one version only (CloneTableBase.scala 202-330). At row level it reads every row
of the source.

What CONVERT TO DELTA does: the files of a Parquet table become version 0 of a Delta table.

It takes over the properties of the Parquet table, an isolation level among them, as they are: the
only way in which SQL makes a table that is WriteSerializable. What others add to the folder or
convert meanwhile it does not see; commitLarge tries version 0 only (ConvertToDeltaCommand.scala
100-140 and 355-420).

What REPLACE TABLE does: another table, with another identity, comes where one was.

It reads all of the old one, and what its query reads, removes every file, and writes a metadata of
its own: the columns as declared, no constraint, no isolation level, of Delta's properties only
those that outlive it (CreateDeltaTableCommand.scala 308-324, 492-521 and 822-838;
OptimisticTransaction.scala, updateMetadataForNewTableInReplace).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING

from isolitmus.checker.delta.metadata_changes import definition_write, no_change, refuse_level
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.row_changes import plan_removal
from isolitmus.checker.delta.snapshot import NOTHING
from isolitmus.model.delta.data_file import TableRow
from isolitmus.model.delta.footprint import Actions, Footprint, Settings
from isolitmus.model.delta.header import Header
from isolitmus.model.execution import Effect, births
from isolitmus.model.sql.statement import Clone, Create, Replace
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.delta.data_file import File
    from isolitmus.model.delta.header import Metadata
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.query import Query
    from isolitmus.model.sql.statement import Convert, Insert, Statement

__all__ = [
    "clone_effect",
    "convert_effect",
    "create_effect",
    "created_folder",
    "creation_operation",
    "first_write_effect",
    "replace_effect",
]

EARLY = (
    "AnalysisException",
    "CannotReplaceMissingTableException",
    "TableAlreadyExistsException",
)
"""How the failures end that come before anything is done."""


def create_effect(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: Create | Replace
) -> Effect:
    """The effect of a CREATE, or of a REPLACE of a table that is not there, on a snapshot.

    A CREATE without a query wants its folder empty. Who makes the table with a query, or clones,
    puts up with what is there, for it may be left from an attempt that failed; and a CREATE OR
    REPLACE of rows removes what is there: nothing, but that counts as a read.
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
    return _made(snapshot, schema, query, creation_operation(statement), removes=removes)


def first_write_effect(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: Insert
) -> Effect:
    """The effect of a DataFrame write to a path where there is no table (WriteIntoDelta.scala): an
    overwrite looks for files there, which is a read.
    """
    schema = replace(declared[statement.target], properties={})
    return _made(snapshot, schema, statement.query, "WRITE", removes=statement.overwrite)


def _made(
    snapshot: Snapshot, schema: Schema, query: Query | None, name: str, *, removes: bool
) -> Effect:
    """The effect of what makes a table, with what a query gives; ``removes``: it would remove what
    is there.
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
    """What the log calls it (CreateDeltaTableCommand.scala, getOperation)."""
    verb = "REPLACE TABLE" if isinstance(statement, Replace) else "CREATE TABLE"
    verb = f"CREATE OR {verb}" if isinstance(statement, Replace) and statement.create else verb
    return verb if statement.query is None else f"{verb} AS SELECT"


def created_folder(statement: Statement, done: Effect, *, prepared: bool) -> frozenset[str]:
    """The table whose folder is there once a statement has come so far, if it is one that makes it:
    with a query, or as a clone, as soon as it has read, though it should fail; else when it has
    ``prepared`` its commit.
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
    """The effect of a clone on a snapshot. It replaces no table that has files."""
    name, source = statement.target, statement.source
    origin = snapshot.planned() if statement.version is None else snapshot.init(statement.version)
    origin = replace(origin, schemas=declared)  # what is altered since then is of no concern
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
    """The source's metadata; a table that is there keeps its identity and description."""
    created = copied.created if source == name else copied.created or source
    if before is None:
        return replace(copied, id=writer, name=None, description=None, created=created)
    own = before.metadata
    return replace(copied, id=own.id, name=own.name, description=own.description, created=created)


def _copied(schema: Schema, writer: str, files: tuple[File, ...]) -> tuple[File, ...]:
    """The files as those of another table, whose rows are new there."""
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
    """The effect of a CONVERT on a snapshot; a table that is Delta's already is left alone."""
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
"""The properties that the new table has from the old one (QOL_TABLE_FEATURES_AND_PROPERTIES)."""


def replace_effect(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: Replace
) -> Effect:
    """The effect of a REPLACE on a snapshot."""
    refuse_level(
        statement.properties,
        "IllegalArgumentException",
        documented=snapshot.outside.documented,
    )
    header = snapshot.header(statement.target)
    kept = {k: v for k, v in header.metadata.configuration.items() if k in OUTLIVES}
    schema = replace(declared[statement.target], properties={**kept, **statement.properties})
    new, writer = Header.of(schema), snapshot.writer
    metadata = replace(new.metadata, id=writer, created=writer, levelled=False)
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
