"""Which specs can only lose frames as frames grow, in nodes or in pairs: what a search may prune by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.spec import Binary, Bracket, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.spec import CatExpr, Spec

__all__ = ["increasing", "monotone", "pairwise"]


def monotone(spec: Spec) -> bool:
    r"""Whether more nodes can never turn forbidden into allowed.

    So it is if more nodes never take away a pair: each difference has on its right only what two
    nodes decide between themselves (no path through a third node). The premise is that the base
    relations and sets among old nodes stay as they were. Sufficient, not necessary.

    >>> from isolitmus.specs.language.parser import read
    >>> monotone(read(r'"A" acyclic (wr | rw) \ ([Blind] ; log) as order', "a"))
    True
    >>> monotone(read(r'"B" acyclic rw \ (wr ; wr) as order', "b"))
    False
    """
    return all(_grows(axiom.expr, spec.definitions) for axiom in spec.demands)


def pairwise(spec: Spec) -> bool:
    """Whether a frame is admitted just if the frame of any two of its nodes is.

    So it is if every axiom says of a relation that it is empty, and two nodes decide between
    themselves what is in it.

    >>> from isolitmus.specs.files.catalogue import protocol
    >>> pairwise(protocol("delta-write-serializable"))
    True
    >>> pairwise(protocol("delta-write-serializable-repaired"))
    False
    """
    return all(
        axiom.test == "empty" and _local(axiom.expr, spec.definitions) for axiom in spec.demands
    )


def increasing(spec: Spec) -> bool:
    """Whether more pairs on the same nodes and sets can never turn forbidden into allowed.

    So it is if no axiom uses a difference of relations.

    >>> from isolitmus.specs.files.catalogue import level
    >>> increasing(level("snapshot-isolation"))
    True
    """
    return all(_positive(axiom.expr, spec.definitions) for axiom in spec.demands)


def _positive(expr: CatExpr, definitions: Mapping[str, CatExpr]) -> bool:
    match expr:
        case _ if expr.kind == "set":
            return True
        case Name(name):
            return name not in definitions or _positive(definitions[name], definitions)
        case Binary(op, left, right):
            return op != "\\" and _positive(left, definitions) and _positive(right, definitions)
        case Unary(_, operand):
            return _positive(operand, definitions)
        case Bracket():
            return True


def _grows(expr: CatExpr, definitions: Mapping[str, CatExpr]) -> bool:
    """Whether more nodes never take a pair away."""
    match expr:
        case _ if expr.kind == "set":
            return True
        case Name(name):
            return name not in definitions or _grows(definitions[name], definitions)
        case Binary("\\", left, right):
            return _grows(left, definitions) and _local(right, definitions)
        case Binary(_, left, right):
            return _grows(left, definitions) and _grows(right, definitions)
        case Unary(_, operand):
            return _grows(operand, definitions)
        case Bracket():
            return True


def _local(expr: CatExpr, definitions: Mapping[str, CatExpr]) -> bool:
    """Whether no third node has a say in what holds between two."""
    match expr:
        case Name(name):
            return name not in definitions or _local(definitions[name], definitions)
        case Binary(";", left, right):
            steps = [e for e in (left, right) if not isinstance(e, Bracket)]
            return len(steps) < 2 and all(_local(e, definitions) for e in steps)
        case Binary(_, left, right):
            return _local(left, definitions) and _local(right, definitions)
        case Unary("?" | "^-1", operand):
            return _local(operand, definitions)
        case Unary():
            return False
        case Bracket():
            return True
