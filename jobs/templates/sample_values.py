"""SampledValue values of functions without a formula, for examples that a solver proposes.

The solver knows nothing of ``year(day)``, so the rows that it proposes almost never have the year
that a condition wants. Here the expression is evaluated on a few values of its columns and
parameters, those near the literals first. A solver that prefers one of these samples proposes
rows that an execution confirms. Samples are preferences: no proof depends on them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import chain, islice, product
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.types import INTEGERS, RANGES, EvaluationError, decimal_of
from isolitmus.model.sql.values import rescale

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value

DAY = date(2026, 1, 1)
"""First of the days used in counterexamples."""
ALIKE = 4
"""Maximum number of samples with the same result."""
SAMPLES = 40
"""Maximum number of samples of an expression."""
TRIED = 400
"""Maximum number of combinations of values on which an expression is evaluated."""
LONGEST = 64
"""Maximum length of a string that is made for a literal."""


class SampledValue(NamedTuple):
    """Values of the leaves of an expression, and the value that it then has."""

    operands: Row
    result: Value


def leaves_of(expr: ex.Expr) -> tuple[ex.ColumnRef | ex.Parameter, ...] | None:
    """Return the columns and parameters of an expression, or None if it cannot be evaluated alone.

    Examples
    --------
    >>> day, more = ex.ColumnRef(0, 1, "day", "DATE"), ex.Parameter("n", "INT")
    >>> [str(leaf) for leaf in leaves_of(ex.Call("date_add", (day, more), "DATE"))]
    ['day', ':n']
    >>> leaves_of(ex.Opaque("mine(day)", (day,), "BOOLEAN")) is None
    True
    """
    parts = tuple(ex.walk(expr))
    if any(isinstance(part, ex.Opaque | ex.Aggregate | ex.Subquery) for part in parts):
        return None
    return tuple(
        dict.fromkeys(part for part in parts if isinstance(part, ex.ColumnRef | ex.Parameter))
    )


@lru_cache(maxsize=1_000)
def samples_of(expr: ex.Expr, literals: tuple[Value, ...]) -> tuple[SampledValue, ...]:
    """Return samples of an expression: values of its leaves that are not NULL, and its value.

    Parameters
    ----------
    literals : tuple of Value
        Literals of the statement; samples near them, or with one of them as result, come first.

    Examples
    --------
    >>> year = ex.Call("year", (ex.ColumnRef(0, 0, "day", "DATE"),), "INT")
    >>> [str(sample.operands[0]) for sample in samples_of(year, (2024,)) if sample.result == 2024]
    ['2024-01-01', '2024-07-01']
    """
    leaves = leaves_of(expr)
    if not leaves:
        return ()
    own = (part.value for part in ex.walk(expr) if isinstance(part, ex.Const))
    near = tuple(dict.fromkeys(one for one in (*own, *literals) if one is not None))
    pools = [tuple(islice(_values(leaf.type, near), TRIED)) for leaf in leaves]
    most = max(2, int(TRIED ** (1 / len(pools))))
    found: dict[Value, list[SampledValue]] = {}
    for operands in islice(product(*(pool[:most] for pool in pools)), TRIED):
        with suppress(EvaluationError, IsolitmusError):
            result = _evaluated(expr, leaves, operands)
            if len(alike := found.setdefault(result, [])) < ALIKE:
                alike.append(SampledValue(operands, result))
    wanted = sorted(found, key=lambda result: result not in near)
    return tuple(islice(chain.from_iterable(found[one] for one in wanted), SAMPLES))


@lru_cache(maxsize=1_000)
def values_at(expr: ex.Expr, operands: tuple[Value, ...]) -> tuple[SampledValue, ...]:
    """Return the values of an expression with one leaf, for values of the leaf's type or NULL.

    Values for which the expression fails, or is not modelled, are left out.

    Examples
    --------
    >>> size = ex.Call("length", (ex.ColumnRef(0, 0, "name", "STRING"),), "INT")
    >>> [sample.result for sample in values_at(size, ("", "abc", None))]
    [0, 3, None]
    """
    leaves = leaves_of(expr)
    if leaves is None or len(leaves) != 1:
        return ()
    found = []
    for value in operands:
        with suppress(EvaluationError, IsolitmusError):
            found.append(SampledValue((value,), _evaluated(expr, leaves, (value,))))
    return tuple(found)


def _evaluated(
    expr: ex.Expr, leaves: Sequence[ex.ColumnRef | ex.Parameter], operands: Row
) -> Value:
    """Return the value of an expression whose leaves have these values."""
    given = dict(zip(leaves, operands, strict=True))
    return evaluate(_bound(expr, given), ())


def _bound(expr: ex.Expr, given: dict[ex.ColumnRef | ex.Parameter, Value]) -> ex.Expr:
    """Return an expression with values in place of its columns and parameters."""
    match expr:
        case ex.ColumnRef() | ex.Parameter():
            return ex.Const(given[expr], expr.type)
        case ex.Compare() | ex.Arithmetic() | ex.And() | ex.Or():
            left, right = _bound(expr.left, given), _bound(expr.right, given)
            return replace(expr, left=left, right=right)
        case ex.Not() | ex.Negate() | ex.In() | ex.IsNull():
            return replace(expr, operand=_bound(expr.operand, given))
        case ex.Call(operands=operands):
            return replace(expr, operands=tuple(_bound(each, given) for each in operands))
        case _:
            return expr


def _values(type_: Type, near: Sequence[Value]) -> Iterator[Value]:
    """Yield values of a type, each once, those near the literals first."""
    known = set()
    for value in chain(_near(type_, near), _simple(type_)):
        if value not in known:
            known.add(value)
            yield value


def _simple(type_: Type) -> Iterable[Value]:
    """Return simple values of a type."""
    match type_:
        case "STRING":
            return "a", "b", "c", "A", " a", "1", "2", ""
        case "BOOLEAN":
            return True, False
        case "DATE":
            return [DAY + timedelta(days=k) for k in range(28)]
        case "TIMESTAMP":
            return [datetime.combine(DAY + timedelta(days=k), time()) for k in range(28)]
        case "INT" | "BIGINT":
            return 1, 2, 3, 0, 5, 10, 50, 100, -1
        case "DOUBLE":
            return 1.0, 2.0, 0.5, 10.0, 100.0, 0.0, -1.0
        case _ if decimal_of(type_):
            return _decimals(type_, map(Decimal, (1, 2, 10, 100, 1000, 0, -1)))
        case _:
            return ()


def _near(type_: Type, literals: Iterable[Value]) -> Iterator[Value]:
    """Yield values of a type for which a function may have one of the literals as its value."""
    for literal in literals:
        match literal:
            case bool():
                pass
            case int() | float() | Decimal():
                yield from _near_number(type_, literal)
            case date():
                yield from _near_date(type_, literal)
            case str() if type_ == "STRING":
                yield from _near_text(literal)


def _near_number(type_: Type, number: float | Decimal) -> Iterator[Value]:
    """Yield values of a type that a number may describe: a number, a part of a date, a length."""
    some = number, number + 1, number - 1, number * 2, -number
    whole = int(number)
    match type_:
        case "DOUBLE":
            yield from map(float, some)
        case _ if type_ in INTEGERS:
            low, high = RANGES[type_]
            yield from (value for value in map(int, some) if low <= value <= high)
        case _ if decimal_of(type_):
            yield from _decimals(type_, (Decimal(str(one)) for one in some))
        case "STRING" if 0 < whole <= LONGEST:
            yield from ("a" * n for n in (whole, whole + 1, whole - 1))
        case "DATE" | "TIMESTAMP":
            for day in _near_days(whole):
                yield day if type_ == "DATE" else datetime.combine(day, time())


def _near_days(number: int) -> Iterator[date]:
    """Yield days of which a number may be the year, the month or the day."""
    if 1000 <= number <= 9998:
        yield from (date(year, month, 1) for year in (number, number + 1) for month in (1, 7))
    elif 0 < number < 13:
        yield from (date(DAY.year, number, 1), date(DAY.year, number, 2))
    if 0 < number < 32:
        yield DAY.replace(day=number)


def _near_date(type_: Type, moment: date) -> Iterator[Value]:
    """Yield values of a type near a date or a timestamp."""
    if not date(2, 1, 1) < date(moment.year, moment.month, moment.day) < date(9998, 1, 1):
        return
    days = [moment + timedelta(days=k) for k in (0, 1, -1, 31, -31)]
    match type_:
        case "DATE":
            yield from (date(day.year, day.month, day.day) for day in days)
        case "TIMESTAMP":
            yield from (
                day.replace(tzinfo=None)
                if isinstance(day, datetime)
                else datetime.combine(day, time())
                for day in days
            )
        case "STRING":
            yield from map(str, days)


def _near_text(text: str) -> Iterator[str]:
    """Yield strings near a literal, which may be a pattern of LIKE or of RLIKE."""
    plain = text.replace("%", "").replace("_", "a").strip("^$")
    for one in dict.fromkeys((text, plain)):
        if len(one) <= LONGEST:
            yield from (one, one.lower(), one.upper(), one + "a", "a" + one, f"a{one}a", f" {one} ")


def _decimals(type_: Type, numbers: Iterable[Decimal]) -> Iterator[Decimal]:
    """Yield numbers as decimals of a type, without those that do not fit."""
    for number in numbers:
        with suppress(EvaluationError):
            yield rescale(number, type_)
