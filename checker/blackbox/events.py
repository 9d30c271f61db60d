"""Events of transactions at a level, and real time.

A transaction's beginning and end, at the levels that ask for a version order (at serializable one
event).

What sees comes after the end of what it sees; what misses a version begins before its writer ends.
So an order of events is what a level asks for, and the dependency graphs of Cerone and Gotsman
(specs/levels: serializable, snapshot-isolation, prefix-consistency, each with the session order)
are those without a cycle of events.

Real time in recorded histories: who had ended when somebody else began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.precedence import KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.precedence import EdgeColumns
    from isolitmus.checker.blackbox.read_from import AttributedReads
    from isolitmus.model.blackbox_history import RegisterHistory

__all__ = ["TIMED", "Events", "ended_before_start", "find_time_violation", "has_times"]

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
        """What must come after the end of who wrote a version before: at snapshot isolation all of
        it.
        """
        return (
            self.end(transaction) if self.level == "prefix-consistency" else self.begin(transaction)
        )

    def of(self, edges: EdgeColumns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The events that edges lead from and to."""
        starts = (edges.kind == KINDS.index("rw")) | (edges.kind == KINDS.index("within"))
        source = np.where(starts, self.begin(edges.source), self.end(edges.source))
        target = np.where(starts, self.end(edges.target), self.begin(edges.target))
        versions = edges.kind == KINDS.index("ww")
        return source, np.where(versions, self.after(edges.target), target)


def has_times(history: RegisterHistory) -> bool:
    """Whether it was recorded when transactions began and ended."""
    return history.started is not None and history.ended is not None


def ended_before_start(seen: AttributedReads) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each transaction that counts and each session, the last one of it that had ended when that
    one began; those before it in its session ended, too, or come before it.
    """
    history = seen.history
    assert history.started is not None
    assert history.ended is not None
    counting = np.flatnonzero(seen.counts)
    started = history.started[counting]
    sources, targets = [counting[:0]], [counting[:0]]
    for session in range(len(history.sessions)):
        own = counting[history.session[counting] == session]
        own = own[np.argsort(history.ended[own], kind="stable")]
        if len(own):
            many = np.searchsorted(history.ended[own], started, "left")
            latest = np.maximum.accumulate(own)[many - 1]
            found = (many > 0) & (latest != counting)
            sources.append(latest[found])
            targets.append(counting[found])
    return np.concatenate(sources), np.concatenate(targets)


def find_time_violation(seen: AttributedReads, moments: NDArray[np.int64], each: int) -> int | None:
    """A transaction that ended, in time, before another began, and after that in an order of
    events; None: there is none. ``moments``: of each event its place in the order.
    """
    history = seen.history
    assert history.started is not None
    assert history.ended is not None
    counting = np.flatnonzero(seen.counts)
    began, ended = moments[counting * each], moments[counting * each + each - 1]
    order = np.argsort(began)
    latest_start = np.maximum.accumulate(history.started[counting][order])
    before = np.searchsorted(began[order], ended, "left")
    late = (before > 0) & (latest_start[np.maximum(before - 1, 0)] > history.ended[counting])
    return int(counting[np.argmax(late)]) if late.any() else None
