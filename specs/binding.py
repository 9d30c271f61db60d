"""Parameters of a statement (``:name``) and the values that its client has read for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model import statement as st
from isolitmus.model.expression import EvaluationError
from isolitmus.model.values import literal
from isolitmus.specs.sql import read_statement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema
    from isolitmus.model.values import Rows, Value

__all__ = ["TooManyRows", "bind", "bound", "parameters", "scalar", "spark_literal"]

PIECE = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?<![:\w]):(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL,
)
"""What a colon means nothing in, or a parameter."""


class TooManyRows(EvaluationError):
    """A query that is read for a parameter and gives more than one row."""

    def __init__(self, sql: str, rows: int) -> None:
        super().__init__(type(self).__name__, f"'{sql}' gives {rows} rows; one value is wanted")


def parameters(sql: str) -> tuple[str, ...]:
    """The names of a statement's parameters, in order.

    >>> parameters("UPDATE t SET x = :seen + 1, s = 'a:b' WHERE id = :key")
    ('seen', 'key')
    """
    return tuple(found["name"] for found in PIECE.finditer(sql) if found["name"])


def bound(sql: str, values: Mapping[str, Value]) -> str:
    """The text with literals in the place of its parameters.

    >>> bound("UPDATE t SET x = :seen - 1, s = ':seen'", {"seen": -2})
    "UPDATE t SET x = (-2) - 1, s = ':seen'"
    """
    return PIECE.sub(
        lambda found: spark_literal(values[found["name"]]) if found["name"] in values else found[0],
        sql,
    )


def spark_literal(value: Value) -> str:
    """A value as Spark's SQL has it anywhere in an expression: its strings know the backslash."""
    text = literal(value)
    if isinstance(value, str):
        return text.replace("\\", "\\\\")
    return f"({text})" if text.startswith("-") else text


def scalar(sql: str, rows: Rows) -> Value:
    """The value of a query with one column: NULL if it gives no row. TooManyRows for several.

    >>> scalar("SELECT x FROM t", ((5,),)), scalar("SELECT x FROM t", ())
    (5, None)
    """
    if len(rows) > 1:
        raise TooManyRows(sql, len(rows))
    return rows[0][0] if rows else None


def bind(
    statement: st.Statement, values: Mapping[str, Value], schemas: Mapping[str, Schema]
) -> st.Statement:
    """The statement with values for its parameters; what only its client says of it stays.

    SqlError for one that is outside what isolitmus models with these values.
    """
    if not values:
        return statement
    read = read_statement(bound(statement.sql, values), schemas, _said(statement, values))
    return st.read_anew(statement, read)


def _said(statement: st.Statement, values: Mapping[str, Value]) -> str:
    named = ", ".join(f"{name} = {literal(value)}" for name, value in values.items())
    return f"'{statement.sql}' with {named}"
