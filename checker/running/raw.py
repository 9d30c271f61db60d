"""What a raw transaction does on a snapshot: files by path, marks, footprint; no rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.running.skipping import Filters, in_partitions, merge_filters
from isolitmus.model import expression as ex
from isolitmus.model import raw as rw
from isolitmus.model.delta_log import LEVEL_KEY
from isolitmus.model.execution import Effect
from isolitmus.model.footprint import Footprint, Marks
from isolitmus.model.header import needed
from isolitmus.model.table import File, Stats

if TYPE_CHECKING:
    from isolitmus.checker.running.snapshot import Snapshot
    from isolitmus.model.header import Metadata
    from isolitmus.model.schema import Schema

__all__ = ["file_of", "raw_effect"]


def raw_effect(snapshot: Snapshot, statement: rw.Raw) -> Effect:
    """The effect of a raw transaction on a snapshot: it reads and writes no row."""
    schema = snapshot.schemas[statement.target]
    header = snapshot.header(statement.target)
    scans: list[Filters] = []
    predicates: list[tuple[ex.Expr, ...]] = []
    for look in statement.reads:
        match look:
            case rw.Filter(where=where):
                full = Filters((), ())
                scans.append(full if where is None else merge_filters(schema, where, ()))
                predicates.append(scans[-1].partition)
            case rw.Scan(query=query):
                found = snapshot.query(query, statement.target).scans
                scans += found
                predicates += [scan.partition for scan in found]
            case rw.WholeTable():
                predicates.append(())
            case rw.InPartitions(partitions):
                predicates.append((in_partitions(schema, partitions),))
            case rw.Application():
                pass
    live = snapshot.files(statement.target)
    operation = rw.OPERATIONS[statement.operation]
    features = None
    if statement.protocol is not None:
        features = header.features | statement.protocol.features
    metadata = statement.metadata or (rw.MetadataChange() if statement.large else None)
    written = None if metadata is None else _changed(header.metadata, metadata)
    lacking = (
        frozenset[str]() if written is None else needed(written.configuration) - header.features
    )
    if lacking and features is not None:
        raise ex.EvaluationError("AssertionError", "the metadata writes a protocol, too")
    if lacking:  # updateMetadataInternal
        features = header.features | lacking
    marks = Marks(
        metadata=written,
        default_level=not (written or header.metadata).levelled,
        features=features,
        domains=frozenset(statement.domains),
        apps=dict([statement.app] if statement.app else []),
        looked_up=frozenset(a.id for a in statement.reads if isinstance(a, rw.Application)),
        claims=statement.blind,
        large=statement.large,
        backfill=operation.backfill,
        always=True,
    )
    acts = bool(statement.adds or statement.removes)
    footprint = Footprint(
        schema,
        predicates=tuple(predicates),
        files=frozenset(f.path for scan in scans for f in scan.files(schema, live)),
        adds=tuple(f.partition for f in statement.adds),
        removes=frozenset(f.path for f in statement.removes),
        data_change=acts and statement.data_change,
        changes_data=operation.changes_data,
        whole_table=any(isinstance(look, rw.WholeTable) for look in statement.reads),
        marks=marks,
    )
    adds = tuple(file_of(schema, file) for file in statement.adds)
    return Effect((), (), adds, footprint.removes, footprint, operation.name)


def file_of(schema: Schema, file: rw.RawFile) -> File:
    """A file without rows; statistics as far as they are stated."""
    given = file.stats or {}
    columns = [column.name for column in schema.columns]

    def stats(column: str) -> Stats | None:
        found = [given.get(key, {}).get(column) for key in ("minValues", "maxValues", "nullCount")]
        return Stats(*found) if None not in found else None

    return File(file.path, file.partition, (), tuple(map(stats, columns)))


def _changed(metadata: Metadata, change: rw.MetadataChange) -> Metadata:
    kept = {k: v for k, v in metadata.configuration.items() if k not in change.unset}
    return replace(
        metadata,
        levelled=metadata.levelled and LEVEL_KEY not in change.unset,
        configuration={**kept, **change.configuration},
        id=metadata.id if change.id is None else change.id,
        name=metadata.name if change.name is None else change.name,
        description=metadata.description if change.description is None else change.description,
    )
