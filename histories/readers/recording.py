"""Common parts of history readers: builder that turns operations in any order into columns."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.readers.blackbox_history import COMMITTED, RegisterHistory
from isolitmus.model.errors import RecordingError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy import int64
    from numpy.typing import NDArray

GREATEST = 2**63 - 1
"""Greatest number that a column holds."""
NEVER = GREATEST
"""End of a transaction whose end was not observed: later than any other time."""


class Recording:
    """Builder of a register history, to which operations are added in any order of sessions.

    Examples
    --------
    >>> recording = Recording()
    >>> t = recording.begin("s")
    >>> recording.add(t, True, "x", 7, line=1)
    >>> recording.history()
    1 transaction in 1 session, 1 operation on 1 key
    """

    def __init__(self) -> None:
        self.keys: dict[Hashable, int] = {}
        self.sessions: dict[Hashable, int] = {}
        self.session = array("q")
        self.status = array("b")
        self.started = array("q")
        self.ended = array("q")
        self.transaction = array("q")
        self.is_write = array("b")
        self.key = array("q")
        self.value = array("q")
        self.line = array("q")

    def begin(
        self, session: Hashable, status: int = COMMITTED, started: int = 0, ended: int = NEVER
    ) -> int:
        """Add a transaction to a session and return its number."""
        self.session.append(self.sessions.setdefault(session, len(self.sessions)))
        self.status.append(status)
        self.started.append(started)
        self.ended.append(ended)
        return len(self.session) - 1

    def add(self, transaction: int, is_write: bool, key: Hashable, value: int, line: int) -> None:
        """Add an operation to a transaction."""
        self.transaction.append(transaction)
        self.is_write.append(is_write)
        self.key.append(self.keys.setdefault(key, len(self.keys)))
        self.value.append(value)
        self.line.append(line)

    def operations(self) -> NDArray[int64]:
        """Return the insertion index of each operation in the order of the columns, as an array of
        int64.
        """
        return np.argsort(self._rank()[_column(self.transaction)], kind="stable")

    def history(
        self,
        values: Sequence[object] = (),
        *,
        timed: bool = False,
        unit: str = "line",
        assumptions: tuple[str, ...] = (),
    ) -> RegisterHistory:
        """Return the history as columns.

        Parameters
        ----------
        values : sequence of object
            Value that each number stands for; empty if a number stands for itself.
        timed : bool
            Whether begins and ends of transactions are known.
        unit : str
            Unit of the line numbers: ``line`` or ``record``.
        assumptions : tuple of str
            Assumptions of the reader about what the file does not say.
        """
        order, operations = self._order(), self.operations()
        counts = np.bincount(_column(self.transaction), minlength=len(order))[order]
        return RegisterHistory(
            keys=tuple(map(str, self.keys)),
            sessions=tuple(map(str, self.sessions)),
            session=_column(self.session)[order].astype(np.int32),
            status=_column(self.status)[order].astype(np.int8),
            first=np.concatenate(([0], np.cumsum(counts))),
            is_write=_column(self.is_write)[operations].astype(np.bool_),
            key=_column(self.key)[operations].astype(np.int32),
            value=_column(self.value)[operations],
            line=_column(self.line)[operations].astype(np.int32),
            started=_column(self.started)[order] if timed else None,
            ended=_column(self.ended)[order] if timed else None,
            values=values,
            unit=unit,
            assumptions=assumptions,
        )

    def _order(self) -> NDArray[int64]:
        return np.argsort(_column(self.session), kind="stable")

    def _rank(self) -> NDArray[int64]:
        """Return the rank of each operation, grouped by session; int64, shape (n_operations,)."""
        order = self._order()
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return rank


def read_natural(digits: str, place: str) -> int:
    """Return the number that digits denote; RecordingError if no column holds it.

    Examples
    --------
    >>> read_natural("0012", "h.txt:1")
    12
    >>> read_natural("9223372036854775808", "h.txt:1")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.txt:1: '9223372036854775808' is larger than \
9223372036854775807
    """
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(GREATEST)) or (number := int(significant)) > GREATEST:
        raise RecordingError(f"{place}: '{digits}' is larger than {GREATEST}")
    return number


def _column(numbers: array[int]) -> NDArray[int64]:
    return np.array(numbers, dtype=np.int64)
