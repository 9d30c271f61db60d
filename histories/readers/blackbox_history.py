"""Black-box histories that other tools recorded, as columns: registers and append-only lists.

A recorded history says which value was read, not which transaction wrote it. If a value of a key
is written once, its writer is determined; if it is written several times, there are several
candidates and wr is unknown.

In a list history, an append is a write of its element, and a read of a list is a read of its last
element; the other elements that a read observed are kept in a separate column. Each read shows the
order in which its versions were created. Columns hold histories of thousands of transactions.
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

COMMITTED, ABORTED, UNKNOWN = 0, 1, 2
"""Status of a transaction; UNKNOWN if its end was not observed."""
INITIAL = -1
"""Value of a key that no transaction has written: the result of a read that found nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class RegisterHistory(ReadableRepr):
    """History of register reads and writes, one column per property.

    Transactions are numbered from 0, one session after another.

    Examples
    --------
    >>> import numpy as np
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 2]),
    ...     np.array([True, False]), np.array([0, 0]), np.array([7, 7]), np.array([1, 2]),
    ... )
    >>> history
    2 transactions in 2 sessions, 2 operations on 1 key
    """

    keys: Sequence[str]
    """Names of keys, by number."""
    sessions: Sequence[str]
    """Names of sessions, by number."""
    session: NDArray[int32]
    """Shape (n_transactions,): session of the transaction; those of one session are adjacent and in
    order.
    """
    status: NDArray[int8]
    """Shape (n_transactions,): COMMITTED, ABORTED or UNKNOWN."""
    first: NDArray[int64]
    """Shape (n_transactions + 1,): index of the first operation of the transaction; the last entry
    is the number of operations.
    """
    is_write: NDArray[bool_]
    """Shape (n_operations,): whether the operation is a write; those of a transaction are in its
    order.
    """
    key: NDArray[int32]
    """Shape (n_operations,): key of the operation."""
    value: NDArray[int64]
    """Shape (n_operations,): value written or read, as a number from 0 that stands for one value;
    INITIAL (−1) for a read that found nothing.
    """
    line: NDArray[int32]
    """Shape (n_operations,): line, or number of the record, of the operation in its file, from 1.
    """
    started: NDArray[int64] | None = None
    """Shape (n_transactions,): begin of the transaction, in any unit; None if not recorded."""
    ended: NDArray[int64] | None = None
    """Shape (n_transactions,): end of the transaction; later than any other time if it was not
    observed.
    """
    values: Sequence[object] = ()
    """Value that each number of ``value`` stands for; empty if a number stands for itself."""
    unit: str = "line"
    """Unit of ``line``: ``line`` or ``record``."""
    assumptions: tuple[str, ...] = ()
    """Assumptions of the reader about what the file does not say."""

    @property
    def registers(self) -> RegisterHistory:
        """Register history: the object itself, as ``ListHistory.registers`` is one."""
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
    """History of appends and list reads: last elements as registers, and all elements of each read.

    Examples
    --------
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 3]),
    ...     np.array([True, True, False]), np.array([0, 0, 0]), np.array([7, 8, 8]),
    ...     np.array([1, 1, 2]),
    ... )
    >>> history = ListHistory(registers, np.array([0, 0, 0, 2]), np.array([7, 8]))
    >>> history.order(0), history.strays()
    (array([7, 8]), array([], dtype=int64))
    """

    registers: RegisterHistory
    """Register history: value of an append is its element; value of a read is its last element, or
    INITIAL if the list was empty.
    """
    seen_first: NDArray[int64]
    """Shape (n_operations + 1,), int64: index in ``seen`` of the first element of the operation's
    list; the last entry is the length of ``seen``. The list of an append is empty.
    """
    seen: NDArray[int64]
    """Shape (n_elements,), int64: elements that the reads observed, as the values that the appends
    wrote.
    """

    def list_of(self, operation: int) -> NDArray[int64]:
        """Return the elements that the read `operation` observed, as an array of int64."""
        return self.seen[self.seen_first[operation] : self.seen_first[operation + 1]]

    def longest(self, among: NDArray[bool_] | None = None) -> NDArray[int64]:
        """Return, for each key, the first of the reads that observed its longest list.

        Parameters
        ----------
        among : ndarray of bool, shape (n_operations,), optional
            Operations to consider; all by default.

        Returns
        -------
        ndarray of int64, shape (n_keys,)
            Index of the read; −1 if no read of the key observed an element.
        """
        found = np.full(len(self.registers.keys), -1, dtype=np.int64)
        lengths = np.diff(self.seen_first)
        (reads,) = np.nonzero(lengths if among is None else among & (lengths > 0))
        rising = reads[np.lexsort((-reads, lengths[reads]))]
        # Assignment to a repeated key keeps the last value: the longest list.
        found[self.registers.key[rising]] = rising
        return found

    def order(self, key: int) -> NDArray[int64]:
        """Return the observed version order of `key`: the longest list that any read of it
        observed.
        """
        read = self.longest()[key]
        return self.seen[:0] if read < 0 else self.list_of(read)

    def strays(self, among: NDArray[bool_] | None = None) -> NDArray[int64]:
        """Return the reads whose list is not a prefix of the longest list of its key.

        No version order explains both lists.

        Parameters
        ----------
        among : ndarray of bool, shape (n_operations,), optional
            Operations to consider; all by default.

        Returns
        -------
        ndarray of int64
            Indices of these reads, ascending.
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
