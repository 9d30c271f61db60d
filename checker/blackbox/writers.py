"""Of a key and a chain of transactions, the latest writer up to a bound, or the earliest one that something holds of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

__all__ = ["Writers", "portions", "ranges", "span"]

PORTION = 1_000_000
"""How many slots are looked at together."""


class Writers:
    """Who wrote each key, chain by chain. A slot is a key and a chain in which it is written."""

    def __init__(
        self, key: NDArray[np.int64], writer: NDArray[np.int64], chain: NDArray[np.int64]
    ) -> None:
        width = int(chain.max()) + 1
        slot = key * width + chain[writer]
        order = np.lexsort((writer, slot))
        self.size = len(chain)
        self.row: NDArray[np.int64] = order
        """All that was given, slot by slot, each in the order of its chain."""
        self.writer: NDArray[np.int64] = writer[order]
        """The same as writers."""
        kinds, self.start, self.many = np.unique(slot[order], return_index=True, return_counts=True)
        self.key: NDArray[np.int64] = kinds // width
        """Of each slot."""
        self.chain: NDArray[np.int64] = kinds % width
        """Of each slot."""
        slots = np.repeat(np.arange(len(kinds)), self.many)
        self._place = slots * self.size + self.writer

    def slots(
        self, key: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Each of some keys with each of its slots: which of the keys, by its place, and the slot; in portions."""
        low, many = span(self.key, key)
        for rows in portions(many):
            yield np.repeat(rows, many[rows]), ranges(low[rows], many[rows])

    def up_to(self, slot: NDArray[np.int64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where in ``writer`` those of each slot end whose number is at most the bound."""
        at = np.searchsorted(self._place, slot * self.size + np.maximum(bound, 0), "right")
        return np.where(bound < 0, self.start[slot], at)

    def latest(self, slot: NDArray[np.int64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
        """The latest writer of each slot whose number is at most the bound; -1: there is none."""
        end = self.up_to(slot, bound)
        return np.where(end > self.start[slot], self.writer[end - 1], -1)

    def since(
        self,
        slot: NDArray[np.int64],
        low: NDArray[np.int64],
        holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    ) -> NDArray[np.int64]:
        """Where in ``writer`` those of each slot begin that something holds of, as it does of all later ones; from ``low``
        on. ``holds`` is asked of one writer for each slot that was given, in their order.
        """
        high = self.start[slot] + self.many[slot]
        while (open_ := low < high).any():
            middle = (low + high) // 2
            good = holds(self.writer[np.minimum(middle, len(self.writer) - 1)])
            high = np.where(open_ & good, middle, high)
            low = np.where(open_ & ~good, middle + 1, low)
        return low


def portions(many: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows that stand for so many each, one after another, as portions of about PORTION."""
    cuts = np.flatnonzero(np.diff(np.cumsum(many) // PORTION)) + 1
    return np.split(np.arange(len(many)), cuts)


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
