"""Matrix semantics of specs: relations as Boolean matrices, to judge many graphs at once.

The type of the Booleans is a parameter. Literals of a circuit (``checker.solver.circuits``) let a
solver search for a graph. Bit-sliced integers (``BitSlices``), with one bit per graph, judge many
graphs in one pass over the text of a spec.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from isolitmus.model.spec import Fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isolitmus.model.spec import Axiom, Spec

B = TypeVar("B")
BooleanMatrix = list[dict[int, B]]
"""Rows as dicts: row i maps j to the Boolean of the pair (i, j); impossible pairs are left out."""
BooleanVector = list[B]


class Booleans(Protocol[B]):
    """Operations on the Booleans of a matrix."""

    @property
    def true(self) -> B: ...
    @property
    def false(self) -> B: ...
    def neg(self, a: B) -> B: ...
    def both(self, a: B, b: B) -> B: ...
    def conj(self, parts: Iterable[B]) -> B: ...
    def disj(self, parts: Iterable[B]) -> B: ...


@dataclass(frozen=True, slots=True)
class BitSlices:
    """Booleans of many graphs in one integer: bit k belongs to graph k; ``true`` has all bits."""

    true: int
    false: int = 0

    def neg(self, a: int) -> int:
        return self.true ^ a

    def both(self, a: int, b: int) -> int:
        return a & b

    def conj(self, parts: Iterable[int]) -> int:
        return reduce(and_, parts, self.true)

    def disj(self, parts: Iterable[int]) -> int:
        return reduce(or_, parts, 0)


@dataclass(frozen=True, slots=True)
class Matrices(Generic[B]):
    """Algebra over Boolean matrices.

    ``exists`` says which nodes exist; ``relations`` and ``sets`` have the base names. A set is a
    list of Booleans, one per node.

    Examples
    --------
    >>> two = BitSlices(0b11)
    >>> frames = Matrices(two, [0b11, 0b11], {"rw": [{1: 0b11}, {0: 0b01}]}, {})
    >>> from isolitmus.model.spec import Fold
    >>> from isolitmus.specs.language.parser import read
    >>> bin(axiom_holds(frames, read('"A" acyclic rw as order', "a").axioms[0], Fold(frames, {})))
    '0b10'
    """

    booleans: Booleans[B]
    exists: BooleanVector[B]
    relations: Mapping[str, BooleanMatrix[B]]
    sets: Mapping[str, BooleanVector[B]]

    def relation(self, name: str) -> BooleanMatrix[B]:
        return self.relations[name]

    def members(self, name: str) -> BooleanVector[B]:
        return self.sets[name]

    def union(self, a: BooleanMatrix[B], b: BooleanMatrix[B]) -> BooleanMatrix[B]:
        """Return the entrywise disjunction."""
        disj = self.booleans.disj
        return [
            {**x, **{j: disj([x[j], y]) if j in x else y for j, y in row.items()}}
            for x, row in zip(a, b, strict=True)
        ]

    def intersection(self, a: BooleanMatrix[B], b: BooleanMatrix[B]) -> BooleanMatrix[B]:
        """Return the entrywise conjunction."""
        both = self.booleans.both
        return [
            self._row({j: both(x[j], y) for j, y in row.items() if j in x})
            for x, row in zip(a, b, strict=True)
        ]

    def difference(self, a: BooleanMatrix[B], b: BooleanMatrix[B]) -> BooleanMatrix[B]:
        """Return the entrywise conjunction with the negated second matrix."""
        both, neg = self.booleans.both, self.booleans.neg
        return [
            self._row({j: both(v, neg(y[j])) if j in y else v for j, v in x.items()})
            for x, y in zip(a, b, strict=True)
        ]

    def compose(self, a: BooleanMatrix[B], b: BooleanMatrix[B]) -> BooleanMatrix[B]:
        """Return the Boolean product of two matrices."""
        both, disj, false = self.booleans.both, self.booleans.disj, self.booleans.false
        product: BooleanMatrix[B] = []
        for row in a:
            terms: dict[int, list[B]] = {}
            for j, x in row.items():
                for k, y in b[j].items():
                    term = both(x, y)
                    if term != false:
                        terms.setdefault(k, []).append(term)
            product.append({k: t[0] if len(t) == 1 else disj(t) for k, t in terms.items()})
        return product

    def plus(self, a: BooleanMatrix[B]) -> BooleanMatrix[B]:
        """Return the transitive closure (Warshall's algorithm; exact for circuits, too)."""
        both, disj = self.booleans.both, self.booleans.disj
        rows = [dict(row) for row in a]
        for k, via in enumerate(rows):
            for row in rows:
                through = row.get(k)
                if through is None or row is via:
                    continue
                for j, y in via.items():
                    term = both(through, y)
                    row[j] = disj([row[j], term]) if j in row else term
        return [self._row(row) for row in rows]

    def reflexive(self, a: BooleanMatrix[B]) -> BooleanMatrix[B]:
        return self.union(a, self.identity(self.exists))

    def inverse(self, a: BooleanMatrix[B]) -> BooleanMatrix[B]:
        """Return the transpose."""
        turned: BooleanMatrix[B] = [{} for _ in a]
        for i, row in enumerate(a):
            for j, x in row.items():
                turned[j][i] = x
        return turned

    def identity(self, on: BooleanVector[B]) -> BooleanMatrix[B]:
        return [self._row({i: x}) for i, x in enumerate(on)]

    def set_union(self, a: BooleanVector[B], b: BooleanVector[B]) -> BooleanVector[B]:
        return [self.booleans.disj(pair) for pair in zip(a, b, strict=True)]

    def set_intersection(self, a: BooleanVector[B], b: BooleanVector[B]) -> BooleanVector[B]:
        return [self.booleans.both(x, y) for x, y in zip(a, b, strict=True)]

    def set_difference(self, a: BooleanVector[B], b: BooleanVector[B]) -> BooleanVector[B]:
        return [self.booleans.both(x, self.booleans.neg(y)) for x, y in zip(a, b, strict=True)]

    def complement(self, a: BooleanVector[B]) -> BooleanVector[B]:
        return self.set_difference(self.exists, a)

    def _row(self, row: dict[int, B]) -> dict[int, B]:
        return {j: x for j, x in row.items() if x != self.booleans.false}


def axiom_holds(
    algebra: Matrices[B], axiom: Axiom, fold: Fold[BooleanMatrix[B], BooleanVector[B]]
) -> B:
    """Return the Boolean of an axiom: the graphs in which it holds."""
    relation = fold.relation(axiom.expr)
    booleans = algebra.booleans
    if axiom.test == "acyclic":
        relation = algebra.plus(relation)
    broken = (
        [x for row in relation for x in row.values()]
        if axiom.test == "empty"
        else [row[i] for i, row in enumerate(relation) if i in row]
    )
    return booleans.neg(booleans.disj(broken))


def spec_holds(algebra: Matrices[B], spec: Spec) -> B:
    """Return the Boolean of a spec: the graphs in which every axiom holds, without a silence.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> frames = Matrices(BitSlices(0b11), [0b11], {"rw": [{0: 0b10}]}, {})
    >>> bin(spec_holds(frames, read('"A" empty rw as nothing', "a")))
    '0b1'
    """
    fold = Fold(algebra, spec.definitions)
    return algebra.booleans.conj(axiom_holds(algebra, axiom, fold) for axiom in spec.demands)
