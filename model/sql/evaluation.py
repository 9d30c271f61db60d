"""The three-valued meaning of expressions on rows.

NULL is None throughout; a predicate that is None is not true. Overflow of INT and BIGINT is an error, and so
is a remainder by zero, as in Spark's ANSI mode.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.nondeterminism import suppose
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
from isolitmus.model.sql.failing import EvaluationError, fit
from isolitmus.model.sql.functions import FUNCTIONS, calculate, total
from isolitmus.model.sql.types import common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.sql.expression import AggregateName, CompareOp, Expr
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value

__all__ = ["evaluate", "kleene_and", "kleene_or", "may_fail"]


def evaluate(expr: Expr, rows: Sequence[Row], group: Sequence[Sequence[Row]] = ()) -> Value:
    """The value of an expression: ``rows[side]`` is the row of each side, ``group`` lists the rows, of
    each side one, that an aggregate ranges over.

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
        case Opaque(text, operands, "BOOLEAN"):
            given = tuple(evaluate(operand, rows, group) for operand in operands)
            return suppose((text, given), (True, False, None), expr.unsaid)
        case Parameter() | Opaque():
            raise UndeterminedError(expr.unsaid)


def _call(expr: Call, rows: Sequence[Row], group: Sequence[Sequence[Row]]) -> Value:
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
    """Whether some operands make the function itself fail.

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
    return fit(-value, type_) if isinstance(value, int) else -value + 0


def kleene_and(a: Value, b: Value) -> bool | None:
    """Conjunction of three truth values."""
    return False if a is False or b is False else None if a is None or b is None else True


def kleene_or(a: Value, b: Value) -> bool | None:
    """Disjunction of three truth values."""
    return True if a is True or b is True else None if a is None or b is None else False


def _remainder(
    left: Expr, by: Value, rows: Sequence[Row], group: Sequence[Sequence[Row]]
) -> int | None:
    """The remainder, with the sign of what is divided; where there is nothing to divide by, that is not computed."""
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
    if a is None or b is None:
        return None
    if op == "=":
        return a == b
    if op == "<>":
        return a != b
    less, equal = a < b, a == b  # type: ignore[operator]  # one type on both sides: checked by the reader
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
    if operand is None:
        return len(group)
    try:
        values = [v for v in (evaluate(operand, rows) for rows in group) if v is not None]
    except EvaluationError as error:
        if function != "count":
            raise
        raise UndeterminedError(
            f"count({operand}) fails ({error}): whether an engine computes what it only counts is up to its plan"
        ) from None
    match function:
        case "count":
            return len(values)
        case "sum":
            return total(values, type_) if values else None
        case "min":
            return min(values, default=None)
        case "max":
            return max(values, default=None)
