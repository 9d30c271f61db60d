"""Why a transaction is in a set of a spec, or is not: the base sets that decide it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.spec import Binary, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.frame import Frame
    from isolitmus.model.spec import CatExpr

__all__ = ["membership"]

Grounds = tuple[bool, list[tuple[str, bool]]]
"""Whether the node is in a set, and the base sets that decide it."""


def membership(
    expr: CatExpr, node: int, frame: Frame, definitions: Mapping[str, CatExpr]
) -> list[tuple[str, bool]]:
    r"""The base sets, each with whether the node is in it, that make it a member or make it none.

    Of several that would do, as in a union, the first one.

    >>> from isolitmus.model.frame import Frame
    >>> frame = Frame(("a",), {}, {"NoData": 0b0, "ChangesData": 0b1})
    >>> quiet = Binary("\\", Name("NoData"), Name("ChangesData"))
    >>> membership(Unary("~", Name("Quiet")), 0, frame, {"Quiet": quiet})
    [('NoData', False)]
    """

    def why(part: CatExpr) -> Grounds:
        match part:
            case Name(name) if name in definitions:
                return why(definitions[name])
            case Name(name):
                inside = bool(frame.sets[name] >> node & 1)
                return inside, [(name, inside)]
            case Unary("~", operand):
                inside, reasons = why(operand)
                return not inside, reasons
            case Binary(op, left, right):
                one, other = why(left), why(right)
                if op == "\\":
                    other = not other[0], other[1]
                return _union(one, other) if op == "|" else _intersection(one, other)
        raise AssertionError(f"{part} is no set")

    return why(expr)[1]


def _intersection(one: Grounds, other: Grounds) -> Grounds:
    if one[0] and other[0]:
        return True, [*one[1], *(reason for reason in other[1] if reason not in one[1])]
    return other if one[0] else one


def _union(one: Grounds, other: Grounds) -> Grounds:
    if one[0] or other[0]:
        return one if one[0] else other
    return False, [*one[1], *(reason for reason in other[1] if reason not in one[1])]
