"""What Spark computes before the first row and DuckDB with the rows, if it wants them: constants, their
casts to the columns that they are stored into, and subqueries that do not look around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.sql.failing import RANGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.schema import Schema

__all__ = ["COMPUTED", "conjunct_trees", "planned", "staged"]

COMPUTED = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.Div, exp.Cast)
ROWS = (exp.Column, exp.Star, exp.AggFunc, exp.Query)
"""What is no constant."""

DIGITS = len(str(RANGES["INT"][1]))


def planned(
    tree: exp.Expr, target: Schema | None, schemas: Mapping[str, Schema]
) -> Iterator[exp.Expr]:
    """What is run before a statement, to fail where it fails."""
    constants = [n.copy() for n in tree.find_all(*COMPUTED) if _constant(n) and _certain(n)]
    if target is not None:
        types = {column.name.lower(): column.type for column in target.columns}
        for name, value in _stored(tree, target, schemas):
            found = value.find_all(*COMPUTED)
            constants += [n.copy() for n in found if _constant(n) and _certain(n)]
            if types[name.lower()] in RANGES and _constant(value):
                constants.append(exp.cast(value.copy(), types[name.lower()]))
    if constants:
        yield exp.select(*constants)
    if isinstance(tree, exp.Insert | exp.Select):
        for select in _subqueries(tree):
            if select.find(*COMPUTED) and not _correlated(select, schemas):
                yield exp.Create(
                    this=exp.to_table("looked", quoted=True),
                    kind="TABLE",
                    replace=True,
                    properties=exp.Properties(expressions=[exp.TemporaryProperty()]),
                    expression=select.copy(),
                )


def _constant(node: exp.Expr) -> bool:
    """Whether it is one that is worth a look: any INT holds nine digits."""
    number = node.this if isinstance(node, exp.Neg) else node
    if isinstance(number, exp.Literal) and len(number.this) < DIGITS:
        return False
    return node.find(*ROWS) is None


def _certain(node: exp.Expr) -> bool:
    """Whether it is computed whatever the conditions around it are."""
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.If) and (node is not parent.this or parent.index):
            return False
        if isinstance(parent, exp.Case) and node.arg_key == "default":
            return False
        if isinstance(parent, exp.Coalesce) and node is not parent.this:
            return False
        node = parent
    return True


def _stored(
    tree: exp.Expr, target: Schema, schemas: Mapping[str, Schema]
) -> Iterator[tuple[str, exp.Expr]]:
    """What is stored into which column."""
    every = [column.name for column in target.columns if column.name]
    match tree:
        case exp.Update():
            yield from ((e.this.name, e.expression) for e in tree.expressions)
        case exp.Merge():
            for when in tree.args["whens"].expressions:
                then = when.args["then"]
                if isinstance(then, exp.Update):
                    sets = [e for e in then.expressions if isinstance(e, exp.EQ)]
                    yield from ((e.this.name, e.expression) for e in sets)
                elif isinstance(then, exp.Insert) and isinstance(then.expression, exp.Tuple):
                    named = [n.name for n in then.this.expressions]
                    values = (_known(tree, value) for value in then.expression.expressions)
                    yield from zip(named, values, strict=False)
        case exp.Insert():
            into = tree.this
            named = [n.name for n in into.expressions] if isinstance(into, exp.Schema) else []
            table = into.this if isinstance(into, exp.Schema) else into
            spec = table.args.get("partition")
            fixed = {part.this.name.lower() for part in spec.expressions} if spec else set()
            names = named or [name for name in every if name.lower() not in fixed]
            for select in _branches(tree.expression):
                yield from zip(names, _items(select, schemas), strict=False)


def _known(merge: exp.Merge, value: exp.Expr) -> exp.Expr:
    """What a MERGE inserts that does nothing else: it knows the constants of a source of one SELECT."""
    source, whens = merge.args["using"], merge.args["whens"].expressions
    select = source.this if isinstance(source, exp.Subquery) else None
    inserts = all(isinstance(when.args["then"], exp.Insert) for when in whens)
    if not inserts or not isinstance(select, exp.Select):
        return value
    items = {item.alias_or_name.lower(): item.unalias() for item in select.expressions}

    def known(node: exp.Expr) -> exp.Expr:
        item = items.get(node.name.lower()) if isinstance(node, exp.Column) else None
        return node if item is None or item.find(*ROWS) else item.copy()

    return value.copy().transform(known)


def _branches(query: exp.Expr) -> Iterator[exp.Select]:
    match query:
        case exp.Union():
            yield from _branches(query.left)
            yield from _branches(query.right)
        case exp.Subquery():
            yield from _branches(query.this)
        case exp.Select():
            yield query


def _items(select: exp.Select, schemas: Mapping[str, Schema]) -> Iterator[exp.Expr]:
    """The items of a SELECT, a star as many as it stands for."""
    for item in select.expressions:
        if isinstance(item, exp.Star) and select.args.get("joins"):
            return
        if isinstance(item, exp.Star):
            schema = _schema(select, schemas)
            yield from [item] * (len(schema.shown) if schema is not None else 1)
        else:
            yield item.this if isinstance(item, exp.Alias) else item


def _schema(select: exp.Select, schemas: Mapping[str, Schema]) -> Schema | None:
    """The table of a FROM."""
    source = select.args["from_"].this if select.args.get("from_") else None
    name = source.name.lower() if isinstance(source, exp.Table) else None
    return next((schema for n, schema in schemas.items() if n.lower() == name), None)


def _subqueries(tree: exp.Expr) -> Iterator[exp.Select]:
    """Those that are inside a query."""
    for select in tree.find_all(exp.Select):
        if select.find_ancestor(exp.Select) is not None:
            yield select


def _correlated(select: exp.Select, schemas: Mapping[str, Schema]) -> bool:
    """Whether a subquery names columns of the query around it."""
    schema = _schema(select, schemas)
    own = {column.name.lower() for column in schema.columns} if schema is not None else set()
    alias = select.args["from_"].this.alias_or_name.lower() if select.args.get("from_") else ""
    return any(
        column.table.lower() != alias if column.table else column.name.lower() not in own
        for column in select.find_all(exp.Column)
    )


def staged(tree: exp.Expr, schemas: Mapping[str, Schema]) -> None:
    """Of a query with a correlated subquery that computes, what else its condition says first: DuckDB
    computes the subquery for every row.
    """
    for select in list(tree.find_all(exp.Select)):
        where = select.args.get("where")
        parts = conjunct_trees(where.this) if where is not None and select.args.get("from_") else []
        late = [
            part
            for part in parts
            if any(
                inner.find(*COMPUTED) and _correlated(inner, schemas)
                for inner in part.find_all(exp.Select)
            )
        ]
        early = [part for part in parts if not any(part is other for other in late)]
        if where is None or not late or not early:
            continue
        source = select.args["from_"].this
        left = exp.select(exp.Star()).from_(source.copy()).where(*early)
        kept = exp.to_identifier("rows left", quoted=True)
        rows = (
            exp.select(exp.Star()).from_(exp.Table(this=kept)).with_(kept, left, materialized=True)
        )
        source.replace(rows.subquery(source.alias_or_name))
        where.set("this", exp.and_(*late))


def conjunct_trees(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of a conjunction, parentheses or not."""
    bare = tree.unnest()
    if not isinstance(bare, exp.And):
        return [tree]
    return [*conjunct_trees(bare.left), *conjunct_trees(bare.right)]
