"""Syntactic properties of specs that searches use for pruning. Each is sufficient, not necessary.

* `is_monotone`: more nodes never turn forbidden into allowed.
* `is_increasing`: more pairs on the same nodes never turn forbidden into allowed.
* `is_pairwise`: the verdict is that on each two nodes.
* `takes_later`: ``ww`` and ``rw`` may lead to every later version instead of the next one.
* `ignores_latecomers`: a last transaction that has seen all others never changes the verdict on
  these.

For `takes_later`: ``ww`` and ``rw`` lead to the writer of the next version. In a search for a
version order it is simpler if "i came before j" alone gives a pair, whatever is between. A pair to
a later version has a path behind it, ``ww+`` or ``rw ; ww*``. So the relation of an expression may
grow by steps ``ww*`` at its front and back. Where these are absorbed, in a closure or around a
cycle, nothing changes.
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


def is_monotone(spec: Spec) -> bool:
    r"""Return whether more nodes can never turn forbidden into allowed.

    This holds if more nodes never remove a pair: the right side of each difference depends only on
    the two nodes of a pair (no path through a third node). Premise: the base relations and sets
    among old nodes stay the same. Sufficient, not necessary.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> is_monotone(read(r'"A" acyclic (wr | rw) \ ([Reader] ; log) as order', "a"))
    True
    >>> is_monotone(read(r'"B" acyclic rw \ (wr ; wr) as order', "b"))
    False
    """
    return all(_grows(axiom.expr, spec.definitions) for axiom in spec.demands)


def is_pairwise(spec: Spec) -> bool:
    """Return whether a graph is admitted exactly if the graph of any two of its nodes is.

    This holds if every axiom asks that a relation is empty, and its pairs depend only on their two
    nodes.

    Examples
    --------
    >>> from isolitmus.specs.files.spec_catalogue import protocol
    >>> is_pairwise(protocol("delta-write-serializable"))
    True
    >>> is_pairwise(protocol("delta-write-serializable-repaired"))
    False
    """
    return all(
        axiom.test == "empty" and _local(axiom.expr, spec.definitions) for axiom in spec.demands
    )


def is_increasing(spec: Spec) -> bool:
    """Return whether more pairs on the same nodes and sets can never turn forbidden into allowed.

    This holds if no axiom uses a difference of relations.

    Examples
    --------
    >>> from isolitmus.specs.files.spec_catalogue import level
    >>> is_increasing(level("snapshot-isolation"))
    True
    """
    return all(_positive(axiom.expr, spec.definitions) for axiom in spec.demands)


def _positive(expr: CatExpr, definitions: Mapping[str, CatExpr]) -> bool:
    """Return whether an expression has no difference of relations, definitions unfolded."""
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
    """Return whether more nodes never remove a pair."""
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
    """Return whether a pair depends only on its two nodes."""
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
    """Growth of the relation r of an expression by later versions, and what it absorbs."""

    before: bool = False
    """Steps ``ww`` may come in front."""
    after: bool = False
    """Steps ``ww`` may come behind."""
    has: bool = False
    """``ww`` is a subset of r."""
    reflexive: bool = False
    """Every node is related to itself."""
    takes_before: bool = False
    """``ww* ; r`` is a subset of r."""
    takes_after: bool = False
    """``r ; ww*`` is a subset of r."""
    writers: bool = False
    """It is ``[Writer]``, which ``ww`` steps pass: both ends of such a step are writers."""

    @property
    def still(self) -> bool:
        """True if it does not grow."""
        return not (self.before or self.after)

    def absorbed(self) -> _Growth:
        """Return the growth without the steps that r absorbs."""
        before, after = self.before and not self.takes_before, self.after and not self.takes_after
        return replace(self, before=before, after=after)


STILL = _Growth()


def takes_later(spec: Spec) -> bool:
    """Return whether it admits the same graphs if ww and rw lead to every later version.

    Normally they lead to the next version alone. Sufficient, not necessary. A transaction that read
    a version and wrote a later one misses those between.

    Examples
    --------
    >>> from isolitmus.specs.files.spec_catalogue import level
    >>> from isolitmus.specs.language.parser import read
    >>> takes_later(level("snapshot-isolation")), takes_later(level("update-serializable"))
    (True, True)
    >>> takes_later(read('"Mine" acyclic wr | rw as order', "mine"))
    False
    """
    return all(_same(axiom, spec) for axiom in spec.demands)


def _same(axiom: Axiom, spec: Spec) -> bool:
    """Return True only if an axiom holds as before when ww and rw lead to later versions."""
    growth = _growth(unfold(axiom.expr, spec.definitions))
    if growth is None:
        return False
    match axiom.test:
        case "empty":
            return True
        case "acyclic":
            return growth.still or growth.has
        # Around a cycle, steps in front are also steps behind.
        case "irreflexive":
            return growth.still or growth.takes_before or growth.takes_after


def _growth(expr: CatExpr) -> _Growth | None:
    """Return the growth of an expression; None if it is not of a known form."""
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
    """Return the growth of an expression from its operand's; None if it is not of a known form."""
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
    """Return the growth of an expression from its operands'; None if it is not of a known form."""
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
    """Return the growth of a composition; None if steps in between are not absorbed."""
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
"""Relations that can lead to a latecomer but not away from it."""


def ignores_latecomers(spec: Spec) -> bool:
    """Return whether a latecomer never changes the verdict on the transactions before it.

    A latecomer comes last and has seen all others. The property holds if the pairs of the others
    stay the same, and the latecomer is on no forbidden cycle, and in no pair of a relation that
    must be empty. Sufficient, not necessary: a relation unknown here may lead to the latecomer and
    away from it. Premise: all are committed, and the order of versions is known.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> from isolitmus.specs.files.spec_catalogue import level, protocol
    >>> ignores_latecomers(level("log-serializable"))
    True
    >>> ignores_latecomers(protocol("delta-serializable"))
    True
    >>> ignores_latecomers(read(r'"A" acyclic wr ; wr^-1 as order', "a"))
    False
    """
    fold = Fold(_Reach(), spec.definitions)
    kept = (_stays(axiom, fold.relation(axiom.expr)) for axiom in spec.demands)
    return all(binder.source == "versions" for binder in spec.binders) and all(kept)


class _Pairs(NamedTuple):
    """Pairs of a relation in which a latecomer may be."""

    into: bool
    """The latecomer may come second."""
    away: bool
    """The latecomer may come first."""
    loop: bool
    """The latecomer may be related to itself."""
    among: bool = True
    """The others may be related."""
    others: bool = True
    """The pairs of the others are the same without it."""

    @property
    def through(self) -> bool:
        """True if a path may lead through the latecomer."""
        return self.into and self.away


def _stays(axiom: Axiom, pairs: _Pairs) -> bool:
    """Return True only if a latecomer cannot change the verdict of an axiom."""
    match axiom.test:
        case "acyclic":
            return pairs.others and not pairs.loop and not pairs.through
        case "irreflexive":
            return pairs.others and not pairs.loop
        case "empty":
            return pairs.others and not (pairs.loop or pairs.into or pairs.away)


class _Reach:
    """Algebra of a latecomer: relations as `_Pairs`, sets by whether any node may be in them."""

    def relation(self, name: str) -> _Pairs:
        # A latecomer has seen all others.
        """Return the pairs of a base relation; the latecomer has seen all others."""
        if name == "unseen":
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
        """Return the pairs of a composition, with paths of others through the latecomer."""
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
