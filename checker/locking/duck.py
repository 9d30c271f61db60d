"""DuckDB as the independent executor of serial orders: the author's own texts, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from isolitmus.checker.execution.duck_tables import create_table
from isolitmus.checker.execution.duckdb_dialect import duck_text, open_duck, unsupported
from isolitmus.model.sql.statement import Read, statements_of
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.sql.syntax import Syntax, portable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.values import Row, Rows

    Results = tuple[tuple[Rows | None, int], ...]

__all__ = ["DuckTexts"]


class DuckTexts:
    """Runs transactions one after another in an in-memory DuckDB."""

    def __init__(self, litmus: Litmus) -> None:
        self._litmus = litmus
        self._texts = {
            statement: duck_text(Syntax(portable(statement.sql)).tree())
            for transaction in litmus.transactions.values()
            for statement in (*litmus.init, *statements_of(transaction))
        }
        self._known: dict[tuple[str, ...], tuple[Mapping[str, Rows], Results] | None] = {}

    def after(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """The tables after these transactions in this order; None if one of them fails."""
        found = self._after(order)
        return None if found is None else found[0]

    def told(
        self, order: tuple[str, ...]
    ) -> tuple[tuple[tuple[str, Rows], ...], tuple[tuple[Rows | None, int], ...]] | None:
        """The tables by name, and of each transaction what its queries gave, if it has any, and how many rows it
        changed; None if one of them fails.
        """
        found = self._after(order)
        return None if found is None else (tuple(sorted(found[0].items())), found[1])

    def _after(self, order: tuple[str, ...]) -> tuple[Mapping[str, Rows], Results] | None:
        if order not in self._known:
            self._known[order] = self._run(order)
        return self._known[order]

    def _run(self, order: tuple[str, ...]) -> tuple[Mapping[str, Rows], Results] | None:
        tables = self._litmus.tables.values()
        with open_duck() as connection:
            for schema in tables:
                connection.execute(create_table(schema))
                for index in schema.indexes:
                    if index.unique:
                        names = ", ".join(f'"{schema.columns[k].name}"' for k in index.columns)
                        connection.execute(
                            f'CREATE UNIQUE INDEX "{schema.name}.{index.name}" ON "{schema.name}" ({names})'
                        )
            for statement in self._litmus.init:
                connection.execute(self._texts[statement])
            results = []
            try:
                for name in order:
                    rows: list[Row] | None = None
                    changed = 0
                    for statement in statements_of(self._litmus.transactions[name]):
                        given = connection.execute(self._texts[statement]).fetchall()
                        if isinstance(statement, Read):
                            rows = [*(rows or []), *given]
                        else:
                            changed += given[0][0]
                    results.append((None if rows is None else sort_rows(rows), changed))
            except (
                duckdb.ConstraintException,
                duckdb.OutOfRangeException,
                duckdb.ConversionException,
                duckdb.InvalidInputException,
            ):
                return None
            except duckdb.Error as error:
                raise unsupported(error) from None
            left = {
                schema.name: sort_rows(
                    connection.execute(f'SELECT * FROM "{schema.name}"').fetchall()
                )
                for schema in tables
            }
            return left, tuple(results)
