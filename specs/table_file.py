"""What litmus and scope files have in common: TOML, shapes, tables, and one way to refuse."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, NoReturn

from isolitmus.model.errors import LitmusError, near
from isolitmus.model.schema import TYPES, Column, Schema
from isolitmus.model.statement import Read
from isolitmus.specs.sql import read_statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.statement import Statement

__all__ = ["NAME", "FileReader", "Table", "read_toml"]

Table = dict[str, Any]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OFF_PROPERTIES = {"delta.enabledeletionvectors": "false"}
"""Table properties that the model knows, with the one value that it models."""


def read_toml(text: str, label: str) -> Table:
    """The TOML document; a syntax error is a LitmusError with its line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LitmusError(f"{label}: this is no TOML: {error}") from None
    except RecursionError:
        raise LitmusError(f"{label}: nested too deeply") from None


class FileReader:
    """Reads parts of a document; ``label`` is the file's name in messages."""

    def __init__(self, label: str) -> None:
        self.label = label

    def refuse(self, problem: str) -> NoReturn:
        raise LitmusError(f"{self.label}: {problem}")

    # Shapes

    def keys(self, table: Table, where: str, known: Iterable[str]) -> None:
        for key in table:
            if key not in known:
                place = f"[{where}]" if where else "the file"
                self.refuse(f"{place} has no key '{key}'{near(key, known)}")

    def get(self, table: Table, where: str, key: str, kind: type, default: Any = None) -> Any:
        value = table.get(key, default)
        if value is None and default is None:
            place = f"[{where}]" if where else "the file"
            self.refuse(f"{place} needs '{key}' ({_words(kind)})")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            place = f"{where}.{key}" if where else key
            self.refuse(f"{place} is {value!r}; {_words(kind)} is wanted")
        return value

    def strings(self, table: Table, where: str, key: str) -> tuple[str, ...]:
        values = self.get(table, where, key, list, [])
        for value in values:
            if not isinstance(value, str):
                self.refuse(f"{where}.{key} holds {value!r}; texts are wanted")
        return tuple(values)

    # Tables

    def tables(
        self, document: Table
    ) -> tuple[dict[str, Schema], tuple[tuple[Statement, ...], ...]]:
        if "table" in document and "tables" in document:
            self.refuse("has [table] and [tables]; one table t or several named ones, not both")
        if "tables" in document:
            declared = self.get(document, "", "tables", dict)
        else:
            declared = {"t": self.get(document, "", "table", dict)}
        schemas = {name: self.schema(name, declared[name]) for name in declared}
        alternatives: list[tuple[Statement, ...]] = [()]
        for name, table in declared.items():
            where = "table" if "table" in document else f"tables.{name}"
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
            self.refuse(f"{where}.init holds {sql!r}; SQL texts are wanted")
        statement = read_statement(sql, schemas, f"{self.label}, {where}.init")
        if isinstance(statement, Read):
            self.refuse(
                f"{where}.init holds a query, '{sql}'; only statements that write fill a table"
            )
        return statement

    def schema(self, name: str, table: object) -> Schema:
        if not isinstance(table, dict):
            self.refuse(f"[tables.{name}] is no table")
        where = "table" if name == "t" else f"tables.{name}"
        known = ("columns", "partitioned_by", "properties", "rows_per_file", "init")
        self.keys(table, where, known)
        columns = tuple(
            self.column(where, part) for part in self.get(table, where, "columns", str).split(",")
        )
        names = [c.name.lower() for c in columns]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            self.refuse(f"{where}.columns names '{twice}' twice")
        partitions = self.strings(table, where, "partitioned_by")
        for partition in partitions:
            if partition.lower() not in names:
                self.refuse(
                    f"{where}.partitioned_by names no column: '{partition}'{near(partition, names)}"
                )
        if len(partitions) == len(columns):
            self.refuse(f"{where}.partitioned_by takes every column; at least one must hold data")
        rows_per_file = table.get("rows_per_file")
        if rows_per_file is not None and (type(rows_per_file) is not int or rows_per_file < 1):
            self.refuse(
                f"{where}.rows_per_file is {rows_per_file!r}; a whole number from 1 is wanted"
            )
        properties = self.get(table, where, "properties", dict, {})
        for key, value in properties.items():
            if OFF_PROPERTIES.get(key.lower()) != value:
                self.refuse(
                    f"{where}.properties: {key} = {value!r} is not modelled;"
                    " known: delta.enableDeletionVectors = 'false'"
                )
        return Schema(name, columns, partitions, properties, rows_per_file)

    def column(self, where: str, text: str) -> Column:
        words = text.split()
        if len(words) != 2 or not NAME.fullmatch(words[0]):
            self.refuse(f"{where}.columns: '{text.strip()}' is no column; write NAME TYPE, …")
        type_ = words[1].upper()
        if type_ not in TYPES:
            self.refuse(f"{where}.columns: no type '{words[1]}'{near(type_, TYPES)}")
        return Column(words[0], type_)


def _words(kind: type) -> str:
    return {str: "a text", dict: "a table", list: "a list", bool: "true or false"}.get(
        kind, kind.__name__
    )
