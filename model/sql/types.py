"""SQL's types, and values that their type does not hold.

The types of columns and expressions, and what Spark makes of two that meet (ANSI mode).

Spark 4.2.0, AnsiTypeCoercion.scala (``findTightestCommonType``, ``findWiderTypeForString``),
DecimalPrecisionTypeCoercion.scala, and arithmetic.scala and DecimalType.scala
(``adjustPrecisionScale``) for quotients.

What fails while a statement runs: values that their type does not hold.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ARITHMETIC_ERROR",
    "BASE_TYPES",
    "INTEGERS",
    "NAMED_TYPES",
    "RANGES",
    "TYPES",
    "UNNAMED",
    "EvaluationError",
    "Type",
    "column_type",
    "common_type",
    "decimal_of",
    "decimal_type",
    "fit_integer",
    "is_number",
    "is_opaque",
    "quotient_type",
    "type_named",
]

Type = str
"""One of TYPES, or ``DECIMAL(p,s)``."""
TYPES: tuple[Type, ...] = ("INT", "BIGINT", "STRING", "DATE", "BOOLEAN", "DOUBLE", "TIMESTAMP")
BASE_TYPES = TYPES[:5]
"""Those that every format has."""
NAMED_TYPES = (*TYPES, "DECIMAL(10,2)")
"""What a message says that there is."""
INTEGERS = ("INT", "BIGINT")
SYNONYMS = {"INTEGER": "INT", "LONG": "BIGINT", "TIMESTAMPTZ": "TIMESTAMP", "TEXT": "STRING"}
DECIMAL = re.compile(r"(?:DECIMAL|DEC|NUMERIC)(?:\((\d{1,2})(?:,(\d{1,2}))?\))?")
OPAQUE = re.compile(
    r"(?i)(?P<name>STRUCT|ARRAY|MAP)\s*(?P<rest><.+>)"
    r"|(?P<plain>BINARY|VARIANT|FLOAT|REAL|SMALLINT|SHORT|TINYINT|BYTE|TIMESTAMP_NTZ|(?:VAR)?CHAR\s*\(\s*\d+\s*\))"
)
"""Spark's other types of columns."""
OPAQUE_SYNONYMS = {"REAL": "FLOAT", "SHORT": "SMALLINT", "BYTE": "TINYINT"}
MOST_DIGITS = 38
LEAST_SCALE = 6
"""So many digits behind the point a quotient of decimals has at least."""
DIGITS = {"INT": (10, 0), "BIGINT": (20, 0)}
"""The decimals that hold every value of an integer type."""


def type_named(text: str) -> Type | None:
    """The type that a text names; None if there is none, or isolitmus does not know it.

    >>> type_named("decimal(10, 2)"), type_named("Integer"), type_named("decimal"), type_named("ARRAY<INT>")
    ('DECIMAL(10,2)', 'INT', 'DECIMAL(10,0)', None)
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
    """The type that a column may have: one that is modelled, or one of Spark's of whose values
    nothing is known; None if there is none.

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
    """Whether nothing is known of a type's values but that they may be NULL.

    >>> is_opaque("STRUCT<a: INT>"), is_opaque("INT")
    (True, False)
    """
    return OPAQUE.fullmatch(type_) is not None


def decimal_type(precision: int, scale: int) -> Type | None:
    """The type of decimals with so many digits, ``scale`` of them behind the point; None above
    38.
    """
    return f"DECIMAL({precision},{scale})" if 1 <= precision <= MOST_DIGITS else None


@lru_cache(maxsize=1_000)
def decimal_of(type_: Type) -> tuple[int, int] | None:
    """The precision and scale of a decimal type.

    >>> decimal_of("DECIMAL(10,2)"), decimal_of("INT")
    ((10, 2), None)
    """
    found = DECIMAL.fullmatch(type_)
    return (int(found[1]), int(found[2])) if found is not None and found[2] is not None else None


def quotient_type(dividend: Type, divisor: Type) -> Type | None:
    """The type of a quotient of decimals; None where Spark would keep fewer than six digits behind
    the point.

    >>> quotient_type("DECIMAL(10,2)", "DECIMAL(10,2)"), quotient_type("DECIMAL(20,2)", "DECIMAL(20,2)")
    ('DECIMAL(23,13)', 'DECIMAL(38,18)')
    """
    (p, s), (q, t) = (decimal_of(type_) or (1, 0) for type_ in (dividend, divisor))
    whole, scale = p - s + t, max(LEAST_SCALE, s + q + 1)
    kept = min(scale, MOST_DIGITS - whole)
    return decimal_type(whole + kept, kept) if kept >= LEAST_SCALE else None


def is_number(type_: Type) -> bool:
    """Whether its values are numbers."""
    return type_ in INTEGERS or type_ == "DOUBLE" or decimal_of(type_) is not None


def common_type(types: Iterable[Type]) -> Type | None:
    """The type to which values of these are cast where they meet; None where Spark refuses that, or
    the decimals would need more than 38 digits.

    >>> common_type(["INT", "BIGINT"]), common_type(["STRING", "INT"]), common_type(["STRING", "DATE"])
    ('BIGINT', 'BIGINT', 'DATE')
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
    if a == b:
        return a
    if "" in (a, b) or is_opaque(a) or is_opaque(b):  # what Spark makes of them is not modelled
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
"""What Spark raises for a number that is too large, and for a division by zero."""
UNNAMED = "its own"
"""In the place of the class of an error of which no more is known than that it is one."""


class EvaluationError(IsolitmusError):
    """A statement that fails while it runs; ``exception`` is the class that Spark raises,
    ``error_class`` its error class, where the model knows it.
    """

    def __init__(self, exception: str, text: str, error_class: str | None = None) -> None:
        super().__init__(text)
        self.exception = exception
        self.error_class = error_class


def fit_integer(value: int, type_: Type, error: str = ARITHMETIC_ERROR) -> int:
    """The integer, if the type holds it; else the error that Spark's ANSI mode raises.

    >>> fit_integer(2**31, "INT")
    Traceback (most recent call last):
    isolitmus.model.sql.types.EvaluationError: 2147483648 does not fit into INT
    """
    low, high = RANGES[type_]
    if not low <= value <= high:
        raise EvaluationError(error, f"{value} does not fit into {type_}")
    return value
