"""The elements of recorded lists as columns, each with the append that put it there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.writers import span
from isolitmus.model.blackbox_history import ABORTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.model.list_history import ListHistory

__all__ = ["Elements", "elements_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """What the reads of some transactions saw, list by list in the order of each list."""

    read: NDArray[np.int64]
    """Of each element, the read that saw it, by operation."""
    place: NDArray[np.int64]
    """Of each element, its place in the list, from 0."""
    cell: NDArray[np.int64]
    """Of each element one number for its key and its value."""
    append: NDArray[np.int64]
    """Of each element, the one operation that appended it and was not aborted; −1: there is none, or several."""
    many: NDArray[np.int64]
    """Of each element, how many operations appended it that were not aborted."""
    cells: NDArray[np.int64]
    """Of each operation of the history the number of its key and its value."""

    def __len__(self) -> int:
        return len(self.read)

    def only(self, which: NDArray[np.bool_]) -> Elements:
        """These of them."""
        return Elements(
            self.read[which],
            self.place[which],
            self.cell[which],
            self.append[which],
            self.many[which],
            self.cells,
        )


def elements_of(lists: ListHistory, owner: NDArray[np.int64]) -> Elements:
    """The elements of all lists; ``owner``: of each operation its transaction.

    >>> from isolitmus.model.list_history import ListHistory
    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 3]),
    ...     np.array([True, True, False]), np.array([0, 0, 0]), np.array([7, 8, 9]), np.array([1, 1, 2]),
    ... )
    >>> lists = ListHistory(registers, np.array([0, 0, 0, 3]), np.array([7, 8, 9]))
    >>> elements_of(lists, np.array([0, 0, 1])).append.tolist()
    [0, 1, -1]
    """
    history = lists.registers
    lengths = np.diff(lists.seen_first)
    read = np.repeat(np.arange(len(lengths)), lengths)
    code = np.unique(np.append(lists.seen, history.value), return_inverse=True)[1]
    key = np.append(history.key[read], history.key)
    cell, cells = np.split(code * len(history.keys) + key, [len(read)])
    appends = np.flatnonzero(history.is_write & (history.status[owner] != ABORTED))
    appends = appends[np.argsort(cells[appends], kind="stable")]
    low, many = span(cells[appends], cell)
    append = np.full(len(read), -1)
    append[many == 1] = appends[low[many == 1]]
    return Elements(read, np.arange(len(read)) - lists.seen_first[read], cell, append, many, cells)
