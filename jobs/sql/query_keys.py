"""Keys of queries: columns in which no two rows of the result agree; and conditions on its rows.

Keys come from DISTINCT, GROUP BY, and ``row_number() OVER (PARTITION BY …)``, also of an inner
query whose rows the outer one only selects. Conditions are those of WHERE, HAVING, QUALIFY and ON
about columns that the result shows as they are, also of inner queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PLAIN = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is,
    exp.In, exp.Between, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null,
    exp.Placeholder, exp.Neg, exp.Cast, exp.DataType, exp.Dot, exp.Add, exp.Sub, exp.CurrentDate,
    exp.CurrentTimestamp, exp.DateAdd, exp.DateSub, exp.TsOrDsAdd,
)  # fmt: skip
"""Parts of a condition that is kept."""
STRICT = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
"""Comparisons that are not true of NULL."""


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
        if _is_plain(group) and (key := _shown(group.expressions, outputs)) is not None:
            yield key
        return
    for item in query.selects:
        key = _numbered(item.unalias(), outputs)
        if key is not None:
            yield (*key, item.alias_or_name.lower())
    qualify = query.args.get("qualify")
    for part in _parts(qualify):
        value = _equal_to_literal(part) or _at_most_one(part)
        if value is not None:
            window = next((i.unalias() for i in query.selects if i.alias == value.name), value)
            key = _numbered(window, outputs)
            if key is not None:
                yield key
    yield from _of_source(query, named)


def _is_plain(group: exp.Expr | None) -> bool:
    """Return whether a GROUP BY, if there is one, has columns only; ROLLUP adds rows with NULL."""
    if group is None:
        return True
    others = any(value for key, value in group.args.items() if key != "expressions")
    return not others and not any(
        isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets) for one in group.expressions
    )


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
    numbers = _row_numbers(inner)
    fixed = set()
    for part in _parts(query.args.get("where")):
        value = _equal_to_literal(part)
        if isinstance(value, exp.Column):
            fixed.add(value.name.lower())
        if (first := _at_most_one(part)) is not None and first.name.lower() in numbers:
            fixed.add(first.name.lower())
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


def _at_most_one(part: exp.Expr) -> exp.Expr | None:
    """Return what a part of a condition bounds by 1, or None; a row number is then 1."""
    part = part.unnest()
    if isinstance(part, exp.GT | exp.GTE):
        turned = exp.LT if isinstance(part, exp.GT) else exp.LTE
        part = turned(this=part.expression, expression=part.this)
    if not isinstance(part, exp.LT | exp.LTE):
        return None
    bound = part.expression.unnest()
    whole = isinstance(bound, exp.Literal) and not bound.is_string
    most = "1" if isinstance(part, exp.LTE) else "2"
    return part.this.unnest() if whole and bound.name == most else None


def _row_numbers(query: exp.Expr) -> set[str]:
    """Return the columns of a query that are row numbers, in lower case."""
    selects = query.selects if isinstance(query, exp.Select) else []
    return {
        item.alias_or_name.lower()
        for item in selects
        if isinstance(item.unalias(), exp.Window) and isinstance(item.unalias().this, exp.RowNumber)
    }


def query_conditions(query: exp.Expr) -> tuple[exp.Expr, ...]:
    """Return conditions that are true of each row of a query with qualified columns.

    Their columns are the names of the query's columns. What they do not say may still be so.

    Examples
    --------
    >>> import sqlglot
    >>> inner = "SELECT s.id AS id, s.day AS d, rank() OVER (ORDER BY s.v) AS n FROM s AS s"
    >>> where = "WHERE s.day = :day AND s.v > 3 AND upper(s.id) = 'A'"
    >>> text = f"SELECT q.id AS key, q.d AS day FROM ({inner} {where}) AS q WHERE q.id > 'B'"
    >>> [one.sql() for one in query_conditions(sqlglot.parse_one(text))]
    ["key > 'B'", 'day = :day']
    """
    found = {one.sql(): one for one in _conditions(query, _named(query))}
    return tuple(found.values())


def _conditions(query: exp.Expr, named: Mapping[str, exp.Expr]) -> Iterator[exp.Expr]:
    """Yield the conditions on the columns of a query."""
    if isinstance(query, exp.Subquery):
        yield from _conditions(query.this, named)
    if isinstance(query, exp.SetOperation):
        yield from _of_branches(query, named)
    if not isinstance(query, exp.Select) or not _is_plain(query.args.get("group")):
        return
    shown: dict[str, exp.Column] = {}
    for item in query.selects:
        inner = item.unalias()
        if isinstance(inner, exp.Column):
            shown.setdefault(_text(inner), exp.column(item.alias_or_name))
        else:
            yield from _of_value(inner, exp.column(item.alias_or_name))
    for part in _source_conditions(query, named):
        yield from _of_shown(part, shown)


def _of_branches(query: exp.SetOperation, named: Mapping[str, exp.Expr]) -> Iterator[exp.Expr]:
    """Yield the conditions of a set operation: of a UNION, those that both branches have."""
    left = [*_conditions(query.left, named)]
    if not isinstance(query, exp.Union):
        yield from left
        return
    names = [item.alias_or_name.lower() for item in query.right.selects]
    places = {item.alias_or_name.lower(): k for k, item in enumerate(query.left.selects)}
    right = {one.sql().lower() for one in _conditions(query.right, named)}
    for one in left:
        other = one.copy()
        for column in other.find_all(exp.Column):
            column.this.set("this", names[places[column.name.lower()]])
        if other.sql().lower() in right:
            yield one


def _source_conditions(query: exp.Select, named: Mapping[str, exp.Expr]) -> Iterator[exp.Expr]:
    """Yield conditions on the columns of the sources of a query, which are qualified."""
    joins = query.args.get("joins") or []
    sides = {(join.side or "").upper() for join in joins}
    for clause in ("where", "having", "qualify"):
        yield from _parts(query.args.get(clause))
    source = query.args["from_"].this if query.args.get("from_") else None
    inner = [join for join in joins if not join.side and (join.kind or "").upper() in ("", "INNER")]
    if not sides & {"RIGHT", "FULL"}:
        sources = [source, *(join.this for join in inner)]
        for join in inner:
            on = join.args.get("on")
            yield from [] if on is None else on.flatten() if isinstance(on, exp.And) else [on]
        for each in sources:
            given: exp.Expr | None = each
            if each is not None and each.args.get("pivots"):
                continue
            if isinstance(each, exp.Table):
                given = named.get(each.name.lower()) if not each.db else None
            if given is None or each is None:
                continue
            for one in _conditions(given, named):
                for column in one.find_all(exp.Column):
                    column.set("table", exp.to_identifier(each.alias_or_name))
                yield one


def _of_shown(part: exp.Expr, shown: Mapping[str, exp.Column]) -> Iterator[exp.Expr]:
    """Yield a condition with the names of shown columns, if it has no others; else that the shown
    columns that it compares are not NULL.
    """
    part = part.unnest()
    columns = [*part.find_all(exp.Column)]
    plain = all(isinstance(node, PLAIN) for node in part.walk())
    if plain and columns and all(_text(column) in shown for column in columns):
        yield part.copy().transform(
            lambda node: shown[_text(node)].copy() if isinstance(node, exp.Column) else node
        )
    elif isinstance(part, STRICT):
        for column in (part.this.unnest(), part.expression.unnest()):
            if isinstance(column, exp.Column) and _text(column) in shown:
                yield exp.not_(exp.Is(this=shown[_text(column)].copy(), expression=exp.null()))


def _of_value(value: exp.Expr, column: exp.Column) -> Iterator[exp.Expr]:
    """Yield what is true of a column with a value: that of a literal, of a number that counts, or
    of a COALESCE with a literal.
    """
    if isinstance(value, exp.Literal):
        yield exp.EQ(this=column, expression=value.copy())
    if isinstance(value, exp.Coalesce) and any(
        isinstance(one, exp.Literal) for one in value.expressions
    ):
        yield exp.not_(exp.Is(this=column, expression=exp.null()))
    counted = value.this if isinstance(value, exp.Window) else value
    if isinstance(counted, exp.Count | exp.RowNumber | exp.Rank | exp.DenseRank):
        least = 0 if isinstance(counted, exp.Count) else 1
        yield exp.GTE(this=column, expression=exp.Literal.number(least))


def _text(value: exp.Expr) -> str:
    return value.unnest().sql().lower()
