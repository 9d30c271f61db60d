"""Postconditions of litmus tests: queries, executed in DuckDB, that must return no row at the end.

Beside the tables they may use ``t_written`` of a table ``t``: the last values of each row that a
committed transaction wrote, preceded by the transaction's name as ``written_by``.
"""

from __future__ import annotations

from functools import cache
from os import getpid
from typing import TYPE_CHECKING, Any

from isolitmus.checker.execution.duckdb_dialect import columns_of, create_table
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.values import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import duckdb

    from isolitmus.model.execution import Event
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.values import Row, Rows

Written = tuple[tuple[str, str, "Row"], ...]
"""Written rows: table, transaction, values."""


def written_rows(events: Iterable[Event]) -> Written:
    """Return the rows that the writes of transactions left."""
    left = (
        (write.table, event.name, write.after)
        for event in events
        for write in event.effect.writes
        if write.after is not None
    )
    return tuple(sorted(left, key=repr))


def violated_queries(
    tables: Iterable[tuple[Schema, Rows]],
    queries: Iterable[str],
    translate: Callable[[str], str] | None = None,
) -> tuple[str, ...]:
    """Return the queries, in Spark's SQL, that return rows in DuckDB if tables have these rows.

    Parameters
    ----------
    tables : iterable of tuple of Schema and rows
        Tables with their rows.
    queries : iterable of str
        The queries.
    translate : callable, optional
        Returns a query in DuckDB's SQL; by default for the SQL that the model supports, with
        Spark's errors.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> queries = ("SELECT * FROM t WHERE id < 0", "SELECT count(*) FROM t HAVING count(*) > 1")
    >>> violated_queries([(t, ((1,), (2,)))], queries)
    ('SELECT count(*) FROM t HAVING count(*) > 1',)
    """
    from isolitmus.checker.execution.duckdb_dialect import rolled_back, to_duck_sql
    from isolitmus.specs.sql.syntax import Syntax

    if translate is None:
        translate = lambda query: to_duck_sql(Syntax(query).tree())  # noqa: E731
    texts = {query: translate(query) for query in queries}
    duck = _duck(getpid())
    with rolled_back(duck):
        for schema, rows in tables:
            duck.execute(create_table(schema))
            for row in rows:
                values = ", ".join(map(literal, row))
                duck.execute(f'INSERT INTO "{schema.name}" VALUES ({values})')
        return tuple(query for query, text in texts.items() if duck.execute(text).fetchone())


def is_interrupted(error: Exception) -> bool:
    """Return whether DuckDB raised an error because a limit or a Ctrl-C ended its query."""
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"


def value_in_duckdb(text: str) -> Any:
    """Return the value of an expression in DuckDB's SQL; duckdb.Error if it has none."""
    from isolitmus.checker.execution.duckdb_dialect import rolled_back

    duck = _duck(getpid())
    with rolled_back(duck):
        found = duck.execute(f"SELECT {text}").fetchone()
    return None if found is None else found[0]


@cache
def _duck(_process: int) -> duckdb.DuckDBPyConnection:
    """Return the empty DuckDB of a process, with the functions of Spark."""
    from isolitmus.checker.execution.duckdb_dialect import open_duck_with_macros

    return open_duck_with_macros()


class Postconditions:
    """Postconditions of a litmus test; LitmusError if DuckDB cannot execute one."""

    def __init__(self, litmus: Litmus) -> None:
        self._litmus = litmus
        self._duck: duckdb.DuckDBPyConnection | None = None

    def broken(self, tables: Mapping[str, Rows], left: Written) -> Iterator[str]:
        """Yield the names of violated postconditions."""
        if not self._litmus.postconditions:
            return
        import duckdb  # a slow import, and few tests have postconditions

        from isolitmus.checker.execution.duckdb_dialect import open_duck, rolled_back

        self._duck = self._duck or self._connected(open_duck())
        with rolled_back(self._duck):
            for name in self._litmus.tables:
                self._fill(name, tables[name])
                self._fill(f"{name}_written", ((by, *row) for of, by, row in left if of == name))
            for name, query in self._litmus.postconditions.items():
                try:
                    found = self._duck.execute(query).fetchone()
                except duckdb.Error as error:
                    raise LitmusError(
                        f"{self._litmus.name}: postconditions.{name}: {str(error).splitlines()[0]}"
                    ) from None
                if found is not None:
                    yield name

    def _connected(self, duck: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """Create the tables in an empty database, and return it."""
        for schema in self._litmus.tables.values():
            columns = columns_of(schema)
            duck.execute(f'CREATE TABLE "{schema.name}" ({columns})')
            duck.execute(f'CREATE TABLE "{schema.name}_written" ("written_by" STRING, {columns})')
        return duck

    def _fill(self, name: str, rows: Iterable[Row]) -> None:
        """Insert rows into a table of DuckDB."""
        assert self._duck is not None
        for row in rows:
            marks = ", ".join("?" * len(row))
            self._duck.execute(f'INSERT INTO "{name}" VALUES ({marks})', list(row))
