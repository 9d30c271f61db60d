"""Shapes of statements: what is left of them without the values of their literals.

Formulas of statements with the same shape differ only in these values. So they are built once, with
an unknown for each literal, and a question about one statement fixes the unknowns. What is
impossible for all values is impossible for each statement of the shape.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.jobs.workload import TEXTS
from isolitmus.model.sql import expression as ex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value

LINEAR = ("date_add", "timestamp_add", "datediff", "coalesce", "case")
"""Functions whose formulas have the same form for all values of their operands."""


class Literal(NamedTuple):
    """Literal of a statement: a value that is neither NULL nor a truth value."""

    value: Value
    type: Type


class _Place(NamedTuple):
    """Place of a literal in a shape; equal literals have the same number."""

    number: int
    kind: type
    type: Type


@dataclass(frozen=True)
class StatementShape:
    """Shape of a statement, and its literals in the order of their numbers."""

    key: tuple[object, ...]
    """Equal for statements that differ only in the values of their literals."""
    literals: tuple[Literal, ...]

    @property
    def texts(self) -> list[str]:
        """Literals that are strings."""
        return [value for value, _ in self.literals if isinstance(value, str)]


def shape_of(parts: Sequence[object]) -> StatementShape:
    """Return the shape of statements, conditions and other parts, taken together.

    A literal stays in the shape where its value decides the form of a formula: as a factor, a
    divisor, a pattern, or the operand of another function.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = {"t": Schema("t", (Column("id", "INT"),))}
    >>> one, two, twice = (
    ...     shape_of([read_statement(f"DELETE FROM t WHERE id {where}", t)])
    ...     for where in ("> 1", "> 2", "* 2 > 2")
    ... )
    >>> one.key == two.key, two.literals, twice.literals
    (True, (Literal(value=2, type='INT'),), ())
    """
    found: dict[Literal, bool] = {}
    for literal, free in _literals(parts, free=True):
        found[literal] = found.get(literal, True) and free
    numbers = {literal: k for k, literal in enumerate(one for one in found if found[one])}
    key = tuple(_without(part, numbers) for part in parts)
    return StatementShape(key, tuple(numbers))


def _literal(value: Value, type_: Type) -> Literal | None:
    """Return a value as a literal of which formulas only compare and add the number."""
    numbers = isinstance(value, int | date | str | Decimal) and not isinstance(value, bool)
    return Literal(value, type_) if numbers else None


def _literals(part: object, *, free: bool) -> Iterator[tuple[Literal, bool]]:
    """Yield the literals of a part, each with whether the form of the formula is the same for all
    values.
    """
    match part:
        case ex.Const(value, type_):
            if (found := _literal(value, type_)) is not None:
                yield found, free
            return
        case ex.In(operand, values):
            for value in values:
                if (found := _literal(value, operand.type)) is not None:
                    yield found, True
        case ex.Arithmetic(op=op):
            free = op in ("+", "-")
        case ex.Call(function=name):
            free = name in LINEAR
        case tuple() | list():
            pass
        case _:
            free = True
    for inner in _inside(part):
        yield from _literals(inner, free=free)


def _inside(part: object) -> Iterator[Any]:
    """Yield the parts of a part."""
    if isinstance(part, tuple | list):
        yield from part
    elif is_dataclass(part):
        yield from (getattr(part, f.name) for f in fields(part) if f.name not in TEXTS)


def _without(part: object, numbers: dict[Literal, int]) -> object:
    """Return a part as a hashable key, with the numbers of its free literals."""
    match part:
        case ex.Const(value, type_):
            return _place(value, type_, numbers)
        case ex.In(operand, values):
            listed = tuple(_place(value, operand.type, numbers) for value in values)
            return ex.In, _without(operand, numbers), listed
        case tuple() | list():
            return tuple(_without(inner, numbers) for inner in part)
        case dict():
            return tuple((name, _without(value, numbers)) for name, value in part.items())
    if is_dataclass(part):
        return type(part), *(_without(inner, numbers) for inner in _inside(part))
    return part if isinstance(part, str) else (type(part), part)


def _place(value: Value, type_: Type, numbers: dict[Literal, int]) -> object:
    """Return the place of a value in a shape: its number, or the value itself if it is not free."""
    number = numbers.get(Literal(value, type_))
    if number is None:
        return type(value), value, type_
    return _Place(number, type(value), type_)
