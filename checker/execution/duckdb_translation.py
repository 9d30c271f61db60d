"""What Spark's statements are in DuckDB: steps, made by sqlglot from the tree of the author's text.

INSERT OVERWRITE becomes delete and insert; OPTIMIZE and VACUUM, which change no row, only look whether the table is there. Where DuckDB
is known to differ from Spark, the SQL reader has refused the statement already (docs/ARCHITECTURE.md, 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.checker.execution.duck_planned import COMPUTED, conjunct_trees, planned, staged
from isolitmus.checker.execution.duck_steps import DuckStep, inserted, merged, nulls_of_partitions
from isolitmus.checker.execution.duck_tables import columns_of, create_table
from isolitmus.checker.execution.duckdb_dialect import duck_text
from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql import definition as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.definitions import checked
from isolitmus.specs.sql.placeholders import aliased, marked_version
from isolitmus.specs.sql.sql_replacing import selected
from isolitmus.specs.sql.statements import syntax_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema

__all__ = ["after_init", "constraint_condition", "stored_steps", "translate", "translated"]


def translate(
    statement: st.Statement, schemas: Mapping[str, Schema], *, widens: bool = False
) -> list[DuckStep]:
    """The steps that do to the rows what a statement does; ``widens``: others alter its columns."""
    if isinstance(statement, st.Read):
        return []
    if isinstance(statement, st.Optimize | st.Vacuum):  # which fail where there is no table
        return [DuckStep("check", f'SELECT 1 FROM "{statement.target}" LIMIT 0')]
    if isinstance(statement, st.Block):
        return [
            step for one in statement.statements for step in translate(one, schemas, widens=widens)
        ]
    if isinstance(statement, df.Definition):
        return _definition(statement)
    if isinstance(statement, df.Restore):
        table, earlier = statement.target, after_init(statement.target, statement.version)
        return [
            DuckStep("write", f'CREATE OR REPLACE TABLE "{table}" AS SELECT * FROM "{earlier}"')
        ]
    if isinstance(statement, df.Replace):
        return _replacement(statement, schemas)
    if isinstance(statement, df.Create):
        return _creation(statement, schemas)
    if isinstance(statement, df.Convert):
        return [DuckStep("write", _conversion(schemas[statement.target]))]
    if isinstance(statement, df.Clone):
        return _clone(statement)
    if isinstance(statement, st.Truncate):
        return [DuckStep("write", f'DELETE FROM "{statement.target}"')]
    tree = _tree(syntax_of(statement).tree(), schemas)
    schema = _target(statement, schemas)
    match statement, tree:
        case st.Update(), exp.Update():
            _unqualified(tree)
            return [*_first(tree, schema, schemas), DuckStep("write", duck_text(tree))]
        case st.Merge(), exp.Merge():
            return [*_first(tree, schema, schemas), *merged(statement, tree, schema)]
        case st.Insert(), exp.Insert():
            grows = statement.options.grows
            into = f'ALTER TABLE "{schema.name}" ADD COLUMN IF NOT EXISTS'
            comes = [DuckStep("write", f'{into} "{c.name}" {c.type}') for c in grows or ()]
            if statement.options.makes:
                comes.append(DuckStep("write", create_table(schema, "CREATE TABLE IF NOT EXISTS")))
            listed = grows is not None or not widens
            first = _first(tree, schema, schemas)
            return [*first, *comes, *inserted(statement, tree, schema, listed=listed)]
    return [*_first(tree, None, schemas), DuckStep("write", duck_text(tree))]


def stored_steps(
    statement: st.Statement, schemas: Mapping[str, Schema], *, widens: bool = False
) -> list[DuckStep]:
    """The same steps, and what partition columns then keep of the rows."""
    if isinstance(statement, st.Block):
        return [
            step
            for one in statement.statements
            for step in stored_steps(one, schemas, widens=widens)
        ]
    steps = translate(statement, schemas, widens=widens)
    if isinstance(statement, st.Insert | st.Update | st.Merge | df.Create | df.Replace):
        steps += nulls_of_partitions(schemas[statement.target])
    return steps


def _target(
    statement: st.Delete | st.Insert | st.Merge | st.Update | Raw, schemas: Mapping[str, Schema]
) -> Schema:
    """The table that a statement writes, with the columns on which it was resolved."""
    known = None if isinstance(statement, Raw) else statement.origin
    return (schemas if known is None else known.tables)[statement.target]


def translated(tree: exp.Expr, schemas: Mapping[str, Schema]) -> str:
    """A query."""
    return duck_text(_tree(tree, schemas))


def constraint_condition(definition: df.Definition) -> str:
    """The condition of a constraint, as DuckDB has it."""
    return duck_text(checked(syntax_of(definition)))


def after_init(table: str, number: int) -> str:
    """What a copy of the table after that many init statements is called."""
    return f"{table.lower()} after init {number}"


def _tree(tree: exp.Expr, schemas: Mapping[str, Schema]) -> exp.Expr:
    """The author's tree; a table at the version of an init statement is a table of its own, and one
    by another path is the table.
    """
    tree = tree.copy()
    given = tree.args.get("with_")
    if isinstance(tree, exp.Insert) and given is not None:
        tree.set("with_", None)
        first = tree.expression
        while isinstance(first, exp.Union):
            first = first.this
        first.set("with_", given)
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    for values in list(tree.find_all(exp.Values)):
        _numbered(values)
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            name = aliased(table, schemas) or table.name
            table.set("this", exp.to_identifier(name))
            table.set("db", None)
            table.set("catalog", None)
        if table.args.get("version"):
            name = after_init(table.name.lower(), marked_version(table) or 0)
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            table.replace(exp.Table(this=exp.to_identifier(name), alias=alias))
    staged(tree, schemas)
    return _staged(tree, schemas)


def _numbered(values: exp.Values) -> None:
    """Names for the columns of a FROM VALUES without any: Spark counts them from 1, DuckDB from 0."""
    alias = values.args.get("alias")
    rows = values.expressions
    if isinstance(values.parent, exp.Insert) or (alias is not None and alias.args.get("columns")):
        return
    width = len(rows[0].expressions) if isinstance(rows[0], exp.Tuple) else 1
    names = [exp.to_identifier(f"col{k + 1}") for k in range(width)]
    name = alias.this if alias is not None and alias.this else exp.to_identifier("given")
    values.set("alias", exp.TableAlias(this=name, columns=names))


def _definition(statement: df.Definition) -> list[DuckStep]:
    """The columns that come, go and change their names: what else it does no later statement sees in
    its rows.
    """
    alter = f'ALTER TABLE "{statement.target}"'
    match statement.change:
        case df.AddColumns(columns):
            return [DuckStep("write", f'{alter} ADD COLUMN "{c.name}" {c.type}') for c in columns]
        case df.DropColumn(name):
            return [DuckStep("write", f'{alter} DROP COLUMN "{name}"')]
        case df.RenameColumn(name, other):
            return [DuckStep("write", f'{alter} RENAME COLUMN "{name}" TO "{other}"')]
    return []


def _replacement(statement: df.Replace, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """A table made anew; its rows are collected first, since they may come from what goes."""
    schema = schemas[statement.target]
    there = [] if statement.create else [DuckStep("check", f'FROM "{schema.name}" LIMIT 0')]
    made = DuckStep("write", create_table(schema))
    if statement.query is None:
        return [*there, made]
    query = translated(selected(syntax_of(statement)), schemas)
    return [
        *there,
        DuckStep("collect", f"CREATE OR REPLACE TEMP TABLE replacement AS {query}"),
        made,
        DuckStep("write", f'INSERT INTO "{schema.name}" SELECT * FROM replacement'),
    ]


def _creation(statement: df.Create, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """A table made if it is not there; in one statement, for which it is there or not."""
    schema = schemas[statement.target]
    made = f'CREATE TABLE {"IF NOT EXISTS" if statement.if_not_exists else ""} "{schema.name}"'
    if statement.query is None:
        return [DuckStep("write", f"{made} ({columns_of(schema)})")]
    query = translated(selected(syntax_of(statement)), schemas)
    return [DuckStep("write", f"{made} AS {_as_declared(query, schema)}")]


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


def _clone(statement: df.Clone) -> list[DuckStep]:
    """A copy of a table; a table with rows is not replaced by one."""
    target, version = statement.target, statement.version
    source = statement.source if version is None else after_init(statement.source, version)
    rows = f'SELECT * FROM "{source}"'
    match statement.how:
        case "create":
            return [DuckStep("write", f'CREATE TABLE "{target}" AS {rows}')]
        case "create if not exists":
            return [DuckStep("write", f'CREATE TABLE IF NOT EXISTS "{target}" AS {rows}')]
        case "create or replace":
            made = f'CREATE TABLE IF NOT EXISTS "{target}" AS {rows} LIMIT 0'
            there = DuckStep("write", made)
        case "replace":
            there = DuckStep("check", f'FROM "{target}" LIMIT 0')
    empty = DuckStep("check", f"SELECT error('not empty') FROM \"{target}\"")
    return [there, empty, DuckStep("write", f'CREATE OR REPLACE TABLE "{target}" AS {rows}')]


def _unqualified(update: exp.Update) -> None:
    """SET names columns of its table alone."""
    for assignment in update.expressions:
        if isinstance(assignment, exp.EQ):
            assignment.this.set("table", None)


def _first(tree: exp.Expr, target: Schema | None, schemas: Mapping[str, Schema]) -> list[DuckStep]:
    """What is run before a statement."""
    return [DuckStep("plan", duck_text(before)) for before in planned(tree, target, schemas)]


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
        if not where.this.find(*COMPUTED):
            continue
        early: list[exp.Expr] = []
        late: list[exp.Expr] = []
        for part in conjunct_trees(where.this):
            names = {column.name.lower() for column in part.find_all(exp.Column)}
            (early if names <= parts and not part.find(exp.Select) else late).append(part)
        if early and late:
            then = exp.Case(default=exp.false()).when(exp.and_(*early), exp.and_(*late))
            where.set("this", then)
    return tree
