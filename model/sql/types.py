"""SQL types of columns and expressions, their coercion in ANSI mode, and evaluation errors.

Spark 4.2.0, AnsiTypeCoercion.scala (``findTightestCommonType``, ``findWiderTypeForString``),
DecimalPrecisionTypeCoercion.scala, and arithmetic.scala and DecimalType.scala
(``adjustPrecisionScale``) for quotients.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Iterable

Type = str
"""Element of TYPES, ``DECIMAL(p,s)``, or an opaque type of Spark."""
TYPES: tuple[Type, ...] = ("INT", "BIGINT", "STRING", "DATE", "BOOLEAN", "DOUBLE", "TIMESTAMP")
BASE_TYPES = TYPES[:5]
"""Types that every format supports."""
NAMED_TYPES = (*TYPES, "DECIMAL(10,2)")
"""Types that a message lists."""
INTEGERS = ("INT", "BIGINT")
SYNONYMS = {"INTEGER": "INT", "LONG": "BIGINT", "TIMESTAMPTZ": "TIMESTAMP", "TEXT": "STRING"}
DECIMAL = re.compile(r"(?:DECIMAL|DEC|NUMERIC)(?:\((\d{1,2})(?:,(\d{1,2}))?\))?")
OPAQUE = re.compile(
    r"(?i)(?P<name>STRUCT|ARRAY|MAP)\s*(?P<rest><.+>)"
    r"|(?P<plain>BINARY|VARIANT|FLOAT|REAL|SMALLINT|SHORT|TINYINT|BYTE|TIMESTAMP_NTZ"
    r"|(?:VAR)?CHAR\s*\(\s*\d+\s*\))"
)
"""Spark's other column types."""
OPAQUE_SYNONYMS = {"REAL": "FLOAT", "SHORT": "SMALLINT", "BYTE": "TINYINT"}
MOST_DIGITS = 38
LEAST_SCALE = 6
"""Minimum number of fractional digits of a decimal quotient."""
DIGITS = {"INT": (10, 0), "BIGINT": (20, 0)}
"""Precision and scale of the decimals that hold every value of an integer type."""


def type_named(text: str) -> Type | None:
    """Return the modelled type with this name, or None.

    Examples
    --------
    >>> type_named("decimal(10, 2)"), type_named("Integer"), type_named("decimal")
    ('DECIMAL(10,2)', 'INT', 'DECIMAL(10,0)')
    >>> type_named("ARRAY<INT>") is None
    True
    """
    name = "".join(text.upper().split())
    if (name := SYNONYMS.get(name, name)) in TYPES:
        return name
    found = DECIMAL.fullmatch(name)
    if found is None:
        return None
    precision, scale = int(found[1] or 10), int(found[2] or 0)
    return decimal_type(precision, scale) if scale <= precision else None


def column_type(text: str) -> Type | None:
    """Return the type of a column with this name, or None.

    It is a modelled type, or one of Spark's types about whose values nothing is known.

    Examples
    --------
    >>> column_type("decimal(10, 2)"), column_type("struct<a: INT>"), column_type("INTT")
    ('DECIMAL(10,2)', 'STRUCT<a: INT>', None)
    """
    if (found := type_named(text)) is not None:
        return found
    parts = OPAQUE.fullmatch(" ".join(text.split()))
    if parts is None or parts[0].count("<") != parts[0].count(">"):
        return None
    name = "".join((parts["name"] or parts["plain"]).upper().split())
    return f"{OPAQUE_SYNONYMS.get(name, name)}{parts['rest'] or ''}"


def is_opaque(type_: Type) -> bool:
    """Return whether nothing is known about a type's values except that they may be NULL.

    Examples
    --------
    >>> is_opaque("STRUCT<a: INT>"), is_opaque("INT")
    (True, False)
    """
    return OPAQUE.fullmatch(type_) is not None


def decimal_type(precision: int, scale: int) -> Type | None:
    """Return the decimal type with this precision and scale; None for a precision above 38."""
    return f"DECIMAL({precision},{scale})" if 1 <= precision <= MOST_DIGITS else None


@lru_cache(maxsize=1_000)
def decimal_of(type_: Type) -> tuple[int, int] | None:
    """Return the precision and scale of a decimal type, or None.

    Examples
    --------
    >>> decimal_of("DECIMAL(10,2)"), decimal_of("INT")
    ((10, 2), None)
    """
    found = DECIMAL.fullmatch(type_)
    return (int(found[1]), int(found[2])) if found is not None and found[2] is not None else None


def quotient_type(dividend: Type, divisor: Type) -> Type | None:
    """Return the type of a quotient of decimals; None if Spark would keep fewer than six fractional
    digits.

    Examples
    --------
    >>> quotient_type("DECIMAL(10,2)", "DECIMAL(10,2)")
    'DECIMAL(23,13)'
    >>> quotient_type("DECIMAL(20,2)", "DECIMAL(20,2)")
    'DECIMAL(38,18)'
    """
    (p, s), (q, t) = (decimal_of(type_) or (1, 0) for type_ in (dividend, divisor))
    whole, scale = p - s + t, max(LEAST_SCALE, s + q + 1)
    kept = min(scale, MOST_DIGITS - whole)
    return decimal_type(whole + kept, kept) if kept >= LEAST_SCALE else None


def is_number(type_: Type) -> bool:
    """Return whether the values of a type are numbers."""
    return type_ in INTEGERS or type_ == "DOUBLE" or decimal_of(type_) is not None


def common_type(types: Iterable[Type]) -> Type | None:
    """Return the type to which values of these types are cast when they are combined.

    Return None if Spark refuses the combination, or if decimals would need more than 38 digits.

    Examples
    --------
    >>> common_type(["INT", "BIGINT"]), common_type(["STRING", "INT"])
    ('BIGINT', 'BIGINT')
    >>> common_type(["STRING", "DATE"])
    'DATE'
    >>> common_type(["DECIMAL(10,2)", "INT"]), common_type(["DATE", "INT"])
    ('DECIMAL(12,2)', None)
    """
    texts_last = sorted(dict.fromkeys(types), key="STRING".__eq__)
    first, *rest = texts_last
    found: Type | None = first
    for other in rest:
        found = None if found is None else _wider(found, other)
    return found


def _wider(a: Type, b: Type) -> Type | None:
    """Return the common type of two types in ANSI mode; None if none exists or is supported."""
    if a == b:
        return a
    if "" in (a, b) or is_opaque(a) or is_opaque(b):  # their coercion is not modelled
        return None
    if "STRING" in (a, b):
        other = b if a == "STRING" else a
        if other in INTEGERS:
            return "BIGINT"
        return "DOUBLE" if is_number(other) else other
    if {a, b} == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP"
    if not (is_number(a) and is_number(b)):
        return None
    if "DOUBLE" in (a, b):
        return "DOUBLE"
    if a in INTEGERS and b in INTEGERS:
        return "BIGINT"
    (p, s), (q, t) = (DIGITS.get(x) or decimal_of(x) or (0, 0) for x in (a, b))
    scale = max(s, t)
    return decimal_type(max(p - s, q - t) + scale, scale)


RANGES = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-(2**63), 2**63 - 1)}
ARITHMETIC_ERROR = "SparkArithmeticException"
"""Exception that Spark raises for an overflow and for a division by zero."""
UNNAMED = "its own"
"""Placeholder for the class of an error about which nothing else is known."""


class EvaluationError(IsolitmusError):
    """Failure of a statement while it runs.

    ``exception`` is the class that Spark raises, ``error_class`` its error class, if the model
    knows it.
    """

    def __init__(self, exception: str, text: str, error_class: str | None = None) -> None:
        super().__init__(text)
        self.exception = exception
        self.error_class = error_class


def fit_integer(value: int, type_: Type, error: str = ARITHMETIC_ERROR) -> int:
    """Return the integer if the type holds it; otherwise raise the error of Spark's ANSI mode.

    Examples
    --------
    >>> fit_integer(2**31, "INT")
    Traceback (most recent call last):
    isolitmus.model.sql.types.EvaluationError: 2147483648 does not fit into INT
    """
    low, high = RANGES[type_]
    if not low <= value <= high:
        raise EvaluationError(error, f"{value} does not fit into {type_}")
    return value
