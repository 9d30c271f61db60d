"""Z3 behind clauses: the one place that knows the solver, which has no types.

The circuits are propositional, so Z3's solver for finite domains gets them as DIMACS text, which it
reads many times faster than it takes terms from Python.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import TimeLimit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isolitmus.checker.gates import Gates

__all__ = ["Model", "Solver"]


class Model:
    """An assignment of the variables, read when asked."""

    def __init__(self, solver: Solver) -> None:
        self._model = solver.z3.model()
        self._solver = solver

    def __getitem__(self, literal: int) -> bool:
        if abs(literal) == 1:
            return literal == 1
        value = self._model.get_interp(self._solver.variable(abs(literal)))
        return (value is not None and self._solver.truth(value)) == (literal > 0)


class Solver:
    """A solver that keeps up with the clauses of some gates, incrementally.

    ``deadline`` is a moment of ``time.monotonic``; a check that would pass it raises TimeLimit.

    >>> from isolitmus.checker.gates import Gates
    >>> gates = Gates()
    >>> a, b = gates.new(), gates.new()
    >>> gates.add(a, b)
    >>> solver = Solver(gates)
    >>> solver.check([-a])[b], solver.check([-a, -b])
    (True, None)
    """

    def __init__(self, gates: Gates, deadline: float | None = None) -> None:
        import z3

        self.z3: Any = z3.SolverFor("QF_FD")
        self.truth = z3.is_true
        self.checks = 0
        self._gates = gates
        self._loaded = 0
        self._deadline = deadline
        self._bool = z3.Bool
        self._not = z3.Not
        self._variables: dict[int, Any] = {}

    def check(self, assumptions: Sequence[int] = ()) -> Model | None:
        """A model in which the assumptions hold, or None if there is none."""
        from z3 import sat, unknown

        self._load()
        if self._deadline is not None:
            left = int((self._deadline - monotonic()) * 1000)
            if left <= 0:
                raise TimeLimit("the time limit ended the search")
            self.z3.set("timeout", left)
        self.checks += 1
        answer = self.z3.check(*self._literals(assumptions))
        if answer == unknown:
            raise TimeLimit(f"the solver gave up: {self.z3.reason_unknown()}")
        return Model(self) if answer == sat else None

    def variable(self, number: int) -> Any:
        """Z3's name of a variable."""
        if number not in self._variables:
            self._variables[number] = self._bool(number)
        return self._variables[number]

    def _literals(self, literals: Iterable[int]) -> list[Any]:
        return [
            self.variable(literal) if literal > 0 else self._not(self.variable(-literal))
            for literal in literals
        ]

    def _load(self) -> None:
        new = self._gates.clauses[self._loaded :]
        if not new:
            return
        self._loaded += len(new)
        lines = [f"p cnf {self._gates.variables} {len(new)}"]
        lines += [" ".join(map(str, clause)) + " 0" for clause in new]
        self.z3.from_string("\n".join(lines) + "\n")
