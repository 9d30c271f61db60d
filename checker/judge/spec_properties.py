"""Properties of specs that their texts show, by which searches prune.

Which specs can only lose frames as frames grow, in nodes or in pairs: what a search may prune by.

Which specs say the same if any later version stands for the next one.

``ww`` and ``rw`` lead to the writer of the next version. Who looks for an order of the versions
would rather say it of two: "i came before j" alone then puts a pair there, whatever is between. A
pair to a later version has a path behind it, ``ww+`` or ``rw ; ww*``. So the relation of an
expression may grow by steps ``ww*`` in front and behind; where these are absorbed, in a closure or
around a cycle, nothing has changed.

Which specs a latecomer cannot break: a transaction that comes last and has seen all the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import and_, or_
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.spec import Binary, Bracket, Fold, Name, Unary
from isolitmus.model.spec_algebra import unfold

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.spec import Axiom, CatExpr, Spec

__all__ = ["ignores_latecomers", "is_increasing", "is_monotone", "is_pairwise", "takes_later"]


def is_monotone(spec: Spec) -> bool:
    r"""Whether more nodes can never turn forbidden into allowed.

    So it is if more nodes never take away a pair: each difference has on its right only what two
    nodes decide between themselves (no path through a third node). The premise is that the base
    relations and sets among old nodes stay as they were. Sufficient, not necessary.

    >>> from isolitmus.specs.language.parser import read
    >>> is_monotone(read(r'"A" acyclic (wr | rw) \ ([Blind] ; log) as order', "a"))
    True
    >>> is_monotone(read(r'"B" acyclic rw \ (wr ; wr) as order', "b"))
    False
    """
    return all(_grows(axiom.expr, spec.definitions) for axiom in spec.demands)


def is_pairwise(spec: Spec) -> bool:
    """Whether a frame is admitted just if the frame of any two of its nodes is.

    So it is if every axiom says of a relation that it is empty, and two nodes decide between
    themselves what is in it.

    >>> from isolitmus.specs.files.catalogue import protocol
    >>> is_pairwise(protocol("delta-write-serializable"))
    True
    >>> is_pairwise(protocol("delta-write-serializable-repaired"))
    False
    """
    return all(
        axiom.test == "empty" and _local(axiom.expr, spec.definitions) for axiom in spec.demands
    )


def is_increasing(spec: Spec) -> bool:
    """Whether more pairs on the same nodes and sets can never turn forbidden into allowed.

    So it is if no axiom uses a difference of relations.

    >>> from isolitmus.specs.files.catalogue import level
    >>> is_increasing(level("snapshot-isolation"))
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


@dataclass(frozen=True, slots=True)
class _Growth:
    """How the relation r of an expression may grow, and what it absorbs."""

    before: bool = False
    """Steps ``ww`` may come in front."""
    after: bool = False
    """Steps ``ww`` may come behind."""
    has: bool = False
    """``ww`` is a part of r."""
    reflexive: bool = False
    """Every node is related to itself."""
    takes_before: bool = False
    """``ww* ; r`` is a part of r."""
    takes_after: bool = False
    """``r ; ww*`` is a part of r."""
    writers: bool = False
    """It is ``[Writer]``, which steps ``ww`` pass: both ends of such a step are writers."""

    @property
    def still(self) -> bool:
        """It does not grow."""
        return not (self.before or self.after)

    def absorbed(self) -> _Growth:
        """Without the steps that it absorbs."""
        before, after = self.before and not self.takes_before, self.after and not self.takes_after
        return replace(self, before=before, after=after)


STILL = _Growth()


def takes_later(spec: Spec) -> bool:
    """Whether it admits the same frames if ww and rw lead to every later version, not to the next
    alone.

    Sufficient, not necessary. A transaction that read a version and wrote a later one misses those
    between.

    >>> from isolitmus.specs.files.catalogue import level
    >>> from isolitmus.specs.language.parser import read
    >>> takes_later(level("snapshot-isolation")), takes_later(level("update-serializable"))
    (True, True)
    >>> takes_later(read('"Mine" acyclic wr | rw as order', "mine"))
    False
    """
    return all(_same(axiom, spec) for axiom in spec.demands)


def _same(axiom: Axiom, spec: Spec) -> bool:
    growth = _growth(unfold(axiom.expr, spec.definitions))
    if growth is None:
        return False
    match axiom.test:
        case "empty":
            return True
        case "acyclic":
            return growth.still or growth.has
        case "irreflexive":  # around a cycle, what comes in front also comes behind
            return growth.still or growth.takes_before or growth.takes_after


def _growth(expr: CatExpr) -> _Growth | None:
    """How it grows; None: in a way that is none of these."""
    match expr:
        case Name("ww"):
            return _Growth(before=True, has=True)
        case Name("rw"):
            return _Growth(after=True)
        case Name():
            return STILL
        case Bracket(Name("Writer")):
            return _Growth(writers=True)
        case Bracket():
            return STILL
        case Unary(op, operand):
            growth = _growth(operand)
            return None if growth is None else _unary(op, growth)
        case Binary(op, left, right):
            growths = _growth(left), _growth(right)
            if growths[0] is None or growths[1] is None:
                return None
            return _binary(op, growths[0], growths[1])


def _unary(op: str, of: _Growth) -> _Growth | None:
    match op:
        case "?":
            takes = of.reflexive
            return replace(
                of,
                reflexive=True,
                writers=False,
                takes_before=takes and of.takes_before,
                takes_after=takes and of.takes_after,
            )
        case "+" | "*" if of.has:
            reflexive = of.reflexive or op == "*"
            return _Growth(has=True, reflexive=reflexive, takes_before=True, takes_after=True)
        case "+" | "*" if of.still:
            return _Growth(reflexive=of.reflexive or op == "*")
        case "^-1" if of.still:
            return _Growth(reflexive=of.reflexive)
    return None


def _binary(op: str, a: _Growth, b: _Growth) -> _Growth | None:
    both = {name: getattr(a, name) and getattr(b, name) for name in ("takes_before", "takes_after")}
    match op:
        case "|":
            return _Growth(
                a.before or b.before,
                a.after or b.after,
                a.has or b.has,
                a.reflexive or b.reflexive,
                **both,
            ).absorbed()
        case "&" if a.still and b.still:
            return _Growth(
                has=a.has and b.has, reflexive=a.reflexive and b.reflexive, **both
            ).absorbed()
        case ";":
            return _composed(a, b)
        case "\\" if a.still and b.still and not b.has:
            return STILL
    return None


def _composed(a: _Growth, b: _Growth) -> _Growth | None:
    if a.writers or b.writers:
        other = b if a.writers else a
        return replace(other, reflexive=False, writers=a.writers and b.writers)
    between = a.after or b.before
    if between and not (a.takes_after or b.takes_before):
        return None
    return _Growth(
        a.before,
        b.after,
        (a.has and b.reflexive) or (a.reflexive and b.has),
        a.reflexive and b.reflexive,
        a.takes_before,
        b.takes_after,
    ).absorbed()


INTO = frozenset(("so", "wr", "ww", "rw", "intermediate", "log", "vis"))
"""The relations that lead to a latecomer, if at all: nothing that it does comes before what others
do.
"""


def ignores_latecomers(spec: Spec) -> bool:
    r"""Whether a latecomer never changes what the spec says of the transactions before it.

    So it is if the pairs of the others stay as they were, and the latecomer is on no cycle that is
    forbidden, and in no pair of what has to be empty. Sufficient, not necessary: of relations that
    are not known here each may lead to it and away from it. The premise is that all are committed,
    and that the order of versions is known.

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
    """Relations as the pairs that a latecomer may be in, sets by whether somebody may be in
    them.
    """

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
