"""The solver behind questions about workloads: small ones, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.checker.robustness.casting import Participant

__all__ = ["Asked"]

UNITS = 4_000_000
"""So many units of the solver's work a question may take: unlike seconds, these count the same on all machines."""


SPREAD = 30
"""So many of such wishes are tried."""


class Solution:
    """An example that the solver gave, in a context of its own."""

    def __init__(self, model: Any, context: Any) -> None:
        self._model = model
        self._context = context

    def eval(self, term: Any, *, model_completion: bool) -> Any:
        """The value of a term."""
        import z3

        found = self._model.eval(term.translate(self._context), model_completion=model_completion)
        return found.translate(z3.main_ctx())


class Asked:
    """What a solver is told of some roles, and what it says.

    ``questions`` are those that it was asked, as SMT-LIB, with what it said: another solver can be asked them.
    """

    def __init__(self, roles: Iterable[Participant], given: Iterable[Any]) -> None:
        import z3

        self.z3: Any = z3
        self.context: Any = z3.Context()  # what else was asked before has no say in the answer
        self.solver: Any = z3.Solver(ctx=self.context)
        self.solver.set("rlimit", UNITS)
        self.solver.set("random_seed", 0)
        self.roles = tuple(roles)
        self._tell(*(role.domain for role in self.roles), *given)
        for role in self.roles:
            self._tell(*role.terms.bounds)
        self.model: Any = None

    def _tell(self, *formulas: Any) -> None:
        self.solver.add(*(self.z3.And(formula).translate(self.context) for formula in formulas))

    def possible(self, *parts: Any) -> bool | None:
        """Whether all this may hold together; None if the solver cannot say. ``model`` is then an example."""
        self.model = None
        self.solver.push()
        self._tell(*parts)
        said = str(self.solver.check())
        if said == "sat":
            self.model = Solution(self.solver.model(), self.context)
        self.solver.pop()
        return {"sat": True, "unsat": False}.get(said)

    def example(self, *parts: Any, wanted: Any = True, apart: bool = False) -> Any | None:
        """A model in which all this holds: if there is one with what is ``wanted`` besides, and with values that
        a person would take, such a one; ``apart``: with values that differ where they may.
        """
        usual = [formula for role in self.roles for formula in role.terms.usual]
        for more in ((wanted, *usual), (wanted,), tuple(usual), ()):
            if self.possible(*parts, *more):
                if apart:
                    self._spread(*parts, *more)
                return self.model
        return None

    def _spread(self, *parts: Any) -> None:
        """Make the model one in which parameters are as a person would take them, and values of different
        statements differ, one by one as far as that goes.
        """
        found, kept = self.model, list(parts)
        wanted = [
            f for role in self.roles for f in role.terms.usual[: 2 * len(role.statement.types)]
        ]
        own = [
            [t.value for t in role.terms.parameters.values()]
            + [t.value for _, row in role.terms.rows for t in row]
            for role in self.roles
        ]
        wanted += [
            x != y
            for k, some in enumerate(own)
            for x in some
            for other in own[k + 1 :]
            for y in other
            if x.sort() == y.sort()
        ]
        for formula in wanted[:SPREAD]:
            if self.possible(*kept, formula):
                found = self.model
                kept.append(formula)
        self.model = found

    def text(self, *parts: Any) -> str:
        """A question in SMT-LIB."""
        self.solver.push()
        self._tell(*parts)
        text = str(self.solver.to_smt2())
        self.solver.pop()
        return text
