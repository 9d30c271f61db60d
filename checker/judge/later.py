"""Which specs say the same if any later version stands for the next one.

``ww`` and ``rw`` lead to the writer of the next version. Who looks for an order of the versions would rather
say it of two: "i came before j" alone then puts a pair there, whatever is between. A pair to a later version
has a path behind it, ``ww+`` or ``rw ; ww*``. So the relation of an expression may grow by steps ``ww*`` in
front and behind; where these are absorbed, in a closure or around a cycle, nothing has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.model.spec import Binary, Bracket, Name, Unary
from isolitmus.model.spec_algebra import unfolded

if TYPE_CHECKING:
    from isolitmus.model.spec import Axiom, CatExpr, Spec

__all__ = ["takes_later"]


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
    """Whether it admits the same frames if ww and rw lead to every later version, not to the next alone.

    Sufficient, not necessary. A transaction that read a version and wrote a later one misses those between.

    >>> from isolitmus.specs.files.catalogue import level
    >>> from isolitmus.specs.language.parser import read
    >>> takes_later(level("snapshot-isolation")), takes_later(level("update-serializable"))
    (True, True)
    >>> takes_later(read('"Mine" acyclic wr | rw as order', "mine"))
    False
    """
    return all(_same(axiom, spec) for axiom in spec.demands)


def _same(axiom: Axiom, spec: Spec) -> bool:
    growth = _growth(unfolded(axiom.expr, spec.definitions))
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
