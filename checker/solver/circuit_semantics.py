"""Circuit semantics of specs: clauses that say whether symbolic graphs satisfy a spec.

To admit, ``acyclic`` is encoded as a rank of each node that every edge raises, here a total order.
To forbid, it is encoded as a non-empty set of nodes each of which has a successor inside. Both are
restricted to nodes that can be on a cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.relation import Relation
from isolitmus.model.spec import Fold

if TYPE_CHECKING:
    from isolitmus.checker.judge.matrix_semantics import BooleanMatrix, Matrices
    from isolitmus.checker.solver.circuits import Gates
    from isolitmus.model.spec import Spec


def assert_admitted(gates: Gates, frames: Matrices[int], spec: Spec) -> None:
    """Add clauses: the graph satisfies every axiom of the spec, without a silence.

    Examples
    --------
    >>> from isolitmus.checker.solver.circuits import Gates
    >>> from isolitmus.checker.judge.matrix_semantics import Matrices
    >>> from isolitmus.checker.solver.circuits import Solver
    >>> from isolitmus.specs.language.parser import read
    >>> gates = Gates()
    >>> ab, ba = gates.new(), gates.new()
    >>> frames = Matrices(gates, [1, 1], {"rw": [{1: ab}, {0: ba}]}, {})
    >>> assert_admitted(gates, frames, read('"A" acyclic rw as order', "a"))
    >>> Solver(gates).check([ab, ba]) is None, Solver(gates).check([ab])[ba]
    (True, False)
    """
    fold = Fold(frames, spec.definitions)
    for axiom in spec.demands:
        relation = fold.relation(axiom.expr)
        match axiom.test:
            case "empty":
                for row in relation:
                    for pair in row.values():
                        gates.add(-pair)
            case "irreflexive":
                for i, row in enumerate(relation):
                    gates.add(-row.get(i, gates.false))
            case "acyclic":
                for nodes in _knots(relation):
                    _rank(gates, relation, nodes)


def assert_forbidden(gates: Gates, frames: Matrices[int], spec: Spec, *, unless: int = -1) -> None:
    """Add clauses: the graph breaks some axiom of the spec, or ``unless`` holds.

    Silences of the spec do not matter.
    """
    fold = Fold(frames, spec.definitions)
    broken: list[int] = [unless]
    for axiom in spec.axioms:
        relation = fold.relation(axiom.expr)
        match axiom.test:
            case "empty":
                broken += [pair for row in relation for pair in row.values()]
            case "irreflexive":
                broken += [row[i] for i, row in enumerate(relation) if i in row]
            case "acyclic":
                broken += [_cycle(gates, relation, nodes) for nodes in _knots(relation)]
    gates.add(*broken)


def _knots(relation: BooleanMatrix[int]) -> list[list[int]]:
    """Return the strongly connected components of possible edges that can contain a cycle."""
    n = len(relation)
    plus = Relation.of(n, [(i, j) for i, row in enumerate(relation) for j in row]).plus()
    knots: list[list[int]] = []
    for i in range(n):
        if (i, i) in plus and not any(i in knot for knot in knots):
            knots.append([j for j in range(n) if (i, j) in plus and (j, i) in plus])
    return knots


def _rank(gates: Gates, relation: BooleanMatrix[int], nodes: list[int]) -> None:
    """Add clauses by which every edge between the nodes follows a total order of them."""
    before = gates.order(len(nodes))
    place = {node: k for k, node in enumerate(nodes)}
    for i in nodes:
        for j, pair in relation[i].items():
            if j in place:
                gates.add(-pair, before[place[i]][place[j]])


def _cycle(gates: Gates, relation: BooleanMatrix[int], nodes: list[int]) -> int:
    """Return a literal that implies a cycle among these nodes."""
    cycle = gates.new()
    inside = {i: gates.new() for i in nodes}
    gates.add(-cycle, *inside.values())
    for i in nodes:
        steps = [gates.both(p, inside[j]) for j, p in relation[i].items() if j in inside]
        gates.add(-inside[i], *steps)
    return cycle
