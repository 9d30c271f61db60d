"""Read tables, conditions and queries of a SQL statement: what every statement is made of."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.errors import SqlError, brief, excerpt, near
from isolitmus.model.normal import query_surprise, surprise
from isolitmus.specs.sql_expressions import Place, Scope, Side, only, read_expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema, Type

__all__ = ["OUTSIDE", "QueryReader", "items_of"]

OUTSIDE = "is outside the SQL that isolitmus models"
UNMODELLED = "in a query plan is not modelled"
DEEPEST = 100
DEEP = "is nested too deeply"


class QueryReader:
    """Reads parts of one statement against the schemas of the tables; refuses at the place."""

    def __init__(self, sql: str, schemas: Mapping[str, Schema], place: Place) -> None:
        self.sql = sql
        self.schemas = {name.lower(): schema for name, schema in schemas.items()}
        self.place = place

    def parse(self, text: str, place: Place) -> exp.Expr:
        logger = logging.getLogger("sqlglot")
        level = logger.level
        logger.setLevel(logging.CRITICAL)
        try:
            trees = sqlglot.parse(text, read="databricks")
        except SqlglotError as error:
            details = getattr(error, "errors", None) or [{}]
            line, column = details[0].get("line") or 1, details[0].get("col") or 1
            what = details[0].get("description") or str(error).splitlines()[0]
            raise SqlError(
                f"{place.label}:{line}:{column}: this does not parse: {brief(what.rstrip('.'))}"
                f"{excerpt(text, line, column)}"
            ) from None
        except RecursionError:
            raise SqlError(f"{place.label}: the statement {DEEP}") from None
        finally:
            logger.setLevel(level)
        found = [tree for tree in trees if tree is not None]
        if len(found) != 1:
            raise SqlError(
                f"{place.label}: one statement is wanted here, found {len(found) or 'none'}"
            )
        if _deeper(found[0], DEEPEST):
            raise SqlError(f"{place.label}: the statement {DEEP}")
        return found[0]

    # Tables

    def table(self, node: exp.Expr | None, *handled: str) -> tuple[Schema, Side]:
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            self.place.refuse(node, "a table's name is wanted here")
        only(self.place, node, "this", "alias", *handled)
        schema = self.schemas.get(node.name.lower())
        if schema is None:
            names = [s.name for s in self.schemas.values()]
            self.place.refuse(node, f"no table '{node.name}'{near(node.name, names)}")
        return schema, Side(node.alias or schema.name, schema.columns)

    def scope(self, *sides: Side | None) -> Scope:
        return Scope(self.place, sides)

    def where(self, side: Side, node: exp.Expr | None) -> ex.Expr | None:
        if node is None:
            return None
        only(self.place, node, "this")
        return self.condition(self.scope(side), node.this)

    def condition(self, scope: Scope, node: exp.Expr) -> ex.Expr:
        condition = read_expression(scope, node)
        if condition.type != "BOOLEAN":
            self.place.refuse(node, f"'{node.sql()}' is {condition.type}; a condition is wanted")
        try:
            unknown = surprise(condition)
        except ex.EvaluationError as error:
            self.place.refuse(node, str(error))
        if unknown is not None:
            self.place.refuse(node, f"{unknown}: what Spark makes of that {UNMODELLED}")
        return condition

    # Queries

    def query(self, node: exp.Expr, types: tuple[Type, ...] | None = None) -> st.Query:
        """The branches; ``types`` are those of the columns that a result is stored into."""
        match node:
            case exp.Subquery():
                only(self.place, node, "this", "alias")
                return self.query(node.this, types)
            case exp.Union():
                only(self.place, node, "this", "expression", "distinct")
                if node.args.get("distinct"):
                    self.place.refuse(node, f"UNION without ALL {OUTSIDE}")
                left, right = self.query(node.this, types), self.query(node.expression, types)
                if len(items_of(left[0])) != len(items_of(right[0])):
                    self.place.refuse(node, "the branches of the UNION ALL differ in columns")
                return left + right
            case exp.Values():
                only(self.place, node, "expressions")
                rows = [
                    t.expressions if isinstance(t, exp.Tuple) else [t] for t in node.expressions
                ]
                return (st.Values(tuple(self.constants(row, types) for row in rows)),)
            case exp.Select():
                return (self.select(node, types),)
        self.place.refuse(node, f"this query {OUTSIDE}; use VALUES, SELECT or UNION ALL")

    def constants(
        self, nodes: list[exp.Expr], types: tuple[Type, ...] | None
    ) -> tuple[ex.Expr, ...]:
        return tuple(
            read_expression(
                self.scope(),
                n.this if isinstance(n, exp.Alias) else n,
                "constant",
                types[i] if types is not None and i < len(types) else "INT",
            )
            for i, n in enumerate(nodes)
        )

    def select(self, node: exp.Select, types: tuple[Type, ...] | None) -> st.Branch:
        only(self.place, node, "expressions", "from_", "where")
        source = node.args.get("from_")
        if source is None:
            if node.args.get("where"):
                self.place.refuse(node, f"WHERE without FROM {OUTSIDE}")
            return st.Values((self.constants(node.expressions, types),))
        schema, side = self.table(source.this)
        scope = self.scope(side)
        grouped = any(
            isinstance(n, exp.Count | exp.Sum | exp.Min | exp.Max)
            for item in node.expressions
            for n in item.walk()
        )
        items: list[ex.Expr] = []
        for item in node.expressions:
            inner = item.this if isinstance(item, exp.Alias) else item
            if isinstance(inner, exp.Star):
                only(self.place, inner)
                items += [ex.ColumnRef(0, i, c.name, c.type) for i, c in enumerate(schema.columns)]
                continue
            null = types[len(items)] if types is not None and len(items) < len(types) else "INT"
            items.append(read_expression(scope, inner, "aggregate" if grouped else "row", null))
        where = self.where(side, node.args.get("where"))
        unknown = None if where is None else query_surprise(where)
        if unknown is not None:
            self.place.refuse(
                node.args["where"], f"{unknown}: what Spark makes of that {UNMODELLED}"
            )
        return st.Select(schema.name, tuple(items), where, grouped)


def _deeper(tree: exp.Expr, most: int) -> bool:
    """Whether a tree has more levels than that (a long AND is as deep as it is long)."""
    level = [tree]
    for _ in range(most):
        level = [child for node in level for child in node.iter_expressions()]
    return bool(level)


def items_of(branch: st.Branch) -> tuple[ex.Expr, ...]:
    """The expressions of a branch's columns (of its first row, for VALUES)."""
    return branch.rows[0] if isinstance(branch, st.Values) else branch.items
