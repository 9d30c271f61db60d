"""Recorded reads and writes of registers, as columns: histories of thousands of transactions that other tools leave.

A recorded history says which value was read, not who wrote it. Where a value of a key is written once, that is one
question with one answer; where it is written several times it has several (wr is then unknown).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.display import Readable
from isolitmus.model.number import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import bool_, int8, int32, int64
    from numpy.typing import NDArray

__all__ = ["ABORTED", "COMMITTED", "INITIAL", "UNKNOWN", "RegisterHistory"]

COMMITTED, ABORTED, UNKNOWN = 0, 1, 2
"""How a transaction ended; of an unknown one nobody saw the end."""
INITIAL = -1
"""The value of a key that nobody has written: what a read says that found nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class RegisterHistory(Readable):
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
        size = f"{many(len(self.session), 'transaction')} in {many(len(self.sessions), 'session')}"
        return f"{size}, {many(len(self.key), 'operation')} on {many(len(self.keys), 'key')}"
