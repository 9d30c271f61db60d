"""Events of transactions at a level that asks for a version order, and real-time order.

A transaction has two events, its beginning and its end; at serializable they are one. A transaction
begins after the end of each transaction that it sees; it begins before the end of each writer whose
version it misses. So a level asks for an order of events, and the dependency graphs of Cerone and
Gotsman (specs/levels: serializable, snapshot-isolation, prefix-consistency, each with the session
order) are those without a cycle of events.

Real time, in recorded histories: a transaction that ended before another began comes before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.blackbox.precedence import KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.histories.blackbox.precedence import EdgeColumns
    from isolitmus.histories.blackbox.read_from import AttributedReads
    from isolitmus.histories.readers.blackbox_history import RegisterHistory

TIMED = {
    "strong-snapshot-isolation": "snapshot-isolation",
    "strict-serializable": "serializable",
}
"""Levels that also ask for real-time order, each with the level that it is without real time."""


@dataclass(frozen=True, slots=True)
class Events:
    """Numbering of the events of transactions at a level: transaction t has ``each`` events from
    t·each.
    """

    level: str

    @property
    def base(self) -> str:
        """The level without real time."""
        return TIMED.get(self.level, self.level)

    @property
    def each(self) -> int:
        """Number of events of a transaction."""
        return 1 if self.base == "serializable" else 2

    def begin(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the events at which transactions read."""
        return transaction * self.each

    def end(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the events at which the writes of transactions become visible."""
        return transaction * self.each + self.each - 1

    def after(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the events before which the writer of an earlier version must have ended.

        At prefix consistency these are the ends of ``transaction``, else (also at snapshot
        isolation) its beginnings.
        """
        return (
            self.end(transaction) if self.level == "prefix-consistency" else self.begin(transaction)
        )

    def of(self, edges: EdgeColumns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the source event and the target event of each edge, two arrays of shape
        (n_edges,).
        """
        starts = (edges.kind == KINDS.index("rw")) | (edges.kind == KINDS.index("within"))
        source = np.where(starts, self.begin(edges.source), self.end(edges.source))
        target = np.where(starts, self.end(edges.target), self.begin(edges.target))
        versions = edges.kind == KINDS.index("ww")
        return source, np.where(versions, self.after(edges.target), target)


def has_times(history: RegisterHistory) -> bool:
    """Return whether the history records when transactions began and ended."""
    return history.started is not None and history.ended is not None


def ended_before_start(
    seen: AttributedReads, targets: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return real-time edges from transactions that count, at most one per target and session.

    For each target and session, the source is the last transaction of the session that had ended
    when the target began. Transactions before it in its session also ended, or come before it.

    Parameters
    ----------
    seen : AttributedReads
        History with times.
    targets : ndarray of int64, shape (n_targets,), optional
        Transactions; those that count by default.

    Returns
    -------
    source, target : ndarray of int64, shape (n_edges,)
        Transactions; the source ended before the target began.
    """
    history = seen.history
    assert history.started is not None
    assert history.ended is not None
    counting = np.flatnonzero(seen.counts)
    later = counting if targets is None else targets
    started = history.started[later]
    sources, reached = [counting[:0]], [counting[:0]]
    for session in range(len(history.sessions)):
        own = counting[history.session[counting] == session]
        own = own[np.argsort(history.ended[own], kind="stable")]
        if len(own):
            many = np.searchsorted(history.ended[own], started, "left")
            latest = np.maximum.accumulate(own)[many - 1]
            found = (many > 0) & (latest != later)
            sources.append(latest[found])
            reached.append(later[found])
    return np.concatenate(sources), np.concatenate(reached)


def find_time_violation(seen: AttributedReads, moments: NDArray[np.int64], each: int) -> int | None:
    """Return a transaction that ended before another one began in time, but after it in the event
    order.

    Parameters
    ----------
    seen : AttributedReads
        History with times.
    moments : ndarray of int64, shape (n_events,)
        Position of each event in the order.
    each : int
        Number of events of a transaction.

    Returns
    -------
    int or None
        The transaction that ended first; None if there is none.
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
