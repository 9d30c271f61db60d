"""Effects of raw transactions on a snapshot: files by path and a footprint, but no rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.row_tracking import with_row_tracking_columns
from isolitmus.model.delta.footprint import Actions, Settings
from isolitmus.model.delta.header import needed_features, with_required_features
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.execution import Effect
from isolitmus.model.sql import raw_transaction as rw
from isolitmus.model.sql.data_file import File, RawFile, Stats
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.delta.header import Header, Metadata
    from isolitmus.model.sql.data_file import FileKey
    from isolitmus.model.sql.schema import Schema

DUPLICATE_DOMAIN = "DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR"


def raw_effect(snapshot: Snapshot, statement: rw.Raw) -> Effect:
    """Return the effect of a raw transaction on a snapshot; it reads and writes no rows."""
    schema = snapshot.schemas[statement.target]
    header = snapshot.header(statement.target)
    for scan in (read for read in statement.reads if isinstance(read, rw.Scan)):
        snapshot.query(scan.query)  # it may fail
    operation = rw.OPERATIONS[statement.operation]
    features = None
    if statement.protocol is not None:
        features = header.features | with_required_features(statement.protocol.features)
    metadata = statement.metadata or (rw.MetadataChange() if statement.large else None)
    written = None if metadata is None else _changed(header.metadata, metadata)
    lacking = (
        frozenset[str]()
        if written is None
        else needed_features(written.configuration) - header.features
    )
    if lacking and features is not None and not statement.large:  # prepareCommit
        raise EvaluationError("AssertionError", "the metadata writes a protocol, too")
    if lacking:  # updateMetadataInternal; commitLarge adds them to the protocol that it is given
        features = (header.features if features is None else features) | lacking
    if written is not None and statement.large and statement.metadata is not None:
        written = _updated(header, written, snapshot.writer)
    refused = _refused(header, header.after(written, features, frozenset(), {}), statement)
    if refused is not None and not statement.large:
        raise refused
    actions = Actions(
        metadata=written,
        features=features,
        domains=frozenset(statement.domains),
        domain_twice=len(set(statement.domains)) < len(statement.domains),
        apps=dict([statement.app] if statement.app else []),
    )
    settings = Settings(
        large=statement.large,
        backfill=operation.backfill,
        always=True,
        claims=statement.blind,
        default_level=not (written or header.metadata).levelled,
    )
    acts = bool(statement.adds or statement.removes)
    found = accesses(statement, snapshot.schemas)
    footprint = replace(
        snapshot.footprint(schema, found, statement.adds, statement.removes),
        data_change=acts and statement.data_change,
        changes_data=operation.changes_data,
        looked_up=frozenset(a.id for a in statement.reads if isinstance(a, rw.Application)),
        actions=actions,
        settings=settings,
    )
    adds = tuple(stated_data_file(schema, file) for file in statement.adds)
    removes = frozenset((file.path, file.vector) for file in statement.removes)
    return Effect((), (), adds, removes, footprint, operation.name, unwritable=refused)


def _refused(header: Header, written: Header, statement: rw.Raw) -> EvaluationError | None:
    """Return the error with which Delta rejects a commit before it looks at concurrent ones.

    ``header`` is that of the snapshot, ``written`` includes what the commit itself writes
    (OptimisticTransaction.scala: prepareCommit, then checkNoDuplicateActions and
    validateDomainMetadataSupportedAndNoDuplicate). commitLarge only checks deletion vectors, and
    does so on writing.
    """
    removed = bool(statement.removes) and statement.data_change and not statement.large
    if removed and _on(header.metadata, "delta.appendOnly"):
        return EvaluationError(
            "DeltaUnsupportedOperationException",
            "files are only added",
            "DELTA_CANNOT_MODIFY_APPEND_ONLY",
        )
    in_place = rw.OPERATIONS[statement.operation].in_place
    writable = in_place or _on(written.metadata, "delta.enableDeletionVectors")
    vectors = any(file.vector is not None for file in statement.adds)
    if vectors and not (writable and "deletionVectors" in written.features):
        return EvaluationError(
            "DeltaCommandUnsupportedWithDeletionVectorsException",
            "no deletion vectors are written here",
            "DELTA_ADDING_DELETION_VECTORS_DISALLOWED",
        )
    if statement.large:
        return None
    added = [(file.path, file.vector) for file in statement.adds]
    gone = [(file.path, file.vector) for file in statement.removes]
    if not (_apart(added) and _apart(gone) and set(added).isdisjoint(gone)):
        return EvaluationError(
            "DeltaRuntimeException", "a file twice", "DELTA_DUPLICATE_ACTIONS_FOUND"
        )
    domains = statement.domains
    if len(set(domains)) < len(domains):
        return EvaluationError(
            "DeltaIllegalArgumentException",
            "a domain twice",
            DUPLICATE_DOMAIN,
        )
    if domains and "domainMetadata" not in written.features:
        return EvaluationError(
            "DeltaIllegalArgumentException",
            "no domains of metadata are written here",
            "DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
        )
    return None


def _apart(files: Sequence[FileKey]) -> bool:
    """Return whether no path occurs twice, even with different deletion vectors."""
    return len({path for path, _ in files}) == len(files)


def _on(metadata: Metadata, switch: str) -> bool:
    return metadata.configuration.get(switch, "").lower() == "true"


def stated_data_file(schema: Schema, file: RawFile) -> File:
    """Return a file without rows, with the statistics that are stated."""
    given = file.stats or {}
    columns = [column.name for column in schema.columns]

    def stats(column: str) -> Stats | None:
        found = [given.get(key, {}).get(column) for key in ("minValues", "maxValues", "nullCount")]
        return Stats(*found) if None not in found else None

    return File(file.path, file.partition, (), tuple(map(stats, columns)), vector=file.vector)


def _updated(header: Header, written: Metadata, writer: str) -> Metadata:
    """Return metadata of updateMetadata, with row id columns if the table tracks rows.

    Existing names are kept (MaterializedRowTrackingColumn.scala, updateMaterializedColumnName).
    """
    return with_row_tracking_columns(header, written, header.features, writer)


def _changed(metadata: Metadata, change: rw.MetadataChange) -> Metadata:
    """Return the metadata after the change of a raw transaction."""
    kept = {k: v for k, v in metadata.configuration.items() if k not in change.unset}
    return replace(
        metadata,
        levelled=metadata.levelled and LEVEL_KEY not in change.unset,
        configuration={**kept, **change.configuration},
        id=metadata.id if change.id is None else change.id,
        name=metadata.name if change.name is None else change.name,
        description=metadata.description if change.description is None else change.description,
    )
