"""Reads whose value several wrote, each with the transactions that may have been the one: wr is unknown there.

A transaction whose end nobody saw may be such a writer, and counts if it is the one; its own reads must then have
writers, too. So they are here as well, and it is out of the question if one of them can have none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.read_from import LeftCells, attributed
from isolitmus.checker.blackbox.writers import ranges
from isolitmus.model.blackbox_history import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.read_from import Attributed

__all__ = ["Undecided", "undecided"]


@dataclass(frozen=True, slots=True, eq=False)
class Undecided:
    """Reads with their candidates, as columns."""

    seen: Attributed
    """What is decided."""
    given: NDArray[np.int64]
    """Of each operation the writer that was the only candidate left, or -1."""
    possible: NDArray[np.bool_]
    """Of each transaction, whether it counts only if it is the writer of a read that does; ``initial`` is the last."""
    read: NDArray[np.int64]
    """The reads, by operation: of transactions that count, and all external ones of possible ones."""
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

    def only(self, keep: NDArray[np.bool_]) -> Undecided:
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

    def settled(self) -> Undecided:
        """The same once each read that has one candidate has it."""
        one = self.needed() & (np.bincount(self.of, minlength=len(self.read)) == 1)
        rows = one[self.of]
        if not rows.any():
            return self
        given = self.given.copy()
        given[self.read[self.of[rows]]] = self.writer[rows]
        seen = attributed(self.seen.history, given)
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
        """Of each transaction the literal that it counts, 0 where that is no question; candidates have theirs from 1."""
        literal = np.cumsum(self.possible) + len(self.writer)
        return np.where(self.possible, literal, 0)

    def clauses(self) -> list[list[int]]:
        """What a choice of candidates must have: a read of what counts has one, and that one counts."""
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
        """Of each read the latest candidate that counts and ended before the reader began, if there is one: reads begin,
        and candidates end, at these places.
        """
        before = np.flatnonzero((end < begin[self.of]) & ~self.possible[self.writer])
        best = before[np.lexsort((end[before], self.of[before]))]
        last = np.ones(len(best), bool)
        last[:-1] = self.of[best][1:] != self.of[best][:-1]
        return best[last]

    def chosen(self, rows: NDArray[np.int64]) -> Attributed:
        """Who wrote what each read saw if these candidates did, or of several for a read the first of them."""
        of, one = np.unique(self.of[rows], return_index=True)
        given = self.given.copy()
        given[self.read[of]] = self.writer[rows[one]]
        return attributed(self.seen.history, given)


def undecided(seen: Attributed) -> Undecided:
    """The reads of a history that are unclear, with all who may have written what they saw.

    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t", "u"), np.array([0, 1, 2]), np.array([0, 2, 0]), np.arange(4),
    ...     np.array([True, True, False]), np.zeros(3, int), np.array([7, 7, 7]), np.arange(1, 4),
    ... )
    >>> found = undecided(attributed(history))
    >>> found.read.tolist(), found.writer.tolist(), found.possible.tolist()
    ([2], [0, 1], [False, True, False, False])
    """
    history, cells = seen.history, LeftCells(seen.history)
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
    found = Undecided(
        seen,
        np.full(len(history.key), -1),
        possible,
        np.concatenate([none, *reads]),
        np.repeat(np.arange(sum(map(len, reads))), np.concatenate([none, *counts])),
        np.concatenate([none, *writers]),
        cells.last[possible[cells.owner[cells.last]]],
    )
    return found.only(np.ones(len(found.writer), bool)).settled()


def _reached(open_: Undecided) -> Undecided:
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
