"""A solver that takes so much work and no more, and what it finds."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.checker.templates.expression_formulas import RowTerm

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

        found = self.said(term)
        return bool(z3.is_true(found)) if z3.is_bool(found) else Fraction(str(found))

    def has(self, formula: Any) -> bool:
        """Whether a formula holds in it."""
        return self.says(formula.as_ast())

    def says(self, formula: Any) -> bool:
        """The same of a formula as the solver's C interface has it."""
        import z3

        core, context, found = z3.z3core, self.model.ctx.ref(), (z3.Ast * 1)()
        core.Z3_model_eval(context, self.model.model, formula, True, found)
        return bool(core.Z3_get_bool_value(context, found[0]) == z3.Z3_L_TRUE)

    def others(self, terms: Iterable[Any]) -> Any:
        """That one of these terms has another value than here."""
        import z3

        return z3.Or(*(term != self.said(term) for term in terms))

    def said(self, term: Any) -> Any:
        """The same as the solver has it."""
        return self.model.eval(term, model_completion=True)


class LimitedSolver:
    """What a solver is told, and what it says; in a context of its own, unless it is to be in the ``main`` one. There it
    says the same if it is asked the same in the same order: nobody else asks it anything. All formulas that it is
    given, and all examples that it gives, are of the main one.
    """

    def __init__(self, *, main: bool = False) -> None:
        import z3

        self.z3: Any = z3
        self.core: Any = z3.z3core
        self.main: Any = z3.main_ctx()
        self.context: Any = self.main if main else z3.Context()
        self.solver: Any
        self.begin()

    def begin(self) -> None:
        """Forget what it was told."""
        self.solver = self.z3.SimpleSolver(ctx=self.context)
        self.solver.set("rlimit", UNITS)
        self.solver.set("random_seed", 0)
        self.solver.set(
            "ctrl_c", False
        )  # else it takes one for an unknown; Python hears it afterwards

    def tell(self, *formulas: Any) -> None:
        """Tell it what holds."""
        for formula in self._own(formulas):
            self.core.Z3_solver_assert(self.context.ref(), self.solver.solver, formula)

    @contextmanager
    def within(self, *formulas: Any) -> Iterator[None]:
        """Tell it what holds in a block."""
        self.solver.push()
        self.tell(*formulas)
        try:
            yield
        finally:
            self.solver.pop()

    def possible(self, *supposed: Any) -> bool | None:
        """Whether all that may hold together, and some truth values besides; None if it cannot say."""
        own = (self.z3.Ast * len(supposed))(*self._own(supposed))
        said = self.core.Z3_solver_check_assumptions(
            self.context.ref(), self.solver.solver, len(own), own
        )
        return {self.z3.Z3_L_TRUE: True, self.z3.Z3_L_FALSE: False}.get(said)

    def _own(self, formulas: Iterable[Any]) -> Iterator[Any]:
        """Formulas in its own context, all at once, as the C interface has them."""
        given = self.z3.AstVector(ctx=self.main)
        for one in formulas:
            if one is not True:
                self.core.Z3_ast_vector_push(self.main.ref(), given.vector, one.as_ast())
        own = given if self.context is self.main else given.translate(self.context)
        for k in range(len(own)):
            yield self.core.Z3_ast_vector_get(self.context.ref(), own.vector, k)

    @property
    def model(self) -> Solution:
        """Of what is possible an example, as the solver has it."""
        found = self.solver.model()
        return Solution(found if self.context is self.main else found.translate(self.main))

    @property
    def against(self) -> frozenset[str]:
        """Of what was supposed what cannot be together."""
        return frozenset(one.decl().name() for one in self.solver.unsat_core())
