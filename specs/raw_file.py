"""Read raw transactions of a litmus file, and the files that their table is said to have."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, cast

from isolitmus.model import raw as rw
from isolitmus.model.errors import near
from isolitmus.model.header import FEATURES
from isolitmus.model.statement import Delete, Read
from isolitmus.specs.sql import read_statement
from isolitmus.specs.table_file import TableReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.expression import Expr
    from isolitmus.model.schema import Schema, Type
    from isolitmus.model.values import Row, Value
    from isolitmus.specs.toml_file import Table

__all__ = ["RAW_KEYS", "RawReader"]

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
"""The keys that make a transaction a raw one."""
OTHER_KEYS = ("app", "table")
PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=/-]*")
WHOLE = re.compile(r"-?[0-9]+")
READS = '"condition", { whole_table = true }, { sql = "…" }, { partitions = [{ … }] } or { app_id = "…" }'

TRACKED = "delta.feature.rowTracking"
"""The property of a table on which rows may be tracked."""


class RawReader(TableReader):
    """Reads raw transactions."""

    def schema(self, name: str, table: object, where: str) -> Schema:
        schema = super().schema(name, table, where)
        assert isinstance(table, dict)
        files = self.listed(table, where, "files")
        made = tuple(self.file(file, f"{where}.files", schema) for file in files)
        paths = [file.path for file in made]
        twice = next((path for path in paths if paths.count(path) > 1), None)
        if twice is not None:
            self.refuse(f"{where}.files has '{twice}' twice")
        if made and table.get("init"):
            self.refuse(
                f"{where} has files and init: files that are only said to be there, or real ones"
            )
        return replace(schema, files=made)

    def raw(self, name: str, table: Table, where: str, schemas: Mapping[str, Schema]) -> rw.Raw:
        """The raw transaction; LitmusError for a key or a value that it cannot have."""
        self.keys(table, where, (*RAW_KEYS, *OTHER_KEYS))
        target = self.target(table, where, schemas)
        schema = schemas[target]
        operation = self.get(table, where, "operation", str, "Truncate")
        if operation not in rw.OPERATIONS:
            self.refuse(
                f"{where}.operation is '{operation}', which is not modelled"
                f"{near(operation, rw.OPERATIONS)}"
            )
        if rw.OPERATIONS[operation].backfill and TRACKED not in schema.properties:
            self.refuse(
                f"{where}.operation is {operation}, and {target} has not {TRACKED}: of such a table Delta's"
                " check asserts that nobody does that"
            )
        made = rw.Raw(
            _said(table),
            target,
            tuple(self.look(read, where, schema, name) for read in self.reads(table, where)),
            tuple(self.file(add, f"{where}.adds", schema) for add in self.listed(table, where, "adds")),
            tuple(self.removal(path, where, schema) for path in self.listed(table, where, "removes")),
            self.flag(table, where, "data_change", default=True),
            self.app(table, where),
            self.metadata(table, where),
            self.protocol(table, where),
            self.strings(table, where, "domains"),
            operation,
            self.flag(table, where, "blind", default=False) if "blind" in table else None,
            self.flag(table, where, "large", default=False),
        )  # fmt: skip
        if made.large and (made.reads or made.app or made.blind is not None):
            self.refuse(
                f"{where}.large: commitLarge checks no reads and takes files and domains only"
            )
        return made

    def target(self, table: Table, where: str, schemas: Mapping[str, Schema]) -> str:
        """The table that a transaction is on; it may be left out if there is one."""
        default = "" if len(schemas) > 1 else next(iter(schemas))
        target: str = self.get(table, where, "table", str, default)
        if target not in schemas:
            self.refuse(f"{where}.table names the table that is written{near(target, schemas)}")
        return target

    def listed(self, table: Table, where: str, key: str) -> list[Any]:
        return cast("list[Any]", self.get(table, where, key, list, []))

    def flag(self, table: Table, where: str, key: str, *, default: bool) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            self.refuse(f"{where}.{key} is {self.shown(value)}; true or false is wanted")
        return value

    # Reads

    def reads(self, table: Table, where: str) -> list[Any]:
        if table.get("reads") == "table":
            return [{"whole_table": True}]
        return self.listed(table, where, "reads")

    def look(self, read: object, where: str, schema: Schema, name: str) -> rw.Look:
        where = f"{where}.reads"
        match read:
            case str():
                full = read.strip().lower() == "true"
                return rw.Filter(read, None if full else self.condition(read, where, schema))
            case {"whole_table": True, **rest} if not rest:
                return rw.WholeTable()
            case {"sql": str(sql), **rest} if not rest:
                query = read_statement(sql, {schema.name: schema}, f"{self.place(where)}, {name}")
                if not isinstance(query, Read):
                    self.refuse(f"{where} has '{sql}'; a query is wanted")
                return rw.Scan(sql, query.query)
            case {"partitions": list(partitions), **rest} if partitions and not rest:
                if not schema.partition_indexes:
                    self.refuse(f"{where} has partitions, and table {schema.name} has none")
                return rw.InPartitions(tuple(self.partition(p, where, schema) for p in partitions))
            case {"app_id": str(app), **rest} if not rest:
                return rw.Application(app)
        self.refuse(f"{where} holds {self.shown(read)}; a read is {READS}")

    def condition(self, text: str, where: str, schema: Schema) -> Expr | None:
        sql = f"DELETE FROM {schema.name} WHERE {text}"
        statement = read_statement(sql, {schema.name: schema}, f"{self.place(where)}, a read")
        assert isinstance(statement, Delete)
        return statement.where

    # Files

    def file(self, file: object, where: str, schema: Schema) -> rw.RawFile:
        if not isinstance(file, dict):
            self.refuse(
                f"{where} holds {self.shown(file)}; a file is {{ path = …, partition = {{ … }} }}"
            )
        self.keys(file, where, ("path", "partition", "stats", "dv"))
        path = self.get(file, where, "path", str)
        if not PATH.fullmatch(path):
            self.refuse(f"{where}.path is '{path}'; letters, digits and . _ - = / make a path")
        partition = self.partition(file.get("partition", {}), where, schema)
        stats = self.stats(file.get("stats"), where, schema)
        vector = file.get("dv")
        if vector is not None and not isinstance(vector, str):
            self.refuse(f"{where}.dv is {self.shown(vector)}; a name is wanted")
        return rw.RawFile(path, partition, stats, vector)

    def partition(self, given: object, where: str, schema: Schema) -> Row:
        if not isinstance(given, dict):
            self.refuse(f"{where}.partition is {self.shown(given)}; a table is wanted")
        self.keys(given, f"{where}.partition", schema.partitioned_by)
        for name in schema.partitioned_by:
            if name not in given:
                self.refuse(f"{where}: a file of {schema.name} needs partition = {{ {name} = … }}")
        return tuple(
            self.typed(given[schema.columns[i].name], where, schema.columns[i].type)
            for i in schema.partition_indexes
        )

    def typed(self, value: object, where: str, type_: Type) -> Value:
        """A partition's value: in the log they are texts."""
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
        self.refuse(f"{where}.partition: {self.shown(value)} is no {type_}")

    def stats(self, stats: object, where: str, schema: Schema) -> Mapping[str, Any] | None:
        if stats is None:
            return None
        if not isinstance(stats, dict):
            self.refuse(f"{where}.stats is {self.shown(stats)}; a table is wanted")
        where = f"{where}.stats"
        self.keys(stats, where, ("numRecords", "minValues", "maxValues", "nullCount"))
        if type(stats.get("numRecords")) is not int:
            self.refuse(f"{where} needs 'numRecords' (a whole number)")
        columns = [c.name for c in schema.columns]
        for key in stats.keys() - {"numRecords"}:
            self.keys(self.get(stats, where, key, dict), f"{where}.{key}", columns)
        return stats

    def removal(self, removed: object, where: str, schema: Schema) -> rw.RawFile:
        """A text is one of the table's own files; a table is taken literally."""
        where = f"{where}.removes"
        if not isinstance(removed, str):
            return self.file(removed, where, schema)
        own = {file.path: file for file in schema.files}
        if removed not in own:
            self.refuse(f"{where}: table {schema.name} has no file '{removed}'{near(removed, own)}")
        return own[removed]

    # What is about no file

    def app(self, table: Table, where: str) -> tuple[str, int] | None:
        """``app = { id = "loader", version = 7 }``."""
        if "app" not in table:
            return None
        app = self.get(table, where, "app", dict)
        self.keys(app, f"{where}.app", ("id", "version"))
        version = app.get("version")
        if type(version) is not int or version < 0:
            self.refuse(f"{where}.app.version is {self.shown(version)}; a whole number is wanted")
        return self.get(app, f"{where}.app", "id", str), version

    def metadata(self, table: Table, where: str) -> rw.MetadataChange | None:
        if "metadata" not in table:
            return None
        given = self.get(table, where, "metadata", dict)
        where = f"{where}.metadata"
        self.keys(given, where, ("configuration", "unset", "id", "name", "description"))
        configuration = self.get(given, where, "configuration", dict, {})
        for key in configuration:
            self.get(configuration, f"{where}.configuration", key, str)
        texts = (
            self.get(given, where, key, str) if key in given else None
            for key in ("id", "name", "description")
        )
        return rw.MetadataChange(configuration, self.strings(given, where, "unset"), *texts)

    def protocol(self, table: Table, where: str) -> rw.ProtocolChange | None:
        if "protocol" not in table:
            return None
        given = self.get(table, where, "protocol", dict)
        where = f"{where}.protocol"
        self.keys(given, where, ("features",))
        features = self.strings(given, where, "features")
        for feature in features:
            if feature not in FEATURES:
                self.refuse(f"{where}: '{feature}' is not modelled{near(feature, FEATURES)}")
        return rw.ProtocolChange(frozenset(features))


def _said(table: Table) -> str:
    """A raw transaction in words: its keys as they stand."""

    def words() -> Iterator[str]:
        for key, value in table.items():
            if key != "table":
                yield f"{key.replace('_', ' ')} {_plain(value)}"

    return "; ".join(words())


def _plain(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return " ".join(f"{k} {_plain(v)}" for k, v in value.items()) or "as it is"
        case list():
            return ", ".join(map(_plain, value)) or "nothing"
    return str(value)
