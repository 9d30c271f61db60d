"""Expressions without columns that have one value in each run of a job.

``add_months(current_date(), -24)`` has no formula in the model. Its value does not depend on rows,
so it may be treated as a parameter of the run that may be any value of its type, or NULL. Spark
folds such an expression to a literal before Delta sees the statement. An expression counts if all
its functions are on the lists here: they are deterministic, and their type is certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.model.sql.expression import Opaque, Parameter
from isolitmus.model.sql.query import unknown_parts
from isolitmus.model.sql.types import is_opaque, type_named
from isolitmus.specs.sql.parameters import count_in_text, one_line
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.source_text import DIALECT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.source_text import SqlText

DATES = (
    exp.AddMonths, exp.CurrentDate, exp.DateFromUnixDate, exp.DateTrunc, exp.LastDay, exp.NextDay,
    exp.TsOrDsAdd, exp.TsOrDsToDate,
)  # fmt: skip
TIMESTAMPS = (exp.CurrentTimestamp, exp.TimestampAdd, exp.TimestampTrunc)
TEXTS = (
    exp.ConcatWs, exp.CurrentCatalog, exp.CurrentTimezone, exp.CurrentUser, exp.Format,
    exp.Initcap, exp.Lower, exp.MD5, exp.RegexpReplace, exp.Replace, exp.SHA, exp.SHA2,
    exp.SessionUser, exp.Substring, exp.SubstringIndex, exp.TimeToStr, exp.UnixToStr, exp.Upper,
)  # fmt: skip
NUMBERS = (
    exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Hour, exp.Length, exp.Minute,
    exp.Month, exp.Quarter, exp.Second, exp.UnixDate, exp.WeekOfYear, exp.Year,
)  # fmt: skip
GIVEN: Mapping[type[exp.Expr], Type] = {
    **dict.fromkeys(DATES, "DATE"),
    **dict.fromkeys(TIMESTAMPS, "TIMESTAMP"),
    **dict.fromkeys(TEXTS, "STRING"),
    **dict.fromkeys(NUMBERS, "INT"),
    exp.MonthsBetween: "DOUBLE",
    exp.StrToUnix: "BIGINT",
}
"""Functions with a certain type, by their class in sqlglot."""
NAMED: Mapping[str, Type] = {"MAKE_DATE": "DATE", "TIMESTAMP_SECONDS": "TIMESTAMP"}
"""Functions that sqlglot has no class for."""
OTHER = (
    exp.Abs, exp.Add, exp.Boolean, exp.Case, exp.Cast, exp.Ceil, exp.Coalesce, exp.Concat,
    exp.DPipe, exp.DataType, exp.DataTypeParam, exp.DateDiff, exp.Div, exp.Extract, exp.Floor,
    exp.Greatest, exp.If, exp.Interval, exp.IntervalSpan, exp.Least, exp.Literal, exp.Mod, exp.Mul,
    exp.Neg, exp.Null, exp.Nullif, exp.Pad, exp.Paren, exp.Placeholder, exp.Predicate, exp.Round,
    exp.Sub, exp.TimeStrToTime, exp.Trim, exp.TryCast, exp.Var,
)  # fmt: skip
"""Other parts of expressions that are deterministic."""
WHOLE_DAYS = ("YEAR", "MONTH", "DAY")
"""Units of intervals that keep a date a date."""


def is_run_constant(node: exp.Expr) -> bool:
    """Return whether an expression certainly has one value in each run, for all rows.

    Examples
    --------
    >>> import sqlglot
    >>> texts = "last_day(:d)", "last_day(day)", "floor(rand() * 9)", "mine(1)", "(SELECT 1)"
    >>> [is_run_constant(sqlglot.parse_one(text, dialect="databricks")) for text in texts]
    [True, False, False, False, False]
    """
    return all(
        part.name.upper() in NAMED
        if isinstance(part, exp.Anonymous)
        else type(part) in GIVEN or isinstance(part, OTHER)
        for part in node.walk()
    ) and not node.find(exp.Query, exp.Exists)


def constant_type(node: exp.Expr, known: Mapping[str, Type]) -> Type | None:
    """Return the type of such an expression, as far as its text determines it.

    Parameters
    ----------
    node : sqlglot expression
        The expression.
    known : mapping of str to Type
        Types of parameters in it.

    Examples
    --------
    >>> import sqlglot
    >>> texts = "current_date() - INTERVAL 2 MONTHS", "date_trunc('MONTH', :d)", "round(:d)"
    >>> trees = [sqlglot.parse_one(text, dialect="databricks") for text in texts]
    >>> [constant_type(tree, {}) for tree in trees]
    ['DATE', 'TIMESTAMP', None]
    """
    match node:
        case exp.Paren():
            return constant_type(node.this, known)
        case exp.Placeholder():
            return known.get(node.name)
        case exp.Anonymous():
            return NAMED.get(node.name.upper())
        case exp.Cast():
            return type_named(node.to.sql("databricks"))
        case exp.Add() | exp.Sub():
            return _moved_type(node, known)
    return GIVEN.get(type(node))


def _moved_type(node: exp.Add | exp.Sub, known: Mapping[str, Type]) -> Type | None:
    """Return the type of a date or timestamp and an interval; None if it is not certain."""
    base, count = node.this, node.expression
    if isinstance(node, exp.Add) and isinstance(base, exp.Interval):
        base, count = count, base
    if not isinstance(count, exp.Interval):
        return None
    found = constant_type(base, known)
    if found == "DATE" and count.text("unit").upper().removesuffix("S") not in WHOLE_DAYS:
        return None
    return found if found in ("DATE", "TIMESTAMP") else None


def run_constant(place: SqlText, node: exp.Expr) -> Parameter | None:
    """Return an expression that is not modelled as a parameter of the run, or None if it is none.

    Its name is its text, and a value takes the place of that text.

    Examples
    --------
    >>> from isolitmus.specs.sql.source_text import SqlText
    >>> import sqlglot
    >>> text = "SELECT trunc(:d, 'MM')"
    >>> node = sqlglot.parse_one(text, dialect="databricks").selects[0]
    >>> run_constant(SqlText(text, "SQL", constants=True), node)
    Parameter(name="trunc(:d, 'MM')", type='DATE')
    """
    if not place.constants or not is_run_constant(node):
        return None
    type_ = constant_type(node, place.types)
    return None if type_ is None else _named(place, node, place.written(node), type_)


def stored_constant(place: SqlText, value: Opaque, type_: Type) -> Parameter | None:
    """Return such an expression that is stored into a column of a type, or None if it is none.

    Its value is that in the column, hence of this type.

    Examples
    --------
    >>> from isolitmus.specs.sql.source_text import SqlText
    >>> place = SqlText("INSERT INTO t VALUES (floor(:x))", "SQL", constants=True)
    >>> stored_constant(place, Opaque("floor(:x)", (), ""), "INT")
    Parameter(name='floor(:x)', type='INT')
    """
    if not place.constants or value.operands:
        return None
    try:
        node = parse_one(value.text, DIALECT)
    except SqlglotError:
        return None
    return _named(place, node, value.text, type_) if is_run_constant(node) else None


def _named(place: SqlText, node: exp.Expr, text: str, type_: Type) -> Parameter | None:
    """Return the parameter with a text as its name; None if values cannot take its place."""
    if type_ == "BOOLEAN" or is_opaque(type_):
        return None
    text = one_line(text)
    if text.isidentifier():
        text += "()"  # sqlglot also parses current_user without its parentheses
    count = count_in_text(one_line(place.text), text)
    if not isinstance(node, exp.Func) or not text.endswith(")"):
        # the same words may be parts of a larger expression, as b - c in a - b - c
        count = count if count <= sum(one == node for one in node.root().walk()) else 0
    return Parameter(text, type_) if count else None


def unnamed_parameters(statement: object) -> dict[str, Type]:
    """Return the parameters of a statement without a name of their own, with their types.

    They are the functions of the clock, and expressions that have one value in each run.
    """
    parts = (part for part in unknown_parts(statement) if isinstance(part, Parameter))
    return {part.name: part.type for part in parts if not part.name.isidentifier()}
