"""The read-from relation of recorded registers, ambiguous reads, writers by key.

Who wrote what each read saw: wr, from values; and what no order of transactions can put right.

Choices. A read that finds an own write before it is internal: it sees that write, or is a flaw. The
value of any other read names the transaction whose last write of the key it is, where that is one;
an aborted transaction's never counts. Of a transaction whose end nobody saw it is supposed that it
committed if one that counts read from it, else that it aborted: at each of these levels a
transaction that nobody reads from can be left out. Where several wrote the value the read is
``unclear``: ``undecided`` has who may have been it.

Reads whose value several wrote, each with the transactions that may have been the one: wr is
unknown there.

A transaction whose end nobody saw may be such a writer, and counts if it is the one; its own reads
must then have writers, too. So they are here as well, and it is out of the question if one of them
can have none.

Of a key and a chain of transactions, the latest writer up to a bound, or the earliest one that
something holds of.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.precedence import EdgeColumns, operation_name
from isolitmus.model.blackbox_history import ABORTED, COMMITTED, INITIAL, UNKNOWN
from isolitmus.model.display import ReadableRepr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.model.blackbox_history import ListHistory, RegisterHistory

__all__ = [
    "AmbiguousReads",
    "AttributedReads",
    "Flaw",
    "LastWrites",
    "WriterIndex",
    "attribute_reads",
    "find_ambiguous_reads",
    "last_own_writes",
    "portions",
    "ranges",
    "span",
]

WORDS = {
    "thin-air-read": "{read}, which nobody wrote",
    "aborted-read": "{read}, which an aborted transaction wrote: {write}",
    "intermediate-read": "{read}, which its writer overwrote: {write}",
    "future-read": "{read} before its own write: {write}",
    "lost-own-write": "{read} after its own write: {write}",
}


@dataclass(frozen=True, slots=True)
class Flaw(ReadableRepr):
    """A read that no order of the transactions explains, of a kind of WORDS, and the write that
    shows it, if there is one.
    """

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


def _nothing() -> EdgeColumns:
    return EdgeColumns.of("ww", *[np.zeros(0, np.int64)] * 2)


@dataclass(frozen=True, slots=True, eq=False)
class AttributedReads:
    """Reads with their writers, and last writes, of the transactions that count: columns of
    numbers.

    Transactions have the numbers of the history; one more, ``initial``, is before all of them and
    wrote INITIAL to every key.
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
    observed: EdgeColumns = field(default_factory=_nothing)
    """The order of versions as far as lists show it, each pair with the read that does; of
    registers nothing.
    """
    lists: ListHistory | None = None
    """The same history with all that its reads saw, if it is one of lists."""
    ambiguous: str = ""
    """Of lists, a read that shows an element which several appended, in words; empty: there is
    none.
    """

    @property
    def initial(self) -> int:
        """The number of the transaction that was before all."""
        return len(self.counts)

    def sessions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The session order of what counts, each to the next, and from ``initial`` to the first
        ones.
        """
        there = np.flatnonzero(self.counts)
        session = self.history.session[there]
        first = np.ones(len(there), bool)
        first[1:] = session[1:] != session[:-1]
        before = np.roll(there, 1)
        before[first] = self.initial
        return before, there

    def chains(self) -> NDArray[np.int64]:
        """Of each transaction the chain of the session order in which it is; ``initial`` has its
        own.
        """
        return np.append(self.history.session, len(self.history.sessions)).astype(np.int64)


class LastWrites:
    """What transactions that may have committed left of each key; a cell is a key and a value."""

    def __init__(self, history: RegisterHistory) -> None:
        keys, size = len(history.keys), len(history.session)
        key = history.key.astype(np.int64)
        code = np.unique(np.append(history.value, INITIAL), return_inverse=True)[1]
        self.owner: NDArray[np.int64] = np.repeat(np.arange(size), np.diff(history.first))
        """Of each operation, its transaction."""
        self.cell: NDArray[np.int64] = code[:-1] * keys + key
        """Of each operation."""
        self.before, self.last = last_own_writes(self.owner * keys + key, history.is_write)
        """Of each operation the own write of its key before it, or -1; and the last writes, by
        operation.
        """
        self.external: NDArray[np.int64] = np.flatnonzero(~history.is_write & (self.before < 0))
        """The reads that see what another transaction left, by operation."""
        final = self.last[history.status[self.owner[self.last]] != ABORTED]
        left = np.append(self.cell[final], code[-1] * keys + np.arange(keys))
        by = np.append(self.owner[final], np.full(keys, size))
        sort = np.argsort(left, kind="stable")
        self.left, self.by = left[sort], by[sort]
        """Each cell that was left, in order, with who left it."""

    def writers(self, reads: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where in ``by`` the writers of some reads begin, and how many they are; a reader may be
        among them.
        """
        low = np.searchsorted(self.left, self.cell[reads], "left")
        return low, np.searchsorted(self.left, self.cell[reads], "right") - low


def attribute_reads(
    history: RegisterHistory, given: NDArray[np.int64] | None = None
) -> AttributedReads:
    """Who wrote what each read saw; ``given`` says it of reads that are unclear: of each operation
    a writer, or -1.

    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 3]),
    ...     np.array([True, False, False]), np.array([0, 0, 0]), np.array([7, 7, 8]), np.array([1, 2, 3]),
    ... )
    >>> seen = attribute_reads(history)
    >>> seen.writer.tolist(), seen.flaws
    ([0], (transaction 2 (session t, line 3) read x = 8, which nobody wrote,))
    """
    key = history.key.astype(np.int64)
    cells = LastWrites(history)
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
    return AttributedReads(
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


def _among(cells: LastWrites, reads: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of each read whether its reader is among those who left what it saw."""
    size = int(cells.by.max()) + 1
    wanted = cells.cell[reads] * size + cells.owner[reads]
    return np.isin(wanted, cells.left * size + cells.by)


def last_own_writes(
    group: NDArray[np.int64], is_write: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each operation the last write before it of its group (a transaction and a key), or -1; and
    the last write of each group.
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


PORTION = 1_000_000
"""How many slots are looked at together."""


class WriterIndex:
    """Who wrote each key, chain by chain. A slot is a key and a chain in which it is written."""

    def __init__(
        self, key: NDArray[np.int64], writer: NDArray[np.int64], chain: NDArray[np.int64]
    ) -> None:
        width = int(chain.max()) + 1
        slot = key * width + chain[writer]
        order = np.lexsort((writer, slot))
        self.size = len(chain)
        self.row: NDArray[np.int64] = order
        """All that was given, slot by slot, each in the order of its chain."""
        self.writer: NDArray[np.int64] = writer[order]
        """The same as writers."""
        kinds, self.start, self.many = np.unique(slot[order], return_index=True, return_counts=True)
        self.key: NDArray[np.int64] = kinds // width
        """Of each slot."""
        self.chain: NDArray[np.int64] = kinds % width
        """Of each slot."""
        slots = np.repeat(np.arange(len(kinds)), self.many)
        # Sorted codes of (slot, writer): one binary search finds a bound within a slot.
        self._place = slots * self.size + self.writer

    def slots(
        self, key: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Each of some keys with each of its slots: which of the keys, by its place, and the slot;
        in portions.
        """
        low, many = span(self.key, key)
        for rows in portions(many):
            yield np.repeat(rows, many[rows]), ranges(low[rows], many[rows])

    def up_to(self, slot: NDArray[np.int64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where in ``writer`` those of each slot end whose number is at most the bound."""
        at = np.searchsorted(self._place, slot * self.size + np.maximum(bound, 0), "right")
        return np.where(bound < 0, self.start[slot], at)

    def latest(self, slot: NDArray[np.int64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
        """The latest writer of each slot whose number is at most the bound; -1: there is none."""
        end = self.up_to(slot, bound)
        return np.where(end > self.start[slot], self.writer[end - 1], -1)

    def since(
        self,
        slot: NDArray[np.int64],
        low: NDArray[np.int64],
        holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    ) -> NDArray[np.int64]:
        """Where in ``writer`` those of each slot begin that something holds of, as it does of all
        later ones; from ``low`` on. ``holds`` is asked of one writer for each slot that was given,
        in their order.
        """
        high = self.start[slot] + self.many[slot]
        while (open_ := low < high).any():
            middle = (low + high) // 2
            good = holds(self.writer[np.minimum(middle, len(self.writer) - 1)])
            high = np.where(open_ & good, middle, high)
            low = np.where(open_ & ~good, middle + 1, low)
        return low


def portions(many: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows that stand for so many each, one after another, as portions of about PORTION."""
    cuts = np.flatnonzero(np.diff(np.cumsum(many) // PORTION)) + 1
    return np.split(np.arange(len(many)), cuts)


def ranges(start: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """So many numbers from each start, one range after another.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    offset = np.cumsum(count) - count
    return np.arange(int(count.sum())) - np.repeat(offset - start, count)


def span(
    column: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where in a sorted column each number begins, and how often it is there."""
    low = np.searchsorted(column, wanted, "left")
    return low, np.searchsorted(column, wanted, "right") - low


@dataclass(frozen=True, slots=True, eq=False)
class AmbiguousReads:
    """Reads with their candidates, as columns."""

    seen: AttributedReads
    """What is decided."""
    given: NDArray[np.int64]
    """Of each operation the writer that was the only candidate left, or -1."""
    possible: NDArray[np.bool_]
    """Of each transaction, whether it counts only if it is the writer of a read that does;
    ``initial`` is the last.
    """
    read: NDArray[np.int64]
    """The reads, by operation: of transactions that count, and all external ones of possible
    ones.
    """
    of: NDArray[np.int64]
    """Of each candidate its read, by its place in ``read``, in this order."""
    writer: NDArray[np.int64]
    """Of each candidate."""
    left_by: NDArray[np.int64]
    """The last writes of possible transactions, by operation."""

    @property
    def reader(self) -> NDArray[np.int64]:
        """Of each read."""
        return self.seen.owner[self.read]

    @property
    def key(self) -> NDArray[np.int64]:
        """Of each read."""
        return self.seen.history.key[self.read].astype(np.int64)

    def needed(self) -> NDArray[np.bool_]:
        """Of each read whether its reader counts, whoever the writers are."""
        return self.seen.counts[self.reader]

    def lost(self) -> int | None:
        """A read that has to have a writer and has no candidate; None: there is none."""
        without = self.needed() & (np.bincount(self.of, minlength=len(self.read)) == 0)
        return int(self.read[without][0]) if without.any() else None

    def only(self, keep: NDArray[np.bool_]) -> AmbiguousReads:
        """These candidates, but for possible transactions of which a read is left without any."""
        of, writer, possible = self.of[keep], self.writer[keep], self.possible.copy()
        while True:
            without = np.bincount(of, minlength=len(self.read)) == 0
            out = np.zeros_like(possible)
            out[self.reader[without & ~self.needed()]] = True
            possible &= ~out
            keep = ~out[writer]
            if keep.all():
                break
            of, writer = of[keep], writer[keep]
        return _reached(replace(self, possible=possible, of=of, writer=writer))

    def settled(self) -> AmbiguousReads:
        """The same once each read that has one candidate has it."""
        one = self.needed() & (np.bincount(self.of, minlength=len(self.read)) == 1)
        rows = one[self.of]
        if not rows.any():
            return self
        given = self.given.copy()
        given[self.read[self.of[rows]]] = self.writer[rows]
        seen = attribute_reads(self.seen.history, given)
        possible = self.possible & ~np.append(seen.counts, False)
        open_ = ~seen.counts[self.reader] | np.isin(self.read, seen.unclear)
        place = np.cumsum(open_) - 1
        here = open_[self.of]
        left = replace(
            self,
            seen=seen,
            given=given,
            possible=possible,
            read=self.read[open_],
            of=place[self.of[here]],
            writer=self.writer[here],
        )
        return _reached(left).settled()

    def counting(self) -> NDArray[np.int64]:
        """Of each transaction the literal that it counts, 0 where that is no question; candidates
        have theirs from 1.
        """
        literal = np.cumsum(self.possible) + len(self.writer)
        return np.where(self.possible, literal, 0)

    def clauses(self) -> list[list[int]]:
        """What a choice of candidates must have: a read of what counts has one, and that one
        counts.
        """
        every, counting = np.arange(len(self.of)) + 1, self.counting()
        ends = np.searchsorted(self.of, np.arange(len(self.read) + 1)).tolist()
        unless = np.where(self.needed(), 0, counting[self.reader]).tolist()
        clauses = [
            [*([-one] if one else []), *every[ends[place] : ends[place + 1]].tolist()]
            for place, one in enumerate(unless)
        ]
        maybe = np.flatnonzero(self.possible[self.writer])
        clauses += np.stack([-every[maybe], counting[self.writer[maybe]]], axis=1).tolist()
        return clauses

    def latest(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of each read the latest candidate that counts and ended before the reader began, if there
        is one: reads begin, and candidates end, at these places.
        """
        before = np.flatnonzero((end < begin[self.of]) & ~self.possible[self.writer])
        best = before[np.lexsort((end[before], self.of[before]))]
        last = np.ones(len(best), bool)
        last[:-1] = self.of[best][1:] != self.of[best][:-1]
        return best[last]

    def chosen(self, rows: NDArray[np.int64]) -> AttributedReads:
        """Who wrote what each read saw if these candidates did, or of several for a read the first
        of them.
        """
        of, one = np.unique(self.of[rows], return_index=True)
        given = self.given.copy()
        given[self.read[of]] = self.writer[rows[one]]
        return attribute_reads(self.seen.history, given)


def find_ambiguous_reads(seen: AttributedReads) -> AmbiguousReads:
    """The reads of a history that are unclear, with all who may have written what they saw.

    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t", "u"), np.array([0, 1, 2]), np.array([0, 2, 0]), np.arange(4),
    ...     np.array([True, True, False]), np.zeros(3, int), np.array([7, 7, 7]), np.arange(1, 4),
    ... )
    >>> found = find_ambiguous_reads(attribute_reads(history))
    >>> found.read.tolist(), found.writer.tolist(), found.possible.tolist()
    ([2], [0, 1], [False, True, False, False])
    """
    history, cells = seen.history, LastWrites(seen.history)
    unseen = np.append((history.status == UNKNOWN) & ~seen.counts, False)
    internal = np.flatnonzero(~history.is_write & (cells.before >= 0))
    missed = internal[history.value[internal] != history.value[cells.before[internal]]]
    unseen[cells.owner[missed]] = False
    possible = np.zeros_like(unseen)
    reads, writers, counts = [], [], []
    fresh = seen.unclear
    while len(fresh):
        low, many = cells.writers(fresh)
        writer = cells.by[ranges(low, many)]
        of = np.repeat(np.arange(len(fresh)), many)
        good = (writer != cells.owner[fresh][of]) & (
            unseen[writer] | np.append(seen.counts, True)[writer]
        )
        reads.append(fresh)
        writers.append(writer[good])
        counts.append(np.bincount(of[good], minlength=len(fresh)))
        new = np.unique(writer[good])
        new = new[unseen[new] & ~possible[new]]
        possible[new] = True
        fresh = cells.external[np.isin(cells.owner[cells.external], new)]
    none = seen.unclear[:0]
    found = AmbiguousReads(
        seen,
        np.full(len(history.key), -1),
        possible,
        np.concatenate([none, *reads]),
        np.repeat(np.arange(sum(map(len, reads))), np.concatenate([none, *counts])),
        np.concatenate([none, *writers]),
        cells.last[possible[cells.owner[cells.last]]],
    )
    return found.only(np.ones(len(found.writer), bool)).settled()


def _reached(open_: AmbiguousReads) -> AmbiguousReads:
    """Without the reads and writes of transactions that are no longer possible."""
    stays = open_.needed() | open_.possible[open_.reader]
    place = np.cumsum(stays) - 1
    here = stays[open_.of]
    return replace(
        open_,
        read=open_.read[stays],
        of=place[open_.of[here]],
        writer=open_.writer[here],
        left_by=open_.left_by[open_.possible[open_.seen.owner[open_.left_by]]],
    )
