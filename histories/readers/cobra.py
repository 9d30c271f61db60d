"""Reader of Cobra's logs: a folder with a file ``NAME.log`` for each session.

Records are big-endian with numbers of 64 bits. ``S`` begins a transaction and ``C`` commits it,
each with its number. ``W`` has the number of the write and the hashes of key and value. ``R`` has
the transaction and number of the write that it read, and the hashes of key and value. The number of
a write, which is unique in Cobra, serves as its value. Aborted transactions are in no log; the end
of a transaction that is not committed at the end of its log is unknown.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from isolitmus.histories.readers.blackbox_history import (
    COMMITTED,
    INITIAL,
    UNKNOWN,
    RegisterHistory,
)
from isolitmus.histories.readers.recording import Recording
from isolitmus.model.errors import RecordingError

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORDS = {
    ord("S"): struct.Struct(">Q"),
    ord("C"): struct.Struct(">Q"),
    ord("W"): struct.Struct(">QQQ"),
    ord("R"): struct.Struct(">QQQQ"),
}
NOTHING = {0xBEBEEBEE, 0xDEADBEEF}
"""Numbers for the initial transaction and its writes, and for no transaction and no write."""


def read_cobra(logs: Iterable[tuple[str, bytes]], folder: str) -> RegisterHistory:
    r"""Return the history in a folder's logs.

    Parameters
    ----------
    logs : iterable of (str, bytes)
        Name and contents of each log file.
    folder : str
        Name of the folder, for messages.

    Raises
    ------
    RecordingError
        If a log does not parse; the message has the file, the byte and the reason.

    Examples
    --------
    >>> log = b"S" + bytes(8) + b"W" + bytes(7) + b"\1" + bytes(16) + b"C" + bytes(8)
    >>> read_cobra([("T0.log", log)], "h")
    1 transaction in 1 session, 1 operation on 1 key
    """
    recording = Recording()
    writes: dict[int, tuple[int, int]] = {}
    # By write: its number in this history, and its transaction in the log.
    reads: list[tuple[str, int, int]] = []
    # Place of each read, with transaction and number of the write that it read.
    record = 0
    for file, data in logs:
        at, name, begun = 0, -1, -1
        while at < len(data):
            record += 1
            place = f"{folder}/{file}: byte {at:,}"
            kind = data[at]
            layout = RECORDS.get(kind)
            if layout is None:
                raise RecordingError(
                    f"{place}: {kind} begins no record; one of S, C, W and R would be right"
                )
            if layout.size > len(data) - at - 1:
                raise RecordingError(
                    f"{place}: the file ends in a record {chr(kind)}, which has {1 + layout.size}"
                    " bytes"
                )
            fields = layout.unpack_from(data, at + 1)
            at += 1 + layout.size
            if (kind == ord("S")) != (begun < 0):
                raise RecordingError(
                    f"{place}: {chr(kind)} stands {'inside' if begun >= 0 else 'outside'} a"
                    f" transaction; {'C, W or R' if begun >= 0 else 'S'} would be right"
                )
            match kind:
                case 0x53:
                    begun, name = recording.begin(file, UNKNOWN), fields[0]
                case 0x43:
                    if fields[0] != name:
                        raise RecordingError(
                            f"{place}: transaction {fields[0]} is committed where transaction"
                            f" {name} began"
                        )
                    recording.status[begun] = COMMITTED
                    begun = -1
                case 0x57:
                    write, key, _ = fields
                    if write in writes or write in NOTHING:
                        raise RecordingError(
                            f"{place}: {write} is the number of another write, too; one for each"
                            " would be right"
                        )
                    writes[write] = len(writes), name
                    recording.add(begun, True, f"{key:016x}", writes[write][0], record)
                case _:
                    writer, write, key, _ = fields
                    if (write in NOTHING) != (writer in NOTHING):
                        raise RecordingError(
                            f"{place}: write {write:#x} is read as one of transaction {writer:#x},"
                            " and only one of the two is the initial one; a log without garbage"
                            " collection would be right"
                        )
                    if write in NOTHING:
                        number = INITIAL
                    else:
                        number = len(reads)
                        reads.append((place, writer, write))
                    recording.add(begun, False, f"{key:016x}", number, record)
    return _resolved(recording, writes, reads)


def _resolved(
    recording: Recording, writes: dict[int, tuple[int, int]], reads: list[tuple[str, int, int]]
) -> RegisterHistory:
    """Return the history with reads resolved, as a write may be in a later log than its reads."""
    values = list(writes)
    unknown: dict[int, int] = {}
    for i, number in enumerate(recording.value):
        if recording.is_write[i] or number == INITIAL:
            continue
        place, writer, write = reads[number]
        if write not in writes:
            recording.value[i] = unknown.setdefault(write, len(values) + len(unknown))
            continue
        recording.value[i], home = writes[write]
        if home != writer:
            raise RecordingError(
                f"{place}: write {write} is read as one of transaction {writer}, and transaction"
                f" {home} wrote it"
            )
    return recording.history((*values, *unknown), unit="record")
