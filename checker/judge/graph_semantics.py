"""Graph semantics of specs: the verdict on one dependency graph, over bitsets.

The graph is determined, so binders do not matter here; histories with unobserved orders are judged
by ``checker.judge.history_verdict``. Nodes that a commit protocol compares are numbered in commit
order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from isolitmus.checker.judge.witness import Reasons, joined_reasons, serial_order, shortest_cycle
from isolitmus.model.reason import Reason
from isolitmus.model.relation import Relation, bits
from isolitmus.model.spec import Binary, Bracket, Fold, Name, Unary
from isolitmus.model.verdict import Allowed, Forbidden, Needs, Silent, Verdict, Violation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.frame import Frame
    from isolitmus.model.reason import Edge
    from isolitmus.model.spec import Axiom, CatExpr, Spec

Grounds = tuple[bool, list[tuple[str, bool]]]
"""Membership of a node in a set, and the base sets that decide it."""


def find_membership(
    expr: CatExpr, node: int, frame: Frame, definitions: Mapping[str, CatExpr]
) -> list[tuple[str, bool]]:
    r"""Return the base sets that decide whether a node is in a set, each with its membership.

    If several would suffice, as in a union, the first one is returned.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> frame = Frame(("a",), {}, {"NoData": 0b0, "ChangesData": 0b1})
    >>> quiet = Binary("\\", Name("NoData"), Name("ChangesData"))
    >>> find_membership(Unary("~", Name("Quiet")), 0, frame, {"Quiet": quiet})
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
        raise AssertionError(f"{part} is not a set")

    return why(expr)[1]


def _intersection(one: Grounds, other: Grounds) -> Grounds:
    if one[0] and other[0]:
        return True, [*one[1], *(reason for reason in other[1] if reason not in one[1])]
    return other if one[0] else one


def _union(one: Grounds, other: Grounds) -> Grounds:
    if one[0] or other[0]:
        return one if one[0] else other
    return False, [*one[1], *(reason for reason in other[1] if reason not in one[1])]


LOOKS = ("wr", "rw")
"""Relations of reads: what a transaction saw of others, and what it missed."""


@dataclass(frozen=True, slots=True)
class BitsetAlgebra:
    """Algebra over one graph: relations as bitset rows, sets as bitsets.

    Row i has bit j set if the pair (i, j) is in the relation; a set has bit i set if node i is in
    it.
    """

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
    """Return the verdict of a spec on a dependency graph.

    Returns
    -------
    Verdict
        ``Allowed`` with an order of the transactions that respects the acyclic axioms.
        ``Forbidden`` with the flaws of the graph, if it has any, else with one violation per broken
        axiom. ``Silent`` if no axiom is broken but the spec does not define something. ``Needs``
        with the names that the graph lacks.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.language.parser import read
    >>> missed = Relation.of(2, [(0, 1), (1, 0)])
    >>> frame = Frame(("a", "b"), {"rw": missed}, {})
    >>> verdict = judge(frame, read('"Mine" acyclic rw as order', "mine"))
    >>> [(edge.source, edge.kind, edge.target) for edge in verdict.violations[0].cycle]
    [('a', 'rw', 'b'), ('b', 'rw', 'a')]
    >>> print(judge(frame, read('"Mine" acyclic rw | log as order', "mine")))
    needs log
    """
    lacking = missing_names(frame, spec)
    if lacking:
        return Needs(lacking)
    if frame.flaws:
        return Forbidden(frame.flaws)
    fold = fold_over(frame, spec)
    reasons = Reasons(frame, fold, spec.definitions)
    broken = tuple(
        v for v in (_violation(axiom, fold, reasons, frame, spec) for axiom in spec.axioms) if v
    )
    if broken:
        return Forbidden(broken)
    unsaid = (_violation(silence.broken, fold, reasons, frame, spec) for silence in spec.silences)
    silences = tuple(replace(v, kind="silent") for v in unsaid if v)
    return Silent(silences) if silences else _witness(frame, spec, fold)


def _witness(frame: Frame, spec: Spec, fold: Fold[Relation, int]) -> Allowed:
    """Return an order of the transactions that the acyclic axioms constrain.

    If axioms forbid single cycles of other transactions, also one order for each of these, with
    what it read and missed.
    """
    exprs = [axiom.expr for axiom in spec.axioms if axiom.test == "acyclic"]
    orders = [fold.relation(expr) for expr in exprs]
    everyone = (1 << frame.transactions) - 1
    about = everyone if not exprs else 0
    for expr in exprs:
        about |= _related(expr, fold, spec) & everyone

    def named(order: list[int], nodes: int) -> tuple[str, ...]:
        return tuple(frame.nodes[i] for i in order if nodes >> i & 1)

    n = len(frame.nodes)
    alone = []
    if any(axiom.test == "irreflexive" for axiom in spec.axioms):
        for node in bits(everyone & ~about):
            self = Relation.identity(n, 1 << node)
            looks = [frame.relations[name] for name in LOOKS if name in spec.needs]
            touching = [self @ look | look @ self for look in looks]
            own = reduce(Relation.__or__, [*orders, *touching])
            if own.acyclic():
                alone.append(named(serial_order(n, [own]), about | 1 << node))
    return Allowed(named(serial_order(n, orders), about), tuple(alone))


def _related(expr: CatExpr, fold: Fold[Relation, int], spec: Spec) -> int:
    """Return a mask of the nodes that an expression may relate, by its text.

    All nodes, unless it begins and ends with ``[S]``.
    """
    match expr:
        case Name(name) if name in spec.definitions:
            return _related(spec.definitions[name], fold, spec)
        case Binary("|", left, right):
            return _related(left, fold, spec) | _related(right, fold, spec)
        case Binary(";", _, _):
            parts = _composed(expr)
            if isinstance(parts[0], Bracket) and isinstance(parts[-1], Bracket):
                return fold.members(parts[0].operand) | fold.members(parts[-1].operand)
    return -1


def missing_names(frame: Frame, spec: Spec) -> tuple[str, ...]:
    """Return the names that the spec uses and the graph lacks, sorted."""
    there = (frame.relations.keys(), frame.sets.keys(), frame.later)
    return tuple(sorted(spec.needs.difference(*there)))


def find_violations(frame: Frame, spec: Spec) -> tuple[Violation, ...]:
    """Return one violation per broken axiom, in the order of the text.

    The graph must have every name that the spec uses.
    """
    verdict = judge(frame, spec)
    return verdict.violations if isinstance(verdict, Forbidden) else ()


def admits(frame: Frame, spec: Spec) -> bool:
    """Return whether the graph has no flaw and satisfies every axiom, without a silence.

    Builds no witness. The graph must have the names that the spec needs; a KeyError names one that
    it lacks.
    """
    fold = fold_over(frame, spec)
    return not frame.flaws and all(
        _holds(axiom, fold.relation(axiom.expr)) for axiom in spec.demands
    )


def label_members(
    frame: Frame, spec: Spec, fold: Fold[Relation, int] | None = None
) -> dict[str, int]:
    """Return the members of each set that the spec shows, as bitsets, by displayed name.

    Bit i stands for node i.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.language.parser import read
    >>> spec = read('"Mine" show ~Aborted as checked empty unseen as conflict', "mine")
    >>> label_members(Frame(("a", "b"), {"unseen": Relation.empty(2)}, {"Aborted": 0b01}), spec)
    {'checked': 2}
    """
    fold = fold or fold_over(frame, spec)
    shown: dict[str, int] = {}
    for label in spec.labels:
        shown[label.name] = shown.get(label.name, 0) | fold.members(label.expr)
    return shown


def first_conflict(
    frame: Frame, spec: Spec, loser: int, fold: Fold[Relation, int] | None = None
) -> tuple[int, str] | None:
    """Return the first winning commit that a commit conflicts with and the broken axiom, or None.

    This is the check that a protocol makes at each commit. Only ``empty`` axioms are checked:
    winners in commit order, for each the axioms in the order of the text.

    Parameters
    ----------
    frame : Frame
        Dependency graph with nodes in commit order.
    spec : Spec
        Protocol.
    loser : int
        Node of the checked commit.
    fold : Fold, optional
        Evaluation of the protocol over the graph, if there is one already.

    Returns
    -------
    tuple of (int, str), or None
        Node of the winner and name of the axiom.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.language.parser import read
    >>> spec = read('"Mine" empty unseen as Conflict', "mine")
    >>> first_conflict(Frame(("a", "b"), {"unseen": Relation.of(2, [(0, 1)])}, {}), spec, 1)
    (0, 'Conflict')
    """
    checks = [axiom for axiom in spec.axioms if axiom.test == "empty"]
    found = _first(checks, frame, spec, loser, fold)
    return None if found is None else (found[0], found[1].name)


def first_silence(
    frame: Frame, spec: Spec, loser: int, fold: Fold[Relation, int] | None = None
) -> tuple[int, str] | None:
    """Return the first winning commit for which the outcome is undefined, and the silence.

    None if there is none. Meaningful for a commit without a conflict: silences excuse from no
    axiom.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.language.parser import read
    >>> spec = read('"Mine" empty log as Conflict silent unseen as restore', "mine")
    >>> first_silence(Frame(("a", "b"), {"unseen": Relation.of(2, [(0, 1)])}, {}), spec, 1)
    (0, 'restore')
    """
    found = _first([silence.broken for silence in spec.silences], frame, spec, loser, fold)
    return None if found is None else (found[0], found[1].name)


def judge_commit(frame: Frame, spec: Spec) -> object:
    """Return labels, first conflict and first silence of the last node, for comparison."""
    fold, loser = fold_over(frame, spec), len(frame.nodes) - 1
    shown = {label.name for label in spec.labels if fold.members(label.expr) >> loser & 1}
    checks = [axiom for axiom in spec.axioms if axiom.test == "empty"]
    silences = [silence.broken for silence in spec.silences]
    conflict = _first(checks, frame, spec, loser, fold)
    found = conflict or _first(silences, frame, spec, loser, fold)
    return frozenset(shown), conflict is None, found and (found[0], found[1].name)


def _first(
    checks: Sequence[Axiom],
    frame: Frame,
    spec: Spec,
    loser: int,
    fold: Fold[Relation, int] | None = None,
) -> tuple[int, Axiom] | None:
    """Return the first node that some checks relate to a later one, and the first such check."""
    fold = fold or fold_over(frame, spec)
    found = [(axiom, fold.relation(axiom.expr)) for axiom in checks]
    for winner in range(len(frame.nodes)):
        for axiom, relation in found:
            if (winner, loser) in relation:
                return winner, axiom
    return None


def explain_conflict(frame: Frame, spec: Spec, loser: int) -> Violation | None:
    """Return the first conflict of a commit as a violation with its reasons.

    If there is none, the first silence, as a violation of kind ``silent``; None if there is none
    either.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.specs.language.parser import read
    >>> spec = read('"Mine" empty [~Aborted] ; unseen as Conflict', "mine")
    >>> pair = {("unseen", 0, 1): Reason("b missed a")}
    >>> frame = Frame(("a", "b"), {"unseen": Relation.of(2, [(0, 1)])}, {"Aborted": 0}, pair)
    >>> explain_conflict(frame, spec, 1).cycle[0].why
    'b missed a; a did not abort'
    """
    checks = [axiom for axiom in spec.axioms if axiom.test == "empty"]
    silences = [silence.broken for silence in spec.silences]
    found = _first(checks, frame, spec, loser) or _first(silences, frame, spec, loser)
    if found is None:
        return None
    winner, axiom = found
    reasons = Reasons(frame, fold_over(frame, spec), spec.definitions)
    violation = _broken(axiom, [(winner, loser)], reasons, frame, spec)
    return replace(violation, kind="silent") if axiom in silences else violation


def fold_over(frame: Frame, spec: Spec) -> Fold[Relation, int]:
    """Return the evaluation of a spec over a graph, for several questions about it."""
    return Fold(BitsetAlgebra(frame), spec.definitions)


def _holds(axiom: Axiom, relation: Relation) -> bool:
    """Return whether a relation satisfies the test of an axiom."""
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
    """Return the violation of an axiom with its shortest cycle or first pair; None if it holds."""
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
    """Return the violation of an axiom by these pairs, with base edges and their reasons."""
    edges: list[Edge] = []
    for i, j in steps:
        edges += reasons.edges(axiom.expr, i, j)
    if axiom.test == "empty":
        ((first, last),) = steps
        parts = _composed(axiom.expr)
        for which, node, ends in ((0, first, parts), (-1, last, parts[::-1])):
            standing = _standing(ends, node, frame, spec)
            reason = joined_reasons("with", [*_parts(edges[which].reason), *standing])
            edges[which] = replace(edges[which], reason=reason)
    return Violation(axiom.name, axiom.test, tuple(edges))


def _composed(expr: CatExpr) -> list[CatExpr]:
    """Return the parts of ``a ; b ; c``."""
    if isinstance(expr, Binary) and expr.op == ";":
        return _composed(expr.left) + _composed(expr.right)
    return [expr]


def _parts(reason: Reason) -> tuple[Reason, ...]:
    parts: tuple[Reason, ...] = reason["parts"] if reason.kind == "with" else (reason,)
    return parts


def _standing(parts: list[CatExpr], node: int, frame: Frame, spec: Spec) -> list[Reason]:
    """Return the reasons why a node at the end of a chain is in the sets that stand there."""
    reasons: list[Reason] = []
    for part in parts:
        if not isinstance(part, Bracket):
            break
        for name, inside in find_membership(part.operand, node, frame, spec.definitions):
            term = frame.term(name)
            reasons.append(Reason.of("member", node=frame.nodes[node], term=term, inside=inside))
    return reasons


def _around(cycle: list[int]) -> list[tuple[int, int]]:
    return [(i, cycle[(k + 1) % len(cycle)]) for k, i in enumerate(cycle)]
