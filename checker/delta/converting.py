"""What CONVERT TO DELTA does: the files of a Parquet table become version 0 of a Delta table.

It takes over the properties of the Parquet table, an isolation level among them, as they are: the only
way in which SQL makes a table that is WriteSerializable. What others add to the folder or convert
meanwhile it does not see; commitLarge tries version 0 only (ConvertToDeltaCommand.scala 100-140 and
355-420).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from isolitmus.checker.delta.metadata_changes import idle, redefined
from isolitmus.model.delta.footprint import Actions, Footprint, Settings
from isolitmus.model.delta.header import Header
from isolitmus.model.execution import Effect, births

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.definition import Convert

__all__ = ["converted"]

OPERATION = "CONVERT"


def converted(snapshot: Snapshot, declared: Mapping[str, Schema], statement: Convert) -> Effect:
    """The effect of a CONVERT on a snapshot; a table that is Delta's already is left alone."""
    name, writer = statement.target, snapshot.writer
    if name in snapshot.database:
        return idle(snapshot, name, OPERATION)
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
    writes = (*births(name, chain(*branches)), *redefined(name, None, metadata))
    return Effect((), writes, adds, footprint=footprint, operation=OPERATION)
