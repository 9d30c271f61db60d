"""The tables of litmus and scope files: columns, partitions, what is in them at the start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.errors import near
from isolitmus.model.header import FEATURES, MAPPING_MODE, SUPPORTED
from isolitmus.model.schema import TYPES, Column, Identity, Schema
from isolitmus.model.statement import Read
from isolitmus.specs.sql import read_statement
from isolitmus.specs.toml_file import NAME, FileReader, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Rows

__all__ = ["TableReader"]

IDENTITY = re.compile(
    r"(?i)GENERATED\s+(?P<when>ALWAYS|BY\s+DEFAULT)\s+AS\s+IDENTITY(?:\s*\("
    r"(?:\s*START\s+WITH\s+(?P<start>-?\d{1,9}))?(?:\s*\bINCREMENT\s+BY\s+(?P<step>-?\d{1,9}))?\s*\))?\s*"
)
SWITCHES = ("delta.enabledeletionvectors", "delta.enablechangedatafeed")
"""The table properties that the model knows, each "true" or "false"."""


class TableReader(FileReader):
    """Reads ``[table]`` or ``[tables.…]`` of a document."""

    def tables(
        self, document: Table
    ) -> tuple[dict[str, Schema], tuple[tuple[Statement, ...], ...]]:
        if "table" in document and "tables" in document:
            self.refuse("has [table] and [tables]; one table t or several named ones, not both")
        if "tables" in document:
            declared = self.get(document, "", "tables", dict)
        else:
            declared = {"t": self.get(document, "", "table", dict)}
        if not declared:
            self.refuse("[tables] is empty")
        folded: dict[str, str] = {}
        for name in declared:
            if not NAME.fullmatch(name):
                self.refuse(f"table '{name}': a name is letters, digits and _", f"tables.{name}")
            other = folded.setdefault(name.lower(), name)
            if other != name:
                self.refuse(
                    f"tables '{other}' and '{name}' have one name; SQL ignores case",
                    f"tables.{name}",
                )
        place = "table" if "table" in document else "tables.{}"
        schemas = {
            name: self.schema(name, table, place.format(name)) for name, table in declared.items()
        }
        alternatives: list[tuple[Statement, ...]] = [()]
        for name, table in declared.items():
            where = place.format(name)
            inits = self.get(table, where, "init", list, [])
            lists = inits if inits and all(isinstance(i, list) for i in inits) else [inits]
            alternatives = [
                before + tuple(self.init(sql, where, schemas) for sql in init)
                for before in alternatives
                for init in lists
            ]
        return schemas, tuple(alternatives)

    def init(self, sql: object, where: str, schemas: Mapping[str, Schema]) -> Statement:
        if not isinstance(sql, str):
            self.refuse(f"{where}.init holds {self.shown(sql)}; SQL texts are wanted")
        place = self.place(f"{where}.init")
        statement = read_statement(sql, schemas, f"{place}, in init")
        if isinstance(statement, Read):
            self.refuse(
                f"{where}.init holds a query, '{sql}'; only statements that write fill a table"
            )
        return statement

    def schema(self, name: str, table: object, where: str) -> Schema:
        if not isinstance(table, dict):
            self.refuse(f"{where} is {self.shown(table)}; a table is wanted")
        known = (
            "columns", "partitioned_by", "clustered_by", "properties", "rows_per_file", "init",
            "files", "exists", "parquet",
        )  # fmt: skip
        self.keys(table, where, known)
        columns = tuple(
            self.column(where, part) for part in self.get(table, where, "columns", str).split(",")
        )
        names = [c.name.lower() for c in columns]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            self.refuse(f"{where}.columns names '{twice}' twice")
        partitions = self.some_columns(table, where, "partitioned_by", names)
        for partition in partitions:
            column = columns[names.index(partition.lower())]
            if column.identity is not None:
                self.refuse(
                    f"{where}.partitioned_by names the identity column {column.name}, which Delta refuses"
                )
        clusters = self.some_columns(table, where, "clustered_by", names)
        if partitions and clusters:
            self.refuse(
                f"{where}.clustered_by: {name} has partitions, and Delta allows only one of both"
            )
        if len(partitions) == len(columns):
            self.refuse(f"{where}.partitioned_by takes every column; at least one must hold data")
        rows_per_file = table.get("rows_per_file")
        if rows_per_file is not None and (type(rows_per_file) is not int or rows_per_file < 1):
            self.refuse(
                f"{where}.rows_per_file is {self.shown(rows_per_file)}; a whole number from 1 is wanted"
            )
        properties = self.get(table, where, "properties", dict, {})
        for key, value in properties.items():
            switch = key.lower() in SWITCHES and value in ("true", "false")
            switch |= key == MAPPING_MODE and value == "name"
            feature = key.startswith(SUPPORTED) and value == "supported"
            if not switch and not (feature and key.removeprefix(SUPPORTED) in FEATURES):
                self.refuse(
                    f"{where}.properties: {key} = {self.shown(value)} is not modelled;"
                    " known: delta.enableDeletionVectors and delta.enableChangeDataFeed,"
                    ' "true" or "false", delta.columnMapping.mode, "name", and delta.feature.NAME,'
                    ' "supported"'
                )
        exists = self.get(table, where, "exists", bool, default=True)
        parquet = self.parquet(table, where, columns, partitions)
        for key in ("init", "files", "properties", "clustered_by"):
            if not exists and table.get(key):
                tell = "leave one of the two out"
                if key == "properties":
                    tell = "the statement that makes the table says TBLPROPERTIES"
                self.refuse(
                    f"{where}.{key} is of a table that is there, and exists = false; {tell}"
                )
        return Schema(
            name,
            columns,
            partitions,
            properties,
            rows_per_file,
            exists=exists and not parquet,
            clustered_by=clusters,
            parquet=parquet,
        )

    def parquet(
        self,
        table: Table,
        where: str,
        columns: tuple[Column, ...],
        partitions: tuple[str, ...],
    ) -> Rows:
        """The rows of a Parquet table that is to be converted; none if it is a Delta table."""
        if "parquet" not in table:
            return ()
        for key in ("init", "files", "exists", "clustered_by"):
            if key in table:
                self.refuse(f"{where}.{key} is of a Delta table, and parquet tells of another one")
        rows = self.rows(table["parquet"], f"{where}.parquet", [c.type for c in columns])
        if not rows:
            self.refuse(f"{where}.parquet is empty; Delta converts no table without files")
        last = [c.name.lower() for c in columns[len(columns) - len(partitions) :]]
        if [name.lower() for name in partitions] != last:
            self.refuse(
                f"{where}.partitioned_by: the partition columns of a Parquet table come last"
            )
        if any(column.identity is not None for column in columns):
            self.refuse(f"{where}.columns has identity columns, which a Parquet table has not")
        for key in table.get("properties", {}):
            if key.lower() not in SWITCHES:
                self.refuse(f"{where}.properties: {key} is not modelled for a Parquet table")
        return rows

    def some_columns(
        self, table: Table, where: str, key: str, names: Sequence[str]
    ) -> tuple[str, ...]:
        """Some of a table's columns (``names``, in lower case), by name."""
        given = self.strings(table, where, key)
        if len({name.lower() for name in given}) < len(given):
            self.refuse(f"{where}.{key} names a column twice")
        for name in given:
            if name.lower() not in names:
                self.refuse(f"{where}.{key} names no column: '{name}'{near(name, names)}")
        return given

    def column(self, where: str, text: str) -> Column:
        words = text.split(maxsplit=2)
        if len(words) < 2 or not NAME.fullmatch(words[0]):
            self.refuse(f"{where}.columns: '{text.strip()}' is no column; write NAME TYPE, …")
        type_ = words[1].upper()
        if type_ not in TYPES:
            self.refuse(f"{where}.columns: no type '{words[1]}'{near(type_, TYPES)}")
        identity = self.identity(f"{where}.columns", words[0], type_, *words[2:])
        return Column(words[0], type_, identity)

    def identity(self, where: str, name: str, type_: str, text: str = "") -> Identity | None:
        """What follows the type of a column."""
        if not text:
            return None
        found = IDENTITY.fullmatch(text)
        start, step = (1, 1) if found is None else (int(found[k] or 1) for k in ("start", "step"))
        # on the way to 0 Delta would take it for the value of an INSERT without rows
        if found is None or type_ != "BIGINT" or start * step <= 0:
            self.refuse(
                f"{where}: '{name} {type_} {text.strip()}' is no column; write NAME TYPE, or"
                " NAME BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 1), or BY DEFAULT"
                " for ALWAYS; with numbers of at most 9 digits, both above 0 or both below"
            )
        return Identity(found["when"].upper() == "ALWAYS", start, step)
