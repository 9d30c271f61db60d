"""Who wrote what each read saw: wr, from values; and what no order of transactions can put right.

Choices. A read that finds an own write before it is internal: it sees that write, or is a flaw. The value of
any other read names the transaction whose last write of the key it is, where that is one; an aborted
transaction's never counts. Of a transaction whose end nobody saw it is supposed that it committed if one that
counts read from it, else that it aborted: at each of these levels a transaction that nobody reads from can be
left out. Where several wrote the value the read says nothing, and ``ambiguous`` says so: what is forbidden
without it is forbidden, what is allowed is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.recorded.naming import operation_name
from isolitmus.checker.recorded.stepping import Arrows
from isolitmus.model.readable import Readable
from isolitmus.model.register_history import ABORTED, COMMITTED, INITIAL, UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.model.list_history import ListHistory
    from isolitmus.model.register_history import RegisterHistory

__all__ = ["Attributed", "Flaw", "attributed", "own_writes"]

WORDS = {
    "thin-air-read": "{read}, which nobody wrote",
    "aborted-read": "{read}, which an aborted transaction wrote: {write}",
    "intermediate-read": "{read}, which its writer overwrote: {write}",
    "future-read": "{read} before its own write: {write}",
    "lost-own-write": "{read} after its own write: {write}",
}


@dataclass(frozen=True, slots=True)
class Flaw(Readable):
    """A read that no order of the transactions explains, of a kind of WORDS, and the write that shows it, if there is one."""

    history: RegisterHistory
    kind: str
    read: int
    write: int | None

    def __repr__(self) -> str:
        write = "" if self.write is None else operation_name(self.history, self.write)
        return WORDS[self.kind].format(read=operation_name(self.history, self.read), write=write)


def _nothing() -> Arrows:
    return Arrows.of("ww", *[np.zeros(0, np.int64)] * 2)


@dataclass(frozen=True, slots=True, eq=False)
class Attributed:
    """Reads with their writers, and last writes, of the transactions that count: columns of numbers.

    Transactions have the numbers of the history; one more, ``initial``, is before all of them and wrote
    INITIAL to every key.
    """

    history: RegisterHistory
    """What was recorded."""
    flaws: tuple[Flaw, ...]
    """Of transactions that count, in the order of operations."""
    ambiguous: str
    """A read whose writer the values do not tell, in words; empty: there is none."""
    counts: NDArray[np.bool_]
    """Of each transaction, whether it counts: as committed."""
    owner: NDArray[np.int64]
    """Of each operation, its transaction."""
    read: NDArray[np.int64]
    """The external reads with a known writer, by operation."""
    reader: NDArray[np.int64]
    """Of each of these reads, its transaction."""
    key: NDArray[np.int64]
    """Of each of these reads."""
    writer: NDArray[np.int64]
    """Of each of these reads: the transaction that it read from."""
    written_key: NDArray[np.int64]
    """Of each last write, in the order of keys, then of transactions."""
    written_by: NDArray[np.int64]
    """Of each last write, its transaction."""
    observed: Arrows = field(default_factory=_nothing)
    """The order of versions as far as lists show it, each pair with the read that does; of registers nothing."""
    lists: ListHistory | None = None
    """The same history with all that its reads saw, if it is one of lists."""

    @property
    def initial(self) -> int:
        """The number of the transaction that was before all."""
        return len(self.counts)

    def sessions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The session order of what counts, each to the next, and from ``initial`` to the first ones."""
        there = np.flatnonzero(self.counts)
        session = self.history.session[there]
        first = np.ones(len(there), bool)
        first[1:] = session[1:] != session[:-1]
        before = np.roll(there, 1)
        before[first] = self.initial
        return before, there

    def chains(self) -> NDArray[np.int64]:
        """Of each transaction the chain of the session order in which it is; ``initial`` has its own."""
        return np.append(self.history.session, len(self.history.sessions)).astype(np.int64)


def attributed(history: RegisterHistory) -> Attributed:
    """Who wrote what each read saw.

    >>> from isolitmus.model.register_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 3]),
    ...     np.array([True, False, False]), np.array([0, 0, 0]), np.array([7, 7, 8]), np.array([1, 2, 3]),
    ... )
    >>> seen = attributed(history)
    >>> seen.writer.tolist(), seen.flaws
    ([0], (transaction 2 (session t, line 3) read x = 8, which nobody wrote,))
    """
    keys, size = len(history.keys), len(history.session)
    owner = np.repeat(np.arange(size), np.diff(history.first))
    key = history.key.astype(np.int64)
    code = np.unique(np.append(history.value, INITIAL), return_inverse=True)[1]
    cell = code[:-1] * keys + key  # a key and a value
    before, last = own_writes(owner * keys + key, history.is_write)

    final = last[history.status[owner[last]] != ABORTED]
    by_cell = np.append(cell[final], code[-1] * keys + np.arange(keys))
    by_owner = np.append(owner[final], np.full(keys, size))
    sort = np.argsort(by_cell, kind="stable")
    by_cell, by_owner = by_cell[sort], by_owner[sort]

    external = np.flatnonzero(~history.is_write & (before < 0))
    low = np.searchsorted(by_cell, cell[external], "left")
    many = np.searchsorted(by_cell, cell[external], "right") - low
    writer = np.where(many == 1, by_owner[np.minimum(low, len(by_owner) - 1)], -1)
    writer[writer == owner[external]] = -1
    several = {}
    for i in np.flatnonzero(many > 1).tolist():
        others = by_owner[low[i] : low[i] + many[i]]
        others = others[others != owner[external[i]]]
        if len(others) == 1:
            writer[i] = others[0]
        else:
            several[i] = others.tolist()

    counts = _counting(history, owner[external], writer)
    there = counts[owner[external]]
    lost = _lost(history, before)
    flaws = [Flaw(history, "lost-own-write", r, int(before[r])) for r in lost if counts[owner[r]]]
    unexplained = [
        int(external[i]) for i in np.flatnonzero(there & (writer < 0)).tolist() if i not in several
    ]
    flaws += _unexplained(history, owner, cell, unexplained)
    unclear = [i for i in several if there[i]]
    good = np.flatnonzero(there & (writer >= 0))
    last = last[counts[owner[last]]]
    last = last[np.lexsort((owner[last], key[last]))]
    return Attributed(
        history,
        tuple(sorted(flaws, key=lambda flaw: flaw.read)),
        _ambiguity(history, int(external[unclear[0]]), several[unclear[0]]) if unclear else "",
        counts,
        owner,
        external[good],
        owner[external[good]],
        key[external[good]],
        writer[good],
        key[last],
        owner[last],
    )


def own_writes(
    group: NDArray[np.int64], is_write: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each operation the last write before it of its group (a transaction and a key), or -1; and the last
    write of each group.
    """
    order = np.argsort(group, kind="stable")
    group, writes = group[order], is_write[order]
    here = np.arange(len(order))
    latest = np.maximum.accumulate(np.where(writes, here, -1))
    begins = np.ones(len(order), bool)
    begins[1:] = group[1:] != group[:-1]
    start = np.maximum.accumulate(np.where(begins, here, 0))
    earlier = np.roll(latest, 1)
    earlier[begins] = -1
    before = np.full(len(order), -1)
    before[order] = np.where(earlier >= start, order[earlier], -1)
    ends = np.roll(begins, -1)
    return before, order[latest[ends & (latest >= start)]]


def _counting(
    history: RegisterHistory, reader: NDArray[np.int64], writer: NDArray[np.int64]
) -> NDArray[np.bool_]:
    counts: NDArray[np.bool_] = history.status == COMMITTED
    unknown = np.append(history.status == UNKNOWN, False)
    while True:
        read = writer[counts[reader] & (writer >= 0)]
        more = read[unknown[read]]
        if not len(more):
            return counts
        counts[more] = True
        unknown[more] = False


def _lost(history: RegisterHistory, before: NDArray[np.int64]) -> list[int]:
    internal = np.flatnonzero(~history.is_write & (before >= 0))
    lost: list[int] = internal[history.value[internal] != history.value[before[internal]]].tolist()
    return lost


def _unexplained(
    history: RegisterHistory,
    owner: NDArray[np.int64],
    cell: NDArray[np.int64],
    reads: list[int],
) -> list[Flaw]:
    wanted = {int(cell[read]) for read in reads}
    writes: dict[int, list[int]] = {}
    if wanted:
        for write in np.flatnonzero(history.is_write & np.isin(cell, [*wanted])).tolist():
            writes.setdefault(int(cell[write]), []).append(write)
    return [_flaw(history, owner, read, writes.get(int(cell[read]), [])) for read in reads]


def _flaw(history: RegisterHistory, owner: NDArray[np.int64], read: int, writes: list[int]) -> Flaw:
    for write in writes:
        if owner[write] == owner[read]:
            return Flaw(history, "future-read", read, write)
    for write in writes:
        if history.status[owner[write]] == ABORTED:
            return Flaw(history, "aborted-read", read, write)
    if writes:
        return Flaw(history, "intermediate-read", read, writes[0])
    return Flaw(history, "thin-air-read", read, None)


def _ambiguity(history: RegisterHistory, read: int, writers: list[int]) -> str:
    names = ["nobody" if w == len(history.session) else f"transaction {w + 1}" for w in writers[:2]]
    return f"{operation_name(history, read)}, which {' and '.join(names)} wrote: the value does not tell whose it is"
