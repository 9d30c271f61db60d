"""Keys of queries: columns in which no two rows of the result agree.

They come from DISTINCT, GROUP BY, and ``row_number() OVER (PARTITION BY …)``, also of an inner
query whose rows the outer one only selects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["query_keys"]


def query_keys(query: exp.Expr) -> tuple[tuple[str, ...], ...]:
    """Return keys of a query with qualified columns: names of its columns, in lower case.

    NULL agrees with NULL.

    Examples
    --------
    >>> import sqlglot
    >>> numbered = "SELECT s.id AS id, row_number() OVER (PARTITION BY s.id) AS n FROM s AS s"
    >>> query_keys(sqlglot.parse_one(numbered))
    (('id', 'n'),)
    >>> query_keys(sqlglot.parse_one(f"SELECT q.id AS id FROM ({numbered}) AS q WHERE q.n = 1"))
    (('id',),)
    """
    return tuple(dict.fromkeys(_keys(query, _named(query))))


def _named(query: exp.Expr) -> dict[str, exp.Expr]:
    """Return the queries of WITH by name in lower case."""
    return {each.alias.lower(): each.this for each in query.find_all(exp.CTE)}


def _keys(query: exp.Expr, named: Mapping[str, exp.Expr]) -> Iterator[tuple[str, ...]]:
    """Yield the keys of a query."""
    if not isinstance(query, exp.Select):
        return
    outputs = {_text(item.unalias()): item.alias_or_name.lower() for item in query.selects}
    if query.args.get("distinct") and not query.args["distinct"].args.get("on"):
        yield tuple(outputs.values())
    group = query.args.get("group")
    if group is not None:
        plain = set(group.args) <= {"expressions"} or not any(
            value for key, value in group.args.items() if key != "expressions"
        )
        if plain and (key := _shown(group.expressions, outputs)) is not None:
            yield key
        return
    for item in query.selects:
        key = _numbered(item.unalias(), outputs)
        if key is not None:
            yield (*key, item.alias_or_name.lower())
    qualify = query.args.get("qualify")
    for part in _parts(qualify):
        value = _equal_to_literal(part)
        if value is not None:
            window = next((i.unalias() for i in query.selects if i.alias == value.name), value)
            key = _numbered(window, outputs)
            if key is not None:
                yield key
    yield from _of_source(query, named)


def _of_source(query: exp.Select, named: Mapping[str, exp.Expr]) -> Iterator[tuple[str, ...]]:
    """Yield the keys of the only source of a query, as far as its columns are shown or fixed."""
    source = query.args["from_"].this if query.args.get("from_") else None
    if source is None or query.args.get("joins") or query.args.get("laterals"):
        return
    inner: exp.Expr | None = None
    if isinstance(source, exp.Subquery):
        inner = source.this
    elif isinstance(source, exp.Table) and not source.args.get("joins"):
        inner = named.get(source.name.lower())
    if inner is None or source.args.get("pivots") or source.args.get("laterals"):
        return
    fixed = set()
    for part in _parts(query.args.get("where")):
        value = _equal_to_literal(part)
        if isinstance(value, exp.Column):
            fixed.add(value.name.lower())
    shown = {
        item.unalias().name.lower(): item.alias_or_name.lower()
        for item in query.selects
        if isinstance(item.unalias(), exp.Column)
    }
    for key in _keys(inner, named):
        if all(name in shown or name in fixed for name in key):
            yield tuple(shown[name] for name in key if name in shown and name not in fixed)


def _numbered(value: exp.Expr, outputs: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the shown columns by which row_number() numbers rows, or None."""
    if not isinstance(value, exp.Window) or not isinstance(value.this, exp.RowNumber):
        return None
    return _shown(value.args.get("partition_by") or [], outputs)


def _shown(values: list[exp.Expr], outputs: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names of the columns that show these values; None if one is not shown."""
    names = [outputs.get(_text(value)) for value in values]
    return None if None in names else tuple(name for name in names if name is not None)


def _parts(clause: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts of the conjunction in WHERE or QUALIFY."""
    if clause is None:
        return []
    test = clause.this.unnest()
    return list(test.flatten()) if isinstance(test, exp.And) else [test]


def _equal_to_literal(part: exp.Expr) -> exp.Expr | None:
    """Return what a part of a condition equates with a literal, or None."""
    part = part.unnest()
    if not isinstance(part, exp.EQ):
        return None
    a: exp.Expr = part.this.unnest()
    b: exp.Expr = part.expression.unnest()
    if isinstance(b, exp.Literal):
        return a
    return b if isinstance(a, exp.Literal) else None


def _text(value: exp.Expr) -> str:
    return value.unnest().sql().lower()
