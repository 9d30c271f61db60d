"""dbcop's bincode: little-endian, numbers and lengths of 64 bits, flags of a byte.

Five numbers (id, nodes, variables, transactions, events), three texts (what it is, start, end), then the sessions: a list
of lists of transactions; a transaction is a list of events and whether it succeeded; an event is whether it writes, a
variable, a value and whether it succeeded. Every variable holds 0 before anybody writes it.

What failed is aborted: a transaction with all that it did, and of one that succeeded the writes that did not, as a
transaction of their own after it. A read that failed read nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.model.blackbox_history import ABORTED, COMMITTED, INITIAL, RegisterHistory
from isolitmus.model.errors import RecordingError
from isolitmus.specs.histories.recording import GREATEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EVENT", "read_dbcop"]

EVENT = np.dtype([("write", "u1"), ("variable", "<u8"), ("value", "<u8"), ("success", "u1")])
"""An event, 18 bytes; its flags are 0 or 1."""
NUMBER = struct.Struct("<Q")


@dataclass
class _Cursor:
    """Where the reading of a file has come."""

    data: bytes
    file: str
    at: int = 0

    def number(self, what: str) -> int:
        """The next 64 bits."""
        self.room(NUMBER.size, what)
        (found,) = NUMBER.unpack_from(self.data, self.at)
        self.at += NUMBER.size
        return int(found)

    def count(self, least: int, what: str) -> int:
        """A length of a list whose elements have so many bytes at least, held against what is left."""
        start = self.at
        length = self.number(f"the number of {what}")
        left = len(self.data) - self.at
        if length * least > left:
            raise RecordingError(
                f"{self.file}: byte {start:,} says {length:,} for the number of {what}, at least {length * least:,} bytes;"
                f" {left:,} are left"
            )
        return length

    def text(self, what: str) -> None:
        """A text that says nothing about the history."""
        length = self.count(1, f"bytes of {what}")
        self.at += length

    def room(self, size: int, what: str) -> None:
        """RecordingError unless so many bytes are left."""
        if size > len(self.data) - self.at:
            raise RecordingError(
                f"{self.file}: the file ends at byte {len(self.data):,}, before it says {what}"
            )

    def flag(self, what: str) -> bool:
        """The next byte, 0 or 1."""
        self.room(1, what)
        found = self.data[self.at]
        if found > 1:
            raise RecordingError(
                f"{self.file}: byte {self.at:,} is {found} where {what} is said with 0 or 1"
            )
        self.at += 1
        return bool(found)


def read_dbcop(data: bytes, file: str) -> RegisterHistory:
    """The history of a file; RecordingError says which byte or record does not read, and why.

    >>> read_dbcop(bytes(40), "h.bincode")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.bincode: the file ends at byte 40, before it says the number of bytes of \
what it is
    """
    cursor = _Cursor(data, file)
    for what in ("id", "nodes", "variables", "transactions", "events"):
        cursor.number(f"the parameter '{what}'")
    for what in ("what it is", "when it began", "when it ended"):
        cursor.text(what)
    sessions: list[int] = []
    succeeded: list[bool] = []
    lengths: list[int] = []
    parts: list[NDArray[np.void]] = []
    for _ in range(cursor.count(NUMBER.size, "sessions")):
        size = cursor.count(NUMBER.size + 1, "transactions")
        sessions.append(size)
        for _ in range(size):
            length = cursor.count(EVENT.itemsize, "events")
            parts.append(np.frombuffer(data, EVENT, length, cursor.at))
            cursor.at += length * EVENT.itemsize
            lengths.append(length)
            succeeded.append(cursor.flag("whether a transaction succeeded"))
    if cursor.at < len(data):
        raise RecordingError(
            f"{file}: the history ends at byte {cursor.at:,}, and {len(data) - cursor.at:,} more are there; none would be"
            " right"
        )
    events = np.concatenate(parts) if parts else np.empty(0, EVENT)
    _refuse_events(events, file)
    return _columns(events, np.array(sessions, np.int64), np.array(succeeded, np.bool_), lengths)


def _refuse_events(events: NDArray[np.void], file: str) -> None:
    for field, most, why in (
        ("write", 1, "whether it writes is 0 or 1"),
        ("success", 1, "whether it succeeded is 0 or 1"),
        ("variable", GREATEST, f"{GREATEST} is the greatest variable"),
        ("value", GREATEST, f"{GREATEST} is the greatest value"),
    ):
        (wrong,) = np.nonzero(events[field] > most)
        if wrong.size:
            raise RecordingError(
                f"{file}: record {wrong[0] + 1:,}: its {field} is {events[field][wrong[0]]}; {why}"
            )
    (zero,) = np.nonzero((events["write"] == 1) & (events["value"] == 0))
    if zero.size:
        raise RecordingError(
            f"{file}: record {zero[0] + 1:,}: 0 is written to variable {events['variable'][zero[0]]}, which holds 0"
            " before anybody writes it: nothing says which of the two a read of 0 saw; another value would be right"
        )


def _columns(
    events: NDArray[np.void],
    sessions: NDArray[np.int64],
    succeeded: NDArray[np.bool_],
    lengths: list[int],
) -> RegisterHistory:
    """Twice the number of a transaction stands for what it did, one more for those of its writes that failed."""
    count = len(succeeded)
    whole = 2 * np.arange(count)
    owner = np.repeat(np.arange(count), lengths)
    good, writes = events["success"] == 1, events["write"] == 1
    part = 2 * owner + (succeeded[owner] & ~good & writes)
    kept = np.nonzero(good | writes)[0]
    kept = kept[np.argsort(part[kept], kind="stable")]
    parts, counts = np.unique(np.concatenate((whole, part[kept])), return_counts=True)
    counts -= parts % 2 == 0
    variables, key = np.unique(events["variable"], return_inverse=True)
    value = events["value"][kept].astype(np.int64)
    value[value == 0] = INITIAL
    committed = succeeded[parts // 2] & (parts % 2 == 0)
    return RegisterHistory(
        keys=tuple(map(str, variables.tolist())),
        sessions=tuple(map(str, range(1, len(sessions) + 1))),
        session=np.repeat(np.arange(len(sessions), dtype=np.int32), sessions)[parts // 2],
        status=np.where(committed, COMMITTED, ABORTED).astype(np.int8),
        first=np.concatenate(([0], np.cumsum(counts))),
        is_write=writes[kept],
        key=key[kept].astype(np.int32),
        value=value,
        line=kept + 1,
        unit="record",
    )
