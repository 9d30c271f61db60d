"""What is only another way to write something: a parsed tree in the forms that the readers know."""

from __future__ import annotations

from sqlglot import expressions as exp

__all__ = ["desugared"]


def desugared(tree: exp.Expr) -> exp.Expr:
    """The tree with BETWEEN as two comparisons, CASE x WHEN, IF and NULLIF as CASE WHEN, and SELECT DISTINCT of
    columns (and of literals beside them) as GROUP BY, in place.

    >>> import sqlglot
    >>> print(desugared(sqlglot.parse_one("SELECT IF(x BETWEEN 1 AND 2, NULLIF(a, b), 0)")).sql())
    SELECT CASE WHEN (x >= 1 AND x <= 2) THEN CASE WHEN a = b THEN NULL ELSE a END ELSE 0 END
    >>> print(desugared(sqlglot.parse_one("SELECT DISTINCT a, b AS c FROM t")).sql())
    SELECT a, b AS c FROM t GROUP BY a, b
    """
    for select in tree.find_all(exp.Select):
        _grouped(select)
    found = list(tree.find_all(exp.Between, exp.Case, exp.If, exp.Nullif, bfs=False))
    for node in reversed(found):  # what is inside comes first
        plain = _plain(node)
        if plain is None:
            continue
        if node is tree:
            return plain
        node.replace(plain)
    return tree


def _grouped(select: exp.Select) -> None:
    """Make a SELECT DISTINCT of columns a GROUP BY, as Spark does (ReplaceDistinctWithAggregate)."""
    distinct = select.args.get("distinct")
    items = [item.unalias() for item in select.expressions]
    columns = [item for item in items if isinstance(item, exp.Column) and not item.is_star]
    constants = [item for item in items if isinstance(item, exp.Literal | exp.Null | exp.Boolean)]
    if (
        distinct is None
        or distinct.args.get("on") is not None
        or select.args.get("group") is not None
        or not columns
        or len(columns) + len(constants) < len(items)
    ):
        return
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=[column.copy() for column in columns]))


def _plain(node: exp.Expr) -> exp.Expr | None:
    subject = node.this.copy() if isinstance(node.this, exp.Expr) else None
    match node:
        case exp.Between() if subject is not None and not node.args.get("symmetric"):
            low = exp.GTE(this=subject, expression=node.args["low"].copy())
            high = exp.LTE(this=subject.copy(), expression=node.args["high"].copy())
            return exp.Paren(this=exp.And(this=low, expression=high))
        case exp.Case() if subject is not None:
            for part in node.args["ifs"]:
                part.set("this", exp.EQ(this=subject.copy(), expression=part.this.copy()))
            node.set("this", None)
        case exp.If() if not isinstance(node.parent, exp.Case):
            then = exp.If(this=subject, true=node.args["true"].copy())
            other = node.args.get("false")
            return exp.Case(ifs=[then], default=other.copy() if other is not None else None)
        case exp.Nullif() if subject is not None:
            same = exp.EQ(this=subject, expression=node.expression.copy())
            return exp.Case(ifs=[exp.If(this=same, true=exp.null())], default=subject.copy())
    return None
