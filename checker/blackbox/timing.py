"""Real time in recorded histories: who had ended when somebody else began."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.read_from import Attributed
    from isolitmus.model.blackbox_history import RegisterHistory

__all__ = ["ended_before", "out_of_time", "timed"]


def timed(history: RegisterHistory) -> bool:
    """Whether it was recorded when transactions began and ended."""
    return history.started is not None and history.ended is not None


def ended_before(seen: Attributed) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each transaction that counts and each session, the last one of it that had ended when that one began; those
    before it in its session ended, too, or come before it.
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


def out_of_time(seen: Attributed, moments: NDArray[np.int64], each: int) -> int | None:
    """A transaction that ended, in time, before another began, and after that in an order of events; None: there is
    none. ``moments``: of each event its place in the order.
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
