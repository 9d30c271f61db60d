"""Translation of INSERT, MERGE, DELETE, UPDATE and TRUNCATE into the model's statements."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.display import count_of
from isolitmus.model.errors import SqlError, near
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import columns_in, normalize
from isolitmus.model.sql.query import items_of
from isolitmus.model.sql.schema import Column
from isolitmus.model.sql.types import is_opaque
from isolitmus.model.sql.values import is_castable
from isolitmus.specs.disk.input_files import CLAUSES
from isolitmus.specs.sql.expressions import read_expression
from isolitmus.specs.sql.functions import coerce
from isolitmus.specs.sql.queries import REFUSED, JoinReader
from isolitmus.specs.sql.run_constants import stored_constant
from isolitmus.specs.sql.source_text import NameScope, Side, refuse_other_arguments
from isolitmus.specs.sql.syntax import resolves
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE, features_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.schema import Schema
    from isolitmus.specs.sql.syntax import Syntax


class StoringReader(JoinReader):
    """Translator of values that are stored into a table's columns."""

    def columns(
        self, schema: Schema, names: list[exp.Expr], open_: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Return the positions of a column list, each of them among `open_`."""
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
            if index not in open_:
                self.place.refuse(name, f"column '{name.name}' has its value in PARTITION (…)")
        return tuple(order)

    def stored(self, node: exp.Expr, column: Column, value: ex.Expr) -> ex.Expr:
        """Return a value as a column stores it.

        Nothing is known about the cast of a type that is not modelled.
        """
        if isinstance(value, ex.Opaque):
            return stored_constant(self.place, value, column.type) or value
        if isinstance(value, ex.Const) and value.value is None:
            return value
        unknown = value.type == "" or is_opaque(column.type) or is_opaque(value.type)
        if unknown and value.type != column.type:
            if not self.place.opaque:
                self.place.refuse(
                    node, f"the cast of '{value}' to {column.type} is not modelled", "opaque"
                )
            return ex.Opaque(f"{value} as {column.type}", columns_in(value), column.type)
        if not is_castable(value.type, column.type):
            self.place.refuse(
                node,
                f"'{value}' is {value.type} and column {column.name} is {column.type}: no implicit"
                " cast",
                "type",
            )
        if not self.place.opaque or value.type == column.type:
            return value
        # Formulas have no store assignment: a string for a DATE column becomes a date here.
        try:
            return coerce(self.place, node.copy(), value, column.type)
        except SqlError as error:
            if error.kind != "opaque":
                raise
            return ex.Opaque(f"{value} as {column.type}", columns_in(value), column.type)

    def sets(
        self, schema: Schema, side: Side, nodes: list[exp.Expr], scope: NameScope
    ) -> tuple[tuple[int, ex.Expr], ...]:
        """Return the assignments by column index, sorted; refuse identity and repeated columns."""
        sets: dict[int, ex.Expr] = {}
        for node in nodes:
            if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
                self.place.refuse(
                    node, f"'{self.place.written(node)}' is not an assignment column = value"
                )
            whole = self.scope(side).holder(node.this) if self.place.opaque else None
            column = whole or self.scope(side).resolve(node.this)
            value = self.value_of(scope, node.expression, schema.columns[column.index], whole)
            if schema.columns[column.index].identity is not None:
                self.place.refuse(
                    node, f"'{column.name}' is an identity column, which Delta does not update"
                )
            if column.index in sets and whole is None:
                self.place.refuse(node, f"column '{column.name}' is set twice")
            sets[column.index] = value
        return tuple(sorted(sets.items()))

    def value_of(
        self, scope: NameScope, node: exp.Expr, column: Column, whole: ex.ColumnRef | None = None
    ) -> ex.Expr:
        """Return the value that a column is given, which may be DEFAULT.

        If only a field of ``whole`` is given the value, nothing is known of the result.
        """
        if not self.place.plain and is_default(node):
            return omitted(column)
        value = read_expression(scope, node, null="INT" if whole else column.type)
        if whole is not None:
            return ex.Opaque(self.place.written(node), (*columns_in(value), whole), column.type)
        return self.stored(node, column, value)


class InsertReader(StoringReader):
    """Translator of INSERT."""

    @resolves(exp.Insert)
    def insert(self, node: exp.Insert) -> st.Insert:
        """Return the INSERT; omitted columns are generated or NULL."""
        self.name(node)
        known = ("this", "expression", "overwrite", "where", "with_", "by_name")
        refuse_other_arguments(self.place, node, *known)
        target, source = node.this, node.expression
        names: list[exp.Expr] = []
        if isinstance(target, exp.Schema):
            target, names = target.this, target.expressions
        schema, side = self.table(target, "partition")
        fixed = self.fixed(schema, target.args.get("partition"))
        open_ = tuple(i for i in schema.shown if i not in fixed)
        overwrite = bool(node.args.get("overwrite"))
        if node.args.get("by_name"):
            names = self.named_columns(source)
        order = self.columns(schema, names, open_) if names else open_
        left = tuple(i for i in open_ if i not in order)
        generated = tuple(i for i in left if schema.columns[i].identity is not None)
        self.identities(node, schema, order)
        types = tuple(schema.columns[i].type for i in order)
        query = self.query(source, types)
        keyed = any(not isinstance(branch, qu.Values) and branch.keys for branch in query)
        if keyed:
            self.apart(features_of(schema=schema) | {"GROUP BY in an INSERT"}, node)
        if source.find(exp.Order):
            self.apart(features_of(schema=schema) | {"ORDER BY in an INSERT"}, node)
        if generated and not _ordered(query):
            self.apart({"rows that come in no certain order", "identity columns"}, node)
        given = fixed | {i: omitted(schema.columns[i]) for i in left}
        placed = tuple(self.placed(node, schema, order, given, branch) for branch in query)
        where = reduce(ex.And, self.equalities(schema, fixed)) if fixed else None
        if node.args.get("where"):
            if names or fixed:
                self.apart({"REPLACE WHERE", "a list of columns"}, node)
            where, overwrite = self.replaced(schema, side, node.args["where"]), True
        where = where if overwrite else None
        return st.Insert(self.sql, schema.name, placed, overwrite, where, generates=generated)

    def named_columns(self, source: exp.Expr) -> list[exp.Expr]:
        """Return the names of the columns of a query, for BY NAME."""
        names = self.names(source, self.query(source))
        if not all(names):
            self.place.refuse(source, "BY NAME needs a name for each column: add AS …")
        return [exp.to_identifier(name) for name in names]

    def identities(self, node: exp.Expr, schema: Schema, order: tuple[int, ...]) -> None:
        """Refuse values for columns that are GENERATED ALWAYS."""
        for index in order:
            column = schema.columns[index]
            if column.identity is not None and column.identity.always:
                self.place.refuse(
                    node,
                    f"column {column.name} is GENERATED ALWAYS AS IDENTITY: list the other columns,"
                    " as Delta wants it",
                )

    def replaced(self, schema: Schema, side: Side, node: exp.Expr) -> ex.Expr:
        """Return the condition of REPLACE WHERE, which Delta gets as written.

        A part on partition columns has one meaning in all forms: Delta evaluates it for partitions.
        Of a part on other columns, the form decides which files are skipped.
        """
        where = self.condition(self.scope(side), node)
        if any(
            normalize(part) != part and not _of_partitions(schema, part)
            for part in ex.conjuncts(where)
        ):
            self.place.refuse(
                node,
                "Spark does not simplify the condition of REPLACE WHERE on columns that are no"
                f" partition columns: write {normalize(where)}",
            )
        return where

    def fixed(self, schema: Schema, node: exp.Expr | None) -> dict[int, ex.Expr]:
        """Return the values of partition columns in ``PARTITION (part = 1)``.

        A column that is only named gets its values from the query, as without PARTITION (Spark's
        ResolveInsertInto).
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
            fixed[index] = coerce(self.place, part.expression, value, schema.columns[index].type)
            if not isinstance(fixed[index], ex.Const | ex.Parameter):
                self.place.refuse(
                    part,
                    f"'{self.place.written(part.expression)}' is not of type"
                    f" {schema.columns[index].type}",
                )
        return fixed

    def equalities(self, schema: Schema, fixed: dict[int, ex.Expr]) -> list[ex.Expr]:
        """Return the equality with the fixed value for each partition column."""
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
        """Return the branch with its items in the order of the table's columns, types checked."""

        def sort(items: tuple[ex.Expr, ...]) -> tuple[ex.Expr, ...]:
            if len(items) != len(order):
                self.place.refuse(
                    node,
                    f"table {schema.name} has {count_of(len(order), 'column')}, the query gives"
                    f" {len(items)}",
                    "arity",
                )
            given = {
                index: self.stored(node, schema.columns[index], item)
                for index, item in zip(order, items, strict=True)
            }
            return complete_row(schema, {**fixed, **given})

        if isinstance(branch, qu.Values):
            return replace(branch, rows=tuple(map(sort, branch.rows)))
        return replace(branch, items=sort(branch.items))


def _ordered(query: qu.Query) -> bool:
    """Return whether the order of the rows of a query is determined."""
    branch = query[0]
    one = isinstance(branch, qu.Values) or (branch.grouped and not branch.keys)
    return one and len(query) == 1


def complete_row(schema: Schema, values: Mapping[int, ex.Expr]) -> tuple[ex.Expr, ...]:
    """Return a row of a table from the values of its columns; missing ones are omitted."""
    return tuple(values.get(i, omitted(column)) for i, column in enumerate(schema.columns))


def is_default(node: exp.Expr) -> bool:
    """Return whether a value is DEFAULT, which sqlglot parses as a column.

    Examples
    --------
    >>> is_default(exp.column("DEFAULT")), is_default(exp.column("DEFAULT", quoted=True))
    (True, False)
    """
    return isinstance(node, exp.Column) and node.sql().upper() == "DEFAULT"


def omitted(column: Column) -> ex.Expr:
    """Return the value of a column that an INSERT omits: NULL, or DEFAULT."""
    if column.default:
        return ex.Opaque("DEFAULT", (), column.type)
    return ex.Const(None, column.type)


def is_star_clause(syntax: Syntax) -> bool:
    """Return whether a clause of a MERGE takes the columns of its source (``*``).

    Examples
    --------
    >>> from isolitmus.specs.sql.syntax import Syntax
    >>> is_star_clause(Syntax("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"))
    True
    """
    thens = [when.args["then"] for when in syntax.tree().args["whens"].expressions]
    return any(isinstance(part, exp.Star) for t in thens for part in (t.this, *t.expressions))


class MergeReader(StoringReader):
    """Translator of MERGE."""

    @resolves(exp.Merge)
    def merge(self, node: exp.Merge) -> st.Merge:
        """Return the MERGE with its source, condition and clauses."""
        self.name(node)
        refuse_other_arguments(self.place, node, "this", "using", "on", "whens", "with_")
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
            refuse_other_arguments(self.place, when, "matched", "source", "condition", "then")
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
        """Return a clause on a target row and its matching source row; without `source`, on the
        target row.
        """
        scope = NameScope(self.place, (target, source), REFUSED)
        condition, then = when.args.get("condition"), when.args["then"]
        guard = None if condition is None else self.condition(scope, condition)
        if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
            return st.MatchedClause("delete", guard)
        if not isinstance(then, exp.Update):
            self.place.refuse(then, f"'{self.place.written(then)}' {OUTSIDE}")
        refuse_other_arguments(self.place, then, "expressions")
        if isinstance(then.expressions[0], exp.Star):
            if source is None:
                self.place.refuse(then, "'*' needs a source row; name columns and values")
            return st.MatchedClause("update", guard, self.starred(then, schema, source))
        values = replace(scope, subquery=self.subquery)
        return st.MatchedClause(
            "update", guard, self.sets(schema, target, then.expressions, values)
        )

    def merge_source(self, node: exp.Expr) -> tuple[Side, qu.Query]:
        """Return the side and query of a MERGE source; refuse unnamed columns."""
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
                "Spark takes no names of columns here; write (SELECT * FROM VALUES … AS v(a, b)) AS"
                " name",
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
        """Return ``*`` in a clause: each target column with the source column of the same name.

        With SCHEMA EVOLUTION the target may have other columns, which keep their values.
        """
        by_name = {
            c.name.lower(): ex.ColumnRef(1, i, c.name, c.type) for i, c in enumerate(source.columns)
        }
        new = [c.name for c in source.columns if schema.index(c.name) is None]
        if self.syntax.evolves and new:
            self.place.refuse(
                node, f"a MERGE that adds a column to {schema.name}, here '{new[0]}', {OUTSIDE}"
            )
        sets: list[tuple[int, ex.Expr]] = []
        for i, column in ((i, schema.columns[i]) for i in schema.shown):
            value = by_name.get(column.name.lower())
            if value is None and self.syntax.evolves:
                continue
            if value is None:
                problem = f"'*' needs a column '{column.name}' in {source.name}"
                self.place.refuse(node, problem, "arity")
            sets.append((i, self.stored(node, column, value)))
        return tuple(sets)

    def not_matched(
        self, schema: Schema, source: Side, condition: exp.Expr | None, then: exp.Expr
    ) -> st.NotMatchedClause:
        """Return a WHEN NOT MATCHED clause, with a value for each column of the target."""
        scope = NameScope(self.place, (None, source), REFUSED)
        guard = None if condition is None else self.condition(scope, condition)
        if not isinstance(then, exp.Insert):
            self.place.refuse(then, f"'{self.place.written(then)}' {OUTSIDE}")
        refuse_other_arguments(self.place, then, "this", "expression")
        if isinstance(then.this, exp.Star):
            return st.NotMatchedClause(
                guard, complete_row(schema, dict(self.starred(then, schema, source)))
            )
        if then.this is None:
            self.place.refuse(
                then, "Spark wants the columns here: INSERT (column, …) VALUES (…), or INSERT *"
            )
        order = self.columns(schema, then.this.expressions, schema.shown)
        nodes = then.expression.expressions
        if len(nodes) != len(order):
            problem = f"{count_of(len(order), 'column')} and {count_of(len(nodes), 'value')}"
            self.place.refuse(then, problem, "arity")
        by_column: dict[int, ex.Expr] = {}
        for index, value_node in zip(order, nodes, strict=True):
            column = schema.columns[index]
            values = replace(scope, subquery=self.subquery)
            by_column[index] = self.value_of(values, value_node, column)
        return st.NotMatchedClause(guard, complete_row(schema, by_column))


class RowsReader(StoringReader):
    """Translator of DELETE, UPDATE and TRUNCATE."""

    @resolves(exp.Delete)
    def delete(self, node: exp.Delete) -> st.Delete:
        """Return the DELETE."""
        if node.args.get("tables"):  # sqlglot's tree of DELETE with another word than FROM
            self.place.refuse(node.args["tables"][0], "write DELETE FROM table")
        refuse_other_arguments(self.place, node, "this", "where")
        schema, side = self.table(node.this)
        return st.Delete(self.sql, schema.name, self.command_where(side, node.args.get("where")))

    @resolves(exp.Update)
    def update(self, node: exp.Update) -> st.Update:
        """Return the UPDATE."""
        refuse_other_arguments(self.place, node, "this", "expressions", "where")
        schema, side = self.table(node.this)
        scope = NameScope(self.place, (side,), self.subquery)
        sets = self.sets(schema, side, node.expressions, scope)
        where = self.command_where(side, node.args.get("where"))
        return st.Update(self.sql, schema.name, sets, where)

    def command_where(self, side: Side, node: exp.Expr | None) -> ex.Expr | None:
        queries = self.subquery if self.syntax.queried else REFUSED
        return self.where(NameScope(self.place, (side,), queries), node)

    @resolves(exp.TruncateTable)
    def truncate(self, node: exp.TruncateTable) -> st.Truncate:
        if node.args.get("partition") is not None:
            self.place.refuse(
                node.args["partition"],
                "Delta on Spark rejects TRUNCATE TABLE … PARTITION; write DELETE with a condition",
            )
        refuse_other_arguments(self.place, node, "expressions")
        schema, _ = self.table(node.expressions[0])
        return st.Truncate(self.sql, schema.name)


def _of_partitions(schema: Schema, part: ex.Expr) -> bool:
    """Return whether a condition has only partition columns, and no subquery."""
    return not ex.subqueries(part) and all(
        column.index in schema.partition_indexes for column in columns_in(part)
    )
