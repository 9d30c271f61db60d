"""Values, rows and bags of rows in SQL's order, and CAST with Spark's ANSI semantics.

Spark 4.2.0, Cast.scala. A cast of a value that the type does not hold is an error, not NULL. The
cast of a text that only some engines accept (``2026-1-2`` as a date) is undetermined.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Context, Decimal
from math import copysign, isnan
from typing import TYPE_CHECKING

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.sql.types import (
    ARITHMETIC_ERROR,
    INTEGERS,
    RANGES,
    EvaluationError,
    decimal_of,
    fit_integer,
    is_number,
    is_opaque,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.sql.types import Type

Value = int | str | bool | date | Decimal | float | None
"""Value; a timestamp is a datetime, which is a subclass of date."""
Row = tuple[Value, ...]
Rows = tuple[Row, ...]


def sort_rows(rows: Iterable[Row]) -> Rows:
    """Return the rows in SQL's ascending order, NULLs first (values of one column have one type).

    Examples
    --------
    >>> sort_rows([(2, "b"), (None, "c"), (2, "a")])
    ((None, 'c'), (2, 'a'), (2, 'b'))
    """
    return tuple(sorted(rows, key=_sql_order))


def _sql_order(row: Row) -> tuple[tuple[bool, Value], ...]:
    return tuple((False, 0) if v is None else (True, v) for v in row)


def literal(value: Value) -> str:
    """Return the value as a SQL literal.

    Examples
    --------
    >>> literal("it's"), literal(None), literal(date(2010, 1, 1))
    ("'it''s'", 'NULL', "DATE '2010-01-01'")
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"


def show_row(row: Row) -> str:
    """Return a row as readable text: ``(1, 0)``."""
    return f"({', '.join('NULL' if v is None else str(v) for v in row)})"


def to_json(rows: Rows) -> list[list[object]]:
    """Return the rows as JSON values: NULL as null; dates, timestamps and decimals as strings."""
    return [list(map(_json, row)) for row in rows]


def _json(value: Value) -> object:
    """Return a value for JSON; dates, timestamps and decimals become strings."""
    match value:
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return value


NULL_PARTITIONS = ("", "__HIVE_DEFAULT_PARTITION__")
"""Strings that become NULL in a partition column, with any command (observed on Delta 4.4.0;
TransactionalWrite.scala, convertEmptyToNullIfNeeded; DelayedCommitProtocol.scala, parsePartitions).
"""
LONGEST_FOLDER = 255
"""Maximum length of a folder's name in bytes."""
ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^" + "".join(map(chr, range(1, 32))))
"""Characters that Spark writes as three characters in the name of a partition's folder
(ExternalCatalogUtils.scala).
"""

WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?")
DATE_LIKE = re.compile(r"\s*[+-]?[0-9]{4,}(-.*|\s*)", re.DOTALL)
"""Pattern of a string that may be a date or timestamp in another spelling."""
TRUE_TEXTS, FALSE_TEXTS = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
SHORTEST = (1e-10, 1e16)
"""Range of numbers that all releases of Java write alike (17 and 25 were compared)."""
PLAIN = (-3, 7)
"""Range of powers of ten in which a number is written without an exponent."""
MIDNIGHT = time()
EXACT = Context(prec=80)
"""Context in which sums and products of decimals with 38 digits are exact."""


def is_castable(source: Type, target: Type) -> bool:
    """Return whether the model supports the CAST of one type to another; Spark refuses some other
    pairs.

    Examples
    --------
    >>> is_castable("STRING", "DATE"), is_castable("DATE", "INT")
    (True, False)
    >>> is_castable("DOUBLE", "DECIMAL(5,2)")
    False
    """
    if source == target:
        return True
    if is_opaque(source) or is_opaque(target):
        return False
    if "STRING" in (source, target):
        return True
    if {source, target} <= {"DATE", "TIMESTAMP"}:
        return True
    if "BOOLEAN" in (source, target):
        other = target if source == "BOOLEAN" else source
        return other in INTEGERS
    decimal_from_double = source == "DOUBLE" and decimal_of(target) is not None
    return is_number(source) and is_number(target) and not decimal_from_double


def cast_value(value: Value, target: Type) -> Value:
    """Return the value cast to another type, for which ``is_castable`` holds.

    Raises
    ------
    EvaluationError
        If the type does not hold the value.
    UndeterminedError
        If the result is not modelled.

    Examples
    --------
    >>> cast_value(" 12", "BIGINT"), cast_value("2026-01-02", "DATE")
    (12, datetime.date(2026, 1, 2))
    >>> cast_value(Decimal("2.345"), "DECIMAL(4,2)")
    Decimal('2.35')
    >>> cast_value("a", "INT")
    Traceback (most recent call last):
    isolitmus.model.sql.types.EvaluationError: 'a' is not of type INT
    """
    if value is None:
        return None
    if isinstance(value, str):
        return value if target == "STRING" else _from_text(value, target)
    if target == "STRING":
        return _text(value)
    if target == "BOOLEAN":
        return bool(value)
    if target == "DATE":
        return value.date() if isinstance(value, datetime) else value
    if target == "TIMESTAMP":
        assert isinstance(value, date)
        return value if isinstance(value, datetime) else datetime.combine(value, MIDNIGHT)
    assert isinstance(value, int | Decimal | float)
    if target == "DOUBLE":
        return float(value)
    if target in INTEGERS:
        return fit_integer(int(value), target)
    return rescale(Decimal(value), target)


def store_value(value: Value, type_: Type, error: str) -> Value:
    """Return the value as a column of a type stores it (store assignment).

    `error` is the exception class for a number that the column does not hold.
    """
    try:
        return value if isinstance(value, bool) and type_ == "BOOLEAN" else cast_value(value, type_)
    except EvaluationError as failure:
        if failure.exception != ARITHMETIC_ERROR:
            raise
        raise EvaluationError(error, f"{value} does not fit into {type_}") from None


def partition_value(column: str, value: Value, *, empty_kept: bool = False) -> Value:
    """Return the value that a partition column stores.

    Parameters
    ----------
    column : str
        Name of the column.
    value : Value
        Value that is written.
    empty_kept : bool
        Whether the writer keeps a string that is otherwise NULL (NULL_PARTITIONS).

    Raises
    ------
    UndeterminedError
        For a string whose fate depends on the file system; for NaN; for −0.0, whose partition
        differs from that of 0.0 although they are equal; and for a string in NULL_PARTITIONS with
        `empty_kept`.

    Examples
    --------
    >>> partition_value("region", ""), partition_value("region", " "), partition_value("n", 7)
    (None, ' ', 7)
    """
    if isinstance(value, float) and (isnan(value) or (not value and copysign(1, value) < 0)):
        raise UndeterminedError(f"{value} in partition column '{column}' is not modelled")
    if value in NULL_PARTITIONS:
        if empty_kept:
            raise UndeterminedError(
                f"'{value}' in partition column '{column}' is not modelled for delta-rs, which"
                " keeps the text, and which reads '' as NULL after a compaction, as Spark does at"
                " once; write NULL, or another text"
            )
        return None
    if not isinstance(value, str):
        return value
    text = value
    escaped = len(text.encode()) + 2 * sum(sign in ESCAPED for sign in text)
    if "\0" in text or len(column.encode()) + 1 + escaped > LONGEST_FOLDER:
        raise UndeterminedError(
            f"a text of {len(text)} characters in partition column '{column}' is more than the name"
            " of a folder holds on many file systems, or has a character that none does; whether"
            " it is written is not modelled"
        )
    return text


def rescale(value: Decimal, type_: Type) -> Decimal:
    """Return a decimal in its type, rounded half up; EvaluationError if it has too many digits."""
    precision, scale = decimal_of(type_) or (0, 0)
    found = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, context=EXACT)
    if abs(found) >= Decimal(10) ** (precision - scale):
        raise EvaluationError(ARITHMETIC_ERROR, f"{value} does not fit into {type_}")
    return found or abs(found)


def _text(value: Value) -> str:
    """Cast a value to STRING as Spark does."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            text = value.isoformat(" ")
            return text.rstrip("0") if value.microsecond else text
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case float():
            return _text_of_double(value)
    return str(value)


def _text_of_double(value: float) -> str:
    """Return a number as Java's Double.toString writes it: the shortest digits that identify it.

    Releases before 19 write more digits for some numbers outside of the bounds. The sign of a zero
    is not handled here.
    """
    if not SHORTEST[0] <= abs(value) < SHORTEST[1]:
        raise UndeterminedError(f"how the number {value!r} is written is up to the release of Java")
    sign = "-" if value < 0 else ""
    _, digits, exponent = Decimal(repr(abs(value))).normalize().as_tuple()
    assert isinstance(exponent, int)
    text, first = "".join(map(str, digits)), len(digits) + exponent - 1
    if 0 <= first < PLAIN[1]:
        text = text.ljust(first + 1, "0")
        return f"{sign}{text[: first + 1]}.{text[first + 1 :] or '0'}"
    if PLAIN[0] <= first < 0:
        return f"{sign}0.{'0' * (-first - 1)}{text}"
    return f"{sign}{text[0]}.{text[1:] or '0'}E{first}"


def _from_text(text: str, target: Type) -> Value:
    """Parse a string as a type; raise UndeterminedError for unsupported spellings."""
    bare = text.strip(" \t\r\n")
    if bare.strip() != bare or not bare.isascii():
        raise UndeterminedError(f"whether '{text}' is a {target} is up to what counts as blank")
    if target == "BOOLEAN":
        if bare.lower() in TRUE_TEXTS + FALSE_TEXTS:
            return bare.lower() in TRUE_TEXTS
    elif target in ("DATE", "TIMESTAMP"):
        return _moment(bare, target)
    elif target in INTEGERS:
        if WHOLE.fullmatch(bare):
            value = int(bare)
            low, high = RANGES[target]
            if low <= value <= high:
                return value
    elif NUMBER.fullmatch(bare):
        return _number(bare, target)
    elif target == "DOUBLE" and re.match(r"[+-]?([0-9.]|nan|inf)", bare, re.IGNORECASE):
        raise UndeterminedError(f"a number that is written '{text}' is not modelled")
    raise _no_value(text, target)


def _number(text: str, target: Type) -> Value:
    """Parse a number as DECIMAL or DOUBLE; raise UndeterminedError beyond the range of DOUBLE."""
    if target != "DOUBLE":
        return rescale(Decimal(text), target)
    value = float(text)
    if abs(value) == float("inf"):
        raise UndeterminedError(f"{text} is beyond the numbers that DOUBLE holds")
    return value


def _moment(text: str, target: Type) -> date:
    """Parse a DATE or TIMESTAMP; raise UndeterminedError for other spellings that resemble one."""
    form = DAY if target == "DATE" else MOMENT
    if form.fullmatch(text):
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise _no_value(text, target) from None
        return found if target == "TIMESTAMP" else found.date()
    if DATE_LIKE.fullmatch(text):
        raise UndeterminedError(
            f"'{text}' as a {target}: other spellings than YYYY-MM-DD and YYYY-MM-DD HH:MM:SS are"
            " not modelled"
        )
    raise _no_value(text, target)


def _no_value(text: str, target: Type) -> EvaluationError:
    """Return Spark's error for a string that is not a value of the type."""
    exception = (
        "SparkDateTimeException"
        if target in ("DATE", "TIMESTAMP")
        else "SparkRuntimeException"
        if target == "BOOLEAN"
        else "SparkNumberFormatException"
    )
    return EvaluationError(exception, f"'{text}' is not of type {target}")
