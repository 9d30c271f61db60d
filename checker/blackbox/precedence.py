"""Precedence of transactions with its reasons, and the names of operations.

Why one transaction comes before another: the steps that a cycle is made of, and the edges as
columns.

How operations and transactions of a recorded history are called, and what one did to another in
words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.model.blackbox_history import INITIAL
from isolitmus.model.display import ReadableRepr
from isolitmus.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from isolitmus.model.blackbox_history import RegisterHistory

__all__ = [
    "KINDS",
    "EdgeColumns",
    "Names",
    "Precedence",
    "concatenate_edges",
    "operation_name",
    "transaction_name",
    "value_name",
]


def transaction_name(history: RegisterHistory, number: int) -> str:
    """A transaction by its number from 1, and its session; the last but one is what was there
    before.
    """
    if number == len(history.session):
        return "the initial transaction"
    return f"transaction {number + 1} (session {history.sessions[history.session[number]]})"


def operation_name(
    history: RegisterHistory, number: int, numbers: Sequence[int] | None = None
) -> str:
    """What an operation did, whose it is (``numbers``: of the transactions of a part in the whole),
    and where it stands.
    """
    owner = _owner(history, number)
    what = "wrote" if history.is_write[number] else "read"
    return (
        f"transaction {numbers[owner] if numbers else owner + 1} ({_place(history, owner, number)})"
        f" {what} {_key_name(history, history.key[number])} = {_value(history, number)}"
    )


def value_name(history: RegisterHistory, value: int) -> object:
    """What a number of a value stands for."""
    if value == INITIAL:
        return "nothing"
    return history.values[value] if len(history.values) else value


def _key_name(history: RegisterHistory, key: int) -> str:
    """A key; one that is a number is called a key, too."""
    name = history.keys[key]
    return f"key {name}" if name[:1].isdigit() else name


def _owner(history: RegisterHistory, operation: int) -> int:
    return int(np.searchsorted(history.first, operation, "right")) - 1


def _value(history: RegisterHistory, operation: int) -> object:
    return value_name(history, int(history.value[operation]))


def _place(history: RegisterHistory, owner: int, operation: int) -> str:
    session = history.sessions[history.session[owner]]
    return f"session {session}, {history.unit} {history.line[operation]}"


class Names:
    """The transactions of a part of a history by the numbers that they have in the whole (default:
    all of it), and reasons about their operations. ``T0`` is what was there before.
    """

    def __init__(self, history: RegisterHistory, numbers: Sequence[int] | None = None) -> None:
        self.history = history
        self.numbers = numbers or range(1, len(history.session) + 1)
        self.initial = len(history.session)

    def __getitem__(self, transaction: int) -> str:
        return f"T{0 if transaction == self.initial else self.numbers[transaction]}"

    def place(self, name: str) -> int:
        """The transaction of a name."""
        return self.number(int(name[1:]))

    def number(self, number: int) -> int:
        """The transaction that has a number in the whole."""
        return self.numbers.index(number) if number else self.initial

    def owner(self, operation: int) -> int:
        """The transaction of an operation."""
        return _owner(self.history, operation)

    def session(self, first: int, second: int) -> Reason:
        """One stands before the other in their session."""
        if first == self.initial:
            return Reason.of("initial", init="T0", node=self[second])
        history = self.history
        return Reason.of(
            "recorded session",
            session=history.sessions[history.session[first]],
            first=f"{self[first]} ({history.unit} {history.line[history.first[first]]})",
            second=f"{self[second]} ({history.unit} {history.line[history.first[second]]})",
        )

    def in_time(self, first: int, second: int) -> Reason:
        """One had ended when the other began."""
        history = self.history
        return Reason.of(
            "recorded time",
            first=f"{self[first]} ({history.unit} {history.line[history.first[first + 1] - 1]})",
            second=f"{self[second]} ({history.unit} {history.line[history.first[second]]})",
        )

    def read_from(self, writer: int, reader: int, key: int, read: int | None = None) -> Reason:
        """One read what the other left of a key."""
        read = self._read(reader, key, writer) if read is None else read
        if writer == self.initial:
            return Reason.of("recorded nothing", reader=self._by(read), key=self._key(key))
        return Reason.of(
            "recorded read",
            reader=self._by(read),
            key=self._key(key),
            value=_value(self.history, read),
            writer=self._by(self._write(writer, key)),
        )

    def supposed(self, read: int, writer: int) -> Reason:
        """A read whose value several wrote is supposed to be of what one of them left."""
        by, key = self._by(read), int(self.history.key[read])
        if writer == self.initial:
            return Reason.of("recorded unborn", reader=by, key=self._key(key))
        return Reason.of("recorded whose", reader=by, version=self.written(writer, key))

    def overwrote(self, first: int, second: int, key: int, *, sees: bool = False) -> Reason:
        """One overwrote what the other left of a key; ``sees``: by sessions and reads it comes
        after the other.
        """
        write = self._write(second, key)
        if first == self.initial:
            return Reason.of("initial", init="T0", node=self[second])
        before = self._write(first, key)
        return Reason.of(
            "recorded overwrote seen" if sees else "recorded overwrote",
            writer=self._by(write),
            key=self._key(key),
            value=_value(self.history, before),
            other=self._by(before),
            later=_value(self.history, write),
        )

    def listed(self, kind: str, first: int, second: int, read: int) -> Reason:
        """A list has what ``first`` left before what ``second`` left, or it without that."""
        key = int(self.history.key[read])
        before, write = self._write(first, key), self._write(second, key)
        return Reason.of(
            kind,
            reader=self._by(read),
            key=self._key(key),
            value=_value(self.history, before),
            other=self._by(before),
            later=_value(self.history, write),
            writer=self._by(write),
        )

    def left(self, writer: int, key: int) -> int:
        """What a transaction left of a key."""
        return (
            INITIAL if writer == self.initial else int(self.history.value[self._write(writer, key)])
        )

    def missed(self, reader: int, second: int, key: int, first: int) -> Reason:
        """One read what ``first`` left of a key, which ``second`` overwrote."""
        read, write = self._read(reader, key, first), self._write(second, key)
        kind = "recorded missed all" if first == self.initial else "recorded missed"
        return Reason.of(
            kind,
            reader=self._by(read),
            key=self._key(key),
            value=_value(self.history, read),
            writer=self._by(write),
            later=_value(self.history, write),
        )

    def stale(self, source: int, read: int, sees: Sequence[Reason]) -> Reason:
        """A read of an older version of its key than one that its reader sees, and how it sees
        that.
        """
        key = int(self.history.key[read])
        write = self._write(source, key)
        return Reason.of(
            "recorded stale",
            reader=self._by(read),
            key=self._key(key),
            value=_value(self.history, read),
            later=_value(self.history, write),
            writer=self._by(write),
            seeing=self[self.owner(read)],
            seen=self[source],
            sees=Reason.of("both", parts=tuple(sees)),
        )

    def written(self, writer: int, key: int) -> str:
        """A version."""
        write = self._write(writer, key)
        return f"{self._key(key)} = {_value(self.history, write)} of {self._by(write)}"

    def _operations(self, transaction: int) -> range:
        return range(int(self.history.first[transaction]), int(self.history.first[transaction + 1]))

    def _key(self, key: int) -> str:
        return _key_name(self.history, key)

    def _by(self, operation: int) -> str:
        """Whose an operation is, and where it stands."""
        owner = self.owner(operation)
        return f"{self[owner]} ({_place(self.history, owner, operation)})"

    def _write(self, writer: int, key: int) -> int:
        history = self.history
        return [
            one
            for one in self._operations(writer)
            if history.is_write[one] and history.key[one] == key
        ][-1]

    def _read(self, reader: int, key: int, writer: int) -> int:
        """The first read of a key that found what a transaction left."""
        history = self.history
        left = self.left(writer, key)
        return next(
            one
            for one in self._operations(reader)
            if not history.is_write[one] and history.key[one] == key and history.value[one] == left
        )


KINDS = ("so", "wr", "co", "ww", "rw", "within", "rt")
"""Session order, read from, the commit order by an axiom, version order, anti-dependency; from a
transaction's beginning to its end; and real time."""


@dataclass(frozen=True, slots=True)
class Precedence(ReadableRepr):
    """One transaction comes before another, and why."""

    history: RegisterHistory
    """Where."""
    source: int
    """The transaction that comes before."""
    target: int
    """The transaction that comes after."""
    kind: str
    """One of KINDS."""
    read: int | None = None
    """The read that it is about; none for the session order, and for an order of versions."""
    because: tuple[Precedence, ...] = ()
    """Of an axiom's: by which steps the reader sees the source. Of an order of versions that was
    inferred: the cycle that the other order would close.
    """

    def __repr__(self) -> str:
        history, source, target = self.history, self.source, self.target
        head = f"{transaction_name(history, source)} before {transaction_name(history, target)}"
        read = "" if self.read is None else operation_name(history, self.read)
        match self.kind:
            case "so":
                why = "session order"
            case "rt":
                why = "it had ended"
            case "wr":
                why = f"{read}"
            case "co":
                seen = ", ".join(repr(step) for step in self.because)
                why = f"{read}, and sees who wrote the key, too ({seen})"
            case "rw":
                why = f"{read}, which was overwritten"
            case _:
                why = "version order" + (", else there is a cycle" if self.because else "")
        return f"{head} ({self.kind}): {why}"


@dataclass(frozen=True, slots=True, eq=False)
class EdgeColumns:
    """Pairs of transactions as columns, each with what it is about."""

    source: NDArray[np.int64]
    """Who comes before."""
    target: NDArray[np.int64]
    """Who comes after."""
    kind: NDArray[np.int8]
    """The place in KINDS."""
    read: NDArray[np.int64]
    """The read, by operation, or -1."""

    def __len__(self) -> int:
        return len(self.source)

    def only(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> EdgeColumns:
        """These of them."""
        return EdgeColumns(
            self.source[which], self.target[which], self.kind[which], self.read[which]
        )

    @classmethod
    def of(
        cls,
        kind: str,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        read: NDArray[np.int64] | None = None,
    ) -> EdgeColumns:
        """Arrows of one kind."""
        kinds = np.full(len(source), KINDS.index(kind), np.int8)
        return cls(source, target, kinds, np.full(len(source), -1) if read is None else read)


def concatenate_edges(parts: Sequence[EdgeColumns]) -> EdgeColumns:
    """The edges of all parts, one part after another."""
    return EdgeColumns(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.read for part in parts]),
    )
