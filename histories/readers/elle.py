"""Reader of Elle's histories: invocations and completions of transactions on registers or lists.

``:ok`` is committed, ``:fail`` aborted. After ``:info``, or if no completion follows an invocation,
the end is unknown. Reads of transactions that are not committed are unknown, so only their writes
are kept. A process is a session; processes without a number (the nemesis) are ignored. The order of
the file is the order in time: a transaction began at the position of its invocation.

The function of an operation may be any, such as ``:read`` and ``:write`` of Jepsen's long fork, if
its value is a list of reads and writes. A transaction without a process is a session of its own.
Its completion is the next one with the same steps; if several such transactions go on at once,
which of them it ends is unknown, and so is real time.

Real time is also unknown if a file has only completions, or if indexes restart for each process:
they order each session and nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from isolitmus.histories.readers.blackbox_history import (
    ABORTED,
    COMMITTED,
    INITIAL,
    UNKNOWN,
    ListHistory,
    RegisterHistory,
)
from isolitmus.histories.readers.edn import write_edn
from isolitmus.histories.readers.recording import NEVER, Recording
from isolitmus.model.errors import RecordingError, brief

if TYPE_CHECKING:
    from collections.abc import Iterable

COMPLETIONS = {"ok": COMMITTED, "fail": ABORTED, "info": UNKNOWN}
STEPS = ("r", "w", "append")
OWN_SESSION = "of operation "
"""Prefix of the session of a transaction without a process; its place in the file follows."""
WITHOUT_PROCESS = "a transaction without a process is a session of its own"


@dataclass(frozen=True, slots=True)
class _Access:
    """Read, write or append of a transaction, as in the file."""

    word: str
    key: int | str
    value: Any


@dataclass(slots=True)
class _Invocation:
    process: int | str
    began: int
    line: int
    steps: list[_Access]
    ended: int = NEVER
    status: int = UNKNOWN


def read_elle(
    records: Iterable[tuple[int, Any]], file: str, mark: str = ""
) -> RegisterHistory | ListHistory:
    """Return the history of operations.

    Parameters
    ----------
    records : iterable of (int, object)
        Line and parsed form of each operation.
    file : str
        Name of the file, for messages.
    mark : str
        Prefix of keywords (``:`` in EDN).

    Raises
    ------
    RecordingError
        If an operation is wrong; the message says why.

    Examples
    --------
    >>> begin = {"type": "invoke", "process": 0, "value": [["w", "x", 2], ["r", "y", None]]}
    >>> end = {"type": "ok", "process": 0, "value": [["w", "x", 2], ["r", "y", None]]}
    >>> read_elle([(1, begin), (2, end)], "h.json")
    1 transaction in 1 session, 2 operations on 2 keys
    >>> read_elle([(1, begin), (2, begin)], "h.json")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.json:2: process 0 invokes a transaction while its \
last one (line 1) goes on; its end would be right
    """
    reader = _Operations(file, mark)
    for place, (line, record) in enumerate(records):
        reader.take(place, line, record)
    appends = reader.appends()
    timed = reader.timed()
    return _lists(reader, timed) if appends else _registers(reader, timed)


class _Operations:
    """State of the parser: invocations and completions of a file."""

    def __init__(self, file: str, mark: str) -> None:
        self.file, self.mark = file, mark
        self.done: list[_Invocation] = []
        self.going: dict[int | str, _Invocation] = {}
        self.crashed: dict[int | str, int] = {}
        self.first: tuple[bool, int] | None = None
        # Whether the first transaction was invoked, and its line; if not, there are only ends.
        self.indexes: dict[int, int] = {}
        # First line with each index.
        self.latest: dict[int | str | None, tuple[int, int]] = {}
        # Last index of each process, and its line.
        self.index: tuple[int, int] | None = None
        self.falls: tuple[int, str] | None = None
        # Line of the first index that is not above its predecessor, and the problem.
        self.is_index_repeated = False
        self.kinds: dict[str, int] = {}
        # First line with each kind of write.
        self.without_process: list[str] = []
        # Sessions of unfinished transactions without a process, in the order of the file.
        self.has_no_process = False
        self.is_end_ambiguous = False

    def take(self, place: int, line: int, record: Any) -> None:
        """Process the next operation."""
        if not isinstance(record, dict):
            self.refuse(
                line,
                f"'{self.shown(record)}' is not an operation; expected a map with a type and a"
                " value",
            )
        process = self._of(record, "process")
        self._take_index(line, process, record)
        if isinstance(process, str):
            return
        function = self._of(record, "f")
        if function not in (None, f"{self.mark}txn") and not self._is_transaction(record):
            words = ", ".join(f"[{self.mark}{word} KEY VALUE]" for word in STEPS)
            self.refuse(
                line,
                f"'{self.shown(function)}' with the value '{self.shown(self._of(record, 'value'))}'"
                f" is not a transaction; expected a list of {words}",
            )
        kind = self._of(record, "type")
        invokes = kind == f"{self.mark}invoke"
        self.first = self.first or (invokes, line)
        if process is None:
            process = self._own_session(place, line, record, invokes=invokes)
        elif type(process) is not int:
            self.refuse(line, f"'{self.shown(process)}' is not a process; expected a number")
        if invokes:
            if not self.first[0]:
                self.refuse(
                    line,
                    f"this invokes a transaction, and line {self.first[1]} ends one that was not"
                    " invoked; all invocations, or ends alone, would be right",
                )
            self._invoke(place, line, process, record)
            return
        status = next((s for word, s in COMPLETIONS.items() if kind == self.mark + word), None)
        if status is None:
            known = ", ".join(self.mark + word for word in ("invoke", *COMPLETIONS))
            self.refuse(line, f"'{self.shown(kind)}' is not a type of operation; known: {known}")
        if not self.first[0]:
            self._invoke(place, line, process, record)
        begun = self.going.pop(process, None)
        if begun is None:
            self.refuse(
                line, f"process {process} ends a transaction ({kind}) that it has not invoked"
            )
        if status == COMMITTED:
            begun.steps = self._same(line, begun, self._steps(line, record))
        else:
            begun.steps = [step for step in begun.steps if step.word != "r"]
        begun.status = status
        if status == UNKNOWN:
            self.crashed[process] = line
        else:
            begun.ended = place

    def _own_session(self, place: int, line: int, record: dict[Any, Any], *, invokes: bool) -> str:
        """Return the session of a transaction without a process: a new one, or that which ends."""
        self.has_no_process = True
        if invokes or not (self.first and self.first[0]):
            session = f"{OWN_SESSION}{place + 1}"
            if invokes:
                self.without_process.append(session)
            return session
        asked = [_asked(step) for step in self._steps(line, record)]
        fitting = [
            name
            for name in self.without_process
            if [_asked(step) for step in self.going[name].steps] == asked
        ]
        if not fitting:
            self.refuse(
                line,
                f"this operation has no {self.mark}process and ends no transaction without one;"
                " expected its invocation before it, with the same keys and writes",
            )
        self.is_end_ambiguous |= len(fitting) > 1
        self.without_process.remove(fitting[0])
        return fitting[0]

    def _is_transaction(self, record: dict[Any, Any]) -> bool:
        """Return whether the value of an operation looks like a list of reads and writes."""
        value = self._of(record, "value")
        words = {self.mark + word for word in STEPS}
        return isinstance(value, (list, tuple)) and all(
            isinstance(step, (list, tuple)) and step and step[0] in words for step in value
        )

    def appends(self) -> bool:
        """Return whether the history is one of lists; without writes, the reads determine it."""
        for begun in self.going.values():
            begun.steps = [step for step in begun.steps if step.word != "r"]
        if len(self.kinds) > 1:
            self.refuse(
                self.kinds["w"],
                f"this writes a register, and line {self.kinds['append']} appends to a list; one of"
                " the two throughout would be right",
            )
        if self.kinds:
            return "append" in self.kinds
        return any(isinstance(s.value, (list, tuple)) for t in self.done for s in t.steps)

    def refuse(self, line: int, why: str) -> NoReturn:
        """Raise RecordingError about an operation."""
        raise RecordingError(f"{self.file}:{line}: {why}")

    def shown(self, value: Any) -> str:
        """Return a value in the notation of the file."""
        return brief(write_edn(value) if self.mark else json.dumps(value))

    def _of(self, record: dict[Any, Any], word: str) -> Any:
        return record.get(self.mark + word)

    def timed(self) -> bool:
        """Return whether the file is in the order of time.

        This requires invocations and completions, and indexes that increase through the whole file.
        """
        if self.falls is not None and not self.is_index_repeated:
            self.refuse(*self.falls)
        if self.is_end_ambiguous:
            return False
        return self.falls is None and (self.first is None or self.first[0])

    def _take_index(self, line: int, process: Any, record: dict[Any, Any]) -> None:
        """Record the index of an operation; refuse one that does not increase in its session."""
        index = self._of(record, "index")
        if index is None:
            return
        if type(index) is not int:
            self.refuse(line, f"'{self.shown(index)}' is not an index; expected a number")
        session = process if isinstance(process, (int, str)) else None
        own = self.latest.get(session)
        if own is not None and index <= own[0]:
            self.refuse(line, self._falling(index, own))
        if self.falls is None and self.index is not None and index <= self.index[0]:
            self.falls = line, self._falling(index, self.index)
        self.is_index_repeated |= self.indexes.setdefault(index, line) != line
        self.latest[session] = self.index = index, line

    def _falling(self, index: int, before: tuple[int, int]) -> str:
        """Return the message for an index that is not above its predecessor."""
        return (
            f"index {self.shown(index)} comes after index {self.shown(before[0])} (line"
            f" {before[1]}); the operations in the order of their indexes would be right"
        )

    def _invoke(self, place: int, line: int, process: int | str, record: dict[Any, Any]) -> None:
        """Start a transaction; refuse a process with an unfinished transaction."""
        if process in self.going:
            self.refuse(
                line,
                f"process {process} invokes a transaction while its last one (line"
                f" {self.going[process].line}) goes on; its end would be right",
            )
        if process in self.crashed:
            self.refuse(
                line,
                f"process {process} continues after a transaction whose end was not observed (line"
                f" {self.crashed[process]}): the order of the two is unknown; expected another"
                " process",
            )
        begun = _Invocation(process, place, line, self._steps(line, record))
        self.going[process] = begun
        self.done.append(begun)

    def _steps(self, line: int, record: dict[Any, Any]) -> list[_Access]:
        """Return the reads and writes in the value of an operation."""
        value = self._of(record, "value")
        if not isinstance(value, (list, tuple)):
            self.refuse(
                line,
                f"'{self.shown(value)}' is not a transaction; expected a list of reads and writes",
            )
        return [self._step(line, each) for each in value]

    def _step(self, line: int, step: Any) -> _Access:
        """Return a read, write or append; refuse other steps, keys and values."""
        words = {self.mark + word: word for word in STEPS}
        if not (
            isinstance(step, (list, tuple))
            and len(step) == 3
            and isinstance(step[0], str)
            and step[0] in words
        ):
            right = ", ".join(f"[{word} KEY VALUE]" for word in words)
            self.refuse(line, f"'{self.shown(step)}' is not one of {right}")
        word, key, value = words[step[0]], step[1], step[2]
        if type(key) not in (int, str):
            self.refuse(line, f"'{self.shown(key)}' is not a key; expected a number or a word")
        whole = value if isinstance(value, (list, tuple)) and word == "r" else [value]
        for each in whole:
            if type(each) not in (int, str) and (each is not None or word != "r" or whole is value):
                self.refuse(
                    line,
                    f"'{self.shown(each)}' is not a value of key {key}; expected a number or a"
                    " word",
                )
        if word != "r":
            self.kinds.setdefault(word, line)
        return _Access(word, key, value)

    def _same(self, line: int, begun: _Invocation, steps: list[_Access]) -> list[_Access]:
        """Return the completed steps, which must be those that were invoked."""
        if [_asked(step) for step in steps] != [_asked(step) for step in begun.steps]:
            self.refuse(
                line,
                f"process {begun.process} ends another transaction than it invoked (line"
                f" {begun.line}); the same keys and writes would be right",
            )
        return steps


def _asked(step: _Access) -> tuple[str, int | str, Any]:
    """Return the part of a step that its invocation contains."""
    return step.word, step.key, None if step.word == "r" else step.value


def _registers(reader: _Operations, timed: bool) -> RegisterHistory:
    """Return the history of registers; refuse a read of a list."""
    values: dict[int | str, int] = {}
    recording = Recording()
    for transaction in reader.done:
        begun = _begin(recording, transaction)
        for step in transaction.steps:
            if isinstance(step.value, (list, tuple)):
                reader.refuse(
                    transaction.line,
                    f"this reads a list of key {step.key}, and others write registers",
                )
            number = INITIAL if step.value is None else values.setdefault(step.value, len(values))
            recording.add(begun, step.word == "w", step.key, number, transaction.line)
    return recording.history(tuple(values), timed=timed, assumptions=_assumptions(reader))


def _lists(reader: _Operations, timed: bool) -> ListHistory:
    """Return the history of lists, with the elements that each read observed."""
    values: dict[int | str, int] = {}
    recording = Recording()
    lists: list[list[int]] = []
    for transaction in reader.done:
        begun = _begin(recording, transaction)
        for step in transaction.steps:
            is_write = step.word == "append"
            elements = [step.value] if is_write else step.value
            if not isinstance(elements, (list, tuple, type(None))):
                reader.refuse(
                    transaction.line,
                    f"this reads '{reader.shown(elements)}' of key {step.key} where others append"
                    " to lists; expected a list",
                )
            found = [values.setdefault(each, len(values)) for each in elements or ()]
            last = found[-1] if found else INITIAL
            recording.add(begun, is_write, step.key, last, transaction.line)
            lists.append([] if is_write else found)
    ordered = [lists[i] for i in recording.operations()]
    return ListHistory(
        recording.history(tuple(values), timed=timed, assumptions=_assumptions(reader)),
        np.array([0, *accumulate(map(len, ordered))], np.int64),
        np.array([each for seen in ordered for each in seen], np.int64),
    )


def _assumptions(reader: _Operations) -> tuple[str, ...]:
    return (WITHOUT_PROCESS,) if reader.has_no_process else ()


def _begin(recording: Recording, of: _Invocation) -> int:
    return recording.begin(of.process, of.status, of.began, of.ended)
