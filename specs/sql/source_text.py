"""Source texts of SQL: places for errors, and names in scope of an expression.

The parsed text may differ from the text as written: a statement is parsed with values for its
parameters, and the query of a DataFrame write as an INSERT. Messages point into the text as
written.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.model.errors import SqlError, brief, excerpt, near
from isolitmus.model.sql import expression as ex
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.model.errors import SqlProblem
    from isolitmus.model.sql.schema import Column
    from isolitmus.model.sql.types import Type

    SubqueryReader = Callable[
        ["NameScope", Literal["exists", "in", "scalar"], exp.Expr], ex.Subquery
    ]


class TextPart(NamedTuple):
    """Part of a parsed text, with its place in the text as written."""

    read: str
    """Part as parsed."""
    text: str
    """Text as written."""
    label: str
    """Name of that text in messages."""
    start: int = 0
    """Position of the part in that text."""
    copied: bool = True
    """True if the part occurs there verbatim."""


def errors_as_written(error: SqlError, parts: Sequence[TextPart]) -> SqlError:
    """Return an error about the concatenated parts as one that points into the text as written.

    Examples
    --------
    >>> query = TextPart("SELECT x", "SELECT x", "query")
    >>> parts = [TextPart("INSERT INTO t ", "SELECT x", "query", copied=False), query]
    >>> error = locate_error("", "INSERT INTO t SELECT x", 21, "unknown column 'x'")
    >>> print(errors_as_written(error, parts))
    query:1:8: unknown column 'x'
        SELECT x
               ^
    """
    if error.start is None:
        return error
    left = error.start
    for part in parts:
        if left < len(part.read) or part is parts[-1]:
            start = part.start + (left if part.copied else 0)
            return locate_error(part.label, part.text, start, error.problem, error.kind)
        left -= len(part.read)
    return error


@contextmanager
def errors_in_file(label: str, file: str, start: int | None) -> Iterator[None]:
    """Let errors in an SQL text point into the file in which it begins at `start`.

    `start` is None if the text does not occur there verbatim.

    Examples
    --------
    >>> with errors_in_file("jobs.toml", 'sql = "DELETE FROM t"', 7):
    ...     raise locate_error("SQL", "DELETE FROM t", 12, "unknown table 't'")
    Traceback (most recent call last):
    isolitmus.model.errors.SqlError: jobs.toml:1:20: unknown table 't'
        sql = "DELETE FROM t"
                           ^
    """
    try:
        yield
    except SqlError as error:
        if start is None or error.start is None:
            raise
        raise locate_error(label, file, start + error.start, error.problem, error.kind) from None


def locate_error(
    label: str, text: str, start: int, problem: str, kind: SqlProblem = "outside"
) -> SqlError:
    """Return an error at a position (from 0) of a text."""
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    said = f"{label}:{line}:{column}: {problem}{excerpt(text, line, column)}"
    return SqlError(said, problem=problem, start=start, kind=kind)


DIALECT = "databricks"
NESTED = ("STRUCT", "ARRAY", "MAP", "VARIANT")
"""Prefixes of types whose values have fields."""
LOOK_BACK, LOOK_AHEAD = 4, 100
"""Number of words before and after the first known position of a node within which its text is
searched.
"""


@dataclass(frozen=True, slots=True)
class SqlText:
    """SQL text as written, with options for reading its expressions."""

    text: str
    """Text as written."""
    label: str
    """Name in messages (``reorder.toml, transaction delete``)."""
    types: Mapping[str, Type] = field(default_factory=dict)
    """Types of parameters without value."""
    plain: bool = False
    """True if engines with other rules than Spark's evaluate it; casts and functions are then
    refused.
    """
    opaque: bool = False
    """True if unsupported expressions are kept as opaque."""
    constants: bool = False
    """True if those without columns that have one value in a run are parameters."""

    def refuse(self, node: exp.Expr | None, problem: str, kind: SqlProblem = "outside") -> NoReturn:
        """Raise a SqlError that points at the node."""
        start = 0 if node is None else _start(node)
        raise locate_error(self.label, self.text, start, brief(problem), kind)

    def written(self, node: exp.Expr) -> str:
        """Return the text of a node as written: the words that parse to it.

        Examples
        --------
        >>> text = "SELECT 1 WHERE id!=1 AND  lower(n)='a'"
        >>> tree = sqlglot.parse_one(text, dialect="databricks")
        >>> SqlText(text, "SQL").written(tree.args["where"].this)
        "id!=1 AND  lower(n)='a'"
        """
        names = list(node.find_all(exp.Identifier)) if isinstance(node, exp.Column) else []
        if names and all("end" in name.meta for name in names):
            return self.text[_start(node) : max(name.meta["end"] for name in names) + 1]
        tokens = sqlglot.tokenize(self.text, dialect=DIALECT)
        first = next((k for k, t in enumerate(tokens) if t.end >= _start(node)), 0)
        for low in range(first, max(first - LOOK_BACK, -1), -1):
            for high in range(low, min(low + LOOK_AHEAD, len(tokens))):
                words = self.text[tokens[low].start : tokens[high].end + 1]
                if words.count("(") != words.count(")"):
                    continue  # sqlglot accepts TRIM(…, OVERLAY(… and CAST(… without the end
                with suppress(SqlglotError):
                    if parse_one(words, DIALECT) == node:
                        return words
        return node.sql(DIALECT)


def _start(node: exp.Expr) -> int:
    return min((n.meta["start"] for n in node.walk() if "start" in n.meta), default=0)


@dataclass(frozen=True, slots=True)
class Side:
    """Table (or MERGE source) in scope, under the name that qualifies its columns."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class NameScope:
    """Names in scope of an expression: sides in order; side 0 is the target or the only table.

    The first ``outer`` sides belong to the enclosing query and have lower priority. ``subquery``
    translates a subquery, or is the message that refuses it.
    """

    place: SqlText
    sides: tuple[Side | None, ...]
    subquery: SubqueryReader | str = f"a subquery here {OUTSIDE}"
    outer: int = 0

    def holder(self, node: exp.Expr) -> ex.ColumnRef | None:
        """Return the column with an opaque type of which a name denotes a field, or None."""
        parts = [part.name.lower() for part in getattr(node, "parts", ())]
        for known in filter(None, self.sides):
            if parts[:-1] == [known.name.lower()] and parts[-1] in _folded(known):
                return None  # a table's name takes precedence
        for s, side in enumerate(self.sides):
            for i, column in enumerate(side.columns if side is not None else ()):
                opaque = column.type == "" or column.type.startswith(NESTED)
                own = [column.name.lower()]
                if side is not None and parts[:2] == [side.name.lower(), *own]:
                    own = parts[:2]
                if opaque and len(parts) > len(own) and parts[: len(own)] == own:
                    return ex.ColumnRef(s, i, column.name, column.type)
        return None

    def resolve(self, node: exp.Column) -> ex.ColumnRef:
        """Return the column that a name denotes; refuse an unknown or ambiguous name."""
        if node.args.get("db") or node.args.get("catalog"):
            self.place.refuse(
                node, f"column '{self.place.written(node)}' is qualified too far; use table.column"
            )
        name, qualifier = node.name, node.table
        shown = f"{qualifier}.{name}" if qualifier and self.outer else name
        every = [
            ex.ColumnRef(s, i, shown, column.type)
            for s, side in enumerate(self.sides)
            if side is not None and (not qualifier or side.name.lower() == qualifier.lower())
            for i, column in enumerate(side.columns)
            if column.name.lower() == name.lower()
        ]
        found = [ref for ref in every if ref.side >= self.outer] or every
        if len(found) == 1:
            return found[0]
        if found:
            names = " or ".join(f"{s.name}.{name}" for s in self.sides if s is not None)
            self.place.refuse(node, f"column '{name}' is ambiguous; write {names}")
        known = [c.name for s in self.sides if s is not None for c in s.columns]
        self.place.refuse(
            node, f"unknown column '{self.place.written(node)}'{near(name, known)}", "no column"
        )


def _folded(side: Side) -> list[str]:
    return [column.name.lower() for column in side.columns]


def refuse_other_arguments(place: SqlText, node: exp.Expr, *handled: str) -> None:
    """Refuse a node with an argument that is not in `handled`."""
    for key, value in node.args.items():
        if value and key not in handled:
            shown = value[0] if isinstance(value, list) else value
            place.refuse(
                shown if isinstance(shown, exp.Expr) else node,
                f"'{key.rstrip('_').replace('_', ' ').upper()}' {OUTSIDE}",
            )
