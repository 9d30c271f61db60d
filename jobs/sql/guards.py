"""Statements with a guard: an INSERT as a MERGE on a key, and rows that a condition leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.jobs.sql.parameter_types import merge_assignments
from isolitmus.jobs.sql.uninterpreted_sources import statement_text, statement_tree
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.source_text import DIALECT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.sql.schema import Schema

SOURCE = "new"
"""Name of the rows of an INSERT as the source of a query."""
PLAIN = {"expressions", "from_", "where", "joins", "with_", "kind", "hint"}
"""Parts of a SELECT that a condition in WHERE leaves as they are, if nothing is aggregated."""


def insert_as_merge(
    text: str, schema: Schema, keys: Sequence[str], schemas: Mapping[str, Schema] | None = None
) -> str | None:
    """Return a MERGE that inserts only rows whose key is not there; None for another statement.

    ``schemas`` are those of the tables, of which ``*`` needs the columns.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> t = Schema("t", (Column("id", "INT"), Column("day", "DATE")))
    >>> insert_as_merge("INSERT INTO t VALUES (:id, :day)", t, ["id"])
    'MERGE INTO t USING (SELECT :id AS id, :day AS day) AS new ON t.id = new.id WHEN NOT MATCHED \
THEN INSERT *'
    """
    tree = statement_tree(text)
    if not isinstance(tree, exp.Insert) or tree.args.get("overwrite") or tree.args.get("where"):
        return None
    names = _names(tree, schema)
    query = _query(tree, names, schemas or {})
    if query is None or not {key.lower() for key in keys} <= {name.lower() for name in names}:
        return None
    on = " AND ".join(f"{schema.name}.{key} = {SOURCE}.{key}" for key in keys)
    every = [column.name for column in schema.columns]
    values = ", ".join(f"{SOURCE}.{name}" for name in names)
    what = "*" if names == every else f"({', '.join(names)}) VALUES ({values})"
    source = statement_text(query, "")
    return (
        f"MERGE INTO {schema.name} USING ({source}) AS {SOURCE} ON {on} WHEN NOT MATCHED THEN"
        f" INSERT {what}"
    )


def guard_insert(text: str, condition: str) -> str | None:
    """Return an INSERT that inserts its rows only if a condition on parameters is true.

    None for another statement, and for one that replaces rows.

    Examples
    --------
    >>> guard_insert("INSERT INTO t (id) VALUES (7)", ":n = 0")
    'INSERT INTO t (id) SELECT 7 WHERE :n = 0'
    >>> guard_insert("INSERT INTO t SELECT id FROM s WHERE id > 3 OR id < 0", ":n = 0")
    'INSERT INTO t SELECT id FROM s WHERE (id > 3 OR id < 0) AND :n = 0'
    >>> guard_insert("INSERT INTO t SELECT DISTINCT id FROM s", ":n = 0")
    'INSERT INTO t SELECT * FROM (SELECT DISTINCT id FROM s) AS new WHERE :n = 0'
    """
    tree = statement_tree(text)
    if not isinstance(tree, exp.Insert) or tree.args.get("overwrite") or tree.args.get("where"):
        return None
    given, test = tree.expression, parse_one(condition, DIALECT)
    if isinstance(given, exp.Values):
        rows = [row.expressions for row in given.expressions if isinstance(row, exp.Tuple)]
        one = len(rows) == len(given.expressions) == 1
        query = exp.select(*rows[0]) if one else exp.select("*").from_(exp.alias_(given, SOURCE))
    elif isinstance(given, exp.Select) and {k for k, v in given.args.items() if v} <= PLAIN:
        query = given
    elif isinstance(given, exp.Query):
        query = exp.select("*").from_(given.subquery(SOURCE))
    else:
        return None
    tree.set("expression", query.where(test, copy=False))
    return statement_text(tree, text)


def _names(tree: exp.Insert, schema: Schema) -> list[str]:
    """Return the columns that an INSERT gives values."""
    into = tree.this
    if isinstance(into, exp.Schema):
        return [each.name for each in into.expressions]
    return [column.name for column in schema.columns]


def _query(
    tree: exp.Insert, names: Sequence[str], schemas: Mapping[str, Schema]
) -> exp.Select | None:
    """Return the rows of an INSERT as a SELECT with the names of its columns."""
    given = tree.expression
    if isinstance(given, exp.Values):
        rows = [
            row.expressions if isinstance(row, exp.Tuple) else [row] for row in given.expressions
        ]
        found = exp.select(*(value.copy() for value in rows[0])) if len(rows) == 1 else None
    else:
        found = given.copy() if isinstance(given, exp.Select) else None
    if found is None or tree.args.get("with_"):
        return None
    if len(found.expressions) == 1 and isinstance(found.expressions[0], exp.Star):
        table = found.args["from_"].this if found.args.get("from_") else None
        folded = {name.lower(): schema for name, schema in schemas.items()}
        source = folded.get(table.name.lower()) if isinstance(table, exp.Table) else None
        columns = [column.name.lower() for column in source.columns] if source is not None else []
        joined = found.args.get("joins")
        return found if not joined and columns == [name.lower() for name in names] else None
    if len(found.expressions) != len(names) or any(each.is_star for each in found.expressions):
        return None
    items = [
        each
        if isinstance(each, exp.Column | exp.Alias) and each.alias_or_name.lower() == name.lower()
        else exp.alias_(each.unalias(), name)
        for each, name in zip(found.expressions, names, strict=True)
    ]
    found.set("expressions", items)
    return found


def with_condition(
    text: str, schema: Schema, condition: str, schemas: Mapping[str, Schema] | None = None
) -> str | None:
    """Return a statement that leaves out the rows for which a condition on them is not true.

    None if the statement is neither an INSERT nor a MERGE of which the rows are known.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> t = Schema("t", (Column("id", "INT"), Column("v", "INT")))
    >>> with_condition("INSERT INTO t SELECT id, w AS v FROM s", t, "v IS NOT NULL")
    'INSERT INTO t SELECT id, v FROM (SELECT id, w AS v FROM s) AS new WHERE NOT v IS NULL'
    >>> with_condition(
    ...     "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *", t, "v > 0")
    'MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED AND s.v > 0 THEN INSERT *'
    """
    tree, test = statement_tree(text), parse_one(condition, DIALECT)
    every = [column.name for column in schema.columns]
    if isinstance(tree, exp.Insert):
        names = _names(tree, schema)
        query = _query(tree, names, schemas or {})
        known = {name.lower() for name in names}
        if query is None or any(
            each.name.lower() not in known for each in test.find_all(exp.Column)
        ):
            return None
        listed = "" if names == every else f" ({', '.join(names)})"
        made = f"SELECT {', '.join(names)} FROM ({statement_text(query, '')}) AS {SOURCE}"
        if tree.args.get("overwrite") or tree.args.get("where"):
            return None
        return f"INSERT INTO {schema.name}{listed} {made} WHERE {test.sql(DIALECT)}"
    if not isinstance(tree, exp.Merge):
        return None
    tree = tree.copy()
    source = tree.args["using"].alias_or_name
    for when in tree.args["whens"].expressions:
        then = when.args["then"]
        if isinstance(then, exp.Insert):
            values = dict(merge_assignments(then, every, source))
            own = {name.lower(): value for name, value in values.items()}
        elif isinstance(then, exp.Update):
            own = _set_values(then, every, source, schema.name)
        else:
            continue
        given = when.args.get("condition")
        new = _substitute(test, own, every)
        when.set("condition", new if given is None else exp.and_(given, new))
    return statement_text(tree, text)


def _set_values(
    then: exp.Update, every: Sequence[str], source: str, table: str
) -> dict[str, exp.Expr]:
    """Return the value of each column after UPDATE SET, by name in lower case."""
    found: dict[str, exp.Expr] = {name.lower(): exp.column(name, table=table) for name in every}
    if isinstance(next(iter(then.expressions), None), exp.Star):
        return {name.lower(): exp.column(name, table=source) for name in every}
    for each in then.expressions:
        if isinstance(each, exp.EQ):
            found[each.this.name.lower()] = each.expression
    return found


def _substitute(test: exp.Expr, values: Mapping[str, exp.Expr], every: Sequence[str]) -> exp.Expr:
    """Return a condition on a row with the values of its columns; an absent one is NULL."""

    def value(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name.lower() in map(str.lower, every):
            return values.get(node.name.lower(), exp.null()).copy()
        return node

    return test.copy().transform(value)
