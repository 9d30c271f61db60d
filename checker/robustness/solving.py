"""A solver that takes so much work and no more, and what it finds."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isolitmus.checker.templates.terms import RowTerm

__all__ = ["LimitedSolver", "Solution"]

UNITS = 4_000_000
"""So many units of the solver's work a question may take: unlike seconds, these count the same on all machines."""


class Solution:
    """An example that a solver gave; ``rows`` are those that play a part in it, each with its table."""

    def __init__(self, model: Any, rows: Sequence[tuple[str, RowTerm]] = ()) -> None:
        self.model = model
        self.rows = rows

    def value(self, term: Any) -> bool | Fraction:
        """The value of a term: a truth value or a number."""
        import z3

        found = self._said(term)
        return bool(z3.is_true(found)) if z3.is_bool(found) else Fraction(str(found))

    def has(self, formula: Any) -> bool:
        """Whether a formula holds in it."""
        return self.value(formula) is True

    def others(self, terms: Iterable[Any]) -> Any:
        """That one of these terms has another value than here."""
        import z3

        return z3.Or(*(term != self._said(term).translate(z3.main_ctx()) for term in terms))

    def _said(self, term: Any) -> Any:
        own = term if term.ctx is self.model.ctx else term.translate(self.model.ctx)
        return self.model.eval(own, model_completion=True)


class LimitedSolver:
    """What a solver is told, and what it says; in a context of its own, if none is given. There it says the same if
    it is asked the same in the same order: nobody else asks it anything.
    """

    def __init__(self, context: Any = None) -> None:
        import z3

        self.context: Any = context or z3.Context()
        self.solver: Any = z3.SimpleSolver(ctx=self.context)
        self.solver.set("rlimit", UNITS)
        self.solver.set("random_seed", 0)

    def tell(self, *formulas: Any) -> list[Any]:
        """Tell it what holds; the same in its own context."""
        own = [self._own(one) for one in formulas if one is not True]
        self.solver.add(*own)
        return own

    def possible(self, *supposed: Any) -> bool | None:
        """Whether all that may hold together, and some truth values besides; None if it cannot say."""
        said = str(self.solver.check(*map(self._own, supposed)))
        return {"sat": True, "unsat": False}.get(said)

    def _own(self, formula: Any) -> Any:
        return formula if formula.ctx is self.context else formula.translate(self.context)

    @property
    def model(self) -> Any:
        """Of what is possible an example, as the solver has it."""
        return self.solver.model()

    @property
    def against(self) -> frozenset[str]:
        """Of what was supposed what cannot be together."""
        return frozenset(one.decl().name() for one in self.solver.unsat_core())
