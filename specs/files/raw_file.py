"""Reader of raw transactions in a litmus file, and of the declared files of their table."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from isolitmus.model.delta.header import FEATURES, needed_features
from isolitmus.model.errors import near
from isolitmus.model.sql import raw_transaction as rw
from isolitmus.model.sql.data_file import RawFile
from isolitmus.model.sql.query import Select
from isolitmus.model.sql.statement import Delete, Insert, Merge, Optimize, Read, Update
from isolitmus.specs.files.table_file import read_table
from isolitmus.specs.files.toml_reader import show_value
from isolitmus.specs.sql.statements import read_statement
from isolitmus.specs.sql.unsupported_pairs import TRACKED, features_of, refuse_together

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value
    from isolitmus.specs.files.toml_reader import Node, TomlTable
    from isolitmus.specs.sql.unsupported_pairs import Feature

RAW_KEYS = (
    "reads",
    "adds",
    "removes",
    "data_change",
    "metadata",
    "protocol",
    "domains",
    "operation",
    "blind",
    "large",
)
"""Keys that make a transaction a raw one."""
OTHER_KEYS = ("app", "table", "conf")
PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=/-]*")
VECTOR = re.compile(r"[A-Za-z0-9_]+")
WHOLE = re.compile(r"-?[0-9]+")
READS = (
    '"condition", { whole_table = true }, { sql = "…" }, { partitions = [{ … }] } or { app_id ='
    ' "…" }'
)

VECTORS = "delta.enableDeletionVectors"
BACKFILL = ("reads", "adds", "data_change", "operation", "blind", "table", "conf")
"""Keys that a backfill of row tracking may have; Delta's check asserts that it has nothing else."""


def read_raw_table(name: str, table: Node) -> Schema:
    """Return the schema of a table, which may have declared files."""
    raws = table.table().keys().isdisjoint(("init", "parquet"))
    schema = read_table(name, table, only_partitions=raws, any_level=True)
    files = table.get("files", list, [])
    made = tuple(_file(table.at("files", file), schema) for file in files)
    paths = [file.path for file in made]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        table.refuse(f"{table}.files has '{twice}' twice")
    found: set[Feature] = set().union(*(features_of(file=file) for file in made))
    if schema.properties.get(VECTORS) != "true":
        found.add("a table without deletion vectors")
    refuse_together(found - {"a file without stats"}, table.refuse, str(table), table=name)
    if table.value.get("init"):
        refuse_together(features_of(schema=schema) | {"a table by SQL"}, table.refuse, str(table))
    return replace(schema, files=made)


def read_raw(name: str, given: Node, schemas: Mapping[str, Schema]) -> rw.Raw:
    """Return the raw transaction; LitmusError for an invalid key or value."""
    given.keys((*RAW_KEYS, *OTHER_KEYS))
    target = read_target(given, schemas)
    schema = schemas[target]
    operation = given.get("operation", str, "Truncate")
    if operation not in rw.OPERATIONS:
        given.refuse(
            f"{given}.operation is '{operation}', which is not modelled"
            f"{near(operation, rw.OPERATIONS)}"
        )
    if rw.OPERATIONS[operation].backfill:
        found = features_of(schema=schema) | {"a backfill"}
        refuse_together(found, given.refuse, str(given), operation=operation, table=target)
        replace(given, path=f"{given}, a {operation}").keys(BACKFILL)
    reads = (
        [{"whole_table": True}]
        if given.value.get("reads") == "table"
        else given.get("reads", list, [])
    )
    made = rw.Raw(
        _said(given.value),
        target,
        tuple(_raw_read(given.at("reads", read), schema, name) for read in reads),
        tuple(_file(given.at("adds", add), schema) for add in given.get("adds", list, [])),
        tuple(
            _removal(given.at("removes", path), schema)
            for path in given.get("removes", list, [])
        ),
        given.get("data_change", bool, default=True),
        read_app(given),
        _metadata(given),
        _protocol(given),
        given.strings("domains"),
        operation,
        given.get("blind", bool) if "blind" in given else None,
        given.get("large", bool, default=False),
    )  # fmt: skip
    refuse_together(features_of(made), given.refuse, str(given))
    return made


def refuse_raw_combination(
    statements: Mapping[str, Statement], schemas: Mapping[str, Schema], document: Node
) -> None:
    """Refuse invalid combinations of tables and transactions."""
    raws = {name: s for name, s in statements.items() if isinstance(s, rw.Raw)}
    other = next((name for name in statements if name not in raws), None)
    tracked = {name for name, schema in schemas.items() if TRACKED in schema.properties}
    tracked |= {raw.target for raw in raws.values() if _tracks(raw)}
    for name, schema in schemas.items():
        of_table = replace(document, path=f"table {name}")
        if other is not None:
            found = features_of(schema=schema)
            refuse_together(
                found | {"a transaction that is not raw"},
                document.refuse,
                f"transactions.{other}",
                table=name,
            )
            refuse_together(found | {"a table by SQL"}, document.refuse, f"table {name}")
        _counted(schema.files, of_table, tracked=name in tracked)
    absent = {name for name, schema in schemas.items() if schema.files}
    absent |= {raw.target for raw in raws.values() if raw.adds}
    for name, statement in statements.items():
        table = next(iter(absent.intersection(_scanned(statement))), None)
        if table is not None:
            both: set[Feature] = {"a statement that reads rows", "files"}
            refuse_together(both, document.refuse, f"transactions.{name}", table=table)
    for name, raw in raws.items():
        adds = replace(document, path=f"transactions.{name}.adds")
        _counted(raw.adds, adds, tracked=raw.target in tracked)


def _counted(files: Iterable[RawFile], node: Node, *, tracked: bool) -> None:
    """Refuse files with an unknown number of rows where Delta needs it."""
    for file in files:
        found = set(features_of(file=file))
        if tracked:
            found.add("row tracking")
        refuse_together(found, node.refuse, str(node), file=file.path)


def read_target(given: Node, schemas: Mapping[str, Schema]) -> str:
    """Return the table of a transaction; the key may be missing if there is only one table."""
    default = "" if len(schemas) > 1 else next(iter(schemas))
    target: str = given.get("table", str, default)
    if target not in schemas:
        given.refuse(f"{given}.table names the table that is written{near(target, schemas)}")
    return target


# Reads


def _raw_read(read: Node, schema: Schema, name: str) -> rw.RawRead:
    """Return a read of a raw transaction: filter, table, query, partitions or application ID."""
    match read.value:
        case str(text):
            full = text.strip().lower() == "true"
            return rw.Filter(text, None if full else _condition(text, read, schema))
        case {"whole_table": True, **rest} if not rest:
            return rw.WholeTable()
        case {"sql": str(sql), **rest} if not rest:
            query = read_statement(sql, {schema.name: schema}, f"{read.place}, {name}")
            if not isinstance(query, Read):
                read.refuse(f"{read} has '{sql}'; expected a query")
            return rw.Scan(sql, query.query)
        case {"partitions": list(partitions), **rest} if partitions and not rest:
            if not schema.partition_indexes:
                read.refuse(f"{read} has partitions, and table {schema.name} has none")
            return rw.InPartitions(tuple(_partition(read, p, schema) for p in partitions))
        case {"app_id": str(app), **rest} if not rest:
            return rw.Application(app)
    read.refuse(f"{read} holds {show_value(read.value)}; a read is {READS}")


def _condition(text: str, read: Node, schema: Schema) -> Expr | None:
    """Return the parsed condition of a filter, as the WHERE of a DELETE."""
    sql = f"DELETE FROM {schema.name} WHERE {text}"
    statement = read_statement(sql, {schema.name: schema}, f"{read.place}, a read")
    assert isinstance(statement, Delete)
    return statement.where


# Files


def _file(file: Node, schema: Schema) -> RawFile:
    """Return a file of a raw transaction: path, partition, statistics and deletion vector."""
    if not isinstance(file.value, dict):
        file.refuse(
            f"{file} holds {show_value(file.value)}; a file is {{ path = …, partition = {{ … }} }}"
        )
    file.keys(("path", "partition", "stats", "dv"))
    path = file.get("path", str)
    if not PATH.fullmatch(path):
        file.refuse(f"{file}.path is '{path}'; letters, digits and . _ - = / make a path")
    partition = _partition(file, file.value.get("partition", {}), schema)
    stats = _stats(file.at("stats"), schema)
    vector = file.value.get("dv")
    if vector is not None and not (isinstance(vector, str) and VECTOR.fullmatch(vector)):
        file.refuse(f"{file}.dv is {show_value(vector)}; expected a name, letters, digits and _")
    return RawFile(path, partition, stats, vector)


def _partition(of: Node, given: object, schema: Schema) -> Row:
    """Return the partition values of a file or read."""
    partition = replace(of, value=given, path=of.under("partition"))
    values = partition.table()
    partition.keys(schema.partitioned_by)
    for name in schema.partitioned_by:
        if name not in values:
            of.refuse(f"{of}: a file of {schema.name} needs partition = {{ {name} = … }}")
    return tuple(
        _typed(partition, values[schema.columns[i].name], schema.columns[i].type)
        for i in schema.partition_indexes
    )


def _typed(partition: Node, value: object, type_: Type) -> Value:
    """Return a typed partition value; in the log they are strings."""
    if value == {"null": True}:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    match type_:
        case "INT" | "BIGINT" if WHOLE.fullmatch(text):
            return int(text)
        case "BOOLEAN" if text in ("true", "false"):
            return text == "true"
        case "STRING" if isinstance(value, str):
            return text
        case "DATE":
            try:
                return date.fromisoformat(text)
            except ValueError:
                pass
    partition.refuse(f"{partition}: {show_value(value)} is not of type {type_}")


def _stats(stats: Node, schema: Schema) -> Mapping[str, Any] | None:
    """Return the statistics of a file, or None if absent; `numRecords` is required."""
    if stats.value is None:
        return None
    said = stats.table()
    stats.keys(("numRecords", "minValues", "maxValues", "nullCount"))
    if type(said.get("numRecords")) is not int:
        stats.refuse(f"{stats} needs 'numRecords' (a whole number)")
    columns = [c.name for c in schema.columns]
    for key in said.keys() - {"numRecords"}:
        stats.inner(key).keys(columns)
    return said


def _removal(removed: Node, schema: Schema) -> RawFile:
    """Return a removed file: a string names a file of the table, a TOML table describes one."""
    if not isinstance(removed.value, str):
        return _file(removed, schema)
    own = {file.path: file for file in schema.files}
    if removed.value not in own:
        near_miss = near(removed.value, own)
        removed.refuse(f"{removed}: table {schema.name} has no file '{removed.value}'{near_miss}")
    return own[removed.value]


# Actions other than those on files


def read_app(given: Node) -> tuple[str, int] | None:
    """Return the value of ``app = { id = "loader", version = 7 }``."""
    if "app" not in given:
        return None
    app = given.inner("app")
    app.keys(("id", "version"))
    version = app.value.get("version")
    if type(version) is not int or version < 0:
        app.refuse(f"{app}.version is {show_value(version)}; expected an integer")
    return app.get("id", str), version


def _metadata(given: Node) -> rw.MetadataChange | None:
    """Return the metadata change of a raw transaction, or None."""
    if "metadata" not in given:
        return None
    metadata = given.inner("metadata")
    metadata.keys(("configuration", "unset", "id", "name", "description"))
    configuration = metadata.inner("configuration", {})
    for key in configuration.value:
        configuration.get(key, str)
    texts = (
        metadata.get(key, str) if key in metadata else None for key in ("id", "name", "description")
    )
    return rw.MetadataChange(configuration.value, metadata.strings("unset"), *texts)


def _protocol(given: Node) -> rw.ProtocolChange | None:
    """Return the protocol change of a raw transaction, or None; refuse unsupported features."""
    if "protocol" not in given:
        return None
    protocol = given.inner("protocol")
    protocol.keys(("features",))
    features = protocol.strings("features")
    for feature in features:
        if feature not in FEATURES:
            protocol.refuse(f"{protocol}: '{feature}' is not modelled{near(feature, FEATURES)}")
    return rw.ProtocolChange(frozenset(features))


def _scanned(statement: Statement) -> tuple[str, ...]:
    """Return the tables whose files a statement reads."""
    match statement:
        case Delete(target=target) | Update(target=target) | Merge(target=target):
            return (target,)
        case Optimize(target=target):
            return (target,)
        case Read(query=query) | Insert(query=query):
            return tuple(branch.table for branch in query if isinstance(branch, Select))
    return ()


def _tracks(raw: rw.Raw) -> bool:
    """Return whether a transaction enables row tracking."""
    wanted = () if raw.metadata is None else needed_features(raw.metadata.configuration)
    named = () if raw.protocol is None else raw.protocol.features
    return "rowTracking" in (*wanted, *named)


def _said(table: TomlTable) -> str:
    """Return a description of a raw transaction: its keys as written."""

    def words() -> Iterator[str]:
        for key, value in table.items():
            if key != "table":
                yield f"{key.replace('_', ' ')} {_plain(value)}"

    return "; ".join(words())


def _plain(value: object) -> str:
    """Return a TOML value as words."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return " ".join(f"{k} {_plain(v)}" for k, v in value.items()) or "as it is"
        case list():
            return ", ".join(map(_plain, value)) or "nothing"
    return str(value)
