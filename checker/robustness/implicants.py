"""Why formulas hold in an example: comparisons that hold in it, and with which all of them do.

Of two ways in which something may be so, one is enough: what the other one is about plays no part in the example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["implicant", "unknowns_of"]


def implicant(model: Any, formulas: Iterable[Any]) -> list[Any]:
    """Literals that hold in a model, and imply each of these formulas, which do, too.

    What follows from a supposed relation (``Implies``) counts if the relation does.

    >>> import z3
    >>> a, b, c, n = *z3.Bools("a b c"), z3.Int("n")
    >>> both = z3.And(z3.Or(a, b), z3.Not(z3.And(c, n > 3)))
    >>> solver = z3.Solver()
    >>> solver.add(b, z3.Not(a), z3.Not(c), n == 7)
    >>> str(solver.check()), implicant(solver.model(), [both])
    ('sat', [b, Not(c)])
    """
    return _Implicant(model).of(formulas)


def unknowns_of(formula: Any) -> frozenset[str]:
    """The names of the unknowns of a formula."""
    import z3

    found: set[str] = set()
    seen: set[int] = set()
    todo = [formula]
    while todo:
        one = todo.pop()
        if one.get_id() not in seen:
            seen.add(one.get_id())
            if _unknown(one):
                found.add(one.decl().name())
            todo += one.children()
    assert not z3.is_quantifier(formula)
    return frozenset(found)


def _unknown(formula: Any) -> bool:
    import z3

    return bool(z3.is_const(formula) and formula.decl().kind() == z3.Z3_OP_UNINTERPRETED)


class _Implicant:
    """Formulas that have to hold, taken apart as the model has them."""

    def __init__(self, model: Any) -> None:
        import z3

        self.z3: Any = z3
        self.model = model
        self.found: dict[tuple[int, bool], Any] = {}
        self.done: set[tuple[int, bool]] = set()

    def of(self, formulas: Iterable[Any]) -> list[Any]:
        later = []
        for formula in formulas:
            if self.z3.is_implies(formula):
                later.append(formula)
            else:
                self._need(formula, so=True)
        while True:
            left = [one for one in later if not self._followed(one)]
            if len(left) == len(later):
                return list(self.found.values())
            later = left

    def _followed(self, rule: Any) -> bool:
        """Whether one side of a rule is supposed, so that the other one follows."""
        if_so, then = rule.children()
        if self._known(if_so, so=True):
            self._need(then, so=True)
            return True
        if self._known(then, so=False):
            self._need(if_so, so=False)
            return True
        return False

    def _known(self, formula: Any, *, so: bool) -> bool:
        while self.z3.is_not(formula):
            formula, so = formula.arg(0), not so
        return (formula.get_id(), so) in self.found

    def _holds(self, formula: Any) -> bool:
        return bool(self.z3.is_true(self.model.eval(formula, model_completion=True)))

    def _need(self, formula: Any, *, so: bool) -> None:
        """That a formula is so, as it is in the model."""
        z3 = self.z3
        todo = [(formula, so)]
        while todo:
            one, said = todo.pop()
            if (one.get_id(), said) in self.done:
                continue
            self.done.add((one.get_id(), said))
            if z3.is_true(one) or z3.is_false(one):
                continue
            if z3.is_not(one):
                todo.append((one.arg(0), not said))
            elif z3.is_and(one) or z3.is_or(one):
                parts = [(part, said) for part in one.children()]
                todo += reversed(parts) if z3.is_and(one) == said else self._enough(parts)
            elif z3.is_implies(one):
                parts = [(one.arg(0), not said), (one.arg(1), said)]
                todo += self._enough(parts) if said else reversed(parts)
            else:
                self.found[one.get_id(), said] = one if said else z3.Not(one)

    def _enough(self, parts: list[tuple[Any, bool]]) -> Iterator[tuple[Any, bool]]:
        """One of several parts that is so: if one was needed anyhow, that one."""
        for part, said in parts:
            if (part.get_id(), said) in self.done:
                return
        yield next((part, said) for part, said in parts if self._holds(part) == said)
