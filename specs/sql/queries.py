"""Read tables, conditions and queries of a SQL statement: what every statement is made of."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Literal

from sqlglot import expressions as exp

from isolitmus.model.errors import near
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql.conditions import columns, normal, query_surprise, surprise
from isolitmus.model.sql.failing import EvaluationError
from isolitmus.specs.sql.expressions import read_expression
from isolitmus.specs.sql.placeholders import aliased, marked_version
from isolitmus.specs.sql.source_text import DIALECT, NameScope, Side, SqlText, only
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE, refuse_together

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.syntax import Syntax
    from isolitmus.specs.sql.unsupported_pairs import Feature

__all__ = ["REFUSED", "QueryReader", "aggregates"]

VAGUE = ("distinct", "having", "qualify", "limit", "offset")
"""What may leave out some of the rows that a query gives, each of them a row that it would give otherwise."""
UNMODELLED = "in a query plan is not modelled"
REFUSED = (
    "open-source Delta refuses a subquery in this condition (DELTA_UNSUPPORTED_SUBQUERY), and for Databricks it is not"
    " modelled; subqueries stand in INSERT … SELECT and in SET, and in the source of a MERGE … WHEN MATCHED THEN DELETE"
)


class QueryReader:
    """Reads parts of one statement against the schemas of the tables; refuses at the place."""

    handled: tuple[str, ...] = ()
    """Arguments of queries that are read elsewhere."""

    def __init__(self, syntax: Syntax, schemas: Mapping[str, Schema]) -> None:
        self.syntax = syntax
        self.text = syntax.text
        self.sql = syntax.sql
        self.databases: dict[str, str] = {}
        self.schemas = {name.lower(): schema for name, schema in schemas.items()}
        self.place = SqlText(syntax.text, syntax.label, syntax.types, opaque=syntax.opaque)

    # Tables

    def table(self, node: exp.Expr | None, *handled: str) -> tuple[Schema, Side]:
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            self.place.refuse(node, "a table's name is wanted here")
        only(self.place, node, "this", "alias", "db", "catalog", *handled)
        of = f"{node.catalog}.{node.db}".lower()
        if node.db and self.databases.setdefault(node.name.lower(), of) != of:
            self.place.refuse(node, f"'{node.name}' names tables of two databases here")
        schema = self.schemas.get(node.name.lower())
        if schema is None:
            names = [s.name for s in self.schemas.values()]
            self.place.refuse(node, f"no table '{node.name}'{near(node.name, names)}", "no table")
        return schema, Side(node.alias or schema.name, schema.columns)

    def apart(
        self, found: Collection[Feature], node: exp.Expr | None = None, **words: object
    ) -> None:
        """Refuse what has two features that are not modelled together."""
        refuse_together(found, lambda problem: self.place.refuse(node, problem), "", **words)

    def scope(self, *sides: Side | None) -> NameScope:
        return NameScope(self.place, sides)

    def where(self, scope: NameScope, node: exp.Expr | None) -> ex.Expr | None:
        if node is None:
            return None
        only(self.place, node, "this")
        return self.condition(scope, node.this)

    def condition(self, scope: NameScope, node: exp.Expr) -> ex.Expr:
        condition = read_expression(scope, node)
        if isinstance(condition, ex.Opaque):
            condition = replace(condition, type="BOOLEAN")
        if condition.type != "BOOLEAN":
            self.place.refuse(
                node, f"'{self.place.written(node)}' is {condition.type}; a condition is wanted"
            )
        try:
            normal(condition)
            unknown = surprise(condition)
        except EvaluationError as error:
            self.place.refuse(node, str(error))
        if unknown is not None:
            self.place.refuse(node, f"{unknown}: what Spark makes of that {UNMODELLED}")
        return condition

    # Queries

    def left_open(self, node: exp.Select, where: ex.Expr | None, *handled: str) -> ex.Expr | None:
        """The WHERE of a query, and that some rows of it, nobody knows which, are left out."""
        if not self.place.opaque:
            only(self.place, node, *handled)
            return where
        only(self.place, node, *handled, *VAGUE, "order", "windows")
        parts = [node.args[key] for key in VAGUE if node.args.get(key)]
        if parts and not node.args.get("group") and any(map(aggregates, node.expressions)):
            said = type(parts[0]).__name__.upper()
            self.place.refuse(node, f"{said} beside an aggregate without GROUP BY {OUTSIDE}")
        vague: list[ex.Expr] = [ex.Opaque(part.sql(DIALECT), (), "BOOLEAN") for part in parts]
        return reduce(ex.And, [*vague, *([] if where is None else [where])]) if vague else where

    def vague_groups(self, node: exp.Select) -> tuple[ex.Expr, ...] | None:
        """The items of a query by groups that are not modelled: values of which nothing is known."""
        group = node.args.get("group")
        if group is None or not self.place.opaque:
            return None
        plain = all(isinstance(key, exp.Column) for key in group.expressions)
        if plain and not any(value for key, value in group.args.items() if key != "expressions"):
            return None
        return tuple(ex.Opaque(item.sql(DIALECT), (), "") for item in node.expressions)

    def query(self, node: exp.Expr, types: tuple[Type, ...] | None = None) -> qu.Query:
        """The branches; ``types`` are those of the columns that a result is stored into."""
        match node:
            case exp.Subquery():
                only(self.place, node, "this", "alias")
                return self.query(node.this, types)
            case exp.Union():
                aside = ("order", *VAGUE) if self.place.opaque else ("distinct",)
                only(self.place, node, "this", "expression", *aside, *self.handled)
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
                only(self.place, node, "expressions")
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
        handled = ("expressions", "from_", "where", "group", *self.handled)
        source = node.args.get("from_")
        if source is None:
            if node.args.get("group"):
                self.place.refuse(node, f"GROUP BY without FROM {OUTSIDE}")
            scope = NameScope(self.place, (), self.subquery)
            where = self.left_open(node, self.where(scope, node.args.get("where")), *handled)
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
            if isinstance(inner, exp.Star) and not keys:
                only(self.place, inner)
                shown = ((i, schema.columns[i]) for i in schema.shown)
                items += [ex.ColumnRef(0, i, c.name, c.type) for i, c in shown]
                continue
            null = types[len(items)] if types is not None and len(items) < len(types) else "INT"
            context: Literal["aggregate", "row"] = "aggregate" if grouped else "row"
            items.append(read_expression(scope, inner, context, null, keys))
        where = self.where(scope, node.args.get("where"))
        self.foreseen(where, node.args.get("where"))
        self.evaluated(schema, where, node.args.get("where"))
        where = self.left_open(node, where, *handled)
        alias = bool(source.this.args.get("db"))
        return qu.Select(schema.name, tuple(items), where, grouped, version, keys, alias)

    def keys(self, scope: NameScope, node: exp.Expr | None) -> tuple[ex.ColumnRef, ...]:
        """The columns of a GROUP BY."""
        if node is None:
            return ()
        only(self.place, node, "expressions")
        for key in node.expressions:
            if not isinstance(key, exp.Column):
                self.place.refuse(key, f"GROUP BY anything but columns {OUTSIDE}")
        return tuple(map(scope.resolve, node.expressions))

    def source(self, node: exp.Expr | None) -> tuple[Schema, Side]:
        """The table of a FROM: by its name, or by another path, which ``{alias}`` stands for."""
        if not isinstance(node, exp.Table) or not _by_path(node):
            return self.table(node, "version")
        name = aliased(node, self.schemas)
        if name is None:
            wanted = "{alias}" if len(self.schemas) == 1 else "{alias[NAME]}"
            self.place.refuse(
                node, f"write delta.`{wanted}` for another path to a table's files, or its name"
            )
        only(self.place, node, "this", "db", "alias")
        schema = self.schemas[name]
        return schema, Side(node.alias or schema.name, schema.columns)

    def version(self, node: exp.Table) -> int | None:
        """The init statement whose version of the table is read, if it is not the snapshot's."""
        if node.args.get("version") is None:
            return None
        number = marked_version(node)
        if number is None:
            self.place.refuse(
                node, "write VERSION AS OF {init[1]}: the first init statement's version"
            )
        return number

    def foreseen(self, where: ex.Expr | None, node: exp.Expr | None) -> None:
        """Refuse a WHERE of a query of which the optimizer makes something that is not modelled."""
        unknown = None if where is None else query_surprise(where)
        if unknown is not None:
            self.place.refuse(node, f"{unknown}: what Spark makes of that {UNMODELLED}")

    def evaluated(self, schema: Schema, where: ex.Expr | None, node: exp.Expr | None) -> None:
        """Refuse a condition on partition columns with an aggregate that Delta may answer from
        metadata: it then counts as TRUE in the check of conflicts (widenNonDeterministicPredicates).
        """
        parts = schema.partition_indexes
        for condition in ex.conjuncts(where) if parts else ():
            if all(column.index in parts for column in columns(condition)) and any(
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
        """A SELECT of one table inside an expression."""
        if not isinstance(node, exp.Select) or node.args.get("from_") is None:
            self.place.refuse(node, "a subquery is a SELECT … FROM one table")
        only(self.place, node, "expressions", "from_", "where")
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
            sides = {column.side == inner for column in columns(part)}
            if sides == {False}:
                self.place.refuse(node, f"'{part}' names no column of {schema.name}")
            own += [part] if sides == {True} else []
        self.foreseen(reduce(ex.And, own) if own else None, node)
        if found.correlated and grouped:
            self.apart({"a correlated subquery", "an aggregate"}, node)
        data = [c for part in own for c in columns(part) if c.index not in schema.partition_indexes]
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
        """What a subquery selects, and whether that is an aggregate; ``plain``: one value may be none."""
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


def _by_path(node: exp.Table) -> bool:
    """Whether a FROM names files, and no table of a database."""
    return bool(node.db) and (node.db.lower() == "delta" or not node.name.isidentifier())


def _perhaps(query: qu.Query) -> qu.Query:
    """The query, of whose rows nobody knows which are left out."""
    said = ex.Opaque("UNION", (), "BOOLEAN")
    return tuple(
        replace(one, where=said if one.where is None else ex.And(said, one.where)) for one in query
    )


def aggregates(item: exp.Expr) -> bool:
    """Whether there is an aggregate in an item, outside subqueries."""
    nodes = item.walk(prune=lambda n: isinstance(n, exp.Subquery))
    return any(isinstance(n, exp.Count | exp.Sum | exp.Min | exp.Max) for n in nodes)
