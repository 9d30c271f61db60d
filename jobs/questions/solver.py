"""A solver with a deterministic work limit, and its solutions."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from isolitmus.checker.solver.smt import c_function, raise_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.jobs.templates.expression_formulas import RowTerm, ValueTerm

UNITS = 4_000_000
"""Work limit of a question, in units of the solver: unlike seconds, the same on all machines."""


class Solution:
    """A model of a solver; ``rows`` are its relevant rows, each with its table."""

    def __init__(self, model: Any, rows: Sequence[tuple[str, RowTerm]] = ()) -> None:
        self.model = model
        self.rows = rows

    def value(self, term: Any) -> bool | Fraction:
        """Return the value of a term, a truth value or a number."""
        import z3

        found = self.said(term)
        return bool(z3.is_true(found)) if z3.is_bool(found) else Fraction(found.as_string())

    def has(self, formula: Any) -> bool:
        """Return whether a formula holds in the model."""
        return self.says(formula.as_ast())

    def says(self, formula: Any) -> bool:
        """Return whether a formula, given as an object of the C interface, holds in the model."""
        import z3

        context, found = self.model.ctx.ref(), (z3.Ast * 1)()
        if not c_function("Z3_model_eval")(context, self.model.model, formula, True, found):
            raise_failure()
        return bool(c_function("Z3_get_bool_value")(context, found[0]) == z3.Z3_L_TRUE)

    def others(self, terms: Iterable[ValueTerm]) -> Any:
        """Return the formula that one of these terms has another value than in the model."""
        import z3

        return z3.Or(*(z3.Not(z3.And(*self.fixed(term))) for term in terms))

    def fixed(self, term: ValueTerm) -> Iterator[Any]:
        """Yield the formulas that a term has the value of the model, which may be NULL."""
        import z3

        null = self.has(term.null)
        if not z3.is_false(term.null):
            yield term.null if null else z3.Not(term.null)
        if not null:
            yield term.value == self.said(term.value)

    def said(self, term: Any) -> Any:
        """Return the value of a term as an expression of the solver."""
        return self.model.eval(term, model_completion=True)


class LimitedSolver:
    """Solver with a work limit, in a context of its own or in the ``main`` one.

    In its own context, its answers depend only on its questions and their order. All formulas that
    it receives and all models that it returns belong to the main context.
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
        """Remove all assertions."""
        self.solver = self.z3.SimpleSolver(ctx=self.context)
        self.solver.set("rlimit", UNITS)
        self.solver.set("random_seed", 0)
        # else the solver answers "unknown" at Ctrl-C, and Python handles the interrupt afterwards
        self.solver.set("ctrl_c", False)

    def tell(self, *formulas: Any) -> None:
        """Assert formulas."""
        say, context, solver = (
            c_function("Z3_solver_assert"),
            self.context.ref(),
            self.solver.solver,
        )
        for formula in self._own(formulas):
            say(context, solver, formula)

    @contextmanager
    def within(self, *formulas: Any) -> Iterator[None]:
        """Assert formulas for a block."""
        self.solver.push()
        self.tell(*formulas)
        try:
            yield
        finally:
            self.solver.pop()

    def possible(self, *supposed: Any) -> bool | None:
        """Return whether the assertions and assumptions are satisfiable; None if unknown."""
        own = (self.z3.Ast * len(supposed))(*self._own(supposed))
        said = self.core.Z3_solver_check_assumptions(
            self.context.ref(), self.solver.solver, len(own), own
        )
        return {self.z3.Z3_L_TRUE: True, self.z3.Z3_L_FALSE: False}.get(said)

    def _own(self, formulas: Iterable[Any]) -> Iterator[Any]:
        """Yield formulas in the context of this solver, as objects of the C interface."""
        if self.context is self.main:
            yield from (one.as_ast() for one in formulas if one is not True)
            return
        given, main = self.z3.AstVector(ctx=self.main), self.main.ref()
        push, get = c_function("Z3_ast_vector_push"), c_function("Z3_ast_vector_get")
        asserted = [one for one in formulas if one is not True]
        for one in asserted:
            push(main, given.vector, one.as_ast())
        own, context = given.translate(self.context), self.context.ref()
        if len(own) < len(asserted):
            raise_failure()
        for k in range(len(own)):
            yield get(context, own.vector, k)

    @property
    def model(self) -> Solution:
        """Model of the last satisfiable question."""
        found = self.solver.model()
        return Solution(found if self.context is self.main else found.translate(self.main))

    @property
    def against(self) -> frozenset[str]:
        """Names of the assumptions in the unsatisfiable core."""
        return frozenset(one.decl().name() for one in self.solver.unsat_core())
