"""Common parts of TOML readers: keys, types of values, rows, and refusals with a place."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from isolitmus.model.assumption import Place
from isolitmus.model.errors import LitmusError, UnknownName, brief, excerpt, near
from isolitmus.specs.disk.input_files import DEEPEST, ENTRIES, TEXT, inner_values, is_deeper

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Rows, Value

DELTA: Literal["delta"] = "delta"
"""Format of a file that names none."""


TomlTable = dict[str, Any]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"""\"[^"]*\"|'[^']*'|[A-Za-z0-9_-]+""")
KEY = re.compile(
    rf"\s*(?:\[++(?P<header>[^\]]*)\]|(?:{PART.pattern})(?:\s*\.\s*(?:{PART.pattern}))*\s*(?==))"
)
PLACE = re.compile(r"line (\d+), column (\d+)")
LEAST, MOST = -(2**63), 2**63 - 1
TOO_LARGE = f"a number in it is too large; whole numbers go from {LEAST} to {MOST}"
TOO_DEEP = f"its values are nested more than {DEEPEST} deep"
VALUES: Mapping[Type, tuple[type, ...]] = {
    "INT": (int,),
    "BIGINT": (int,),
    "STRING": (str,),
    "DATE": (date,),
    "BOOLEAN": (bool,),
    "DOUBLE": (float, int),
    "TIMESTAMP": (datetime,),
}
DECIMALS = (int, float, str)
"""Python types in which a decimal may be written."""


def read_toml(text: str, label: str) -> TomlTable:
    """Return the TOML document; LitmusError, with the place, for a syntax error."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).partition(" (at ")
        found = PLACE.match(place)
        end = text.rstrip()
        line = int(found[1]) if found else end.count("\n") + 1
        column = int(found[2]) if found else len(end) - end.rfind("\n")
        raise LitmusError(
            f"{label}:{line}:{column}: not valid TOML: {what}{excerpt(text, line, column)}"
        ) from None
    except ValueError:
        raise LitmusError(f"{label}: {TOO_LARGE}") from None
    except RecursionError:
        raise LitmusError(f"{label}: {TOO_DEEP}") from None
    if is_deeper(document, inner_values):
        raise LitmusError(f"{label}: {TOO_DEEP}")
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


@dataclass(frozen=True, slots=True)
class Source:
    """File: its name in messages, and its text."""

    label: str
    text: str = ""
    path: Path | None = None
    """Path of the file; None if the text is in no file."""

    def refuse(self, problem: str, where: str = "") -> NoReturn:
        """Raise a LitmusError about the key `where`, by default the first word of `problem`."""
        if not where:
            where = problem.lstrip("[").split(maxsplit=1)[0].rstrip("]:")
        raise LitmusError(f"{self.place(where)}: {brief(problem)}")

    def place(self, where: str) -> str:
        """Return the file, and the line of a key such as ``table.columns``."""
        line = _line(self.text, where)
        return f"{self.label}:{line}" if line else self.label

    def place_of(self, where: str, text: str) -> str:
        """Return the file, and the line of a text in the list of a key, or of the key if it is not
        found.
        """
        first = _line(self.text, where)
        lines = self.text.split("\n")
        for number in range(first, len(lines) + 1) if first else ():
            if text and text in lines[number - 1]:
                return f"{self.label}:{number}"
        return self.place(where)

    def offset(self, where: str, text: str) -> int | None:
        """Return the position of a key's text in the file; None if it is not there in the form it
        was read.
        """
        line = _line(self.text, where)
        start = sum(map(len, self.text.splitlines(keepends=True)[: max(line - 1, 0)]))
        found = self.text.find(text, start) if text else -1
        return None if found < 0 else found

    def span(self, start: int, end: int) -> Place:
        r"""Return the place of the characters from `start` to `end`.

        Examples
        --------
        >>> Source("a.sql", "-- all\nDELETE FROM t\n").span(7, 20)[:4]
        ('a.sql', 2, 1, 2)
        """
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        last = line + self.text.count("\n", start, end)
        return Place(self.label, line, column, last, self.path)

    def key_place(self, where: str) -> Place:
        """Return the place of the line that sets a key, or of the nearest table around it."""
        line = max(_line(self.text, where), 1)
        return Place(self.label, line, 1, line, self.path)

    def node(self) -> Node:
        """Return the whole document; LitmusError if it is not TOML."""
        return Node(read_toml(self.text, self.label), "", self)


@dataclass(frozen=True, slots=True)
class Node:
    r"""Value in a file, with its ``path`` there, such as ``table.columns``.

    Examples
    --------
    >>> table = Source("f.toml", "[table]\ncolumns = 'id INT'").node().inner("table")
    >>> table.get("columns", str), str(table)
    ('id INT', 'table')
    >>> table.get("init", list)
    Traceback (most recent call last):
    isolitmus.model.errors.LitmusError: f.toml:1: [table] needs 'init' (a list)
    """

    value: Any
    path: str
    source: Source

    def __str__(self) -> str:
        return self.path

    def __contains__(self, key: str) -> bool:
        return key in self.value

    @property
    def place(self) -> str:
        """File and line."""
        return self.source.place(self.path)

    def refuse(self, problem: str, where: str = "") -> NoReturn:
        """Raise a LitmusError about the key `where`, by default the first word of `problem`."""
        self.source.refuse(problem, where)

    # Shapes

    def under(self, key: str) -> str:
        """Return the path of a key of this table."""
        return f"{self.path}.{key}" if self.path else key

    def at(self, key: str, value: Any = None) -> Node:
        """Return the value of a key, of any type, or a value in its place."""
        return Node(self.value.get(key) if value is None else value, self.under(key), self.source)

    def inner(self, key: str, default: TomlTable | None = None, *, most: int = ENTRIES) -> Node:
        """Return the table of a key."""
        return self.at(key, self.get(key, dict, default, most=most))

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yield the keys of this table with their values."""
        return ((key, self.at(key, value)) for key, value in self.value.items())

    def nodes(self) -> Iterator[Node]:
        """Yield the values of this table."""
        return (node for _, node in self.items())

    def table(self) -> TomlTable:
        """Return the value, which has to be a table."""
        if not isinstance(self.value, dict):
            self.refuse(f"{self} is {show_value(self.value)}; expected a table")
        return self.value

    def keys(self, known: Iterable[str]) -> None:
        """Refuse a key that is not in `known`."""
        for key in self.value:
            if key not in known:
                self.refuse(f"{self._named} has no key '{key}'{near(key, known)}", self.under(key))

    def get(self, key: str, kind: type, default: Any = None, *, most: int = ENTRIES) -> Any:
        """Return the value of a key, which has to be of type `kind`, or the default if the key is
        missing.

        Lists and tables may have at most `most` entries.
        """
        value = self.value.get(key, default)
        if value is None and default is None:
            self.refuse(f"{self._named} needs '{key}' ({_words(kind)})")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.refuse(f"{self.under(key)} is {show_value(value)}; expected {_words(kind)}")
        if isinstance(value, list | dict):
            self.bounded(len(value), key, most)
        return value

    def bounded(self, size: int, key: str, most: int, of: str = "entries") -> None:
        """Refuse a value with more than `most` parts."""
        if size > most:
            self.refuse(f"{self.under(key)} has {size:,} {of}; at most {most:,} are read")

    def named(
        self,
        key: str,
        what: str,
        known: Collection[str],
        meant: Callable[[str], tuple[str, ...]] | None = None,
    ) -> tuple[str, ...]:
        """Return the names or paths of specs in the list of a key.

        Parameters
        ----------
        key : str
            Key of the list.
        what : str
            Kind of the specs, for messages.
        known : collection of str
            Names in the catalogue.
        meant : callable, optional
            Function that returns the names for any other text, or raises UnknownName.
        """
        found: dict[str, None] = {}
        for name in self.strings(key):
            if name in known or name.endswith(".cat"):
                found[name] = None
            else:
                problem = f"{self.under(key)} names no {what}: '{name}'"
                found |= dict.fromkeys(self.meant(problem, name, known, meant))
        return tuple(found)

    def meant(
        self,
        problem: str,
        name: str,
        known: Collection[str],
        meant: Callable[[str], tuple[str, ...]] | None,
    ) -> tuple[str, ...]:
        """Return the catalogue names that another name stands for; refuse a name that stands for
        none.
        """
        if meant is not None:
            try:
                return meant(name)
            except UnknownName as error:
                if "@" in name:
                    self.refuse(f"{problem}; {error}")
        self.refuse(f"{problem}{near(name, known)}")

    def strings(self, key: str) -> tuple[str, ...]:
        """Return the strings in the list of a key; none if the key is missing."""
        values = self.get(key, list, [])
        for value in values:
            if not isinstance(value, str):
                self.refuse(f"{self.under(key)} holds {show_value(value)}; expected strings")
        return tuple(values)

    def entries(self, key: str, known: Iterable[str]) -> Iterator[Node]:
        """Yield the tables in a list at the root of a document."""
        for k, entry in enumerate(self.get(key, list, [], most=TEXT), 1):
            node = Node(entry, f"{key}[{k}]", self.source)
            if not isinstance(entry, dict):
                self.refuse(f"{node} is {show_value(entry)}; expected a table", key)
            node.keys(known)
            yield node

    @property
    def _named(self) -> str:
        return f"[{self.path}]" if self.path else "the file"

    # Rows

    def rows(self, types: Sequence[Type]) -> Rows:
        """Return the rows in a list of lists."""
        return self.bag([types])

    def bag(self, kinds: Sequence[Sequence[Type]]) -> Rows:
        """Return the rows in a list of lists, each with the types of one of `kinds`."""
        from isolitmus.model.sql.values import sort_rows

        rows = self.sequence(kinds)
        return sort_rows(rows) if len(set(map(len, rows))) < 2 and len(kinds) == 1 else rows

    def sequence(self, kinds: Sequence[Sequence[Type]]) -> Rows:
        """Return the rows in a list of lists in the order of the text."""
        rows = self.value
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            self.refuse(f"{self} is not a list of rows; write [[1, 0], [2, 1]]")
        return tuple(self._row(row, _fitting(row, kinds)) for row in rows)

    def _row(self, row: list[Any], types: Sequence[Type]) -> Row:
        if len(row) != len(types):
            self.refuse(f"{self}: row {show_value(row)} has not {len(types)} values")
        return tuple(self._value(value, type_) for value, type_ in zip(row, types, strict=True))

    def _value(self, value: object, wanted: Type) -> Value:
        """Return a value as its SQL type; refuse one of another type or out of range."""
        from isolitmus.model.sql.types import RANGES

        if value == {"null": True}:
            return None
        if not any(type(value) in kinds for kinds in VALUES.values()):
            self.refuse(
                f"{self}: {show_value(value)} is not a value; write a number, a text, a boolean,"
                " a date or { null = true }"
            )
        if type(value) not in _python_types(wanted):
            self.refuse(f"{self}: {show_value(value)} is not of type {wanted}")
        if wanted in RANGES and not RANGES[wanted][0] <= cast("int", value) <= RANGES[wanted][1]:
            self.refuse(f"{self}: {value} does not fit into {wanted}")
        if wanted == "DOUBLE":
            return float(cast("float", value))
        if wanted not in VALUES:
            return self._decimal(str(value), wanted)
        return cast("Value", value)

    def _decimal(self, text: str, wanted: Type) -> Value:
        """Return the text as a decimal of the type; refuse one with too many digits."""
        from isolitmus.model.sql.types import EvaluationError
        from isolitmus.model.sql.values import rescale

        try:
            value = Decimal(text)
            kept = rescale(value, wanted)
        except (InvalidOperation, EvaluationError):
            self.refuse(f"{self}: {show_value(text)} is not of type {wanted}")
        if kept != value:
            self.refuse(f"{self}: {show_value(text)} has more digits than {wanted}")
        return kept


def _python_types(type_: Type) -> tuple[type, ...]:
    """Return the Python types of values of an SQL type."""
    return VALUES.get(type_, DECIMALS)


def _fitting(row: list[Any], kinds: Sequence[Sequence[Type]]) -> Sequence[Type]:
    """Return the types of a row: the first in `kinds` that has its width, and its types if
    possible.
    """
    fits = [types for types in kinds if len(types) == len(row)] or list(kinds)
    for types in fits:
        pairs = zip(row, types, strict=False)
        if all(
            value == {"null": True} or type(value) in _python_types(type_) for value, type_ in pairs
        ):
            return types
    return fits[0]


def read_head(document: Node) -> tuple[str, str, tuple[str, ...]]:
    """Return the title of a test, its source and its tags."""
    title = document.get("title", str)
    return title, document.get("source", str, ""), document.strings("tags")


def show_value(value: object) -> str:
    """Return a value in the form for messages."""
    return brief(repr(value), 80)


def _line(text: str, key: str) -> int:
    r"""Return the line (from 1) that sets a key, or of the nearest table around it; 0 if there is
    none.

    Examples
    --------
    >>> _line("[table]\ninit = []\ncolumns = 'id'", "table.columns")
    3
    >>> _line("[[D1.evidence]]\nrun = 'a'\n[[D1.evidence]]\nrun = 'b'", "D1.evidence[2].run")
    4
    """
    header, best, found = "", "", 0
    entries: Counter[str] = Counter()
    for number, line in enumerate(text.split("\n"), 1):
        match = KEY.match(line)
        if match is None:
            continue
        name = ".".join(part.strip(" \t\"'") for part in PART.findall(match["header"] or match[0]))
        if match["header"]:
            entries[name] += line.lstrip().startswith("[[")
            header = f"{name}[{entries[name]}]" if entries[name] else name
            if key != name:
                name = header
        elif header:
            name = f"{header}.{name}"
        if len(name) > len(best) and f"{key}.".startswith(f"{name}."):
            best, found = name, number
    return found


def _words(kind: type) -> str:
    words = {str: "a string", dict: "a table", list: "a list", bool: "true or false"}
    return {**words, int: "an integer"}[kind]
