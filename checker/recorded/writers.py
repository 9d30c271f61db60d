"""Of a key and a chain of transactions, the latest writer up to a bound, or the earliest one that something holds of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from isolitmus.checker.recorded.observing import Attributed

__all__ = ["Writers", "ranges", "span"]


class Writers:
    """Who wrote each key, chain by chain. A slot is a key and a chain in which it is written."""

    def __init__(self, seen: Attributed) -> None:
        chain = seen.chains()
        width = int(chain.max()) + 1
        slot = seen.written_key * width + chain[seen.written_by]
        order = np.lexsort((seen.written_by, slot))
        self.size = len(chain)
        self.writer: NDArray[np.int64] = seen.written_by[order]
        """All writers, slot by slot, each in the order of its chain."""
        kinds, self.start, self.many = np.unique(slot[order], return_index=True, return_counts=True)
        self.key: NDArray[np.int64] = kinds // width
        """Of each slot."""
        self.chain: NDArray[np.int64] = kinds % width
        """Of each slot."""
        slots = np.repeat(np.arange(len(kinds)), self.many)
        self._place = slots * self.size + self.writer

    def slots(self, key: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each of some keys with each of its slots: which of the keys, by its place, and the slot."""
        low, many = span(self.key, key)
        return np.repeat(np.arange(len(key)), many), ranges(low, many)

    def latest(self, slot: NDArray[np.int64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
        """The latest writer of each slot whose number is at most the bound; -1: there is none."""
        at = np.searchsorted(self._place, slot * self.size + bound, "right") - 1
        there = (bound >= 0) & (at >= self.start[slot])
        return np.where(there, self.writer[at], -1)

    def earliest(
        self, slot: NDArray[np.int64], holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """The first writer of each slot that something holds of, as it then does of all later ones; -1: there is none.
        ``holds`` is asked of one writer for each slot that was given, in their order.
        """
        low, end = self.start[slot], self.start[slot] + self.many[slot]
        high = end.copy()
        while (open_ := low < high).any():
            middle = (low + high) // 2
            good = holds(self.writer[np.minimum(middle, len(self.writer) - 1)])
            high = np.where(open_ & good, middle, high)
            low = np.where(open_ & ~good, middle + 1, low)
        return np.where(low < end, self.writer[np.minimum(low, len(self.writer) - 1)], -1)


def ranges(start: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """So many numbers from each start, one range after another.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    offset = np.cumsum(count) - count
    return np.arange(int(count.sum())) - np.repeat(offset - start, count)


def span(
    column: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where in a sorted column each number begins, and how often it is there."""
    low = np.searchsorted(column, wanted, "left")
    return low, np.searchsorted(column, wanted, "right") - low
