"""Tables in DuckDB: columns, initial rows, and sequences of identity columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.sql.types import RANGES, is_opaque
from isolitmus.model.sql.values import literal

if TYPE_CHECKING:
    from isolitmus.model.sql.schema import Column, Schema


def create_table(schema: Schema, verb: str = "CREATE OR REPLACE TABLE") -> str:
    """Return the statement that creates a table as declared, without rows."""
    return f'{verb} "{schema.name}" ({columns_of(schema)})'


def fill_table(schema: Schema) -> list[str]:
    """Return the statement that inserts a table's initial rows, if it has any."""
    rows = [f"({', '.join(map(literal, r.values))})" for file in schema.held for r in file.rows]
    return [f'INSERT INTO "{schema.name}" VALUES {", ".join(rows)}'] if rows else []


def sequences(schema: Schema) -> list[str]:
    """Return the statements that create a sequence for each identity column of a new table."""
    made = [
        _sequence(schema.name, column, column.identity.start)
        for column in schema.columns
        if column.identity is not None
    ]
    return [*made, *sequence_defaults(schema, schema.name)]


def resume_sequence(table: str, column: Column, value: int) -> list[str]:
    """Return the statements after which an identity column continues with a value."""
    alter = f'ALTER TABLE "{table}" ALTER "{column.name}"'
    return [
        f"{alter} DROP DEFAULT",
        _sequence(table, column, value),
        _default(table, table, column),
    ]


def _sequence(table: str, column: Column, first: int) -> str:
    """Return the statement that creates the sequence of an identity column from a first value."""
    low, high = RANGES["BIGINT"]
    assert column.identity is not None
    return (
        f'CREATE OR REPLACE SEQUENCE "{table}.{column.name}" MINVALUE {low} MAXVALUE {high}'
        f" START WITH {first} INCREMENT BY {column.identity.step}"
    )


def sequence_defaults(schema: Schema, table: str) -> list[str]:
    """Return the statements that make sequences the defaults of a table's identity columns."""
    return [
        _default(table, schema.name, column)
        for column in schema.columns
        if column.identity is not None
    ]


def _default(table: str, source: str, column: Column) -> str:
    sequence = f'"{source}.{column.name}"'
    return f'ALTER TABLE "{table}" ALTER "{column.name}" SET DEFAULT nextval(\'{sequence}\')'


def columns_of(schema: Schema) -> str:
    """Return the column list of a table's declaration."""
    return ", ".join(map(_column, schema.columns))


def _column(column: Column) -> str:
    return f'"{column.name}" {"VARCHAR" if is_opaque(column.type) else column.type}'
