"""Expressions of the SQL fragment and their three-valued meaning on rows.

Columns are resolved to (side, index) when a statement is read: side 0 is the target or the only
table, side 1 the source of a MERGE. NULL is None throughout; a predicate that is None is not true.
Overflow of INT and BIGINT is an error, and so is a remainder by zero, as in Spark's ANSI mode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.failing import EvaluationError, fit
from isolitmus.model.functions import FUNCTIONS, calculate, total
from isolitmus.model.sql_types import common_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.model.sql_types import Type
    from isolitmus.model.values import Row, Value

__all__ = [
    "CONDITIONAL",
    "TRUE",
    "Aggregate",
    "And",
    "Arithmetic",
    "Call",
    "ColumnRef",
    "Compare",
    "Const",
    "EvaluationError",
    "Expr",
    "In",
    "IsNull",
    "Negate",
    "Not",
    "Opaque",
    "Or",
    "Parameter",
    "Subquery",
    "conjuncts",
    "evaluate",
    "fit",
    "kleene_and",
    "kleene_or",
    "mapped",
    "may_fail",
    "subqueries",
    "walk",
]

CompareOp = Literal["=", "<>", "<", "<=", ">", ">="]
ArithmeticOp = Literal["+", "-", "*", "%"]
AggregateName = Literal["count", "sum", "min", "max"]


@dataclass(frozen=True, slots=True)
class Const:
    """A literal; NULL has the type that its place asks for."""

    value: Value
    type: Type

    def __str__(self) -> str:
        from isolitmus.model.values import literal

        return literal(self.value)


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column by side and position; ``name`` is as the author wrote it."""

    side: int
    index: int
    name: str
    type: Type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a client gives a value, ``:name``; or what a clock does, ``current_date()``."""

    name: str
    type: Type

    def __str__(self) -> str:
        return self.name if self.name.endswith("()") else f":{self.name}"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of its operands: one of ``model.functions``, ``case`` (conditions and values by turns,
    what else at the end) or ``coalesce``. CAST is to its ``type``.
    """

    function: str
    operands: tuple[Expr, ...]
    type: Type

    def __str__(self) -> str:
        shown = list(map(str, self.operands))
        match self.function:
            case "cast":
                return f"CAST({shown[0]} AS {self.type})"
            case "case":
                pairs = zip(shown[:-1:2], shown[1::2], strict=True)
                whens = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
                return f"CASE {whens} ELSE {shown[-1]} END"
            case "like":
                return " LIKE ".join(shown)
            case "divide":
                return f"({' / '.join(shown)})"
        return f"{self.function}({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Opaque:
    """What is not modelled, as it is written, and the columns that it names; of a ``type`` "" nothing is known."""

    text: str
    operands: tuple[Expr, ...]
    type: Type

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Negate:
    """Unary minus."""

    operand: Expr
    type: Type

    def __str__(self) -> str:
        return f"-{self.operand}"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``+ - * %`` on integers; BIGINT as soon as one side is."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    type: Type

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two values of one type."""

    op: CompareOp
    left: Expr
    right: Expr
    type: Type = "BOOLEAN"

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction (Kleene)."""

    left: Expr
    right: Expr
    type: Type = "BOOLEAN"

    def __str__(self) -> str:
        return f"{self.left} AND {self.right}"


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction (Kleene)."""

    left: Expr
    right: Expr
    type: Type = "BOOLEAN"

    def __str__(self) -> str:
        return f"({self.left} OR {self.right})"


@dataclass(frozen=True, slots=True)
class Not:
    """Negation (Kleene)."""

    operand: Expr
    type: Type = "BOOLEAN"

    def __str__(self) -> str:
        return f"NOT ({self.operand})"


@dataclass(frozen=True, slots=True)
class In:
    """``x IN (literals)``; with a NULL in the list a miss is NULL."""

    operand: Expr
    values: tuple[Value, ...]
    type: Type = "BOOLEAN"

    def __str__(self) -> str:
        from isolitmus.model.values import literal

        return f"{self.operand} IN ({', '.join(map(literal, self.values))})"


@dataclass(frozen=True, slots=True)
class IsNull:
    """``x IS NULL``."""

    operand: Expr
    type: Type = "BOOLEAN"

    def __str__(self) -> str:
        return f"{self.operand} IS NULL"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``count(*)`` (operand None), ``count(x)``, ``sum``, ``min``, ``max`` over the selected rows."""

    function: AggregateName
    operand: Expr | None
    type: Type

    def __str__(self) -> str:
        return f"{self.function}({self.operand or '*'})"


@dataclass(frozen=True, slots=True)
class Subquery:
    """A SELECT of one table inside an expression: ``EXISTS (…)``, ``operand IN (…)``, or the one value
    of an aggregate.
    """

    kind: Literal["exists", "in", "scalar"]
    """How the expression uses its rows."""
    table: str
    """The table that it reads."""
    item: Expr
    """What it selects."""
    where: Expr | None
    """Which rows; None: all."""
    side: int
    """The side of its own columns; those of the query around it have lower ones."""
    type: Type = "BOOLEAN"
    """Of its value."""
    operand: Expr | None = None
    """What is looked for among its rows, of ``in``."""
    grouped: bool = False
    """The item is an aggregate."""
    rows: tuple[Row, ...] | None = None
    """Those of its table; None before the statement meets a snapshot."""

    @property
    def correlated(self) -> bool:
        """Whether its condition names columns of the query around it."""
        return any(True for _ in self.outer())

    def outer(self) -> Iterator[ColumnRef]:
        """The columns of the query around it that its condition names."""
        for part in walk(self.where or TRUE):
            if isinstance(part, ColumnRef) and part.side < self.side:
                yield part

    def __str__(self) -> str:
        where = f" WHERE {self.where}" if self.where is not None else ""
        select = f"(SELECT {self.item} FROM {self.table}{where})"
        match self.kind:
            case "exists":
                return f"EXISTS {select}"
            case "in":
                return f"{self.operand} IN {select}"
            case "scalar":
                return select


Expr = (
    Const
    | ColumnRef
    | Parameter
    | Call
    | Opaque
    | Negate
    | Arithmetic
    | Compare
    | And
    | Or
    | Not
    | In
    | IsNull
    | Aggregate
    | Subquery
)
CONDITIONAL = ("case", "coalesce")
"""Functions that compute only those of their operands that they need."""
TRUE = Const(True, "BOOLEAN")


def evaluate(expr: Expr, rows: Sequence[Row], group: Sequence[Sequence[Row]] = ()) -> Value:
    """The value of an expression: ``rows[side]`` is the row of each side, ``group`` lists the rows, of
    each side one, that an aggregate ranges over.

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
        case Parameter():
            raise UndeterminedError(f"the value of {expr} is not known")
        case Opaque(text):
            raise UndeterminedError(f"what '{text}' gives is not modelled")


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


def conjuncts(expr: Expr | None) -> tuple[Expr, ...]:
    """The parts of a conjunction, left to right; none for TRUE or no predicate at all."""
    if expr is None or expr == TRUE:
        return ()
    if isinstance(expr, And):
        return conjuncts(expr.left) + conjuncts(expr.right)
    return (expr,)


def subqueries(*exprs: Expr | None) -> tuple[Subquery, ...]:
    """The subqueries in some expressions, left to right."""
    return tuple(e for expr in exprs if expr is not None for e in _subqueries(expr))


@lru_cache(maxsize=10_000)
def _subqueries(expr: Expr) -> tuple[Subquery, ...]:
    return tuple(e for e in walk(expr) if isinstance(e, Subquery))


def mapped(expr: Expr, change: Callable[[ColumnRef | Subquery], Expr]) -> Expr:
    """The expression with its columns and subqueries changed (not what is inside a subquery).

    >>> print(mapped(Not(IsNull(ColumnRef(1, 0, "id", "INT"))), lambda c: ColumnRef(0, 0, "x", "INT")))
    NOT (x IS NULL)
    """
    match expr:
        case ColumnRef() | Subquery():
            return change(expr)
        case Compare() | Arithmetic() | And() | Or():
            return replace(expr, left=mapped(expr.left, change), right=mapped(expr.right, change))
        case Not() | Negate() | In() | IsNull():
            return replace(expr, operand=mapped(expr.operand, change))
        case Aggregate(operand=operand) if operand is not None:
            return replace(expr, operand=mapped(operand, change))
        case Call(operands=operands) | Opaque(operands=operands):
            return replace(expr, operands=tuple(mapped(o, change) for o in operands))
        case _:
            return expr


def walk(expr: Expr, *, certain: bool = False) -> Iterator[Expr]:
    """The expression and all inside it; of a subquery only the columns of the query around it. ``certain``:
    without what is computed only if a condition holds.
    """
    yield expr
    match expr:
        case (
            Compare(_, left, right)
            | Arithmetic(_, left, right)
            | And(left, right)
            | Or(left, right)
        ):
            yield from walk(left, certain=certain)
            yield from walk(right, certain=certain)
        case Not(operand) | Negate(operand) | In(operand) | IsNull(operand):
            yield from walk(operand, certain=certain)
        case Aggregate(_, operand) if operand is not None:
            yield from walk(operand, certain=certain)
        case Opaque(operands=operands):
            yield from operands
        case Call(operands=operands):
            first = certain and expr.function in CONDITIONAL
            for part in operands[:1] if first else operands:
                yield from walk(part, certain=certain)
        case Subquery(operand=operand):
            if operand is not None:
                yield from walk(operand, certain=certain)
            yield from expr.outer()
        case _:
            pass
