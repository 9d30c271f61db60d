"""Translation of sqlglot expressions into the model's trees, with name resolution and type checks.

It works by allow-list: a node, or an argument of a node, that is not handled here is refused with
its place in the text. Implicit casts are those of Spark's ANSI mode
(``model.sql.types.common_type``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Literal

from sqlglot import expressions as exp

from isolitmus.model.errors import SqlError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.types import (
    INTEGERS,
    RANGES,
    decimal_of,
    decimal_type,
    is_number,
    is_opaque,
)
from isolitmus.specs.sql.functions import (
    GIVES,
    FunctionReader,
    coerce,
    decimal_operand,
    explicit_cast,
    is_untyped_null,
    operand_type,
    read_number,
    unify_types,
)
from isolitmus.specs.sql.run_constants import run_constant
from isolitmus.specs.sql.source_text import refuse_other_arguments
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.source_text import NameScope

COMPARISONS: Mapping[type[exp.Expr], ex.CompareOp] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
ARITHMETIC: Mapping[type[exp.Expr], ex.ArithmeticOp] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Mod: "%",
}
AGGREGATES: Mapping[type[exp.Expr], ex.AggregateName] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
}
TIMES: Mapping[type[exp.Expr], ex.Parameter] = {
    exp.CurrentDate: ex.Parameter("current_date()", "DATE"),
    exp.CurrentTimestamp: ex.Parameter("current_timestamp()", "TIMESTAMP"),
}
"""Functions of the clock, which have one value in a statement."""
Context = Literal["row", "aggregate", "constant"]


def read_expression(
    scope: NameScope,
    node: exp.Expr,
    context: Context = "row",
    null: Type = "INT",
    keys: tuple[ex.ColumnRef, ...] = (),
) -> ex.Expr:
    """Return the expression of a sqlglot node; SqlError, with the place, if it is not supported.

    Parameters
    ----------
    scope : NameScope
        Names that the expression may use.
    node : sqlglot expression
        Node of the syntax tree.
    context : str
        ``row``; ``aggregate`` for a group, which allows aggregates and `keys`; or ``constant``.
    null : str
        Type of a bare NULL.
    keys : tuple of ColumnRef
        Columns of GROUP BY.
    """
    return _ExpressionReader(scope, context, keys).read(node, null)


@dataclass(frozen=True, slots=True)
class _ExpressionReader:
    scope: NameScope
    context: Context
    keys: tuple[ex.ColumnRef, ...] = ()

    def read(self, node: exp.Expr, null: Type = "INT") -> ex.Expr:
        """Translate an expression; an unsupported one becomes opaque where that is permitted."""
        if not self.scope.place.opaque:
            return self._read(node, null)
        try:
            return self._read(node, null)
        except SqlError as error:
            if error.kind not in ("outside", "type", "opaque") or node.find(exp.Query):
                raise  # reads of a nested query matter even if its value is not modelled
            return self._opaque(node)

    def _opaque(self, node: exp.Expr) -> ex.Expr:
        """Return an expression that is not modelled, with the columns that it names."""
        if type(node) in TIMES:
            return TIMES[type(node)]
        if (constant := run_constant(self.scope.place, node)) is not None:
            return constant
        named = [
            self.scope.holder(column) or self.scope.resolve(column)
            for column in node.find_all(exp.Column)
        ]
        condition = isinstance(node, exp.Predicate | exp.Connector | exp.Not)
        text = self.scope.place.written(node)
        return ex.Opaque(text, tuple(dict.fromkeys(named)), "BOOLEAN" if condition else "")

    def _read(self, node: exp.Expr, null: Type) -> ex.Expr:
        """Translate an expression by its kind; `null` is the type of an untyped NULL."""
        place = self.scope.place
        if type(node) in COMPARISONS:
            return self._compare(node)
        if type(node) in ARITHMETIC:
            return self._arithmetic(node)
        if type(node) in AGGREGATES:
            return self._aggregate(node)
        match node:
            case exp.Paren():
                refuse_other_arguments(place, node, "this")
                return self.read(node.this, null)
            case exp.Null():
                return ex.Const(None, null)
            case exp.Boolean():
                return ex.Const(bool(node.this), "BOOLEAN")
            case exp.Literal() | exp.Neg(this=exp.Literal()):
                return self._literal(node)
            case exp.Cast():
                refuse_other_arguments(place, node, "this", "to")
                return explicit_cast(place, node, self.read(node.this, null))
            case exp.Placeholder() if node.name in place.types:
                return ex.Parameter(node.name, place.types[node.name])
            case exp.Column():
                if self.context == "constant":
                    place.refuse(
                        node, f"column '{place.written(node)}' stands where only constants can"
                    )
                if self.scope.holder(node) is not None:
                    place.refuse(node, f"the field '{place.written(node)}' {OUTSIDE}", "opaque")
                column = self.scope.resolve(node)
                if self.context == "aggregate" and not any(
                    (column.side, column.index) == (key.side, key.index) for key in self.keys
                ):
                    place.refuse(
                        node, f"column '{place.written(node)}' stands outside an aggregate"
                    )
                return column
            case exp.Neg():
                operand = self._number(node.this, self.read(node.this))
                node.meta[GIVES] = operand.type
                return ex.Negate(operand, operand.type)
            case exp.And() | exp.Or():
                refuse_other_arguments(place, node, "this", "expression")
                build = ex.And if isinstance(node, exp.And) else ex.Or
                return build(self._boolean(node.this), self._boolean(node.expression))
            case exp.Not(this=exp.Is(this=subject, expression=exp.Null())):
                return ex.Not(ex.IsNull(self._column(subject)))
            case exp.Not():
                return ex.Not(self._boolean(node.this))
            case exp.Is(this=subject, expression=exp.Null()):
                return ex.IsNull(self._column(subject))
            case exp.In(args={"query": exp.Subquery() as query}):
                return self._subquery("in", query, node.this)
            case exp.In():
                return self._in(node)
            case exp.Exists():
                return self._subquery("exists", node)
            case exp.Subquery():
                return self._subquery("scalar", node)
        if type(node) in TIMES:
            place.refuse(node, TIMES[type(node)].unsaid, "opaque")
        found = FunctionReader(place, self.read).function(node, null)
        if found is None:
            place.refuse(node, f"'{place.written(node)}' {OUTSIDE}", "opaque")
        return found

    def _subquery(
        self,
        kind: Literal["exists", "in", "scalar"],
        node: exp.Expr,
        subject: exp.Expr | None = None,
    ) -> ex.Expr:
        """Translate an EXISTS, IN or scalar subquery; `subject` is the left operand of IN."""
        read = self.scope.subquery
        if isinstance(read, str):
            self.scope.place.refuse(node, read)
        refuse_other_arguments(self.scope.place, node, "this")
        found = read(self.scope, kind, node.this)
        if subject is None:
            return found
        operand = self.read(subject)
        if operand.type != found.item.type and not {operand.type, found.item.type} <= set(INTEGERS):
            self.scope.place.refuse(
                subject,
                f"'{self.scope.place.written(subject)}' is {operand.type}, the subquery gives"
                f" {found.item.type}",
            )
        return replace(found, operand=operand)

    def _literal(self, node: exp.Expr) -> ex.Const:
        """Return a number or string literal as a constant."""
        digits = node.this if isinstance(node, exp.Neg) else node
        if not digits.is_string:
            return read_number(self.scope.place, node)
        if node is not digits:
            self.scope.place.refuse(node, "a string has no sign")
        return ex.Const(digits.this, "STRING")

    def _number(self, node: exp.Expr, operand: ex.Expr) -> ex.Expr:
        """Return the operand; refuse one that is not numeric."""
        if not is_number(operand.type):
            written = self.scope.place.written(node)
            problem = f"'{written}' is {operand.type}; expected a number here"
            self.scope.place.refuse(node, problem, "type")
        return operand

    def _boolean(self, node: exp.Expr) -> ex.Expr:
        """Translate a condition; refuse one that is not BOOLEAN."""
        operand = self.read(node, "BOOLEAN")
        if isinstance(operand, ex.Opaque):
            return replace(operand, type="BOOLEAN")
        if operand.type != "BOOLEAN":
            written = self.scope.place.written(node)
            problem = f"'{written}' is {operand.type}; expected a condition here"
            self.scope.place.refuse(node, problem, "type")
        return operand

    def _column(self, node: exp.Expr) -> ex.Expr:
        """Return a column, or in Spark a value without columns, for IS NULL; Delta skips files for
        other operands by rules that are not modelled.
        """
        operand = self.read(node)
        given = isinstance(operand, ex.Const | ex.Parameter) and not self.scope.place.plain
        if not (given or isinstance(operand, ex.ColumnRef)) or is_opaque(operand.type):
            written = self.scope.place.written(node)
            if is_opaque(operand.type) and operand.type:
                problem = f"IS NULL of '{written}', a value of type {operand.type}, {OUTSIDE}"
                if operand.type.startswith("CHAR"):
                    problem += f"; VAR{operand.type}, which is not padded, is modelled"
            else:
                problem = f"IS NULL of '{written}' {OUTSIDE}; use it on a column or a parameter"
            self.scope.place.refuse(node, problem, "opaque")
        return operand

    def _arithmetic(self, node: exp.Expr) -> ex.Expr:
        """Translate arithmetic on dates, or on numbers, which are coerced to a common type."""
        place = self.scope.place
        refuse_other_arguments(place, node, "this", "expression")
        op, parts = ARITHMETIC[type(node)], (node.this, node.expression)
        moves = isinstance(node, exp.Add | exp.Sub) and not place.plain
        if moves and any(isinstance(part, exp.Interval) for part in parts):
            return FunctionReader(place, self.read).moved(node)
        both = [self.read(part) for part in parts]
        if moves and "DATE" in (both[0].type, both[1].type):
            return FunctionReader(place, self.read).date_sum(node, *both)
        for part, value in zip(parts, both, strict=True):
            self._number(part, value)
        types = {value.type for value in both}
        type_: Type = "BIGINT" if "BIGINT" in types else "INT"
        if not types <= set(INTEGERS):
            if op == "%":
                place.refuse(
                    node, f"a remainder of anything but INT and BIGINT {OUTSIDE}", "opaque"
                )
            exact = "DOUBLE" not in types
            wanted = [
                decimal_operand(operand_type(part, value)) if exact else "DOUBLE"
                for part, value in zip(parts, both, strict=True)
            ]
            found = arithmetic_type(op, *wanted) if exact else "DOUBLE"
            if found is None:
                place.refuse(node, f"a result of more than 38 digits {OUTSIDE}", "opaque")
            type_ = found
            both = [
                coerce(place, part, value, target)
                for part, value, target in zip(parts, both, wanted, strict=True)
            ]
        node.meta[GIVES] = type_
        return ex.Arithmetic(op, both[0], both[1], type_)

    def _compare(self, node: exp.Expr) -> ex.Expr:
        """Translate a comparison; refuse one with NULL or of an expression with itself."""
        place = self.scope.place
        refuse_other_arguments(place, node, "this", "expression")
        parts = (node.this, node.expression)
        read = [self.read(part) for part in parts]
        for value, part in zip(read, parts, strict=True):
            if is_opaque(value.type):
                place.refuse(part, f"a comparison of {value.type} {OUTSIDE}", "opaque")
            if is_untyped_null(value) and isinstance(part, exp.Null):
                place.refuse(part, "a comparison with NULL is never true; use IS NULL")
        both = self._comparable(node, parts, read)
        left, right = _narrowed(both[0], both[1]), _narrowed(both[1], both[0])
        if left == right and not isinstance(left, ex.Const | ex.Parameter):
            place.refuse(
                node, f"'{place.written(node)}' compares a thing with itself; use IS NOT NULL"
            )
        for column, value, part in ((left, right, node.expression), (right, left, node.this)):
            if column.type == "INT" and isinstance(value, ex.Const) and value.type == "BIGINT":
                place.refuse(part, f"{value} does not fit into INT, as '{column}' does")
        return ex.Compare(COMPARISONS[type(node)], left, right)

    def _comparable(
        self, node: exp.Expr, parts: Sequence[exp.Expr], values: Sequence[ex.Expr]
    ) -> list[ex.Expr]:
        """Return the values in the type in which Spark compares them.

        An integer literal beside a decimal has a type with just its digits.
        """
        if any(decimal_of(value.type) for value in values):
            values = [
                coerce(self.scope.place, part, value, operand_type(part, value))
                for part, value in zip(parts, values, strict=True)
            ]
        return unify_types(self.scope.place, node, parts, values)[1]

    def _in(self, node: exp.In) -> ex.Expr:
        """Translate IN with a list; one with parameters becomes a disjunction of equalities."""
        place = self.scope.place
        refuse_other_arguments(place, node, "this", "expressions")
        operand = self.read(node.this)
        constants = _ExpressionReader(self.scope, "constant")
        parts = [node.this, *node.expressions]
        read = [operand, *(constants.read(v, operand.type) for v in node.expressions)]
        _, values = unify_types(place, node, parts, read)
        operand, *listed = values
        for value, part in zip(listed, node.expressions, strict=True):
            if not isinstance(value, ex.Const | ex.Parameter):
                place.refuse(part, "IN takes literals only")
        if any(isinstance(value, ex.Parameter) for value in listed):
            alternatives: list[ex.Expr] = [ex.Compare("=", operand, value) for value in listed]
            return reduce(ex.Or, alternatives)
        return ex.In(operand, tuple(v.value for v in listed if isinstance(v, ex.Const)))

    def _aggregate(self, node: exp.Expr) -> ex.Expr:
        """Translate an aggregate with the type of its result."""
        place = self.scope.place
        function = AGGREGATES[type(node)]
        if self.context != "aggregate":
            place.refuse(node, f"{function} stands only in the list of a SELECT")
        refuse_other_arguments(place, node, "this", "big_int")
        if isinstance(node.this, exp.Star) or node.this is None:
            if function != "count":
                place.refuse(node, f"{function} takes a column")
            return ex.Aggregate("count", None, "BIGINT")
        operand = _ExpressionReader(self.scope, "row").read(node.this)
        if is_opaque(operand.type) and function != "count":
            place.refuse(node, f"{function} of {operand.type} {OUTSIDE}", "opaque")
        type_: Type | None = "BIGINT" if function == "count" else operand.type
        if function == "sum":
            type_ = sum_type(operand.type)
        if type_ is None:
            place.refuse(node, f"sum of {operand.type} {OUTSIDE}", "opaque")
        node.meta[GIVES] = type_
        return ex.Aggregate(function, operand, type_)


def _narrowed(value: ex.Expr, other: ex.Expr) -> ex.Expr:
    """Return a BIGINT constant beside an INT as INT if it fits (UnwrapCastInBinaryComparison)."""
    if isinstance(value, ex.Const) and (value.type, other.type) == ("BIGINT", "INT"):
        low, high = RANGES["INT"]
        if isinstance(value.value, int) and low <= value.value <= high:
            return ex.Const(value.value, "INT")
    return value


def arithmetic_type(op: ex.ArithmeticOp, left: Type, right: Type) -> Type | None:
    """Return the type of a decimal sum, difference or product; None if it has over 38 digits.

    Source: DecimalPrecisionTypeCoercion.scala.

    Examples
    --------
    >>> arithmetic_type("*", "DECIMAL(10,2)", "DECIMAL(3,1)")
    'DECIMAL(14,3)'
    """
    (p, s), (q, t) = (decimal_of(type_) or (1, 0) for type_ in (left, right))
    if op == "*":
        return decimal_type(p + q + 1, s + t)
    return decimal_type(max(p - s, q - t) + max(s, t) + 1, max(s, t))


def sum_type(type_: Type) -> Type | None:
    """Return the type of a sum of values of a type, or None.

    Examples
    --------
    >>> sum_type("INT"), sum_type("DECIMAL(10,2)"), sum_type("DATE")
    ('BIGINT', 'DECIMAL(20,2)', None)
    """
    if type_ in INTEGERS:
        return "BIGINT"
    found = decimal_of(type_)
    if found is not None:
        return decimal_type(min(found[0] + 10, 38), found[1])
    return type_ if type_ == "DOUBLE" else None
