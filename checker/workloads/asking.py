"""The solver behind questions about workloads: small ones, one after another."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from isolitmus.checker.workloads.instances import bounds_of
from isolitmus.checker.workloads.simple_examples import Examples
from isolitmus.checker.workloads.solver import LimitedSolver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolitmus.checker.workloads.instances import Participant
    from isolitmus.checker.workloads.solver import Solution

__all__ = ["Asked"]


class Asked:
    """What a solver is told of some roles, and what it says.

    It is told what holds of all questions once, and what holds of some ``within`` a block.
    """

    def __init__(self, roles: Iterable[Participant], given: Iterable[Any] = ()) -> None:
        import z3

        self.z3: Any = z3
        self.roles = tuple(roles)
        self.model: Solution | None = None
        self._told = [*(role.domain for role in self.roles), *given]
        self._examples = Examples(self.roles)
        self._solver = LimitedSolver(main=True)
        self._solver.tell(*bounds_of(self.roles), *self._told)

    @contextmanager
    def within(self, *formulas: Any) -> Iterator[None]:
        """Tell the solver what holds in all questions of a block."""
        with self._solver.within(*formulas):
            yield

    def possible(self, *parts: Any) -> bool | None:
        """Whether all this may hold together; None if the solver cannot say. ``model`` is then an example."""
        with self.within(*parts):
            said = self._solver.possible()
            self.model = self._solver.model if said else None
        return said

    def example(self, *parts: Any, wanted: Any = None, apart: bool = False) -> Solution | None:
        """A model in which all this holds: if there is one with what is ``wanted`` besides, and with values that
        a person would take, such a one; ``apart``: with values that differ where they may.

        It hangs on the question alone, not on what was asked before.
        """
        for more in ((wanted,), ()) if wanted is not None else ((),):
            found = self._examples.of((*self._told, *parts, *more), apart=apart)
            if found is not None:
                return found
        return None

    def text(self, *parts: Any) -> str:
        """A question in SMT-LIB."""
        with self.within(*parts):
            return str(self._solver.solver.to_smt2())
