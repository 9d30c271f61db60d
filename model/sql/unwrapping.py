"""Comparisons of a cast column with a constant, as Spark's optimizer makes comparisons of the column of them.

UnwrapCastInBinaryComparison.scala: the constant is cast to the column's type, rounded half up; where
that changes it, ``<`` and ``<=`` change with it.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

from isolitmus.model.sql.casting import cast_value, rescaled
from isolitmus.model.sql.failing import EvaluationError
from isolitmus.model.sql.types import INTEGERS, decimal_of

if TYPE_CHECKING:
    from isolitmus.model.sql.expression import CompareOp
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value

__all__ = ["unwrapped", "unwraps"]


def unwraps(source: Type, target: Type) -> bool:
    """Whether Spark takes the cast of a column off where it is compared with a constant.

    >>> unwraps("INT", "DOUBLE"), unwraps("BIGINT", "DOUBLE"), unwraps("STRING", "BIGINT")
    (True, False, False)
    """
    if (source, target) == ("DATE", "TIMESTAMP"):
        return True
    if source in INTEGERS:
        narrow = source == "INT" or target != "DOUBLE"
        return narrow and (target == "DOUBLE" or decimal_of(target) is not None)
    return decimal_of(source) is not None and decimal_of(target) is not None


def unwrapped(op: CompareOp, value: Value, source: Type) -> tuple[CompareOp, Value] | None:
    """The comparison of a column of a type for one of its cast with a constant; None if the constant is no
    value of the column's type and ``op`` asks for just that, or the type does not hold it.

    >>> unwrapped(">", Decimal("1.555"), "DECIMAL(10,2)"), unwrapped(">", Decimal("1.5"), "INT")
    (('>=', Decimal('1.56')), ('>', 1))
    >>> unwrapped("=", Decimal("1.5"), "INT"), unwrapped("<", 2.0, "INT")
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
    if source in INTEGERS:
        assert isinstance(value, float | Decimal)
        return cast_value(Decimal(value).to_integral_value(ROUND_FLOOR), source)
    if isinstance(value, Decimal):
        return rescaled(value, source)
    assert isinstance(value, date)
    return cast_value(value, source)
