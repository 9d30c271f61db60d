"""Translation of SQL constants, casts and scalar functions into expressions.

Functions are recognized by the class that sqlglot gives them. Every implicit cast is recorded in
sqlglot's tree (``CAST_OF``), so that a translation of the text for an engine with other rules can
use it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.types import (
    INTEGERS,
    RANGES,
    EvaluationError,
    common_type,
    decimal_of,
    decimal_type,
    is_number,
    quotient_type,
    type_named,
)
from isolitmus.model.sql.values import cast_value, is_castable
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.source_text import DIALECT, refuse_other_arguments
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.model.sql.types import Type
    from isolitmus.specs.sql.source_text import SqlText

    Reading = Callable[[exp.Expr, Type], ex.Expr]

CAST_OF = "cast of"
"""Key in a node's ``meta``: source and target type of the cast that Spark applies to its value."""
GIVES = "gives"
"""Key in a node's ``meta``: type of a function's value, or of the operand of an explicit CAST."""
DIGITS = re.compile("0*([1-9][0-9]*|0)")
FRACTION = re.compile(r"([0-9]*)\.([0-9]*)")
SCIENTIFIC = re.compile(r"([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]{1,3}")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MOST_DIGITS = len(str(RANGES["BIGINT"][1]))


def read_number(place: SqlText, node: exp.Expr) -> ex.Const:
    """Return a numeric literal with its sign."""
    digits = node.this if isinstance(node, exp.Neg) else node
    sign = 1 if node is digits else -1
    text = str(digits.this)
    if found := DIGITS.fullmatch(text):
        if len(found[1]) <= MOST_DIGITS:
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
    """Return a CAST, or a typed constant such as ``DATE '2026-01-02'``."""
    target = type_named(node.to.sql(dialect="databricks"))
    if target is None:
        place.refuse(node, f"the type '{node.to.sql(dialect='databricks')}' is not modelled")
    node.meta[GIVES] = operand.type
    literal = isinstance(node.this, exp.Literal)
    if literal and node.this.is_string and target in ("DATE", "TIMESTAMP"):
        return _moment(place, node, str(node.this.this), target)
    return _cast(place, node, operand, target, fold=literal)


def coerce(place: SqlText, node: exp.Expr, value: ex.Expr, target: Type) -> ex.Expr:
    """Return the value in the type that its context expects: a constant, or a CAST."""
    node.meta.pop(CAST_OF, None)
    if value.type == target or (value.type in INTEGERS and target in INTEGERS):
        return value
    node.meta[CAST_OF] = (value.type, target)
    if isinstance(value, ex.Const) and isinstance(value.value, str) and target == "DATE":
        return _moment(place, node, value.value, target)
    return _cast(place, node, value, target, fold=True)


def operand_type(node: exp.Expr, value: ex.Expr) -> Type:
    """Return the type of an operand beside decimals: an integer literal has just its digits."""
    bare = node.unnest()
    written = isinstance(bare.this if isinstance(bare, exp.Neg) else bare, exp.Literal)
    if written and isinstance(value, ex.Const) and type(value.value) is int:
        return decimal_type(len(str(abs(value.value))), 0) or value.type
    return value.type


def _cast(place: SqlText, node: exp.Expr, value: ex.Expr, target: Type, *, fold: bool) -> ex.Expr:
    """Return the value cast to the type; `fold` evaluates the cast of a constant."""
    if isinstance(value, ex.Const) and value.value is None:
        return ex.Const(None, target)
    if place.plain:
        place.refuse(
            node, f"'{place.written(node)}' as {target}: casts are modelled for Spark only"
        )
    if not is_castable(value.type, target):
        place.refuse(
            node,
            f"'{place.written(node)}' is {value.type}; its cast to {target} is not modelled",
            "type",
        )
    if fold and isinstance(value, ex.Const):
        try:
            return ex.Const(cast_value(value.value, target), target)
        except UndeterminedError as error:
            place.refuse(node, error.problem, "opaque")
        except EvaluationError:
            pass
    return value if value.type == target else ex.Call("cast", (value,), target)


def _moment(place: SqlText, node: exp.Expr, text: str, target: Type) -> ex.Const:
    """Return the constant of a date or timestamp; other spellings, which engines read differently,
    are refused.
    """
    if target == "TIMESTAMP":
        with suppress(EvaluationError, UndeterminedError):
            found = cast_value(text, target)
            assert isinstance(found, datetime)
            return ex.Const(found, target)
        place.refuse(node, f"'{text}' is not a timestamp; write 'YYYY-MM-DD HH:MM:SS'")
    if DAY.fullmatch(text):
        with suppress(ValueError):
            return ex.Const(date.fromisoformat(text), "DATE")
    form = "DATE 'YYYY-MM-DD'" if isinstance(node, exp.Cast) else "'YYYY-MM-DD'"
    place.refuse(node, f"'{text}' is not a date; write {form}")


STRUCTURED = (exp.Bracket, exp.Dot, exp.Lambda, exp.Struct, exp.Array, exp.Explode, exp.FromJson)
"""Nodes of expressions on structures, arrays and maps, in addition to functions named after these.
"""
NAMED_AFTER = re.compile(
    r"(?=\w++\Z)(?:\w+_)?(?:ARRAY|MAP|STRUCT)(?:S|_\w+)?|TRANSFORM|FLATTEN|CARDINALITY"
)
RANDOM = {
    "RAND", "RANDOM", "RANDN", "RANDSTR", "UUID", "SHUFFLE", "UNIFORM",
    "MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME",
    "INPUT_FILE_BLOCK_START", "INPUT_FILE_BLOCK_LENGTH",
}  # fmt: skip
"""Functions that may return different values for equal operands."""


CALLED = re.compile(r"\b\w++(?=\s*+\()")


@cache
def is_random(text: str) -> bool:
    """Return whether an expression may change for equal column values, or names where a row is
    stored.

    Examples
    --------
    >>> is_random("rand() < 0.5"), is_random("_metadata.file_name = 'a'"), is_random("brand = 'a'")
    (True, True, False)
    """
    tree = _expression(text)
    if tree is None:
        return any(name.upper() in RANDOM for name in CALLED.findall(text))
    return any(
        column.name == "_metadata" for column in tree.find_all(exp.Identifier, exp.Column)
    ) or any(name in RANDOM for name in _functions(tree))


@cache
def is_nondeterministic(text: str) -> bool:
    """Return whether Spark certainly considers an expression nondeterministic.

    This is so if it calls a nondeterministic function and no function of a user.

    Examples
    --------
    >>> texts = "round(id * rand())", "mine(rand())", "_metadata.file_name = 'a'"
    >>> [is_nondeterministic(text) for text in texts]
    [True, False, False]
    """
    tree = _expression(text)
    if tree is None or not RANDOM.intersection(_functions(tree)):
        return False
    return all(call.name.upper() in RANDOM for call in tree.find_all(exp.Anonymous))


@cache
def is_complex(text: str) -> bool:
    """Return whether the syntax shows structures, arrays, maps or nondeterminism.

    Examples
    --------
    >>> texts = "map('a', v)['a'] = 1", "s.t.u = 1 AND uuid() = n", "mine(v) = 1", "LIMIT 3"
    >>> [is_complex(text) for text in texts]
    [True, True, False, True]
    """
    tree = _expression(text)
    if tree is None:  # a part of a query, hence of a subquery
        return True
    structured = tree.find(*STRUCTURED) is not None
    return structured or is_random(text) or any(map(NAMED_AFTER.fullmatch, _functions(tree)))


def _expression(text: str) -> exp.Expr | None:
    """Return the tree of an expression, or None for a part of a query that is none, such as its
    LIMIT.
    """
    try:
        return parse_one(text, DIALECT)
    except SqlglotError:
        return None


def _functions(tree: exp.Expr) -> Iterator[str]:
    """Yield the names of the functions that an expression calls."""
    for node in tree.find_all(exp.Func):
        yield (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper()


class Signature(NamedTuple):
    """Signature of a function with fixed operand types."""

    name: str
    """Name in ``model.sql.evaluation``."""
    operands: Mapping[str, Type]
    """Types of its operands, by sqlglot's argument names."""
    gives: Type
    """Type of its value."""
    optional: tuple[str, ...] = ()
    """Operands that may be missing."""
    fixed: tuple[str, ...] = ()
    """Arguments that sqlglot always fills in."""


SIGNATURES: Mapping[type[exp.Expr], Signature] = {
    exp.Upper: Signature("upper", {"this": "STRING"}, "STRING"),
    exp.Lower: Signature("lower", {"this": "STRING"}, "STRING"),
    exp.Length: Signature("length", {"this": "STRING"}, "INT"),
    exp.Trim: Signature("trim", {"this": "STRING"}, "STRING"),
    exp.Substring: Signature(
        "substring",
        {"this": "STRING", "start": "INT", "length": "INT"},
        "STRING",
        optional=("length",),
    ),
    exp.Replace: Signature(
        "replace", {"this": "STRING", "expression": "STRING", "replacement": "STRING"}, "STRING"
    ),
    exp.Year: Signature("year", {"this": "DATE"}, "INT"),
    exp.Month: Signature("month", {"this": "DATE"}, "INT"),
    exp.Day: Signature("day", {"this": "DATE"}, "INT"),
    exp.TsOrDsAdd: Signature(
        "date_add", {"this": "DATE", "expression": "INT"}, "DATE", fixed=("unit",)
    ),
    exp.DateDiff: Signature(
        "datediff", {"this": "DATE", "expression": "DATE"}, "INT", fixed=("unit",)
    ),
}


SECONDS = {"DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}
"""Length of the units of intervals; days have 24 hours, as the session's time zone is UTC."""
LONGEST = (2**63 - 1) // 1_000_000
"""Longest interval in Spark, in seconds."""
DIGESTS = {"256": "sha256", "0": "sha256"}
"""Digests of sha2 by number of bits, as far as DuckDB has them as well."""
ATOM = r"(?:[\w ,:;@=/%#!~'\"<>-]|\.|\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_.])+\])[*+?]?"
ALIKE = re.compile(rf"\^?(?:{ATOM}|\((?:{ATOM}|\|)+\)[*+?]?|\|)*\$?", re.ASCII)
"""Regular expressions that mean the same in Java, DuckDB and Python, for texts of one line."""


def unify_types(
    place: SqlText, node: exp.Expr, nodes: Sequence[exp.Expr], values: Sequence[ex.Expr]
) -> tuple[Type, list[ex.Expr]]:
    """Return the common type of values, and the values cast to it; refuse them if there is none."""
    types = [value.type for value in values if not is_untyped_null(value)]
    target = common_type(types) if types else values[0].type
    if target is None:
        named = " with ".join(dict.fromkeys(types))
        place.refuse(
            node,
            f"'{place.written(node)}' compares {named}; Spark's comparison of the two is not"
            " modelled",
            "type",
        )
    return target, [
        ex.Const(None, target) if is_untyped_null(value) else coerce(place, part, value, target)
        for part, value in zip(nodes, values, strict=True)
    ]


def decimal_operand(type_: Type) -> Type:
    """Return the decimal type of an operand beside decimals.

    Examples
    --------
    >>> decimal_operand("INT"), decimal_operand("DECIMAL(5,2)")
    ('DECIMAL(10,0)', 'DECIMAL(5,2)')
    """
    return common_type((type_, "DECIMAL(1,0)")) or type_


def is_untyped_null(value: ex.Expr) -> bool:
    """Return whether a value is a NULL that takes the type of its context."""
    return isinstance(value, ex.Const) and value.value is None


class FunctionReader:
    """Translator of one function; `read` translates its operands."""

    def __init__(self, place: SqlText, read: Reading) -> None:
        self.place, self.read = place, read

    def function(self, node: exp.Expr, null: Type) -> ex.Expr | None:
        """Return the expression of a function, or None for any other node."""
        found = None if self.place.plain else self._function(node, null)
        if found is not None:
            node.meta[GIVES] = found.type
        return found

    def _function(self, node: exp.Expr, null: Type) -> ex.Expr | None:
        """Translate a scalar function, or return None if it is unsupported."""
        if type(node) in SIGNATURES:
            return self.signed(node, SIGNATURES[type(node)])
        match node:
            case exp.Like():
                refuse_other_arguments(self.place, node, "this", "expression", "negate")
                return ex.Not(self.like(node)) if node.args.get("negate") else self.like(node)
            case exp.Case():
                return self.case(node, null)
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                refuse_other_arguments(self.place, node, "this", "expressions", "ignore_nulls")
                return self.several(type(node).__name__.lower(), node, null)
            case exp.Concat() | exp.DPipe():
                parts = (
                    node.expressions
                    if isinstance(node, exp.Concat)
                    else [node.this, node.expression]
                )
                texts = [self.wanted(part, "STRING") for part in parts]
                return ex.Call("concat", tuple(texts), "STRING")
            case exp.TsOrDsToDate():
                refuse_other_arguments(self.place, node, "this")
                return self.wanted(node.this, "DATE")
            case exp.MD5() | exp.SHA() | exp.SHA2():
                refuse_other_arguments(self.place, node, "this", "length")
                return self.digest(node)
            case exp.RegexpLike():
                return self.matches(node)
            case exp.StartsWith() | exp.EndsWith() | exp.Contains():
                refuse_other_arguments(self.place, node, "this", "expression")
                return self.within(node)
            case exp.Abs():
                operand = self.number(node.this)
                return ex.Call("abs", (operand,), operand.type)
            case exp.Div():
                return self.divided(node)
        return None

    def signed(self, node: exp.Expr, signature: Signature) -> ex.Expr:
        """Translate a function with a fixed signature; refuse a missing operand."""
        refuse_other_arguments(self.place, node, *signature.operands, *signature.fixed)
        unit = node.args.get("unit")
        if unit is not None and unit.name.upper() != "DAY":
            self.place.refuse(node, f"'{self.place.written(node)}' {OUTSIDE}", "opaque")
        operands = []
        for key, type_ in signature.operands.items():
            part = node.args.get(key)
            if part is not None:
                operands.append(self.wanted(part, type_))
            elif key not in signature.optional:
                self.place.refuse(node, f"{signature.name} wants {', '.join(signature.operands)}")
        return ex.Call(signature.name, tuple(operands), signature.gives)

    def wanted(self, node: exp.Expr, type_: Type) -> ex.Expr:
        """Return an operand in the expected type; only implicit casts of Spark are applied."""
        value = self.read(node, type_)
        source = value.type
        casts = type_ == "STRING" or source == "STRING" or {source, type_} <= {"DATE", "TIMESTAMP"}
        if source != type_ and not casts:
            self.place.refuse(
                node, f"'{self.place.written(node)}' is {source}; expected {type_} here", "type"
            )
        return coerce(self.place, node, value, type_)

    def number(self, node: exp.Expr) -> ex.Expr:
        """Translate an operand; refuse one that is not numeric."""
        value = self.read(node, "INT")
        if not is_number(value.type):
            self.place.refuse(
                node, f"'{self.place.written(node)}' is {value.type}; expected a number", "type"
            )
        return value

    def like(self, node: exp.Like) -> ex.Expr:
        """Translate LIKE; refuse a pattern that is not constant or has an escape."""
        subject, pattern = self.wanted(node.this, "STRING"), self.wanted(node.expression, "STRING")
        if not isinstance(pattern, ex.Const) or "\\" in str(pattern.value):
            self.place.refuse(node, "LIKE takes a text without \\ as its pattern", "opaque")
        return ex.Call("like", (subject, pattern), "BOOLEAN")

    def case(self, node: exp.Case, null: Type) -> ex.Expr:
        """Translate CASE WHEN to a call: conditions and results in turn, then the default."""
        refuse_other_arguments(self.place, node, "ifs", "default")
        whens = []
        for part in node.args["ifs"]:
            whens.append(self.read(part.this, "BOOLEAN"))
            if whens[-1].type != "BOOLEAN":
                problem = f"'{whens[-1]}' is {whens[-1].type}; expected a condition"
                self.place.refuse(part.this, problem, "type")
        other = node.args.get("default")
        nodes = [part.args["true"] for part in node.args["ifs"]]
        nodes += [] if other is None else [other]
        type_, thens = unify_types(self.place, node, nodes, [self.read(n, null) for n in nodes])
        last = thens.pop() if other is not None else ex.Const(None, type_)
        operands = [part for pair in zip(whens, thens, strict=True) for part in pair]
        return ex.Call("case", (*operands, last), type_)

    def several(self, name: str, node: exp.Expr, null: Type) -> ex.Expr:
        """Translate COALESCE, GREATEST or LEAST, with operands of one type."""
        nodes = [node.this, *node.expressions]
        type_, values = unify_types(
            self.place, node, nodes, [self.read(part, null) for part in nodes]
        )
        return ex.Call(name, tuple(values), type_)

    def divided(self, node: exp.Div) -> ex.Expr:
        """Return a quotient: of DOUBLEs, or of decimals if an operand is one and none is DOUBLE."""
        parts = (node.this, node.expression)
        values = list(map(self.number, parts))
        types = {value.type for value in values}
        exact = "DOUBLE" not in types and any(decimal_of(type_) for type_ in types)
        wanted = [
            decimal_operand(operand_type(part, value)) if exact else "DOUBLE"
            for part, value in zip(parts, values, strict=True)
        ]
        found = quotient_type(*wanted) if exact else "DOUBLE"
        if found is None:
            problem = f"a quotient of decimals with fewer than 6 decimal places {OUTSIDE}"
            self.place.refuse(node, problem, "opaque")
        both = [
            coerce(self.place, part, value, type_)
            for part, value, type_ in zip(parts, values, wanted, strict=True)
        ]
        return ex.Call("divide", tuple(both), found)

    def text(self, node: exp.Expr) -> ex.Expr:
        """Return an operand that must be STRING already: Spark applies no implicit cast here."""
        value = self.read(node, "STRING")
        if value.type != "STRING":
            problem = f"'{self.place.written(node)}' is {value.type}; expected STRING here"
            self.place.refuse(node, problem, "type")
        return value

    def within(self, node: exp.Expr) -> ex.Expr:
        """Return startswith (which Spark's optimizer turns into LIKE), endswith or contains."""
        texts = [self.text(part) for part in (node.this, node.expression)]
        if not isinstance(node, exp.StartsWith):
            return ex.Call(type(node).__name__.lower(), tuple(texts), "BOOLEAN")
        first = texts[1].value if isinstance(texts[1], ex.Const) else None
        if not isinstance(first, str) or not first or {"%", "_", "\\"} & set(first):
            self.place.refuse(node, "startswith takes a text without % _ and \\", "opaque")
        return ex.Call("like", (texts[0], ex.Const(f"{first}%", "STRING")), "BOOLEAN")

    def digest(self, node: exp.Expr) -> ex.Expr:
        """Return ``md5``, ``sha1``, or ``sha2`` with a number of bits."""
        length = node.args.get("length")
        bits = "256" if length is None else length.name
        plain = {"MD5": "md5", "SHA": "sha1"}
        name = plain.get(type(node).__name__) or DIGESTS.get(bits)
        if name is None:
            self.place.refuse(
                node, f"sha2 with other bits than {', '.join(DIGESTS)} {OUTSIDE}", "opaque"
            )
        return ex.Call("digest", (self.text(node.this), ex.Const(name, "STRING")), "STRING")

    def matches(self, node: exp.Expr) -> ex.Expr:
        """Translate RLIKE; refuse patterns beyond the supported regular expressions."""
        refuse_other_arguments(self.place, node, "this", "expression")
        subject, pattern = self.wanted(node.this, "STRING"), self.text(node.expression)
        said = pattern.value if isinstance(pattern, ex.Const) else None
        if not (isinstance(said, str) and ALIKE.fullmatch(said)):
            problem = (
                "of a regular expression letters, digits, . * + ? ^ $ | ( ) and sets are modelled"
            )
            self.place.refuse(node, problem, "opaque")
        return ex.Call("rlike", (subject, pattern), "BOOLEAN")

    def date_sum(self, node: exp.Expr, left: ex.Expr, right: ex.Expr) -> ex.Expr:
        """Return the sum of a date and a number of days, or their difference."""
        day, days = left, right
        if isinstance(node, exp.Add) and right.type == "DATE":
            day, days = right, left
        if day.type != "DATE" or days.type != "INT":
            self.place.refuse(
                node, f"'{self.place.written(node)}': days are added to a DATE", "type"
            )
        if isinstance(node, exp.Sub):
            days = (
                ex.Const(-days.value, "INT")
                if isinstance(days, ex.Const) and isinstance(days.value, int)
                else ex.Negate(days, "INT")
            )
        node.meta[GIVES] = "DATE"
        return ex.Call("date_add", (day, days), "DATE")

    def moved(self, node: exp.Expr) -> ex.Expr:
        """Return the sum of a date or timestamp and an INTERVAL; whole days keep a date a date."""
        part, count = node.this, node.expression
        if isinstance(node, exp.Add) and isinstance(part, exp.Interval):
            part, count = count, part
        unit = count.text("unit").upper().removesuffix("S")
        text = count.this.name if count.this is not None else ""
        if unit not in SECONDS or not text.isdecimal() or int(text) * SECONDS[unit] > LONGEST:
            problem = f"an interval of anything but days, hours, minutes and seconds {OUTSIDE}"
            self.place.refuse(node, problem, "opaque")
        many = -int(text) if isinstance(node, exp.Sub) else int(text)
        moment = self.read(part, "TIMESTAMP")
        if moment.type not in ("DATE", "TIMESTAMP"):
            problem = f"'{self.place.written(node)}': an interval is added to a DATE or TIMESTAMP"
            self.place.refuse(node, problem, "type")
        if moment.type == "DATE" and unit == "DAY":
            found = ex.Call("date_add", (moment, ex.Const(many, "INT")), "DATE")
        else:
            long = ex.Const(many * SECONDS[unit] * 1_000_000, "BIGINT")
            since = coerce(self.place, part, moment, "TIMESTAMP")
            found = ex.Call("timestamp_add", (since, long), "TIMESTAMP")
        node.meta[GIVES] = found.type
        return found
