"""Version orders of recorded histories: inference rules, pruned constraints, and SAT for the rest.

`VersionOrderRules` infers edges from what is known to precede each event; `VersionOrderConstraints`
applies them until nothing changes: of two writers of a key one comes first, and an order that would
close a cycle is excluded. What precedes an event is a prefix of each chain, so one writer per chain
suffices. A round takes time proportional to chains times the reads and writes whose events have new
predecessors; it is processed in portions.

`solve_version_order` first tries one order of all events (the guess). If that does not explain the
history, a SAT solver chooses the order of each undecided pair of writers, and learns clauses from
the cycles of its answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.blackbox.columnar_graph import (
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
from isolitmus.histories.blackbox.events import TIMED, ended_before_start
from isolitmus.histories.blackbox.precedence import EdgeColumns, concatenate_edges
from isolitmus.histories.blackbox.read_from import WriterIndex, portions, ranges, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.histories.blackbox.events import Events
    from isolitmus.histories.blackbox.read_from import AttributedReads
    from isolitmus.model.budget import Budget

    Leads = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]


class VersionOrderRules:
    """Inference rules of a level for the version order of a history."""

    def __init__(self, seen: AttributedReads, events: Events) -> None:
        self.seen, self.events, self.chain = seen, events, seen.chains()
        size = seen.initial + 1
        self.version, of = np.unique(seen.key * size + seen.writer, return_inverse=True)
        """Shape (n_read_versions,): code key * (n_transactions + 1) + writer, ascending."""
        one, read = np.unique(of * size + seen.reader, return_index=True)
        self.reads: NDArray[np.int64] = read
        """Indices of reads, one per version and reader, grouped by version."""
        self.first, self.many = span(one // size, np.arange(len(self.version)))
        """Shape (n_read_versions,): the reads of version v are ``reads[first[v]:][:many[v]]``."""
        self.key, self.writer = self.version // size, self.version % size
        self.writers = WriterIndex(seen.written_key, seen.written_by, self.chain)
        """Writers of all versions."""
        self.read_from = WriterIndex(self.key, self.writer, self.chain)
        """Writers of the versions that were read."""
        order = np.lexsort((seen.written_by, self.chain[seen.written_by], seen.written_key))
        key, writer = seen.written_key[order], seen.written_by[order]
        same = (key[1:] == key[:-1]) & (self.chain[writer[1:]] == self.chain[writer[:-1]])
        self.earlier = np.full(len(order), -1)
        """Shape (n_last_writes,): previous writer of the key in the same chain; −1 if none."""
        self.earlier[order[1:][same]] = writer[:-1][same]

    def edges(self, clock: NDArray[np.int32], changed: NDArray[np.bool_]) -> Iterator[EdgeColumns]:
        """Yield inferred version-order edges and anti-dependencies, in portions.

        Some of them are known already.

        Parameters
        ----------
        clock : ndarray of int32, shape (n_events, n_chains)
            Index of the last event of each chain that precedes the event, or is it; -1 if none.
        changed : ndarray of bool, shape (n_events,)
            Events whose clock changed since the last round; only these are looked at.

        Yields
        ------
        EdgeColumns
            Edges of kinds "ww" and "rw".
        """
        yield from self._seen(clock, changed)
        yield from self._missed(clock, changed)
        if self.events.base == "snapshot-isolation":
            yield from self._in_turn(clock, changed)

    def writers_by_key(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return keys and their writers, sorted by key, then by writer.

        The initial transaction is a writer of the keys whose initial version was read.

        Returns
        -------
        key, writer : ndarray of int64, shape (n_versions,)
        """
        seen = self.seen
        unborn = self.key[self.writer == seen.initial]
        key = np.append(seen.written_key, unborn)
        writer = np.append(seen.written_by, np.full_like(unborn, seen.initial))
        order = np.lexsort((writer, key))
        return key[order], writer[order]

    def _seen(self, clock: NDArray[np.int32], changed: NDArray[np.bool_]) -> Iterator[EdgeColumns]:
        """Yield ww edges: a writer that ended before a reader began precedes the one it read."""
        seen = self.seen
        reads = self.reads[changed[self.events.begin(seen.reader[self.reads])]]
        for row, writer in self.ended(clock, seen.key[reads], seen.reader[reads]):
            read_from = seen.writer[reads[row]]
            other = writer != read_from
            yield EdgeColumns.of("ww", writer[other], read_from[other])

    def ended(
        self, clock: NDArray[np.int32], key: NDArray[np.int64], reader: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield, per read and chain, the latest writer of the key that the reader sees.

        A reader sees a writer that ended before it began.

        Parameters
        ----------
        clock : ndarray of int32, shape (n_events, n_chains)
            Index of the last event of each chain that precedes the event, or is it; -1 if none.
        key, reader : ndarray of int64, shape (n_reads,)
            Key and transaction of each read.

        Yields
        ------
        row, writer : ndarray of int64
            Index of the read, ascending, and writer; in portions.
        """
        for row, slot in self.writers.slots(key):
            latest = clock[self.events.begin(reader[row]), self.writers.chain[slot]].astype(
                np.int64
            )
            own = latest == reader[row]
            # From the last known event of the chain to the last transaction that ended: event
            # 2t + 1 is the end of t, event 2t only its beginning. With one event per transaction,
            # the reader itself is excluded.
            ended = latest - own if self.events.each == 1 else (latest - 1) // 2
            writer = self.writers.latest(slot, ended)
            found = writer >= 0
            yield row[found], writer[found]

    def _missed(
        self, clock: NDArray[np.int32], changed: NDArray[np.bool_]
    ) -> Iterator[EdgeColumns]:
        """Yield rw edges: a reader of a version began before the writer of any later version ended.

        Of each chain only the latest earlier version that was read is used.
        """
        seen, size = self.seen, self.seen.initial + 1
        (there,) = np.nonzero(changed[self.events.end(seen.written_by)])
        for row, slot in self.read_from.slots(seen.written_key[there]):
            later, earlier = seen.written_by[there[row]], self.earlier[there[row]]
            first = self._before(clock, slot, later)
            # Skip what the previous writer of the chain already implies.
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
        """Return, per slot of read versions, the latest that precedes ``writer``; −1 if none."""
        each = self.events.each
        # A writer precedes another once its event `after` precedes the end of the other; at prefix
        # consistency that event is the end, so an odd number counts and an even one does not.
        after = clock[self.events.end(writer), self.read_from.chain[slot]].astype(np.int64)
        number = (after - (self.events.level == "prefix-consistency")) // each
        return self.read_from.latest(slot, number - (number == writer))

    def _in_turn(
        self, clock: NDArray[np.int32], changed: NDArray[np.bool_]
    ) -> Iterator[EdgeColumns]:
        """Yield ww edges: a writer that began before another one of the key ended precedes it."""
        seen = self.seen
        (there,) = np.nonzero(changed[self.events.end(seen.written_by)])
        for row, slot in self.writers.slots(seen.written_key[there]):
            writer = seen.written_by[there[row]]
            began = clock[self.events.end(writer), self.writers.chain[slot]].astype(np.int64) // 2
            earlier = self.writers.latest(slot, began - (began == writer))
            found = earlier >= 0
            yield EdgeColumns.of("ww", earlier[found], writer[found])


BYTES = 500
"""Approximate memory, in bytes, of a pair of writers until its order is found."""


@dataclass(slots=True, eq=False)
class Alternatives:
    """Options for the order of two writers of a key, as columns.

    The second half of the options has the pairs of the first half reversed. The reads of an option
    saw its first version, so they miss its second.
    """

    first: NDArray[np.int64]
    """Shape (n_options,): transaction that comes first."""
    second: NDArray[np.int64]
    """Shape (n_options,): transaction that comes second."""
    option: NDArray[np.int64]
    """Shape (n_misses,): option of each read."""
    reader: NDArray[np.int64]
    """Shape (n_misses,): transaction of each read."""
    read: NDArray[np.int64]
    """Shape (n_misses,): operation index of each read."""

    def __len__(self) -> int:
        return len(self.first)

    def edges(self) -> tuple[EdgeColumns, NDArray[np.int64]]:
        """Return the edges that the options imply, and the option of each edge."""
        versions = EdgeColumns.of("ww", self.first, self.second)
        misses = EdgeColumns.of("rw", self.reader, self.second[self.option], self.read)
        return concatenate_edges([versions, misses]), np.append(np.arange(len(self)), self.option)


@dataclass(slots=True, eq=False)
class VersionOrderConstraints:
    """Known edges between the events of a history, at a level."""

    seen: AttributedReads
    """Reads with their writers."""
    events: Events
    """Numbering of the events at the level."""
    stages: list[EdgeColumns] = field(default_factory=list)
    """Known edges: first sessions, reads, observed version orders and real time; then, round by
    round, the edges inferred from all earlier ones.
    """
    chain: NDArray[np.int64] = field(init=False)
    """Shape (n_events,): chain of each event."""
    graph: NDArray[np.int32] = field(init=False)
    """Shape (n_events, n_chains): latest known direct predecessor in each chain; -1 if none."""
    clock: NDArray[np.int32] = field(init=False)
    """Shape (n_events, n_chains): vector clocks of the last round of ``narrow``; at first -1."""
    following: VersionOrderRules = field(init=False)
    """Inference rules of the level."""

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
        """Add inferred edges until nothing changes; return whether the graph is acyclic.

        Raises
        ------
        Limit
            TimeLimit or MemoryLimit if the ``budget`` is spent.
        """
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
        """Return the pairs of writers of a key whose order ``clock`` does not determine.

        Raises
        ------
        Limit
            TimeLimit or MemoryLimit if the ``budget`` is spent, or does not suffice for the pairs.
        """
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
        """Return the last transaction of ``chain`` that is known to precede the writer."""
        each = self.events.each
        before = self.clock[self.events.after(writer), chain].astype(np.int64)
        return (before + 1) // each - 1

    def knows(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return, for each pair of writers of a key, whether ``clock`` orders first < second.

        Parameters
        ----------
        first, second : ndarray of int64, shape (n_pairs,)
            Transactions.

        Returns
        -------
        ndarray of bool, shape (n_pairs,)
        """
        end, after = self.events.end(first), self.events.after(second)
        return reaches(self.clock, self.chain, end, after)


CLAUSES = 100_000
"""Number of clauses added to the solver between two checks of the budget."""
MOST = 100_000_000
"""Maximal number of pairs of edges examined before solving; with more, clauses are only learned."""
MANY = 500
"""Maximal number of edges of a component in which `_cycles` looks for cycles."""
CYCLES = 100
"""Maximal number, about, of cycles learned per component from one answer of the solver."""


def solve_version_order(
    choosing: VersionOrderConstraints, budget: Budget
) -> NDArray[np.int64] | None:
    """Return the events in an order that the level admits, or None if there is none.

    Parameters
    ----------
    choosing : VersionOrderConstraints
        Constraints after a ``narrow`` that found no cycle.
    budget : Budget
        Limits of time and memory.

    Returns
    -------
    ndarray of int64, shape (n_events,), or None
        Events in order.

    Raises
    ------
    Limit
        TimeLimit or MemoryLimit if the ``budget`` is spent.
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
    """Return an order of events that keeps the known edges.

    Each transaction is contiguous in it, if that is possible.
    """
    each, size = choosing.events.each, len(choosing.chain)
    source, target = known[0] // each, known[1] // each
    apart = source != target
    order = topological_order(size // each, source[apart], target[apart])
    if len(order) < size // each:
        return topological_order(size, *known)
    return (order[:, None] * each + np.arange(each)).reshape(-1)


def _explains(choosing: VersionOrderConstraints, place: NDArray[np.int64]) -> bool:
    """Return whether an order of events, which keeps the known edges, explains all reads.

    No version may be there before a reader of an earlier version began. At snapshot isolation no
    version may be followed by one whose writer began before it was there.
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
    """Return an order of events found by SAT, or None.

    One variable orders two transactions, for all keys that both write.
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
    """Return a topological order of the known edges and of the edges whose literal is true.

    The solver proposes literals; each cycle of a proposal becomes a clause. Literals are signed
    variable numbers, as in DIMACS.

    Parameters
    ----------
    known : tuple of two ndarrays of int64, shape (n_known,)
        Sources and targets of the known edges.
    leads : callable
        Maps arrays of sources and targets to whether known edges lead from one to the other.
    edges : tuple of two ndarrays of int64, shape (n_edges,)
        Sources and targets of the conditional edges.
    of : ndarray of int64, shape (n_edges,)
        Literal of each conditional edge.
    place : ndarray of int64, shape (n_nodes,)
        Position of each node in a topological order of the known edges.
    budget : Budget
        Limits of time and memory.
    clauses : sequence of list of int
        Clauses that must hold.
    phases : sequence of int
        Literals that the solver tries first.

    Returns
    -------
    tuple of two ndarrays of int64, or None
        The nodes in order, shape (n_nodes,), and the sign of each variable by its number, shape
        (n_variables + 1,). None if there is no such order.

    Raises
    ------
    Limit
        TimeLimit or MemoryLimit if the ``budget`` is spent.
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
            # The solver's own auxiliary variables are ignored; unassigned variables count as true.
            true = true[np.abs(true) < len(value)]
            value[np.abs(true)] = np.sign(true)
            taken = np.flatnonzero(np.sign(of) == value[np.abs(of)])
            source = np.concatenate([known[0], tails[taken]])
            target = np.concatenate([known[1], heads[taken]])
            order = topological_order(size, source, target)
            if len(order) == size:
                return order, value
            # Learn cycles of each strongly connected component.
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
    """Return the pairs of literals of two edges that lie on a cycle, shape (n_pairs, 2).

    The ends of two such edges overlap in any order that keeps the known edges, so only overlapping
    pairs are examined.
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
    """Yield short cycles through some of the edges, as indices.

    Known edges lead from each edge of a cycle to the next.
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
