"""What Spark's statements are in DuckDB: the author's text, translated by sqlglot.

INSERT OVERWRITE becomes delete and insert, and OPTIMIZE and VACUUM, which change no row, are nothing. Where DuckDB
is known to differ from Spark, the SQL reader has refused the statement already (architecture.md 6).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import expressions as exp

from isolitmus.model import definition as df
from isolitmus.model import statement as st
from isolitmus.model.expression import RANGES
from isolitmus.model.values import literal
from isolitmus.specs.placeholders import aliased, marked, marked_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Column, Schema

__all__ = [
    "after_init",
    "condition",
    "create_table",
    "filled",
    "resumed",
    "sequences",
    "translate",
    "translated",
]


FUNCTIONS: Mapping[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
}
"""What DuckDB computes: of ``x + 1 < 5`` it makes ``x < 4``, which never fails."""


def translate(
    statement: st.Statement, schemas: Mapping[str, Schema], *, widens: bool = False
) -> list[str]:
    """The statements that do to the rows what a statement does; ``widens``: others alter its columns."""
    if isinstance(statement, st.Optimize | st.Vacuum | st.Read):
        return []
    if isinstance(statement, df.Definition):
        return _definition(statement)
    if isinstance(statement, df.Restore):
        table, earlier = statement.target, after_init(statement.target, statement.version)
        return [f'CREATE OR REPLACE TABLE "{table}" AS SELECT * FROM "{earlier}"']
    if isinstance(statement, df.Replace):
        return _replacement(statement, schemas)
    if isinstance(statement, df.Create):
        return _creation(statement, schemas)
    if isinstance(statement, df.Convert):
        return [_conversion(schemas[statement.target])]
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


def translated(sql: str, schemas: Mapping[str, Schema]) -> str:
    """A query."""
    return _sql(_tree(sql, schemas))


def condition(text: str) -> str:
    """A condition of Spark's as DuckDB has it."""
    return _sql(sqlglot.parse_one(text, read="databricks"))


def create_table(schema: Schema) -> str:
    """What makes the table as it is declared, empty."""
    return f'CREATE OR REPLACE TABLE "{schema.name}" ({_columns(schema)})'


def filled(schema: Schema) -> list[str]:
    """What puts the rows into a table that it holds from the start."""
    rows = [f"({', '.join(map(literal, r.values))})" for file in schema.held for r in file.rows]
    return [f'INSERT INTO "{schema.name}" VALUES {", ".join(rows)}'] if rows else []


def sequences(schema: Schema) -> list[str]:
    """For each identity column of a table that was just made, a sequence of its values."""
    made = [
        _sequence(schema.name, column, column.identity.start)
        for column in schema.columns
        if column.identity is not None
    ]
    return [*made, *_defaults(schema, schema.name)]


def resumed(table: str, column: Column, value: int) -> list[str]:
    """What has an identity column go on with a value."""
    alter = f'ALTER TABLE "{table}" ALTER "{column.name}"'
    return [
        f"{alter} DROP DEFAULT",
        _sequence(table, column, value),
        _default(table, table, column),
    ]


def _sequence(table: str, column: Column, first: int) -> str:
    low, high = RANGES["BIGINT"]
    assert column.identity is not None
    return (
        f'CREATE OR REPLACE SEQUENCE "{table}.{column.name}" MINVALUE {low} MAXVALUE {high}'
        f" START WITH {first} INCREMENT BY {column.identity.step}"
    )


def after_init(table: str, number: int) -> str:
    """What a copy of the table after that many init statements is called."""
    return f"{table.lower()} after init {number}"


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
            name = after_init(table.name.lower(), marked_version(table) or 0)
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            table.replace(exp.Table(this=exp.to_identifier(name), alias=alias))
    return _staged(tree, schemas)


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
    made = create_table(schema)
    if statement.query is None:
        return [*there, made]
    query = translated(re.split(r"(?is)\bAS\b", statement.sql, maxsplit=1)[1], schemas)
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
    query = translated(re.split(r"(?is)\bAS\b", statement.sql, maxsplit=1)[1], schemas)
    return [f"{made} AS {_as_declared(query, schema)}"]


def _conversion(schema: Schema) -> str:
    """A table made of the rows that are there, if it has not been made."""
    rows = (f"({', '.join(map(literal, row))})" for row in schema.parquet)
    query = _as_declared(f"VALUES {', '.join(rows)}", schema)
    return f'CREATE TABLE IF NOT EXISTS "{schema.name}" AS {query}'


def _as_declared(query: str, schema: Schema) -> str:
    """A query whose columns have the names and types of a table's."""
    names = ", ".join(f'"{column.name}"' for column in schema.columns)
    casts = ", ".join(f'CAST("{c.name}" AS {c.type}) AS "{c.name}"' for c in schema.columns)
    return f"SELECT {casts} FROM ({query}) AS given ({names})"


def _clone(statement: df.Clone) -> list[str]:
    """A copy of a table; a table with rows is not replaced by one."""
    target, version = statement.target, statement.version
    source = statement.source if version is None else after_init(statement.source, version)
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
    using = statement.using if isinstance(statement, st.Insert) else ()
    dynamic = isinstance(statement, st.Insert) and statement.dynamic
    if dynamic and schema.partitioned_by:
        same = (
            f'g."{c}" IS NOT DISTINCT FROM "{schema.name}"."{c}"' for c in schema.partitioned_by
        )
        where = f"EXISTS (SELECT 1 FROM replacement AS g WHERE {' AND '.join(same)})"
    elif using:
        names_ = [schema.columns[index].name for index in using]
        same = (f'g."{name}" = "{schema.name}"."{name}"' for name in names_)
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


def _defaults(schema: Schema, table: str) -> list[str]:
    """That a table takes the values of identity columns from the sequences."""
    return [
        _default(table, schema.name, column)
        for column in schema.columns
        if column.identity is not None
    ]


def _default(table: str, source: str, column: Column) -> str:
    sequence = f'"{source}.{column.name}"'
    return f'ALTER TABLE "{table}" ALTER "{column.name}" SET DEFAULT nextval(\'{sequence}\')'


def _columns(schema: Schema) -> str:
    return ", ".join(map(_column, schema.columns))


def _column(column: Column) -> str:
    return f'"{column.name}" {column.type}'


def _sql(tree: exp.Expr) -> str:
    computed = tree.transform(_computed)
    return computed.sql(dialect="duckdb", identify=True)  # a column may be called desc or end


def _computed(node: exp.Expr) -> exp.Expr:
    """Arithmetic as functions."""
    if type(node) in FUNCTIONS:
        return exp.Anonymous(this=FUNCTIONS[type(node)], expressions=[node.this, node.expression])
    if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        return exp.Anonymous(this="subtract", expressions=[exp.Literal.number(0), node.this])
    return node


def _staged(tree: exp.Expr, schemas: Mapping[str, Schema]) -> exp.Expr:
    """Of conditions with arithmetic, what they say of partitions first: of other partitions no row is read."""
    for where in tree.find_all(exp.Where):
        of = where.parent
        assert of is not None
        source = of.args["from_"] if isinstance(of, exp.Select) and of.args.get("from_") else of
        name = source.this.name.lower() if isinstance(source.this, exp.Table) else ""
        parts = {
            p.lower() for n, s in schemas.items() if n.lower() == name for p in s.partitioned_by
        }
        if not isinstance(where.this, exp.And) or not where.this.find(*FUNCTIONS, exp.Neg):
            continue
        early: list[exp.Expr] = []
        late: list[exp.Expr] = []
        for part in where.this.flatten():
            names = {column.name.lower() for column in part.find_all(exp.Column)}
            (early if names <= parts and not part.find(exp.Select) else late).append(part)
        if early and late:
            then = exp.Case(default=exp.false()).when(exp.and_(*early), exp.and_(*late))
            where.set("this", then)
    return tree
