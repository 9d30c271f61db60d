"""Which of two writers of a key is first, as far as that follows from what leads to each event.

Of each chain one writer says it: what comes before an event is in each chain a beginning of it, and what comes
after is the rest of it. So a round takes as long as there are reads and writes, times chains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.recorded.stepping import Arrows, concatenated
from isolitmus.checker.recorded.writers import Writers, ranges, span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.recorded.events import Events
    from isolitmus.checker.recorded.observing import Attributed

__all__ = ["Following"]


class Following:
    """What follows, at a level, of a history."""

    def __init__(self, seen: Attributed, events: Events) -> None:
        self.seen, self.events, self.writers = seen, events, Writers(seen)
        self.chain = seen.chains()
        size = seen.initial + 1
        self.version, of = np.unique(seen.key * size + seen.writer, return_inverse=True)
        """Each version that was read: its key times the number of transactions, plus its writer."""
        one, read = np.unique(of * size + seen.reader, return_index=True)
        self.reads: NDArray[np.int64] = read
        """One read of each reader of a version, version by version."""
        self.first, self.many = span(one // size, np.arange(len(self.version)))
        """Where those of each version begin, and how many they are."""
        self.key, self.writer = self.version // size, self.version % size
        self.read_slots = self.writers.slots(seen.key[self.reads])
        self.version_slots = self.writers.slots(self.key)
        self.write_slots = self.writers.slots(seen.written_key)

    def edges(self, clock: NDArray[np.int32]) -> Arrows:
        """Orders of versions, and who missed one; some of it is known already."""
        parts = [self._seen(clock), self._missed(clock)]
        if self.events.level == "snapshot-isolation":
            parts.append(self._in_turn(clock))
        return concatenated(parts)

    def writers_by_key(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys and who wrote them, in this order; who was before all among them where it was read."""
        seen = self.seen
        unborn = self.key[self.writer == seen.initial]
        key = np.append(seen.written_key, unborn)
        writer = np.append(seen.written_by, np.full_like(unborn, seen.initial))
        order = np.lexsort((writer, key))
        return key[order], writer[order]

    def _seen(self, clock: NDArray[np.int32]) -> Arrows:
        """Who wrote the key and ended before a reader began comes before whom it read from."""
        row, slot = self.read_slots
        read = self.reads[row]
        reader, read_from = self.seen.reader[read], self.seen.writer[read]
        latest = clock[self.events.begin(reader), self.writers.chain[slot]].astype(np.int64)
        ended = latest - (latest == reader) if self.events.each == 1 else (latest - 1) // 2
        writer = self.writers.latest(slot, ended)
        found = (writer >= 0) & (writer != read_from)
        return Arrows.of("ww", writer[found], read_from[found])

    def _missed(self, clock: NDArray[np.int32]) -> Arrows:
        """Who read a version began before any version that comes after it was there."""
        row, slot = self.version_slots
        writer = self.writer[row]
        chain, after = self.chain[writer], self.events.after(writer)
        later = self.writers.earliest(
            slot,
            lambda other: (clock[self.events.end(other), chain] >= after) & (other != writer),
        )
        found = later >= 0
        row, later = row[found], later[found]
        many = self.many[row]
        read = self.reads[ranges(self.first[row], many)]
        later = np.repeat(later, many)
        other = self.seen.reader[read] != later
        read, later = read[other], later[other]
        return Arrows.of("rw", self.seen.reader[read], later, self.seen.read[read])

    def _in_turn(self, clock: NDArray[np.int32]) -> Arrows:
        """Who wrote the key and began before another writer ended comes before it."""
        row, slot = self.write_slots
        writer = self.seen.written_by[row]
        began = clock[self.events.end(writer), self.writers.chain[slot]].astype(np.int64) // 2
        earlier = self.writers.latest(slot, began - (began == writer))
        found = earlier >= 0
        return Arrows.of("ww", earlier[found], writer[found])
