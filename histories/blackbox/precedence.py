"""Precedence edges between transactions with their reasons, and names of operations and
transactions.

A cycle is a sequence of `Precedence` steps; `EdgeColumns` holds many edges as columns. `Names`
builds the reasons, in terms of operations of the recorded history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.readers.blackbox_history import INITIAL
from isolitmus.model.display import ReadableRepr
from isolitmus.model.reason import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from isolitmus.histories.readers.blackbox_history import RegisterHistory


def transaction_name(history: RegisterHistory, number: int) -> str:
    """Return the name of a transaction: its number from 1, and its session.

    The number after the last transaction of the history is the initial transaction.
    """
    if number == len(history.session):
        return "the initial transaction"
    return f"transaction {number + 1} (session {history.sessions[history.session[number]]})"


def operation_name(
    history: RegisterHistory, number: int, numbers: Sequence[int] | None = None
) -> str:
    """Return what an operation did, its transaction, and where it stands in the file.

    ``numbers`` maps transactions of a part of a history to their numbers in the whole.
    """
    owner = _owner(history, number)
    what = "wrote" if history.is_write[number] else "read"
    return (
        f"transaction {numbers[owner] if numbers else owner + 1} ({_place(history, owner, number)})"
        f" {what} {_key_name(history, history.key[number])} = {_value(history, number)}"
    )


def value_name(history: RegisterHistory, value: int) -> object:
    """Return the recorded value that a value code stands for."""
    if value == INITIAL:
        return "nothing"
    return history.values[value] if len(history.values) else value


def _key_name(history: RegisterHistory, key: int) -> str:
    """Return the name of a key; a name that begins with a digit gets the prefix "key"."""
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
    """Names of the transactions of a part of a history, and reasons about their operations.

    Transactions have the numbers that they have in the whole history (default: the part is the
    whole). ``T0`` is the initial transaction.
    """

    def __init__(self, history: RegisterHistory, numbers: Sequence[int] | None = None) -> None:
        self.history = history
        self.numbers = numbers or range(1, len(history.session) + 1)
        self.initial = len(history.session)

    def __getitem__(self, transaction: int) -> str:
        return f"T{0 if transaction == self.initial else self.numbers[transaction]}"

    def place(self, name: str) -> int:
        """Return the transaction that has a name."""
        return self.number(int(name[1:]))

    def number(self, number: int) -> int:
        """Return the transaction that has a number in the whole history."""
        return self.numbers.index(number) if number else self.initial

    def owner(self, operation: int) -> int:
        """Return the transaction of an operation."""
        return _owner(self.history, operation)

    def session(self, first: int, second: int) -> Reason:
        """Return the reason that one transaction stands before another in their session."""
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
        """Return the reason that one transaction had ended when another began."""
        history = self.history
        return Reason.of(
            "recorded time",
            first=f"{self[first]} ({history.unit} {history.line[history.first[first + 1] - 1]})",
            second=f"{self[second]} ({history.unit} {history.line[history.first[second]]})",
        )

    def read_from(self, writer: int, reader: int, key: int, read: int | None = None) -> Reason:
        """Return the reason that one transaction read the version of a key that another wrote."""
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
        """Return the assumption that a read with several possible writers read from ``writer``."""
        by, key = self._by(read), int(self.history.key[read])
        if writer == self.initial:
            return Reason.of("recorded unborn", reader=by, key=self._key(key))
        return Reason.of("recorded whose", reader=by, version=self.written(writer, key))

    def overwrote(self, first: int, second: int, key: int, *, sees: bool = False) -> Reason:
        """Return the reason that ``second`` overwrote the version of a key of ``first``.

        ``sees``: ``second`` comes after ``first`` by sessions and reads.
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
        """Return the reason that a list shows the version of ``first`` before that of ``second``,
        or alone.
        """
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
        """Return the value of a key that a transaction wrote last."""
        return (
            INITIAL if writer == self.initial else int(self.history.value[self._write(writer, key)])
        )

    def missed(self, reader: int, second: int, key: int, first: int) -> Reason:
        """Return the reason that ``reader`` read the version of ``first``, which ``second``
        overwrote.
        """
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
        """Return the reason that a read returned an older version of its key than one that its
        reader sees.

        ``sees`` are the reasons why the reader sees the newer version.
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
        """Return the name of a version: key, value and writer."""
        write = self._write(writer, key)
        return f"{self._key(key)} = {_value(self.history, write)} of {self._by(write)}"

    def _operations(self, transaction: int) -> range:
        return range(int(self.history.first[transaction]), int(self.history.first[transaction + 1]))

    def _key(self, key: int) -> str:
        return _key_name(self.history, key)

    def _by(self, operation: int) -> str:
        """Return the name of an operation's transaction, with the position of the operation."""
        owner = self.owner(operation)
        return f"{self[owner]} ({_place(self.history, owner, operation)})"

    def _write(self, writer: int, key: int) -> int:
        """Return the index of a transaction's last write to a key."""
        history = self.history
        return [
            one
            for one in self._operations(writer)
            if history.is_write[one] and history.key[one] == key
        ][-1]

    def _read(self, reader: int, key: int, writer: int) -> int:
        """Return the first read of a key that returned the version of a transaction."""
        history = self.history
        left = self.left(writer, key)
        return next(
            one
            for one in self._operations(reader)
            if not history.is_write[one] and history.key[one] == key and history.value[one] == left
        )


KINDS = ("so", "wr", "co", "ww", "rw", "within", "rt")
"""Kinds of edges, by code: session order, read-from, commit order by an axiom, version order,
anti-dependency, beginning to end of a transaction, and real time.
"""


@dataclass(frozen=True, slots=True)
class Precedence(ReadableRepr):
    """Precedence of one transaction over another, with its reason."""

    history: RegisterHistory
    source: int
    """Transaction that comes before."""
    target: int
    """Transaction that comes after."""
    kind: str
    """One of KINDS."""
    read: int | None = None
    """Operation index of the read that shows it; None for session order and for an inferred version
    order.
    """
    because: tuple[Precedence, ...] = ()
    """Premises. For an axiom: the steps by which the reader sees the source. For an inferred
    version order: the cycle that the opposite order would close.
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
    """Edges between transactions, as columns of shape (n_edges,)."""

    source: NDArray[np.int64]
    """Shape (n_edges,): transaction that comes before."""
    target: NDArray[np.int64]
    """Shape (n_edges,): transaction that comes after."""
    kind: NDArray[np.int8]
    """Shape (n_edges,): index into KINDS."""
    read: NDArray[np.int64]
    """Shape (n_edges,): operation index of the read that shows the edge, or -1."""

    def __len__(self) -> int:
        return len(self.source)

    def only(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> EdgeColumns:
        """Return the edges that ``which``, indices or a mask, selects."""
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
        """Return edges of one kind; ``read`` is -1 for all of them if it is not given."""
        kinds = np.full(len(source), KINDS.index(kind), np.int8)
        return cls(source, target, kinds, np.full(len(source), -1) if read is None else read)


def concatenate_edges(parts: Sequence[EdgeColumns]) -> EdgeColumns:
    """Return the edges of all parts, one part after another."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    return EdgeColumns(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.read for part in parts]),
    )
