"""What is known of closures, and of who misses a version: predicates of their own in proofs on histories.

Of r+ it is said that it contains r, goes on, and begins and ends with a step of r; that it lies in whatever transitive
relation r lies in is a lemma, where it is needed. All of that is so of the closure, so what follows is so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.prove.sentences import MISSED, Sentence
from isolitmus.model.spec import Binary, Bracket, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolitmus.model.spec import CatExpr

__all__ = ["Closures"]


class Closures:
    """The closures in some expressions, and what is known of them."""

    def __init__(self, exprs: Iterable[CatExpr]) -> None:
        found = dict.fromkeys(one for expr in exprs for one in _closures(expr))
        self.closures: tuple[Unary, ...] = tuple(found)
        self.facts: list[Sentence] = []
        self.steps: list[Sentence] = []
        for closure in self.closures:
            r = closure.operand
            self.say(f"{closure} has its steps", r, closure)
            self.say(f"{closure} goes on", Binary(";", closure, closure), closure)
            first, last = Binary(";", r, closure), Binary(";", closure, r)
            self.say(f"{closure} begins with a step", closure, Binary("|", r, first), step=True)
            self.say(f"{closure} ends with a step", closure, Binary("|", r, last), step=True)
        rw, ww = Name("rw"), Name("ww")
        self.say("who misses a version misses it", rw, MISSED)
        self.say("and the later ones", Binary(";", MISSED, Unary("+", ww)), MISSED)
        opened = Binary("|", rw, Binary(";", rw, Unary("+", ww)))
        self.say("and no others", MISSED, opened)

    def say(self, words: str, inner: CatExpr, outer: CatExpr, *, step: bool = False) -> None:
        """That one relation lies in another."""
        said = Sentence.none(words, Binary("\\", inner, outer))
        self.facts.append(said)
        if step:
            self.steps.append(said)


def _closures(expr: CatExpr) -> Iterator[Unary]:
    match expr:
        case Unary("+" | "*", operand):
            yield Unary("+", operand)
            yield from _closures(operand)
        case Unary(_, operand) | Bracket(operand):
            yield from _closures(operand)
        case Binary(_, left, right):
            yield from _closures(left)
            yield from _closures(right)
