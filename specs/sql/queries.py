"""Translation of queries on one or several tables into the model's queries.

It covers tables, conditions, subqueries, joins, SELECT … FROM (SELECT …), FROM VALUES and WITH.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Literal

from sqlglot import expressions as exp

from isolitmus.model.errors import near
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import (
    can_fail,
    columns_in,
    normalize,
    unmodelled_query_rewrite,
    unmodelled_rewrite,
)
from isolitmus.model.sql.query import items_of
from isolitmus.model.sql.schema import Column
from isolitmus.model.sql.types import EvaluationError
from isolitmus.specs.sql.expressions import read_expression
from isolitmus.specs.sql.functions import unify_types
from isolitmus.specs.sql.merged_queries import merge_source
from isolitmus.specs.sql.parameters import marked_version, tables_by_path
from isolitmus.specs.sql.source_text import (
    DIALECT,
    NameScope,
    Side,
    SqlText,
    refuse_other_arguments,
)
from isolitmus.specs.sql.syntax import resolves
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE, refuse_together

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.syntax import Syntax
    from isolitmus.specs.sql.unsupported_pairs import Feature

VAGUE = ("distinct", "having", "qualify", "limit", "offset")
"""Clauses that remove rows from the result of a query, without changing the others."""
UNMODELLED = "in a query plan is not modelled"
REFUSED = (
    "open-source Delta rejects a subquery in this condition (DELTA_UNSUPPORTED_SUBQUERY), and for"
    " Databricks it is not modelled; subqueries stand in INSERT … SELECT and in SET, and in the"
    " source of a MERGE … WHEN MATCHED THEN DELETE"
)


class QueryReader:
    """Translator of the parts of one statement, which refuses unsupported parts at their place."""

    handled: tuple[str, ...] = ()
    """Arguments of queries that a subclass handles."""

    def __init__(self, syntax: Syntax, schemas: Mapping[str, Schema]) -> None:
        self.syntax = syntax
        self.text = syntax.text
        self.sql = syntax.sql
        self.databases: dict[str, str] = {}
        self.schemas = {name.lower(): schema for name, schema in schemas.items()}
        self.place = SqlText(
            syntax.text,
            syntax.label,
            syntax.types,
            opaque=syntax.opaque,
            constants=syntax.constants,
        )

    # Tables

    def table(self, node: exp.Expr | None, *handled: str) -> tuple[Schema, Side]:
        """Return the schema of a table and its side under its alias; refuse unknown tables."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            self.place.refuse(node, "expected a table's name")
        refuse_other_arguments(self.place, node, "this", "alias", "db", "catalog", *handled)
        of = f"{node.catalog}.{node.db}".lower()
        if node.db and self.databases.setdefault(node.name.lower(), of) != of:
            self.place.refuse(node, f"'{node.name}' names tables of two databases here")
        schema = self.schemas.get(node.name.lower())
        if schema is None:
            names = [s.name for s in self.schemas.values()]
            self.place.refuse(
                node, f"unknown table '{node.name}'{near(node.name, names)}", "no table"
            )
        return schema, Side(node.alias or schema.name, schema.columns)

    def apart(
        self, found: Collection[Feature], node: exp.Expr | None = None, **words: object
    ) -> None:
        """Refuse a combination of features that is not modelled."""
        refuse_together(found, lambda problem: self.place.refuse(node, problem), "", **words)

    def scope(self, *sides: Side | None) -> NameScope:
        return NameScope(self.place, sides)

    def where(self, scope: NameScope, node: exp.Expr | None) -> ex.Expr | None:
        """Return the condition of a WHERE clause, or None if absent."""
        if node is None:
            return None
        refuse_other_arguments(self.place, node, "this")
        return self.condition(scope, node.this)

    def condition(self, scope: NameScope, node: exp.Expr) -> ex.Expr:
        """Return the condition; refuse one that is not BOOLEAN or cannot be normalized."""
        condition = read_expression(scope, node)
        if isinstance(condition, ex.Opaque):
            condition = replace(condition, type="BOOLEAN")
        if condition.type != "BOOLEAN":
            self.place.refuse(
                node, f"'{self.place.written(node)}' is {condition.type}; expected a condition"
            )
        try:
            normalize(condition)
            unknown = unmodelled_rewrite(condition)
        except EvaluationError as error:
            self.place.refuse(node, str(error))
        if unknown is not None:
            self.place.refuse(node, f"{unknown}: Spark's treatment of that {UNMODELLED}")
        return condition

    # Queries

    def ordered(self, scope: NameScope, node: exp.Select, *, grouped: bool) -> None:
        """Accept an ORDER BY, which changes no set of rows; refuse keys that may fail or read."""
        given = node.args.get("order")
        names = [] if given is None else [one.lower() for one in node.named_selects]
        for part in () if given is None else given.expressions:
            key = part.this
            if isinstance(key, exp.Literal) and key.is_int:
                if "*" in names or not 1 <= int(key.this) <= len(names):
                    problem = f"ORDER BY {key.this} names no column of this query; write its name"
                    self.place.refuse(key, problem)
            elif (
                isinstance(key, exp.Column) and not key.table and names.count(key.name.lower()) == 1
            ):
                continue
            elif grouped:
                self.place.refuse(key, f"ORDER BY what a grouped query does not select {OUTSIDE}")
            else:
                value = read_expression(scope, key)
                if can_fail(value) or ex.subqueries(value) or not columns_in(value):
                    self.place.refuse(key, f"ORDER BY anything but values of columns {OUTSIDE}")

    def left_open(
        self,
        scope: NameScope,
        node: exp.Select,
        where: ex.Expr | None,
        *handled: str,
        grouped: bool = False,
    ) -> ex.Expr | None:
        """Return the WHERE of a query, with opaque conditions for clauses that drop some rows."""
        if not self.place.opaque:
            refuse_other_arguments(self.place, node, *handled, "order")
            self.ordered(scope, node, grouped=grouped)
            return where
        refuse_other_arguments(self.place, node, *handled, *VAGUE, "order", "windows")
        parts = [node.args[key] for key in VAGUE if node.args.get(key)]
        if parts and not node.args.get("group") and any(map(aggregates, node.expressions)):
            said = type(parts[0]).__name__.upper()
            self.place.refuse(node, f"{said} beside an aggregate without GROUP BY {OUTSIDE}")
        vague: list[ex.Expr] = [ex.Opaque(part.sql(DIALECT), (), "BOOLEAN") for part in parts]
        return reduce(ex.And, [*vague, *([] if where is None else [where])]) if vague else where

    def vague_groups(self, node: exp.Select) -> tuple[ex.Expr, ...] | None:
        """Return the items of a query with an unsupported GROUP BY as opaque values, or None."""
        group = node.args.get("group")
        if group is None or not self.place.opaque:
            return None
        plain = all(isinstance(key, exp.Column) for key in group.expressions)
        if plain and not any(value for key, value in group.args.items() if key != "expressions"):
            return None
        return tuple(ex.Opaque(item.sql(DIALECT), (), "") for item in node.expressions)

    def query(self, node: exp.Expr, types: tuple[Type, ...] | None = None) -> qu.Query:
        """Return the branches of a query; `types` are those of the columns that receive it."""
        match node:
            case exp.Subquery():
                refuse_other_arguments(self.place, node, "this", "alias")
                return self.query(node.this, types)
            case exp.Union():
                aside = ("order", *VAGUE) if self.place.opaque else ("distinct",)
                refuse_other_arguments(
                    self.place, node, "this", "expression", *aside, *self.handled
                )
                if node.args.get("distinct") and not self.place.opaque:
                    self.place.refuse(node, f"UNION without ALL {OUTSIDE}")
                left, right = self.query(node.this, types), self.query(node.expression, types)
                if any(node.args.get(key) for key in VAGUE):
                    left, right = _perhaps(left), _perhaps(right)
                if len(qu.items_of(left[0])) != len(qu.items_of(right[0])):
                    problem = "the branches of the UNION ALL differ in columns"
                    self.place.refuse(node, problem, "arity")
                return left + right
            case exp.Values():
                refuse_other_arguments(self.place, node, "expressions")
                rows = [
                    t.expressions if isinstance(t, exp.Tuple) else [t] for t in node.expressions
                ]
                return (qu.Values(tuple(self.constants(row, types) for row in rows)),)
            case exp.Select():
                return (self.select(node, types),)
        self.place.refuse(node, f"this query {OUTSIDE}; use VALUES, SELECT or UNION ALL")

    def constants(
        self, nodes: list[exp.Expr], types: tuple[Type, ...] | None, scope: NameScope | None = None
    ) -> tuple[ex.Expr, ...]:
        """Return a row of constant expressions; `types` are those of untyped NULLs."""
        return tuple(
            read_expression(
                scope or self.scope(),
                n.this if isinstance(n, exp.Alias) else n,
                "constant",
                types[i] if types is not None and i < len(types) else "INT",
            )
            for i, n in enumerate(nodes)
        )

    def select(self, node: exp.Select, types: tuple[Type, ...] | None) -> qu.Branch:
        """Return a SELECT from one table, or from none."""
        handled = ("expressions", "from_", "where", "group", *self.handled)
        source = node.args.get("from_")
        if source is None:
            if node.args.get("group"):
                self.place.refuse(node, f"GROUP BY without FROM {OUTSIDE}")
            scope = NameScope(self.place, (), self.subquery)
            where = self.where(scope, node.args.get("where"))
            where = self.left_open(scope, node, where, *handled)
            return qu.Values((self.constants(node.expressions, types, scope),), where)
        schema, side = self.source(source.this)
        version = self.version(source.this)
        scope = NameScope(self.place, (side,), self.subquery)
        vague = self.vague_groups(node)
        keys = () if vague else self.keys(scope, node.args.get("group"))
        grouped = not vague and (bool(keys) or any(map(aggregates, node.expressions)))
        items: list[ex.Expr] = list(vague or ())
        for item in () if vague else node.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            if _is_star(inner) and not keys:
                items += self.every(inner, scope, [schema.shown])
                continue
            null = types[len(items)] if types is not None and len(items) < len(types) else "INT"
            context: Literal["aggregate", "row"] = "aggregate" if grouped else "row"
            items.append(read_expression(scope, inner, context, null, keys))
        where = self.where(scope, node.args.get("where"))
        self.foreseen(where, node.args.get("where"))
        self.evaluated(schema, where, node.args.get("where"))
        where = self.left_open(scope, node, where, *handled, grouped=grouped)
        alias = _by_path(source.this)
        return qu.Select(schema.name, tuple(items), where, grouped, version, keys, alias)

    def every(
        self, node: exp.Expr, scope: NameScope, shown: Sequence[Collection[int]] | None = None
    ) -> list[ex.Expr]:
        """Return the columns that ``*`` or ``s.*`` stands for, perhaps with EXCEPT.

        ``shown`` are the positions of the columns of each side that count (default: all).
        """
        star = node.this if isinstance(node, exp.Column) else node
        refuse_other_arguments(self.place, star, "except_")
        of = node.table if isinstance(node, exp.Column) else ""
        wanted = of.lower()
        sides = [(k, side) for k, side in enumerate(scope.sides) if side is not None]
        known = [side.name for _, side in sides]
        if wanted and wanted not in map(str.lower, known):
            self.place.refuse(node, f"unknown name '{of}'{near(of, known)}")
        left_out = set()
        for name in star.args.get("except_") or ():
            column = scope.resolve(
                exp.column(name.this, table=name.args.get("table") or of or None)
            )
            left_out.add((column.side, column.index))
        return [
            ex.ColumnRef(k, i, column.name, column.type)
            for k, side in sides
            if wanted in ("", side.name.lower())
            for i, column in enumerate(side.columns)
            if column.name and (k, i) not in left_out and (shown is None or i in shown[k])
        ]

    def keys(self, scope: NameScope, node: exp.Expr | None) -> tuple[ex.ColumnRef, ...]:
        """Return the columns of a GROUP BY."""
        if node is None:
            return ()
        refuse_other_arguments(self.place, node, "expressions")
        for key in node.expressions:
            if not isinstance(key, exp.Column):
                self.place.refuse(key, f"GROUP BY anything but columns {OUTSIDE}")
        return tuple(map(scope.resolve, node.expressions))

    def source(self, node: exp.Expr | None) -> tuple[Schema, Side]:
        """Return the table of a FROM, given by name or by another path (``{alias}``)."""
        if not isinstance(node, exp.Table) or not _by_path(node):
            return self.table(node, "version")
        name = tables_by_path(node, self.schemas)
        if name is None:
            wanted = "{alias}" if len(self.schemas) == 1 else "{alias[NAME]}"
            self.place.refuse(
                node, f"write delta.`{wanted}` for another path to a table's files, or its name"
            )
        refuse_other_arguments(self.place, node, "this", "db", "alias")
        schema = self.schemas[name]
        return schema, Side(node.alias or schema.name, schema.columns)

    def version(self, node: exp.Table) -> int | None:
        """Return the number of the init statement whose version is read; None for the snapshot."""
        if node.args.get("version") is None:
            return None
        number = marked_version(node)
        if number is None:
            self.place.refuse(
                node, "write VERSION AS OF {init[1]}: the first init statement's version"
            )
        return number

    def foreseen(self, where: ex.Expr | None, node: exp.Expr | None) -> None:
        """Refuse a WHERE of a query that Spark's optimizer rewrites in an unmodelled way."""
        unknown = None if where is None else unmodelled_query_rewrite(where)
        if unknown is not None:
            self.place.refuse(node, f"{unknown}: Spark's treatment of that {UNMODELLED}")

    def evaluated(self, schema: Schema, where: ex.Expr | None, node: exp.Expr | None) -> None:
        """Refuse a partition condition with an aggregate that Delta may answer from metadata.

        Such a condition counts as TRUE in the conflict check (widenNonDeterministicPredicates).
        """
        parts = schema.partition_indexes
        for condition in ex.conjuncts(where) if parts else ():
            if all(column.index in parts for column in columns_in(condition)) and any(
                subquery.grouped for subquery in ex.subqueries(condition)
            ):
                self.place.refuse(
                    node,
                    f"'{condition}' names partition columns only: whether Delta evaluates such an"
                    " aggregate when it checks for conflicts is not modelled",
                )

    def subquery(
        self, around: NameScope, kind: Literal["exists", "in", "scalar"], node: exp.Expr
    ) -> ex.Subquery:
        """Return a subquery: a SELECT from one table in an expression."""
        if not isinstance(node, exp.Select) or node.args.get("from_") is None:
            self.place.refuse(node, "a subquery is a SELECT … FROM one table")
        refuse_other_arguments(self.place, node, "expressions", "from_", "where")
        schema, side = self.table(node.args["from_"].this)
        scope = NameScope(
            self.place,
            (*around.sides, side),
            f"a subquery in a subquery {OUTSIDE}",
            len(around.sides),
        )
        item, grouped = self.subquery_item(scope, kind, node)
        where = self.where(scope, node.args.get("where"))
        inner = len(around.sides)
        found = ex.Subquery(
            kind, schema.name, item, where, inner, "BOOLEAN" if kind != "scalar" else item.type,
            grouped=grouped,
        )  # fmt: skip
        own = []
        for part in ex.conjuncts(where):
            sides = {column.side == inner for column in columns_in(part)}
            if sides == {False}:
                self.place.refuse(node, f"'{part}' names no column of {schema.name}")
            own += [part] if sides == {True} else []
        self.foreseen(reduce(ex.And, own) if own else None, node)
        if found.correlated and grouped:
            self.apart({"a correlated subquery", "an aggregate"}, node)
        data = [
            c for part in own for c in columns_in(part) if c.index not in schema.partition_indexes
        ]
        if kind == "exists" and not found.correlated and not data:
            self.place.refuse(
                node,
                f"EXISTS of any row or of a whole partition reads some file of {schema.name}:"
                " not modelled, compare count(*) with 0",
            )
        return found

    def subquery_item(
        self,
        scope: NameScope,
        kind: Literal["exists", "in", "scalar"],
        node: exp.Select,
        *,
        plain: bool = False,
    ) -> tuple[ex.Expr, bool]:
        """Return the selected expression of a subquery, and whether it is an aggregate.

        `plain` allows a scalar subquery without aggregate.
        """
        if kind == "exists":
            return ex.TRUE, False
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Star):
            self.place.refuse(node, "a subquery gives one column here")
        item = node.expressions[0]
        inner = item.this if isinstance(item, exp.Alias) else item
        grouped = aggregates(inner)
        if kind == "scalar" and not grouped and not plain:
            self.place.refuse(node, "a subquery that gives one value is an aggregate here")
        return read_expression(scope, inner, "aggregate" if grouped else "row"), grouped


PATH = frozenset("/{:")
"""Characters of a path, or of the place of one, that no table's name has."""


def _by_path(node: exp.Table) -> bool:
    """Return whether a FROM names files instead of a table of a database."""
    return node.db.lower() == "delta" or (bool(node.db) and not PATH.isdisjoint(node.name))


def _perhaps(query: qu.Query) -> qu.Query:
    """Return the query with an unknown subset of its rows."""
    said = ex.Opaque("UNION", (), "BOOLEAN")
    return tuple(
        replace(one, where=said if one.where is None else ex.And(said, one.where)) for one in query
    )


def aggregates(item: exp.Expr) -> bool:
    """Return whether an item contains an aggregate outside of subqueries."""
    nodes = item.walk(prune=lambda n: isinstance(n, exp.Subquery))
    return any(isinstance(n, exp.Count | exp.Sum | exp.Min | exp.Max) for n in nodes)


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
"""Joins by sqlglot's side and kind."""
OUTER = ("right", "full")
"""Joins that keep every row of their right side, with NULLs if it has no match."""
BESIDE = f"a subquery together with a join {OUTSIDE}"
NESTED = f"a subquery together with a nested query in FROM, or WITH, {OUTSIDE}"


class JoinReader(QueryReader):
    """Translator of queries whose rows come from several tables or from nested queries."""

    handled = ("with_",)

    def __init__(self, syntax: Syntax, schemas: Mapping[str, Schema]) -> None:
        super().__init__(syntax, schemas)
        self.named: dict[str, exp.Expr] = {}
        # Queries that WITH defines, by name in lower case.

    @resolves(exp.Select, exp.Union)
    def read(self, node: exp.Expr) -> st.Read:
        """Return a statement that only reads."""
        return st.Read(self.sql, self.query(node))

    def query(self, node: exp.Expr, types: tuple[Type, ...] | None = None) -> qu.Query:
        self.name(node)
        return super().query(node, types)

    def name(self, node: exp.Expr) -> None:
        """Record the names in a WITH; a name stands for one query in the whole statement."""
        given = node.args.get("with_")
        if given is None:
            return
        if self.place.plain:
            self.place.refuse(given, f"WITH {OUTSIDE} in format locking")
        if given.args.get("recursive"):
            self.place.refuse(given, f"WITH RECURSIVE {OUTSIDE}")
        later = [part.alias.lower() for part in given.expressions]
        for part in given.expressions:
            name = part.alias.lower()
            # its own query and those before it mean a table of this name
            outer = any(
                one.name.lower() in later and not one.db for one in part.find_all(exp.Table)
            )
            later.remove(name)
            if name in self.schemas or self.named.get(name, part) is not part or outer:
                self.place.refuse(part, f"'{part.alias}' names two things; give one another name")
            self.named[name] = part

    def select(self, node: exp.Select, types: tuple[Type, ...] | None) -> qu.Branch:
        """Return a SELECT, as a join if it reads several tables or a nested query."""
        self.name(node)
        if views := node.args.get("laterals"):
            self.place.refuse(
                views[0], f"LATERAL VIEW {OUTSIDE}; write explode(…) as a column of the SELECT"
            )
        source = node.args.get("from_")
        joined = node.args.get("joins") or (source is not None and self.derived(source.this))
        if source is None or not joined or self.place.plain:
            return super().select(node, types)
        if (merged := self.merged(node)) is not None:
            return self.select(merged, types)
        return self.join(node, types)

    def merged(self, node: exp.Select) -> exp.Select | None:
        """Return a SELECT that has a subquery in its condition, on the source of the only query
        that it reads; None for another SELECT.
        """
        where, source = node.args.get("where"), node.args["from_"].this
        if node.args.get("joins") or where is None or where.find(exp.Select) is None:
            return None
        inner = source
        if isinstance(source, exp.Table):
            inner = self.named[source.name.lower()]
            if inner.args["alias"].args.get("columns"):
                return None
        if isinstance(inner, exp.Values) or source.args.get("pivots"):
            return None
        query = inner.this
        self.name(query)
        return merge_source(node, query, source.alias_or_name or "q", self.schemas)

    def derived(self, node: exp.Expr) -> bool:
        """Return whether the rows of a FROM come from a query instead of a table."""
        if not isinstance(node, exp.Table):
            return isinstance(node, exp.Subquery | exp.Values)
        return not node.db and node.name.lower() in self.named

    def join(self, node: exp.Select, types: tuple[Type, ...] | None) -> qu.Joined:
        """Return a join with its sources, items and conditions."""
        first = node.args["from_"].this
        query, side = self.side(first)
        sources = [qu.JoinSource(query)]
        sides: list[Side | None] = [side]
        for part in node.args.get("joins") or ():
            refuse_other_arguments(
                self.place, part, "this", "method", "side", "kind", "on", "using"
            )
            how = HOW.get((part.side.upper(), part.kind.upper()))
            if how is None or part.method:
                self.place.refuse(part, f"a join {part.method or part.side} {part.kind} {OUTSIDE}")
            query, side = self.side(part.this)
            scope = NameScope(self.place, (*sides, side), BESIDE)
            sources.append(qu.JoinSource(query, how, self.paired(part, scope, side)))
            sides.append(None if how in ("semi", "anti") else side)
        scope = NameScope(self.place, tuple(sides), BESIDE if node.args.get("joins") else NESTED)
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
        where = self.left_open(scope, node, where, *known, grouped=grouped)
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
        """Return the items of a SELECT over a join, with stars expanded."""
        items: list[ex.Expr] = []
        context: Literal["aggregate", "row"] = "aggregate" if grouped else "row"
        joins = node.args.get("joins") or ()
        using = any(part.args.get("using") and part.kind == "" for part in joins)
        for item in node.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            if _is_star(inner):
                if using:
                    self.place.refuse(
                        inner, f"'*' beside USING {OUTSIDE}: name the columns, or write ON"
                    )
                items += self.every(inner, scope)
                continue
            null = types[len(items)] if types is not None and len(items) < len(types) else "INT"
            items.append(read_expression(scope, inner, context, null, keys))
        return tuple(items)

    def paired(self, node: exp.Join, scope: NameScope, side: Side) -> ex.Expr | None:
        """Return the condition of a join."""
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
            left, right = unify_types(self.place, node, nodes, both)[1]
            equal.append(ex.Compare("=", left, right))
        return reduce(ex.And, equal)

    def side(self, node: exp.Expr, *, several: bool = False) -> tuple[qu.Query, Side]:
        """Return the query and columns of an item in FROM or JOIN.

        It is a table, a query in parentheses, VALUES, or a name that WITH defines; the latter may
        have `several` branches.
        """
        if isinstance(node, exp.Values):
            return self.listed(node)
        if isinstance(node, exp.Table) and self.derived(node):
            refuse_other_arguments(self.place, node, "this", "alias")
            cte = self.named[node.name.lower()]
            alias = cte.args.get("alias")
            return self.given(cte.this, node.alias or node.name, alias, several=several)
        if isinstance(node, exp.Subquery):
            refuse_other_arguments(self.place, node, "this", "alias")
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
        """Return a named query, perhaps with named columns."""
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
        """Return the names of the columns of a query."""
        while isinstance(node, exp.Union | exp.Subquery):
            node = node.this
        names: list[str] = []
        branch = query[0]
        items = items_of(branch)
        for part in node.expressions:
            inner = part.this if isinstance(part, exp.Alias) else part
            if _is_star(inner):
                rest = len(items) - len(node.expressions) + 1
                refs = items[len(names) : len(names) + rest]
                names += [ref.name for ref in refs if isinstance(ref, ex.ColumnRef)]
            else:
                names.append(part.alias_or_name)
        return [name.rpartition(".")[2] for name in names]

    def listed(self, node: exp.Values) -> tuple[qu.Query, Side]:
        """Return ``VALUES (…), (…) AS s(a, b)``; default column names are col1, col2, …."""
        refuse_other_arguments(self.place, node, "expressions", "alias")
        nodes = [t.expressions if isinstance(t, exp.Tuple) else [t] for t in node.expressions]
        if len(set(map(len, nodes))) > 1:
            self.place.refuse(node, "the rows of VALUES differ in length", "arity")
        rows = [self.constants(row, None) for row in nodes]
        places = range(len(rows[0]))
        types, cast = [], []
        for k in places:
            type_, values = unify_types(
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


def _is_star(node: exp.Expr) -> bool:
    """Return whether an item of a SELECT is ``*`` or ``s.*``."""
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def _narrowed(source: qu.JoinSource, side: int, where: ex.Expr | None) -> qu.JoinSource:
    """Return the source with the conditions on its table alone, so that only matching rows count as
    read.
    """
    branch = source.query[0]
    if not isinstance(branch, qu.Select) or branch.keys or branch.where is not None:
        return source
    if any(isinstance(part, ex.Opaque) for item in branch.items for part in ex.walk(item)):
        # An opaque item may be a window, which depends on rows that the condition removes.
        return source
    said = () if source.how in OUTER else ex.conjuncts(source.on)
    if source.how == "inner":
        said += ex.conjuncts(where)

    def own(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        assert isinstance(part, ex.ColumnRef)
        return branch.items[part.index]

    alone = [
        ex.map_columns(part, own)
        for part in said
        if columns_in(part) and all(c.side == side for c in columns_in(part)) and not can_fail(part)
    ]
    if not alone:
        return source
    return replace(source, query=(replace(branch, where=reduce(ex.And, alone)),))
