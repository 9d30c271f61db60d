"""The types of parameters that nobody declares: those of the columns that they meet.

``day = :day`` compares the two, ``INSERT INTO t VALUES (:day)`` puts the one into the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.model.schema import Column, Schema
    from isolitmus.model.sql_types import Type
    from isolitmus.specs.sql_parse import Syntax

__all__ = ["inferred"]

COMPARES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def inferred(statements: Iterable[Syntax], schemas: Mapping[str, Schema]) -> dict[str, Type]:
    """The types of the parameters that meet columns of one type only.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql_parse import Syntax
    >>> t = Schema("t", (Column("id", "BIGINT"), Column("day", "DATE")))
    >>> inferred([Syntax("INSERT INTO t SELECT :n, day FROM t WHERE day >= :first AND id + :k > 0")], {"t": t})
    {'n': 'BIGINT', 'first': 'DATE'}
    """
    met: dict[str, set[Type]] = {}
    for syntax in statements:
        tree = syntax.tree()
        tables = _tables(tree, schemas)
        for parameter, column in _meetings(tree, tables):
            met.setdefault(parameter, set()).add(column.type)
    return {parameter: types.pop() for parameter, types in met.items() if len(types) == 1}


def _tables(tree: exp.Expr, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The tables of a statement, by the names that they have there."""
    known = {name.lower(): schema for name, schema in schemas.items()}
    return {
        node.alias_or_name.lower(): known[node.name.lower()]
        for node in tree.find_all(exp.Table)
        if node.name.lower() in known
    }


def _meetings(tree: exp.Expr, tables: Mapping[str, Schema]) -> Iterator[tuple[str, Column]]:
    """Parameters, each with a column that it is compared with or put into."""
    for node in tree.walk(bfs=False):
        match node:
            case exp.In(this=exp.Column() as column, expressions=values):
                yield from _paired(values, [column] * len(values), tables)
            case exp.Insert():
                yield from _inserted(node, tables)
            case _ if isinstance(node, COMPARES):
                left, right = node.this, node.expression
                yield from _paired([left, right], [right, left], tables)


def _paired(
    values: Iterable[exp.Expr], columns: Iterable[exp.Expr], tables: Mapping[str, Schema]
) -> Iterator[tuple[str, Column]]:
    for value, column in zip(values, columns, strict=False):
        if isinstance(value, exp.Placeholder) and isinstance(column, exp.Column):
            yield from ((value.name, found) for found in _columns(column, tables))


def _columns(node: exp.Column, tables: Mapping[str, Schema]) -> Iterator[Column]:
    """The columns that a name may be."""
    for name, schema in tables.items():
        index = schema.index(node.name)
        if index is not None and node.table.lower() in ("", name):
            yield schema.columns[index]


def _inserted(node: exp.Insert, tables: Mapping[str, Schema]) -> Iterator[tuple[str, Column]]:
    """What comes into a column by its place: of VALUES, of SELECT, of a MERGE's INSERT."""
    into, source = node.this, node.expression
    if isinstance(into, exp.Tuple):
        yield from _paired(source.expressions, into.expressions, tables)
        return
    listed = into.expressions if isinstance(into, exp.Schema) else None
    table = into.this if isinstance(into, exp.Schema) else into
    schema = tables.get(table.alias_or_name.lower()) if isinstance(table, exp.Table) else None
    if schema is None or node.args.get("by_name"):
        return
    names = [one.name for one in listed] if listed else [column.name for column in schema.columns]
    columns = [exp.column(name, table=table.alias_or_name) for name in names]
    rows = source.expressions if isinstance(source, exp.Values) else [source]
    for row in rows:
        values = [one.unalias() for one in row.expressions]
        stars = (k for k, one in enumerate(values) if one.is_star)
        yield from _paired(values[: next(stars, len(values))], columns, tables)
