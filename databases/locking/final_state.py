"""Final states of a litmus test under locking: table contents and the result of each client.

Final states are compared with those of serial orders, and checked against postconditions. Serial
orders are executed both by the model and by DuckDB, which runs the author's SQL texts one after
another; the two must agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from isolitmus.checker.execution.duckdb_dialect import (
    create_table,
    open_duck,
    to_duck_sql,
    unsupported_by_duckdb,
)
from isolitmus.checker.execution.postconditions import Postconditions, written_rows
from isolitmus.checker.execution.serial_orders import ModelExecutor
from isolitmus.databases.locking.events import ScanRecord, serial_effect_of
from isolitmus.model.errors import Disagreement
from isolitmus.model.run import ROLLED_BACK
from isolitmus.model.sql.statement import Read, statements_of
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.sql.syntax import Syntax, to_portable_sql

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.execution.postconditions import Written
    from isolitmus.databases.locking.simulation import Simulation
    from isolitmus.model.execution import Database, Event
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.values import Row, Rows

    Results = tuple[tuple[Rows | None, int], ...]
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class ClientResult:
    """Result that a client received from its transaction."""

    name: str
    """Name of the transaction."""
    outcome: str
    """Outcome: "committed", "rolled back", a conflict such as "Deadlock", or "error:CLASS"."""
    rows: Rows | None
    """Rows that its queries returned; None if it has no query."""
    changed: int
    """Number of rows that it changed."""
    timely: bool | None = None
    """True if the tables had the query's result at some moment while it ran.

    Only of a transaction that is a single query; else None.
    """


@dataclass(frozen=True, slots=True)
class FinalState:
    """Observable state after all transactions have ended."""

    tables: tuple[tuple[str, Rows], ...]
    """Rows of each table, by name."""
    told: tuple[ClientResult, ...]
    """Result of each client."""
    written: Written
    """Rows that each committed transaction left of those that it wrote."""


class FinalStates:
    """Final states of the runs of one litmus test."""

    def __init__(self, litmus: Litmus) -> None:
        self.litmus = litmus
        self.queries = {
            name
            for name, one in litmus.transactions.items()
            if [type(part) for part in statements_of(one)] == [Read]
        }
        self._gives: dict[tuple[str, object], Rows | None] = {}

    def of(self, walk: Simulation) -> FinalState:
        """Return the final state of a run.

        Raises
        ------
        WaitsForEver
            If some transactions never end.
        """
        walk.none_waits_for_ever()
        told = self.told(walk)
        return FinalState(
            table_rows(walk.states[-1]),
            tuple(told[name] for name in self.litmus.transactions),
            written_rows(event for event in walk.events if not event.aborted),
        )

    def told(self, walk: Simulation) -> dict[str, ClientResult]:
        """Return the client results of the transactions that have ended."""
        return {event.name: self._told(event, walk) for event in walk.events}

    def _told(self, event: Event, walk: Simulation) -> ClientResult:
        """Return a client's result; for a query, also whether it is timely."""
        done = event.effect
        assert isinstance(done, ScanRecord)
        if event.aborted:
            return ClientResult(event.name, _outcome(event), None, 0)
        timely = None
        if event.name in self.queries and done.rows is not None:
            rows = tuple(sort_rows(done.rows))
            first, last = walk.sessions[event.name].versions or (0, 0)
            while_it_ran = walk.states[first : last + 1]
            timely = any(self.gives(event.name, state) == rows for state in while_it_ran)
        return client_result(event.name, done, timely)

    def gives(self, name: str, state: Database) -> Rows | None:
        """Return the rows that a query returns on given tables."""
        key = name, table_rows(state)
        if key not in self._gives:
            rows = serial_effect_of(self.litmus, name, state, ()).rows
            self._gives[key] = None if rows is None else tuple(sort_rows(rows))
        return self._gives[key]


def _outcome(event: Event) -> str:
    """Return the outcome of a transaction that did not commit."""
    error = event.effect.error
    if error is not None and not event.conflict:
        return f"error:{error.exception}"
    return event.conflict or ROLLED_BACK


def client_result(name: str, done: ScanRecord, timely: bool | None = None) -> ClientResult:
    """Return the result that the client of a committed transaction receives."""
    rows = None if done.rows is None else tuple(sort_rows(done.rows))
    return ClientResult(name, "committed", rows, len(done.writes), timely)


def table_rows(state: Database) -> tuple[tuple[str, Rows], ...]:
    """Return the rows of the tables, sorted so that states can be compared."""
    return tuple((name, tuple(sort_rows(table.rows()))) for name, table in sorted(state.items()))


class DuckTexts:
    """Independent executor of serial orders: the SQL texts in an in-memory DuckDB."""

    def __init__(self, litmus: Litmus) -> None:
        self._litmus = litmus
        self._texts = {
            statement: to_duck_sql(Syntax(to_portable_sql(statement.sql)).tree())
            for transaction in litmus.transactions.values()
            for statement in (*litmus.init, *statements_of(transaction))
        }
        self._known: dict[tuple[str, ...], tuple[Mapping[str, Rows], Results] | None] = {}

    def after(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """Return the tables after these transactions in this order; None if one of them fails."""
        found = self._after(order)
        return None if found is None else found[0]

    def told(
        self, order: tuple[str, ...]
    ) -> tuple[tuple[tuple[str, Rows], ...], tuple[tuple[Rows | None, int], ...]] | None:
        """Return the tables and the client results of a serial order.

        Returns
        -------
        (tables, results) or None
            Tables by name; per transaction the rows of its queries, None if it has none, and the
            number of rows it changed. None if one of the transactions fails.
        """
        found = self._after(order)
        return None if found is None else (tuple(sorted(found[0].items())), found[1])

    def _after(self, order: tuple[str, ...]) -> tuple[Mapping[str, Rows], Results] | None:
        if order not in self._known:
            self._known[order] = self._run(order)
        return self._known[order]

    def _run(self, order: tuple[str, ...]) -> tuple[Mapping[str, Rows], Results] | None:
        """Return the tables and results of a serial order; None if a statement fails."""
        import duckdb  # slow to import, and few runs of sessions need it

        tables = self._litmus.tables.values()
        with open_duck() as connection:
            for schema in tables:
                connection.execute(create_table(schema))
                for index in schema.indexes:
                    if index.unique:
                        names = ", ".join(f'"{schema.columns[k].name}"' for k in index.columns)
                        connection.execute(
                            f'CREATE UNIQUE INDEX "{schema.name}.{index.name}" ON "{schema.name}"'
                            f" ({names})"
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
                raise unsupported_by_duckdb(error) from None
            left = {
                schema.name: sort_rows(
                    connection.execute(f'SELECT * FROM "{schema.name}"').fetchall()
                )
                for schema in tables
            }
            return left, tuple(results)


class SerialFinalStates:
    """Final states of the serial orders of a litmus test."""

    def __init__(self, litmus: Litmus) -> None:
        self.litmus = litmus
        self.model, self.duck = ModelExecutor(litmus), DuckTexts(litmus)
        self.postconditions = Postconditions(litmus)
        self._orders: dict[tuple[str, ...], FinalState | None] = {}

    def orders(self, end: FinalState) -> tuple[str, ...]:
        """Return the serial orders of the committed transactions with an equal final state.

        Tables, query results and numbers of changed rows are compared.
        """
        names = [told.name for told in end.told if told.outcome == "committed"]
        seen = end.tables, {_plain(told) for told in end.told if told.outcome == "committed"}
        return tuple(
            " ".join(order)
            for order in permutations(names)
            if (one := self.order(order)) is not None
            and (one.tables, set(map(_plain, one.told))) == seen
        )

    def order(self, names: tuple[str, ...]) -> FinalState | None:
        """Return the final state of a serial order; None if one of its transactions fails.

        Raises
        ------
        Disagreement
            If the model and DuckDB disagree.
        """
        if names not in self._orders:
            self._orders[names] = self._order(names)
        return self._orders[names]

    def _order(self, names: tuple[str, ...]) -> FinalState | None:
        """Return the final state of a serial order; raise Disagreement between executors."""
        state = self.model.state(names)
        end = None
        if state is not None:
            told, left = [], []
            for k, name in enumerate(names):
                done = self.model.effect(names[: k + 1])
                assert isinstance(done, ScanRecord)
                told.append(client_result(name, done))
                left += [(w.table, name, w.after) for w in done.writes if w.after is not None]
            end = FinalState(table_rows(state), tuple(told), tuple(sorted(left, key=repr)))
        theirs = self.duck.told(names)
        ours = None if end is None else (end.tables, tuple((t.rows, t.changed) for t in end.told))
        if ours != theirs:
            raise Disagreement(
                f"{self.litmus.name}: the serial order '{' '.join(names)}' gives {ours} by the"
                f" model and {theirs} by DuckDB"
            )
        return end

    def breaks(self, end: FinalState) -> tuple[str, ...]:
        """Return the postconditions that a final state violates."""
        return tuple(self.postconditions.broken(dict(end.tables), end.written))

    def alone(self) -> dict[str, tuple[str, ...]]:
        """Return the postconditions that each serial order of all transactions violates."""
        orders = {order: self.order(order) for order in permutations(self.litmus.transactions)}
        return {" ".join(o): self.breaks(end) for o, end in orders.items() if end is not None}

    def plausible(self, end: FinalState) -> bool | None:
        """Return whether serial orders explain the query results that no table version explains.

        These are the results of queries that equal no version of the tables during the query. The
        value is True if each is the query's result after some transactions in some serial order,
        and None if there are no such results.
        """
        late = [told for told in end.told if told.timely is False]
        return None if not late else all(told.rows in self._results(told.name) for told in late)

    def _results(self, name: str) -> Iterator[Rows | None]:
        """Yield the results of a query after each sequence of the other transactions."""
        others = [other for other in self.litmus.transactions if other != name]
        for size in range(len(others) + 1):
            for before in permutations(others, size):
                end = self.order((*before, name))
                if end is not None:
                    yield end.told[-1].rows


def _plain(told: ClientResult) -> tuple[str, Rows | None, int]:
    return told.name, told.rows, told.changed
