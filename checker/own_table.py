"""A table of one's own for Hypothesis: its statements, and rows of few values and those that the statements name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from sqlglot import expressions as exp

from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql_types import is_number
from isolitmus.specs.ddl import read_ddl
from isolitmus.specs.sql import read_statement
from isolitmus.specs.sql_parse import Syntax
from isolitmus.specs.table_file import read_table
from isolitmus.specs.toml_file import Node, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.model.schema import Column, Schema
    from isolitmus.model.statement import Statement

__all__ = ["OwnTable", "declared", "literals", "own_rows"]

NUMBERS = ("0", "1", "2")
FEW: dict[str, tuple[str, ...]] = {
    "STRING": ("'a'", "'b'"),
    "DATE": ("DATE '2026-01-01'", "DATE '2026-01-02'"),
    "TIMESTAMP": ("TIMESTAMP '2026-01-01 00:00:00'", "TIMESTAMP '2026-01-02 00:00:00'"),
    "BOOLEAN": ("false", "true"),
}
"""Values of each type that is no number, the simplest first."""
DAY = re.compile(r"'\d{4}-\d\d-\d\d'")


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A table, and strategies for its statements and rows."""

    schema: Schema
    """What it is declared to be."""
    statements: SearchStrategy[Statement]
    """Transactions on it."""
    rows: SearchStrategy[str]
    """A row of it as VALUES has it."""

    @classmethod
    def of(
        cls,
        table: str | Schema,
        statements: Sequence[str | SearchStrategy[str]],
        rows: SearchStrategy[str] | None = None,
    ) -> OwnTable:
        """A table, as it is or from its CREATE TABLE, with statements, texts or strategies that draw such.

        IsolitmusError, with the place, for what is not modelled: of texts at once, of what is drawn when it is.
        """
        if not statements:
            raise IsolitmusError(
                "a table of one's own needs statements=[…], SQL texts or strategies"
            )
        schema = declared(table)
        schemas = {schema.name: schema}

        def read(sql: str) -> Statement:
            return read_statement(sql, schemas)

        texts = [s for s in statements if isinstance(s, str)]
        known = {text: read(text) for text in texts}
        every = [st.just(known[s]) if isinstance(s, str) else s.map(read) for s in statements]
        return cls(schema, st.one_of(every), own_rows(schema, texts) if rows is None else rows)


def declared(table: str | Schema) -> Schema:
    """A table, as it is or from its CREATE TABLE; IsolitmusError, with the place, for what is none that is modelled.

    >>> declared("CREATE TABLE shop.orders (id INT, day DATE) USING delta PARTITIONED BY (day)").partitioned_by
    ('day',)
    """
    if not isinstance(table, str):
        return table
    found = read_ddl(table, "table")
    return read_table(found.name, Node(found.table, "", Source("table")))


def literals(statements: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The numbers and the texts that occur in some statements, as SQL has them.

    >>> literals(["DELETE FROM t WHERE day = 'mon' AND id > 7", "DELETE FROM t WHERE id = 7"])
    (('7',), ("'mon'",))
    """
    numbers: dict[str, None] = {}
    texts: dict[str, None] = {}
    for sql in statements:
        for found in Syntax(sql).tree().find_all(exp.Literal):
            if found.is_string:
                texts[f"'{found.name}'"] = None
            elif found.is_int:
                numbers[found.name] = None
    return tuple(numbers), tuple(texts)


def own_rows(schema: Schema, statements: Iterable[str]) -> SearchStrategy[str]:
    """A row of a table as VALUES has it."""
    numbers, texts = literals(statements)
    cells = [st.sampled_from(_values(column, numbers, texts)) for column in schema.columns]
    return st.tuples(*cells).map(lambda row: f"({', '.join(row)})")


def _values(column: Column, numbers: tuple[str, ...], texts: tuple[str, ...]) -> list[str]:
    """The values of a column: those that statements name, a few others, NULL."""
    if is_number(column.type):
        return list(dict.fromkeys((*numbers, *NUMBERS, "NULL")))
    days = tuple(f"DATE {text}" for text in texts if DAY.fullmatch(text))
    named = {"STRING": texts, "DATE": days}.get(column.type, ())
    return list(dict.fromkeys((*named, *FEW[column.type], "NULL")))
