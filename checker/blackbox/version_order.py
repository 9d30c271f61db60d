"""Version orders of recorded histories: rules, constraints, and a solver for what is left.

Levels that ask for a version order: of two writers of a key one comes first, and what follows from
either.

Which of two writers is first is known where the other way round would close a cycle; what follows
is added, until nothing does.

Which of two writers of a key is first, as far as that follows from what leads to each event.

Of each chain one writer says it: what comes before an event is in each chain a beginning of it. So
a round takes as long as there are reads and writes whose events have something new before them,
times chains; it goes in portions.

Orders of events for what pruning leaves open: a guess, then a solver that learns the cycles it
makes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.columnar_graph import (
    add_edges,
    chain_graph,
    drop_chain_edges,
    find_cheap_cycles,
    reaches,
    strong_components,
    topological_order,
    update_clocks,
    vector_clocks,
)
from isolitmus.checker.blackbox.events import TIMED, ended_before_start
from isolitmus.checker.blackbox.precedence import EdgeColumns, concatenate_edges
from isolitmus.checker.blackbox.read_from import WriterIndex, portions, ranges, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.events import Events
    from isolitmus.checker.blackbox.read_from import AttributedReads
    from isolitmus.model.budget import Budget

    Leads = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]

__all__ = [
    "Alternatives",
    "VersionOrderConstraints",
    "VersionOrderRules",
    "solve_order",
    "solve_version_order",
]


class VersionOrderRules:
    """What follows, at a level, of a history."""

    def __init__(self, seen: AttributedReads, events: Events) -> None:
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
        self.writers = WriterIndex(seen.written_key, seen.written_by, self.chain)
        """Of all versions."""
        self.read_from = WriterIndex(self.key, self.writer, self.chain)
        """Of those that were read."""
        order = np.lexsort((seen.written_by, self.chain[seen.written_by], seen.written_key))
        key, writer = seen.written_key[order], seen.written_by[order]
        same = (key[1:] == key[:-1]) & (self.chain[writer[1:]] == self.chain[writer[:-1]])
        self.earlier = np.full(len(order), -1)
        """Of each version the writer before of its key in its chain, or −1."""
        self.earlier[order[1:][same]] = writer[:-1][same]

    def edges(self, clock: NDArray[np.int32], changed: NDArray[np.bool_]) -> Iterator[EdgeColumns]:
        """Orders of versions, and who missed one, in portions; some of it is known already. Looked
        at is what leads to events that have ``changed``.
        """
        yield from self._seen(clock, changed)
        yield from self._missed(clock, changed)
        if self.events.base == "snapshot-isolation":
            yield from self._in_turn(clock, changed)

    def writers_by_key(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys and who wrote them, in this order; who was before all among them where it was
        read.
        """
        seen = self.seen
        unborn = self.key[self.writer == seen.initial]
        key = np.append(seen.written_key, unborn)
        writer = np.append(seen.written_by, np.full_like(unborn, seen.initial))
        order = np.lexsort((writer, key))
        return key[order], writer[order]

    def _seen(self, clock: NDArray[np.int32], changed: NDArray[np.bool_]) -> Iterator[EdgeColumns]:
        """Who wrote the key and ended before a reader began comes before whom it read from."""
        seen = self.seen
        reads = self.reads[changed[self.events.begin(seen.reader[self.reads])]]
        for row, writer in self.ended(clock, seen.key[reads], seen.reader[reads]):
            read_from = seen.writer[reads[row]]
            other = writer != read_from
            yield EdgeColumns.of("ww", writer[other], read_from[other])

    def ended(
        self, clock: NDArray[np.int32], key: NDArray[np.int64], reader: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Of each read, of a key by a reader, and each chain the latest writer of the key that
        ended before the reader began: reads by their places, in order, and writers; in portions.
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

    def _missed(
        self, clock: NDArray[np.int32], changed: NDArray[np.bool_]
    ) -> Iterator[EdgeColumns]:
        """Who read a version began before any version that comes after it was there: of each chain
        the first of these.
        """
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
            yield EdgeColumns.of("rw", seen.reader[read], later, seen.read[read])

    def _before(
        self, clock: NDArray[np.int32], slot: NDArray[np.int64], writer: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Of each slot of versions that were read the latest one that comes before a writer's; −1:
        there is none.
        """
        each = self.events.each
        after = clock[self.events.end(writer), self.read_from.chain[slot]].astype(np.int64)
        number = (after - (self.events.level == "prefix-consistency")) // each
        return self.read_from.latest(slot, number - (number == writer))

    def _in_turn(
        self, clock: NDArray[np.int32], changed: NDArray[np.bool_]
    ) -> Iterator[EdgeColumns]:
        """Who wrote the key and began before another writer ended comes before it."""
        seen = self.seen
        (there,) = np.nonzero(changed[self.events.end(seen.written_by)])
        for row, slot in self.writers.slots(seen.written_key[there]):
            writer = seen.written_by[there[row]]
            began = clock[self.events.end(writer), self.writers.chain[slot]].astype(np.int64) // 2
            earlier = self.writers.latest(slot, began - (began == writer))
            found = earlier >= 0
            yield EdgeColumns.of("ww", earlier[found], writer[found])


BYTES = 500
"""About as much memory as a pair takes until its order is found."""


@dataclass(slots=True, eq=False)
class Alternatives:
    """Ways to order two writers of a key: the second half has the pairs of the first half turned
    round.

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

    def edges(self) -> tuple[EdgeColumns, NDArray[np.int64]]:
        """What the options say, and the option of each edge."""
        versions = EdgeColumns.of("ww", self.first, self.second)
        misses = EdgeColumns.of("rw", self.reader, self.second[self.option], self.read)
        return concatenate_edges([versions, misses]), np.append(np.arange(len(self)), self.option)


@dataclass(slots=True, eq=False)
class VersionOrderConstraints:
    """What is known of the order of events at a level."""

    seen: AttributedReads
    """The history."""
    events: Events
    """At which level."""
    stages: list[EdgeColumns] = field(default_factory=list)
    """What is known: at first sessions, reads and observed orders, then what followed from all
    before, round by round.
    """
    chain: NDArray[np.int64] = field(init=False)
    """Of each event the chain in which it is."""
    graph: NDArray[np.int32] = field(init=False)
    """What is known, as latest predecessors."""
    clock: NDArray[np.int32] = field(init=False)
    """All that is known to lead to each event, as the last round of ``narrow`` found it."""
    following: VersionOrderRules = field(init=False)
    """What follows from it."""

    def __post_init__(self) -> None:
        seen, events = self.seen, self.events
        every = np.arange(len(seen.counts) + 1)
        within = (
            EdgeColumns.of("within", every, every)
            if events.each > 1
            else EdgeColumns.of("so", *[every[:0]] * 2)
        )
        reads = EdgeColumns.of("wr", seen.writer, seen.reader, seen.read)
        parts = [EdgeColumns.of("so", *seen.sessions()), reads, within, seen.observed]
        if events.level in TIMED:
            parts.append(EdgeColumns.of("rt", *ended_before_start(seen)))
        self.stages.append(concatenate_edges(parts))
        self.chain = np.repeat(seen.chains(), events.each)
        self.graph = chain_graph(self.chain)
        add_edges(self.graph, self.chain, *events.of(self.stages[0]))
        self.clock = np.full_like(self.graph, -1)
        self.following = VersionOrderRules(seen, events)

    def narrow(self, budget: Budget) -> bool:
        """Add what follows until nothing does; whether there is no cycle yet."""
        size = len(self.chain)
        clock = vector_clocks(self.graph, self.chain, budget)
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
            edges = concatenate_edges(parts)
            if not len(edges):
                return True
            source, target = self.events.of(edges)
            self.stages.append(edges)
            add_edges(self.graph, self.chain, source, target)
            touched = np.zeros(size, bool)
            touched[target] = True
            clock = update_clocks(clock, self.graph, self.chain, touched, budget)

    def open(self, budget: Budget) -> Alternatives:
        """The pairs of writers of a key of which ``clock`` does not say who is first."""
        seen, events, read = self.seen, self.events, self.following
        key, writer = read.writers_by_key()
        every = WriterIndex(key, writer, read.chain)
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
                # Two versions that nobody read may come in either order, except at levels where
                # their writers must not overlap.
                if not turns:
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
        """Of each two writers of a key, whether ``clock`` says that the first comes before the
        second.
        """
        end, after = self.events.end(first), self.events.after(second)
        return reaches(self.clock, self.chain, end, after)


CLAUSES = 100_000
"""So many clauses are given to the solver between two looks at the budget."""
MOST = 100_000_000
"""The most pairs of edges that are looked at before the solver begins; of more it learns what it
needs.
"""
MANY = 500
"""Up to so many edges that lie on cycles with each other, each two are looked at together."""
CYCLES = 100
"""The most cycles that are learned from one answer of the solver."""


def solve_version_order(
    choosing: VersionOrderConstraints, budget: Budget
) -> NDArray[np.int64] | None:
    """The events in an order that the level admits; None: there is none. TimeLimit if the
    ``budget`` ends it.
    """
    known = drop_chain_edges(choosing.graph, choosing.chain)
    size = len(choosing.chain)
    order = _guess(choosing, known)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    if _explains(choosing, place):
        return order
    return _solved(choosing, known, place, budget)


def _guess(
    choosing: VersionOrderConstraints, known: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """An order of events that keeps what is known: one transaction after another, if there is one
    like that.
    """
    each, size = choosing.events.each, len(choosing.chain)
    source, target = known[0] // each, known[1] // each
    apart = source != target
    order = topological_order(size // each, source[apart], target[apart])
    if len(order) < size // each:
        return topological_order(size, *known)
    return (order[:, None] * each + np.arange(each)).reshape(-1)


def _explains(choosing: VersionOrderConstraints, place: NDArray[np.int64]) -> bool:
    """Whether no version is there before those who read an earlier one began; at snapshot
    isolation, before who wrote it began, either. Events have these places in an order that keeps
    what is known.
    """
    events, read = choosing.events, choosing.following
    size = choosing.seen.initial + 1
    key, writer = read.writers_by_key()
    order = np.lexsort((place[events.end(writer)], key))
    key, writer = key[order], writer[order]
    same = key[1:] == key[:-1]
    before, then = writer[:-1][same], writer[1:][same]
    if events.base == "snapshot-isolation" and (
        (place[events.end(before)] > place[events.begin(then)]).any()
    ):
        return False
    version, was_read = span(read.version, key[:-1][same] * size + before)
    found = was_read > 0
    version, then = version[found], then[found]
    many = read.many[version]
    reader = choosing.seen.reader[read.reads[ranges(read.first[version], many)]]
    then = np.repeat(then, many)
    missed = (reader != then) & (place[events.begin(reader)] > place[events.end(then)])
    return not missed.any()


def _solved(
    choosing: VersionOrderConstraints,
    known: tuple[NDArray[np.int64], NDArray[np.int64]],
    place: NDArray[np.int64],
    budget: Budget,
) -> NDArray[np.int64] | None:
    """By a solver, from what is known: one variable says of two transactions who is first, of all
    keys that both write.
    """
    clock = vector_clocks(choosing.graph, choosing.chain, budget)
    if clock is None:
        return None
    open_ = choosing.open(budget)
    first, second = open_.first, open_.second
    size = len(place)
    edges, option = open_.edges()
    tails, heads = choosing.events.of(edges)
    _, variable = np.unique(
        np.minimum(first, second) * size + np.maximum(first, second), return_inverse=True
    )
    literal = (variable + 1) * np.where(first < second, 1, -1)
    end = choosing.events.end
    guess = place[end(first)] < place[end(second)]
    leads = partial(reaches, clock, choosing.chain)
    new = ~leads(tails, heads)
    tails, heads, of = tails[new], heads[new], literal[option[new]]
    phases = np.unique(literal[guess]).tolist()
    found = solve_order(known, leads, (tails, heads), of, place, budget=budget, phases=phases)
    return None if found is None else found[0]


def solve_order(
    known: tuple[NDArray[np.int64], NDArray[np.int64]],
    leads: Leads,
    edges: tuple[NDArray[np.int64], NDArray[np.int64]],
    of: NDArray[np.int64],
    place: NDArray[np.int64],
    *,
    budget: Budget,
    clauses: Sequence[list[int]] = (),
    phases: Sequence[int] = (),
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """An order of all that is known and of those edges whose literal is true, and the sign of each
    variable, by its number, where the clauses hold; None: there is none. ``place`` is a node's in
    an order of what is known.
    """
    from pysat.solvers import Solver

    size = len(place)
    tails, heads = edges
    most = max([0, *map(abs, phases), *(abs(one) for clause in clauses for one in clause)])
    most = max(most, int(np.abs(of).max(initial=0)))
    with Solver(name="glucose4", bootstrap_with=clauses) as solver:
        solver.set_phases([*phases])
        pairs = _pairs(leads, (tails, heads), of, place, budget)
        for portion in np.split(-pairs, range(CLAUSES, len(pairs), CLAUSES)):
            budget.check()
            solver.append_formula(portion.tolist())
        while True:
            with budget.stopping(solver.interrupt):
                found = solver.solve_limited(expect_interrupt=True)
            if not found:
                return None
            true = np.array(solver.get_model() or [0])
            value = np.ones(most + 1, np.int64)
            true = true[np.abs(true) < len(value)]
            value[np.abs(true)] = np.sign(true)
            taken = np.flatnonzero(np.sign(of) == value[np.abs(of)])
            source = np.concatenate([known[0], tails[taken]])
            target = np.concatenate([known[1], heads[taken]])
            order = topological_order(size, source, target)
            if len(order) == size:
                return order, value
            knot = strong_components(size, source, target, place)
            inside = taken[(knot[tails[taken]] >= 0) & (knot[tails[taken]] == knot[heads[taken]])]
            for number in np.unique(knot[tails[inside]]).tolist():
                on = inside[knot[tails[inside]] == number]
                budget.check()
                if len(on) > MANY:
                    free = (knot[known[0]] == number) & (knot[known[1]] == number)
                    paid = tails[on], heads[on]
                    cycles = find_cheap_cycles(size, (known[0][free], known[1][free]), paid, CYCLES)
                else:
                    cycles = _cycles(leads, tails[on], heads[on])
                for cycle in cycles:
                    solver.add_clause([-one for one in np.unique(of[on[cycle]]).tolist()])
            budget.check()


def _pairs(
    leads: Leads,
    edges: tuple[NDArray[np.int64], NDArray[np.int64]],
    literal: NDArray[np.int64],
    place: NDArray[np.int64],
    budget: Budget,
) -> NDArray[np.int64]:
    """The literals of which no two can be true: an edge of the one and one of the other are on a
    cycle. Two such edges overlap in any order that keeps what is known.
    """
    tails, heads = edges
    low, high = np.minimum(place[tails], place[heads]), np.maximum(place[tails], place[heads])
    sort = np.argsort(low, kind="stable")
    tails, heads, literal = tails[sort], heads[sort], literal[sort]
    here = np.arange(len(sort))
    many = np.searchsorted(low[sort], high[sort], "right") - here - 1
    found = [np.zeros((0, 2), np.int64)]
    if many.sum() > MOST:
        return found[0]
    for rows in portions(many):
        budget.check()
        one, other = np.repeat(rows, many[rows]), ranges(rows + 1, many[rows])
        for a, b in ((0, 1), (1, 0)):
            ends = (one, other)
            both = leads(heads[ends[a]], tails[ends[b]])
            one, other = one[both], other[both]
        pair = np.sort(np.stack([literal[one], literal[other]], axis=1), axis=1)
        found.append(np.unique(pair[pair[:, 0] != -pair[:, 1]], axis=0))
    return np.unique(np.concatenate(found), axis=0)


def _cycles(
    leads: Leads, tails: NDArray[np.int64], heads: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Short cycles through some of the edges, each as the edges that are on it; what is known leads
    from one to the next.
    """
    for start in range(0, len(tails), max(1, len(tails) // CYCLES)):
        back = np.full(len(tails), -1)
        reached = np.array([start])
        while len(reached) and back[start] < 0:
            others = np.flatnonzero(back < 0)
            step = leads(heads[reached][:, None], tails[others])
            there = step.any(axis=0)
            back[others[there]] = reached[step[:, there].argmax(axis=0)]
            reached = others[there]
        if back[start] >= 0:
            cycle = [int(back[start])]
            while cycle[-1] != start:
                cycle.append(int(back[cycle[-1]]))
            yield np.array(cycle)
