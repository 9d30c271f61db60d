"""Read INSERT in its forms, and what is stored into a table's columns."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.errors import near
from isolitmus.model.number import many
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.casting import castable
from isolitmus.model.sql.conditions import columns, normal
from isolitmus.model.sql.types import is_opaque
from isolitmus.specs.sql.expressions import read_expression
from isolitmus.specs.sql.features import features
from isolitmus.specs.sql.resolving import resolves
from isolitmus.specs.sql.source_text import NameScope, Side, only
from isolitmus.specs.sql.sql_joins import JoinReader
from isolitmus.specs.sql.sql_literals import coerced
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Column, Schema

__all__ = ["InsertReader", "StoringReader", "whole"]


class StoringReader(JoinReader):
    """Resolves what is stored into a table's columns."""

    def columns(
        self,
        schema: Schema,
        names: list[exp.Expr],
        wanted: tuple[int, ...],
        *,
        some: bool = False,
    ) -> tuple[int, ...]:
        """The columns of a list, which are those that are wanted, or ``some`` of them."""
        order: list[int] = []
        for name in names:
            index = schema.index(name.name)
            if index is None:
                known = [c.name for c in schema.columns]
                self.place.refuse(
                    name,
                    f"table {schema.name} has no column '{name.name}'{near(name.name, known)}",
                    "no column",
                )
            if index in order:
                self.place.refuse(name, f"column '{name.name}' is named twice")
            order.append(index)
        needed = {i for i in wanted if not some and schema.columns[i].identity is None}
        if not needed <= set(order) <= set(wanted):
            self.place.refuse(
                names[0], f"a column list that leaves columns of {schema.name} out {OUTSIDE}"
            )
        return tuple(order)

    def stored(self, node: exp.Expr, column: Column, value: ex.Expr) -> ex.Expr:
        """What a column gets of a value; of a type that is not modelled nothing is known of what Spark makes of it."""
        if isinstance(value, ex.Opaque) or (isinstance(value, ex.Const) and value.value is None):
            return value
        unknown = value.type == "" or is_opaque(column.type) or is_opaque(value.type)
        if unknown and value.type != column.type:
            if not self.place.opaque:
                self.place.refuse(
                    node, f"what '{value}' is as {column.type} is not modelled", "opaque"
                )
            return ex.Opaque(f"{value} as {column.type}", columns(value), column.type)
        if not castable(value.type, column.type):
            self.place.refuse(
                node,
                f"'{value}' is {value.type} and column {column.name} is {column.type}: no implicit cast",
                "type",
            )
        if not self.place.opaque or value.type == column.type:
            return value
        # formulas know no store assignment: a text in a DATE is that date
        return coerced(self.place, node.copy(), value, column.type)

    def sets(
        self, schema: Schema, side: Side, nodes: list[exp.Expr], scope: NameScope
    ) -> tuple[tuple[int, ex.Expr], ...]:
        sets: dict[int, ex.Expr] = {}
        for node in nodes:
            if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
                self.place.refuse(
                    node, f"'{self.place.written(node)}' is no assignment column = value"
                )
            column = self.scope(side).resolve(node.this)
            read = read_expression(scope, node.expression, null=column.type)
            value = self.stored(node, schema.columns[column.index], read)
            if schema.columns[column.index].identity is not None:
                self.place.refuse(
                    node, f"'{column.name}' is an identity column, which Delta lets nobody update"
                )
            if column.index in sets:
                self.place.refuse(node, f"column '{column.name}' is set twice")
            sets[column.index] = value
        return tuple(sorted(sets.items()))


class InsertReader(StoringReader):
    """Resolves INSERT."""

    @resolves(exp.Insert)
    def insert(self, node: exp.Insert) -> st.Insert:
        self.name(node)
        only(self.place, node, "this", "expression", "overwrite", "where", "with_")
        target = node.this
        names: list[exp.Expr] = []
        if isinstance(target, exp.Schema):
            target, names = target.this, target.expressions
        schema, side = self.table(target, "partition")
        fixed = self.fixed(schema, target.args.get("partition"))
        open_ = tuple(i for i in schema.shown if i not in fixed)
        overwrite = bool(node.args.get("overwrite"))
        some = not overwrite and not fixed  # the others are generated or NULL
        order = self.columns(schema, names, open_, some=some) if names else open_
        left = tuple(i for i in open_ if i not in order)
        generated = tuple(i for i in left if schema.columns[i].identity is not None)
        self.identities(node, schema, order)
        types = tuple(schema.columns[i].type for i in order)
        query = self.query(node.expression, types)
        keyed = any(not isinstance(branch, qu.Values) and branch.keys for branch in query)
        if keyed:
            self.apart(features(schema=schema) | {"GROUP BY in an INSERT"}, node)
        if generated and not _ordered(query):
            self.apart({"rows that come in no certain order", "identity columns"}, node)
        given = fixed | {i: ex.Const(None, schema.columns[i].type) for i in left}
        placed = tuple(self.placed(node, schema, order, given, branch) for branch in query)
        where = reduce(ex.And, self.equalities(schema, fixed)) if fixed else None
        if node.args.get("where"):
            if names or fixed:
                self.apart({"REPLACE WHERE", "a list of columns"}, node)
            where, overwrite = self.replaced(side, node.args["where"]), True
        where = where if overwrite else None
        return st.Insert(self.sql, schema.name, placed, overwrite, where, generates=generated)

    def identities(self, node: exp.Expr, schema: Schema, order: tuple[int, ...]) -> None:
        """Refuse values for columns that always have their own."""
        for index in order:
            column = schema.columns[index]
            if column.identity is not None and column.identity.always:
                self.place.refuse(
                    node,
                    f"column {column.name} is GENERATED ALWAYS AS IDENTITY: list the other columns,"
                    " as Delta wants it",
                )

    def replaced(self, side: Side, node: exp.Expr) -> ex.Expr:
        """The condition of a REPLACE WHERE, which Delta gets as it was written."""
        where = self.condition(self.scope(side), node)
        if normal(where) != where:
            self.place.refuse(
                node,
                f"Spark does not simplify the condition of REPLACE WHERE: write {normal(where)}",
            )
        return where

    def fixed(self, schema: Schema, node: exp.Expr | None) -> dict[int, ex.Expr]:
        """The partition columns that ``PARTITION (part = 1)`` gives a value; one that is only named has its values
        from the query, as without PARTITION (Spark's ResolveInsertInto).
        """
        fixed: dict[int, ex.Expr] = {}
        for part in node.expressions if node is not None else ():
            if isinstance(part, exp.Column | exp.Identifier):
                if schema.index(part.name) not in schema.partition_indexes:
                    self.place.refuse(part, f"{schema.name} is not partitioned by '{part.name}'")
                continue
            if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
                self.place.refuse(
                    part, f"'{self.place.written(part)}' in PARTITION (…) {OUTSIDE}: column = value"
                )
            index = schema.index(part.this.name)
            if index is None or index not in schema.partition_indexes:
                self.place.refuse(part, f"{schema.name} is not partitioned by '{part.this.name}'")
            value = read_expression(self.scope(), part.expression, "constant")
            if value == ex.Const(None, "INT"):
                self.place.refuse(part, f"NULL in PARTITION (…) {OUTSIDE}")
            self.stored(part, schema.columns[index], value)
            fixed[index] = coerced(self.place, part.expression, value, schema.columns[index].type)
            if not isinstance(fixed[index], ex.Const | ex.Parameter):
                self.place.refuse(
                    part,
                    f"'{self.place.written(part.expression)}' is no {schema.columns[index].type}",
                )
        return fixed

    def equalities(self, schema: Schema, fixed: dict[int, ex.Expr]) -> list[ex.Expr]:
        columns = ((i, schema.columns[i], value) for i, value in fixed.items())
        return [
            ex.Compare("=", ex.ColumnRef(0, i, column.name, column.type), value)
            for i, column, value in columns
        ]

    def placed(
        self,
        node: exp.Expr,
        schema: Schema,
        order: tuple[int, ...],
        fixed: Mapping[int, ex.Expr],
        branch: qu.Branch,
    ) -> qu.Branch:
        """The branch with its items in the order of the table's columns, stored types checked."""

        def sort(items: tuple[ex.Expr, ...]) -> tuple[ex.Expr, ...]:
            if len(items) != len(order):
                self.place.refuse(
                    node,
                    f"table {schema.name} has {many(len(order), 'column')}, the query gives {len(items)}",
                    "arity",
                )
            given = {
                index: self.stored(node, schema.columns[index], item)
                for index, item in zip(order, items, strict=True)
            }
            return whole(schema, {**fixed, **given})

        if isinstance(branch, qu.Values):
            return replace(branch, rows=tuple(map(sort, branch.rows)))
        return replace(branch, items=sort(branch.items))


def _ordered(query: qu.Query) -> bool:
    """Whether somebody says in what order the rows of a query come."""
    branch = query[0]
    one = isinstance(branch, qu.Values) or (branch.grouped and not branch.keys)
    return one and len(query) == 1


def whole(schema: Schema, values: Mapping[int, ex.Expr]) -> tuple[ex.Expr, ...]:
    """A row of a table from the values of the columns that are there; NULL where one was dropped."""
    return tuple(values.get(i, ex.Const(None, c.type)) for i, c in enumerate(schema.columns))
