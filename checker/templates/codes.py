"""Values as a solver has them: numbers whose order is that of the values, and back again.

Whole numbers are themselves, dates are counted in days. Texts are rational numbers: between two of them
there is always one more, which there is not always between two texts, so what holds of all such
numbers holds of all texts, and a number that no text has is not used as an example.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.sql.failing import RANGES
from isolitmus.model.sql.types import decimal_of, is_opaque

if TYPE_CHECKING:
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value

__all__ = ["Codes", "NoValue"]

USUAL = ("a", "b", "c")
"""Texts that examples have."""

BETWEEN = "m0aA "
"""With what a text goes on that is to come right after another one."""
DAY = date(2026, 1, 1)
"""The first of the days that examples are about."""
DAYS = 28
FIRST_MOMENT = datetime.fromordinal(1)
DAY_LONG = 86_400_000_000
"""A day in microseconds."""
FIRST = ("m", "a", "M", "A", "0", "!", " ")


class FreeValue(NamedTuple):
    """A value that may be any."""

    value: Any
    """What it is, unless it is NULL."""
    null: Any
    """Whether it is."""
    bounds: list[Any]
    """Between what it is."""
    usual: list[Any]
    """Between what a person would take it to be, as an example."""


class NoValue(ValueError):
    """A number that stands for no value."""


class Codes:
    """The numbers of values; texts are numbered as they come.

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
        """A value of a type that may be any; of one name there is one."""
        import z3

        if (name, type_) not in self._unknowns:
            value = z3.Const(name, self.sort(type_))
            null = z3.Bool(f"{name} is NULL")
            bounds, usual = self.bounds(value, type_), self.usual(value, type_)
            self._unknowns[name, type_] = FreeValue(value, null, bounds, usual)
        return self._unknowns[name, type_]

    def sort(self, type_: Type) -> Any:
        """The sort of a type's values."""
        import z3

        match type_:
            case "BOOLEAN":
                return z3.BoolSort()
            case "INT" | "BIGINT" | "DATE" | "TIMESTAMP":
                return z3.IntSort()
            case _:
                return z3.RealSort()

    def bounds(self, term: Any, type_: Type) -> list[Any]:
        """Between which numbers the values of a type are."""
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
        return [low <= term, term <= high]

    def usual(self, term: Any, type_: Type) -> list[Any]:
        """Between which they are in an example."""
        import z3

        match type_:
            case "INT" | "BIGINT":
                return [term > 0, term <= 100]
            case "DATE":
                return [term >= DAY.toordinal(), term < DAY.toordinal() + DAYS]
            case "TIMESTAMP":
                first = _moment(datetime.combine(DAY, time()))
                day = z3.ToInt(z3.ToReal(term - first) / DAY_LONG)
                return [term == first + day * DAY_LONG, day >= 0, day < DAYS]
            case "STRING":
                return [z3.Or(*(term == self.term(text) for text in USUAL))]
            case _ if type_ == "BOOLEAN" or is_opaque(type_):
                return []
            case _:
                return [z3.IsInt(term), term > 0, term <= 100]

    def number(self, value: Value) -> Fraction:
        """The number of a value that is not NULL, and no truth value."""
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
        """The same for the solver."""
        import z3

        if isinstance(value, bool):
            return z3.BoolVal(value)
        number = self.number(value)
        if isinstance(value, int | date):
            return z3.IntVal(int(number))
        return z3.RealVal(str(number))

    def value(self, number: Fraction, type_: Type) -> Value:
        """The value of a number; NoValue if it has none."""
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
        raise NoValue(f"{number} is no {type_}")

    def _text(self, text: str) -> Fraction:
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
    """Microseconds since the first moment that there is."""
    return (value.replace(tzinfo=None) - FIRST_MOMENT) // timedelta(microseconds=1)
