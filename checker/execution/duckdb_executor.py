"""Executor of serial orders in DuckDB, independent of the model: the same SQL, none of its code.

The statements that DuckDB runs come from duckdb_translation.py. Constraints and table features,
which DuckDB does not have in this form, are handled here.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import duckdb

from isolitmus.checker.execution.duckdb_dialect import (
    create_table,
    fill_table,
    open_duck_with_macros,
    resume_sequence,
    roll_back,
    rolled_back,
    sequences,
    unsupported_by_duckdb,
)
from isolitmus.checker.execution.duckdb_translation import (
    constraint_condition,
    init_copy_name,
    stored_steps,
    translate_query,
)
from isolitmus.model.delta.header import MAPPING_MODE
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.sql.binding import TooManyRows, bind_parameters, scalar_value
from isolitmus.specs.sql.configuration import SEVERAL
from isolitmus.specs.sql.statements import syntax_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.checker.execution.duckdb_translation import DuckStep
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.schema import Column
    from isolitmus.model.sql.values import Rows

Checks = dict[tuple[str, str], str]
"""Conditions of constraints, by table and name."""


Features = frozenset[tuple[str, str]]
"""Features of tables that DROP FEATURE can remove, by table and name.

The name `MAPPING_MODE` stands for column mapping by name, without which no column can be dropped or
renamed.
"""

FAILING = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.OutOfRangeException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
)
"""Errors of a statement that fails at its place in a serial order."""


class _NoFeature(Exception):
    """A feature cannot be removed, or is missing."""


class _Duck:
    """One DuckDB per process, because starting one costs more than a query.

    It holds the initial tables of the executor that used it last.
    """

    def __init__(self) -> None:
        self._connection = open_duck_with_macros()
        # In a join on rowid, DuckDB 2.0.0 sometimes misses a row that the transaction itself
        # wrote, because of a filter that the join derives from its other side.
        self._connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")
        self._holds: DuckExecutor | None = None

    def run(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Execute a statement.

        Raises an error in FAILING, or LitmusError if DuckDB does not support it.
        """
        try:
            return self._connection.execute(sql)
        except FAILING:
            raise
        except duckdb.Error as error:
            raise unsupported_by_duckdb(error) from None

    def _make(self, setup: Iterable[str]) -> None:
        """Create the initial tables; raise the error of `unsupported_by_duckdb` if one fails."""
        self._holds = None
        for sql in setup:
            try:
                self.run(sql)
            except FAILING as error:
                raise unsupported_by_duckdb(error) from None

    @contextmanager
    def holding(
        self, executor: DuckExecutor, setup: Iterable[str], *, keep: bool
    ) -> Iterator[None]:
        """Open a transaction on the executor's initial tables, and roll it back at the end.

        ``setup`` creates the tables; with ``keep`` they stay for the next transaction.
        """
        if keep and self._holds is not executor:
            roll_back(self._connection)  # the tables stay, so they are made in no transaction
            self._make(setup)
            self._holds = executor
        with rolled_back(self._connection):
            if not keep:
                self._make(setup)
            yield


_duck = cache(_Duck)


class DuckExecutor:
    """Executor of transactions one after another in an in-memory DuckDB; each order is run once."""

    def __init__(self, litmus: Litmus) -> None:
        self._litmus = litmus
        tables = litmus.tables
        changes = [t.change for t in litmus.transactions.values() if isinstance(t, df.Definition)]
        statements = litmus.transactions.values()
        columns = (df.AddColumns, df.DropColumns, df.RenameColumn)
        self._widens = any(isinstance(change, columns) for change in changes) or any(
            isinstance(s, st.Insert) and s.options.grows for s in statements
        )
        lets = (query for client in litmus.clients.values() for query in client.let.values())
        kept = {
            (select.table, select.version)
            for statement in (*litmus.transactions.values(), *lets)
            for select in st.untracked_queries(statement)
            if select.version is not None
        }
        self._setup: list[str] = []
        for schema in tables.values():
            gone = f'DROP TABLE IF EXISTS "{schema.name}"'
            made = [create_table(schema), *sequences(schema), *fill_table(schema)]
            self._setup += made if schema.exists else [gone]
        self._checks: list[Checks] = [{}]
        self._features: list[Features] = [
            frozenset(
                (schema.name, name)
                for schema in tables.values()
                if schema.exists
                for name in _features_named(schema.properties)
            )
        ]
        for number, statement in enumerate(litmus.init, 1):
            self._setup += [step.sql for step in stored_steps(statement, tables)]
            self._checks.append(self._constrained(self._checks[-1], statement))
            self._features.append(self._featured(self._features[-1], self._checks[-1], statement))
            self._setup += [
                f'CREATE OR REPLACE TEMP TABLE "{init_copy_name(*at)}" AS SELECT * FROM "{at[0]}"'
                for at in sorted(kept)
                if at[1] == number
            ]
        self._steps = {
            name: stored_steps(statement, tables)
            for name, statement in litmus.transactions.items()
            if not (litmus.client(name).let or self._widens)
        }
        self._counts = any(schema.generates for schema in tables.values())
        """True if there are sequences, which ROLLBACK does not reset."""
        self._orders: dict[tuple[str, ...], Mapping[str, Rows] | None] = {}

    def after(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """Return the tables after these transactions in this order; None if one of them fails."""
        if order not in self._orders:
            with _duck().holding(self, self._setup, keep=not self._counts):
                self._orders[order] = self._run(order)
        return self._orders[order]

    def _run(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """Return the tables after transactions in this order; None if one of them fails."""
        run = _duck().run
        reached: dict[str, int] = {}
        checks, features = self._checks[-1], self._features[-1]
        for name in order:
            app = self._litmus.client(name).app
            if app is not None and reached.get(app[0], -1) >= app[1]:
                continue
            if app is not None:
                reached[app[0]] = app[1]
            try:
                for step in self._steps.get(name) or self._bound(name):
                    run(step.sql)
                statement = self._litmus.transactions[name]
                self._synced(statement)
                features = self._featured(features, checks, statement)
                checks = self._constrained(checks, statement)
                for (table, _), holds in checks.items():
                    broken = f"SELECT error('a row outside') FROM \"{table}\""
                    run(f"{broken} WHERE ({holds}) IS NOT TRUE")
            except (TooManyRows, _NoFeature, *FAILING):
                return None
        return {
            name: sort_rows(run(f'SELECT * FROM "{name}"').fetchall())
            for name, schema in self._litmus.tables.items()
            if schema.exists or run(f"FROM duckdb_tables() WHERE table_name = '{name}'").fetchall()
        }

    def _synced(self, statement: st.Statement) -> None:
        """Execute SYNC IDENTITY: the sequence continues after the existing values."""
        match statement:
            case df.Definition(target=target, change=df.SyncIdentity(name=name)):
                schema = self._litmus.tables[target]
                column = schema.columns[schema.index(name) or 0]
                self._resume(schema.name, column)

    def _resume(self, table: str, column: Column) -> None:
        """Advance an identity column's sequence to the stored values if it lags behind."""
        run, identity = _duck().run, column.identity
        assert identity is not None
        first, step = identity.start, identity.step
        best = "max" if step > 0 else "min"
        found = run(f'SELECT {best}("{column.name}") FROM "{table}"').fetchall()[0][0]
        if found is None or (found - first) * step < 0:
            return
        mark = first + -((first - found) // step) * step
        said = f"FROM duckdb_sequences() WHERE sequence_name = '{table}.{column.name}'"
        last = run(f"SELECT last_value {said}").fetchall()[0][0]
        if last is None or (mark - last) * step > 0:
            for sql in resume_sequence(table, column, mark + step):
                run(sql)

    def _constrained(self, checks: Checks, statement: st.Statement) -> Checks:
        """Return the constraints after a statement."""
        match statement:
            case df.Definition(target=target, change=df.AddConstraint(name=name)):
                return {**checks, (target, name): constraint_condition(statement)}
            case df.Definition(target=target, change=df.DropConstraint(name=name)):
                return {at: sql for at, sql in checks.items() if at != (target, name)}
            case df.Replace(target=target):
                return {at: sql for at, sql in checks.items() if at[0] != target}
            case df.Restore(target=target, version=version):
                others = {at: sql for at, sql in checks.items() if at[0] != target}
                then = self._checks[version]
                return others | {at: sql for at, sql in then.items() if at[0] == target}
            case df.Clone(target=target, source=source, version=version):
                others = {at: sql for at, sql in checks.items() if at[0] != target}
                then = checks if version is None else self._checks[version]
                return others | {
                    (target, at[1]): sql for at, sql in then.items() if at[0] == source
                }
        return checks

    def _featured(self, features: Features, checks: Checks, statement: st.Statement) -> Features:
        """Return the features after a statement; _NoFeature if it fails."""
        match statement:
            case df.Definition(target=target, change=df.DropColumns() | df.RenameColumn()):
                if (target, MAPPING_MODE) not in features:
                    raise _NoFeature
            case df.Definition(target=target, change=df.RemoveMapping()):
                return features - {(target, MAPPING_MODE)}
            case df.Restore(target=target, version=version):
                mapped = (target, MAPPING_MODE)
                return features - {mapped} | (self._features[version] & {mapped})
            case df.Definition(target=target, change=df.SetProperties(properties=properties)):
                return features | {(target, name) for name in _features_named(properties)}
            case df.Definition(target=target, change=df.AddConstraint()):
                return features | {(target, "checkConstraints")}
            case df.Definition(change=df.DropFeature(name=name)) if name in SEVERAL:
                pass
            case df.Definition(target=target, change=df.DropFeature(name=name)):
                used = name == "checkConstraints" and any(table == target for table, _ in checks)
                if used or (target, name) not in features:
                    raise _NoFeature
                return features - {(target, name)}
            case (
                df.Replace(target=target, properties=properties)
                | df.Create(target=target, properties=properties)
            ):
                return features | {(target, name) for name in _features_named(properties)}
            case df.Clone(target=target, source=source):
                return features | {(target, name) for table, name in features if table == source}
        return features

    def _bound(self, name: str) -> list[DuckStep]:
        """Return the steps of a transaction at its place in an order, with what its client reads
        there.
        """
        tables, run = self._litmus.tables, _duck().run
        values = {
            parameter: scalar_value(
                query.sql, tuple(run(translate_query(syntax_of(query).tree(), tables)).fetchall())
            )
            for parameter, query in self._litmus.client(name).let.items()
        }
        statement = bind_parameters(self._litmus.transactions[name], values)
        return stored_steps(statement, tables, _described if self._widens else None)


def _described(query: str) -> list[str]:
    """Return the names of a query's columns, now."""
    return [name for name, *_ in _duck().run(f"DESCRIBE {query}").fetchall()]


def _features_named(properties: Mapping[str, str]) -> list[str]:
    """Return the table features that properties name, and the mapping mode if it is "name"."""
    start = "delta.feature."
    mapped = properties.get(MAPPING_MODE, "none").lower() == "name"
    names = [key.removeprefix(start) for key in properties if key.startswith(start)]
    return [*names, MAPPING_MODE] if mapped else names
