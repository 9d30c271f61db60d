"""Values, rows and bags of rows, with SQL's order."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Row", "Rows", "Value", "literal", "show_row", "sort_rows", "to_json"]

Value = int | str | bool | date | Decimal | float | None
"""A timestamp is a datetime, which is a date."""
Row = tuple[Value, ...]
Rows = tuple[Row, ...]


def sort_rows(rows: Iterable[Row]) -> Rows:
    """The rows in SQL's ascending order, NULLs first (values of one column are of one type).

    >>> sort_rows([(2, "b"), (None, "c"), (2, "a")])
    ((None, 'c'), (2, 'a'), (2, 'b'))
    """
    return tuple(sorted(rows, key=_sql_order))


def _sql_order(row: Row) -> tuple[tuple[bool, Value], ...]:
    return tuple((False, 0) if v is None else (True, v) for v in row)


def literal(value: Value) -> str:
    """The value as a SQL literal.

    >>> literal("it's"), literal(None), literal(date(2010, 1, 1))
    ("'it''s'", 'NULL', "DATE '2010-01-01'")
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"


def show_row(row: Row) -> str:
    """A row for a person: ``(1, 0)``."""
    return f"({', '.join('NULL' if v is None else str(v) for v in row)})"


def to_json(rows: Rows) -> list[list[object]]:
    """The rows as JSON has them: NULL as null, dates, timestamps and decimals as texts."""
    return [list(map(_json, row)) for row in rows]


def _json(value: Value) -> object:
    match value:
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return value
