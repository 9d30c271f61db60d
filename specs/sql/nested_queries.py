"""Nested queries in FROM that are merged with the query around them.

``SELECT * FROM (SELECT id, ts FROM s WHERE kind = 1) WHERE ts > (SELECT max(ts) FROM t)`` reads the
same rows as ``SELECT id, ts FROM s WHERE kind = 1 AND ts > (SELECT max(ts) FROM t)``, and Spark
plans the two alike. Only the latter is modelled: a subquery needs a table beside it.

That is done for subqueries that give one value whatever the row. Spark turns others into joins, and
transfers conditions of the nested query to their tables, which changes what is read of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.specs.sql.uninterpreted_sources import (
    folded_schemas,
    statement_text,
    statement_tree,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema

__all__ = ["merge_nested_queries"]

SIMPLE = {"expressions", "from_", "where"}
"""Parts of a query that is merged with the one around it."""


def merge_nested_queries(text: str, schemas: Mapping[str, Schema]) -> str:
    """Return a statement with the nested queries merged beside which a subquery stands.

    A nested query is merged if it only selects columns of one table. The text is returned unchanged
    if there is none.

    Examples
    --------
    >>> from isolitmus.model.schema import Column, Schema
    >>> tables = {name: Schema(name, (Column("n", "INT"),)) for name in "st"}
    >>> query = "SELECT * FROM (SELECT n FROM s WHERE n = 1) AS q WHERE n > "
    >>> merge_nested_queries(f"INSERT INTO t {query}(SELECT max(n) FROM t)", tables)
    'INSERT INTO t SELECT q.n FROM s AS q WHERE q.n = 1 AND (n > (SELECT MAX(n) FROM t))'
    >>> insert = f"INSERT INTO t {query}(SELECT max(n) FROM t WHERE q.n = n)"
    >>> merge_nested_queries(insert, tables) == insert
    True
    """
    tree = statement_tree(text)
    if tree is None:
        return text
    named = {each.alias.lower(): each.this for each in tree.find_all(exp.CTE)}
    known = folded_schemas(schemas)
    changed = [_merge(select, named, known) for select in list(tree.find_all(exp.Select))]
    return statement_text(tree, text) if any(changed) else text


def _is_fixed(query: exp.Expr, schemas: Mapping[str, Schema]) -> bool:
    """Return whether a subquery certainly gives one value, the same for every row."""
    select, above = query, query.parent
    if not isinstance(select, exp.Select) or not isinstance(above, exp.Subquery):
        return False
    if isinstance(above.parent, exp.In | exp.From | exp.Join | exp.Exists):
        return False
    tables = list(select.find_all(exp.Table))
    if len(tables) != 1 or tables[0].name.lower() not in schemas:
        return False
    schema, name = schemas[tables[0].name.lower()], tables[0].alias_or_name.lower()
    return all(
        column.table.lower() in ("", name) and schema.index(column.name) is not None
        for column in select.find_all(exp.Column)
    )


def _merge(
    select: exp.Select, named: Mapping[str, exp.Expr], schemas: Mapping[str, Schema]
) -> bool:
    """Merge the nested query in the FROM of a query with it, in place; return whether it was."""
    source, where = select.args.get("from_"), select.args.get("where")
    if source is None or where is None or select.args.get("joins") or select.args.get("laterals"):
        return False
    queries = [one for one in where.find_all(exp.Query) if not isinstance(one, exp.Subquery)]
    if not queries or not all(_is_fixed(one, schemas) for one in queries):
        return False
    if any(item.find(exp.Query) for item in select.expressions):
        return False
    given = source.this
    inner = given.this if isinstance(given, exp.Subquery) else None
    if isinstance(given, exp.Table) and not given.db:
        inner = named.get(given.name.lower())
    if not isinstance(inner, exp.Select) or {k for k, v in inner.args.items() if v} - SIMPLE:
        return False
    if given.args.get("alias") and given.args["alias"].args.get("columns"):
        return False
    below = inner.args.get("from_")
    table = below.this if below is not None else None
    plain = all(isinstance(one, exp.Column) and not one.is_star for one in inner.expressions)
    if not isinstance(table, exp.Table) or not plain or table.name.lower() in named:
        return False
    if {key for key, value in table.args.items() if value} - {"this", "db", "catalog", "alias"}:
        return False
    condition = inner.args.get("where")
    if condition is not None and condition.find(exp.Query):
        return False
    alias = given.alias_or_name or table.alias_or_name
    items: list[exp.Expr] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        if not item.is_star:
            items.append(item)
        elif isinstance(star, exp.Star) and not any(star.args.values()):
            items += (exp.column(one.name, table=alias) for one in inner.expressions)
        else:
            return False
    parts = [where.this]
    if condition is not None:
        own = condition.this.copy()
        for column in own.find_all(exp.Column):
            column.set("table", exp.to_identifier(alias))
        parts = [own, exp.paren(where.this)]
    into = table.copy()
    into.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    select.set("expressions", items)
    source.set("this", into)
    select.set("where", exp.Where(this=exp.and_(*parts, wrap=False)))
    return True
