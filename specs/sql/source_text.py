"""Source texts of SQL: places for errors, names in scope, texts read in place of another.

The names that an expression may use, and the text that messages about it point into.

A text that is read in the place of what an author wrote: where each part of it stands there.

A statement is read with values for its parameters, and the query of a DataFrame write as an INSERT;
a message points into the author's own text all the same.
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
    from isolitmus.model.schema import Column
    from isolitmus.model.sql.types import Type

    SubqueryReader = Callable[
        ["NameScope", Literal["exists", "in", "scalar"], exp.Expr], ex.Subquery
    ]

__all__ = [
    "NameScope",
    "Side",
    "SqlText",
    "TextPart",
    "errors_as_written",
    "errors_in_file",
    "locate_error",
    "refuse_other_arguments",
]


class TextPart(NamedTuple):
    """A part of what is read, and where its author has it."""

    read: str
    """As it is read."""
    text: str
    """The author's."""
    label: str
    """What a message calls that text."""
    start: int = 0
    """Its place there."""
    copied: bool = True
    """False: it is not there, something else is."""


def errors_as_written(error: SqlError, parts: Sequence[TextPart]) -> SqlError:
    """An error of reading the parts, one after another, as one that points at what was written.

    >>> parts = [TextPart("INSERT INTO t ", "SELECT x", "query", copied=False), TextPart("SELECT x", "SELECT x", "query")]
    >>> print(errors_as_written(locate_error("", "INSERT INTO t SELECT x", 21, "unknown column 'x'"), parts))
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
    """Let an error in a text of SQL point into the file in which the text begins there; None: it is
    not there as it was read.

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
    """An error at a place of a text, a position from 0."""
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    said = f"{label}:{line}:{column}: {problem}{excerpt(text, line, column)}"
    return SqlError(said, problem=problem, start=start, kind=kind)


DIALECT = "databricks"
NESTED = ("STRUCT", "ARRAY", "MAP", "VARIANT")
"""How the types begin whose values have fields."""
LOOK_BACK, LOOK_AHEAD = 4, 100
"""So many words before the first place that a node remembers, and from there on, what it was is
looked for.
"""


@dataclass(frozen=True, slots=True)
class SqlText:
    """The author's text, and how its expressions are read."""

    text: str
    """What was written."""
    label: str
    """What a message calls it (``reorder.toml, transaction delete``)."""
    types: Mapping[str, Type] = field(default_factory=dict)
    """Those of parameters that have no value."""
    plain: bool = False
    """Engines with other rules than Spark's are to compute it: there are no casts and functions."""
    opaque: bool = False
    """What is not modelled is read all the same."""

    def refuse(self, node: exp.Expr | None, problem: str, kind: SqlProblem = "outside") -> NoReturn:
        """Raise a SqlError that points at the node."""
        start = 0 if node is None else _start(node)
        raise locate_error(self.label, self.text, start, brief(problem), kind)

    def written(self, node: exp.Expr) -> str:
        """What the author wrote for a node: the words of the text that read as it.

        >>> tree = sqlglot.parse_one("SELECT 1 WHERE id!=1 AND  lower(n)='a'", dialect="databricks")
        >>> SqlText("SELECT 1 WHERE id!=1 AND  lower(n)='a'", "SQL").written(tree.args["where"].this)
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
                with suppress(SqlglotError):
                    if parse_one(words, DIALECT) == node:
                        return words
        return node.sql(DIALECT)


def _start(node: exp.Expr) -> int:
    return min((n.meta["start"] for n in node.walk() if "start" in n.meta), default=0)


@dataclass(frozen=True, slots=True)
class Side:
    """One table (or MERGE source) in scope, under the name that qualifies its columns."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class NameScope:
    """What a column name may mean: the sides in order; side 0 is the target or the only table. The
    first ``outer`` of them belong to the query around a subquery, and come second.

    ``subquery`` reads a subquery; where there can be none, it is the sentence that says so.
    """

    place: SqlText
    sides: tuple[Side | None, ...]
    subquery: SubqueryReader | str = f"a subquery here {OUTSIDE}"
    outer: int = 0

    def holder(self, node: exp.Expr) -> ex.ColumnRef | None:
        """The column, of a type that is not modelled, of which a name denotes a field; None if it
        denotes none.
        """
        parts = [part.name.lower() for part in getattr(node, "parts", ())]
        for known in filter(None, self.sides):
            if parts[:-1] == [known.name.lower()] and parts[-1] in _folded(known):
                return None  # a table's name comes first
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
        """The column that a name denotes; refused if there is none, or more than one."""
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
    """Refuse a node that carries an argument which is not handled."""
    for key, value in node.args.items():
        if value and key not in handled:
            shown = value[0] if isinstance(value, list) else value
            place.refuse(
                shown if isinstance(shown, exp.Expr) else node,
                f"'{key.rstrip('_').replace('_', ' ').upper()}' {OUTSIDE}",
            )
