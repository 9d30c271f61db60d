"""Read queries of several tables: joins, SELECT … FROM (SELECT …), FROM VALUES and WITH."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Literal

from sqlglot import expressions as exp

from isolitmus.model.schema import Column
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.condition import fallible
from isolitmus.model.sql.conditions import columns
from isolitmus.model.sql.query import items_of
from isolitmus.specs.sql.expressions import read_expression
from isolitmus.specs.sql.functions import unified
from isolitmus.specs.sql.queries import QueryReader, aggregates
from isolitmus.specs.sql.resolving import resolves
from isolitmus.specs.sql.source_text import NameScope, Side, only
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.syntax import Syntax

__all__ = ["JoinReader"]

HOW: Mapping[tuple[str, str], qu.JoinKind] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi",
    ("", "SEMI"): "semi",
    ("LEFT", "ANTI"): "anti",
    ("", "ANTI"): "anti",
}
"""The joins, by what sqlglot calls their side and kind."""
OUTER = ("right", "full")
"""Joins that keep every row of their right side, beside NULLs where it has no partner."""
BESIDE = f"a subquery beside a join {OUTSIDE}"


class JoinReader(QueryReader):
    """Reads a query whose rows come from more than one table by its name."""

    handled = ("with_",)

    def __init__(self, syntax: Syntax, schemas: Mapping[str, Schema]) -> None:
        super().__init__(syntax, schemas)
        self.named: dict[str, exp.Expr] = {}
        """The queries that WITH names."""

    @resolves(exp.Select, exp.Union)
    def read(self, node: exp.Expr) -> st.Read:
        """A statement that only reads."""
        return st.Read(self.sql, self.query(node))

    def query(self, node: exp.Expr, types: tuple[Type, ...] | None = None) -> qu.Query:
        self.name(node)
        return super().query(node, types)

    def name(self, node: exp.Expr) -> None:
        """Take note of what a WITH names; each name stands for one query in all of the statement."""
        given = node.args.get("with_")
        if given is None:
            return
        if self.place.plain:
            self.place.refuse(given, f"WITH {OUTSIDE} in format locking")
        if given.args.get("recursive"):
            self.place.refuse(given, f"WITH RECURSIVE {OUTSIDE}")
        for part in given.expressions:
            name = part.alias.lower()
            if name in self.schemas or self.named.get(name, part) is not part:
                self.place.refuse(part, f"'{part.alias}' names two things; give one another name")
            self.named[name] = part

    def select(self, node: exp.Select, types: tuple[Type, ...] | None) -> qu.Branch:
        self.name(node)
        if views := node.args.get("laterals"):
            self.place.refuse(
                views[0], f"LATERAL VIEW {OUTSIDE}; write explode(…) as a column of the SELECT"
            )
        source = node.args.get("from_")
        joined = node.args.get("joins") or (source is not None and self.derived(source.this))
        if source is None or not joined or self.place.plain:
            return super().select(node, types)
        return self.join(node, types)

    def derived(self, node: exp.Expr) -> bool:
        """Whether the rows of a FROM are no table's."""
        if not isinstance(node, exp.Table):
            return isinstance(node, exp.Subquery | exp.Values)
        return not node.db and node.name.lower() in self.named

    def join(self, node: exp.Select, types: tuple[Type, ...] | None) -> qu.Joined:
        first = node.args["from_"].this
        query, side = self.side(first)
        sources = [qu.JoinSource(query)]
        sides: list[Side | None] = [side]
        for part in node.args.get("joins") or ():
            only(self.place, part, "this", "method", "side", "kind", "on", "using")
            how = HOW.get((part.side.upper(), part.kind.upper()))
            if how is None or part.method:
                self.place.refuse(part, f"a join {part.method or part.side} {part.kind} {OUTSIDE}")
            query, side = self.side(part.this)
            scope = NameScope(self.place, (*sides, side), BESIDE)
            sources.append(qu.JoinSource(query, how, self.paired(part, scope, side)))
            sides.append(None if how in ("semi", "anti") else side)
        scope = NameScope(self.place, tuple(sides), BESIDE)
        vague = self.vague_groups(node)
        keys = () if vague else self.keys(scope, node.args.get("group"))
        grouped = not vague and (bool(keys) or any(map(aggregates, node.expressions)))
        items = vague or self.items(node, scope, types, keys, grouped=grouped)
        where = self.where(scope, node.args.get("where"))
        kept = [
            _narrowed(source, k, None if any(s.how in OUTER for s in sources[k + 1 :]) else where)
            for k, source in enumerate(sources)
        ]
        known = ("expressions", "from_", "where", "group", "joins", "hint", "with_")
        where = self.left_open(node, where, *known)
        return qu.Joined(tuple(kept), items, where, grouped, keys)

    def items(
        self,
        node: exp.Select,
        scope: NameScope,
        types: tuple[Type, ...] | None,
        keys: tuple[ex.ColumnRef, ...],
        *,
        grouped: bool,
    ) -> tuple[ex.Expr, ...]:
        items: list[ex.Expr] = []
        context: Literal["aggregate", "row"] = "aggregate" if grouped else "row"
        for item in node.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            starred = isinstance(inner, exp.Star) or isinstance(inner.this, exp.Star)
            if starred and not isinstance(inner, exp.Count):
                items += self.every(inner, node, scope)
                continue
            null = types[len(items)] if types is not None and len(items) < len(types) else "INT"
            items.append(read_expression(scope, inner, context, null, keys))
        return tuple(items)

    def every(self, star: exp.Expr, node: exp.Select, scope: NameScope) -> list[ex.Expr]:
        """What ``*`` or ``s.*`` stands for."""
        if any(part.args.get("using") and part.kind == "" for part in node.args.get("joins") or ()):
            self.place.refuse(star, f"'*' beside USING {OUTSIDE}: name the columns, or write ON")
        wanted = star.table.lower() if isinstance(star, exp.Column) else ""
        return [
            ex.ColumnRef(k, i, column.name, column.type)
            for k, side in enumerate(scope.sides)
            if side is not None and wanted in ("", side.name.lower())
            for i, column in enumerate(side.columns)
            if column.name
        ]

    def paired(self, node: exp.Join, scope: NameScope, side: Side) -> ex.Expr | None:
        """The condition of a join."""
        if node.args.get("on") is not None:
            return self.condition(scope, node.args["on"])
        names = [name.name for name in node.args.get("using") or ()]
        if not names:
            return None
        before = replace(scope, sides=(*scope.sides[:-1], None))
        own = replace(scope, sides=(*[None] * (len(scope.sides) - 1), side))
        equal: list[ex.Expr] = []
        for name in names:
            both = [s.resolve(exp.column(name)) for s in (before, own)]
            nodes = [exp.column(name), exp.column(name)]
            left, right = unified(self.place, node, nodes, both)[1]
            equal.append(ex.Compare("=", left, right))
        return reduce(ex.And, equal)

    def side(self, node: exp.Expr, *, several: bool = False) -> tuple[qu.Query, Side]:
        """What a FROM or a JOIN names: a table, a query in parentheses, VALUES, or a name that WITH gives; it may
        be of ``several`` branches.
        """
        if isinstance(node, exp.Values):
            return self.listed(node)
        if isinstance(node, exp.Table) and self.derived(node):
            only(self.place, node, "this", "alias")
            cte = self.named[node.name.lower()]
            alias = cte.args.get("alias")
            return self.given(cte.this, node.alias or node.name, alias, several=several)
        if isinstance(node, exp.Subquery):
            only(self.place, node, "this", "alias")
            return self.given(node.this, node.alias, node.args.get("alias"))
        schema, found = self.source(node)
        shown = [(i, schema.columns[i]) for i in schema.shown]
        items = tuple(ex.ColumnRef(0, i, c.name, c.type) for i, c in shown)
        version = self.version(node) if isinstance(node, exp.Table) else None
        query = qu.Select(schema.name, items, None, grouped=False, version=version)
        return (query,), Side(found.name, tuple(column for _, column in shown))

    def given(
        self, node: exp.Expr, name: str, alias: exp.Expr | None, *, several: bool = False
    ) -> tuple[qu.Query, Side]:
        """A query that is named, its columns perhaps, too."""
        query = self.query(node)
        if len(query) > 1 and not several:
            self.place.refuse(node, f"UNION ALL in a source that is joined {OUTSIDE}")
        names = self.names(node, query)
        columns_ = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if columns_:
            names = [column.name for column in columns_]
        items = items_of(query[0])
        if len(names) != len(items) or not all(names):
            self.place.refuse(node, "every column of a query that is named needs a name: add AS …")
        made = (Column(n, item.type) for n, item in zip(names, items, strict=True))
        return query, Side(name, tuple(made))

    def names(self, node: exp.Expr, query: qu.Query) -> list[str]:
        """What the columns of a query are called."""
        while isinstance(node, exp.Union | exp.Subquery):
            node = node.this
        names: list[str] = []
        branch = query[0]
        items = items_of(branch)
        for part in node.expressions:
            inner = part.this if isinstance(part, exp.Alias) else part
            if isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
            ):
                rest = len(items) - len(node.expressions) + 1
                refs = items[len(names) : len(names) + rest]
                names += [ref.name for ref in refs if isinstance(ref, ex.ColumnRef)]
            else:
                names.append(part.alias_or_name)
        return [name.rpartition(".")[2] for name in names]

    def listed(self, node: exp.Values) -> tuple[qu.Query, Side]:
        """``VALUES (…), (…) AS s(a, b)``; without names they are col1, col2 and so on."""
        only(self.place, node, "expressions", "alias")
        nodes = [t.expressions if isinstance(t, exp.Tuple) else [t] for t in node.expressions]
        if len(set(map(len, nodes))) > 1:
            self.place.refuse(node, "the rows of VALUES differ in length", "arity")
        rows = [self.constants(row, None) for row in nodes]
        places = range(len(rows[0]))
        types, cast = [], []
        for k in places:
            type_, values = unified(
                self.place, node, [row[k] for row in nodes], [row[k] for row in rows]
            )
            types.append(type_)
            cast.append(values)
        alias = node.args.get("alias")
        given = [] if alias is None else [column.name for column in alias.args.get("columns") or ()]
        names = given or [f"col{k + 1}" for k in places]
        if len(names) != len(types):
            self.place.refuse(node, "VALUES has another number of columns than its names", "arity")
        made = tuple(Column(name, type_) for name, type_ in zip(names, types, strict=True))
        query = qu.Values(tuple(zip(*cast, strict=True)))
        return (query,), Side(node.alias, made)


def _narrowed(source: qu.JoinSource, side: int, where: ex.Expr | None) -> qu.JoinSource:
    """The source with what is said of its table alone, so that only these rows count as read."""
    branch = source.query[0]
    if not isinstance(branch, qu.Select) or branch.keys or branch.where is not None:
        return source
    if any(isinstance(part, ex.Opaque) for item in branch.items for part in ex.walk(item)):
        return source  # it may be a window, of other rows than are then left
    said = () if source.how in OUTER else ex.conjuncts(source.on)
    if source.how == "inner":
        said += ex.conjuncts(where)

    def own(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        assert isinstance(part, ex.ColumnRef)
        return branch.items[part.index]

    alone = [
        ex.mapped(part, own)
        for part in said
        if columns(part) and all(c.side == side for c in columns(part)) and not fallible(part)
    ]
    if not alone:
        return source
    return replace(source, query=(replace(branch, where=reduce(ex.And, alone)),))
