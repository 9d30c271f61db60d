"""What files in TOML have in common: keys, shapes, rows, and one way to refuse."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from typing import TYPE_CHECKING, Any, NoReturn, cast

from isolitmus.model.errors import LitmusError, brief, excerpt, near
from isolitmus.model.expression import RANGES
from isolitmus.model.schema import TYPES
from isolitmus.model.values import sort_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.model.schema import Type
    from isolitmus.model.values import Row, Rows, Value

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
VALUES: Mapping[Type, tuple[type, ...]] = {
    "INT": (int,),
    "BIGINT": (int,),
    "STRING": (str,),
    "DATE": (date,),
    "BOOLEAN": (bool,),
}


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

    # Rows

    def rows(self, rows: object, where: str, types: Sequence[Type]) -> Rows:
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            self.refuse(f"{where} is no list of rows; write [[1, 0], [2, 1]]")
        return sort_rows(self.row(row, where, types) for row in rows)

    def row(self, row: list[Any], where: str, types: Sequence[Type]) -> Row:
        if len(row) != len(types):
            self.refuse(f"{where}: row {self.shown(row)} has not {len(types)} values")
        return tuple(
            self.value(value, where, type_) for value, type_ in zip(row, types, strict=True)
        )

    def value(self, value: object, where: str, wanted: Type) -> Value:
        if value == {"null": True}:
            return None
        type_ = next((t for t in TYPES if type(value) in VALUES[t]), None)
        if type_ is None:
            self.refuse(
                f"{where}: {self.shown(value)} is no value; write a number, a text, a boolean,"
                " a date or { null = true }"
            )
        if VALUES[type_] != VALUES[wanted]:
            self.refuse(f"{where}: {self.shown(value)} is no {wanted}")
        if type(value) is int and not RANGES[wanted][0] <= value <= RANGES[wanted][1]:
            self.refuse(f"{where}: {value} does not fit into {wanted}")
        return cast("Value", value)


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
    words = {str: "a text", dict: "a table", list: "a list", bool: "true or false"}
    return {**words, int: "a whole number"}[kind]
