"""Read a sqlglot expression into the model's own tree, columns resolved and types checked.

White-listed: a node, or an argument of a node, that is not handled here is refused with its place
in the author's text. There are no implicit casts but INT to BIGINT, and of a text that is compared with a DATE
(Spark 4.2.0, AnsiTypeCoercion.scala, findWiderTypeForString).
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Literal, NoReturn, get_args

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.model import expression as ex
from isolitmus.model.errors import brief, near
from isolitmus.model.expression import RANGES
from isolitmus.specs.apart import OUTSIDE
from isolitmus.specs.written import located

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.model.errors import SqlProblem
    from isolitmus.model.schema import Column, Type

    SubqueryReader = Callable[
        ["NameScope", Literal["exists", "in", "scalar"], exp.Expr], ex.Subquery
    ]

__all__ = ["NameScope", "Side", "SqlText", "only", "read_expression"]

DIGITS = re.compile("0*([0-9]+)")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LONGEST = len(str(RANGES["BIGINT"][1]))
INTEGERS = ("INT", "BIGINT")
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
Context = Literal["row", "aggregate", "constant"]
DIALECT = "databricks"
LOOK_BACK, LOOK_AHEAD = 4, 100
"""So many words before the first place that a node remembers, and from there on, what it was is looked for."""


@dataclass(frozen=True, slots=True)
class SqlText:
    """The author's text, and what to call it in a message (``reorder.toml, transaction delete``)."""

    text: str
    label: str

    def refuse(self, node: exp.Expr | None, problem: str, kind: SqlProblem = "outside") -> NoReturn:
        """Raise a SqlError that points at the node."""
        start = 0 if node is None else _start(node)
        raise located(self.label, self.text, start, brief(problem), kind)

    def written(self, node: exp.Expr) -> str:
        """What the author wrote for a node: the words of the text that read as it.

        >>> tree = sqlglot.parse_one("SELECT 1 WHERE id!=1 AND  lower(n)='a'", dialect="databricks")
        >>> SqlText("SELECT 1 WHERE id!=1 AND  lower(n)='a'", "SQL").written(tree.args["where"].this)
        "id!=1 AND  lower(n)='a'"
        """
        names = list(node.find_all(exp.Identifier)) if isinstance(node, exp.Column) else []
        if names and all("end" in name.meta for name in names):
            return self.text[_start(node) : max(name.meta["end"] for name in names) + 1]
        tokens = sqlglot.tokenize(self.text, dialect=DIALECT)
        first = next((k for k, t in enumerate(tokens) if t.end >= _start(node)), 0)
        for low in range(first, max(first - LOOK_BACK, -1), -1):
            for high in range(low, min(low + LOOK_AHEAD, len(tokens))):
                words = self.text[tokens[low].start : tokens[high].end + 1]
                with suppress(SqlglotError):
                    if sqlglot.parse_one(words, dialect=DIALECT) == node:
                        return words
        return node.sql(DIALECT)


def _start(node: exp.Expr) -> int:
    return min((n.meta["start"] for n in node.walk() if "start" in n.meta), default=0)


@dataclass(frozen=True, slots=True)
class Side:
    """One table (or MERGE source) in scope, under the name that qualifies its columns."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class NameScope:
    """What a column name may mean: the sides in order; side 0 is the target or the only table. The
    first ``outer`` of them belong to the query around a subquery, and come second.

    ``subquery`` reads a subquery; where there can be none, it is the sentence that says so.
    """

    place: SqlText
    sides: tuple[Side | None, ...]
    subquery: SubqueryReader | str = f"a subquery here {OUTSIDE}"
    outer: int = 0

    def resolve(self, node: exp.Column) -> ex.ColumnRef:
        """The column that a name denotes; refused if there is none, or more than one."""
        if node.args.get("db") or node.args.get("catalog"):
            self.place.refuse(
                node, f"column '{self.place.written(node)}' is qualified too far; use table.column"
            )
        name, qualifier = node.name, node.table
        shown = f"{qualifier}.{name}" if qualifier and self.outer else name
        every = [
            ex.ColumnRef(s, i, shown, column.type)
            for s, side in enumerate(self.sides)
            if side is not None and (not qualifier or side.name.lower() == qualifier.lower())
            for i, column in enumerate(side.columns)
            if column.name.lower() == name.lower()
        ]
        found = [ref for ref in every if ref.side >= self.outer] or every
        if len(found) == 1:
            return found[0]
        if found:
            names = " or ".join(f"{s.name}.{name}" for s in self.sides if s is not None)
            self.place.refuse(node, f"column '{name}' is ambiguous; write {names}")
        known = [c.name for s in self.sides if s is not None for c in s.columns]
        self.place.refuse(
            node, f"no column '{self.place.written(node)}' here{near(name, known)}", "no column"
        )


def only(place: SqlText, node: exp.Expr, *handled: str) -> None:
    """Refuse a node that carries an argument which is not handled."""
    for key, value in node.args.items():
        if value and key not in handled:
            shown = value[0] if isinstance(value, list) else value
            place.refuse(
                shown if isinstance(shown, exp.Expr) else node,
                f"'{key.rstrip('_').replace('_', ' ').upper()}' {OUTSIDE}",
            )


def read_expression(
    scope: NameScope,
    node: exp.Expr,
    context: Context = "row",
    null: Type = "INT",
    keys: tuple[ex.ColumnRef, ...] = (),
) -> ex.Expr:
    """The expression of a row, of a group (aggregates and its ``keys`` allowed) or of nothing
    (constants only).

    ``null`` is the type that a bare NULL takes here. SqlError with the place for all else.
    """
    return _ExpressionReader(scope, context, keys).read(node, null)


@dataclass(frozen=True, slots=True)
class _ExpressionReader:
    scope: NameScope
    context: Context
    keys: tuple[ex.ColumnRef, ...] = ()

    def read(self, node: exp.Expr, null: Type = "INT") -> ex.Expr:
        place = self.scope.place
        if type(node) in COMPARISONS:
            return self._compare(node)
        if type(node) in ARITHMETIC:
            return self._arithmetic(node)
        if type(node) in AGGREGATES:
            return self._aggregate(node)
        match node:
            case exp.Paren():
                only(place, node, "this")
                return self.read(node.this, null)
            case exp.Null():
                return ex.Const(None, null)
            case exp.Boolean():
                return ex.Const(bool(node.this), "BOOLEAN")
            case exp.Literal() | exp.Neg(this=exp.Literal()):
                return self._literal(node)
            case exp.Cast():
                return self._date(node)
            case exp.Column():
                if self.context == "constant":
                    place.refuse(
                        node, f"column '{place.written(node)}' stands where only constants can"
                    )
                column = self.scope.resolve(node)
                if self.context == "aggregate" and not any(
                    column.index == key.index for key in self.keys
                ):
                    place.refuse(
                        node, f"column '{place.written(node)}' stands outside an aggregate"
                    )
                return column
            case exp.Neg():
                operand = self._integer(node.this)
                return ex.Negate(operand, operand.type)
            case exp.And() | exp.Or():
                only(place, node, "this", "expression")
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
        place.refuse(node, f"'{place.written(node)}' {OUTSIDE}")

    def _subquery(
        self,
        kind: Literal["exists", "in", "scalar"],
        node: exp.Expr,
        subject: exp.Expr | None = None,
    ) -> ex.Expr:
        read = self.scope.subquery
        if isinstance(read, str):
            self.scope.place.refuse(node, read)
        only(self.scope.place, node, "this")
        found = read(self.scope, kind, node.this)
        if subject is None:
            return found
        operand = self.read(subject)
        if operand.type != found.item.type and not {operand.type, found.item.type} <= set(INTEGERS):
            self.scope.place.refuse(
                subject,
                f"'{self.scope.place.written(subject)}' is {operand.type}, the subquery gives {found.item.type}",
            )
        return replace(found, operand=operand)

    def _literal(self, node: exp.Expr) -> ex.Const:
        digits = node.this if isinstance(node, exp.Neg) else node
        if digits.is_string:
            if node is not digits:
                self.scope.place.refuse(node, "a string has no sign")
            return ex.Const(digits.this, "STRING")
        number = DIGITS.fullmatch(digits.this)
        if number is None:
            self.scope.place.refuse(
                node, f"number '{digits.this}' is not an integer; the types are INT and BIGINT"
            )
        if len(number[1]) <= LONGEST:
            value = int(number[1]) * (1 if node is digits else -1)
            for type_ in get_args(Literal["INT", "BIGINT"]):
                if RANGES[type_][0] <= value <= RANGES[type_][1]:
                    return ex.Const(value, type_)
        self.scope.place.refuse(node, f"{digits.this} does not fit into BIGINT")

    def _date(self, node: exp.Cast) -> ex.Const:
        source = node.this
        if not (node.to.is_type("date") and isinstance(source, exp.Literal) and source.is_string):
            self.scope.place.refuse(node, f"a CAST {OUTSIDE}; of types, DATE '…' is read")
        return self._day(source.this, node, "DATE 'YYYY-MM-DD'")

    def _day(self, text: str, node: exp.Expr, form: str) -> ex.Const:
        """The date of a text: other spellings are not the same dates everywhere, or none."""
        if DAY.fullmatch(text):
            with suppress(ValueError):
                return ex.Const(date.fromisoformat(text), "DATE")
        self.scope.place.refuse(node, f"'{text}' is no date; write {form}")

    def _cast(self, value: ex.Expr, other: ex.Expr, node: exp.Expr) -> ex.Expr:
        """What a value is beside another one: a text beside a DATE is the date that it says."""
        if other.type == "DATE" and isinstance(value, ex.Const) and value.type == "STRING":
            return self._day(str(value.value), node, "'YYYY-MM-DD'")
        return value

    def _typed(self, node: exp.Expr, types: tuple[str, ...], what: str) -> ex.Expr:
        operand = self.read(node)
        if operand.type not in types:
            self.scope.place.refuse(
                node,
                f"'{self.scope.place.written(node)}' is {operand.type}; {what} is wanted here",
                "type",
            )
        return operand

    def _integer(self, node: exp.Expr) -> ex.Expr:
        return self._typed(node, INTEGERS, "INT or BIGINT")

    def _boolean(self, node: exp.Expr) -> ex.Expr:
        return self._typed(node, ("BOOLEAN",), "a condition")

    def _column(self, node: exp.Expr) -> ex.Expr:
        """IS NULL of anything but a column is skipped by other rules in Delta: not modelled."""
        operand = self.read(node)
        if not isinstance(operand, ex.ColumnRef):
            self.scope.place.refuse(node, "IS NULL is modelled for a column only")
        return operand

    def _arithmetic(self, node: exp.Expr) -> ex.Expr:
        only(self.scope.place, node, "this", "expression")
        left, right = self._integer(node.this), self._integer(node.expression)
        type_: Type = "BIGINT" if "BIGINT" in (left.type, right.type) else "INT"
        return ex.Arithmetic(ARITHMETIC[type(node)], left, right, type_)

    def _compare(self, node: exp.Expr) -> ex.Expr:
        only(self.scope.place, node, "this", "expression")
        left, right = self.read(node.this), self.read(node.expression)
        left, right = (
            self._cast(left, right, node.this),
            self._cast(right, left, node.expression),
        )
        for side, part in ((left, node.this), (right, node.expression)):
            if side == ex.Const(None, "INT"):
                self.scope.place.refuse(part, "a comparison with NULL is never true; use IS NULL")
        if left == right:
            self.scope.place.refuse(
                node,
                f"'{self.scope.place.written(node)}' compares a thing with itself; use IS NOT NULL",
            )
        for column, value, part in ((left, right, node.expression), (right, left, node.this)):
            if column.type == "INT" and isinstance(value, ex.Const) and value.type == "BIGINT":
                self.scope.place.refuse(part, f"{value} does not fit into INT, as '{column}' does")
        both_integers = left.type in INTEGERS and right.type in INTEGERS
        if left.type != right.type and not both_integers:
            self.scope.place.refuse(
                node,
                f"'{self.scope.place.written(node)}' compares {left.type} with {right.type};"
                " there are no implicit casts but INT to BIGINT, and of a text 'YYYY-MM-DD' to DATE",
                "type",
            )
        return ex.Compare(COMPARISONS[type(node)], left, right)

    def _in(self, node: exp.In) -> ex.Expr:
        only(self.scope.place, node, "this", "expressions")
        operand = self.read(node.this)
        constants = _ExpressionReader(self.scope, "constant")
        values = [self._cast(constants.read(v, operand.type), operand, v) for v in node.expressions]
        for value, part in zip(values, node.expressions, strict=True):
            if not isinstance(value, ex.Const):
                self.scope.place.refuse(part, "IN takes literals only")
            if value.type != operand.type and not {value.type, operand.type} <= set(INTEGERS):
                self.scope.place.refuse(part, f"{value} is {value.type}, not {operand.type}")
        return ex.In(operand, tuple(v.value for v in values if isinstance(v, ex.Const)))

    def _aggregate(self, node: exp.Expr) -> ex.Expr:
        place = self.scope.place
        function = AGGREGATES[type(node)]
        if self.context != "aggregate":
            place.refuse(node, f"{function} stands only in the list of a SELECT")
        only(place, node, "this", "big_int")
        if isinstance(node.this, exp.Star) or node.this is None:
            if function != "count":
                place.refuse(node, f"{function} takes a column")
            return ex.Aggregate("count", None, "BIGINT")
        operand = _ExpressionReader(self.scope, "row").read(node.this)
        if function == "sum" and operand.type not in INTEGERS:
            place.refuse(node, f"sum of {operand.type} {OUTSIDE}")
        type_: Type = "BIGINT" if function in ("count", "sum") else operand.type
        return ex.Aggregate(function, operand, type_)
