"""What SHALLOW CLONE does: a table that has the files of another one, where they lie.

It copies the metadata of its source, isolation level, constraints and all, and the files, which keep
their rows, statistics and deletion vectors; the source is taken as it was when the statement was
analysed. Nothing that it reads is recorded, least of all in the log of the source, and commitLarge tries
one version only (CloneTableBase.scala 202-330). At row level it reads every row of the source.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from isolitmus.checker.delta.metadata_changes import idle, redefined
from isolitmus.checker.delta.read_set import accesses
from isolitmus.model.delta.data_file import TableRow
from isolitmus.model.delta.footprint import Actions, Footprint, Settings
from isolitmus.model.delta.header import Header
from isolitmus.model.execution import Effect, births
from isolitmus.model.sql.failing import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.delta.data_file import File
    from isolitmus.model.delta.header import Metadata
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.definition import Clone

__all__ = ["cloned"]

OPERATION = "CLONE"
REFUSED = "DeltaAnalysisException"


def cloned(snapshot: Snapshot, declared: Mapping[str, Schema], statement: Clone) -> Effect:
    """The effect of a clone on a snapshot. It replaces no table that has files."""
    name, source = statement.target, statement.source
    origin = snapshot.planned() if statement.version is None else snapshot.init(statement.version)
    origin = replace(origin, schemas=declared)  # what is altered since then is of no concern
    if source not in origin.database:
        raise EvaluationError("AnalysisException", f"there is no table {source}")
    there = name in snapshot.database
    if there and statement.how == "create if not exists":
        return idle(snapshot, name, OPERATION)
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
        *redefined(name, None if before is None else before.metadata, metadata),
    )
    found = accesses(statement, declared)
    reads = tuple(
        replace(origin.read(a), version=origin.version) for a in found if a.version is None
    )
    return Effect(reads, writes, adds, footprint=footprint, operation=OPERATION)


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
