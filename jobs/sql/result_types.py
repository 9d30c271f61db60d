"""Columns of a query's result, with the types that Spark gives them.

The query is qualified, so that each column names its table; then types are computed from the inside
out. sqlglot's own types are taken only for expressions whose type does not depend on operands,
because Spark has its own rules for numbers (``model.sql.types``). Conditions are removed first: the
columns of a result do not depend on them, so a condition may name a table that is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.jobs.sql.uninterpreted_sources import qualified_query, statement_tree
from isolitmus.model.sql.schema import Column
from isolitmus.model.sql.types import (
    INTEGERS,
    RANGES,
    column_type,
    common_type,
    decimal_of,
    decimal_type,
    is_number,
    quotient_type,
)
from isolitmus.specs.sql.expressions import arithmetic_type, sum_type
from isolitmus.specs.sql.functions import decimal_operand
from isolitmus.specs.sql.source_text import DIALECT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.types import Type

CONDITIONS = ("where", "having", "qualify", "order", "limit")
FRACTION = re.compile(r"0*+(?P<whole>\d*+)\.(?P<part>\d*)")
SMALL = ("TINYINT", "SMALLINT")
"""Integer types of which the model knows nothing but their names."""
SURE = ("STRING", "DATE", "TIMESTAMP", "BOOLEAN")
"""Types of other expressions for which sqlglot is trusted."""
OF_OPERAND = (
    exp.Min, exp.Max, exp.First, exp.Last, exp.AnyValue, exp.Lag, exp.Lead, exp.FirstValue,
    exp.LastValue, exp.Window, exp.Paren, exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.Neg,
    exp.Abs, exp.Nullif, exp.Alias, exp.WithinGroup, exp.NthValue,
)  # fmt: skip
"""Expressions whose value has the type of their first operand."""
COUNTS = (exp.Count, exp.CountIf, exp.ApproxDistinct, exp.IntDiv)
RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
PARTS_OF_TIME = (
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear,
    exp.Hour, exp.Minute, exp.Second,
)  # fmt: skip
DEVIATIONS = (
    exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop, exp.Sqrt, exp.Exp,
    exp.Ln,
)  # fmt: skip
FIXED: tuple[tuple[tuple[type[exp.Expr], ...], Type], ...] = (
    (COUNTS, "BIGINT"),
    (RANKS, "INT"),
    (PARTS_OF_TIME, "INT"),
    ((exp.Predicate, exp.Connector, exp.Not, exp.LogicalOr, exp.LogicalAnd), "BOOLEAN"),
    ((exp.TimestampTrunc,), "TIMESTAMP"),
)
"""Types of expressions that do not depend on their operands."""


def infer_result_columns(text: str, schemas: Mapping[str, Schema]) -> tuple[Column, ...] | None:
    """Return the columns of a query's result; None if the name or type of one is not certain.

    Parameters
    ----------
    text : str
        Text of the query.
    schemas : mapping of str to Schema
        Schemas of tables. A table without one may stand in conditions, and beside others if no
        column of the result depends on it.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"s": Schema("s", (Column("id", "BIGINT"), Column("paid", "DECIMAL(12,2)")))}
    >>> query = "SELECT id, sum(paid) AS paid FROM s WHERE id > (SELECT max(id) FROM t) GROUP BY id"
    >>> [column.ddl() for column in infer_result_columns(query, tables)]
    ['id BIGINT', 'paid DECIMAL(22,2)']
    >>> infer_result_columns("SELECT mine(id) AS x FROM s", tables) is None
    True
    """
    listed = _result(text, schemas) or []
    found = {name.lower(): Column(name, type_) for name, type_ in listed if type_}
    return tuple(found.values()) if listed and len(found) == len(listed) else None


def uncertain_columns(text: str, schemas: Mapping[str, Schema]) -> tuple[str, ...]:
    """Return the columns of a query's result whose types are not certain, as far as they have
    names.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"s": Schema("s", (Column("id", "BIGINT"),))}
    >>> uncertain_columns("SELECT id, mine(id) AS x FROM s", tables)
    ('x',)
    """
    return tuple(name for name, type_ in _result(text, schemas) or () if type_ is None)


def _result(text: str, schemas: Mapping[str, Schema]) -> list[tuple[str, Type | None]] | None:
    """Return the columns of a query's result, with their types if these are certain; None if the
    names are not.
    """
    tree = statement_tree(text)
    if not isinstance(tree, exp.Query):
        return None
    for select in tree.find_all(exp.Select):
        for key in CONDITIONS:
            select.set(key, None)
        if not _is_value(select) and not all(map(_is_named, select.expressions)):
            return None
    full = qualified_query(tree, schemas)
    if full is None:
        return None
    known = {
        name.lower(): {column.name.lower(): column.type for column in schema.columns}
        for name, schema in schemas.items()
    }
    return _Scope(known).result(full)


def _is_value(query: exp.Select) -> bool:
    """Return whether a query is a value of a row, whose column needs no name."""
    above = query.parent
    return isinstance(above, exp.Subquery) and not isinstance(above.parent, exp.From | exp.Join)


def _is_named(item: exp.Expr) -> bool:
    """Return whether an item of a SELECT has a name that is written, or stands for columns."""
    return isinstance(item, exp.Alias | exp.Column | exp.Star)


@dataclass
class _Scope:
    """Sources of a query, with the types of their columns."""

    tables: Mapping[str, Mapping[str, Type | None]]
    """Tables and queries of WITH, by name in lower case."""
    sources: dict[str, Mapping[str, Type | None]] = field(default_factory=dict)
    """Sources in FROM and JOIN, also those of queries around it, by alias in lower case."""

    def result(self, query: exp.Expr) -> list[tuple[str, Type | None]]:
        """Return the columns of a query: names with types, None where it is not known."""
        if isinstance(query, exp.Subquery):
            return self.result(query.this)
        inner = _Scope({**self.tables}, dict(self.sources))
        named = query.args.get("with_")
        for one in named.expressions if named is not None else ():
            columns = dict(_renamed(inner.result(one.this), one))
            inner.tables = {**inner.tables, one.alias.lower(): columns}
        if isinstance(query, exp.SetOperation):
            left, right = inner.result(query.this), inner.result(query.expression)
            if len(left) != len(right):
                return []
            both = zip(left, right, strict=True)
            return [(name, _common([type_, other])) for (name, type_), (_, other) in both]
        if not isinstance(query, exp.Select):
            return []
        start = query.args.get("from_")
        for one in (*([start] if start is not None else []), *(query.args.get("joins") or ())):
            inner.add(one.this)
        return [(one.alias_or_name, inner.type_of(one)) for one in query.selects]

    def add(self, source: exp.Expr) -> None:
        """Add a source of FROM or JOIN; one that is neither a table nor a query has no columns."""
        columns: Mapping[str, Type | None] = {}
        if source.args.get("pivots"):
            pass
        elif isinstance(source, exp.Subquery):
            columns = dict(_renamed(self.result(source.this), source))
        elif isinstance(source, exp.Table):
            columns = self.tables.get(source.name.lower(), {})
        self.sources[source.alias_or_name.lower()] = columns

    def type_of(self, value: exp.Expr) -> Type | None:
        """Return Spark's type of an expression; None if it is not certain."""
        for kinds, type_ in FIXED:
            if isinstance(value, kinds):
                return type_
        if isinstance(value, OF_OPERAND):
            return self.type_of(value.this)
        if isinstance(value, DEVIATIONS):
            type_of = self.type_of(value.this)
            return "DOUBLE" if type_of is not None and is_number(type_of) else None
        match value:
            case exp.Column():
                return self.sources.get(value.table.lower(), {}).get(value.name.lower())
            case exp.Cast():
                return column_type(value.to.sql(DIALECT))
            case exp.Literal():
                return _literal_type(value)
            case exp.Subquery():
                listed = self.result(value.this)
                return listed[0][1] if len(listed) == 1 else None
            case exp.Sum() | exp.Avg():
                operand = value.this
                if isinstance(operand, exp.Distinct):
                    operand = operand.expressions[0] if len(operand.expressions) == 1 else None
                type_of = None if operand is None else self.type_of(operand)
                return None if type_of is None else _aggregate_type(value, type_of)
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                return self.common(value.this, *value.expressions)
            case exp.If():
                return self.common(value.args.get("true"), value.args.get("false"))
            case exp.Case():
                thens = [one.args.get("true") for one in value.args.get("ifs") or ()]
                return self.common(*thens, value.args.get("default"))
            case exp.Round() if (self.type_of(value.this) or "") in (*INTEGERS, "DOUBLE"):
                return self.type_of(value.this)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                return self.arithmetic(value)
            case exp.DateDiff():
                return "BIGINT" if value.args.get("unit") else "INT"
            case exp.Length() | exp.StrPosition():
                return "INT"
        found = None if value.type is None else column_type(value.type.sql(DIALECT))
        return found if found in SURE else None

    def common(self, *values: exp.Expr | None) -> Type | None:
        """Return the type to which Spark casts the values; NULL has any type."""
        given = [one for one in values if one is not None and not isinstance(one, exp.Null)]
        return _common([self.type_of(one) for one in given])

    def arithmetic(self, value: exp.Binary) -> Type | None:
        """Return the type of a sum, difference, product or quotient."""
        parts = (value.this.unnest(), value.expression.unnest())
        types = [self.type_of(part) for part in parts]
        left, right = types
        if left is None or right is None:
            return None
        if left == "DATE" and right in ("INT", *SMALL) and isinstance(value, exp.Add | exp.Sub):
            return "DATE"
        if not is_number(left) or not is_number(right):
            return None
        if "DOUBLE" in types:
            return "DOUBLE"
        if decimal_of(left) is None and decimal_of(right) is None:
            return "DOUBLE" if isinstance(value, exp.Div) else common_type((left, right))
        left, right = (
            decimal_operand(_exact(part, type_))
            for part, type_ in zip(parts, (left, right), strict=True)
        )
        if isinstance(value, exp.Div):
            return quotient_type(left, right)
        return arithmetic_type("*" if isinstance(value, exp.Mul) else "+", left, right)


def _renamed(
    columns: list[tuple[str, Type | None]], source: exp.Expr
) -> list[tuple[str, Type | None]]:
    """Return the columns of a named query in lower case, with the names that its alias gives."""
    alias = source.args.get("alias")
    given = [one.name for one in alias.args.get("columns") or ()] if alias is not None else []
    names = given if len(given) == len(columns) else [name for name, _ in columns]
    return [(name.lower(), type_) for name, (_, type_) in zip(names, columns, strict=True)]


def _common(types: list[Type | None]) -> Type | None:
    """Return the common type; None if one is not known, or if STRING takes part beside another."""
    known = [one for one in types if one is not None]
    if not known or len(known) < len(types) or ("STRING" in known and {*known} != {"STRING"}):
        return None
    found: Type | None = known[0]
    for other in known[1:]:
        found = None if found is None else common_type((found, other))
    return found


def _literal_type(value: exp.Literal) -> Type | None:
    """Return the type of a literal."""
    text = str(value.this)
    if value.is_string:
        return "STRING"
    if text.isdecimal():
        return next((one for one in INTEGERS if int(text) <= RANGES[one][1]), None)
    found = FRACTION.fullmatch(text)
    if found is None:
        return None
    digits = len(found["whole"]) + len(found["part"])
    return decimal_type(max(digits, 1), len(found["part"]))


def _exact(part: exp.Expr, type_: Type) -> Type:
    """Return the type of an operand beside decimals: an integer literal has just its digits."""
    digits = part.this if isinstance(part, exp.Neg) else part
    if isinstance(digits, exp.Literal) and type_ in INTEGERS:
        return decimal_type(len(str(int(digits.this))), 0) or type_
    return type_


def _aggregate_type(value: exp.Expr, type_: Type) -> Type | None:
    """Return the type of a sum or an average of values of a type."""
    if isinstance(value, exp.Sum):
        return {"FLOAT": "DOUBLE"}.get(type_, "BIGINT" if type_ in SMALL else sum_type(type_))
    if (found := decimal_of(type_)) is not None:
        precision, scale = found
        return decimal_type(min(precision + 4, 38), min(scale + 4, 38))
    return "DOUBLE" if type_ in (*INTEGERS, *SMALL, "DOUBLE", "FLOAT") else None
