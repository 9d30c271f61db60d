"""Three-valued evaluation of expressions on rows, with scalar functions in Spark's ANSI mode.

NULL is None; a predicate that is None is not true. Overflow of INT and BIGINT is an error, and so
is a remainder by zero. A function is strict if a NULL among its operands makes its value NULL;
``fails`` says that some operands make it fail.
"""

from __future__ import annotations

import hashlib
import re
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.sql.expression import (
    CONDITIONAL,
    Aggregate,
    And,
    Arithmetic,
    Call,
    ColumnRef,
    Compare,
    Const,
    In,
    IsNull,
    Negate,
    Not,
    Opaque,
    Or,
    Parameter,
    Subquery,
)
from isolitmus.model.sql.nondeterminism import choose
from isolitmus.model.sql.types import (
    ARITHMETIC_ERROR,
    RANGES,
    EvaluationError,
    common_type,
    fit_integer,
)
from isolitmus.model.sql.values import cast_value, rescale

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.model.sql.expression import AggregateName, CompareOp, Expr
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value

QUOTIENT = Context(prec=160)
"""Precision that suffices to round a quotient of decimals as if it were exact."""
LAST_DIGIT = Decimal(1).scaleb(-38)
PREFIX = re.compile(r"([^_%]+)%(?:[^_%]*)")


class Function(NamedTuple):
    """Scalar function: computes a value of a type from the values of its operands."""

    compute: Callable[[Sequence[Value], Type], Value]
    strict: bool = True
    fails: bool = False


def calculate(op: str, a: Value, b: Value, type_: Type) -> Value:
    """Return the sum, difference or product of two numbers of the same kind.

    Examples
    --------
    >>> calculate("+", Decimal("1.50"), Decimal("2"), "DECIMAL(12,2)")
    Decimal('3.50')
    """
    if isinstance(a, float) and isinstance(b, float):
        return _finite(a + b if op == "+" else a - b if op == "-" else a * b)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return rescale(a + b if op == "+" else a - b if op == "-" else a * b, type_)
    assert isinstance(a, int), "the SQL reader lets only numbers of one kind into arithmetic"
    assert isinstance(b, int)
    return fit_integer(a + b if op == "+" else a - b if op == "-" else a * b, type_)


def sum_values(values: Sequence[Value], type_: Type) -> Value:
    """Return the sum of numbers, as a value of a type, independent of the order of the rows.

    If neither the positive nor the negative values alone overflow, no partial sum overflows in any
    order; if the total fits, some order is without overflow. No order rounds if all values are
    multiples of one power of two and the total of their magnitudes fits into the digits of DOUBLE.

    Raises
    ------
    UndeterminedError
        If the result depends on the order.
    """
    numbers = [value for value in values if isinstance(value, int | float | Decimal)]
    assert len(numbers) == len(values), "the SQL reader lets only numbers be summed"
    found = sum(numbers)
    if isinstance(found, Decimal):
        return rescale(found, type_)
    if isinstance(found, float):
        exact = list(map(Fraction, numbers))
        unit = max(part.denominator for part in exact)
        if sum(map(abs, exact)) * unit >= 2**53:
            raise UndeterminedError(
                f"a sum of {len(values)} numbers is rounded, and where is up to the order of the"
                " rows"
            )
        return _finite(found)
    fit_integer(found, type_)
    low, high = RANGES[type_]
    if sum(v for v in numbers if v > 0) > high or sum(v for v in numbers if v < 0) < low:
        raise UndeterminedError(
            f"a sum of {len(values)} values is {found}, which fits into BIGINT, but in some order"
            " of the rows a part of it does not: whether an engine fails on that is up to its plan"
        )
    return found


@lru_cache(maxsize=1_000)
def like_pattern(pattern: str) -> re.Pattern[str]:
    """Return a LIKE pattern without escapes as a regular expression.

    Examples
    --------
    >>> bool(like_pattern("a%_").fullmatch("abc")), bool(like_pattern("a%_").fullmatch("a"))
    (True, False)
    """
    return re.compile(wildcard_expression(pattern, "%", "_"), re.DOTALL)


def like_prefix(pattern: str) -> str | None:
    """Return the prefix that Spark tests for a LIKE pattern (LikeSimplification), or None.

    Examples
    --------
    >>> like_prefix("a%"), like_prefix("a%b"), like_prefix("%a"), like_prefix("a_%")
    ('a', 'a', None, None)
    """
    found = PREFIX.fullmatch(pattern)
    return None if found is None else found[1]


def _finite(value: float) -> float:
    if value - value != 0:
        raise UndeterminedError("a number beyond those that DOUBLE holds: infinity is not modelled")
    return value + 0.0


def _cast(values: Sequence[Value], type_: Type) -> Value:
    return cast_value(values[0], type_)


def _divide(values: Sequence[Value], type_: Type) -> Value:
    """Divide, rounding decimals twice as Spark does; raise EvaluationError for divisor zero."""
    a, b = values
    if b == 0:
        raise EvaluationError(ARITHMETIC_ERROR, f"{a} is divided by zero", "DIVIDE_BY_ZERO")
    if isinstance(a, Decimal) and isinstance(b, Decimal):  # Decimal.scala rounds twice
        exact = QUOTIENT.divide(a, b)
        return rescale(exact.quantize(LAST_DIGIT, ROUND_HALF_UP, context=QUOTIENT), type_)
    assert isinstance(a, float)
    assert isinstance(b, float)
    return _finite(a / b)


def _digest(values: Sequence[Value], _: Type) -> Value:
    """Return the hexadecimal digest of a text (SHA-2 with 0 bits is SHA-256)."""
    text, name = values
    return hashlib.new(str(name), str(text).encode()).hexdigest()


def _matches(values: Sequence[Value], _: Type) -> Value:
    """Search an ASCII text for a regular expression; raise UndeterminedError for other texts."""
    text, pattern = map(str, values)
    if not (text.isascii() and text.isprintable()):
        raise UndeterminedError(
            f"what of '{text}' a pattern matches is up to what counts as a line"
        )
    return re.search(pattern, text) is not None


def _replace(values: Sequence[Value], _: Type) -> Value:
    text, search, other = map(str, values)
    return text.replace(search, other) if search else text


def _like(values: Sequence[Value], _: Type) -> Value:
    """Return whether a LIKE pattern matches a whole text."""
    text, pattern = values
    assert isinstance(text, str)
    assert isinstance(pattern, str)
    return like_pattern(pattern).fullmatch(text) is not None


def _abs(values: Sequence[Value], type_: Type) -> Value:
    """Return the absolute value; raise EvaluationError if an integer type cannot hold it."""
    value = values[0]
    if isinstance(value, int):
        return fit_integer(abs(value), type_)
    if isinstance(value, Decimal):
        return abs(value)
    assert isinstance(value, float)
    return abs(value)


def _date_add(values: Sequence[Value], _: Type) -> Value:
    """Add days to a date; raise UndeterminedError outside the years 1 to 9999."""
    day, days = values
    assert isinstance(day, date)
    assert isinstance(days, int)
    try:
        return day + timedelta(days=days)
    except OverflowError:
        raise UndeterminedError(
            f"{day} and {days} days: of other years nothing is modelled"
        ) from None


def _timestamp_add(values: Sequence[Value], _: Type) -> Value:
    """Add microseconds to a timestamp; raise UndeterminedError outside the years 1 to 9999."""
    moment, long = values
    assert isinstance(moment, datetime)
    assert isinstance(long, int)
    try:
        return moment + timedelta(microseconds=long)
    except OverflowError:
        raise UndeterminedError(
            f"{moment} and {long} microseconds: of other years nothing is modelled"
        ) from None


def _date_diff(values: Sequence[Value], _: Type) -> Value:
    """Return the number of days from the second date to the first."""
    end, start = values
    assert isinstance(end, date)
    assert isinstance(start, date)
    return (end - start).days


def _substring(values: Sequence[Value], _: Type) -> Value:
    """Return a substring; positions start at 1, negative ones count from the end, and 0 is 1
    (UTF8String.substringSQL).
    """
    text, start, *rest = values
    assert isinstance(text, str)
    assert isinstance(start, int)
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = len(text)
    if rest:
        assert isinstance(rest[0], int)
        last = first + rest[0]
    return text[max(first, 0) : max(last, 0)]


def _extreme(values: Sequence[Value], *, greatest: bool) -> Value:
    """Return the greatest or least value, ignoring NULLs; NULL if all are NULL."""
    present: list[Value] = [value for value in values if value is not None]
    best = max if greatest else min
    # The parser has checked that all values have one type.
    return best(present) if present else None  # type: ignore[type-var]


def _text(change: Callable[[str], Value]) -> Function:
    """Return a scalar function of one string."""

    def compute(values: Sequence[Value], _: Type) -> Value:
        assert isinstance(values[0], str)
        return change(values[0])

    return Function(compute)


def _cased(change: Callable[[str], str]) -> Function:
    """Return a function that changes case, and raises UndeterminedError for non-ASCII strings."""

    def compute(text: str) -> Value:
        if not text.isascii():
            raise UndeterminedError(f"the case of '{text}' is up to an engine's tables")
        return change(text)

    return _text(compute)


def _day(part: str) -> Function:
    """Return a scalar function that extracts a part of a date."""

    def compute(values: Sequence[Value], _: Type) -> Value:
        found: int = getattr(values[0], part)
        return found

    return Function(compute)


FUNCTIONS: Mapping[str, Function] = {
    "cast": Function(_cast, fails=True),
    "divide": Function(_divide, fails=True),
    "like": Function(_like),
    "abs": Function(_abs, fails=True),
    "upper": _cased(str.upper),
    "lower": _cased(str.lower),
    "length": _text(len),
    "trim": _text(lambda text: text.strip(" ")),
    "concat": Function(lambda values, _: "".join(map(str, values))),
    "substring": Function(_substring),
    "digest": Function(_digest),
    "rlike": Function(_matches),
    "replace": Function(_replace),
    "endswith": Function(lambda values, _: str(values[0]).endswith(str(values[1]))),
    "contains": Function(lambda values, _: str(values[1]) in str(values[0])),
    "date_add": Function(_date_add),
    "timestamp_add": Function(_timestamp_add),
    "datediff": Function(_date_diff),
    "year": _day("year"),
    "month": _day("month"),
    "day": _day("day"),
    "greatest": Function(lambda values, _: _extreme(values, greatest=True), strict=False),
    "least": Function(lambda values, _: _extreme(values, greatest=False), strict=False),
}
"""Functions whose operands are all evaluated first; ``case`` and ``coalesce`` evaluate only those
they need (``model.sql.expression``).
"""


def evaluate(expr: Expr, rows: Sequence[Row], group: Sequence[Sequence[Row]] = ()) -> Value:
    """Return the value of an expression.

    Parameters
    ----------
    expr : Expr
        Expression; its subqueries are bound to a snapshot.
    rows : sequence of Row
        Row of each side.
    group : sequence of sequence of Row
        Rows that an aggregate ranges over: for each element, one row of each side.

    Raises
    ------
    EvaluationError
        If the expression fails, such as by overflow.
    UndeterminedError
        If the value is not modelled.

    Examples
    --------
    >>> from isolitmus.model.sql.expression import TRUE
    >>> evaluate(Compare("=", Const(None, "INT"), Const(1, "INT")), ()) is None
    True
    >>> evaluate(Or(Const(None, "BOOLEAN"), TRUE), ())
    True
    """
    match expr:
        case Const(value):
            return value
        case ColumnRef(side, index):
            return rows[side][index]
        case Compare(op, left, right):
            return _compare(op, evaluate(left, rows, group), evaluate(right, rows, group))
        case And(left, right):
            a = evaluate(left, rows, group)
            return False if a is False else kleene_and(a, evaluate(right, rows, group))
        case Or(left, right):
            a = evaluate(left, rows, group)
            return True if a is True else kleene_or(a, evaluate(right, rows, group))
        case Not(operand):
            a = evaluate(operand, rows, group)
            return None if a is None else not a
        case In(operand, values):
            a = evaluate(operand, rows, group)
            if a is None:
                return None
            return True if a in values else None if None in values else False
        case IsNull(operand):
            return evaluate(operand, rows, group) is None
        case Call():
            return _call(expr, rows, group)
        case Negate(operand, type_):
            a = evaluate(operand, rows, group)
            return None if a is None else _negated(a, type_)
        case Arithmetic("%", left, right):
            return _remainder(left, evaluate(right, rows, group), rows, group)
        case Arithmetic(op, left, right, type_):
            x, y = evaluate(left, rows, group), evaluate(right, rows, group)
            if x is None or y is None:
                return None
            return calculate(op, x, y, type_)
        case Aggregate(function, operand):
            return _aggregate(function, operand, group, expr.type)
        case Subquery():
            return _subquery(expr, rows)
        case Opaque(text, operands, "BOOLEAN", choices):
            given = tuple(evaluate(operand, rows, group) for operand in operands)
            return choose(choices, (text, given), (True, False, None), expr.unsaid)
        case Parameter() | Opaque():
            raise UndeterminedError(expr.unsaid)


def _call(expr: Call, rows: Sequence[Row], group: Sequence[Sequence[Row]]) -> Value:
    """Evaluate a function call; CASE and COALESCE evaluate only the operands that they need."""
    if expr.function == "case":
        pairs = zip(expr.operands[:-1:2], expr.operands[1::2], strict=True)
        chosen = (then for when, then in pairs if evaluate(when, rows, group) is True)
        return evaluate(next(chosen, expr.operands[-1]), rows, group)
    if expr.function == "coalesce":
        values = (evaluate(operand, rows, group) for operand in expr.operands)
        return next((value for value in values if value is not None), None)
    function = FUNCTIONS[expr.function]
    operands = [evaluate(operand, rows, group) for operand in expr.operands]
    if function.strict and None in operands:
        return None
    return function.compute(operands, expr.type)


def may_fail(call: Call) -> bool:
    """Return whether some operands make the function itself fail.

    Examples
    --------
    >>> text = ColumnRef(0, 0, "s", "STRING")
    >>> may_fail(Call("cast", (text,), "INT")), may_fail(Call("upper", (text,), "STRING"))
    (True, False)
    """
    if call.function != "cast":
        return call.function not in CONDITIONAL and FUNCTIONS[call.function].fails
    source = call.operands[0].type
    return call.type not in ("STRING", source) and common_type((source, call.type)) != call.type


def _negated(value: Value, type_: Type) -> Value:
    assert isinstance(value, int | float | Decimal), "the SQL reader lets only numbers have a sign"
    return fit_integer(-value, type_) if isinstance(value, int) else -value + 0


def kleene_and(a: Value, b: Value) -> bool | None:
    """Return the three-valued conjunction."""
    return False if a is False or b is False else None if a is None or b is None else True


def kleene_or(a: Value, b: Value) -> bool | None:
    """Return the three-valued disjunction."""
    return True if a is True or b is True else None if a is None or b is None else False


def _remainder(
    left: Expr, by: Value, rows: Sequence[Row], group: Sequence[Sequence[Row]]
) -> int | None:
    """Return the remainder, with the sign of the dividend, which is not evaluated if the divisor is
    NULL.
    """
    divided = None if by is None else evaluate(left, rows, group)
    if by is None or divided is None:
        return None
    assert isinstance(divided, int), "the SQL reader lets only integers have a remainder"
    assert isinstance(by, int)
    m, n = divided, by
    if n == 0:
        raise EvaluationError(
            "SparkArithmeticException", f"{m} % 0 has no value", "REMAINDER_BY_ZERO"
        )
    left_over = abs(m) % abs(n)
    return left_over if m > 0 else -left_over


def _compare(op: CompareOp, a: Value, b: Value) -> bool | None:
    """Compare two values; return None (unknown) if one is NULL."""
    if a is None or b is None:
        return None
    if op == "=":
        return a == b
    if op == "<>":
        return a != b
    # The parser has checked that both sides have one type.
    less, equal = a < b, a == b  # type: ignore[operator]
    return (
        less
        if op == "<"
        else less or equal
        if op == "<="
        else not (less or equal)
        if op == ">"
        else not less
    )


def _subquery(expr: Subquery, rows: Sequence[Row]) -> Value:
    """Evaluate EXISTS, IN or a scalar subquery over its bound rows, with NULL semantics for IN."""
    assert expr.rows is not None, "a statement's subqueries are bound to its snapshot first"
    around = (*rows, *[()] * (expr.side - len(rows)))
    found: list[tuple[Row, ...]] = [
        (*around, row)
        for row in expr.rows
        if expr.where is None or evaluate(expr.where, (*around, row)) is True
    ]
    if expr.kind == "exists":
        return bool(found)
    values = (
        [evaluate(expr.item, around, found)]
        if expr.grouped
        else [evaluate(expr.item, inner) for inner in found]
    )
    if expr.operand is None:
        return values[0]
    if not values:
        return False
    a = evaluate(expr.operand, rows)
    if a is None:
        return None
    return True if a in values else None if None in values else False


def _aggregate(
    function: AggregateName, operand: Expr | None, group: Sequence[Sequence[Row]], type_: Type
) -> Value:
    """Evaluate an aggregate over a group, ignoring NULLs; without operand, count the rows."""
    if operand is None:
        return len(group)
    try:
        values = [v for v in (evaluate(operand, rows) for rows in group) if v is not None]
    except EvaluationError as error:
        if function != "count":
            raise
        raise UndeterminedError(
            f"count({operand}) fails ({error}): whether an engine computes what it only counts is"
            " up to its plan"
        ) from None
    match function:
        case "count":
            return len(values)
        case "sum":
            return sum_values(values, type_) if values else None
        case "min":
            return min(values, default=None)
        case "max":
            return max(values, default=None)


def wildcard_expression(text: str, many: str, one: str) -> str:
    """Return the regular expression of a text with wildcards, for ``fullmatch`` and DOTALL.

    The text between two wildcards is matched as early as possible and then never again (an atomic
    group): if the rest matches after a later place, it does so after the first one.

    Parameters
    ----------
    text : str
        Text with wildcards.
    many, one : str
        Wildcards for any text and for any character.

    Examples
    --------
    >>> wildcard_expression("a*b*c?", "*", "?")
    'a(?>.*?b).*c.'
    """
    first, *rest = (
        "".join("." if sign == one else re.escape(sign) for sign in part)
        for part in text.split(many)
    )
    inner = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return f"{first}{inner}.*{rest[-1]}" if rest else first
