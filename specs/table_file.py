"""What litmus and scope files have in common: TOML, shapes, tables, and one way to refuse."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, NoReturn

from isolitmus.model.errors import LitmusError, brief, excerpt, near
from isolitmus.model.expression import RANGES
from isolitmus.model.header import FEATURES, MAPPING_MODE, SUPPORTED
from isolitmus.model.schema import TYPES, Column, Identity, Schema
from isolitmus.model.statement import Read
from isolitmus.specs.sql import read_statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.model.statement import Statement

__all__ = ["NAME", "FileReader", "Table", "read_toml"]

Table = dict[str, Any]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"""\"[^"]*\"|'[^']*'|[A-Za-z0-9_-]+""")
KEY = re.compile(
    rf"\s*(?:\[+(?P<header>[^\]]*)\]|(?:{PART.pattern})(?:\s*\.\s*(?:{PART.pattern}))*\s*(?==))"
)
PLACE = re.compile(r"line (\d+), column (\d+)")
LEAST, MOST = RANGES["BIGINT"]
TOO_LARGE = f"a number in it is too large; whole numbers go from {LEAST} to {MOST}"
IDENTITY = re.compile(
    r"(?i)GENERATED\s+(?P<when>ALWAYS|BY\s+DEFAULT)\s+AS\s+IDENTITY(?:\s*\("
    r"(?:\s*START\s+WITH\s+(?P<start>-?\d{1,9}))?(?:\s*\bINCREMENT\s+BY\s+(?P<step>-?\d{1,9}))?\s*\))?\s*"
)
SWITCHES = ("delta.enabledeletionvectors", "delta.enablechangedatafeed")
"""The table properties that the model knows, each "true" or "false"."""


def read_toml(text: str, label: str) -> Table:
    """The TOML document; a syntax error is a LitmusError with its place."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).partition(" (at ")
        found = PLACE.match(place)
        end = text.rstrip()
        line = int(found[1]) if found else end.count("\n") + 1
        column = int(found[2]) if found else len(end) - end.rfind("\n")
        raise LitmusError(
            f"{label}:{line}:{column}: this is no TOML: {what}{excerpt(text, line, column)}"
        ) from None
    except ValueError:
        raise LitmusError(f"{label}: {TOO_LARGE}") from None
    except RecursionError:
        raise LitmusError(f"{label}: its values are nested too deeply") from None
    todo: list[object] = [document]
    while todo:
        match todo.pop():
            case dict() as table:
                todo += table.values()
            case list() as values:
                todo += values
            case int() as number if not LEAST <= number <= MOST:
                raise LitmusError(f"{label}: {TOO_LARGE}")
    return document


class FileReader:
    """Reads parts of a document; ``label`` is the file's name in messages, ``text`` what it holds."""

    def __init__(self, label: str, text: str) -> None:
        self.label = label
        self.text = text

    def refuse(self, problem: str, where: str = "") -> NoReturn:
        """Raise a LitmusError; a problem begins with the key that it is about, or that is ``where``."""
        if not where:
            where = problem.lstrip("[").split(maxsplit=1)[0].rstrip("]:")
        raise LitmusError(f"{self.place(where)}: {brief(problem)}")

    def place(self, where: str) -> str:
        """The file, and the line of a key such as ``table.columns``."""
        line = _line(self.text, where)
        return f"{self.label}:{line}" if line else self.label

    def place_of(self, where: str, text: str) -> str:
        """The file, and the line of a text in the list of a key; of the key if it is not told from it."""
        first = _line(self.text, where)
        lines = self.text.split("\n")
        for number in range(first, len(lines) + 1) if first else ():
            if text and text in lines[number - 1]:
                return f"{self.label}:{number}"
        return self.place(where)

    def shown(self, value: object) -> str:
        """A value as a message shows it."""
        return brief(repr(value), 80)

    # Shapes

    def keys(self, table: Table, where: str, known: Iterable[str]) -> None:
        for key in table:
            if key not in known:
                place = f"[{where}]" if where else "the file"
                inner = f"{where}.{key}" if where else key
                self.refuse(f"{place} has no key '{key}'{near(key, known)}", inner)

    def get(self, table: Table, where: str, key: str, kind: type, default: Any = None) -> Any:
        value = table.get(key, default)
        if value is None and default is None:
            place = f"[{where}]" if where else "the file"
            self.refuse(f"{place} needs '{key}' ({_words(kind)})")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            place = f"{where}.{key}" if where else key
            self.refuse(f"{place} is {self.shown(value)}; {_words(kind)} is wanted")
        return value

    def named(
        self, table: Table, where: str, key: str, what: str, known: Iterable[str]
    ) -> tuple[str, ...]:
        """Names of specs in the catalogue, or paths of theirs."""
        names = self.strings(table, where, key)
        for name in names:
            if name not in known and not name.endswith(".cat"):
                self.refuse(f"{where}.{key} names no {what}: '{name}'{near(name, known)}")
        return names

    def strings(self, table: Table, where: str, key: str) -> tuple[str, ...]:
        values = self.get(table, where, key, list, [])
        for value in values:
            if not isinstance(value, str):
                place = f"{where}.{key}" if where else key
                self.refuse(f"{place} holds {self.shown(value)}; texts are wanted")
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
            "files", "exists",
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
            exists=exists,
            clustered_by=clusters,
        )

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


def _line(text: str, key: str) -> int:
    r"""The line (from 1) that sets a key, or else the nearest that it is in; 0 if there is none.

    >>> _line("[table]\ninit = []\ncolumns = 'id'", "table.columns")
    3
    """
    header, best, found = "", "", 0
    for number, line in enumerate(text.split("\n"), 1):
        match = KEY.match(line)
        if match is None:
            continue
        name = ".".join(part.strip(" \t\"'") for part in PART.findall(match["header"] or match[0]))
        if match["header"]:
            header = name
        elif header:
            name = f"{header}.{name}"
        if len(name) > len(best) and f"{key}.".startswith(f"{name}."):
            best, found = name, number
    return found


def _words(kind: type) -> str:
    return {str: "a text", dict: "a table", list: "a list", bool: "true or false"}[kind]
