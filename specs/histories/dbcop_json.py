"""dbcop's JSON: sessions as a list of lists of transactions, alone or as ``data`` of a table.

A transaction has its ``events`` and whether it is ``committed``; an event is ``{"Read": {"variable": V, "version": N}}``,
``{"Write": …}`` or, short, ``["r", V, N]`` and ``["w", V, N]``. Earlier releases, whose binary form has the same fields, have
``success`` of a transaction, and events ``{"write": true, "variable": V, "value": N, "success": true}``, of which those without
success did nothing. A read of the version null, and of 0 where nobody writes
0 to that variable, found nothing.
"""

from __future__ import annotations

import json
from typing import Any

from isolitmus.model.blackbox_history import ABORTED, COMMITTED, INITIAL, RegisterHistory
from isolitmus.model.errors import RecordingError, brief
from isolitmus.specs.histories.recording import GREATEST, Recording

__all__ = ["read_dbcop_json"]

WORDS = {"r": False, "Read": False, "w": True, "Write": True}


def read_dbcop_json(value: Any, file: str) -> RegisterHistory:
    """The history that a value in JSON holds; RecordingError says which part of it does not read, and why.

    >>> read_dbcop_json([[{"events": [["w", 0, 1], ["r", 1, None]], "committed": True}]], "h.json")
    1 transaction in 1 session, 2 operations on 2 keys
    >>> read_dbcop_json([[{"events": [["w", 0, -1]], "committed": True}]], "h.json")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.json: session 1, transaction 1, event 1: '-1' is no version of a write; a \
number from 0 to 9223372036854775807 would be right
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
                    f"{place}: '{_shown(transaction)}' does not say whether it is committed; a table with a list"
                    " 'events' and true or false as 'committed' would be right"
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
    names = list(recording.keys)
    for i, number in enumerate(recording.value):
        if number == 0 and (names[recording.key[i]], 0) not in written:
            recording.value[i] = INITIAL
    return recording.history(unit="record")


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise RecordingError(f"{place}: '{_shown(value)}' stands where a list would be right")
    return value


def _event(event: Any, place: str) -> tuple[bool, int | str, int | None]:
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
                f"{place}: '{_shown(event)}' is neither a Read nor a Write of a variable and a version"
            )
    is_write = WORDS[word]
    if not (type(key) is str or (type(key) is int and 0 <= key <= GREATEST)):
        raise RecordingError(
            f"{place}: '{_shown(key)}' is no variable; a number from 0 to {GREATEST} or a text would be right"
        )
    if not (type(version) is int and 0 <= version <= GREATEST) and (
        is_write or version is not None
    ):
        what = "a write" if is_write else "a read"
        raise RecordingError(
            f"{place}: '{_shown(version)}' is no version of {what}; a number from 0 to {GREATEST} would be right"
        )
    return is_write, key, version


def _shown(value: Any) -> str:
    return brief(json.dumps(value))
