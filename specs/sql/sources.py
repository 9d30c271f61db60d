"""What a statement's text says of values by the names of columns: the rows of a nested query, what a MERGE's INSERT
puts where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["contents", "only_row", "put_in"]


def contents(node: exp.Expr) -> dict[str, list[exp.Expr]]:
    """By the name of a column, in lower case, what stands in it in the rows of a nested query, or of VALUES.

    >>> import sqlglot
    >>> made = sqlglot.parse_one("SELECT * FROM (SELECT :n AS id, max(x) AS x FROM s)").find(exp.Subquery)
    >>> {name: [one.sql() for one in items] for name, items in contents(made).items()}
    {'id': [':n'], 'x': ['MAX(x)']}
    """
    if isinstance(node, exp.Values):
        rows = zip(*(row.expressions for row in node.expressions), strict=False)
        return {
            name.lower(): list(values)
            for name, values in zip(node.alias_column_names, rows, strict=False)
        }
    select = node.this
    if not isinstance(select, exp.Select):
        return {}
    found: dict[str, list[exp.Expr]] = {}
    for item in select.expressions:
        if item.is_star:
            source = select.args.get("from_")
            found |= contents(source.this) if source is not None else {}
        else:
            found[item.alias_or_name.lower()] = [item.unalias()]
    return found


def only_row(node: exp.Expr) -> dict[str, exp.Expr] | None:
    """The values of a source that is one row, whatever there is, by name; None if it is anything else.

    >>> import sqlglot
    >>> made = sqlglot.parse_one("SELECT * FROM (SELECT :n AS id)").find(exp.Subquery)
    >>> only_row(made), only_row(sqlglot.parse_one("SELECT * FROM t").find(exp.Table))
    ({'id': Placeholder(this=n)}, None)
    """
    select = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(select, exp.Select) or set(_given(select)) != {"expressions"}:
        return None
    return {name: items[0] for name, items in contents(node).items()}


def _given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def put_in(clause: exp.Expr, starred: Iterable[str], source: str) -> list[tuple[str, exp.Expr]]:
    """By column, what a MERGE's INSERT or UPDATE SET * puts there; ``*`` is the columns ``starred`` of the ``source``.

    >>> import sqlglot
    >>> merge = "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT "
    >>> for what in ("*", "(id) VALUES (s.id + 1)"):
    ...     clause = sqlglot.parse_one(merge + what).find(exp.Insert)
    ...     print([(name, value.sql()) for name, value in put_in(clause, ["id", "x"], "s")])
    [('id', 's.id'), ('x', 's.x')]
    [('id', 's.id + 1')]
    """
    if not isinstance(clause.this, exp.Tuple):
        return [(name, exp.column(name, table=source)) for name in starred]
    names = [column.name for column in clause.this.expressions]
    return list(zip(names, clause.expression.expressions, strict=False))
