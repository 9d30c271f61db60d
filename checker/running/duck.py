"""DuckDB as the independent executor of serial orders: the same SQL, none of our model.

sqlglot translates the author's text. INSERT OVERWRITE becomes delete and insert, and OPTIMIZE,
which changes no row, is nothing. Where DuckDB is known to differ from Spark, the SQL reader has
refused the statement already (architecture.md 6).
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import duckdb
import sqlglot
from sqlglot import expressions as exp

from isolitmus.model import definition as df
from isolitmus.model import statement as st
from isolitmus.model.expression import RANGES
from isolitmus.model.values import sort_rows
from isolitmus.specs.binding import TooManyRows, bind, scalar
from isolitmus.specs.placeholders import aliased, marked, marked_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schema import Column, Schema
    from isolitmus.model.values import Rows

__all__ = ["DuckExecutor"]

Checks = dict[tuple[str, str], str]
"""The conditions of the constraints, by table and name."""


Features = frozenset[tuple[str, str]]
"""The features that tables have and DROP FEATURE can take away, by table and name."""


class _NoFeature(Exception):
    """A feature cannot be taken away."""


class _Duck:
    """One DuckDB for the process, since starting one costs more than what it is asked; it holds the
    initial tables of whoever asked last.
    """

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET threads = 1")
        self._holds: DuckExecutor | None = None

    def run(self, sql: str) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(sql)

    def _make(self, setup: Iterable[str]) -> None:
        self._holds = None
        for sql in setup:
            self.run(sql)

    @contextmanager
    def holding(
        self, executor: DuckExecutor, setup: Iterable[str], *, keep: bool
    ) -> Iterator[None]:
        """A transaction on the executor's initial tables, which are made by ``setup``, and stay if they
        are to be kept.
        """
        if keep and self._holds is not executor:
            self._make(setup)
            self._holds = executor
        self.run("BEGIN TRANSACTION")
        try:
            if not keep:
                self._make(setup)
            yield
        finally:
            self.run("ROLLBACK")


_duck = cache(_Duck)


class DuckExecutor:
    """Runs transactions one after another in an in-memory DuckDB; an order is run once."""

    def __init__(self, litmus: Litmus) -> None:
        self._litmus = litmus
        tables = litmus.tables
        changes = [t.change for t in litmus.transactions.values() if isinstance(t, df.Definition)]
        statements = litmus.transactions.values()
        columns = (df.AddColumns, df.DropColumn, df.RenameColumn)
        widens = any(isinstance(change, columns) for change in changes) or any(
            isinstance(s, st.Insert) and s.grows for s in statements
        )
        lets = (query for client in litmus.clients.values() for query in client.let.values())
        kept = {
            (select.table, select.version)
            for statement in (*litmus.transactions.values(), *lets)
            for select in st.unseen(statement)
            if select.version is not None
        }
        self._setup: list[str] = []
        for schema in tables.values():
            gone = f'DROP TABLE IF EXISTS "{schema.name}"'
            self._setup += [_made(schema), *_sequences(schema)] if schema.exists else [gone]
        self._checks: list[Checks] = [{}]
        self._features: Features = frozenset(
            (schema.name, name)
            for schema in tables.values()
            if schema.exists
            for name in _asked(schema.properties)
        )
        for number, statement in enumerate(litmus.init, 1):
            self._setup += _translate(statement, tables)
            self._checks.append(self._constrained(self._checks[-1], statement))
            self._features = _featured(self._features, self._checks[-1], statement)
            self._setup += [
                f'CREATE OR REPLACE TEMP TABLE "{_after(*at)}" AS SELECT * FROM "{at[0]}"'
                for at in sorted(kept)
                if at[1] == number
            ]
        self._texts = {
            name: _translate(statement, tables, widens=widens)
            for name, statement in litmus.transactions.items()
            if not litmus.client(name).let
        }
        self._counts = any(schema.generates for schema in tables.values())
        """Whether there are sequences, which no ROLLBACK takes back."""
        self._orders: dict[tuple[str, ...], Mapping[str, Rows] | None] = {}

    def after(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """The tables after these transactions in this order; None if one of them fails."""
        if order not in self._orders:
            with _duck().holding(self, self._setup, keep=not self._counts):
                self._orders[order] = self._run(order)
        return self._orders[order]

    def _run(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        run = _duck().run
        reached: dict[str, int] = {}
        checks, features = self._checks[-1], self._features
        for name in order:
            app = self._litmus.client(name).app
            if app is not None and reached.get(app[0], -1) >= app[1]:
                continue
            if app is not None:
                reached[app[0]] = app[1]
            try:
                for sql in self._texts.get(name) or self._bound(name):
                    run(sql)
                statement = self._litmus.transactions[name]
                features = _featured(features, checks, statement)
                checks = self._constrained(checks, statement)
                for (table, _), condition in checks.items():
                    broken = f"SELECT error('a row outside') FROM \"{table}\""
                    run(f"{broken} WHERE ({condition}) IS NOT TRUE")
            except (
                TooManyRows,
                _NoFeature,
                duckdb.BinderException,
                duckdb.CatalogException,
                duckdb.OutOfRangeException,
                duckdb.ConversionException,
                duckdb.InvalidInputException,
            ):
                return None
        return {
            name: sort_rows(run(f'SELECT * FROM "{name}"').fetchall())
            for name, schema in self._litmus.tables.items()
            if schema.exists or run(f"FROM duckdb_tables() WHERE table_name = '{name}'").fetchall()
        }

    def _constrained(self, checks: Checks, statement: st.Statement) -> Checks:
        """The checks that hold once a statement is through."""
        match statement:
            case df.Definition(target=target, change=df.AddConstraint(name=name, text=text)):
                condition = _sql(sqlglot.parse_one(text, read="databricks"))
                return {**checks, (target, name): condition}
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

    def _bound(self, name: str) -> list[str]:
        """The statement of a transaction whose client reads first, now."""
        tables, run = self._litmus.tables, _duck().run
        values = {
            parameter: scalar(query.sql, tuple(run(_query(query.sql, tables)).fetchall()))
            for parameter, query in self._litmus.client(name).let.items()
        }
        return _translate(bind(self._litmus.transactions[name], values, tables), tables)


def _sequences(schema: Schema) -> list[str]:
    """For each identity column of a table that was just made, a sequence of its values."""
    low, high = RANGES["BIGINT"]
    made = [
        f'CREATE OR REPLACE SEQUENCE "{schema.name}.{column.name}" MINVALUE {low} MAXVALUE {high}'
        f" START WITH {column.identity.start} INCREMENT BY {column.identity.step}"
        for column in schema.columns
        if column.identity is not None
    ]
    return [*made, *_defaults(schema, schema.name)]


def _defaults(schema: Schema, table: str) -> list[str]:
    """That a table takes the values of identity columns from the sequences."""
    return [
        f'ALTER TABLE "{table}" ALTER "{column.name}" SET DEFAULT nextval(\'"{schema.name}.{column.name}"\')'
        for column in schema.columns
        if column.identity is not None
    ]


def _query(sql: str, schemas: Mapping[str, Schema]) -> str:
    return _sql(_tree(sql, schemas))


def _tree(sql: str, schemas: Mapping[str, Schema]) -> exp.Expr:
    """The author's text; a table at the version of an init statement is a table of its own, and one
    by another path is the table.
    """
    tree = sqlglot.parse_one(marked(sql), read="databricks")
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            name = aliased(table, schemas) or table.name
            table.set("this", exp.to_identifier(name))
            table.set("db", None)
        if table.args.get("version"):
            name = _after(table.name.lower(), marked_version(table) or 0)
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            table.replace(exp.Table(this=exp.to_identifier(name), alias=alias))
    return tree


def _after(table: str, number: int) -> str:
    return f"{table.lower()} after init {number}"


def _asked(properties: Mapping[str, str]) -> list[str]:
    start = "delta.feature."
    return [key.removeprefix(start) for key in properties if key.startswith(start)]


def _featured(features: Features, checks: Checks, statement: st.Statement) -> Features:
    """The features once a statement is through, which finds these constraints; _NoFeature if it fails."""
    match statement:
        case df.Definition(target=target, change=df.SetProperties(properties=properties)):
            return features | {(target, name) for name in _asked(properties)}
        case df.Definition(target=target, change=df.AddConstraint()):
            return features | {(target, "checkConstraints")}
        case df.Definition(target=target, change=df.DropFeature(name=name)):
            used = name == "checkConstraints" and any(table == target for table, _ in checks)
            if used or (target, name) not in features:
                raise _NoFeature
            return features - {(target, name)}
        case (
            df.Replace(target=target, properties=properties)
            | df.Create(target=target, properties=properties)
        ):
            return features | {(target, name) for name in _asked(properties)}
        case df.Clone(target=target, source=source):
            return features | {(target, name) for table, name in features if table == source}
    return features


def _column(column: Column) -> str:
    return f'"{column.name}" {column.type}'


def _translate(
    statement: st.Statement, schemas: Mapping[str, Schema], *, widens: bool = False
) -> list[str]:
    if isinstance(statement, st.Optimize | st.Read):
        return []
    if isinstance(statement, df.Definition):
        return _definition(statement)
    if isinstance(statement, df.Restore):
        table, earlier = statement.target, _after(statement.target, statement.version)
        return [f'CREATE OR REPLACE TABLE "{table}" AS SELECT * FROM "{earlier}"']
    if isinstance(statement, df.Replace):
        return _replacement(statement, schemas)
    if isinstance(statement, df.Create):
        return _creation(statement, schemas)
    if isinstance(statement, df.Clone):
        return _clone(statement)
    if isinstance(statement, st.Truncate):
        return [f'DELETE FROM "{statement.target}"']
    tree = _tree(statement.sql, schemas)
    if isinstance(statement, st.Merge) and isinstance(tree, exp.Merge):
        return _merge(statement, tree)
    if isinstance(statement, st.Insert | df.Late) and isinstance(tree, exp.Insert):
        schema = schemas[statement.target]
        if isinstance(statement, st.Insert) and statement.grows is not None:
            wider = replace(schema, columns=(*schema.columns, *statement.grows))
            into = f'ALTER TABLE "{schema.name}" ADD COLUMN IF NOT EXISTS'
            comes = [f'{into} "{c.name}" {c.type}' for c in statement.grows]
            return [*comes, *_insert(statement, tree, wider, listed=True)]
        return _insert(statement, tree, schema, listed=not widens)
    return [_sql(tree)]


def _definition(statement: df.Definition) -> list[str]:
    """The columns that come, go and change their names: what else it does no later statement sees in
    its rows.
    """
    alter = f'ALTER TABLE "{statement.target}"'
    match statement.change:
        case df.AddColumns(columns):
            return [f'{alter} ADD COLUMN "{c.name}" {c.type}' for c in columns]
        case df.DropColumn(name):
            return [f'{alter} DROP COLUMN "{name}"']
        case df.RenameColumn(name, other):
            return [f'{alter} RENAME COLUMN "{name}" TO "{other}"']
    return []


def _replacement(statement: df.Replace, schemas: Mapping[str, Schema]) -> list[str]:
    """A table made anew; its rows are collected first, since they may come from what goes."""
    schema = schemas[statement.target]
    there = [] if statement.create else [f'FROM "{schema.name}" LIMIT 0']
    made = _made(schema)
    if statement.query is None:
        return [*there, made]
    query = _query(re.split(r"(?is)\bAS\b", statement.sql, maxsplit=1)[1], schemas)
    return [
        *there,
        f"CREATE OR REPLACE TEMP TABLE replacement AS {query}",
        made,
        f'INSERT INTO "{schema.name}" SELECT * FROM replacement',
    ]


def _creation(statement: df.Create, schemas: Mapping[str, Schema]) -> list[str]:
    """A table made if it is not there; in one statement, for which it is there or not."""
    schema = schemas[statement.target]
    made = f'CREATE TABLE {"IF NOT EXISTS" if statement.if_not_exists else ""} "{schema.name}"'
    if statement.query is None:
        return [f"{made} ({_columns(schema)})"]
    query = _query(re.split(r"(?is)\bAS\b", statement.sql, maxsplit=1)[1], schemas)
    names = ", ".join(f'"{column.name}"' for column in schema.columns)
    casts = ", ".join(f'CAST("{c.name}" AS {c.type}) AS "{c.name}"' for c in schema.columns)
    return [f"{made} AS SELECT {casts} FROM ({query}) AS given ({names})"]


def _clone(statement: df.Clone) -> list[str]:
    """A copy of a table; a table with rows is not replaced by one."""
    target, version = statement.target, statement.version
    source = statement.source if version is None else _after(statement.source, version)
    copy = f'TABLE "{target}" AS SELECT * FROM "{source}"'
    match statement.how:
        case "create":
            return [f"CREATE {copy}"]
        case "create if not exists":
            return [f"CREATE {copy.replace('TABLE', 'TABLE IF NOT EXISTS', 1)}"]
        case "create or replace":
            there = f'CREATE TABLE IF NOT EXISTS "{target}" AS SELECT * FROM "{source}" LIMIT 0'
        case "replace":
            there = f'FROM "{target}" LIMIT 0'
    return [there, f"SELECT error('not empty') FROM \"{target}\"", f"CREATE OR REPLACE {copy}"]


def _made(schema: Schema) -> str:
    return f'CREATE OR REPLACE TABLE "{schema.name}" ({_columns(schema)})'


def _columns(schema: Schema) -> str:
    return ", ".join(map(_column, schema.columns))


def _insert(
    statement: st.Insert | df.Late, tree: exp.Insert, schema: Schema, *, listed: bool
) -> list[str]:
    """An INSERT; one that replaces collects its rows first, since they may come from what goes. Columns
    that it does not list are ``listed`` for it, unless others alter them: then they go by position.
    """
    into = tree.this
    named = into.expressions if isinstance(into, exp.Schema) else []
    spec = (into.this if isinstance(into, exp.Schema) else into).args.get("partition")
    parts = spec.expressions if spec is not None else []
    fixed = {part.this.name.lower(): _sql(part.expression) for part in parts}
    open_ = [c.name for c in schema.columns if c.name.lower() not in fixed]
    given = [n.name for n in named] or (open_ if listed or fixed else [])
    names = ", ".join(f'"{c}"' for c in [*given, *fixed])
    columns = f"({names})" if names else ""
    query = _sql(tree.expression)
    if fixed:
        query = f"SELECT *, {', '.join(fixed.values())} FROM ({query}) AS given"
    condition = tree.args.get("where")
    if not (tree.args.get("overwrite") or condition):
        return [f'INSERT INTO "{schema.name}" {columns} {query}']
    check, where = [], "TRUE"
    dynamic = isinstance(statement, st.Insert) and statement.dynamic
    if dynamic and schema.partitioned_by:
        same = (
            f'g."{c}" IS NOT DISTINCT FROM "{schema.name}"."{c}"' for c in schema.partitioned_by
        )
        where = f"EXISTS (SELECT 1 FROM replacement AS g WHERE {' AND '.join(same)})"
    elif condition or fixed:
        same = (f'"{name}" = {value}' for name, value in fixed.items())
        where = _sql(condition) if condition else " AND ".join(same)
        check = [f"SELECT error('a row outside') FROM replacement WHERE ({where}) IS NOT TRUE"]
    return [
        f'CREATE OR REPLACE TEMP TABLE replacement AS SELECT * FROM "{schema.name}" LIMIT 0',
        *_defaults(schema, "replacement"),
        f"INSERT INTO replacement {columns} {query}",
        *check,
        f'DELETE FROM "{schema.name}" WHERE {where}',
        f'INSERT INTO "{schema.name}" SELECT * FROM replacement',
    ]


def _merge(statement: st.Merge, tree: exp.Merge) -> list[str]:
    """A MERGE; one that deletes without a condition may match a row several times, in Spark but not
    in DuckDB, and becomes a DELETE and an INSERT.
    """
    whens = tree.args["whens"].expressions
    for when in whens:
        then = when.args["then"]
        if isinstance(then, exp.Update):
            for assignment in then.expressions:
                if isinstance(assignment, exp.EQ):
                    assignment.this.set("table", None)
    matched = [(clause.action, clause.condition) for clause in statement.matched]
    if matched != [("delete", None)] or len(statement.not_matched) > 1 or statement.by_source:
        return [_sql(tree)]
    target, source, on = (_sql(tree.args[part]) for part in ("this", "using", "on"))
    inserts = [when for when in whens if not when.args["matched"]]
    before, after = [], []
    for when in inserts:
        then, guard = when.args["then"], when.args.get("condition")
        starred = isinstance(then.this, exp.Star)
        values = "*" if starred else ", ".join(map(_sql, then.expression.expressions))
        columns = "" if starred or then.this is None else _sql(then.this)
        before.append(
            f"CREATE OR REPLACE TEMP TABLE addition AS SELECT {values} FROM {source}"
            f" WHERE NOT EXISTS (SELECT 1 FROM {target} WHERE {on})"
            f" AND ({'TRUE' if guard is None else _sql(guard)})"
        )
        order = "BY NAME" if starred else columns
        after.append(f'INSERT INTO "{statement.target}" {order} SELECT * FROM addition')
    delete = f"DELETE FROM {target} WHERE EXISTS (SELECT 1 FROM {source} WHERE {on})"
    return [*before, delete, *after]


def _sql(tree: exp.Expr) -> str:
    return tree.sql(dialect="duckdb", identify=True)  # a column may be called desc or end
