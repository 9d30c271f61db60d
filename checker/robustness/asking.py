"""The solver behind questions about workloads: small ones, one after another."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolitmus.checker.robustness.casting import Participant

__all__ = ["Asked"]

UNITS = 4_000_000
"""So many units of the solver's work a question may take: unlike seconds, these count the same on all machines."""
SPREAD = 30
"""So many wishes for an example that is easy to read are tried."""


class Solution:
    """An example that the solver gave, in a context of its own."""

    def __init__(self, model: Any, context: Any) -> None:
        self._model = model
        self._context = context

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
        return self._model.eval(term.translate(self._context), model_completion=True)


class Asked:
    """What a solver is told of some roles, and what it says.

    It is told what holds of all questions once, and what holds of some ``within`` a block.
    """

    def __init__(self, roles: Iterable[Participant], given: Iterable[Any] = ()) -> None:
        import z3

        self.z3: Any = z3
        self.context: Any = z3.Context()  # what else was asked before has no say in the answer
        self.solver: Any = z3.SimpleSolver(ctx=self.context)
        self.solver.set("rlimit", UNITS)
        self.solver.set("random_seed", 0)
        self.roles = tuple(roles)
        bounds = {one.get_id(): one for role in self.roles for one in role.terms.bounds}
        self._tell(*(role.domain for role in self.roles), *bounds.values(), *given)
        self.model: Any = None

    def _tell(self, *formulas: Any) -> None:
        for formula in formulas:
            if formula is not True:
                self.solver.add(formula.translate(self.context))

    @contextmanager
    def within(self, *formulas: Any) -> Iterator[None]:
        """Tell the solver what holds in all questions of a block."""
        self.solver.push()
        self._tell(*formulas)
        try:
            yield
        finally:
            self.solver.pop()

    def possible(self, *parts: Any) -> bool | None:
        """Whether all this may hold together; None if the solver cannot say. ``model`` is then an example."""
        with self.within(*parts):
            return self._check()

    def _check(self, *supposed: Any) -> bool | None:
        said = str(self.solver.check(*supposed))
        self.model = Solution(self.solver.model(), self.context) if said == "sat" else None
        return {"sat": True, "unsat": False}.get(said)

    def example(self, *parts: Any, wanted: Any = True, apart: bool = False) -> Any | None:
        """A model in which all this holds: if there is one with what is ``wanted`` besides, and with values that
        a person would take, such a one; ``apart``: with values that differ where they may.
        """
        usual = [formula for role in self.roles for formula in role.terms.usual]
        with self.within(*parts):
            for more in ((wanted,), ()):
                with self.within(*more):
                    if self._check():
                        self._wish(usual)
                        if apart:
                            self._spread()
                        else:
                            self._wish(self._one_row())
                        return self.model
        return None

    def _wish(self, formulas: Iterable[Any]) -> None:
        """Make the model one of all of these, but for those that cannot be together."""
        wishes: dict[int, tuple[Any, Any]] = {}
        for formula in formulas:
            wish = self.z3.FreshConst(self.z3.BoolSort(self.context), "wish")
            wishes[wish.get_id()] = wish, formula
            self.solver.add(self.z3.Implies(wish, formula.translate(self.context)))
        while wishes and self._check(*(wish for wish, _ in wishes.values())) is False:
            for against in self.solver.unsat_core():
                del wishes[against.get_id()]
        if self.model is not None:
            self._tell(*(formula for _, formula in wishes.values()))
        else:
            self._check()

    def _one_row(self) -> Iterator[Any]:
        """That all rows of a table are one."""
        first: dict[str, Any] = {}
        for table, row in (one for role in self.roles for one in role.terms.rows):
            other = first.setdefault(table, row)
            if other is not row:
                yield self.z3.And(
                    *(
                        self.z3.And(a.null == b.null, a.value == b.value)
                        for a, b in zip(row, other, strict=True)
                    )
                )

    def _spread(self) -> None:
        """Make the model one in which parameters are as a person would take them, and values of different
        statements differ, one by one as far as that goes.
        """
        found = self.model
        for formula in self._wishes():
            if found.has(formula):
                self._tell(formula)
            elif self.possible(formula):
                found = self.model
                self._tell(formula)
        self.model = found

    def _wishes(self) -> list[Any]:
        """What would make an example easy to read, the more important first."""
        wanted = [
            f for role in self.roles for f in role.terms.usual[: 2 * len(role.statement.types)]
        ]
        own = [
            [t.value for t in role.terms.parameters.values()]
            + [t.value for _, row in role.terms.rows for t in row]
            for role in self.roles
        ]
        for some, other in combinations(own, 2):
            for x, y in product(some, other):
                if len(wanted) >= SPREAD:
                    return wanted[:SPREAD]
                if x.sort() == y.sort():
                    wanted.append(x != y)
        return wanted[:SPREAD]

    def text(self, *parts: Any) -> str:
        """A question in SMT-LIB."""
        with self.within(*parts):
            return str(self.solver.to_smt2())
