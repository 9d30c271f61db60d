"""Raw transactions and their tables through Delta's own transaction API, without Spark jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.session import java_session
from isolitmus.conformance.delta.transaction_outcome import read_failure
from isolitmus.model.delta.header import FEATURES, SUPPORTED, Header, with_required_features
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql import raw_transaction as rw
from isolitmus.model.sql.data_file import RawFile
from isolitmus.specs.logs.delta_log import latest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value

TYPES: Mapping[Type, str] = {
    "INT": "integer",
    "BIGINT": "long",
    "STRING": "string",
    "DATE": "date",
    "BOOLEAN": "boolean",
    "DOUBLE": "double",
    "TIMESTAMP": "timestamp",
}
"""Spark's names of the types; decimals have their name in lower case."""
DELTA = "org.apache.spark.sql.delta"
QUIET = {
    "spark.databricks.delta.history.metricsEnabled": "false",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
}
"""Confs that switch off metrics and checksums, which are not used here."""


def activate_session(session: Session, spark: Any) -> None:
    """Make a SparkSession the active one of this thread, as spark.sql does, and set ``QUIET``."""
    for key, value in QUIET.items():
        spark.conf.set(key, value)
    session.activate(spark)


def create_empty(session: Session, path: Path, schema: Schema, level: str | None) -> None:
    """Create an empty table at a path, with an isolation level if one is given."""
    header = Header.of(schema)
    fields = [
        {
            "name": c.name,
            "type": TYPES.get(c.type, c.type.lower()),
            "nullable": True,
            "metadata": {},
        }
        for c in schema.columns
    ]
    levelled = {} if level is None else {LEVEL_KEY: level}
    metadata: dict[str, Any] = {
        "id": path.name,
        "format": {"provider": "parquet", "options": {}},
        # compact, as Delta writes it, since Delta compares the texts
        "schemaString": json.dumps({"type": "struct", "fields": fields}, separators=(",", ":")),
        "partitionColumns": list(schema.partitioned_by),
        "configuration": levelled,
        "createdTime": 0,
    }
    explicit = any(key.startswith(SUPPORTED) for key in schema.properties)
    old = {"minReaderVersion": 1, "minWriterVersion": 2}
    protocol = _protocol(header.features) if explicit else old
    commits: list[list[dict[str, Any]]] = [[{"protocol": protocol}, {"metaData": metadata}]]
    # a second commit, because properties may need another protocol
    if header.metadata.configuration:
        configuration = {**levelled, **header.metadata.configuration}
        commits.append([{"metaData": {**metadata, "configuration": configuration}}])
    for actions in commits:
        transaction = session.delta_log(path).startTransaction()
        transaction.commit(_actions(session, actions), _operation(session))


def commit_files(session: Session, path: Path, schema: Schema) -> None:
    """Commit the files that a table declares."""
    if schema.files:
        transaction = session.delta_log(path).startTransaction()
        adds = [{"add": _add(file, schema, data_change=True)} for file in schema.files]
        try:
            transaction.commit(_actions(session, adds), _operation(session))
        except Exception as error:
            failure = read_failure(error, session.jvm)
            raise LitmusError(
                f"the files of table {schema.name} cannot be committed on Delta:"
                f" {failure.error_class or failure.exception}"
            ) from error


def raw_body(
    statement: rw.Raw, schema: Schema, path: Path, session: Session, spark: Any
) -> Callable[[], None]:
    """Return a callable that does the transaction's reads in order, then one commit.

    If the transaction claims to be blind or not to be, its commit in the log is rewritten
    afterwards, as a foreign writer would have written it.
    """

    def run() -> None:
        activate_session(session, spark)
        transaction = session.delta_log(path).startTransaction()
        for raw_read in statement.reads:
            _read(raw_read, transaction, schema, path, session, spark)
        actions = list(_written(statement, transaction, schema))
        operation = _operation(session, statement.operation, transaction)
        if statement.large:
            _commit_large(actions, transaction, operation, session, spark)
        else:
            transaction.commit(_actions(session, actions), operation)
        if statement.blind is not None:
            _claim(path, blind=statement.blind)

    return run


def _read(  # noqa: PLR0917
    raw_read: rw.RawRead, transaction: Any, schema: Schema, path: Path, session: Session, spark: Any
) -> None:
    """Record a read in a transaction, through the method that Delta calls for it."""
    match raw_read:
        case rw.Filter(sql=sql):
            rows = spark.read.format("delta").load(str(path)).where(sql)
            condition = rows._jdf.queryExecution().analyzed().condition()  # noqa: SLF001
            transaction.filterFiles(session.sequence(_conjuncts(condition)), False)
        case rw.WholeTable():
            transaction.readWholeTable()
        case rw.Application(app):
            transaction.txnVersion(app)
        case rw.InPartitions(partitions):
            files = [RawFile("new", partition) for partition in partitions]
            adds = [{"add": _add(file, schema, data_change=True)} for file in files]
            transaction.filterFiles(_actions(session, adds))
        case rw.Scan(sql=sql):
            active = session.scala(f"{DELTA}.OptimisticTransaction")
            spark.read.format("delta").load(str(path)).createOrReplaceTempView(schema.name)
            active.setActive(transaction)
            try:  # the optimised plan determines the scanned files; no execution is needed
                spark.sql(sql)._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
            finally:
                active.clearActive()


def _conjuncts(condition: Any) -> list[Any]:
    """Return the parts of a conjunction, as a command passes them to Delta."""
    if condition.getClass().getSimpleName() != "And":
        return [condition]
    return _conjuncts(condition.left()) + _conjuncts(condition.right())


def _written(statement: rw.Raw, transaction: Any, schema: Schema) -> Iterable[dict[str, Any]]:
    """Yield the actions of a transaction in the form of the log."""
    if statement.app is not None:
        yield {"txn": {"appId": statement.app[0], "version": statement.app[1]}}
    if statement.protocol is not None:
        yield {"protocol": _changed_protocol(statement.protocol, transaction)}
    if statement.metadata is not None:
        yield {"metaData": _changed_metadata(statement.metadata, transaction)}
    for domain in statement.domains:
        yield {"domainMetadata": {"domain": domain, "configuration": "{}", "removed": False}}
    for file in statement.adds:
        yield {"add": _add(file, schema, data_change=statement.data_change)}
    for file in statement.removes:
        remove = {
            "path": file.path,
            "deletionTimestamp": 1,
            "dataChange": statement.data_change,
            "extendedFileMetadata": True,
            "partitionValues": _partition(file.partition, schema),
            "size": 1,
        }
        yield {"remove": {**remove, **_vector(file)}}


def _add(file: RawFile, schema: Schema, *, data_change: bool) -> dict[str, Any]:
    """Return an AddFile action as JSON; with a deletion vector, its bounds are not tight."""
    add: dict[str, Any] = {
        "path": file.path,
        "partitionValues": _partition(file.partition, schema),
        "size": 1,
        "modificationTime": 1,
        "dataChange": data_change,
    }
    # a deletion vector hides rows, so the bounds may include hidden values
    if file.stats is not None:
        wide = {} if file.vector is None else {"tightBounds": False}
        add["stats"] = json.dumps({**file.stats, **wide}, default=str)
    return {**add, **_vector(file)}


def _vector(file: RawFile) -> dict[str, Any]:
    """Return the field ``deletionVector`` of an action; empty for a file without one."""
    if file.vector is None:
        return {}
    vector = {
        "storageType": "p",
        "pathOrInlineDv": f"/{file.vector}.bin",
        "offset": 1,
        "sizeInBytes": 1,
        "cardinality": 1,
    }
    return {"deletionVector": vector}


def _partition(partition: Row, schema: Schema) -> dict[str, str | None]:
    return dict(zip(schema.partitioned_by, map(_text, partition), strict=True))


def _text(value: Value) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _changed_metadata(change: rw.MetadataChange, transaction: Any) -> dict[str, Any]:
    """Return the transaction's metadata with the change applied, as JSON."""
    metadata: dict[str, Any] = json.loads(transaction.metadata().json())["metaData"]
    kept = {k: v for k, v in metadata["configuration"].items() if k not in change.unset}
    metadata["configuration"] = {**kept, **change.configuration}
    for key in ("id", "name", "description"):
        value = getattr(change, key)
        if value is not None:
            metadata[key] = value
    return metadata


def _changed_protocol(change: rw.ProtocolChange, transaction: Any) -> dict[str, Any]:
    """Return the table's protocol as JSON, with the added features and those they require."""
    protocol: dict[str, Any] = json.loads(transaction.protocol().json())["protocol"]
    if not change.features:
        return protocol
    found = transaction.protocol().implicitlyAndExplicitlySupportedFeatures().iterator()
    old = set()
    while found.hasNext():
        old.add(found.next().name())
    return _protocol(old | with_required_features(change.features))


def _protocol(features: Iterable[str]) -> dict[str, Any]:
    """Return a protocol action with these features, and reader version 3 if one needs it."""
    features = sorted(features)
    readers = [feature for feature in features if FEATURES[feature]]
    protocol = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    return {
        **protocol,
        **({"readerFeatures": readers} if readers else {}),
        "writerFeatures": features,
    }


def _operation(session: Session, name: str = "ManualUpdate", transaction: Any = None) -> Any:
    """Return the object of DeltaOperations with this name, with minimal arguments."""
    operations = session.java(f"{DELTA}.DeltaOperations")
    match name:
        case "ManualUpdate":
            return session.scala(f"{DELTA}.DeltaOperations$ManualUpdate")
        case "SetTableProperties":
            return operations.SetTableProperties(session.mapping({}))
        case "Delete" | "ComputeStats":
            return getattr(operations, name)(session.sequence([]))
        case "UpgradeProtocol":
            return operations.UpgradeProtocol(transaction.protocol())
        case "Optimize":
            nothing = session.sequence([])
            return operations.Optimize(nothing, nothing, False, session.scala("scala.None"), False)
        case "RowTrackingBackfill":
            return operations.RowTrackingBackfill(0)
    return getattr(operations, name)()


def _actions(session: Session, actions: Iterable[dict[str, Any]]) -> Any:
    return session.sequence(session.delta_action(action) for action in actions)


def _commit_large(
    actions: list[Any],
    transaction: Any,
    operation: Any,
    session: Session,
    spark: Any,
) -> None:
    """Commit with commitLarge, which takes protocol and metadata apart from other actions."""
    apart = [a for a in actions if not {"protocol", "metaData"} & a.keys()]
    protocol = session.scala("scala.None")
    for action in actions:
        if "metaData" in action:
            transaction.updateMetadata(session.delta_action(action), False)
        if "protocol" in action:
            protocol = session.java("scala.Option").apply(session.delta_action(action))
    empty = session.mapping({})
    transaction.commitLarge(
        java_session(spark),
        _actions(session, apart).iterator(),
        protocol,
        operation,
        empty,
        empty,
    )


def _claim(path: Path, *, blind: bool) -> None:
    """Rewrite the newest commit so that it claims to be a blind append, or not to be one."""
    log = path / "_delta_log"
    file = log / f"{latest_version(path):020}.json"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["isBlindAppend"] = blind
    (log / f".{file.name}.crc").unlink(missing_ok=True)
    file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
