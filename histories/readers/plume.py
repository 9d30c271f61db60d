"""Reader of the text format of Plume and PolySI: ``r(KEY,VALUE,SESSION,TRANSACTION)``, ``w(…)``.

Each line is one operation. Every key is initially 0. Transaction −1 marks an aborted write of an
unknown transaction: each such write is a transaction of its own.
"""

from __future__ import annotations

import re

from isolitmus.histories.readers.blackbox_history import ABORTED, INITIAL, RegisterHistory
from isolitmus.histories.readers.recording import Recording, read_natural
from isolitmus.model.errors import RecordingError

OPERATION = re.compile(r"([rw])\( *([0-9]+) *, *(-?[0-9]+) *, *([0-9]+) *, *(-1|[0-9]+) *\)")

BELOW = re.compile(r"\( *[0-9]+ *, *-")


def read_plume(text: str, file: str) -> RegisterHistory:
    r"""Return the history in a text; RecordingError with the line and the reason if it does not
    parse.

    Examples
    --------
    >>> history = read_plume("r(5,0,0,0)\nw(5,1,0,0)\nr(5,1,1,1)\n", "h.txt")
    >>> history, history.value
    (2 transactions in 2 sessions, 3 operations on 1 key, array([-1,  1,  1]))
    """
    recording = Recording()
    names = _names(text)
    numbers = {name: number for number, name in enumerate(names)}
    begun: dict[int, tuple[int, int, int]] = {}
    # By transaction: its number in this history, its session and its first line.
    latest: dict[int, int] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line:
            continue
        place = f"{file}:{number}"
        found = OPERATION.fullmatch(line)
        if found is None:
            raise RecordingError(
                f"{place}: '{line}' is not one of 'r(KEY,VALUE,SESSION,TRANSACTION)' and 'w(…)',"
                " all of them numbers"
            )
        word, *digits, transaction = found.groups()
        key, value, session = (read_natural(each.removeprefix("-"), place) for each in digits)
        if digits[1][0] == "-":
            value = -value
        is_write = word == "w"
        if is_write and value == 0:
            raise RecordingError(
                f"{place}: 0 is written to key {key}, which holds 0 before anybody writes it:"
                " nothing says which of the two a read of 0 saw; another value would be right"
            )
        if transaction == "-1":
            here = recording.begin(session, ABORTED)
        else:
            name = read_natural(transaction, place)
            if name not in begun:
                begun[name] = recording.begin(session), session, number
                latest[session] = name
            here, home, first = begun[name]
            if home != session:
                raise RecordingError(
                    f"{place}: transaction {name} is of session {session} here and of session"
                    f" {home} in line {first}; a number for each transaction of the file would be"
                    " right"
                )
            if latest[session] != name:
                raise RecordingError(
                    f"{place}: transaction {name} goes on after transaction {latest[session]} of"
                    f" its session began (line {begun[latest[session]][2]}); its operations side by"
                    " side would be right"
                )
        recording.add(here, is_write, key, numbers.get(value, value) if value else INITIAL, number)
    return recording.history(names)


def _names(text: str) -> list[int]:
    """Return all values, sorted, if some are negative and cannot be column numbers; else an empty
    list.
    """
    if BELOW.search(text) is None:
        return []
    return sorted({int(found[3]) for found in OPERATION.finditer(text)})
