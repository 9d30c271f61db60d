"""A transaction's beginning and end, at the levels that ask for a version order (at serializable one event).

What sees comes after the end of what it sees; what misses a version begins before its writer ends. So an order of
events is what a level asks for, and the dependency graphs of Cerone and Gotsman (specs/levels: serializable,
snapshot-isolation, prefix-consistency, each with the session order) are those without a cycle of events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.precedence import KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.precedence import Arrows

__all__ = ["TIMED", "Events"]

TIMED = {
    "strong-snapshot-isolation": "snapshot-isolation",
    "strict-serializable": "serializable",
}
"""Levels that ask for real time, too, each with the one that it is without that."""


@dataclass(frozen=True, slots=True)
class Events:
    """The events of transactions at a level, as numbers."""

    level: str

    @property
    def base(self) -> str:
        """The level without real time."""
        return TIMED.get(self.level, self.level)

    @property
    def each(self) -> int:
        """How many a transaction has."""
        return 1 if self.base == "serializable" else 2

    def begin(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """When it reads."""
        return transaction * self.each

    def end(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """When its writes are there."""
        return transaction * self.each + self.each - 1

    def after(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """What must come after the end of who wrote a version before: at snapshot isolation all of it."""
        return (
            self.end(transaction) if self.level == "prefix-consistency" else self.begin(transaction)
        )

    def of(self, edges: Arrows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The events that edges lead from and to."""
        starts = (edges.kind == KINDS.index("rw")) | (edges.kind == KINDS.index("within"))
        source = np.where(starts, self.begin(edges.source), self.end(edges.source))
        target = np.where(starts, self.end(edges.target), self.begin(edges.target))
        versions = edges.kind == KINDS.index("ww")
        return source, np.where(versions, self.after(edges.target), target)
