"""Stand-ins: tables that hold what a query may give of which only the columns are known.

``MERGE … USING (SELECT *, row_number() OVER (…) AS rn FROM updates) s``: whatever the window gives, what the MERGE
reads and writes of its own table depends on the rows that come out, and these may be any rows. So the query is
replaced by ``(SELECT order_id, …, rn FROM updates_rows)``, a table of which nothing is known. What the query asks of
parameters and of the clock is a column there, too: two runs with other values see other rows.

That is more than the query can give. So what is "never" or "always" is so for what it gives as well; an example
shows the rows that it has to give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from isolitmus.model.schema import Column, Schema
from isolitmus.model.sql_types import type_named
from isolitmus.specs.muted import muted
from isolitmus.specs.parameters import CLOCKS, PIECE, one_line, parameters
from isolitmus.specs.placeholders import with_markers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from isolitmus.model.sql_types import Type

__all__ = ["StandIn", "stand_ins", "written_tables"]

DIALECT = "databricks"
SURE = ("STRING", "DATE", "TIMESTAMP", "BOOLEAN", "INT", "BIGINT")
"""Types of expressions that are taken as sqlglot finds them; of numbers with digits Spark has rules of its own."""
PASSING = (exp.Min, exp.Max, exp.First, exp.Last, exp.AnyValue, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)  # fmt: skip
"""What gives a value of its operand's type."""
RANDOM = (exp.Rand, exp.Uuid)


@dataclass(frozen=True, slots=True)
class StandIn:
    """A query of a statement, and the table in its place."""

    sql: str
    """The statement with the table in the query's place."""
    schema: Schema
    """The table."""
    query: str
    """What the query was."""

    def __str__(self) -> str:
        return f"what ({self.query}) gives may be any rows, which stand in {self.schema.name}"


def written_tables(texts: Collection[str]) -> frozenset[str]:
    """The tables that statements write to, in small letters; what does not parse writes to none.

    >>> merge = "WITH s AS (SELECT 1 AS id FROM v) MERGE INTO a.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    >>> sorted(written_tables([merge, "DELETE FROM u"]))
    ['t', 'u']
    """
    found = set()
    for text in texts:
        tree = _tree(text)
        if isinstance(tree, exp.Insert | exp.Merge | exp.Update | exp.Delete):
            found.add(_target(tree).lower())
        elif isinstance(tree, exp.TruncateTable):
            found |= {table.name.lower() for table in tree.expressions}
    return frozenset(found)


def _target(tree: exp.Expr) -> str:
    """The table that a statement writes to."""
    into = tree.this.find(exp.Table)
    return "" if into is None else into.name


def stand_ins(
    text: str, schemas: Mapping[str, Schema], written: Collection[str], types: Mapping[str, Type]
) -> Iterator[StandIn]:
    """The ways to put a table in the place of a query that a MERGE or an INSERT reads from, those first that leave
    most of the query as it is. ``written``: tables that jobs write to, of which what is read has to be kept;
    ``types``: those of the parameters.

    >>> from isolitmus.model.schema import Column, Schema
    >>> tables = {n: Schema(n, (Column("id", "BIGINT"), Column("day", "DATE"))) for n in ("t", "s")}
    >>> sql = "INSERT INTO t SELECT id + mine(id), :day FROM s WHERE day = :day"
    >>> for found in stand_ins(sql, tables, {"t"}, {"day": "DATE"}):
    ...     print(found.sql, [str(column.ddl()) for column in found.schema.columns])
    INSERT INTO t SELECT id, :day FROM s_rows WHERE for_day = :day ['id BIGINT', 'for_day DATE']
    """
    tree = _tree(text)
    if not isinstance(tree, exp.Insert | exp.Merge) or _tree(tree.sql(DIALECT)) != tree:
        return
    known = _known(schemas)
    named = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    kept = {*map(str.lower, written), *named}
    stored_by = tree.expression if isinstance(tree, exp.Insert) else None
    places = [*tree.find_all(exp.Select, exp.SetOperation, bfs=False)]
    for place in reversed(places):  # what is inside comes first
        read = {table.name.lower() for table in place.find_all(exp.Table)}
        read -= {each.alias.lower() for each in place.find_all(exp.CTE)}
        if not read or read - known.keys() or read & kept or place.find(*RANDOM):
            continue
        if _of_distinct(place) or place.find_ancestor(exp.Whens):
            continue
        stored = _stored(tree, schemas) if place is stored_by else None
        made = _made(place, schemas, types, stored)
        if made is None:
            continue
        schema, instead, said = made
        own = tree.copy()
        _at(own, _path(place, tree)).replace(instead)
        yield StandIn(own.sql(DIALECT), schema, said)


def _tree(text: str) -> exp.Expr | None:
    try:
        with muted():
            return sqlglot.parse_one(with_markers(one_line(text)), read=DIALECT)
    except (SqlglotError, ValueError, RecursionError):
        return None


def _of_distinct(query: exp.Expr) -> bool:
    """Whether a query is a branch of a UNION that leaves out what is there twice, which is to be seen whole."""
    above = query.parent
    return isinstance(above, exp.SetOperation) and bool(above.args.get("distinct"))


def _path(node: exp.Expr, root: exp.Expr) -> int:
    """Where a node stands: which one of those of its tree it is."""
    return next(k for k, each in enumerate(root.walk(bfs=False)) if each is node)


def _at(root: exp.Expr, path: int) -> exp.Expr:
    return next(each for k, each in enumerate(root.walk(bfs=False)) if k == path)


def _stored(tree: exp.Expr, schemas: Mapping[str, Schema]) -> tuple[Column, ...] | None:
    """The columns that an INSERT stores its query's into, in their order."""
    if not isinstance(tree, exp.Insert):
        return None
    schema = _known(schemas).get(_target(tree).lower())
    if schema is None or tree.args.get("by_name"):
        return None
    if isinstance(tree.this, exp.Schema):
        places = [schema.index(column.name) for column in tree.this.expressions]
        return tuple(schema.columns[place] for place in places if place is not None)
    return schema.columns


def _known(schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    return {name.lower(): schema for name, schema in schemas.items()}


def _made(
    query: exp.Expr,
    schemas: Mapping[str, Schema],
    types: Mapping[str, Type],
    stored: tuple[Column, ...] | None,
) -> tuple[Schema, exp.Select, str] | None:
    """The table in a query's place, the query of that table, and the query as it was; None if a column's type is
    not known.
    """
    said = query.sql(DIALECT)
    items = _items(query, schemas)
    if items is None or (stored is not None and len(stored) != len(items)):
        return None
    columns: list[Column] = []
    shown: list[exp.Expr] = []
    taken: set[str] = set()
    for k, item in enumerate(items):
        name = item.alias_or_name if stored is None else stored[k].name
        inner = item.unalias()
        if _constant(inner) and not isinstance(query, exp.SetOperation):
            shown.append(exp.alias_(inner.copy(), name) if stored is None else inner.copy())
            continue
        type_ = stored[k].type if stored is not None else _type(inner, query)
        if type_ is None or name.lower() in taken:
            return None
        taken.add(name.lower())
        columns.append(Column(name, type_))
        shown.append(exp.column(name))
    asked = _asked(said, types)
    if asked is None:
        return None
    conditions: list[exp.Expr] = []
    for value, type_ in asked:
        name = "for_" + value.strip(":()")
        if name.lower() in taken:
            return None
        columns.append(Column(name, type_))
        right = sqlglot.parse_one(value, read=DIALECT)
        conditions.append(exp.EQ(this=exp.column(name), expression=right))
    if not columns:
        return None
    first = next(table.name for table in query.find_all(exp.Table, bfs=False))
    name, k = f"{first}_rows", 1
    while name.lower() in _known(schemas):
        k += 1
        name = f"{first}_rows_{k}"
    instead = exp.select(*shown).from_(exp.to_table(name))
    if conditions:
        instead = instead.where(*conditions)
    return Schema(name, tuple(columns)), instead, said


def _asked(said: str, types: Mapping[str, Type]) -> list[tuple[str, Type]] | None:
    """The parameters and the clocks that a query names, with their types; None if one has none."""
    found: dict[str, Type] = {}
    for name in parameters(said):
        if name not in types:
            return None
        found[f":{name}"] = types[name]
    for piece in PIECE.finditer(said):
        if clock := piece["clock"] or piece["other"]:
            date = clock.lower() in ("current_date", "curdate")
            found[CLOCKS[0] if date else CLOCKS[1]] = "DATE" if date else "TIMESTAMP"
    return list(found.items())


def _constant(value: exp.Expr) -> bool:
    """Whether a value is the same in every row, and may be said without the query."""
    return not value.find(
        exp.Column, exp.Star, exp.AggFunc, exp.Window, exp.Query, exp.Anonymous, exp.UDTF, *RANDOM
    )


def _items(query: exp.Expr, schemas: Mapping[str, Schema]) -> list[exp.Expr] | None:
    """The columns that a query gives, each with its type as sqlglot finds it; None if it does not find them."""
    known: dict[str, object] = {
        name: {column.name: str(column.type) for column in schema.columns}
        for name, schema in schemas.items()
    }
    plain = query.copy()
    for table in plain.find_all(exp.Table):
        table.set("db", None)
        table.set("catalog", None)
    try:
        with muted():
            full = qualify(plain, schema=known, dialect=DIALECT, quote_identifiers=False)
            full = annotate_types(full, schema=known, dialect=DIALECT)
    except (SqlglotError, ValueError, RecursionError):
        return None
    return None if full.is_star else list(full.selects)  # type: ignore[attr-defined]


def _type(value: exp.Expr, query: exp.Expr) -> Type | None:
    """The type of a column that a query gives, if it is sure."""
    if value.type is None:
        return None
    found = type_named(value.type.sql(DIALECT).replace(" ", ""))
    laterals = {each.alias.lower() for each in query.find_all(exp.Lateral)}
    if any(column.table.lower() in laterals for column in value.find_all(exp.Column)):
        return None
    while isinstance(value, (*PASSING, exp.Window, exp.Paren, exp.IgnoreNulls)):
        value = value.this
    return found if found in SURE or isinstance(value, exp.Column | exp.Cast) else None
