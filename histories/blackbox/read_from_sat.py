"""Read-from relation by SAT, for histories in which several transactions wrote one value.

Each undecided read has one of its candidates as its writer. At levels that ask for a version order
(`solve_read_from`), candidates that contradict what is known of the events are pruned first. What
remains are conditional edges between events (`ConditionalEdges`): each has a literal, of a
candidate (numbers from 1), of a possible transaction that counts, of an order of two writers, or of
two of these together. For two writers that count, one variable says which is first. If one of them
may not count there are two variables, one of which is true if both count. A transaction that may
have committed has edges, and needs writers for its reads, if it is read from.

At levels without a version order (`search_read_from`), prefix consistency is tried first, for a
while: what explains a history there explains it at the weaker levels. Then a solver chooses a
candidate for each undecided read. `saturate` gives the edges that the axioms of the level imply;
each cycle among these excludes the combination of candidates that it needs, until there is none.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.blackbox.columnar_graph import (
    add_edges,
    drop_chain_edges,
    find_path,
    reaches,
    strong_components,
    topological_order,
)
from isolitmus.histories.blackbox.cycles import trace_cycle
from isolitmus.histories.blackbox.events import TIMED, Events, ended_before_start
from isolitmus.histories.blackbox.read_from import portions, ranges, span
from isolitmus.histories.blackbox.recheck import find_misread
from isolitmus.histories.blackbox.saturation import saturate
from isolitmus.histories.blackbox.version_order import VersionOrderConstraints, solve_order
from isolitmus.model.errors import Limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from isolitmus.histories.blackbox.precedence import EdgeColumns, Precedence
    from isolitmus.histories.blackbox.read_from import AmbiguousReads, AttributedReads
    from isolitmus.model.budget import Budget


def prune_read_from(
    open_: AmbiguousReads, choosing: VersionOrderConstraints, budget: Budget
) -> tuple[AmbiguousReads, VersionOrderConstraints | None]:
    """Return the candidates left by pruning, and the constraints once decided reads are known.

    Parameters
    ----------
    open_ : AmbiguousReads
        Undecided reads with their candidates.
    choosing : VersionOrderConstraints
        Constraints before the reads were decided; their edges are kept.
    budget : Budget
        Limits of time and memory.

    Returns
    -------
    open_ : AmbiguousReads
        The remaining candidates.
    choosing : VersionOrderConstraints or None
        None if there is a cycle, or a read without a candidate.
    """
    while True:
        graph = choosing.graph
        choosing = VersionOrderConstraints(open_.seen, choosing.events)
        np.maximum(choosing.graph, graph, out=choosing.graph)
        _from_the_start(choosing)
        if not choosing.narrow(budget):
            return open_, None
        less = open_.only(~_out(open_, choosing, budget))
        if less.lost() is not None:
            return less, None
        open_ = less.settled()
        if open_ is less:
            return open_, choosing


def _from_the_start(choosing: VersionOrderConstraints) -> None:
    """Add edges from the initial transaction to all chains, also those of possible transactions."""
    events, chain = choosing.events, choosing.chain
    _, first = np.unique(chain, return_index=True)
    first = first[chain[first] != chain[-1]]
    initial = events.end(np.full(len(first), choosing.seen.initial))
    add_edges(choosing.graph, chain, initial, first)


def _out(
    open_: AmbiguousReads, choosing: VersionOrderConstraints, budget: Budget
) -> NDArray[np.bool_]:
    """Return a mask of impossible candidates.

    A candidate is impossible if it comes after the reader, or before another writer of the key that
    the reader comes after.
    """
    events, clock, chain = choosing.events, choosing.clock, choosing.chain
    begin, end = events.begin(open_.reader), events.end(open_.writer)
    out = reaches(clock, chain, begin[open_.of], end)
    ended = choosing.following.ended(clock, open_.key, open_.reader)
    row, other = map(np.concatenate, zip(*ended, strict=True))
    row, other = row[other != open_.reader[row]], other[other != open_.reader[row]]
    low, many = span(row, open_.of)
    for rows in portions(many):
        budget.check()
        each = np.repeat(rows, many[rows])
        at = ranges(low[rows], many[rows])
        between = (other[at] != open_.writer[each]) & reaches(
            clock, chain, end[each], events.after(other[at])
        )
        out[each[between]] = True
    return out


class ConditionalEdges:
    """Edges that hold under a literal, in a history with undecided reads, and their clauses.

    ``size`` is the number of transactions, ``variables`` the largest variable number. The clauses
    imply that each undecided read of a counting transaction has a writer that counts.
    """

    def __init__(
        self, open_: AmbiguousReads, choosing: VersionOrderConstraints, budget: Budget
    ) -> None:
        self.open, self.choosing, self.budget = open_, choosing, budget
        self.size = choosing.seen.initial + 1
        self.variables = len(open_.writer) + int(open_.possible.sum())
        self.counts = open_.counting()
        self.clauses = open_.clauses()
        self._columns()
        self._orders()
        parts = map(np.concatenate, zip(*self._edges(), strict=True))
        self.tails, self.heads, self.literal = self._joined(*parts)
        """Shape (n_edges,): source event, target event and literal of each edge."""

    def guess(self, place: NDArray[np.int64]) -> list[int]:
        """Return the literals of orders that hold in an event order.

        Parameters
        ----------
        place : ndarray of int64, shape (n_events,)
            Position of each event in the order.
        """
        end = self.choosing.events.end
        first, second = self.pair // self.size, self.pair % self.size
        guess = place[end(first)] < place[end(second)]
        guess &= (self.counts[first] == 0) & (self.counts[second] == 0)
        found: list[int] = np.unique(self.order[guess]).tolist()
        return found

    def _columns(self) -> None:
        """Set the columns of writers per key and of possible reads with their literals; 0 is
        true.
        """
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
        """Set the literals of unknown orders of two writers, where they matter, by pair code.

        Pair code of (first, second): ``first * size + second``.
        """
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
        """Yield edges with literals: of versions, of candidates, of missed versions, of time."""
        events, open_ = self.choosing.events, self.open
        if events.level in TIMED:
            yield self._in_time()
        first, second = self.pair // self.size, self.pair % self.size
        yield self._possible(events.end(first), events.after(second), self.order, self.order)
        literal = np.arange(len(open_.of)) + 1
        begin = events.begin(open_.reader)[open_.of]
        yield self._possible(events.end(open_.writer), begin, literal, literal)
        low, many = span(self.key, self.read_key)
        for rows in self._batches(many):
            row, writer = np.repeat(rows, many[rows]), self.writer[ranges(low[rows], many[rows])]
            yield from self._missed(row, writer)

    def _in_time(self) -> tuple[NDArray[np.int64], ...]:
        """Return the real-time edges from and to possible transactions, which hold if they count.

        Those between transactions that certainly count are known already.
        """
        events, seen = self.choosing.events, self.choosing.seen
        started, ended = seen.history.started, seen.history.ended
        assert started is not None
        assert ended is not None
        possible = self.open.possible[:-1]
        maybe, there = np.flatnonzero(possible), np.flatnonzero(possible | seen.counts)
        source, target = ended_before_start(seen, maybe)
        after = [there[started[there] > ended[one]] for one in maybe.tolist()]
        source = np.append(source, np.repeat(maybe, [*map(len, after)]))
        target = np.concatenate([target, *after])
        return self._possible(
            events.end(source), events.begin(target), self.counts[source], self.counts[target]
        )

    def _missed(
        self, row: NDArray[np.int64], writer: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], ...]]:
        """Yield anti-dependencies from possible readers of a version to these writers."""
        events, chain = self.choosing.events, self.choosing.following.chain
        reader, version = self.read_by[row], self.read_from[row]
        good = (writer != version) & (writer != reader) & ~self.choosing.knows(writer, version)
        row, writer, reader, version = row[good], writer[good], reader[good], version[good]
        known = self.choosing.knows(version, writer)
        # Of the known later writers that count, the first one of each chain implies the rest.
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
        """Return the unknown edges that hold if two literals are true, as codes; 0 is always true.

        Edges that would close a cycle with known ones become clauses instead.
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
        """Return each edge once, with its literal.

        That is the literal of its only condition, or a new one that any of its conditions implies.
        """
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
        """Yield rows in portions, by the number of items they stand for; check the budget."""
        for rows in portions(many):
            self.budget.check()
            yield rows


def solve_read_from(
    open_: AmbiguousReads, choosing: VersionOrderConstraints, budget: Budget
) -> tuple[AttributedReads, NDArray[np.int64]] | None:
    """Return the writer of each read and the events in an order that the level admits.

    Parameters
    ----------
    open_ : AmbiguousReads
        Undecided reads with their candidates.
    choosing : VersionOrderConstraints
        Constraints of the decided reads, acyclic.
    budget : Budget
        Limits of time and memory.

    Returns
    -------
    tuple of AttributedReads and ndarray of int64 of shape (n_events,), or None
        None if no choice of writers and no order explain the history.

    Raises
    ------
    Limit
        TimeLimit or MemoryLimit if the ``budget`` is spent.
    """
    if open_.lost() is not None:
        return None
    open_, narrowed = prune_read_from(open_, choosing, budget)
    if narrowed is None:
        return None
    choosing = narrowed
    known = drop_chain_edges(choosing.graph, choosing.chain)
    size = len(choosing.chain)
    order = topological_order(size, *known)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    begin, end = choosing.events.begin(open_.reader), choosing.events.end(open_.writer)
    guess = open_.latest(place[begin], place[end])
    if not find_misread(open_.seen, choosing.events.level, order):
        return open_.chosen(guess), order
    leads = partial(reaches, choosing.clock, choosing.chain)
    misses = ConditionalEdges(open_, choosing, budget)
    found = solve_order(
        known,
        leads,
        (misses.tails, misses.heads),
        misses.literal,
        place,
        budget=budget,
        clauses=misses.clauses,
        phases=[*misses.guess(place), *(guess + 1).tolist()],
    )
    if found is None:
        return None
    order, sign = found
    true = np.flatnonzero(sign[1 : len(open_.writer) + 1] > 0)
    return open_.chosen(true), order


SECONDS = 20.0
"""Time limit, in seconds, for prefix consistency."""
STARTS = 32
"""Number of transactions on cycles, about, from which a shortest cycle is sought per answer."""


def search_read_from(open_: AmbiguousReads, level: str, budget: Budget) -> AttributedReads | None:
    """Return a choice of writers with which the level holds, or None if there is none.

    Parameters
    ----------
    open_ : AmbiguousReads
        Undecided reads with their candidates.
    level : str
        One of POLYNOMIAL.
    budget : Budget
        Limits of time and memory.

    Raises
    ------
    Limit
        TimeLimit or MemoryLimit if the ``budget`` is spent.
    """
    from pysat.solvers import Solver

    if open_.lost() is not None:
        return None
    stronger = _at_prefix_consistency(open_, budget.within(SECONDS))
    if stronger is not None:
        return stronger
    size = open_.seen.initial + 1
    known = saturate(open_.seen, "causal")
    place = np.argsort(topological_order(size, known.source, known.target))
    if len(place) < size:
        place = np.arange(size)
    with Solver(name="glucose4", bootstrap_with=open_.clauses()) as solver:
        guess = open_.latest(place[open_.reader], place[open_.writer])
        solver.set_phases((guess + 1).tolist())
        while True:
            with budget.stopping(solver.interrupt):
                found = solver.solve_limited(expect_interrupt=True)
            if not found:
                return None
            true = np.array(solver.get_model() or [0])
            rows = true[(true > 0) & (true <= len(open_.writer))] - 1
            seen = open_.chosen(rows)
            edges = saturate(seen, level)
            learned = {
                _needed(open_, rows, trace_cycle(seen, level, edges, cycle))
                for cycle in _cycles(size, edges)
            }
            if not learned:
                return seen
            if () in learned:
                return None
            for needed in learned:
                solver.add_clause([-one for one in needed])
            budget.check()


def _at_prefix_consistency(open_: AmbiguousReads, budget: Budget) -> AttributedReads | None:
    """Return reads with writers at prefix consistency.

    Returns None if there are none, or if the budget is spent.
    """
    with suppress(Limit):
        choosing = VersionOrderConstraints(open_.seen, Events("prefix-consistency"))
        found = solve_read_from(open_, choosing, budget) if choosing.narrow(budget) else None
        return None if found is None else found[0]
    return None


def _cycles(size: int, edges: EdgeColumns) -> Iterator[tuple[int, ...]]:
    """Yield short cycles, as edge numbers."""
    knot = strong_components(size, edges.source, edges.target, np.arange(size))
    within = np.flatnonzero((knot[edges.source] >= 0) & (knot[edges.source] == knot[edges.target]))
    source, target = edges.source[within], edges.target[within]
    nodes = np.unique(source)
    for start in nodes[:: max(1, len(nodes) // STARTS)].tolist():
        cycle = find_path(size, source, target, start, {start})
        assert cycle is not None
        yield tuple(within[[*cycle]].tolist())


def _needed(
    open_: AmbiguousReads, rows: NDArray[np.int64], steps: Iterable[Precedence]
) -> tuple[int, ...]:
    """Return the literals of the chosen candidates and counting transactions that the steps
    need.
    """
    chosen = dict(zip(open_.read[open_.of[rows]].tolist(), (rows + 1).tolist(), strict=True))
    counting = open_.counting()
    found: set[int] = set()
    for step in steps:
        for one in (step, *step.because):
            if one.read in chosen:
                found.add(chosen[one.read])
        if step.kind == "co" and counting[step.source]:
            found.add(int(counting[step.source]))
    return tuple(sorted(found))
