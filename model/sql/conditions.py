"""Normal form of conditions after Spark's optimizer, and truth of conditions whose parts may fail.

Delta splits a condition on its partition columns and builds its skipping filters after Spark has
simplified it, in DELETE, UPDATE and MERGE as well. The footprint of a statement is therefore that
of the normal form. Observed on Spark 4.2 with EXPLAIN and modelled: NOT pushed to the leaves,
``IN`` of one value, constant folding, ``x + 0`` and ``x * 1``, comparisons with TRUE and FALSE,
duplicate operands, and common factors of AND and OR (optimizer/expressions.scala,
BooleanSimplification, OptimizeIn, ConstantFolding, ReorderAssociativeOperator).
``unmodelled_rewrite`` names what is not modelled. In a comparison of a cast column with a constant,
the constant is cast to the column's type, rounded half up; if that changes it, ``<`` and ``<=`` may
change as well (UnwrapCastInBinaryComparison.scala).

SQL does not specify the order in which the parts of a condition are computed, nor whether all are.
A row that one part excludes while another one fails on it (such as by overflow) raises an error in
one plan and not in another (Spark: "Order of evaluation of subexpressions"). One thing is certain
in Delta: no row of a pruned partition is read.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.evaluation import evaluate, may_fail
from isolitmus.model.sql.types import INTEGERS, EvaluationError, decimal_of
from isolitmus.model.sql.values import cast_value, rescale, show_row

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from isolitmus.model.sql.expression import CompareOp
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value

LENIENT = (*ex.CONDITIONAL, "concat", "greatest", "least")
"""Functions that Spark does not know to be NULL if one operand is."""


def is_cast_removed(source: Type, target: Type) -> bool:
    """Return whether Spark removes the cast of a column in a comparison with a constant.

    Examples
    --------
    >>> is_cast_removed("INT", "DOUBLE"), is_cast_removed("BIGINT", "DOUBLE")
    (True, False)
    >>> is_cast_removed("STRING", "BIGINT")
    False
    """
    if (source, target) == ("DATE", "TIMESTAMP"):
        return True
    if source in INTEGERS:
        narrow = source == "INT" or target != "DOUBLE"
        return narrow and (target == "DOUBLE" or decimal_of(target) is not None)
    return decimal_of(source) is not None and decimal_of(target) is not None


def remove_cast(op: CompareOp, value: Value, source: Type) -> tuple[CompareOp, Value] | None:
    """Return the comparison of a column that replaces the comparison of its cast with a constant.

    Return None if `op` is ``=`` or ``<>`` and the constant is not a value of the column's type, or
    if the type cannot hold it.

    Parameters
    ----------
    op : str
        Comparison of the cast column with the constant.
    value : object
        Constant.
    source : str
        Type of the column.

    Returns
    -------
    tuple of (str, object) or None
        Operator and constant for the column.

    Examples
    --------
    >>> remove_cast(">", Decimal("1.555"), "DECIMAL(10,2)"), remove_cast(">", Decimal("1.5"), "INT")
    (('>=', Decimal('1.56')), ('>', 1))
    >>> remove_cast("=", Decimal("1.5"), "INT"), remove_cast("<", 2.0, "INT")
    (None, ('<', 2))
    """
    try:
        own = _own(value, source)
    except EvaluationError:
        return None
    back = cast_value(own, "TIMESTAMP") if isinstance(value, datetime) else own
    if back == value:
        return op, own
    if op in ("=", "<>"):
        return None
    rounded_up = back > value  # type: ignore[operator]  # numbers, or timestamps
    strict: dict[CompareOp, CompareOp] = {"<": "<", "<=": "<", ">": ">=", ">=": ">="}
    lax: dict[CompareOp, CompareOp] = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
    return (strict if rounded_up else lax)[op], own


def _own(value: Value, source: Type) -> Value:
    """Convert a constant to a column's type, rounding down for integers."""
    if source in INTEGERS:
        assert isinstance(value, float | Decimal)
        return cast_value(Decimal(value).to_integral_value(ROUND_FLOOR), source)
    if isinstance(value, Decimal):
        return rescale(value, source)
    assert isinstance(value, date)
    return cast_value(value, source)


FLIPPED: dict[ex.CompareOp, ex.CompareOp] = {
    "=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
}  # fmt: skip
"""Comparison operators for exchanged operands."""
NEGATED: dict[ex.CompareOp, ex.CompareOp] = {
    "=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<",
}  # fmt: skip
"""Comparison operators of the negation."""
SEVERAL = 2


def normalize(condition: ex.Expr) -> ex.Expr:
    """Return the condition in the form in which Delta gets it.

    Examples
    --------
    >>> k, part = (ex.ColumnRef(0, i, n, "INT") for i, n in enumerate(["k", "part"]))
    >>> def eq(column, value): return ex.Compare("=", column, ex.Const(value, "INT"))
    >>> print(normalize(ex.Not(ex.Or(eq(part, 0), ex.In(k, (5,))))))
    part <> 0 AND k <> 5
    >>> print(normalize(ex.Or(ex.And(eq(part, 0), eq(k, 1)), ex.And(eq(k, 2), eq(part, 0)))))
    part = 0 AND (k = 1 OR k = 2)
    """
    return _boolean(condition, negated=False)


@lru_cache(maxsize=10_000)
def columns_in(expr: ex.Expr) -> tuple[ex.ColumnRef, ...]:
    """Return the columns in an expression, in order, with repetitions."""
    return tuple(e for e in ex.walk(expr) if isinstance(e, ex.ColumnRef))


def strict_columns(expr: ex.Expr) -> tuple[ex.ColumnRef, ...]:
    """Return the columns in which Spark knows a NULL to make the expression NULL (nullIntolerant).

    Examples
    --------
    >>> s = ex.ColumnRef(0, 0, "s", "STRING")
    >>> calls = [ex.Call(name, (s,), "STRING") for name in ("upper", "coalesce", "concat")]
    >>> [len(strict_columns(call)) for call in calls]
    [1, 0, 0]
    """
    return tuple(leaf for leaf in strict_leaves(expr) if isinstance(leaf, ex.ColumnRef))


def strict_leaves(expr: ex.Expr) -> tuple[ex.Expr, ...]:
    """Return the columns, constants and parameters of which one that is NULL makes an expression
    NULL, as Spark's optimizer knows (nullIntolerant).

    Examples
    --------
    >>> part, p = ex.ColumnRef(0, 0, "part", "INT"), ex.Parameter("p", "INT")
    >>> [str(leaf) for leaf in strict_leaves(ex.Compare("<", part, ex.Negate(p, "INT")))]
    ['part', ':p']
    """
    match expr:
        case ex.Call(function) if function in LENIENT:
            return ()
        case ex.Call(_, operands):
            return tuple(leaf for operand in operands for leaf in strict_leaves(operand))
        case ex.Compare(_, left, right) | ex.Arithmetic(_, left, right):
            return (*strict_leaves(left), *strict_leaves(right))
        case ex.Negate(operand) | ex.Not(operand) | ex.In(operand):
            return strict_leaves(operand)
        case ex.ColumnRef() | ex.Const() | ex.Parameter():
            return (expr,)
        case _:
            return ()


@memoize_by_identity
def may_be_optimized(expr: ex.Expr) -> bool:
    """Return whether Spark's optimizer may rewrite an expression in a way that is not modelled.

    These are conditions of CASE and COALESCE, and ranges of casts (SimplifyConditionals,
    PushFoldableIntoBranches, UnwrapCast…).
    """
    return any(
        isinstance(part, ex.Opaque)
        or (isinstance(part, ex.Call) and part.function in ex.CONDITIONAL)
        or (isinstance(part, ex.Compare | ex.In) and _compares_cast(part))
        for part in ex.walk(expr)
    )


def _compares_cast(part: ex.Compare | ex.In) -> bool:
    """Return whether constants are compared with a cast of a column that Spark may remove."""
    match part:
        case ex.Compare(_, ex.Call("cast", (ex.ColumnRef() as column,)) as cast, ex.Const()):
            pass
        case ex.In(ex.Call("cast", (ex.ColumnRef() as column,)) as cast):
            pass
        case _:
            return False
    return column.type == "TIMESTAMP" or is_cast_removed(column.type, cast.type)


def disjuncts(expr: ex.Expr) -> tuple[ex.Expr, ...]:
    """Return the parts of a disjunction, left to right."""
    if isinstance(expr, ex.Or):
        return disjuncts(expr.left) + disjuncts(expr.right)
    return (expr,)


def unmodelled_rewrite(condition: ex.Expr) -> str | None:
    """Return why the optimizer's result is not modelled, as the end of a sentence, or None."""
    for part in ex.walk(condition):
        if isinstance(part, ex.Arithmetic):
            constants = sum(isinstance(e, ex.Const) for e in ex.walk(part))
            if constants >= SEVERAL and columns_in(part):
                return f"'{part}' has several constants; write one"
        if isinstance(part, ex.Compare) and (never := _never(part)):
            return never
        if isinstance(part, ex.In) and None in part.values:
            return f"'{part}' has a NULL in its list; leave it out"
        if isinstance(part, ex.And | ex.Or):
            operands = ex.conjuncts(part) if isinstance(part, ex.And) else disjuncts(part)
            forms = [_boolean(operand, negated=False) for operand in operands]
            for operand, form in zip(operands, forms, strict=True):
                opposite = _boolean(operand, negated=True)
                if opposite in forms and not (isinstance(form, ex.Const) or _null_test(form)):
                    return f"'{part}' has '{form}' and its opposite"
    return None


def _never(part: ex.Compare) -> str | None:
    """Return a message if a column is compared with a constant that no value of its type equals, or
    None.
    """
    plain = _boolean(part, negated=False)
    if isinstance(plain, ex.Compare) and plain.op in ("=", "<>"):
        match plain.left, plain.right:
            case ex.Call("cast", (ex.ColumnRef() as column,)), ex.Const(value) if (
                value is not None and is_cast_removed(column.type, plain.left.type)
            ):
                return f"'{part}' asks for {value}, which no {column.type} is"
    return None


def unmodelled_query_rewrite(condition: ex.Expr) -> str | None:
    """Return why the optimizer's result is not modelled for the WHERE of a query, or None.

    In a query, Spark also propagates equalities from one conjunct to the others
    (ConstantPropagation, InferFiltersFromConstraints).
    """
    for part in ex.walk(normalize(condition)):
        operands = ex.conjuncts(part)
        for operand in operands if isinstance(part, ex.And) else (part,):
            match operand:
                case ex.Compare("=", ex.ColumnRef() as a, ex.ColumnRef() as b):
                    return f"'{a} = {b}' equates two columns"
                case ex.Compare("=", ex.ColumnRef() as column, ex.Const()):
                    others = [o for o in operands if o is not operand]
                    if any(column in columns_in(other) for other in others):
                        return f"'{operand}' stands beside another condition on {column}"
                case _:
                    pass
    return unmodelled_rewrite(condition)


def _null_test(form: ex.Expr) -> bool:
    return isinstance(form.operand if isinstance(form, ex.Not) else form, ex.IsNull)


def _boolean(expr: ex.Expr, *, negated: bool) -> ex.Expr:
    """Return the normal form of a condition, or of its negation if `negated`.

    What is NULL for every row is FALSE, since no part of the form is negated (NullPropagation,
    ReplaceNullWithFalseInPredicate).
    """
    form = _unfolded(expr, negated=negated)
    null = isinstance(form, ex.Const) and form.value is None
    if null or (not isinstance(form, ex.Const | ex.And | ex.Or) and _is_null(form)):
        return ex.Const(False, "BOOLEAN")
    return form


def _is_null(expr: ex.Expr) -> bool:
    """Return whether Spark's optimizer knows that an expression is NULL for every row."""
    return any(isinstance(leaf, ex.Const) and leaf.value is None for leaf in strict_leaves(expr))


def _unfolded(expr: ex.Expr, *, negated: bool) -> ex.Expr:
    """Return the normal form of a condition, whose own NULL is not FALSE yet."""
    match expr:
        case ex.Const(bool() as value):
            return ex.Const(value != negated, "BOOLEAN")
        case ex.IsNull(ex.Const(value)):
            return ex.Const((value is None) != negated, "BOOLEAN")
        case ex.IsNull(operand) if _is_null(operand):
            return ex.Const(not negated, "BOOLEAN")
        case ex.Not(operand):
            return _boolean(operand, negated=not negated)
        case ex.And(left, right) | ex.Or(left, right):
            parts = _boolean(left, negated=negated), _boolean(right, negated=negated)
            conjunction = isinstance(expr, ex.And) != negated
            for part, other in (parts, parts[::-1]):
                if isinstance(part, ex.Const) and isinstance(part.value, bool):
                    return other if part.value == conjunction else part
            return _factored(*parts, *((AND, OR) if conjunction else (OR, AND)))
        case ex.Compare(op, left, right):
            return _comparison(NEGATED[op] if negated else op, _value(left), _value(right))
        case ex.In(operand, values):
            distinct = tuple(dict.fromkeys(values))
            inner = _value(operand)
            if len(distinct) == 1:
                only = ex.Const(distinct[0], operand.type)
                return _comparison("<>" if negated else "=", inner, only)
            return ex.Not(ex.In(inner, distinct)) if negated else ex.In(inner, distinct)
        case ex.Call("like", (subject, ex.Const(str() as pattern))) if not {"%", "_"} & set(
            pattern
        ):
            return _comparison("<>" if negated else "=", subject, ex.Const(pattern, "STRING"))
        case ex.Call():
            found = _value(expr)
            return ex.Not(found) if negated else found
        case _:
            return ex.Not(expr) if negated else expr


class _Connective(NamedTuple):
    """AND or OR: function that joins two conditions, and function that returns the operands."""

    join: Callable[[ex.Expr, ex.Expr], ex.Expr]
    operands: Callable[[ex.Expr], tuple[ex.Expr, ...]]


AND = _Connective(ex.And, ex.conjuncts)
OR = _Connective(ex.Or, disjuncts)


def _factored(left: ex.Expr, right: ex.Expr, outer: _Connective, inner: _Connective) -> ex.Expr:
    """Return ``(a AND b) OR (a AND c)`` as ``a AND (b OR c)``, and the dual; bottom up, pair by
    pair.

    ``outer`` joins the two sides, ``inner`` is the other connective.
    """
    ours, theirs = inner.operands(left), inner.operands(right)
    common = [part for part in ours if part in theirs]
    if common:
        rest = [[p for p in side if p not in common] for side in (ours, theirs)]
        if not all(rest):
            return reduce(inner.join, common)
        between = _factored(reduce(inner.join, rest[0]), reduce(inner.join, rest[1]), outer, inner)
        return reduce(inner.join, [*common, between])
    operands = (*outer.operands(left), *outer.operands(right))
    return reduce(outer.join, dict.fromkeys(operands))


def _comparison(op: ex.CompareOp, left: ex.Expr, right: ex.Expr) -> ex.Expr:
    """Return a comparison in normal form: constants right, parameters before them, columns in
    order.

    Equal comparisons then have equal forms.
    """
    places = [
        (isinstance(side, ex.Const), isinstance(side, ex.Parameter), str(side))
        for side in (left, right)
    ]
    if places[0] > places[1]:
        op, left, right = FLIPPED[op], right, left
    if isinstance(right, ex.Const) and isinstance(right.value, bool) and op in ("=", "<>"):
        return left if (op == "=") == right.value else ex.Not(left)
    match left, right:
        case ex.Const(), ex.Const():
            return ex.Const(evaluate(ex.Compare(op, left, right), ()), "BOOLEAN")
        case ex.Call("cast", (ex.ColumnRef() as column,)), ex.Const(value) if (
            value is not None and is_cast_removed(column.type, left.type)
        ):
            found = remove_cast(op, value, column.type)
            if found is not None:
                return ex.Compare(found[0], column, ex.Const(found[1], column.type))
        case _:
            pass
    return ex.Compare(op, left, right)


def _value(expr: ex.Expr) -> ex.Expr:
    """Fold constants in an expression, order operands of + and *, and drop neutral ones."""
    match expr:
        case ex.Arithmetic(op, left, right, type_):
            a, b = _value(left), _value(right)
            if isinstance(a, ex.Const) and isinstance(b, ex.Const):
                return ex.Const(evaluate(ex.Arithmetic(op, a, b, type_), ()), type_)
            if (
                op in ("+", "*")
                and (isinstance(a, ex.Const) or str(a) > str(b))
                and not isinstance(b, ex.Const)
            ):
                a, b = b, a
            neutral = {"+": 0, "*": 1}.get(op)
            if isinstance(b, ex.Const) and b.value == neutral and a.type == type_:
                return a
            return ex.Arithmetic(op, a, b, type_)
        case ex.Call(function, operands, type_):
            if function in ex.CONDITIONAL:
                return expr
            inside = tuple(map(_value, operands))
            call = ex.Call(function, inside, type_)
            constant = all(isinstance(operand, ex.Const) for operand in inside)
            return ex.Const(evaluate(call, ()), type_) if constant else call
        case ex.Negate(operand, type_):
            inner = _value(operand)
            if isinstance(inner, ex.Const):
                return ex.Const(evaluate(ex.Negate(inner, type_), ()), type_)
            return ex.Negate(inner, type_)
        case _:
            return expr


def holds(condition: ex.Expr | None, rows: Sequence[Row], first: Collection[int] = ()) -> bool:
    """Return whether a condition (None: TRUE) is TRUE for rows, one row for each side.

    Conjuncts that use only the columns `first` of side 0 are computed before the others.

    Parameters
    ----------
    condition : Expr or None
        Condition.
    rows : sequence of Row
        Row of each side.
    first : collection of int
        Positions of columns of side 0, such as those of the partition columns.

    Raises
    ------
    EvaluationError
        If a part fails and all others are TRUE.
    UndeterminedError
        If a failure depends on the order of evaluation.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))
    >>> where = read_statement("DELETE FROM t WHERE id + 1 > 5 AND part = 0", {"t": t}).where
    >>> holds(where, [(2147483647, 1)], first=t.partition_indexes)
    False
    """
    if condition is None or not can_fail(condition):
        return condition is None or evaluate(condition, rows) is True
    return all(_settled(condition, parts, rows) for parts in _stages(condition, first))


def may_hold(condition: ex.Expr | None, rows: Sequence[Row], first: Collection[int] = ()) -> bool:
    """Return whether a condition may be TRUE for rows that were not there to be read.

    A row for which the condition would fail counts as matching.
    """
    if condition is None or not can_fail(condition):
        return condition is None or evaluate(condition, rows) is True
    return all(_lenient(part, rows) for parts in _stages(condition, first) for part in parts)


@lru_cache(maxsize=10_000)
def can_fail(condition: ex.Expr) -> bool:
    """Return whether evaluation of the condition fails for some row."""
    return any(
        isinstance(part, ex.Arithmetic | ex.Negate | ex.Opaque)
        or (isinstance(part, ex.Call) and may_fail(part))
        or (
            isinstance(part, ex.Subquery) and any(map(can_fail, (part.item, part.where or ex.TRUE)))
        )
        for part in ex.walk(condition)
    )


def _stages(condition: ex.Expr, first: Collection[int]) -> Iterator[list[ex.Expr]]:
    """Yield the conjuncts in the stages in which they are computed."""
    parts = ex.conjuncts(condition)
    early = [p for p in parts if all(c.side == 0 and c.index in first for c in columns_in(p))]
    yield early
    yield [p for p in parts if p not in early]


def _settled(condition: ex.Expr, parts: Sequence[ex.Expr], rows: Sequence[Row]) -> bool:
    """Return whether all of these parts are TRUE."""
    failure, true = None, True
    for part in parts:
        leaves = list(_leaves(part))
        try:
            for leaf in leaves:
                if not isinstance(leaf, ex.Opaque):  # its failure does not depend on this row
                    evaluate(leaf, rows)
            true = true and evaluate(part, rows) is True
        except EvaluationError as error:
            failure = failure or error
            true = true and len(leaves) == 1
    if failure is None:
        return true
    if true:
        raise failure
    shown = " and ".join(show_row(row) for row in rows if row)
    raise UndeterminedError(
        f"the condition {condition} fails on row {shown} and has another part that decides, too:"
        " whether an engine computes the part that fails is up to its plan; write a condition that"
        " does not fail"
    )


def _leaves(part: ex.Expr) -> Iterator[ex.Expr]:
    """Yield the operands of nested AND, OR and NOT."""
    match part:
        case ex.And(left, right) | ex.Or(left, right):
            yield from _leaves(left)
            yield from _leaves(right)
        case ex.Not(operand):
            yield from _leaves(operand)
        case _:
            yield part


def _lenient(part: ex.Expr, rows: Sequence[Row]) -> bool:
    """Return whether a condition is TRUE for these rows or fails."""
    try:
        return evaluate(part, rows) is True
    except EvaluationError:
        return True
