"""The values that a client has read for the parameters of its statement."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql.failing import EvaluationError
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.statements import resolved, syntax_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Rows, Value

__all__ = ["TooManyRows", "bind", "scalar"]


class TooManyRows(EvaluationError):
    """A query that is read for a parameter and gives more than one row."""

    def __init__(self, sql: str, rows: int) -> None:
        super().__init__(type(self).__name__, f"'{sql}' gives {rows} rows; one value is wanted")


def scalar(sql: str, rows: Rows) -> Value:
    """The value of a query with one column: NULL if it gives no row. TooManyRows for several.

    >>> scalar("SELECT x FROM t", ((5,),)), scalar("SELECT x FROM t", ())
    (5, None)
    """
    if len(rows) > 1:
        raise TooManyRows(sql, len(rows))
    return rows[0][0] if rows else None


def bind(statement: Statement, values: Mapping[str, Value]) -> Statement:
    """The statement with values for its parameters; what only its client says of it stays.

    SqlError for one that is outside what isolitmus models with these values.
    """
    if not values or isinstance(statement, Raw) or statement.origin is None:
        return statement
    named = ", ".join(f"{name} = {literal(value)}" for name, value in values.items())
    syntax = replace(syntax_of(statement).bound(values), label=f"'{statement.sql}' with {named}")
    return resolved(statement, syntax, statement.origin.tables)
