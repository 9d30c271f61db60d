"""What is to hold when all is over: queries that are to give no row, asked of DuckDB.

Beside the tables they may ask ``t_written`` of a table ``t``: what each transaction that committed
left of each row that it wrote, its name first, as ``written_by``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.execution.duckdb_tables import columns_of
from isolitmus.model.errors import LitmusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import duckdb

    from isolitmus.model.execution import Event
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.values import Row, Rows

__all__ = ["Postconditions", "Written", "written_rows"]

Written = tuple[tuple[str, str, "Row"], ...]
"""Rows that were written: the table, by whom, the values."""


def written_rows(events: Iterable[Event]) -> Written:
    """What the writes of transactions have left."""
    left = (
        (write.table, event.name, write.after)
        for event in events
        for write in event.effect.writes
        if write.after is not None
    )
    return tuple(sorted(left, key=repr))


class Postconditions:
    """The postconditions of a litmus test. LitmusError for one that DuckDB does not understand."""

    def __init__(self, litmus: Litmus) -> None:
        self._litmus = litmus
        self._duck: duckdb.DuckDBPyConnection | None = None

    def broken(self, tables: Mapping[str, Rows], left: Written) -> Iterator[str]:
        """The names of those that do not hold."""
        if not self._litmus.postconditions:
            return
        import duckdb  # few tests have any, and it takes long

        from isolitmus.checker.execution.duckdb_dialect import open_duck

        self._duck = self._duck or self._connected(open_duck())
        self._duck.execute("BEGIN")
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
        self._duck.execute("ROLLBACK")

    def _connected(self, duck: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """An empty database, with the tables."""
        for schema in self._litmus.tables.values():
            columns = columns_of(schema)
            duck.execute(f'CREATE TABLE "{schema.name}" ({columns})')
            duck.execute(f'CREATE TABLE "{schema.name}_written" ("written_by" STRING, {columns})')
        return duck

    def _fill(self, name: str, rows: Iterable[Row]) -> None:
        assert self._duck is not None
        for row in rows:
            marks = ", ".join("?" * len(row))
            self._duck.execute(f'INSERT INTO "{name}" VALUES ({marks})', list(row))
