"""Read a SQL statement (Spark's dialect) into the model's Statement.

sqlglot parses; what it hides in a Command (OPTIMIZE) has a rule of its own in delta.lark. Node
types and their arguments are white-listed: what is outside is refused with its place, never guessed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lark import Lark, LarkError
from sqlglot import expressions as exp

from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.errors import SqlError, near
from isolitmus.model.schema import Column
from isolitmus.specs.sql_expressions import INTEGERS, Place, Scope, Side, only, read_expression
from isolitmus.specs.sql_queries import OUTSIDE, QueryReader, items_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schema import Schema

__all__ = ["read_statement"]


def read_statement(sql: str, schemas: Mapping[str, Schema], label: str = "SQL") -> st.Statement:
    """The statement, its tables and columns resolved against the schemas (by table name).

    ``label`` says in messages where the text stands. Raises SqlError with line, column and caret.

    >>> from isolitmus.model.schema import Column, Schema
    >>> t = Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))
    >>> read_statement("DELETE FROM t WHERE part = 0", {"t": t}).where.op
    '='
    """
    return _StatementReader(sql, schemas, Place(sql, label)).statement()


@cache
def _delta_verbs() -> Lark:
    return Lark(Path(__file__).with_name("delta.lark").read_text("utf-8"), parser="lalr")


class _StatementReader(QueryReader):
    def statement(self) -> st.Statement:
        if self.sql.lstrip()[:8].upper() == "OPTIMIZE":
            return self.optimize()
        tree = self.parse(self.sql, self.place)
        match tree:
            case exp.Insert():
                return self.insert(tree)
            case exp.Delete():
                return self.delete(tree)
            case exp.Update():
                return self.update(tree)
            case exp.Merge():
                return self.merge(tree)
            case exp.Select() | exp.Union():
                return st.Read(self.sql, self.query(tree))
        self.place.refuse(tree, f"a statement that begins '{self.sql.split()[0]}' {OUTSIDE}")

    def insert(self, node: exp.Insert) -> st.Insert:
        only(self.place, node, "this", "expression", "overwrite")
        target = node.this
        names: list[exp.Expr] = []
        if isinstance(target, exp.Schema):
            target, names = target.this, target.expressions
        if target.args.get("partition"):
            self.place.refuse(target, f"PARTITION (…) {OUTSIDE}")
        schema, _ = self.table(target)
        order = self.columns(schema, names) if names else tuple(range(len(schema.columns)))
        types = tuple(schema.columns[i].type for i in order)
        query = self.query(node.expression, types)
        placed = tuple(self.placed(node, schema, order, branch) for branch in query)
        return st.Insert(self.sql, schema.name, placed, bool(node.args.get("overwrite")))

    def columns(self, schema: Schema, names: list[exp.Expr]) -> tuple[int, ...]:
        order: list[int] = []
        for name in names:
            index = schema.index(name.name)
            if index is None:
                known = [c.name for c in schema.columns]
                self.place.refuse(
                    name, f"table {schema.name} has no column '{name.name}'{near(name.name, known)}"
                )
            if index in order:
                self.place.refuse(name, f"column '{name.name}' is named twice")
            order.append(index)
        if len(order) != len(schema.columns):
            self.place.refuse(
                names[0], f"a column list that leaves columns of {schema.name} out {OUTSIDE}"
            )
        return tuple(order)

    def placed(
        self, node: exp.Expr, schema: Schema, order: tuple[int, ...], branch: st.Branch
    ) -> st.Branch:
        """The branch with its items in the order of the table's columns, stored types checked."""
        rows = branch.rows if isinstance(branch, st.Values) else (branch.items,)
        for items in rows:
            if len(items) != len(order):
                self.place.refuse(
                    node,
                    f"table {schema.name} has {len(order)} columns, the query gives {len(items)}",
                )
            for index, item in zip(order, items, strict=True):
                self.stores(node, schema.columns[index], item)

        def sort(items: tuple[ex.Expr, ...]) -> tuple[ex.Expr, ...]:
            return tuple(items[order.index(i)] for i in range(len(order)))

        if isinstance(branch, st.Values):
            return st.Values(tuple(sort(row) for row in branch.rows))
        return st.Select(branch.table, sort(branch.items), branch.where, branch.grouped)

    def stores(self, node: exp.Expr, column: Column, value: ex.Expr) -> None:
        if isinstance(value, ex.Const) and value.value is None:
            return
        if value.type != column.type and not {value.type, column.type} <= set(INTEGERS):
            self.place.refuse(
                node,
                f"'{value}' is {value.type} and column {column.name} is {column.type}: no implicit cast",
            )

    def delete(self, node: exp.Delete) -> st.Delete:
        if node.args.get("tables"):  # what sqlglot makes of a word that is not FROM
            self.place.refuse(node.args["tables"][0], "write DELETE FROM table")
        only(self.place, node, "this", "where")
        schema, side = self.table(node.this)
        return st.Delete(self.sql, schema.name, self.where(side, node.args.get("where")))

    def update(self, node: exp.Update) -> st.Update:
        only(self.place, node, "this", "expressions", "where")
        schema, side = self.table(node.this)
        sets = self.sets(schema, side, node.expressions, self.scope(side))
        return st.Update(self.sql, schema.name, sets, self.where(side, node.args.get("where")))

    def sets(
        self, schema: Schema, side: Side, nodes: list[exp.Expr], scope: Scope
    ) -> tuple[tuple[int, ex.Expr], ...]:
        sets: dict[int, ex.Expr] = {}
        for node in nodes:
            if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
                self.place.refuse(node, f"'{node.sql()}' is no assignment column = value")
            column = self.scope(side).resolve(node.this)
            value = read_expression(scope, node.expression, null=column.type)
            self.stores(node, schema.columns[column.index], value)
            if column.index in sets:
                self.place.refuse(node, f"column '{column.name}' is set twice")
            sets[column.index] = value
        return tuple(sorted(sets.items()))

    def merge(self, node: exp.Merge) -> st.Merge:
        only(self.place, node, "this", "using", "on", "whens")
        schema, target = self.table(node.this)
        source, query = self.merge_source(node.args["using"])
        if source.name.lower() == target.name.lower():
            self.place.refuse(
                node.args["using"], f"both sides are called '{source.name}'; give one an alias"
            )
        both = self.scope(target, source)
        on = self.condition(both, node.args["on"])
        matched: list[st.MatchedClause] = []
        inserts: list[st.NotMatchedClause] = []
        for when in node.args["whens"].expressions:
            only(self.place, when, "matched", "condition", "then")
            condition, then = when.args.get("condition"), when.args["then"]
            if when.args["matched"]:
                guard = None if condition is None else self.condition(both, condition)
                if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
                    matched.append(st.MatchedClause("delete", guard))
                elif isinstance(then, exp.Update):
                    only(self.place, then, "expressions")
                    sets = (
                        self.starred(node, schema, source)
                        if isinstance(then.expressions[0], exp.Star)
                        else self.sets(schema, target, then.expressions, both)
                    )
                    matched.append(st.MatchedClause("update", guard, sets))
                else:
                    self.place.refuse(then, f"'{then.sql()}' {OUTSIDE}")
            else:
                inserts.append(self.not_matched(schema, source, condition, then))
        return st.Merge(self.sql, schema.name, query, on, tuple(matched), tuple(inserts))

    def merge_source(self, node: exp.Expr) -> tuple[Side, st.Query]:
        if isinstance(node, exp.Table):
            schema, side = self.table(node)
            items = tuple(ex.ColumnRef(0, i, c.name, c.type) for i, c in enumerate(schema.columns))
            return side, (st.Select(schema.name, items, None, grouped=False),)
        if not isinstance(node, exp.Subquery) or not node.alias:
            self.place.refuse(
                node, "a MERGE source is a table, or a SELECT in parentheses with an alias"
            )
        query = self.query(node)
        first = node.this
        while isinstance(first, exp.Union):
            first = first.this
        if not isinstance(first, exp.Select):
            self.place.refuse(node, f"VALUES as a MERGE source {OUTSIDE}: use SELECT … UNION ALL")
        selected = items_of(query[0])
        names = (
            [c.name for c in self.schemas[query[0].table.lower()].columns]
            if isinstance(query[0], st.Select) and isinstance(first.expressions[0], exp.Star)
            else [e.alias_or_name for e in first.expressions]
        )
        if len(names) != len(selected) or not all(names):
            self.place.refuse(node, "every column of a MERGE source needs a name: add AS …")
        columns = tuple(Column(n, item.type) for n, item in zip(names, selected, strict=True))
        return Side(node.alias, columns), query

    def starred(
        self, node: exp.Expr, schema: Schema, source: Side
    ) -> tuple[tuple[int, ex.Expr], ...]:
        """``*`` in a clause: every target column from the source column of the same name."""
        by_name = {
            c.name.lower(): ex.ColumnRef(1, i, c.name, c.type) for i, c in enumerate(source.columns)
        }
        sets: list[tuple[int, ex.Expr]] = []
        for i, column in enumerate(schema.columns):
            value = by_name.get(column.name.lower())
            if value is None:
                self.place.refuse(node, f"'*' needs a column '{column.name}' in {source.name}")
            self.stores(node, column, value)
            sets.append((i, value))
        return tuple(sets)

    def not_matched(
        self, schema: Schema, source: Side, condition: exp.Expr | None, then: exp.Expr
    ) -> st.NotMatchedClause:
        scope = self.scope(None, source)
        guard = None if condition is None else self.condition(scope, condition)
        if not isinstance(then, exp.Insert):
            self.place.refuse(then, f"'{then.sql()}' {OUTSIDE}")
        only(self.place, then, "this", "expression")
        if isinstance(then.this, exp.Star):
            values = tuple(v for _, v in self.starred(then, schema, source))
            return st.NotMatchedClause(guard, values)
        names = then.this.expressions if then.this is not None else []
        order = self.columns(schema, names) if names else tuple(range(len(schema.columns)))
        nodes = then.expression.expressions
        if len(nodes) != len(order):
            self.place.refuse(then, f"{len(order)} columns and {len(nodes)} values")
        by_column: dict[int, ex.Expr] = {}
        for index, value_node in zip(order, nodes, strict=True):
            column = schema.columns[index]
            by_column[index] = read_expression(scope, value_node, null=column.type)
            self.stores(value_node, column, by_column[index])
        return st.NotMatchedClause(guard, tuple(by_column[i] for i in range(len(order))))

    def optimize(self) -> st.Optimize:
        try:
            tree = _delta_verbs().parse(self.sql)
        except LarkError:
            raise SqlError(
                f"{self.place.label}: '{self.sql}' does not parse; write OPTIMIZE table [WHERE partition condition]"
            ) from None
        name = str(tree.children[0].children[0]).strip("`")  # type: ignore[union-attr]
        schema, side = self.table(exp.to_table(name, dialect="databricks"))
        if len(tree.children) == 1:
            return st.Optimize(self.sql, schema.name, None)
        rest = str(tree.children[1].children[0])  # type: ignore[union-attr]
        parsed = self.parse(f"SELECT * FROM {name} WHERE {rest}", self.place)
        where = self.where(side, parsed.args.get("where"))
        named = {e.index for e in ex.walk(where) if isinstance(e, ex.ColumnRef)} if where else set()
        if not named <= set(schema.partition_indexes):
            self.place.refuse(None, "OPTIMIZE takes a condition on partition columns only")
        return st.Optimize(self.sql, schema.name, where)
