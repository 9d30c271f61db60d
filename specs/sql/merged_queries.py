"""A query that reads a plain query, as one query on the source of that one.

``SELECT b FROM (SELECT id AS a, day AS b FROM s WHERE id > 1) v WHERE …`` reads the rows of ``s``
that satisfy both conditions. Only queries are merged that select rows of one source and compute
each column from its row alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.schema import Schema

PLAIN = ("expressions", "from_", "where", "with_")
"""Parts of a query that selects rows of one source."""
UNMERGED = (
    exp.AggFunc, exp.Window, exp.Query, exp.Anonymous, exp.UDTF, exp.Rand, exp.Uuid, exp.Star,
)  # fmt: skip
"""Parts of an item that depend on more than its row, or that Spark does not evaluate twice."""


def merge_source(
    query: exp.Select, inner: exp.Expr, name: str, schemas: Mapping[str, Schema]
) -> exp.Select | None:
    """Return a query on the source of the query that it reads; None if that is not possible.

    Parameters
    ----------
    query : exp.Select
        Query that reads ``inner`` and nothing else, but for subqueries.
    inner : exp.Expr
        The query that it reads.
    name : str
        Name of ``inner`` in the query.
    schemas : mapping of str to Schema
        Schemas of tables.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"t": Schema("t", (Column("a", "BIGINT"),))}
    >>> outer = parse_one("SELECT b FROM v WHERE a > (SELECT max(a) FROM t)")
    >>> inner = parse_one("SELECT id AS a, day AS b FROM s WHERE id > 1")
    >>> print(merge_source(outer, inner, "v", tables).sql())
    SELECT v.day AS b FROM s AS v WHERE v.id > (SELECT MAX(a) FROM t) AND v.id > 1
    """
    source = inner.args.get("from_") if isinstance(inner, exp.Select) else None
    if not isinstance(inner, exp.Select) or source is None or not name:
        return None
    if any(value for key, value in inner.args.items() if key not in PLAIN):
        return None
    if not isinstance(source.this, exp.Table | exp.Subquery):
        return None
    items: dict[str, exp.Expr] | None = None
    if not is_every_column(inner.expressions):
        items = {}
        for item in inner.expressions:
            if not isinstance(item, exp.Alias | exp.Column) or item.find(*UNMERGED) is not None:
                return None
            items[item.alias_or_name.lower()] = item.unalias().copy()
    condition = inner.args["where"].this.copy() if inner.args.get("where") else None
    if condition is not None and condition.find(exp.Query) is not None:
        return None
    own = source.this.alias_or_name.lower()
    parts = [*(items or {}).values(), *([condition] if condition is not None else [])]
    holder = exp.Tuple(expressions=parts)
    for column in holder.find_all(exp.Column):
        if column.table.lower() not in ("", own):
            return None
        column.set("table", exp.to_identifier(name))
    if items is not None:
        items = dict(zip(items, holder.expressions, strict=False))
    found = query.copy()
    found.set("with_", None)
    known = {each.lower(): schema for each, schema in schemas.items()}
    if not _replace_columns(found, items, name, known):
        return None
    table = source.this.copy()
    table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    found.set("from_", exp.From(this=table))
    if condition is not None:
        found.where(holder.expressions[-1], copy=False)
    return found


def is_every_column(items: list[exp.Expr]) -> bool:
    """Return whether a list of a SELECT is ``*`` alone."""
    star = items[0] if len(items) == 1 else None
    return isinstance(star, exp.Star) and not any(star.args.values())


def _replace_columns(
    query: exp.Select,
    items: Mapping[str, exp.Expr] | None,
    name: str,
    schemas: Mapping[str, Schema],
) -> bool:
    """Put the items of an inner query in the place of its columns; False if that is not possible.

    Without items, the columns of the inner query are those of its source.
    """
    if is_every_column(query.expressions):
        if items is not None:
            listed = [exp.alias_(exp.column(key, table=name), key) for key in items]
            query.set("expressions", listed)
    elif any(one.is_star and not isinstance(one.unalias(), exp.Count) for one in query.expressions):
        return False
    else:
        for item in [*query.expressions]:
            if isinstance(item, exp.Column):
                item.replace(exp.alias_(item.copy(), item.name))
    return _replace_all(query, items, name, schemas)


def _replace_all(
    query: exp.Select,
    items: Mapping[str, exp.Expr] | None,
    name: str,
    schemas: Mapping[str, Schema],
) -> bool:
    """Put items in the place of columns; False if a column may be another one."""
    for column in [*query.find_all(exp.Column)]:
        inside = column.find_ancestor(exp.Select) is query
        mine = column.table.lower() == name.lower()
        if items is None:
            if column.table and inside and not mine:
                return False
            continue
        value = items.get(column.name.lower())
        if not inside and not mine:
            same = isinstance(value, exp.Column) and value.name.lower() == column.name.lower()
            if column.table or value is None or same or _is_inner(column, query, schemas):
                continue
            return False
        if value is None or (column.table and not mine):
            return False
        plain = isinstance(value, exp.Column | exp.Literal | exp.Func)
        column.replace(value.copy() if plain else exp.paren(value.copy()))
    return True


def _is_inner(column: exp.Column, query: exp.Select, schemas: Mapping[str, Schema]) -> bool:
    """Return whether a column of a subquery is one of a table that the subquery reads."""
    scope = column.find_ancestor(exp.Select)
    while scope is not None and scope is not query:
        start = scope.args.get("from_")
        sources = [] if start is None else [start.this]
        sources += [join.this for join in scope.args.get("joins") or ()]
        for source in sources:
            schema = schemas.get(source.name.lower()) if isinstance(source, exp.Table) else None
            if schema is not None and schema.index(column.name) is not None:
                return True
        scope = scope.find_ancestor(exp.Select)
    return False
