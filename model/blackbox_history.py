"""Histories that other tools recorded, as columns: reads and writes of registers, appends and reads
of lists.

Recorded reads and writes of registers, as columns: histories of thousands of transactions that
other tools leave.

A recorded history says which value was read, not who wrote it. Where a value of a key is written
once, that is one question with one answer; where it is written several times it has several (wr is
then unknown).

Recorded appends to lists and reads of whole lists: each read says in which order its versions came
to be.

An append is a write of its element, a read of a list is a read of its last element; what else a
read saw stands beside that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.model.display import ReadableRepr, count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import bool_, int8, int32, int64
    from numpy.typing import NDArray

__all__ = ["ABORTED", "COMMITTED", "INITIAL", "UNKNOWN", "ListHistory", "RegisterHistory"]

COMMITTED, ABORTED, UNKNOWN = 0, 1, 2
"""How a transaction ended; of an unknown one nobody saw the end."""
INITIAL = -1
"""The value of a key that nobody has written: what a read says that found nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class RegisterHistory(ReadableRepr):
    """Transactions of reads and writes, numbered from 0, one session after another.

    >>> import numpy as np
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 2]),
    ...     np.array([True, False]), np.array([0, 0]), np.array([7, 7]), np.array([1, 2]),
    ... )
    >>> history
    2 transactions in 2 sessions, 2 operations on 1 key
    """

    keys: Sequence[str]
    """The names of keys, by number."""
    sessions: Sequence[str]
    """The names of sessions, by number."""
    session: NDArray[int32]
    """Of each transaction; those of one session stand together, in its order."""
    status: NDArray[int8]
    """Of each transaction: COMMITTED, ABORTED or UNKNOWN."""
    first: NDArray[int64]
    """Where each transaction's operations begin, and the number of all of them at the end."""
    is_write: NDArray[bool_]
    """Of each operation; those of a transaction stand in its order."""
    key: NDArray[int32]
    """Of each operation."""
    value: NDArray[int64]
    """What each operation wrote or read: a number from 0 that stands for one value, or INITIAL."""
    line: NDArray[int64]
    """Where each operation stands in its file: a line, or the number of a record, from 1."""
    started: NDArray[int64] | None = None
    """When each transaction began, in whatever unit; None: not recorded."""
    ended: NDArray[int64] | None = None
    """When each transaction ended; later than anything where nobody saw it."""
    values: Sequence[object] = ()
    """What the numbers of values stand for; empty: for themselves."""
    unit: str = "line"
    """What ``line`` counts: lines, or records."""

    @property
    def registers(self) -> RegisterHistory:
        """Itself, as a history of lists has its registers."""
        return self

    def __repr__(self) -> str:
        size = (
            f"{count_of(len(self.session), 'transaction')} in"
            f" {count_of(len(self.sessions), 'session')}"
        )
        return (
            f"{size}, {count_of(len(self.key), 'operation')} on {count_of(len(self.keys), 'key')}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class ListHistory(ReadableRepr):
    """A history of lists: its last elements as registers, and all that each read saw.

    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 3]),
    ...     np.array([True, True, False]), np.array([0, 0, 0]), np.array([7, 8, 8]), np.array([1, 1, 2]),
    ... )
    >>> history = ListHistory(registers, np.array([0, 0, 0, 2]), np.array([7, 8]))
    >>> history.order(0), history.strays()
    (array([7, 8]), array([], dtype=int64))
    """

    registers: RegisterHistory
    """Of each append the element as what it wrote, of each read the last element, or INITIAL of
    none.
    """
    seen_first: NDArray[int64]
    """Where the list of each operation begins in ``seen``, and the number of all at the end; an
    append has none.
    """
    seen: NDArray[int64]
    """The elements that the reads saw, each as the value that its append wrote."""

    def list_of(self, operation: int) -> NDArray[int64]:
        """What a read saw."""
        return self.seen[self.seen_first[operation] : self.seen_first[operation + 1]]

    def longest(self, among: NDArray[bool_] | None = None) -> NDArray[int64]:
        """Of each key, the first of the reads that saw the most of it; −1 where none saw anything.
        ``among``: which operations are looked at (default: all).
        """
        found = np.full(len(self.registers.keys), -1, dtype=np.int64)
        lengths = np.diff(self.seen_first)
        (reads,) = np.nonzero(lengths if among is None else among & (lengths > 0))
        rising = reads[np.lexsort((-reads, lengths[reads]))]
        found[self.registers.key[rising]] = (
            rising  # of several places of one key the last one stays
        )
        return found

    def order(self, key: int) -> NDArray[int64]:
        """The versions of a key in the order that was observed: the longest list that any read of
        it saw.
        """
        read = self.longest()[key]
        return self.seen[:0] if read < 0 else self.list_of(read)

    def strays(self, among: NDArray[bool_] | None = None) -> NDArray[int64]:
        """The reads whose list does not begin the longest of its key: no order of versions explains
        both.
        """
        lengths = np.diff(self.seen_first)
        reads = np.repeat(np.arange(len(lengths)), lengths)
        inside = np.arange(len(reads))
        if among is not None:
            inside = inside[among[reads]]
        read = reads[inside]
        longest = self.longest(among)[self.registers.key[read]]
        there = self.seen_first[longest] + inside - self.seen_first[read]
        return np.unique(read[self.seen[there] != self.seen[inside]])

    def __repr__(self) -> str:
        return f"{self.registers!r}: lists"
