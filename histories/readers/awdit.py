"""Reader of AWDIT's text format: ``r KEY VALUE``, ``w KEY VALUE``, and separators.

``-----`` ends a transaction, ``=====`` a session. A session with a single transaction that writes 0
to every key of the file is the initial transaction: it is not part of the history, and a read of 0
found nothing. If there is none, 0 is an ordinary value, as in AWDIT; so are negative numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from isolitmus.histories.readers.blackbox_history import INITIAL, RegisterHistory
from isolitmus.histories.readers.recording import Recording, read_natural
from isolitmus.model.errors import RecordingError

OPERATION = re.compile(r"([rw])[ \t]+([0-9]+)[ \t]+(-?[0-9]+)")
SEPARATOR = re.compile(r"-+|=+")


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    is_write: bool
    key: int
    value: int


def read_awdit(text: str, file: str) -> RegisterHistory:
    r"""Return the history in a text; RecordingError with the line and the reason if it does not
    parse.

    Examples
    --------
    >>> history = read_awdit("w 0 0\n=====\nr 0 0\nw 0 1\n-----\nr 0 1\n", "h.txt")
    >>> history, history.value
    (2 transactions in 1 session, 3 operations on 1 key, array([-1,  1,  1]))
    >>> read_awdit("w 0 1\nx 0 2", "h.txt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.txt:2: 'x 0 2' is not one of 'r KEY VALUE', ...
    """
    sessions = _sessions(text, file)
    initial = _initial(sessions)
    recording = Recording()
    found = {line.value for session in sessions for part in session for line in part}
    names = sorted(found) if min(found, default=0) < 0 else []
    numbers = {value: i for i, value in enumerate(names)}
    for number, session in enumerate(sessions):
        if number == initial:
            for line in session[0]:
                recording.keys.setdefault(line.key, len(recording.keys))
            continue
        for transaction in session:
            begun = recording.begin(number)
            for line in transaction:
                if line.value == 0 and initial is not None:
                    if line.is_write:
                        raise RecordingError(
                            f"{file}:{line.number}: 0 is written to key {line.key}, as the initial"
                            f" transaction (line {sessions[initial][0][0].number}) does: nothing"
                            " says which of the two a read of 0 saw; another value would be right"
                        )
                    recording.add(begun, False, line.key, INITIAL, line.number)
                else:
                    value = numbers.get(line.value, line.value)
                    recording.add(begun, line.is_write, line.key, value, line.number)
    return recording.history(names)


def _sessions(text: str, file: str) -> list[list[list[_Line]]]:
    """Return the lines of each transaction of each session, without empty ones."""
    sessions: list[list[list[_Line]]] = [[[]]]
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if found := OPERATION.fullmatch(line):
            place = f"{file}:{number}"
            word, key, value = found.groups()
            size = read_natural(value.removeprefix("-"), place)
            written = -size if value[0] == "-" else size
            read = _Line(number, word == "w", read_natural(key, place), written)
            sessions[-1][-1].append(read)
        elif SEPARATOR.fullmatch(line):
            if line[0] == "=":
                sessions.append([])
            sessions[-1].append([])
        elif line:
            raise RecordingError(
                f"{file}:{number}: '{line}' is not one of 'r KEY VALUE', 'w KEY VALUE', '-----' and"
                " '====='"
            )
    whole = [[transaction for transaction in session if transaction] for session in sessions]
    return [session for session in whole if session]


def _initial(sessions: list[list[list[_Line]]]) -> int | None:
    """Return the index of the session that is the initial transaction, or None."""
    keys = sorted({line.key for session in sessions for part in session for line in part})
    for number, session in enumerate(sessions):
        if (
            len(session) == 1
            and all(line.is_write and line.value == 0 for line in session[0])
            and sorted(line.key for line in session[0]) == keys
        ):
            return number
    return None
