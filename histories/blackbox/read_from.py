"""Read-from relation (wr) of recorded registers: writers by value, ambiguous reads, writers by key.

A read with an earlier write of its own transaction to the key is internal: it returns that write,
or is a flaw. Any other read is external. Its value names the transaction that wrote it last to the
key, if exactly one did; writes of aborted transactions never count. A transaction of unknown
outcome is assumed committed if a transaction that counts read from it, else aborted: at each of
these levels a transaction that nobody reads from can be left out.

If several transactions wrote the value, the read is ``unclear``, and `AmbiguousReads` has its
candidates. A candidate of unknown outcome counts if it is chosen. Its own reads must then have
writers, too, so they are included; it is excluded if one of them can have none.

`WriterIndex` finds, for a key and a chain of transactions, the latest writer up to a bound, or the
first one from which a monotone predicate holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.blackbox.columnar_graph import begins_run, stable_order
from isolitmus.histories.blackbox.precedence import EdgeColumns, operation_name
from isolitmus.histories.readers.blackbox_history import ABORTED, COMMITTED, INITIAL, UNKNOWN
from isolitmus.model.display import ReadableRepr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.histories.readers.blackbox_history import ListHistory, RegisterHistory

WORDS = {
    "thin-air-read": "{read}, which no transaction wrote",
    "aborted-read": "{read}, which an aborted transaction wrote: {write}",
    "intermediate-read": "{read}, which its writer overwrote: {write}",
    "future-read": "{read} before its own write: {write}",
    "lost-own-write": "{read} after its own write: {write}",
}


@dataclass(frozen=True, slots=True)
class Flaw(ReadableRepr):
    """Read that no order of the transactions explains, and the write that shows it, if there is
    one.

    ``kind`` is a key of WORDS; ``read`` and ``write`` are operation indices.
    """

    history: RegisterHistory
    kind: str
    read: int
    write: int | None

    def __repr__(self) -> str:
        return self.said()

    def said(self, numbers: Sequence[int] | None = None) -> str:
        """Return the flaw as text; ``numbers`` maps transactions of a part to their numbers in the
        whole.
        """
        write = "" if self.write is None else operation_name(self.history, self.write, numbers)
        read = operation_name(self.history, self.read, numbers)
        return WORDS[self.kind].format(read=read, write=write)


def _nothing() -> EdgeColumns:
    return EdgeColumns.of("ww", *[np.zeros(0, np.int64)] * 2)


@dataclass(frozen=True, slots=True, eq=False)
class AttributedReads:
    """Reads with their writers, and last writes, of the transactions that count, as columns.

    Transactions have the numbers of the history. One more, ``initial``, precedes all of them and
    wrote INITIAL to every key.
    """

    history: RegisterHistory
    flaws: tuple[Flaw, ...]
    """Flaws of transactions that count, in the order of operations."""
    unclear: NDArray[np.int64]
    """Shape (n_unclear,): operation indices of external reads whose value several transactions
    wrote.
    """
    counts: NDArray[np.bool_]
    """Shape (n_transactions,): whether the transaction counts as committed."""
    owner: NDArray[np.int64]
    """Shape (n_operations,): transaction of each operation."""
    read: NDArray[np.int64]
    """Shape (n_reads,): operation indices of the external reads with a known writer."""
    reader: NDArray[np.int64]
    """Shape (n_reads,): transaction of each of these reads."""
    key: NDArray[np.int64]
    """Shape (n_reads,): key of each of these reads."""
    writer: NDArray[np.int64]
    """Shape (n_reads,): transaction that each of these reads read from."""
    written_key: NDArray[np.int64]
    """Shape (n_last_writes,): key of each last write, sorted by key, then by transaction."""
    written_by: NDArray[np.int64]
    """Shape (n_last_writes,): transaction of each last write."""
    observed: EdgeColumns = field(default_factory=_nothing)
    """Version order that lists show, each edge with the read that shows it; empty for registers."""
    lists: ListHistory | None = None
    """History with whole lists, if it is a history of lists."""
    ambiguous: str = ""
    """Text about a list that shows an element which several transactions appended; empty if there
    is none.
    """

    @property
    def initial(self) -> int:
        """Number of the initial transaction."""
        return len(self.counts)

    def sessions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return session-order edges: each counting transaction to the next, ``initial`` to the
        first ones.

        Returns
        -------
        source, target : ndarray of int64, shape (n_counting,)
            Transactions.
        """
        there = np.flatnonzero(self.counts)
        session = self.history.session[there]
        first = np.ones(len(there), bool)
        first[1:] = session[1:] != session[:-1]
        before = np.roll(there, 1)
        before[first] = self.initial
        return before, there

    def chains(self) -> NDArray[np.int64]:
        """Return the chain of each transaction, shape (n_transactions + 1,): its session, or one
        for ``initial``.
        """
        return np.append(self.history.session, len(self.history.sessions)).astype(np.int64)


class LastWrites:
    """Last writes per transaction and key, of transactions that may have committed.

    A cell is the code of a pair (key, value).
    """

    def __init__(self, history: RegisterHistory) -> None:
        keys, size = len(history.keys), len(history.session)
        self.owner: NDArray[np.int64] = np.repeat(np.arange(size), np.diff(history.first))
        """Shape (n_operations,): transaction of each operation."""
        self.before, self.last = last_own_writes(self.owner * keys + history.key, history.is_write)
        """``before``, shape (n_operations,): previous write of the same transaction to the key, or
        -1. ``last``: operation indices of the last writes.
        """
        cell = value_codes(np.append(history.value, INITIAL), keys)
        cell *= keys
        cell[:-1] += history.key
        self.cell: NDArray[np.int64] = cell[:-1]
        """Shape (n_operations,): cell of each operation."""
        self.external: NDArray[np.int64] = np.flatnonzero(~history.is_write & (self.before < 0))
        """Operation indices of the external reads: those without an own write before them."""
        final = self.last[history.status[self.owner[self.last]] != ABORTED]
        left = np.append(self.cell[final], cell[-1] + np.arange(keys))
        by = np.append(self.owner[final], np.full(keys, size))
        sort = stable_order(left)
        self.left, self.by = left[sort], by[sort]
        """Sorted cells of the last writes, and the transaction of each."""

    def writers(self, reads: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the writers of each read begin in ``by``, and how many there are.

        Parameters
        ----------
        reads : ndarray of int64, shape (n_reads,)
            Operation indices.

        Returns
        -------
        low, many : ndarray of int64, shape (n_reads,)
            The writers of read i are ``by[low[i] : low[i] + many[i]]``; its reader may be among
            them.
        """
        cell = self.cell[reads]
        order = stable_order(cell)  # a search for ascending numbers stays in the cache
        low, many = np.empty_like(order), np.empty_like(order)
        low[order], many[order] = span(self.left, cell[order])
        return low, many


def value_codes(values: NDArray[np.int64], keys: int) -> NDArray[np.int64]:
    """Return numbers from 0 for values from -1, in their order, so that each times ``keys`` fits.

    These are the values plus one, or else their ranks.
    """
    if int(values.max(initial=0)) + 2 < np.iinfo(np.int64).max // max(keys, 1):
        return values + 1
    return np.unique(values, return_inverse=True)[1]


def attribute_reads(
    history: RegisterHistory, given: NDArray[np.int64] | None = None
) -> AttributedReads:
    """Return the writer of each read, found by its value.

    Parameters
    ----------
    history : RegisterHistory
        Recorded history.
    given : ndarray of int64, shape (n_operations,), optional
        Writer assumed for each unclear read; -1 to leave it unclear.

    Returns
    -------
    AttributedReads
        Reads with a known writer, flaws, and unclear reads.

    Examples
    --------
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 3]),
    ...     np.array([True, False, False]), np.array([0, 0, 0]), np.array([7, 7, 8]),
    ...     np.array([1, 2, 3]),
    ... )
    >>> seen = attribute_reads(history)
    >>> seen.writer.tolist(), seen.flaws
    ([0], (transaction 2 (session t, line 3) read x = 8, which no transaction wrote,))
    """
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
    last = last[stable_order(history.key[last])]
    return AttributedReads(
        history,
        tuple(sorted(flaws, key=lambda flaw: flaw.read)),
        external[there & unclear],
        counts,
        owner,
        external[good],
        owner[external[good]],
        history.key[external[good]].astype(np.int64),
        writer[good],
        history.key[last].astype(np.int64),
        owner[last],
    )


def _among(cells: LastWrites, reads: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return, for each read, whether its own transaction is a last writer of its cell."""
    size = int(cells.by.max()) + 1
    wanted = cells.cell[reads] * size + cells.owner[reads]
    return is_among(wanted, cells.left * size + cells.by)


def last_own_writes(
    group: NDArray[np.int64], is_write: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the previous write of its group for each operation, and the last write of each group.

    Parameters
    ----------
    group : ndarray of int64, shape (n_operations,)
        Code of the transaction and the key of each operation.
    is_write : ndarray of bool, shape (n_operations,)
        Whether the operation is a write.

    Returns
    -------
    before : ndarray of int32, shape (n_operations,)
        Operation index of the last earlier write of the group; -1 if there is none.
    last : ndarray of int64, shape (n_groups_with_a_write,)
        Operation indices of the last writes, in the order of groups.
    """
    order = stable_order(group)
    begins = begins_run(group[order])
    here = np.arange(len(order), dtype=np.int32)
    latest = np.maximum.accumulate(np.where(is_write[order], here, -1))
    start = np.maximum.accumulate(np.where(begins, here, 0))
    earlier = np.roll(latest, 1)
    earlier[begins] = -1
    before = np.full(len(order), -1, np.int32)
    before[order] = np.where(earlier >= start, order[earlier], -1)
    ends = np.roll(begins, -1)
    return before, order[latest[ends & (latest >= start)]]


def _counting(
    history: RegisterHistory, reader: NDArray[np.int64], writer: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return the transactions that count: committed, or unknown and read by one that counts.

    Result: ndarray of bool, one per transaction. ``reader`` and ``writer`` have one entry per
    external read; a negative writer is none.
    """
    counts: NDArray[np.bool_] = history.status == COMMITTED
    unknown = np.append(history.status == UNKNOWN, False)
    while True:
        read = writer[counts[reader] & (writer >= 0)]
        more = read[unknown[read]]
        if not len(more):
            return counts
        counts[more] = True
        unknown[more] = False


def _lost(history: RegisterHistory, before: NDArray[np.int32]) -> list[int]:
    internal = np.flatnonzero(~history.is_write & (before >= 0))
    lost: list[int] = internal[history.value[internal] != history.value[before[internal]]].tolist()
    return lost


def _unexplained(
    history: RegisterHistory,
    owner: NDArray[np.int64],
    cell: NDArray[np.int64],
    reads: list[int],
) -> list[Flaw]:
    """Return a flaw for each read whose value no counting transaction wrote last."""
    wanted = {int(cell[read]) for read in reads}
    writes: dict[int, list[int]] = {}
    if wanted:
        for write in np.flatnonzero(history.is_write & np.isin(cell, [*wanted])).tolist():
            writes.setdefault(int(cell[write]), []).append(write)
    return [_flaw(history, owner, read, writes.get(int(cell[read]), [])) for read in reads]


def _flaw(history: RegisterHistory, owner: NDArray[np.int64], read: int, writes: list[int]) -> Flaw:
    """Return the flaw of a read: future, aborted, intermediate or thin-air."""
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
"""Number of items, about, that are processed together."""


class WriterIndex:
    """Index of the writers of each key, by chain. A slot is a key and a chain in which it is
    written.

    Parameters
    ----------
    key, writer : ndarray of int64, shape (n_writes,)
        Key and transaction of each write.
    chain : ndarray of int64, shape (n_transactions + 1,)
        Chain of each transaction, the initial one included.
    """

    def __init__(
        self, key: NDArray[np.int64], writer: NDArray[np.int64], chain: NDArray[np.int64]
    ) -> None:
        width = int(chain.max()) + 1
        slot = key * width + chain[writer]
        order = stable_order(writer)
        order = order[stable_order(slot[order])]
        self.size = len(chain)
        self.row: NDArray[np.int64] = order
        """Shape (n_writes,): indices into the given columns, by slot, then by writer."""
        self.writer: NDArray[np.int64] = writer[order]
        """Shape (n_writes,): writers in the order of ``row``."""
        slot = slot[order]
        self.start = np.flatnonzero(begins_run(slot))
        self.many = np.diff(self.start, append=len(slot))
        kinds = slot[self.start]
        self._slots, self._width = kinds, width
        self.key: NDArray[np.int64] = kinds // width
        """Shape (n_slots,): key of each slot, ascending."""
        self.chain: NDArray[np.int64] = kinds % width
        """Shape (n_slots,): chain of each slot."""
        slots = np.repeat(np.arange(len(kinds)), self.many)
        # Sorted codes of (slot, writer): one binary search finds a bound within a slot.
        self._place = slots * self.size + self.writer

    def slots(
        self, key: NDArray[np.int64], most: int = PORTION
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield each key with each of its slots, in portions.

        Parameters
        ----------
        key : ndarray of int64, shape (n_keys,)
            Keys to look up.
        most : int
            Number of pairs of a key and a slot in a portion, about.

        Yields
        ------
        row, slot : ndarray of int64
            Index into ``key``, and slot; of the same shape.
        """
        low, many = span(self.key, key)
        for rows in portions(many, most):
            yield np.repeat(rows, many[rows]), ranges(low[rows], many[rows])

    def slots_of(
        self, key: NDArray[np.int64], chain: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the slot of each pair of a key and a chain that has one.

        Returns
        -------
        row, slot : ndarray of int64
            Index into ``key`` and ``chain``, and slot; of the same shape.
        """
        wanted = key * self._width + chain
        at = np.minimum(np.searchsorted(self._slots, wanted), max(len(self._slots) - 1, 0))
        row = np.flatnonzero(self._slots[at] == wanted) if len(self._slots) else at[:0]
        return row, at[row]

    def up_to(self, slot: NDArray[np.int64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, per slot, the end in ``writer`` of the writers up to ``bound``.

        ``slot`` and ``bound`` have the same shape, and so has the result.
        """
        at = np.searchsorted(self._place, slot * self.size + np.maximum(bound, 0), "right")
        return np.where(bound < 0, self.start[slot], at)

    def latest(self, slot: NDArray[np.int64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, per slot, the latest writer up to ``bound``; -1 if there is none."""
        end = self.up_to(slot, bound)
        return np.where(end > self.start[slot], self.writer[end - 1], -1)

    def since(
        self,
        slot: NDArray[np.int64],
        low: NDArray[np.int64],
        holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    ) -> NDArray[np.int64]:
        """Return the first position in ``writer``, per slot, from which a monotone predicate holds.

        Binary search, of all slots at once.

        Parameters
        ----------
        slot : ndarray of int64, shape (n,)
            Slots.
        low : ndarray of int64, shape (n,)
            Position in ``writer`` from which to search.
        holds : callable
            Maps writers, one per slot in the given order, to an ndarray of bool. If it holds for a
            writer of a slot, it must hold for all later ones.

        Returns
        -------
        ndarray of int64, shape (n,)
            Position in ``writer``; the end of the slot if the predicate never holds.
        """
        high = self.start[slot] + self.many[slot]
        while (open_ := low < high).any():
            middle = (low + high) // 2
            good = holds(self.writer[np.minimum(middle, len(self.writer) - 1)])
            high = np.where(open_ & good, middle, high)
            low = np.where(open_ & ~good, middle + 1, low)
        return low


def portions(many: NDArray[np.int64], most: int = PORTION) -> list[NDArray[np.int64]]:
    """Return the row numbers in portions whose weights ``many`` sum to about ``most``."""
    number = np.cumsum(many)
    number //= most
    cuts = np.flatnonzero(number[1:] != number[:-1]) + 1
    return np.split(np.arange(len(many)), cuts)


def ranges(start: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the concatenated ranges of ``count`` consecutive numbers from each ``start``.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    offset = np.cumsum(count) - count
    return np.arange(int(count.sum())) - np.repeat(offset - start, count)


def span(
    column: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each wanted number begins in a sorted column, and how often it occurs."""
    low = np.searchsorted(column, wanted, "left")
    if len(wanted) < len(column) // 8:
        return low, np.searchsorted(column, wanted, "right") - low
    count = np.zeros(len(column) + 1, np.int64)
    start = np.flatnonzero(begins_run(column))
    count[start] = np.diff(start, append=len(column))
    there = np.append(column, -1)[low] == wanted
    return low, np.where(there, count[low], 0)


def is_among(numbers: NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each number, from 0, is among ``some``: `np.isin`, by faster sorts."""
    order = stable_order(numbers)
    found = np.empty(len(numbers), bool)
    found[order] = span(np.sort(some), numbers[order])[1] > 0
    return found


@dataclass(frozen=True, slots=True, eq=False)
class AmbiguousReads:
    """Reads with several possible writers, and their candidates, as columns."""

    seen: AttributedReads
    """Reads whose writer is known."""
    given: NDArray[np.int64]
    """Shape (n_operations,): writer that was the only candidate left, or -1."""
    possible: NDArray[np.bool_]
    """Shape (n_transactions + 1,): whether the transaction counts only if a read that counts reads
    from it; ``initial`` is the last.
    """
    read: NDArray[np.int64]
    """Shape (n_reads,): operation indices of the undecided reads of counting transactions, and of
    all external reads of possible ones.
    """
    of: NDArray[np.int64]
    """Shape (n_candidates,): index into ``read``, ascending."""
    writer: NDArray[np.int64]
    """Shape (n_candidates,): transaction of the candidate."""
    left_by: NDArray[np.int64]
    """Operation indices of the last writes of possible transactions."""

    @property
    def reader(self) -> NDArray[np.int64]:
        """Shape (n_reads,): transaction of each read."""
        return self.seen.owner[self.read]

    @property
    def key(self) -> NDArray[np.int64]:
        """Shape (n_reads,): key of each read."""
        return self.seen.history.key[self.read].astype(np.int64)

    def needed(self) -> NDArray[np.bool_]:
        """Return, for each read, whether its reader counts for every choice of writers."""
        return self.seen.counts[self.reader]

    def lost(self) -> int | None:
        """Return a read that needs a writer and has no candidate, by operation; None if there is
        none.
        """
        without = self.needed() & (np.bincount(self.of, minlength=len(self.read)) == 0)
        return int(self.read[without][0]) if without.any() else None

    def only(self, keep: NDArray[np.bool_]) -> AmbiguousReads:
        """Return the candidates that the mask ``keep`` selects.

        Drops, repeatedly, possible transactions with a read that has no candidate left.
        """
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
        """Return what is left once each needed read with one candidate has that one."""
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
        """Return, for each transaction, the literal that it counts; 0 if it certainly does, or does
        not.

        Candidates have the literals from 1 on, possible transactions those after them.
        """
        literal = np.cumsum(self.possible) + len(self.writer)
        return np.where(self.possible, literal, 0)

    def clauses(self) -> list[list[int]]:
        """Return the clauses of a choice: each read of a counting transaction has a writer that
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
        """Return, for each read, the latest candidate that counts and ended before the reader
        began, if any.

        Parameters
        ----------
        begin : ndarray of int64, shape (n_reads,)
            Position in the event order at which each reader begins.
        end : ndarray of int64, shape (n_candidates,)
            Position at which each candidate ends.

        Returns
        -------
        ndarray of int64
            Candidate indices, at most one per read.
        """
        before = np.flatnonzero((end < begin[self.of]) & ~self.possible[self.writer])
        best = before[np.lexsort((end[before], self.of[before]))]
        last = np.ones(len(best), bool)
        last[:-1] = self.of[best][1:] != self.of[best][:-1]
        return best[last]

    def chosen(self, rows: NDArray[np.int64]) -> AttributedReads:
        """Return the reads with these candidates as writers; of several candidates of a read, the
        first.

        Parameters
        ----------
        rows : ndarray of int64
            Candidate indices.
        """
        of, one = np.unique(self.of[rows], return_index=True)
        given = self.given.copy()
        given[self.read[of]] = self.writer[rows[one]]
        return attribute_reads(self.seen.history, given)


def find_ambiguous_reads(seen: AttributedReads) -> AmbiguousReads:
    """Return the unclear reads of a history, with all candidates for their writers.

    Reads that can have only one writer are decided in the result.

    Examples
    --------
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
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
    """Return `open_` without the reads and writes of transactions that are no longer possible."""
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
