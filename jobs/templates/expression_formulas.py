"""Expressions of SQL as three-valued Z3 formulas over unknown rows and parameters.

An expression without a formula (a subquery, an aggregate, a product of unknowns, a function) is a
fresh unknown. The formulas therefore over-approximate: every value that an expression can have,
its formula can have, and perhaps more.

Values are encoded as numbers whose order is that of the values, and decoded again. Integers encode
themselves, and dates are counted in days. Strings are rational numbers. Between two rationals
there is always another one, which does not hold of strings. So what holds of all such numbers
holds of all strings, and a number that no string has is not used in a counterexample.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.solver.smt import fast_z3
from isolitmus.jobs.templates.sample_values import DAY, leaves_of, samples_of, values_at
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.types import INTEGERS, RANGES, decimal_of, is_opaque
from isolitmus.model.sql.values import NULL_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.model.sql.schema import GeneratedColumn, Schema
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value

LAST = "\ud7ff"
"""Character up to which every character has a successor."""


class ValueTerm(NamedTuple):
    """SQL value: the term of its value unless it is NULL, and the formula that it is NULL."""

    value: Any
    null: Any


RowTerm = tuple[ValueTerm, ...]
"""Row: one value per column."""


class Truth(NamedTuple):
    """Three-valued condition: the formulas that it is TRUE, and FALSE; NULL if neither holds."""

    true: Any
    false: Any


class AppliedExpression(NamedTuple):
    """Expression without a formula, and the unknown that stands for its value."""

    expr: ex.Expr
    types: tuple[Type, ...]
    """Types of its columns and parameters."""
    operands: tuple[ValueTerm, ...]
    """Terms of its columns and parameters, in the order of ``leaves_of``."""
    found: ValueTerm


class Terms:
    """Builder of the formulas of one statement instance; the names of its unknowns are its own.

    Attributes
    ----------
    parameters : dict of str to ValueTerm
        Terms of the parameters.
    unknowns : list
        Z3 constants besides parameters: rows, and values that stand for what has no formula.
    rows : list of (str, RowTerm)
        Unknown rows, each with its table.
    literals : dict of (Value, Type) to Z3 constant
        Unknowns in place of literals; other literals are their own terms.
    applications : list of AppliedExpression
        Expressions without a formula that can be evaluated.
    exact : bool
        Whether no formula so far needed an unknown for an expression without a formula.
    """

    def __init__(self, name: str, codes: Codes) -> None:
        self.z3: Any = fast_z3()
        self.name = name
        self.codes = codes
        self.parameters: dict[str, ValueTerm] = {}
        self.unknowns: list[Any] = []
        self.rows: list[tuple[str, RowTerm]] = []
        self.values: list[FreeValue] = []
        self.constants: dict[tuple[Value, Type], Any] = {}
        self.literals: dict[tuple[Value, Type], Any] = {}
        self.applications: list[AppliedExpression] = []
        self.exact = True

    @property
    def bounds(self) -> list[Any]:
        """Formulas that restrict the unknowns to values of their types."""
        return [formula for one in self.values for formula in one.bounds]

    @property
    def usual(self) -> list[Any]:
        """Formulas that restrict the unknowns to values for a readable counterexample."""
        return [formula for one in self.values for formula in one.usual]

    def row(self, schema: Schema, name: str) -> RowTerm:
        """Return an arbitrary row of a table."""
        row: list[ValueTerm] = []
        for k, column in enumerate(schema.columns):
            nulls = column.name.lower() not in schema.not_null
            row.append(self.fresh(column.type, f"{name}.{column.name or k}", nulls=nulls))
            if k in schema.partition_indexes and column.type == "STRING":
                last = self.values[-1]
                own = self.z3.Not(self.is_null_partition(last.value))
                self.values[-1] = last._replace(bounds=[*last.bounds, own])
        for one in schema.generated:
            self._generate(one, schema.index(one.name), tuple(row))
        self.rows.append((schema.name, tuple(row)))
        return tuple(row)

    def _generate(self, one: GeneratedColumn, index: int | None, row: RowTerm) -> None:
        """Restrict a row to the value of a generated column, if it has a formula."""
        if one.value is None or index is None:
            return
        exact, self.exact = self.exact, True
        with self.aside():
            value = self.value(one.value, (row,))
        known, self.exact = self.exact, exact
        if known and value.value.sort() == row[index].value.sort():
            z3, own = self.z3, row[index]
            same = z3.And(own.null == value.null, z3.Or(own.null, own.value == value.value))
            last = self.values[-1]
            self.values[-1] = last._replace(bounds=[*last.bounds, same])

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Forget, after a block, the unknowns that are made in it."""
        known: list[list[Any]] = [self.unknowns, self.rows, self.values, self.applications]
        sizes = [len(some) for some in known]
        try:
            yield
        finally:
            for some, size in zip(known, sizes, strict=True):
                del some[size:]

    def is_null_partition(self, value: Any) -> Any:
        """Return the formula that a string is stored as NULL in a partition column."""
        z3, term = self.z3, self.codes.term
        return z3.Or(*(z3.equal(value, term(text)) for text in NULL_PARTITIONS))

    def fresh(self, type_: Type, name: str, *, nulls: bool = True) -> ValueTerm:
        """Return an arbitrary value; not NULL if `nulls` is False."""
        label = f"{self.name}.{name}#{len(self.unknowns)}"
        unknown = self.codes.unknown(label, type_)
        value, null = unknown.value, unknown.null if nulls else self.z3.BoolVal(False)
        self.values.append(unknown)
        self.unknowns += [value, null] if nulls else [value]
        return ValueTerm(value, null)

    def some(self, name: str) -> Any:
        """Return an arbitrary truth value for a condition without a formula (not exact)."""
        self.exact = False
        found = self.z3.Bool(f"{self.name}.{name}#{len(self.unknowns)}")
        self.unknowns.append(found)
        return found

    def choice(self, name: str) -> Any:
        """Return an arbitrary truth value that selects one of several cases.

        Other than ``some``, it leaves ``exact`` as it is.
        """
        exact = self.exact
        found, self.exact = self.some(name), exact
        return found

    def constant(self, value: Value, type_: Type) -> ValueTerm:
        """Return the term of a literal."""
        if value is None:
            return ValueTerm(self.fresh(type_, "NULL", nulls=False).value, self.z3.BoolVal(True))
        term = self.literals.get((value, type_))
        if term is None:
            term = self.codes.term(value)
        return ValueTerm(self.constants.setdefault((value, type_), term), self.z3.BoolVal(False))

    def holds(self, condition: ex.Expr | None, rows: Sequence[RowTerm | None]) -> Any:
        """Return the formula that a condition is TRUE of rows, one per side of a join.

        A condition that is None is TRUE. A side whose row is None gives unknown values.
        """
        if condition is None:
            return self.z3.BoolVal(True)
        return self.truth(condition, rows).true

    def truth(self, condition: ex.Expr, rows: Sequence[RowTerm | None]) -> Truth:
        """Return the formulas that a condition is TRUE and that it is FALSE."""
        z3 = self.z3
        match condition:
            case ex.And(left, right):
                a, b = self.truth(left, rows), self.truth(right, rows)
                return Truth(z3.And(a.true, b.true), z3.Or(a.false, b.false))
            case ex.Or(left, right):
                a, b = self.truth(left, rows), self.truth(right, rows)
                return Truth(z3.Or(a.true, b.true), z3.And(a.false, b.false))
            case ex.Not(operand):
                a = self.truth(operand, rows)
                return Truth(a.false, a.true)
            case ex.IsNull(operand):
                null = self.value(operand, rows).null
                return Truth(null, z3.Not(null))
            case ex.Compare(op, left, right):
                return self._compare(op, self.value(left, rows), self.value(right, rows))
            case ex.In(operand, values):
                return self._among(operand, values, rows)
        value = self.value(condition, rows)
        known = z3.Not(value.null)
        return Truth(z3.And(known, value.value), z3.And(known, z3.Not(value.value)))

    def _compare(self, op: ex.CompareOp, a: ValueTerm, b: ValueTerm) -> Truth:
        """Return the truth of a comparison; ordered or mixed Booleans have a fresh unknown."""
        z3 = self.z3
        known = z3.And(z3.Not(a.null), z3.Not(b.null))
        truths = z3.is_bool(a.value), z3.is_bool(b.value)
        if truths[0] != truths[1] or (truths[0] and op not in ("=", "<>")):
            said = self.some("comparison")
        else:
            said = {
                "=": lambda: a.value == b.value,
                "<>": lambda: a.value != b.value,
                "<": lambda: a.value < b.value,
                "<=": lambda: a.value <= b.value,
                ">": lambda: a.value > b.value,
                ">=": lambda: a.value >= b.value,
            }[op]()
        return Truth(z3.And(known, said), z3.And(known, z3.Not(said)))

    def _among(
        self, operand: ex.Expr, values: Sequence[Value], rows: Sequence[RowTerm | None]
    ) -> Truth:
        """Return the truth of IN with a list of values; NULL in the list makes it never false."""
        z3, one = self.z3, self.value(operand, rows)
        listed = [self.constant(value, operand.type) for value in values if value is not None]
        found = z3.Or(*(one.value == value.value for value in listed)) if listed else False
        known = z3.Not(one.null)
        missed = z3.And(known, z3.Not(found), z3.BoolVal(None not in values))
        return Truth(z3.And(known, found), missed)

    def value(self, expr: ex.Expr, rows: Sequence[RowTerm | None]) -> ValueTerm:
        """Return the value of an expression over rows, one per side of a join."""
        z3 = self.z3
        match expr:
            case ex.Const(value, type_):
                return self.constant(value, type_)
            case ex.Parameter(name, type_):
                if name not in self.parameters:  # current_date(), which is not declared
                    self.exact = False
                    self.parameters[name] = self.fresh(type_, name, nulls=False)
                return self.parameters[name]
            case ex.ColumnRef(side, index, name, type_):
                row = rows[side] if side < len(rows) else None
                return self.unknown(type_, name) if row is None else row[index]
            case ex.Negate(operand):
                one = self.value(operand, rows)
                return ValueTerm(-one.value, one.null)
            case ex.Arithmetic(op, left, right, type_):
                a, b = self.value(left, rows), self.value(right, rows)
                null = z3.Or(a.null, b.null)
                # products and remainders stay linear only with a literal
                fixed = z3.is_int_value(a.value) or z3.is_int_value(b.value)
                match op:
                    case "+" if type_ != "DOUBLE":
                        return ValueTerm(a.value + b.value, null)
                    case "-" if type_ != "DOUBLE":
                        return ValueTerm(a.value - b.value, null)
                    case "*" if fixed and type_ in INTEGERS:
                        return ValueTerm(a.value * b.value, null)
                    case "%" if type_ in INTEGERS and z3.is_int_value(b.value):
                        if by := abs(b.value.as_long()):
                            return ValueTerm(self._remainder(a.value, by), null)
                return self._applied(expr, rows, f"result of {op}")
            case ex.Call("cast", (operand,), type_):
                return self._cast(expr, self.value(operand, rows), rows)
            case ex.Call("date_add" | "timestamp_add", (day, days)):
                a, b = self.value(day, rows), self.value(days, rows)
                return ValueTerm(a.value + b.value, z3.Or(a.null, b.null))
            case ex.Call("datediff", (end, start)):
                a, b = self.value(end, rows), self.value(start, rows)
                return ValueTerm(a.value - b.value, z3.Or(a.null, b.null))
            case ex.Call("year", (day,)):
                return self._year(self.value(day, rows))
            case ex.Call("like", (subject, ex.Const(str() as pattern))) if found := self._begins(
                self.value(subject, rows), pattern
            ):
                return found
            case ex.Call("case", operands):
                whens = [self.truth(when, rows).true for when in operands[:-1:2]]
                *thens, found = (self.value(then, rows) for then in (*operands[1::2], operands[-1]))
                for when, then in reversed([*zip(whens, thens, strict=True)]):
                    value = z3.If(when, then.value, found.value)
                    found = ValueTerm(value, z3.If(when, then.null, found.null))
                return found
            case ex.Call("coalesce", operands):
                first, *others = (self.value(operand, rows) for operand in operands)
                for other in others:
                    value = z3.If(first.null, other.value, first.value)
                    first = ValueTerm(value, z3.And(first.null, other.null))
                return first
            case ex.Aggregate(function, operand, type_):
                return self._aggregate(function, operand, type_, rows)
            case ex.And() | ex.Or() | ex.Not() | ex.IsNull() | ex.Compare() | ex.In():
                said = self.truth(expr, rows)
                return ValueTerm(said.true, z3.Not(z3.Or(said.true, said.false)))
        return self._applied(expr, rows, type(expr).__name__)

    def _applied(self, expr: ex.Expr, rows: Sequence[RowTerm | None], name: str) -> ValueTerm:
        """Return a fresh value for an expression without a formula, which examples may sample."""
        found, leaves = self.unknown(expr.type, name), leaves_of(expr)
        if leaves and not any(
            isinstance(leaf, ex.ColumnRef) and (leaf.side >= len(rows) or rows[leaf.side] is None)
            for leaf in leaves
        ):
            operands = tuple(self.value(leaf, rows) for leaf in leaves)
            types = tuple(leaf.type for leaf in leaves)
            self.applications.append(AppliedExpression(expr, types, operands, found))
        return found

    def facts(
        self, one: AppliedExpression, literals: Iterable[tuple[Value, Type]]
    ) -> Iterator[Any]:
        """Yield formulas: the value of an application if its only operand is NULL or a literal."""
        z3 = self.z3
        if len(one.types) == 1:
            alike = tuple(value for value, type_ in literals if type_ == one.types[0])
            for (value,), result in values_at(one.expr, (*dict.fromkeys(alike), None)):
                given, found = one.operands[0], one.found
                yield z3.Implies(self._equals(given, value), self._equals(found, result))

    def _equals(self, term: ValueTerm, value: Value) -> Any:
        """Return the formula that a term has a value, which may be NULL."""
        z3 = self.z3
        if value is None:
            return term.null
        return z3.And(z3.Not(term.null), z3.equal(term.value, self.codes.term(value)))

    def sampled(self, one: AppliedExpression, literals: Iterable[Value]) -> Any:
        """Return the formula that the value of an application is one of its samples, or None.

        It is a preference for examples, and no part of a question.
        """
        z3 = self.z3
        ways = [
            z3.And(*map(self._equals, one.operands, operands), self._equals(one.found, result))
            for operands, result in samples_of(one.expr, tuple(dict.fromkeys(literals)))
        ]
        return z3.Or(*ways) if ways else None

    def _year(self, day: ValueTerm) -> ValueTerm:
        """Return the year of a date: the day lies between its first day and that of the next."""
        z3, year = self.z3, self.fresh("INT", "year", nulls=False).value

        def days_before(year: Any) -> Any:
            last = year - 1
            return 365 * last + last / 4 - last / 100 + last / 400

        known = self.values[-1]
        within = z3.And(days_before(year) < day.value, day.value <= days_before(year + 1))
        bounds = [year >= 1, year <= 9999, within]
        self.values[-1] = known._replace(bounds=[*known.bounds, *bounds], usual=[])
        return ValueTerm(year, day.null)

    def _remainder(self, a: Any, by: int) -> Any:
        """Return the remainder of an integer division, with the sign of the dividend."""
        return self.z3.If(a >= 0, a % by, -((-a) % by))

    def _begins(self, one: ValueTerm, pattern: str) -> ValueTerm | None:
        """Return the value of LIKE with a pattern that fixes only a prefix, else None."""
        begin = pattern.removesuffix("%")
        if begin == pattern or not begin or {"%", "_", "\\"} & set(begin):
            return None
        if not begin[-1] < LAST:
            return None
        after = begin[:-1] + chr(ord(begin[-1]) + 1)
        low, high = self.codes.term(begin), self.codes.term(after)
        return ValueTerm(self.z3.And(low <= one.value, one.value < high), one.null)

    def _cast(self, expr: ex.Call, one: ValueTerm, rows: Sequence[RowTerm | None]) -> ValueTerm:
        """Return the value of a cast of `one`; exact only where a formula gives the value."""
        z3, given, type_ = self.z3, expr.operands[0].type, expr.type
        if given in INTEGERS and type_ in INTEGERS:
            return one
        if given in INTEGERS and decimal_of(type_):
            return ValueTerm(z3.ToReal(one.value), one.null)
        if given == "TIMESTAMP" and type_ == "DATE":  # days from 1, as in Codes
            return ValueTerm(one.value / DAY_LONG + 1, one.null)
        if given == "DATE" and type_ == "TIMESTAMP":
            return ValueTerm((one.value - 1) * DAY_LONG, one.null)
        return self._applied(expr, rows, "cast")

    def _aggregate(
        self,
        function: str,
        operand: ex.Expr | None,
        type_: Type,
        rows: Sequence[RowTerm | None],
    ) -> ValueTerm:
        """Return an unknown value; in a counterexample it is that of a group of one row."""
        found = self.unknown(type_, function)
        if operand is None or function == "count":
            return found
        one = self.value(operand, rows)
        if one.value.sort() == found.value.sort():
            alike = self.z3.And(found.null == one.null, found.value == one.value)
            self.values = [
                known._replace(usual=[alike, *known.usual]) if known.value is found.value else known
                for known in self.values
            ]
        return found

    def unknown(self, type_: Type, name: str) -> ValueTerm:
        """Return a fresh value for an expression without a formula."""
        self.exact = False
        return self.fresh(type_, name)


USUAL = ("a", "b", "c")
"""Strings for counterexamples."""

BETWEEN = "m0aA "
"""Characters to append to a string to obtain a string that comes right after it."""
DAYS = 28
FIRST_MOMENT = datetime.fromordinal(1)
DAY_LONG = 86_400_000_000
"""Length of a day in microseconds."""
FIRST = ("m", "a", "M", "A", "0", "!", " ")


class FreeValue(NamedTuple):
    """Arbitrary value of a type."""

    value: Any
    """Z3 constant of the value, unless it is NULL."""
    null: Any
    """Z3 constant that says whether it is NULL."""
    bounds: list[Any]
    """Formulas that restrict it to the range of its type."""
    usual: list[Any]
    """Formulas that restrict it to values that are easy to read in a counterexample."""


class NoValue(ValueError):
    """Raised if a number encodes no value."""


class Codes:
    """Order-preserving encoding of values as numbers; strings get their numbers as they occur.

    Examples
    --------
    >>> codes = Codes()
    >>> low, high = codes.number("mon"), codes.number("tue")
    >>> low < high, "mon" < codes.value((low + high) / 2, "STRING") < "tue"
    (True, True)
    >>> codes.value(codes.number(date(2026, 1, 2)), "DATE")
    datetime.date(2026, 1, 2)
    """

    def __init__(self) -> None:
        self._texts: list[tuple[str, Fraction]] = []
        self._unknowns: dict[tuple[str, Type], FreeValue] = {}

    def unknown(self, name: str, type_: Type) -> FreeValue:
        """Return an arbitrary value of a type; the same one for the same name and type."""
        z3 = fast_z3()
        if (name, type_) not in self._unknowns:
            value = z3.unknown(name, self.sort(type_))
            null = z3.unknown(f"{name} is NULL", self.sort("BOOLEAN"))
            bounds, usual = self.bounds(value, type_), self.usual(value, type_)
            self._unknowns[name, type_] = FreeValue(value, null, bounds, usual)
        return self._unknowns[name, type_]

    def sort(self, type_: Type) -> Any:
        """Return the Z3 sort that encodes a type."""
        z3 = fast_z3()
        match type_:
            case "BOOLEAN":
                return z3.BoolSort()
            case "INT" | "BIGINT" | "DATE" | "TIMESTAMP":
                return z3.IntSort()
            case _:
                return z3.RealSort()

    def bounds(self, term: Any, type_: Type) -> list[Any]:
        """Return the formulas that restrict a term to the range of its type."""
        match type_:
            case "INT" | "BIGINT":
                low, high = RANGES[type_]
            case "DATE":
                low, high = date.min.toordinal(), date.max.toordinal()
            case "TIMESTAMP":
                low, high = 0, date.max.toordinal() * DAY_LONG - 1
            case _ if digits := decimal_of(type_):
                high = 10 ** (digits[0] - digits[1]) - 1
                low = -high
            case _:
                return []
        z3 = fast_z3()
        number = z3.integer if term.is_int() else z3.real
        return [z3.at_most(number(low), term), z3.at_most(term, number(high))]

    def usual(self, term: Any, type_: Type) -> list[Any]:
        """Return the formulas that restrict a term to values for a readable counterexample."""
        z3 = fast_z3()
        match type_:
            case "INT" | "BIGINT":
                return [z3.below(z3.integer(0), term), z3.at_most(term, z3.integer(100))]
            case "DATE":
                first, end = z3.integer(DAY.toordinal()), z3.integer(DAY.toordinal() + DAYS)
                return [z3.at_most(first, term), z3.below(term, end)]
            case "TIMESTAMP":
                first = _moment(datetime.combine(DAY, time()))
                day = z3.ToInt(z3.ToReal(term - first) / DAY_LONG)
                return [term == first + day * DAY_LONG, day >= 0, day < DAYS]
            case "STRING":
                return [z3.Or(*(z3.equal(term, self.term(text)) for text in USUAL))]
            case _ if type_ == "BOOLEAN" or is_opaque(type_):
                return []
            case _:
                over, most = z3.below(z3.real(0), term), z3.at_most(term, z3.real(100))
                return [z3.IsInt(term), over, most]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Forget, after a block, the strings that get their numbers in it."""
        known = list(self._texts)
        try:
            yield
        finally:
            self._texts = known

    def number(self, value: Value) -> Fraction:
        """Return the number of a value that is neither NULL nor a Boolean."""
        match value:
            case int() | float() | Decimal():
                return Fraction(value)
            case datetime():
                return Fraction(_moment(value))
            case date():
                return Fraction(value.toordinal())
            case str():
                return self._text(value)
        raise AssertionError(f"{value!r} has no number")

    def term(self, value: Value) -> Any:
        """Return the Z3 literal of a value that is not NULL."""
        z3 = fast_z3()
        if isinstance(value, bool):
            return z3.BoolVal(value)
        number = self.number(value)
        if isinstance(value, int | date):
            return z3.integer(int(number))
        return z3.real(str(number))

    def value(self, number: Fraction, type_: Type) -> Value:
        """Return the value that a number encodes.

        Raises
        ------
        NoValue
            If the number encodes no value of the type.
        """
        match type_:
            case "INT" | "BIGINT":
                low, high = RANGES[type_]
                if number.denominator == 1 and low <= number <= high:
                    return int(number)
            case "DATE":
                if date.min.toordinal() <= number <= date.max.toordinal():
                    return date.fromordinal(int(number))
            case "STRING":
                return self._between(number)
            case "TIMESTAMP" if number.denominator == 1:
                return FIRST_MOMENT + timedelta(microseconds=int(number))
            case "DOUBLE" if Fraction(float(number)) == number:
                return float(number)
            case _ if digits := decimal_of(type_):
                scaled = number * 10 ** digits[1]
                if scaled.denominator == 1 and abs(scaled) < 10 ** digits[0]:
                    return Decimal(int(scaled)).scaleb(-digits[1])
        raise NoValue(f"{number} is not of type {type_}")

    def _text(self, text: str) -> Fraction:
        """Return the number of a string; a new one lies between the numbers of its neighbours."""
        at = bisect_left(self._texts, text, key=lambda pair: pair[0])
        if at < len(self._texts) and self._texts[at][0] == text:
            return self._texts[at][1]
        below = self._texts[at - 1][1] if at else None
        above = self._texts[at][1] if at < len(self._texts) else None
        match below, above:
            case None, None:
                number = Fraction(0)
            case None, Fraction():
                number = above - 1
            case Fraction(), None:
                number = below + 1
            case _:
                assert below is not None
                assert above is not None
                number = (below + above) / 2
        self._texts.insert(at, (text, number))
        return number

    def _between(self, number: Fraction) -> str:
        """Return the string of a number, perhaps a new one; raise NoValue if none is found."""
        at = bisect_left(self._texts, number, key=lambda pair: pair[1])
        if at < len(self._texts) and self._texts[at][1] == number:
            return self._texts[at][0]
        below = self._texts[at - 1][0] if at else None
        above = self._texts[at][0] if at < len(self._texts) else None
        texts = FIRST if below is None else tuple(below + more for more in BETWEEN)
        found = next((text for text in texts if above is None or text < above), None)
        if found is None:
            raise NoValue(f"there is no text between {below!r} and {above!r}")
        self._texts.insert(at, (found, number))
        return found


def _moment(value: datetime) -> int:
    """Return the microseconds since `FIRST_MOMENT`."""
    return (value.replace(tzinfo=None) - FIRST_MOMENT) // timedelta(microseconds=1)
