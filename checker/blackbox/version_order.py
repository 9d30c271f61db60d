"""Levels that ask for a version order: of two writers of a key one comes first, and what follows from either.

Which of two writers is first is known where the other way round would close a cycle; what follows is added, until
nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.clocks import add, chained, clocks, reaches, renewed
from isolitmus.checker.blackbox.events import TIMED
from isolitmus.checker.blackbox.following import Following
from isolitmus.checker.blackbox.precedence import Arrows, concatenated
from isolitmus.checker.blackbox.timing import ended_before
from isolitmus.checker.blackbox.writers import Writers, portions, ranges, span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.events import Events
    from isolitmus.checker.blackbox.read_from import Attributed
    from isolitmus.model.budget import Budget

__all__ = ["Alternatives", "Choosing"]


BYTES = 500
"""About as much memory as a pair takes until its order is found."""


@dataclass(slots=True, eq=False)
class Alternatives:
    """Ways to order two writers of a key: the second half has the pairs of the first half turned round.

    Of each option the reads that saw its first version: they miss its second.
    """

    first: NDArray[np.int64]
    """The writer that comes first."""
    second: NDArray[np.int64]
    """The writer that comes second."""
    option: NDArray[np.int64]
    """Of each read its option."""
    reader: NDArray[np.int64]
    """Of each read its transaction."""
    read: NDArray[np.int64]
    """Each read, by operation."""

    def __len__(self) -> int:
        return len(self.first)

    def edges(self) -> tuple[Arrows, NDArray[np.int64]]:
        """What the options say, and the option of each edge."""
        versions = Arrows.of("ww", self.first, self.second)
        misses = Arrows.of("rw", self.reader, self.second[self.option], self.read)
        return concatenated([versions, misses]), np.append(np.arange(len(self)), self.option)


@dataclass(slots=True, eq=False)
class Choosing:
    """What is known of the order of events at a level."""

    seen: Attributed
    """The history."""
    events: Events
    """At which level."""
    stages: list[Arrows] = field(default_factory=list)
    """What is known: at first sessions, reads and observed orders, then what followed from all before, round by round."""
    chain: NDArray[np.int64] = field(init=False)
    """Of each event the chain in which it is."""
    graph: NDArray[np.int32] = field(init=False)
    """What is known, as latest predecessors."""
    clock: NDArray[np.int32] = field(init=False)
    """All that is known to lead to each event, as the last round of ``narrow`` found it."""
    following: Following = field(init=False)
    """What follows from it."""

    def __post_init__(self) -> None:
        seen, events = self.seen, self.events
        every = np.arange(len(seen.counts) + 1)
        within = (
            Arrows.of("within", every, every)
            if events.each > 1
            else Arrows.of("so", *[every[:0]] * 2)
        )
        reads = Arrows.of("wr", seen.writer, seen.reader, seen.read)
        parts = [Arrows.of("so", *seen.sessions()), reads, within, seen.observed]
        if events.level in TIMED:
            parts.append(Arrows.of("rt", *ended_before(seen)))
        self.stages.append(concatenated(parts))
        self.chain = np.repeat(seen.chains(), events.each)
        self.graph = chained(self.chain)
        add(self.graph, self.chain, *events.of(self.stages[0]))
        self.clock = np.full_like(self.graph, -1)
        self.following = Following(seen, events)

    def narrow(self, budget: Budget) -> bool:
        """Add what follows until nothing does; whether there is no cycle yet."""
        size = len(self.chain)
        clock = clocks(self.graph, self.chain, budget)
        while True:
            if clock is None:
                return False
            changed = (clock != self.clock).any(axis=1)
            self.clock = clock
            parts = [self.stages[0].only(np.zeros(0, np.int64))]
            for edges in self.following.edges(clock, changed):
                budget.check()
                source, target = self.events.of(edges)
                new = np.flatnonzero(~reaches(clock, self.chain, source, target))
                pair = source[new] * size + target[new]
                parts.append(edges.only(new[np.unique(pair, return_index=True)[1]]))
            edges = concatenated(parts)
            if not len(edges):
                return True
            source, target = self.events.of(edges)
            self.stages.append(edges)
            add(self.graph, self.chain, source, target)
            touched = np.zeros(size, bool)
            touched[target] = True
            clock = renewed(clock, self.graph, self.chain, touched, budget)

    def open(self, budget: Budget) -> Alternatives:
        """The pairs of writers of a key of which ``clock`` does not say who is first."""
        seen, events, read = self.seen, self.events, self.following
        key, writer = read.writers_by_key()
        every = Writers(key, writer, read.chain)
        version, was_read = span(read.version, key * (seen.initial + 1) + writer)
        ends = np.append(read.first, len(read.reads))
        low, many = ends[version], ends[version + was_read] - ends[version]
        pairs, turns = 0, events.base == "snapshot-isolation"
        firsts, seconds = [version[:0]], [version[:0]]
        for row, slot in every.slots(key):
            begin = every.up_to(slot, self._first(writer[row], every.chain[slot]))
            count = every.since(slot, begin, partial(self.knows, writer[row])) - begin
            for some in portions(count):
                here = np.repeat(row[some], count[some])
                other = every.row[ranges(begin[some], count[some])]
                once = writer[here] < writer[other]
                if not turns:  # of versions that nobody read either order will do
                    once &= (many[here] + many[other]) > 0
                pairs += int(np.count_nonzero(once))
                budget.afford(pairs * BYTES)
                firsts.append(here[once])
                seconds.append(other[once])
        a, b = np.concatenate(firsts), np.concatenate(seconds)
        first, second = np.append(a, b), np.append(b, a)
        option = np.repeat(np.arange(len(first)), many[first])
        at = read.reads[ranges(low[first], many[first])]
        other = seen.reader[at] != writer[second[option]]
        option, at = option[other], at[other]
        return Alternatives(writer[first], writer[second], option, seen.reader[at], seen.read[at])

    def _first(self, writer: NDArray[np.int64], chain: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of each chain the last transaction that is known to come before a writer, by number."""
        each = self.events.each
        before = self.clock[self.events.after(writer), chain].astype(np.int64)
        return (before + 1) // each - 1

    def knows(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Of each two writers of a key, whether ``clock`` says that the first comes before the second."""
        end, after = self.events.end(first), self.events.after(second)
        return reaches(self.clock, self.chain, end, after)
