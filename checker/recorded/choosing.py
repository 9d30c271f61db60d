"""Levels that ask for a version order: of two writers of a key one comes first, and what follows from either.

A transaction is its beginning and its end (at serializable one event). What sees comes after the end of what it
sees; what misses a version begins before its writer ends. So an order of events is what a level asks for, and
the dependency graphs of Cerone and Gotsman (specs/levels: serializable, snapshot-isolation, prefix-consistency,
each with the session order) are those without a cycle of events.

Which of two writers is first is known where the other way round would close a cycle; what follows is added, until
nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.recorded.clocks import add, chained, clocks, reaches
from isolitmus.checker.recorded.saturating import ranges
from isolitmus.checker.recorded.stepping import KINDS, Arrows, concatenated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.recorded.observing import Attributed
    from isolitmus.model.budget import Budget

__all__ = ["Alternatives", "Choosing", "Events"]


@dataclass(frozen=True, slots=True)
class Events:
    """The events of transactions at a level, as numbers."""

    level: str

    @property
    def each(self) -> int:
        """How many a transaction has."""
        return 1 if self.level == "serializable" else 2

    def begin(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """When it reads."""
        return transaction * self.each

    def end(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """When its writes are there."""
        return transaction * self.each + self.each - 1

    def after(self, transaction: NDArray[np.int64]) -> NDArray[np.int64]:
        """What must come after the end of who wrote a version before: at snapshot isolation all of it."""
        return (
            self.end(transaction) if self.level == "prefix-consistency" else self.begin(transaction)
        )

    def of(self, edges: Arrows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The events that edges lead from and to."""
        starts = (edges.kind == KINDS.index("rw")) | (edges.kind == KINDS.index("within"))
        source = np.where(starts, self.begin(edges.source), self.end(edges.source))
        target = np.where(starts, self.end(edges.target), self.begin(edges.target))
        versions = edges.kind == KINDS.index("ww")
        return source, np.where(versions, self.after(edges.target), target)


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

    def without(self, gone: NDArray[np.bool_]) -> Alternatives:
        """The options that are left; an option goes with its opposite."""
        number = np.cumsum(~gone) - 1
        stays = ~gone[self.option]
        return Alternatives(
            self.first[~gone],
            self.second[~gone],
            number[self.option[stays]],
            self.reader[stays],
            self.read[stays],
        )


def _options(seen: Attributed, *, unread: bool) -> Alternatives:
    """All options; ``unread``: of versions, too, that nobody read."""
    size = len(seen.counts) + 1
    cell, one = np.unique((seen.key * size + seen.writer) * size + seen.reader, return_index=True)
    of = cell // size  # a key and a writer
    reader, read = cell % size, seen.read[one]
    keys = np.unique(seen.key[seen.writer == seen.initial])
    key, writer = np.append(seen.written_key, keys), np.append(seen.written_by, keys * 0 + size - 1)
    order = np.lexsort((writer, key))
    key, writer = key[order], writer[order]
    low = np.searchsorted(of, key * size + writer, "left")
    many = np.searchsorted(of, key * size + writer, "right") - low
    here = np.arange(len(key))
    later = np.searchsorted(key, key, "right") - here - 1
    a, b = np.repeat(here, later), ranges(here + 1, later)
    if not unread:
        some = (many[a] + many[b]) > 0
        a, b = a[some], b[some]
    first, second = np.append(a, b), np.append(b, a)
    option = np.repeat(np.arange(len(first)), many[first])
    at = ranges(low[first], many[first])
    other = reader[at] != writer[second[option]]
    option, at = option[other], at[other]
    return Alternatives(writer[first], writer[second], option, reader[at], read[at])


@dataclass(slots=True, eq=False)
class Choosing:
    """What is known of the order of events at a level, and what is open."""

    seen: Attributed
    """The history."""
    events: Events
    """At which level."""
    stages: list[Arrows] = field(default_factory=list)
    """What is known: at first sessions and reads, then what followed from all before, round by round."""
    forced: list[Alternatives] = field(default_factory=list)
    """Of each round but the first, the options that it found to be the only ones."""
    chain: NDArray[np.int64] = field(init=False)
    """Of each event the chain in which it is."""
    graph: NDArray[np.int32] = field(init=False)
    """What is known, as latest predecessors."""
    open: Alternatives = field(init=False)
    """What is not known."""

    def __post_init__(self) -> None:
        seen, events = self.seen, self.events
        every = np.arange(len(seen.counts) + 1)
        within = (
            Arrows.of("within", every, every)
            if events.each > 1
            else Arrows.of("so", *[every[:0]] * 2)
        )
        reads = Arrows.of("wr", seen.writer, seen.reader, seen.read)
        self.stages.append(concatenated([Arrows.of("so", *seen.sessions()), reads, within]))
        self.chain = np.repeat(seen.chains(), events.each)
        self.graph = chained(self.chain)
        add(self.graph, self.chain, *events.of(self.stages[0]))
        self.open = _options(seen, unread=events.each > 1)

    def narrow(self, budget: Budget) -> bool:
        """Add what follows until nothing does; whether there is no cycle yet."""
        events, chain = self.events, self.chain
        while True:
            budget.check()
            clock = clocks(self.graph, chain)
            if clock is None:
                return False
            options = self.open
            edges, option = options.edges()
            source, target = events.of(edges)
            impossible = np.zeros(len(options), bool)
            impossible[option[reaches(clock, chain, target, source)]] = True
            half = len(options) // 2
            only = np.append(impossible[half:], impossible[:half])
            if not only.any():
                return True
            new = only[option] & ~reaches(clock, chain, source, target)
            self.stages.append(edges.only(new))
            self.forced.append(options.without(~only))
            add(self.graph, chain, source[new], target[new])
            self.open = options.without(impossible | only)
            if not new.any():
                return True
