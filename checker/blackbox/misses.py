"""Edges between events that are there if something is so: who was read from, and which of two versions came first.

Each has a literal: of a candidate (their numbers from 1), of a possible transaction that counts, of an order of two
writers, or of two of these together. Of two writers that count one variable says who is first; where one of
them may not count there are two, of which one is true if both count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.clocks import reaches
from isolitmus.checker.blackbox.writers import portions, ranges, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.undecided import Undecided
    from isolitmus.checker.blackbox.version_order import Choosing
    from isolitmus.model.budget import Budget

__all__ = ["Misses"]


class Misses:
    """The edges of a history with undecided reads that are not known, and the clauses of their literals."""

    def __init__(self, open_: Undecided, choosing: Choosing, budget: Budget) -> None:
        self.open, self.choosing, self.budget = open_, choosing, budget
        self.size = choosing.seen.initial + 1
        self.variables = len(open_.writer) + int(open_.possible.sum())
        self.counts = open_.counting()
        self.clauses = open_.clauses()
        self._columns()
        self._orders()
        parts = map(np.concatenate, zip(*self._edges(), strict=True))
        self.tails, self.heads, self.literal = self._joined(*parts)
        """From which event each edge leads, and to which, and its literal."""

    def guess(self, place: NDArray[np.int64]) -> list[int]:
        """The literals of orders that events at these places have."""
        end = self.choosing.events.end
        first, second = self.pair // self.size, self.pair % self.size
        guess = place[end(first)] < place[end(second)]
        guess &= (self.counts[first] == 0) & (self.counts[second] == 0)
        found: list[int] = np.unique(self.order[guess]).tolist()
        return found

    def _columns(self) -> None:
        """Who wrote each key, and who may have read each version, with the literal that says so, or 0."""
        open_, seen, read = self.open, self.choosing.seen, self.choosing.following
        some = read.reads
        self.read_key = np.append(seen.key[some], open_.key[open_.of])
        self.read_from = np.append(seen.writer[some], open_.writer)
        self.read_by = np.append(seen.reader[some], open_.reader[open_.of])
        self.read_if = np.append(np.zeros(len(some), np.int64), np.arange(len(open_.of)) + 1)
        unborn = np.unique(self.read_key[self.read_from == seen.initial])
        history = seen.history
        key = [seen.written_key, unborn, history.key[open_.left_by].astype(np.int64)]
        writer = [seen.written_by, np.full_like(unborn, seen.initial), seen.owner[open_.left_by]]
        self.key, self.writer = np.concatenate(key), np.concatenate(writer)
        sort = np.lexsort((self.writer, self.key))
        self.key, self.writer = self.key[sort], self.writer[sort]

    def _leads(self, tails: NDArray[np.int64], heads: NDArray[np.int64]) -> NDArray[np.bool_]:
        return reaches(self.choosing.clock, self.choosing.chain, tails, heads)

    def _orders(self) -> None:
        """The literals of who is first of two writers, where it is not known and matters: by the number of the pair."""
        key, writer, size = self.key, self.writer, self.size
        asked = np.isin(key * size + writer, self.read_key * size + self.read_from)
        here = np.arange(len(key))
        later = np.searchsorted(key, key, "right") - here - 1
        found = [here[:0]]
        for rows in self._batches(later):
            a, b = np.repeat(rows, later[rows]), ranges(rows + 1, later[rows])
            if self.choosing.events.base != "snapshot-isolation":
                some = asked[a] | asked[b]
                a, b = a[some], b[some]
            a, b = writer[a], writer[b]
            open_ = ~self.choosing.knows(a, b) & ~self.choosing.knows(b, a)
            found.append(np.unique(a[open_] * size + b[open_]))
        pair = np.unique(np.concatenate(found))
        first, second = pair // size, pair % size
        sure = (self.counts[first] == 0) & (self.counts[second] == 0)
        one = np.arange(len(pair)) + self.variables + 1
        other = np.where(sure, -one, one + len(pair))
        self.variables += 2 * len(pair)
        for i in np.flatnonzero(~sure).tolist():
            counts = [int(self.counts[first[i]]), int(self.counts[second[i]])]
            self.clauses.append([*(-c for c in counts if c), int(one[i]), int(other[i])])
        self.pair = np.append(pair, second * size + first)
        self.order = np.append(one, other)
        sort = np.argsort(self.pair)
        self.pair, self.order = self.pair[sort], self.order[sort]

    def _edges(self) -> Iterator[tuple[NDArray[np.int64], ...]]:
        events, open_ = self.choosing.events, self.open
        first, second = self.pair // self.size, self.pair % self.size
        yield self._possible(events.end(first), events.after(second), self.order, self.order)
        literal = np.arange(len(open_.of)) + 1
        begin = events.begin(open_.reader)[open_.of]
        yield self._possible(events.end(open_.writer), begin, literal, literal)
        low, many = span(self.key, self.read_key)
        for rows in self._batches(many):
            row, writer = np.repeat(rows, many[rows]), self.writer[ranges(low[rows], many[rows])]
            yield from self._missed(row, writer)

    def _missed(
        self, row: NDArray[np.int64], writer: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], ...]]:
        """Who may have read a version misses what comes after it, of these writers of its key."""
        events, chain = self.choosing.events, self.choosing.following.chain
        reader, version = self.read_by[row], self.read_from[row]
        good = (writer != version) & (writer != reader) & ~self.choosing.knows(writer, version)
        row, writer, reader, version = row[good], writer[good], reader[good], version[good]
        known = self.choosing.knows(version, writer)
        # Of those that are known to come later the first one of each chain says it of the rest, if it counts.
        sure = np.flatnonzero(known & (self.counts[writer] == 0))
        width = int(chain.max()) + 1
        sort = sure[np.argsort(writer[sure], kind="stable")]
        sort = sort[np.unique(row[sort] * width + chain[writer[sort]], return_index=True)[1]]
        for some, literal in (
            (sort, np.zeros(len(sort), np.int64)),
            (
                (maybe := np.flatnonzero(known & (self.counts[writer] > 0))),
                self.counts[writer[maybe]],
            ),
            ((free := np.flatnonzero(~known)), self._order(version[free], writer[free])),
        ):
            yield self._possible(
                events.begin(reader[some]),
                events.end(writer[some]),
                self.read_if[row[some]],
                literal,
            )

    def _order(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.order[np.searchsorted(self.pair, first * self.size + second)]

    def _possible(
        self,
        tails: NDArray[np.int64],
        heads: NDArray[np.int64],
        one: NDArray[np.int64],
        other: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], ...]:
        """Edges that are there if two literals are true, of which 0 always is: those that are not known, and close
        no cycle, by their number.
        """
        new = ~self._leads(tails, heads) & ((one != 0) | (other != 0))
        tails, heads, one, other = tails[new], heads[new], one[new], other[new]
        one, other = np.where(one, one, other), np.where(other, other, one)
        closes = self._leads(heads, tails)
        no = np.unique(np.stack([one[closes], other[closes]], axis=1), axis=0)
        self.clauses += [[-a, -b] if a != b else [-a] for a, b in no.tolist()]
        edge = tails * len(self.choosing.chain) + heads
        return edge[~closes], one[~closes], other[~closes]

    def _joined(
        self, edge: NDArray[np.int64], one: NDArray[np.int64], other: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Each edge once: with the literal that it is there for, or a new one that follows from any two it is there for."""
        row = np.unique(np.stack([edge, one, other], axis=1), axis=0)
        edge, at, many = np.unique(row[:, 0], return_index=True, return_counts=True)
        alone = (many == 1) & (row[at, 1] == row[at, 2])
        literal = np.where(alone, row[at, 1], self.variables + np.cumsum(~alone))
        self.variables += int((~alone).sum())
        joint = np.repeat(literal, many)
        follows = np.stack([-row[:, 1], -row[:, 2], joint], axis=1)
        self.clauses += follows[np.repeat(~alone, many)].tolist()
        return edge // len(self.choosing.chain), edge % len(self.choosing.chain), literal

    def _batches(self, many: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Rows, so many at once that not too many of what they stand for are looked at together."""
        for rows in portions(many):
            self.budget.check()
            yield rows
