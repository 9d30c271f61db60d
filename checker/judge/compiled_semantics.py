"""Compiled graph semantics: a spec as a function from dependency graphs to bool.

It decides the same as ``checker.judge.graph_semantics.admits``, several times faster. A second
algebra over the same fold has functions of a graph as values, so the syntax tree of the spec is
walked only once, at compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.relation import Relation
from isolitmus.model.spec import Fold

if TYPE_CHECKING:
    from isolitmus.model.frame import Frame
    from isolitmus.model.spec import Axiom, CatExpr, Spec

Bits = Sequence[int]
Reading = Callable[["Frame"], Bits]
SetReading = Callable[["Frame"], int]


def compile_spec(spec: Spec) -> Callable[[Frame], bool]:
    """Return a fast predicate: the graph has no flaw and satisfies every axiom, without a silence.

    The graph must have the names that the spec needs; a KeyError names one that it lacks.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.language.parser import read
    >>> admits = compile_spec(read('"Mine" acyclic rw as order', "mine"))
    >>> admits(Frame(("a", "b"), {"rw": Relation.of(2, [(0, 1), (1, 0)])}, {}))
    False
    """
    fold = Fold(_Compiler(), spec.definitions)
    tests = [_test(axiom, fold.relation(axiom.expr)) for axiom in spec.demands]
    return lambda frame: not frame.flaws and all(test(frame) for test in tests)


def compile_presence(expr: CatExpr, definitions: Mapping[str, CatExpr]) -> Callable[[Frame], bool]:
    """Return a fast predicate: an expression has a pair, or a member, in a graph.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.model.spec import Name
    >>> has_edge = compile_presence(Name("rw"), {})
    >>> has_edge(Frame(("a", "b"), {"rw": Relation.of(2, [(0, 1)])}, {}))
    True
    """
    fold = Fold(_Compiler(), definitions)
    if expr.kind == "set":
        members = fold.members(expr)
        return lambda frame: members(frame) != 0
    reading = fold.relation(expr)
    return lambda frame: any(reading(frame))


def _test(axiom: Axiom, reading: Reading) -> Callable[[Frame], bool]:
    """Return an axiom as a function from a graph to whether the graph satisfies it."""
    match axiom.test:
        case "acyclic":
            return lambda frame: Relation(tuple(reading(frame))).acyclic()
        case "irreflexive":
            return lambda frame: not any(row >> i & 1 for i, row in enumerate(reading(frame)))
        case "empty":
            return lambda frame: not any(reading(frame))


@dataclass(frozen=True, slots=True)
class _IdentityReading:
    """Relation ``[S]``, kept apart because composition with it only masks rows or columns."""

    on: SetReading

    def __call__(self, frame: Frame) -> Bits:
        members = self.on(frame)
        return [members & 1 << i for i in range(len(frame.nodes))]


class _Compiler:
    """Algebra of functions of a graph: relations to bitset rows, sets to bitsets.

    Row i has bit j set if the pair (i, j) is in the relation; a set has bit i set if node i is in
    it.
    """

    def relation(self, name: str) -> Reading:
        return lambda frame: frame.relations[name].rows

    def members(self, name: str) -> SetReading:
        return lambda frame: frame.sets[name]

    def union(self, a: Reading, b: Reading) -> Reading:
        return lambda frame: [x | y for x, y in zip(a(frame), b(frame), strict=True)]

    def intersection(self, a: Reading, b: Reading) -> Reading:
        return lambda frame: [x & y for x, y in zip(a(frame), b(frame), strict=True)]

    def difference(self, a: Reading, b: Reading) -> Reading:
        return lambda frame: [x & ~y for x, y in zip(a(frame), b(frame), strict=True)]

    def compose(self, a: Reading, b: Reading) -> Reading:
        """Return the composition; next to an identity, a restriction to its set."""
        if isinstance(a, _IdentityReading):
            return _from(a.on, b)
        if isinstance(b, _IdentityReading):
            return _to(a, b.on)
        return lambda frame: (Relation(tuple(a(frame))) @ Relation(tuple(b(frame)))).rows

    def plus(self, a: Reading) -> Reading:
        return lambda frame: Relation(tuple(a(frame))).plus().rows

    def reflexive(self, a: Reading) -> Reading:
        return lambda frame: [row | 1 << i for i, row in enumerate(a(frame))]

    def inverse(self, a: Reading) -> Reading:
        return lambda frame: Relation(tuple(a(frame))).inverse().rows

    def identity(self, on: SetReading) -> Reading:
        return _IdentityReading(on)

    def set_union(self, a: SetReading, b: SetReading) -> SetReading:
        return lambda frame: a(frame) | b(frame)

    def set_intersection(self, a: SetReading, b: SetReading) -> SetReading:
        return lambda frame: a(frame) & b(frame)

    def set_difference(self, a: SetReading, b: SetReading) -> SetReading:
        return lambda frame: a(frame) & ~b(frame)

    def complement(self, a: SetReading) -> SetReading:
        return lambda frame: (1 << len(frame.nodes)) - 1 & ~a(frame)


def _from(on: SetReading, reading: Reading) -> Reading:
    """Return a relation restricted to pairs whose first node is in a set."""

    def rows(frame: Frame) -> Bits:
        members = on(frame)
        return [row if members >> i & 1 else 0 for i, row in enumerate(reading(frame))]

    return rows


def _to(reading: Reading, on: SetReading) -> Reading:
    """Return a relation restricted to pairs whose second node is in a set."""

    def rows(frame: Frame) -> Bits:
        members = on(frame)
        return [row & members for row in reading(frame)]

    return rows
