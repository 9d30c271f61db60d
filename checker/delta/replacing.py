"""What REPLACE TABLE does: another table, with another identity, comes where one was.

It reads all of the old one, and what its query reads, removes every file, and writes a metadata of its
own: the columns as declared, no constraint, no isolation level, of Delta's properties only those that
outlive it (CreateDeltaTableCommand.scala 308-324, 492-521 and 822-838; OptimisticTransaction.scala,
updateMetadataForNewTableInReplace).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from isolitmus.checker.delta.metadata_changes import redefined, refuse_level
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.removing import removal
from isolitmus.checker.delta.snapshot import NOTHING
from isolitmus.checker.delta.table_creation import operation
from isolitmus.model.delta.footprint import Actions, Settings
from isolitmus.model.delta.header import Header
from isolitmus.model.execution import Effect, births

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.definition import Replace

__all__ = ["replaced"]

OUTLIVES = ("delta.enableDeletionVectors", "delta.checkpointPolicy", "delta.enableRowTracking")
"""The properties that the new table has from the old one (QOL_TABLE_FEATURES_AND_PROPERTIES)."""


def replaced(snapshot: Snapshot, declared: Mapping[str, Schema], statement: Replace) -> Effect:
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
    gone = removal(snapshot, schema, found[0])
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
        *redefined(schema.name, header.metadata, metadata),
    )
    reads = (gone.read, *result.reads)
    return Effect(reads, writes, adds, footprint.removes, footprint, operation(statement))
