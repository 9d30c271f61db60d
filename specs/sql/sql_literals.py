"""Read the constants of an expression, and what Spark makes of a value where another type is wanted.

Every implicit cast is written into the tree that sqlglot has made (``CAST_OF``), so that whoever translates
the author's text for an engine with other rules has it, too.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.casting import cast_value, castable
from isolitmus.model.sql.failing import RANGES, EvaluationError
from isolitmus.model.sql.types import INTEGERS, decimal_type, type_named

if TYPE_CHECKING:
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.source_text import SqlText

__all__ = ["CAST_OF", "GIVES", "coerced", "explicit_cast", "number", "operand_type"]

CAST_OF = "cast of"
"""In a node's ``meta``: the types from and to which Spark casts its value where it stands."""
GIVES = "gives"
"""In a node's ``meta``: the type of a function's value, and of what an explicit CAST is of."""
DIGITS = re.compile("0*([0-9]+)")
FRACTION = re.compile(r"([0-9]*)\.([0-9]*)")
SCIENTIFIC = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,3}")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LONGEST = len(str(RANGES["BIGINT"][1]))


def number(place: SqlText, node: exp.Expr) -> ex.Const:
    """A number as it is written, its sign with it."""
    digits = node.this if isinstance(node, exp.Neg) else node
    sign = 1 if node is digits else -1
    text = str(digits.this)
    if found := DIGITS.fullmatch(text):
        if len(found[1]) <= LONGEST:
            value = int(found[1]) * sign
            for type_ in INTEGERS:
                if RANGES[type_][0] <= value <= RANGES[type_][1]:
                    return ex.Const(value, type_)
        place.refuse(node, f"{text} does not fit into BIGINT")
    if found := FRACTION.fullmatch(text):
        whole, behind = found[1].lstrip("0"), found[2]
        type_of = decimal_type(max(len(whole) + len(behind), 1), len(behind))
        if type_of is not None:
            return ex.Const(Decimal(text) * sign, type_of)
    elif SCIENTIFIC.fullmatch(text) and abs(float(text)) != float("inf"):
        return ex.Const(float(text) * sign, "DOUBLE")
    place.refuse(node, f"number '{text}' is none that isolitmus models")


def explicit_cast(place: SqlText, node: exp.Cast, operand: ex.Expr) -> ex.Expr:
    """A CAST, or what is a constant of a type: ``DATE '2026-01-02'``."""
    target = type_named(node.to.sql(dialect="databricks"))
    if target is None:
        place.refuse(node, f"the type '{node.to.sql(dialect='databricks')}' is not modelled")
    node.meta[GIVES] = operand.type
    literal = isinstance(node.this, exp.Literal)
    if literal and node.this.is_string and target in ("DATE", "TIMESTAMP"):
        return _moment(place, node, str(node.this.this), target)
    return _cast(place, node, operand, target, fold=literal)


def coerced(place: SqlText, node: exp.Expr, value: ex.Expr, target: Type) -> ex.Expr:
    """The value where another type is wanted: a constant of it, or its CAST."""
    node.meta.pop(CAST_OF, None)
    if value.type == target or (value.type in INTEGERS and target in INTEGERS):
        return value
    node.meta[CAST_OF] = (value.type, target)
    if isinstance(value, ex.Const) and isinstance(value.value, str) and target == "DATE":
        return _moment(place, node, value.value, target)
    return _cast(place, node, value, target, fold=True)


def operand_type(node: exp.Expr, value: ex.Expr) -> Type:
    """The type of an operand beside decimals: an integer that is written out, and is no CAST, has just its digits."""
    bare = node.unnest()
    written = isinstance(bare.this if isinstance(bare, exp.Neg) else bare, exp.Literal)
    if written and isinstance(value, ex.Const) and type(value.value) is int:
        return decimal_type(len(str(abs(value.value))), 0) or value.type
    return value.type


def _cast(place: SqlText, node: exp.Expr, value: ex.Expr, target: Type, *, fold: bool) -> ex.Expr:
    if isinstance(value, ex.Const) and value.value is None:
        return ex.Const(None, target)
    if place.plain:
        place.refuse(
            node, f"'{place.written(node)}' as {target}: casts are modelled for Spark only"
        )
    if not castable(value.type, target):
        place.refuse(
            node,
            f"'{place.written(node)}' is {value.type}; what it is as {target} is not modelled",
            "type",
        )
    if fold and isinstance(value, ex.Const):
        with suppress(EvaluationError, UndeterminedError):
            return ex.Const(cast_value(value.value, target), target)
    return value if value.type == target else ex.Call("cast", (value,), target)


def _moment(place: SqlText, node: exp.Expr, text: str, target: Type) -> ex.Const:
    """The date or timestamp of a text: other spellings are not the same everywhere, or none."""
    if target == "TIMESTAMP":
        with suppress(EvaluationError, UndeterminedError):
            found = cast_value(text, target)
            assert isinstance(found, datetime)
            return ex.Const(found, target)
        place.refuse(node, f"'{text}' is no timestamp; write 'YYYY-MM-DD HH:MM:SS'")
    if DAY.fullmatch(text):
        with suppress(ValueError):
            return ex.Const(date.fromisoformat(text), "DATE")
    form = "DATE 'YYYY-MM-DD'" if isinstance(node, exp.Cast) else "'YYYY-MM-DD'"
    place.refuse(node, f"'{text}' is no date; write {form}")
