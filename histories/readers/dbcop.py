"""Reader of dbcop's histories, in bincode, in JSON and in its text.

Bincode is little-endian, with numbers and lengths of 64 bits and flags of one byte. A file has five
numbers (id, nodes, variables, transactions, events), three texts (description, start, end), and the
sessions, each a list of transactions. A transaction is a list of events and a success flag. An
event is a write flag, a variable, a value and a success flag. Every variable is initially 0.
Failures are aborts: a failed transaction with all its events; failed writes of a successful
transaction become a transaction of their own after it. A failed read read nothing.

In JSON, sessions are a list of lists of transactions, either alone or as ``data`` of an object. A
transaction has its ``events`` and a flag ``committed``. An event is ``{"Read": {"variable": V,
"version": N}}``, ``{"Write": …}`` or, in short, ``["r", V, N]`` and ``["w", V, N]``. Earlier
releases, whose binary form has the same fields, have ``success`` in transactions, and events
``{"write": true, "variable": V, "value": N, "success": true}``; events without success had no
effect. A read of version null found nothing, and so did a read of 0 if no transaction writes 0 to
that variable.

In text (``.hist``), ``[x:=1 y==2 z==?]`` is a transaction that writes x, reads y, and reads that z
has no value. An exclamation mark after it says that it is not committed. A line of dashes separates
sessions, and ``//`` begins a comment.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isolitmus.histories.readers.blackbox_history import (
    ABORTED,
    COMMITTED,
    INITIAL,
    RegisterHistory,
)
from isolitmus.histories.readers.recording import GREATEST, Recording, read_natural
from isolitmus.model.errors import RecordingError, brief

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

EVENT = np.dtype([("write", "u1"), ("variable", "<u8"), ("value", "<u8"), ("success", "u1")])
"""Layout of an event, 18 bytes; its flags are 0 or 1."""
NUMBER = struct.Struct("<Q")


@dataclass
class _Cursor:
    """Position of the parser in a file."""

    data: bytes
    file: str
    at: int = 0

    def number(self, what: str) -> int:
        """Return the next 64 bits."""
        self.room(NUMBER.size, what)
        (found,) = NUMBER.unpack_from(self.data, self.at)
        self.at += NUMBER.size
        return int(found)

    def count(self, least: int, what: str) -> int:
        """Return the length of a list, checked against the bytes left: each element has `least` at
        least.
        """
        start = self.at
        length = self.number(f"the number of {what}")
        left = len(self.data) - self.at
        if length * least > left:
            raise RecordingError(
                f"{self.file}: byte {start:,} says {length:,} for the number of {what}, at least"
                f" {length * least:,} bytes; {left:,} are left"
            )
        return length

    def text(self, what: str) -> None:
        """Skip a text that does not affect the history."""
        length = self.count(1, f"bytes of {what}")
        self.at += length

    def room(self, size: int, what: str) -> None:
        """Raise RecordingError unless `size` bytes are left."""
        if size > len(self.data) - self.at:
            raise RecordingError(
                f"{self.file}: the file ends at byte {len(self.data):,}, before it says {what}"
            )

    def flag(self, what: str) -> bool:
        """Return the next byte, which must be 0 or 1."""
        self.room(1, what)
        found = self.data[self.at]
        if found > 1:
            raise RecordingError(
                f"{self.file}: byte {self.at:,} is {found} where {what} is said with 0 or 1"
            )
        self.at += 1
        return bool(found)


def read_dbcop(data: bytes, file: str) -> RegisterHistory:
    """Return the history in a file; RecordingError with the byte or record if it does not parse.

    Examples
    --------
    >>> read_dbcop(bytes(40), "h.bincode")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.bincode: the file ends at byte 40, before it says the \
number of bytes of what it is
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
            f"{file}: the history ends at byte {cursor.at:,}, and {len(data) - cursor.at:,} more"
            " are there; none would be right"
        )
    events = np.concatenate(parts) if parts else np.empty(0, EVENT)
    _refuse_events(events, file)
    return _columns(events, np.array(sessions, np.int64), np.array(succeeded, np.bool_), lengths)


def _refuse_events(events: NDArray[np.void], file: str) -> None:
    """Raise RecordingError for an event out of range or a write of 0, the initial value.

    `events` has shape (n_events,) and fields `write`, `success`, `variable` and `value`.
    """
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
            f"{file}: record {zero[0] + 1:,}: 0 is written to variable"
            f" {events['variable'][zero[0]]}, which holds 0 before anybody writes it: nothing says"
            " which of the two a read of 0 saw; another value would be right"
        )


def _columns(
    events: NDArray[np.void],
    sessions: NDArray[np.int64],
    succeeded: NDArray[np.bool_],
    lengths: list[int],
) -> RegisterHistory:
    """Return the history of successful and failed parts of transactions.

    Parameters
    ----------
    events : ndarray of EVENT, shape (n_events,)
        All events, transaction by transaction.
    sessions : ndarray of int64, shape (n_sessions,)
        Number of transactions of the session.
    succeeded : ndarray of bool, shape (n_transactions,)
        Whether the transaction succeeded.
    lengths : list of int
        Number of events of each transaction.
    """
    # Part 2t stands for the events of transaction t, part 2t + 1 for its failed writes.
    count = len(succeeded)
    whole = 2 * np.arange(count)
    owner = np.repeat(np.arange(count), lengths)
    good, writes = events["success"] == 1, events["write"] == 1
    part = 2 * owner + (succeeded[owner] & ~good & writes)
    kept = np.nonzero(good | writes)[0]
    kept = kept[np.argsort(part[kept], kind="stable")]
    parts, counts = np.unique(np.concatenate((whole, part[kept])), return_counts=True)
    counts -= parts % 2 == 0  # `whole` counted each transaction once in addition to its events
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
        line=(kept + 1).astype(np.int32),
        unit="record",
    )


WORDS = {"r": False, "Read": False, "w": True, "Write": True}


def read_dbcop_json(value: Any, file: str) -> RegisterHistory:
    """Return the history in a JSON value; RecordingError with the place if it does not parse.

    Examples
    --------
    >>> read_dbcop_json([[{"events": [["w", 0, 1], ["r", 1, None]], "committed": True}]], "h.json")
    1 transaction in 1 session, 2 operations on 2 keys
    >>> read_dbcop_json([[{"events": [["w", 0, -1]], "committed": True}]], "h.json")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.json: session 1, transaction 1, event 1: '-1' is not \
a version of a write; expected a number from 0 to 9223372036854775807
    """
    if isinstance(value, dict):
        value = value.get("data")
    recording = Recording()
    written = set()
    record = 0
    for s, session in enumerate(_list(value, f"{file}: the sessions ('data')"), 1):
        for t, transaction in enumerate(_list(session, f"{file}: session {s}"), 1):
            place = f"{file}: session {s}, transaction {t}"
            ended = transaction if isinstance(transaction, dict) else {}
            committed = ended.get("committed", ended.get("success"))
            if not isinstance(committed, bool):
                raise RecordingError(
                    f"{place}: '{_shown(transaction)}' does not say whether it is committed; a"
                    " table with a list 'events' and true or false as 'committed' would be right"
                )
            begun = recording.begin(s, COMMITTED if committed else ABORTED)
            for e, event in enumerate(_list(transaction.get("events"), f"{place}, 'events'"), 1):
                record += 1
                if isinstance(event, dict) and event.get("success") is False:
                    continue
                is_write, key, version = _event(event, f"{place}, event {e}")
                number = INITIAL if version is None else version
                if is_write:
                    written.add((key, number))
                recording.add(begun, is_write, key, number, record)
    _find_nothing_at_0(recording, written)
    return recording.history(unit="record")


TRANSACTION = re.compile(r"\s*\[([^\[\]]*)\][ \t]*(!?)")
TEXT_EVENT = re.compile(r"(\w+)[ \t]*(:=|==)[ \t]*([0-9]+|\?)(?:\s+|\Z)", re.ASCII)
NEXT_SESSION = re.compile(r"-+")


def read_dbcop_text(text: str, file: str) -> RegisterHistory:
    r"""Return the history in dbcop's text; RecordingError with the line if it does not parse.

    Examples
    --------
    >>> read_dbcop_text("// two sessions\n[x:=1 y:=1]\n---\n[x==1 y==?] [x:=2]!\n", "h.hist")
    3 transactions in 2 sessions, 5 operations on 2 keys
    >>> read_dbcop_text("[x:=1 y=2]", "h.hist")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.hist:1: 'y=2' is not one of 'NAME:=NUMBER', ...
    """
    recording = Recording()
    written: set[tuple[int | str, int]] = set()
    session = 1
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.partition("//")[0].strip()
        if NEXT_SESSION.fullmatch(line):
            session += 1
            continue
        at = 0
        while at < len(line):
            whole = TRANSACTION.match(line, at)
            if whole is None:
                raise RecordingError(
                    f"{file}:{number}: '{brief(line[at:].strip())}' is not a transaction"
                    " '[NAME:=NUMBER NAME==NUMBER NAME==?]', perhaps with '!', in one line"
                )
            at = whole.end()
            begun = recording.begin(session, ABORTED if whole[2] else COMMITTED)
            for is_write, key, value in _text_events(whole[1].strip(), f"{file}:{number}"):
                if is_write:
                    written.add((key, value))
                recording.add(begun, is_write, key, value, number)
    _find_nothing_at_0(recording, written)
    return recording.history()


def _text_events(text: str, place: str) -> Iterator[tuple[bool, str, int]]:
    """Yield whether an event is a write, its variable and its version."""
    at = 0
    while at < len(text):
        event = TEXT_EVENT.match(text, at)
        if event is None or (event[2], event[3]) == (":=", "?"):
            wrong = brief(text[at:].split(maxsplit=1)[0])
            raise RecordingError(
                f"{place}: '{wrong}' is not one of 'NAME:=NUMBER', 'NAME==NUMBER' and 'NAME==?'"
            )
        at = event.end()
        value = INITIAL if event[3] == "?" else read_natural(event[3], place)
        yield event[2] == ":=", event[1], value


def _find_nothing_at_0(recording: Recording, written: set[tuple[int | str, int]]) -> None:
    """Turn reads of 0 into reads that found nothing, unless 0 was written to the key."""
    names = list(recording.keys)
    for i, number in enumerate(recording.value):
        if number == 0 and (names[recording.key[i]], 0) not in written:
            recording.value[i] = INITIAL


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise RecordingError(f"{place}: expected a list, found '{_shown(value)}'")
    return value


def _event(event: Any, place: str) -> tuple[bool, int | str, int | None]:
    """Return whether an event is a write, its variable, and its version (None if missing)."""
    match event:
        case {"Read": {"variable": key, **rest}} if len(event) == 1:
            word, version = "r", rest.get("version")
        case {"Write": {"variable": key, **rest}} if len(event) == 1:
            word, version = "w", rest.get("version")
        case {"write": bool(writes), "variable": key, "value": version}:
            word = "w" if writes else "r"
        case ["r" | "w" as word, key, version]:
            pass
        case _:
            raise RecordingError(
                f"{place}: '{_shown(event)}' is neither a Read nor a Write of a variable and a"
                " version"
            )
    is_write = WORDS[word]
    if not (type(key) is str or (type(key) is int and 0 <= key <= GREATEST)):
        raise RecordingError(
            f"{place}: '{_shown(key)}' is not a variable; expected a number from 0 to {GREATEST} or"
            " a text"
        )
    if not (type(version) is int and 0 <= version <= GREATEST) and (
        is_write or version is not None
    ):
        what = "a write" if is_write else "a read"
        raise RecordingError(
            f"{place}: '{_shown(version)}' is not a version of {what}; expected a number from 0 to"
            f" {GREATEST}"
        )
    return is_write, key, version


def _shown(value: Any) -> str:
    return brief(json.dumps(value))
