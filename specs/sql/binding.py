"""Binding of statement parameters to values that a client has read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.types import EvaluationError
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.statements import resolve_again, syntax_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Rows, Value


class TooManyRows(EvaluationError):
    """Query for a parameter that returns more than one row."""

    def __init__(self, sql: str, rows: int) -> None:
        super().__init__(type(self).__name__, f"'{sql}' gives {rows} rows; expected one value")


def scalar_value(sql: str, rows: Rows) -> Value:
    """Return the value of a query with one column: NULL without rows; TooManyRows for several rows.

    Examples
    --------
    >>> scalar_value("SELECT x FROM t", ((5,),)), scalar_value("SELECT x FROM t", ())
    (5, None)
    """
    if len(rows) > 1:
        raise TooManyRows(sql, len(rows))
    return rows[0][0] if rows else None


def bind_parameters(statement: Statement, values: Mapping[str, Value]) -> Statement:
    """Return the statement with values for its parameters; options of its client are kept.

    Raises
    ------
    SqlError
        If the statement is not modelled with these values.
    """
    if not values or isinstance(statement, Raw) or statement.origin is None:
        return statement
    named = ", ".join(f"{name} = {literal(value)}" for name, value in values.items())
    syntax = replace(syntax_of(statement).bound(values), label=f"'{statement.sql}' with {named}")
    return resolve_again(statement, syntax, statement.origin.tables)
