"""The graph reading of specs: judge one frame, over bitsets.

A frame is determined, so binders are of no account here: who has a history with unobserved orders
asks ``checker.reading.histories``. Nodes that a commit loop compares are numbered in the order of their
commits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.reading.membership import membership
from isolitmus.checker.reading.witness import Reasons, serial_order, shortest_cycle
from isolitmus.checker.telling.words import member
from isolitmus.model.relation import Relation, bits
from isolitmus.model.spec import Binary, Bracket, Fold
from isolitmus.model.verdict import Allowed, Forbidden, Needs, Verdict, Violation

if TYPE_CHECKING:
    from isolitmus.model.frame import Edge, Frame
    from isolitmus.model.spec import Axiom, Expr, Spec

__all__ = [
    "BitsetAlgebra",
    "admits",
    "conflict",
    "first_conflict",
    "judge",
    "labels",
    "missing",
    "violations",
]


@dataclass(frozen=True, slots=True)
class BitsetAlgebra:
    """Relations as bitset rows and sets as bitsets, named as in one frame."""

    frame: Frame

    def relation(self, name: str) -> Relation:
        return self.frame.relations[name]

    def members(self, name: str) -> int:
        return self.frame.sets[name]

    def union(self, a: Relation, b: Relation) -> Relation:
        return a | b

    def intersection(self, a: Relation, b: Relation) -> Relation:
        return a & b

    def difference(self, a: Relation, b: Relation) -> Relation:
        return a - b

    def compose(self, a: Relation, b: Relation) -> Relation:
        return a @ b

    def plus(self, a: Relation) -> Relation:
        return a.plus()

    def reflexive(self, a: Relation) -> Relation:
        return a.reflexive()

    def inverse(self, a: Relation) -> Relation:
        return a.inverse()

    def identity(self, on: int) -> Relation:
        return Relation.identity(len(self.frame.nodes), on)

    def set_union(self, a: int, b: int) -> int:
        return a | b

    def set_intersection(self, a: int, b: int) -> int:
        return a & b

    def set_difference(self, a: int, b: int) -> int:
        return a & ~b

    def complement(self, a: int) -> int:
        return (1 << len(self.frame.nodes)) - 1 & ~a


def judge(frame: Frame, spec: Spec) -> Verdict:
    """What a spec says of a frame.

    ``Allowed`` with an order of all transactions that respects the acyclic axioms, ``Forbidden`` with
    one violation for each broken axiom, or ``Needs`` the names that the frame does not have.

    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.cat import read
    >>> missed = Relation.of(2, [(0, 1), (1, 0)])
    >>> frame = Frame(("a", "b"), {"rw": missed}, {})
    >>> verdict = judge(frame, read('"Mine" acyclic rw as order', "mine"))
    >>> [(edge.source, edge.kind, edge.target) for edge in verdict.violations[0].cycle]
    [('a', 'rw', 'b'), ('b', 'rw', 'a')]
    >>> print(judge(frame, read('"Mine" acyclic rw | log as order', "mine")))
    needs log
    """
    lacking = missing(frame, spec)
    if lacking:
        return Needs(lacking)
    fold = _fold(frame, spec)
    reasons = Reasons(frame, fold, spec.definitions)
    broken = tuple(
        v for v in (_violation(axiom, fold, reasons, frame, spec) for axiom in spec.axioms) if v
    )
    if broken:
        return Forbidden(broken)
    orders = [fold.relation(axiom.expr) for axiom in spec.axioms if axiom.test == "acyclic"]
    order = serial_order(len(frame.nodes), orders)
    return Allowed(tuple(frame.nodes[i] for i in order if i < frame.transactions))


def missing(frame: Frame, spec: Spec) -> tuple[str, ...]:
    """The names that the spec uses and the frame does not have, sorted."""
    return tuple(sorted(spec.needs - frame.relations.keys() - frame.sets.keys()))


def violations(frame: Frame, spec: Spec) -> tuple[Violation, ...]:
    """One violation for each broken axiom, in the order of the text; the frame has every name."""
    verdict = judge(frame, spec)
    return verdict.violations if isinstance(verdict, Forbidden) else ()


def admits(frame: Frame, spec: Spec) -> bool:
    """Whether every axiom holds, without a witness: for counting.

    The frame must have the names that the spec needs; a KeyError names one that it lacks.
    """
    fold = _fold(frame, spec)
    return all(_holds(axiom, fold.relation(axiom.expr)) for axiom in spec.axioms)


def labels(frame: Frame, spec: Spec) -> dict[str, int]:
    """The members of each set that the spec shows, as bitsets, by the name it is shown as.

    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.cat import read
    >>> spec = read('"Mine" show ~Blind as checked empty unseen as conflict', "mine")
    >>> labels(Frame(("a", "b"), {"unseen": Relation.empty(2)}, {"Blind": 0b01}), spec)
    {'checked': 2}
    """
    fold = _fold(frame, spec)
    shown: dict[str, int] = {}
    for label in spec.labels:
        shown[label.name] = shown.get(label.name, 0) | fold.members(label.expr)
    return shown


def first_conflict(frame: Frame, spec: Spec, loser: int) -> tuple[int, str] | None:
    """The first winner that a commit conflicts with, and the axiom that this breaks, or None.

    Only ``empty`` axioms are asked: winners in the order of their numbers, for each the axioms in
    the order of the text. This is the check that a protocol makes at each commit.

    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.cat import read
    >>> spec = read('"Mine" empty unseen as Conflict', "mine")
    >>> first_conflict(Frame(("a", "b"), {"unseen": Relation.of(2, [(0, 1)])}, {}), spec, 1)
    (0, 'Conflict')
    """
    fold = _fold(frame, spec)
    checks = [(a.name, fold.relation(a.expr)) for a in spec.axioms if a.test == "empty"]
    for winner in range(len(frame.nodes)):
        for name, relation in checks:
            if (winner, loser) in relation:
                return winner, name
    return None


def conflict(frame: Frame, spec: Spec, loser: int) -> Violation | None:
    """The first conflict of a commit with its reasons: what the commit would have violated.

    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.cat import read
    >>> spec = read('"Mine" empty [~Blind] ; unseen as Conflict', "mine")
    >>> pair = {("unseen", 0, 1): "b missed a"}
    >>> frame = Frame(("a", "b"), {"unseen": Relation.of(2, [(0, 1)])}, {"Blind": 0}, pair)
    >>> conflict(frame, spec, 1).cycle[0].why
    'b missed a; a is no blind append'
    """
    found = first_conflict(frame, spec, loser)
    if found is None:
        return None
    fold = _fold(frame, spec)
    winner, name = found
    axiom = next(
        a for a in spec.axioms if a.name == name and (winner, loser) in fold.relation(a.expr)
    )
    return _broken(axiom, [(winner, loser)], Reasons(frame, fold, spec.definitions), frame, spec)


def _fold(frame: Frame, spec: Spec) -> Fold[Relation, int]:
    return Fold(BitsetAlgebra(frame), spec.definitions)


def _holds(axiom: Axiom, relation: Relation) -> bool:
    match axiom.test:
        case "acyclic":
            return relation.acyclic()
        case "irreflexive":
            return not any(row >> i & 1 for i, row in enumerate(relation.rows))
        case "empty":
            return not relation


def _violation(
    axiom: Axiom, fold: Fold[Relation, int], reasons: Reasons, frame: Frame, spec: Spec
) -> Violation | None:
    relation = fold.relation(axiom.expr)
    match axiom.test:
        case "acyclic":
            steps = _around(shortest_cycle(relation))
        case "irreflexive":
            steps = [(i, i) for i, row in enumerate(relation.rows) if row >> i & 1][:1]
        case "empty":
            steps = [(i, next(bits(row))) for i, row in enumerate(relation.rows) if row][:1]
    return _broken(axiom, steps, reasons, frame, spec) if steps else None


def _broken(
    axiom: Axiom, steps: list[tuple[int, int]], reasons: Reasons, frame: Frame, spec: Spec
) -> Violation:
    edges: list[Edge] = []
    for i, j in steps:
        edges += reasons.edges(axiom.expr, i, j)
    if axiom.test == "empty":
        ((first, last),) = steps
        parts = _composed(axiom.expr)
        for which, node, ends in ((0, first, parts), (-1, last, parts[::-1])):
            words = _standing(ends, node, frame, spec)
            why = dict.fromkeys([edges[which].why, *words])
            edges[which] = replace(edges[which], why="; ".join(filter(None, why)))
    return Violation(axiom.name, axiom.test, tuple(edges))


def _composed(expr: Expr) -> list[Expr]:
    """The parts of ``a ; b ; c``."""
    if isinstance(expr, Binary) and expr.op == ";":
        return _composed(expr.left) + _composed(expr.right)
    return [expr]


def _standing(parts: list[Expr], node: int, frame: Frame, spec: Spec) -> list[str]:
    """Why a node at the end of a chain is in the sets that stand there, in words."""
    words: list[str] = []
    for part in parts:
        if not isinstance(part, Bracket):
            break
        for name, inside in membership(part.operand, node, frame, spec.definitions):
            words.append(member(frame.nodes[node], name, inside=inside))
    return words


def _around(cycle: list[int]) -> list[tuple[int, int]]:
    return [(i, cycle[(k + 1) % len(cycle)]) for k, i in enumerate(cycle)]
