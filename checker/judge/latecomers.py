"""Which specs a latecomer cannot break: a transaction that comes last and has seen all the others."""

from __future__ import annotations

from operator import and_, or_
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.spec import Fold

if TYPE_CHECKING:
    from isolitmus.model.spec import Axiom, Spec

__all__ = ["ignores_latecomers"]

INTO = frozenset(("so", "wr", "ww", "rw", "intermediate", "log", "vis"))
"""The relations that lead to a latecomer, if at all: nothing that it does comes before what others do."""


def ignores_latecomers(spec: Spec) -> bool:
    r"""Whether a latecomer never changes what the spec says of the transactions before it.

    So it is if the pairs of the others stay as they were, and the latecomer is on no cycle that is forbidden, and
    in no pair of what has to be empty. Sufficient, not necessary: of relations that are not known here each may lead to it
    and away from it. The premise is that all are committed, and that the order of versions is known.

    >>> from isolitmus.specs.language.parser import read
    >>> from isolitmus.specs.files.catalogue import level, protocol
    >>> ignores_latecomers(level("log-serializable")), ignores_latecomers(protocol("delta-serializable"))
    (True, True)
    >>> ignores_latecomers(read(r'"A" acyclic wr ; wr^-1 as order', "a"))
    False
    """
    fold = Fold(_Reach(), spec.definitions)
    kept = (_stays(axiom, fold.relation(axiom.expr)) for axiom in spec.demands)
    return all(binder.source == "versions" for binder in spec.binders) and all(kept)


class _Pairs(NamedTuple):
    """Which pairs of a relation a latecomer may be in."""

    into: bool
    """It comes second."""
    away: bool
    """It comes first."""
    loop: bool
    """It is both."""
    among: bool = True
    """The others may be in some."""
    others: bool = True
    """Those are the same without it."""

    @property
    def through(self) -> bool:
        """Whether a way may lead through it."""
        return self.into and self.away


def _stays(axiom: Axiom, pairs: _Pairs) -> bool:
    match axiom.test:
        case "acyclic":
            return pairs.others and not pairs.loop and not pairs.through
        case "irreflexive":
            return pairs.others and not pairs.loop
        case "empty":
            return pairs.others and not (pairs.loop or pairs.into or pairs.away)


class _Reach:
    """Relations as the pairs that a latecomer may be in, sets by whether somebody may be in them."""

    def relation(self, name: str) -> _Pairs:
        if name == "unseen":  # who has seen all has missed nothing
            return _Pairs(into=False, away=False, loop=False)
        known = name in INTO
        return _Pairs(into=True, away=not known, loop=not known)

    def members(self, name: str) -> bool:
        return name != "Aborted"

    def union(self, a: _Pairs, b: _Pairs) -> _Pairs:
        return _Pairs(*map(or_, a, b))._replace(others=a.others and b.others)

    def intersection(self, a: _Pairs, b: _Pairs) -> _Pairs:
        return _Pairs(*map(and_, a, b))

    def difference(self, a: _Pairs, b: _Pairs) -> _Pairs:
        return a._replace(others=a.others and b.others)

    def compose(self, a: _Pairs, b: _Pairs) -> _Pairs:
        return _Pairs(
            into=(a.among and b.into) or (a.into and b.loop),
            away=(a.away and b.among) or (a.loop and b.away),
            loop=(a.loop and b.loop) or (a.away and b.into),
            among=(a.among and b.among) or (a.into and b.away),
            others=a.others and b.others and not (a.into and b.away),
        )

    def plus(self, a: _Pairs) -> _Pairs:
        return a._replace(loop=a.loop or a.through, others=a.others and not a.through)

    def reflexive(self, a: _Pairs) -> _Pairs:
        return a._replace(loop=True, among=True)

    def inverse(self, a: _Pairs) -> _Pairs:
        return a._replace(into=a.away, away=a.into)

    def identity(self, on: bool) -> _Pairs:
        return _Pairs(into=False, away=False, loop=on, among=on)

    def set_union(self, a: bool, b: bool) -> bool:
        return a or b

    def set_intersection(self, a: bool, b: bool) -> bool:
        return a and b

    def set_difference(self, a: bool, _: bool) -> bool:
        return a

    def complement(self, _: bool) -> bool:
        return True
