"""Who wrote what each read saw: wr, from values; and what no order of transactions can put right.

Choices. A read that finds an own write before it is internal: it sees that write, or is a flaw. The value of
any other read names the transaction whose last write of the key it is, where that is one; an aborted
transaction's never counts. Of a transaction whose end nobody saw it is supposed that it committed if one that
counts read from it, else that it aborted: at each of these levels a transaction that nobody reads from can be
left out. Where several wrote the value the read is ``unclear``: ``undecided`` has who may have been it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.naming import operation_name
from isolitmus.checker.blackbox.precedence import Arrows
from isolitmus.model.blackbox_history import ABORTED, COMMITTED, INITIAL, UNKNOWN
from isolitmus.model.display import Readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from isolitmus.model.blackbox_history import RegisterHistory
    from isolitmus.model.list_history import ListHistory

__all__ = ["Attributed", "Flaw", "LeftCells", "attributed", "own_writes"]

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
        return self.said()

    def said(self, numbers: Sequence[int] | None = None) -> str:
        """The flaw in words; ``numbers``: of the transactions of a part in the whole."""
        write = "" if self.write is None else operation_name(self.history, self.write, numbers)
        read = operation_name(self.history, self.read, numbers)
        return WORDS[self.kind].format(read=read, write=write)


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
    unclear: NDArray[np.int64]
    """The external reads whose value several wrote, by operation."""
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
    ambiguous: str = ""
    """Of lists, a read that shows an element which several appended, in words; empty: there is none."""

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


class LeftCells:
    """What transactions that may have committed left of each key; a cell is a key and a value."""

    def __init__(self, history: RegisterHistory) -> None:
        keys, size = len(history.keys), len(history.session)
        key = history.key.astype(np.int64)
        code = np.unique(np.append(history.value, INITIAL), return_inverse=True)[1]
        self.owner: NDArray[np.int64] = np.repeat(np.arange(size), np.diff(history.first))
        """Of each operation, its transaction."""
        self.cell: NDArray[np.int64] = code[:-1] * keys + key
        """Of each operation."""
        self.before, self.last = own_writes(self.owner * keys + key, history.is_write)
        """Of each operation the own write of its key before it, or -1; and the last writes, by operation."""
        self.external: NDArray[np.int64] = np.flatnonzero(~history.is_write & (self.before < 0))
        """The reads that see what another transaction left, by operation."""
        final = self.last[history.status[self.owner[self.last]] != ABORTED]
        left = np.append(self.cell[final], code[-1] * keys + np.arange(keys))
        by = np.append(self.owner[final], np.full(keys, size))
        sort = np.argsort(left, kind="stable")
        self.left, self.by = left[sort], by[sort]
        """Each cell that was left, in order, with who left it."""

    def writers(self, reads: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where in ``by`` the writers of some reads begin, and how many they are; a reader may be among them."""
        low = np.searchsorted(self.left, self.cell[reads], "left")
        return low, np.searchsorted(self.left, self.cell[reads], "right") - low


def attributed(history: RegisterHistory, given: NDArray[np.int64] | None = None) -> Attributed:
    """Who wrote what each read saw; ``given`` says it of reads that are unclear: of each operation a writer, or -1.

    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 3]),
    ...     np.array([True, False, False]), np.array([0, 0, 0]), np.array([7, 7, 8]), np.array([1, 2, 3]),
    ... )
    >>> seen = attributed(history)
    >>> seen.writer.tolist(), seen.flaws
    ([0], (transaction 2 (session t, line 3) read x = 8, which nobody wrote,))
    """
    key = history.key.astype(np.int64)
    cells = LeftCells(history)
    owner, external, last = cells.owner, cells.external, cells.last
    low, many = cells.writers(external)
    writer = np.where(many == 1, cells.by[np.minimum(low, len(cells.by) - 1)], -1)
    writer[writer == owner[external]] = -1
    several = np.flatnonzero(many > 1)
    if len(several):
        first, second = cells.by[low[several]], cells.by[low[several] + 1]
        own = _among(cells, external[several])
        others = many[several] - own
        other = np.where(first == owner[external[several]], second, first)
        writer[several] = np.where(others == 1, other, -1)
        several = several[others > 1]
    if given is not None:
        said = given[external[several]]
        writer[several] = said
        several = several[said < 0]

    counts = _counting(history, owner[external], writer)
    there = counts[owner[external]]
    lost = _lost(history, cells.before)
    flaws = [
        Flaw(history, "lost-own-write", r, int(cells.before[r])) for r in lost if counts[owner[r]]
    ]
    unclear = np.zeros(len(external), bool)
    unclear[several] = True
    unexplained = external[there & (writer < 0) & ~unclear].tolist()
    flaws += _unexplained(history, owner, cells.cell, unexplained)
    good = np.flatnonzero(there & (writer >= 0))
    last = last[counts[owner[last]]]
    last = last[np.lexsort((owner[last], key[last]))]
    return Attributed(
        history,
        tuple(sorted(flaws, key=lambda flaw: flaw.read)),
        external[there & unclear],
        counts,
        owner,
        external[good],
        owner[external[good]],
        key[external[good]],
        writer[good],
        key[last],
        owner[last],
    )


def _among(cells: LeftCells, reads: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of each read whether its reader is among those who left what it saw."""
    size = int(cells.by.max()) + 1
    wanted = cells.cell[reads] * size + cells.owner[reads]
    return np.isin(wanted, cells.left * size + cells.by)


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
