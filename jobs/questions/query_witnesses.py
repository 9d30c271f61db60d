"""Queries that tables of any rows stand for: whether they may return the rows of an example.

A run that violates an invariant with certain rows of such a table is possible only if the query
returns these rows for some rows of its own tables. Rows are proposed, and DuckDB executes the
query on them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import sqlglot
from sqlglot import expressions as exp

from isolitmus.checker.execution.postconditions import (
    is_interrupted,
    value_in_duckdb,
    violated_queries,
)
from isolitmus.jobs.sql.uninterpreted_sources import kept_tree
from isolitmus.jobs.templates.expression_formulas import NoValue
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.parameters import bind_text, is_unnamed
from isolitmus.specs.sql.source_text import DIALECT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.jobs.invariant import Invariant
    from isolitmus.jobs.workload import QueryText, Workload
    from isolitmus.model.execution import Database
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.schema import Column, Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value

SIMPLE: Mapping[str, Value] = {
    "INT": 1,
    "STRING": "a",
    "BOOLEAN": True,
    "DATE": date(2026, 1, 1),
    "TIMESTAMP": datetime.fromisoformat("2026-01-01"),
    "DOUBLE": 1.0,
}
"""Values on which nothing depends; other types have that of INT."""


class NeededRows(NamedTuple):
    """Rows that a query has to return in one run."""

    table: str
    """Table that stands for it."""
    query: QueryText
    values: Mapping[str, Value]
    """Parameters of the run."""
    run: Value
    rows: tuple[Row, ...]
    """Rows of the table, without the number of the run."""

    def __str__(self) -> str:
        return ", ".join(f"({', '.join(map(literal, row))})" for row in self.rows) or "no rows"


def unconfirmed_rows(
    workload: Workload,
    test: Litmus,
    parameters: Mapping[str, Mapping[str, Value]],
    start: Database,
    invariants: Sequence[Invariant] = (),
) -> Iterator[NeededRows]:
    """Yield the rows that a test needs of queries that are not shown to return them.

    Parameters
    ----------
    workload : Workload
        The jobs, with the queries that tables stand for.
    test : Litmus
        The test.
    parameters : mapping of str to mapping
        Parameters of each transaction.
    start : Database
        Tables at the start.
    invariants : sequence of Invariant
        Invariants that the tables satisfy at the start.
    """
    for name, values in parameters.items():
        for table, query in workload.queries.items():
            if not re.search(rf"\b{table}\b", test.transactions[name].sql):
                continue
            run = values.get(workload.tables[table].columns[-1].name)
            needed = NeededRows(table, query, values, run, _rows_of_run(start, table, run))
            if not _may_return(workload, invariants, test, needed):
                yield needed


def computed_value(text: str, type_: Type, values: Mapping[str, Value]) -> Value:
    """Return the value of an expression without columns as DuckDB computes it.

    Parameters
    ----------
    text : str
        Expression in Spark's SQL.
    type_ : str
        Type of the value.
    values : mapping of str to value
        Parameters of its run, and ``current_date()``.

    Raises
    ------
    NoValue
        If DuckDB does not compute it.

    Examples
    --------
    >>> computed_value("date_sub(:day, 7)", "DATE", {"day": date(2026, 1, 9)})
    datetime.date(2026, 1, 2)
    """
    clocks = {"current_date()": SIMPLE["DATE"], "current_timestamp()": SIMPLE["TIMESTAMP"]}
    given = {name: value for name, value in values.items() if not is_unnamed(name)}
    bound = bind_text(text, {**clocks, **given})
    try:
        found: Value = value_in_duckdb(_in_duckdb(f"CAST({bound} AS {type_})"))
    except Exception as error:
        if is_interrupted(error):
            raise
        raise NoValue from error
    return found.replace(tzinfo=None) if isinstance(found, datetime) else found


def _rows_of_run(start: Database, table: str, run: Value) -> tuple[Row, ...]:
    """Return the rows of a table that belong to a run, without its number."""
    there = start[table].rows() if table in start else ()
    return tuple(row[:-1] for row in there if row[-1] == run)


def _may_return(
    workload: Workload, invariants: Sequence[Invariant], test: Litmus, asked: NeededRows
) -> bool:
    """Return whether DuckDB returns just these rows for the query, if its tables have some rows."""
    known = {name.lower(): schema for name, schema in workload.tables.items()}
    read = {*asked.query.tables}
    if read - known.keys() or _are_used(test, read):
        return False
    schemas = tuple(known[name] for name in sorted(read))
    about = [one for one in invariants if {*map(str.lower, one.tables)} & read]
    if not all({*map(str.lower, one.tables)} <= read for one in about):
        return False
    text = bind_text(asked.query.sql, asked.values)
    more = bind_text(asked.query.where, asked.values)
    stand_in = workload.tables[asked.table]
    kept = tuple(one.query for one in about)
    columns = tuple(schema.columns for schema in (stand_in, *schemas))
    return _is_returned(
        _Question(text, more, asked.run, asked.rows, kept, columns, asked.query, stand_in, schemas)
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """Whether a query returns just these rows for some rows of its tables."""

    text: str
    more: str
    """Condition on the rows."""
    run: Value
    rows: tuple[Row, ...]
    kept: tuple[str, ...]
    """Queries that return no row for the rows of its tables."""
    columns: tuple[tuple[Column, ...], ...]
    """Columns of the tables."""
    query: QueryText
    stand_in: Schema = field(compare=False)
    schemas: tuple[Schema, ...] = field(compare=False)


@lru_cache(maxsize=10_000)
def _is_returned(asked: _Question) -> bool:
    """Return whether DuckDB returns just these rows, if the tables have some rows."""
    tree = kept_tree(asked.text)
    if tree is None or not asked.query.columns:
        return False
    queries = [*_differences(asked), *asked.kept]
    there = (asked.stand_in, tuple((*row, asked.run) for row in asked.rows))
    for made in _proposals(tree, asked):
        tables = [(schema, tuple(made[schema.name])) for schema in asked.schemas]
        try:
            if not violated_queries([*tables, there], queries, _in_duckdb):
                return True
        except Exception as error:  # of DuckDB or sqlglot, which lack a part of Spark
            if is_interrupted(error):
                raise
    return False


def _are_used(test: Litmus, tables: set[str]) -> bool:
    """Return whether a transaction of a test names one of the tables."""
    return any(
        re.search(rf"(?i)\b{re.escape(table)}\b", statement.sql)
        for table in tables
        for statement in test.transactions.values()
    )


def _in_duckdb(text: str) -> str:
    return sqlglot.transpile(text, read=DIALECT, write="duckdb")[0]


def _differences(asked: _Question) -> Iterator[str]:
    """Yield the queries of what only the table has, and of what only the query returns."""
    schema, query = asked.stand_in, asked.query
    own = ", ".join(column.name for column in schema.columns[:-1])
    where = f"{schema.columns[-1].name} = {literal(asked.run)}"
    where += f" AND ({asked.more})" if asked.more else ""
    every = ", ".join(f"c{k}" for k in range(len(query.columns)))
    shown = ", ".join(f"c{k}" for k in query.places)
    table = f"SELECT {own} FROM {schema.name} WHERE {where}"
    returned = f"SELECT {shown} FROM ({asked.text}) AS q({every})"
    yield f"{table} EXCEPT ALL {returned}"
    yield f"{returned} EXCEPT ALL {table}"


def _proposals(tree: exp.Expr, asked: _Question) -> Iterator[dict[str, list[Row]]]:
    """Yield rows of the tables of a query: one for each row that it has to return, also without
    repetition, and also with its values in the columns that they are computed from.
    """
    fixed, equal = _equalities(tree)
    for parts in (True, False):
        each: dict[str, list[Row]] = {schema.name: [] for schema in asked.schemas}
        for row in asked.rows:
            given: dict[str, Value] = dict(fixed)
            for value, place in zip(row, asked.query.places, strict=True):
                given |= dict.fromkeys(asked.query.columns[place], value)
            for value, place in zip(row, asked.query.places, strict=True) if parts else ():
                given = {**dict.fromkeys(asked.query.parts[place], value), **given}
            for a, b in [*equal, *((b, a) for a, b in equal)]:
                if a in given:
                    given.setdefault(b, given[a])
            for schema in asked.schemas:
                values = (
                    given.get(column.name.lower(), SIMPLE.get(column.type, SIMPLE["INT"]))
                    for column in schema.columns
                )
                each[schema.name].append(tuple(values))
        once = {name: list(dict.fromkeys(some)) for name, some in each.items()}
        yield each
        if once != each:
            yield once
        # of joined tables, some have one row for several of the others
        yield from ({**once, name: some} for name, some in each.items() if some != once[name])


def _equalities(tree: exp.Expr) -> tuple[dict[str, Value], list[tuple[str, str]]]:
    """Return the columns that a query compares with a literal, and those that it compares with each
    other, by name.
    """
    fixed: dict[str, Value] = {}
    equal: dict[tuple[str, str], None] = {}
    for part in tree.find_all(exp.EQ):
        a, b = part.this.unnest(), part.expression.unnest()
        if isinstance(a, exp.Column) and isinstance(b, exp.Column):
            equal[a.name.lower(), b.name.lower()] = None
        for column, value in ((a, b), (b, a)):
            if isinstance(column, exp.Column) and (found := _literal_value(value)) is not None:
                fixed[column.name.lower()] = found
    return fixed, list(equal)


def _literal_value(value: exp.Expr) -> Value:
    """Return the value of a literal, or None."""
    if (
        isinstance(value, exp.Cast)
        and isinstance(value.this, exp.Literal)
        and value.is_type("date")
    ):
        return date.fromisoformat(value.this.name)
    if isinstance(value, exp.Literal):
        return value.name if value.is_string else int(value.name) if value.is_int else None
    return None
