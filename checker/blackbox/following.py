"""Which of two writers of a key is first, as far as that follows from what leads to each event.

Of each chain one writer says it: what comes before an event is in each chain a beginning of it. So a round takes as
long as there are reads and writes whose events have something new before them, times chains; it goes in portions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.precedence import Arrows
from isolitmus.checker.blackbox.writers import Writers, ranges, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.events import Events
    from isolitmus.checker.blackbox.read_from import Attributed

__all__ = ["Following"]


class Following:
    """What follows, at a level, of a history."""

    def __init__(self, seen: Attributed, events: Events) -> None:
        self.seen, self.events, self.chain = seen, events, seen.chains()
        size = seen.initial + 1
        self.version, of = np.unique(seen.key * size + seen.writer, return_inverse=True)
        """Each version that was read: its key times the number of transactions, plus its writer."""
        one, read = np.unique(of * size + seen.reader, return_index=True)
        self.reads: NDArray[np.int64] = read
        """One read of each reader of a version, version by version."""
        self.first, self.many = span(one // size, np.arange(len(self.version)))
        """Where those of each version begin, and how many they are."""
        self.key, self.writer = self.version // size, self.version % size
        self.writers = Writers(seen.written_key, seen.written_by, self.chain)
        """Of all versions."""
        self.read_from = Writers(self.key, self.writer, self.chain)
        """Of those that were read."""
        order = np.lexsort((seen.written_by, self.chain[seen.written_by], seen.written_key))
        key, writer = seen.written_key[order], seen.written_by[order]
        same = (key[1:] == key[:-1]) & (self.chain[writer[1:]] == self.chain[writer[:-1]])
        self.earlier = np.full(len(order), -1)
        """Of each version the writer before of its key in its chain, or −1."""
        self.earlier[order[1:][same]] = writer[:-1][same]

    def edges(self, clock: NDArray[np.int32], changed: NDArray[np.bool_]) -> Iterator[Arrows]:
        """Orders of versions, and who missed one, in portions; some of it is known already. Looked at is what leads to
        events that have ``changed``.
        """
        yield from self._seen(clock, changed)
        yield from self._missed(clock, changed)
        if self.events.base == "snapshot-isolation":
            yield from self._in_turn(clock, changed)

    def writers_by_key(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys and who wrote them, in this order; who was before all among them where it was read."""
        seen = self.seen
        unborn = self.key[self.writer == seen.initial]
        key = np.append(seen.written_key, unborn)
        writer = np.append(seen.written_by, np.full_like(unborn, seen.initial))
        order = np.lexsort((writer, key))
        return key[order], writer[order]

    def _seen(self, clock: NDArray[np.int32], changed: NDArray[np.bool_]) -> Iterator[Arrows]:
        """Who wrote the key and ended before a reader began comes before whom it read from."""
        seen = self.seen
        reads = self.reads[changed[self.events.begin(seen.reader[self.reads])]]
        for row, writer in self.ended(clock, seen.key[reads], seen.reader[reads]):
            read_from = seen.writer[reads[row]]
            other = writer != read_from
            yield Arrows.of("ww", writer[other], read_from[other])

    def ended(
        self, clock: NDArray[np.int32], key: NDArray[np.int64], reader: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Of each read, of a key by a reader, and each chain the latest writer of the key that ended before the reader began:
        reads by their places, in order, and writers; in portions.
        """
        for row, slot in self.writers.slots(key):
            latest = clock[self.events.begin(reader[row]), self.writers.chain[slot]].astype(
                np.int64
            )
            own = latest == reader[row]
            ended = latest - own if self.events.each == 1 else (latest - 1) // 2
            writer = self.writers.latest(slot, ended)
            found = writer >= 0
            yield row[found], writer[found]

    def _missed(self, clock: NDArray[np.int32], changed: NDArray[np.bool_]) -> Iterator[Arrows]:
        """Who read a version began before any version that comes after it was there: of each chain the first of these."""
        seen, size = self.seen, self.seen.initial + 1
        (there,) = np.nonzero(changed[self.events.end(seen.written_by)])
        for row, slot in self.read_from.slots(seen.written_key[there]):
            later, earlier = seen.written_by[there[row]], self.earlier[there[row]]
            first = self._before(clock, slot, later)
            known = np.where(earlier < 0, -1, self._before(clock, slot, earlier))
            found = (first >= 0) & (first != known)
            key, first, later = seen.written_key[there[row[found]]], first[found], later[found]
            version = np.searchsorted(self.version, key * size + first)
            many = self.many[version]
            read = self.reads[ranges(self.first[version], many)]
            later = np.repeat(later, many)
            other = seen.reader[read] != later
            read, later = read[other], later[other]
            yield Arrows.of("rw", seen.reader[read], later, seen.read[read])

    def _before(
        self, clock: NDArray[np.int32], slot: NDArray[np.int64], writer: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Of each slot of versions that were read the latest one that comes before a writer's; −1: there is none."""
        each = self.events.each
        after = clock[self.events.end(writer), self.read_from.chain[slot]].astype(np.int64)
        number = (after - (self.events.level == "prefix-consistency")) // each
        return self.read_from.latest(slot, number - (number == writer))

    def _in_turn(self, clock: NDArray[np.int32], changed: NDArray[np.bool_]) -> Iterator[Arrows]:
        """Who wrote the key and began before another writer ended comes before it."""
        seen = self.seen
        (there,) = np.nonzero(changed[self.events.end(seen.written_by)])
        for row, slot in self.writers.slots(seen.written_key[there]):
            writer = seen.written_by[there[row]]
            began = clock[self.events.end(writer), self.writers.chain[slot]].astype(np.int64) // 2
            earlier = self.writers.latest(slot, began - (began == writer))
            found = earlier >= 0
            yield Arrows.of("ww", earlier[found], writer[found])
