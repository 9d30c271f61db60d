"""Which candidates of a scope one spec admits and another forbids; and, counted, those that only a silence keeps
from it: of these the one is silent and does not forbid them, or the other is and does not admit them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.judge.compiled_semantics import admission
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.model.number import many
from isolitmus.model.spec_algebra import outspoken, strict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.universes.tables import Candidate
    from isolitmus.model.budget import Budget
    from isolitmus.model.format import MakesFrames, ScopeSolver
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

__all__ = ["ENOUGH", "Witnesses"]

ENOUGH = 100
"""So many silent candidates a solver counts."""


class Witnesses:
    """The candidates that ``a`` admits and ``b`` forbids, with ``unexplained`` those only that no serial order
    explains; ``silent`` others have been met so far.
    """

    def __init__(self, a: Spec, b: Spec, frame: MakesFrames, *, unexplained: bool) -> None:
        self.a, self.b, self.unexplained = a, b, unexplained
        self.silent = 0
        self._admits, self._grants = (_on_candidates(spec, frame) for spec in (a, b))
        self._tolerates, self._permits = self._admits, self._grants
        if a.silences:
            self._tolerates = _on_candidates(outspoken(a), frame)
        if b.silences:
            self._permits = _on_candidates(outspoken(b), frame)

    def accept(self, candidate: Candidate) -> bool:
        """Whether it is one; if but for a silence it might be, it is counted."""
        if not self._tolerates(candidate) or self._grants(candidate):
            return False
        if self.unexplained and not candidate.unexplained():
            return False
        said = self._admits(candidate) and not self._permits(candidate)
        self.silent += not said
        return said

    def words(
        self, solver: ScopeSolver | None, scope: Scope, sizes: Sequence[int], budget: Budget
    ) -> str:
        """How many candidates of these sizes are silent, none being a witness: as the enumeration met them, or as
        the ``solver``, which proposes none of them, finds them when it is asked.
        """
        if not (self.a.silences or self.b.silences):
            return ""
        if solver is not None:
            self.silent = 0
            a, b = outspoken(self.a), strict(self.b)
            for n in sizes:
                solver.search(a, b, scope, n, self._enough, budget=budget)
        least = "at least " if solver is not None and self.silent >= ENOUGH else ""
        return f", {least}{many(self.silent, 'candidate')} silent" if self.silent else ""

    def _enough(self, candidate: Candidate) -> bool:
        """Whether so many are met as a solver counts."""
        return not self.accept(candidate) and self.silent >= ENOUGH


def _on_candidates(spec: Spec, frame: MakesFrames) -> Callable[[Candidate], bool]:
    admits = admission(spec)
    if needs_reads(spec):
        return lambda candidate: admits(frame(candidate.events, reasons=False, reads=True))
    return lambda candidate: admits(candidate.frame)
