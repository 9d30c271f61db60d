"""Expression trees of the SQL fragment; ``model.sql.evaluation`` evaluates them on rows.

Columns are resolved to (side, index) when a statement is parsed: side 0 is the target or the only
table, side 1 the source of a MERGE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import is_
from typing import TYPE_CHECKING, Literal

from isolitmus.model.memo import memoize_by_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.model.sql.nondeterminism import TriedAnswers
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value

CompareOp = Literal["=", "<>", "<", "<=", ">", ">="]
ArithmeticOp = Literal["+", "-", "*", "%"]
AggregateName = Literal["count", "sum", "min", "max"]


@dataclass(frozen=True, slots=True)
class Const:
    """Literal; NULL has the type that its context expects."""

    value: Value
    type: Type

    def __str__(self) -> str:
        from isolitmus.model.sql.values import literal

        return literal(self.value)


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """Column by side and position; ``name`` is as written."""

    side: int
    index: int
    name: str
    type: Type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter ``:name``, which a client sets; ``current_date()``, which a clock sets; or an
    expression without columns, such as ``last_day(:d)``, that has one value in a run.
    """

    name: str
    type: Type

    def __str__(self) -> str:
        return f":{self.name}" if self.name.isidentifier() else self.name

    @property
    def unsaid(self) -> str:
        """Message that it has no value, with the place where one can be given."""
        clock = self.name.endswith("()")
        where = ': a litmus file says the time, clock = "2026-01-02 10:00:00"' if clock else ""
        return f"the value of {self} is not known{where}"


@dataclass(frozen=True, slots=True)
class Call:
    """Function call: a function of ``model.sql.evaluation``, ``case`` or ``coalesce``.

    The operands of ``case`` are alternating conditions and values, then the ELSE value. CAST is to
    the ``type`` of the call.
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
    """Expression that is not modelled: its text and the columns in it; with ``type`` "", the type
    is unknown.
    """

    text: str
    operands: tuple[Expr, ...]
    type: Type
    choices: TriedAnswers | None = None
    """Values that are tried; None if nothing is known."""

    def __str__(self) -> str:
        return self.text

    @property
    def unsaid(self) -> str:
        """Message that its value is not modelled."""
        return f"what '{self.text}' gives is not modelled"


@dataclass(frozen=True, slots=True)
class Negate:
    """Unary minus."""

    operand: Expr
    type: Type

    def __str__(self) -> str:
        return f"-{self.operand}"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``+ - * %`` on integers; BIGINT if one side is."""

    op: ArithmeticOp
    left: Expr
    right: Expr
    type: Type

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class Compare:
    """Comparison of two values of one type."""

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
    """``x IN (literals)``; if the list contains NULL and no match, the value is NULL."""

    operand: Expr
    values: tuple[Value, ...]
    type: Type = "BOOLEAN"

    def __str__(self) -> str:
        from isolitmus.model.sql.values import literal

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
    """``count(*)`` (operand None), ``count(x)``, ``sum``, ``min`` or ``max`` over the selected
    rows.
    """

    function: AggregateName
    operand: Expr | None
    type: Type

    def __str__(self) -> str:
        return f"{self.function}({self.operand or '*'})"


@dataclass(frozen=True, slots=True)
class Subquery:
    """SELECT from one table in an expression: ``EXISTS (…)``, ``operand IN (…)``, or a scalar
    aggregate.
    """

    kind: Literal["exists", "in", "scalar"]
    """Use of its rows in the expression."""
    table: str
    """Table that it reads."""
    item: Expr
    """Selected expression."""
    where: Expr | None
    """Condition on the rows; None for all rows."""
    side: int
    """Side of its own columns; columns of enclosing queries have lower ones."""
    type: Type = "BOOLEAN"
    """Type of its value."""
    operand: Expr | None = None
    """Left operand of ``in``."""
    grouped: bool = False
    """True if the item is an aggregate."""
    rows: tuple[Row, ...] | None = None
    """Rows of its table; None before it is bound to a snapshot."""

    @property
    def correlated(self) -> bool:
        """True if its condition contains columns of an enclosing query."""
        return any(True for _ in self.outer())

    def outer(self) -> Iterator[ColumnRef]:
        """Yield the columns of enclosing queries in its condition."""
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
"""Functions that evaluate only the operands they need."""
TRUE = Const(True, "BOOLEAN")


def conjuncts(expr: Expr | None) -> tuple[Expr, ...]:
    """Return the parts of a conjunction, left to right; none for TRUE or None."""
    if expr is None or expr == TRUE:
        return ()
    if isinstance(expr, And):
        return conjuncts(expr.left) + conjuncts(expr.right)
    return (expr,)


def subqueries(*exprs: Expr | None) -> tuple[Subquery, ...]:
    """Return the subqueries in some expressions, left to right."""
    return tuple(e for expr in exprs if expr is not None for e in _subqueries(expr))


@memoize_by_identity
def _subqueries(expr: Expr) -> tuple[Subquery, ...]:
    return tuple(e for e in walk(expr) if isinstance(e, Subquery))


def map_columns(expr: Expr, change: Callable[[ColumnRef | Subquery], Expr]) -> Expr:
    """Return the expression with columns and subqueries replaced (not inside a subquery).

    Examples
    --------
    >>> expr = Not(IsNull(ColumnRef(1, 0, "id", "INT")))
    >>> print(map_columns(expr, lambda column: ColumnRef(0, 0, "x", "INT")))
    NOT (x IS NULL)
    """
    match expr:
        case ColumnRef() | Subquery():
            return change(expr)
        case Compare() | Arithmetic() | And() | Or():
            left, right = map_columns(expr.left, change), map_columns(expr.right, change)
            same = left is expr.left and right is expr.right
            return expr if same else replace(expr, left=left, right=right)
        case Not() | Negate() | In() | IsNull():
            operand = map_columns(expr.operand, change)
            return expr if operand is expr.operand else replace(expr, operand=operand)
        case Aggregate(operand=within) if within is not None:
            operand = map_columns(within, change)
            return expr if operand is within else replace(expr, operand=operand)
        case Call(operands=before) | Opaque(operands=before):
            operands = tuple(map_columns(each, change) for each in before)
            same = all(map(is_, operands, before))
            return expr if same else replace(expr, operands=operands)
        case _:
            return expr


def walk(expr: Expr, *, certain: bool = False) -> Iterator[Expr]:
    """Yield the expression and all its parts; of a subquery only the columns of enclosing queries.

    Parameters
    ----------
    certain : bool
        Whether parts that are evaluated only under a condition are left out.
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
