"""Read MERGE in its clause shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.number import many
from isolitmus.model.schema import Column
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.query import items_of
from isolitmus.specs.disk.limits import CLAUSES
from isolitmus.specs.sql.expressions import read_expression
from isolitmus.specs.sql.queries import REFUSED
from isolitmus.specs.sql.resolving import resolves
from isolitmus.specs.sql.row_statements import StoringReader, whole
from isolitmus.specs.sql.source_text import NameScope, Side, only
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from isolitmus.model.schema import Schema
    from isolitmus.specs.sql.syntax import Syntax

__all__ = ["MergeReader", "starred"]


def starred(syntax: Syntax) -> bool:
    """Whether a clause of a MERGE takes the columns from its source.

    >>> from isolitmus.specs.sql.syntax import Syntax
    >>> starred(Syntax("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"))
    True
    """
    thens = [when.args["then"] for when in syntax.tree().args["whens"].expressions]
    return any(isinstance(part, exp.Star) for t in thens for part in (t.this, *t.expressions))


class MergeReader(StoringReader):
    """Reads MERGE."""

    @resolves(exp.Merge)
    def merge(self, node: exp.Merge) -> st.Merge:
        self.name(node)
        only(self.place, node, "this", "using", "on", "whens", "with_")
        schema, target = self.table(node.this)
        source, query = self.merge_source(node.args["using"])
        if source.name.lower() == target.name.lower():
            self.place.refuse(
                node.args["using"], f"both sides are called '{source.name}'; give one an alias"
            )
        both = NameScope(self.place, (target, source), REFUSED)
        on = self.condition(both, node.args["on"])
        matched: list[st.MatchedClause] = []
        inserts: list[st.NotMatchedClause] = []
        by_source: list[st.MatchedClause] = []
        whens = node.args["whens"].expressions
        if len(whens) > CLAUSES:
            self.place.refuse(None, f"a MERGE with more than {CLAUSES} clauses {OUTSIDE}")
        for when in whens:
            only(self.place, when, "matched", "source", "condition", "then")
            if when.args["matched"]:
                matched.append(self.matched(schema, target, source, when))
            elif when.args.get("source"):
                by_source.append(self.matched(schema, target, None, when))
            else:
                condition, then = when.args.get("condition"), when.args["then"]
                inserts.append(self.not_matched(schema, source, condition, then))
        if by_source and [(c.action, c.condition) for c in matched] == [("delete", None)]:
            self.apart({"a lone WHEN MATCHED THEN DELETE", "WHEN NOT MATCHED BY SOURCE"}, node)
        return st.Merge(
            self.sql, schema.name, query, on, tuple(matched), tuple(inserts), tuple(by_source)
        )

    def matched(
        self, schema: Schema, target: Side, source: Side | None, when: exp.Expr
    ) -> st.MatchedClause:
        """A clause on a target row and the source row that it matches; or none, without a source."""
        scope = NameScope(self.place, (target, source), REFUSED)
        condition, then = when.args.get("condition"), when.args["then"]
        guard = None if condition is None else self.condition(scope, condition)
        if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
            return st.MatchedClause("delete", guard)
        if not isinstance(then, exp.Update):
            self.place.refuse(then, f"'{self.place.written(then)}' {OUTSIDE}")
        only(self.place, then, "expressions")
        if isinstance(then.expressions[0], exp.Star):
            if source is None:
                self.place.refuse(then, "'*' needs a source row; name columns and values")
            return st.MatchedClause("update", guard, self.starred(then, schema, source))
        values = replace(scope, subquery=self.subquery)
        return st.MatchedClause(
            "update", guard, self.sets(schema, target, then.expressions, values)
        )

    def merge_source(self, node: exp.Expr) -> tuple[Side, qu.Query]:
        if isinstance(node, exp.Table) and self.derived(node):
            query, side = self.side(node, several=True)
            return side, query
        if isinstance(node, exp.Table):
            schema, side = self.table(node)
            items = tuple(ex.ColumnRef(0, i, c.name, c.type) for i, c in enumerate(schema.columns))
            return side, (qu.Select(schema.name, items, None, grouped=False),)
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
            self.place.refuse(
                node,
                "Spark takes no names of columns here; write (SELECT * FROM VALUES … AS v(a, b)) AS name",
            )
        if isinstance(node, exp.Values) and node.alias:
            query, side = self.listed(node)
            return side, query
        if not isinstance(node, exp.Subquery) or not node.alias:
            self.place.refuse(
                node, "a MERGE source is a table, or a SELECT in parentheses with an alias"
            )
        query = self.query(node)
        selected = items_of(query[0])
        names = self.names(node.this, query)
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
        for i, column in ((i, schema.columns[i]) for i in schema.shown):
            value = by_name.get(column.name.lower())
            if value is None:
                problem = f"'*' needs a column '{column.name}' in {source.name}"
                self.place.refuse(node, problem, "arity")
            sets.append((i, self.stored(node, column, value)))
        return tuple(sets)

    def not_matched(
        self, schema: Schema, source: Side, condition: exp.Expr | None, then: exp.Expr
    ) -> st.NotMatchedClause:
        scope = NameScope(self.place, (None, source), REFUSED)
        guard = None if condition is None else self.condition(scope, condition)
        if not isinstance(then, exp.Insert):
            self.place.refuse(then, f"'{self.place.written(then)}' {OUTSIDE}")
        only(self.place, then, "this", "expression")
        if isinstance(then.this, exp.Star):
            return st.NotMatchedClause(
                guard, whole(schema, dict(self.starred(then, schema, source)))
            )
        if then.this is None:
            self.place.refuse(
                then, "Spark wants the columns here: INSERT (column, …) VALUES (…), or INSERT *"
            )
        order = self.columns(schema, then.this.expressions, schema.shown)
        nodes = then.expression.expressions
        if len(nodes) != len(order):
            problem = f"{many(len(order), 'column')} and {many(len(nodes), 'value')}"
            self.place.refuse(then, problem, "arity")
        by_column: dict[int, ex.Expr] = {}
        for index, value_node in zip(order, nodes, strict=True):
            column = schema.columns[index]
            value = read_expression(
                replace(scope, subquery=self.subquery), value_node, null=column.type
            )
            by_column[index] = self.stored(value_node, column, value)
        return st.NotMatchedClause(guard, whole(schema, by_column))
