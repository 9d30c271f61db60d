"""Read-from by SAT, where several transactions wrote one value.

Levels that ask for a version order, where several wrote a value: a solver says who was read from,
too.

Each read that is undecided has one of its candidates; what follows from that, given the order of
two versions, is an edge that is there if both are so. A transaction that may have committed has
edges and needs writers for its reads if it is read from.

Levels that ask for a version order: which candidates of an undecided read are out, by what is known
of the events.

Edges between events that are there if something is so: who was read from, and which of two versions
came first.

Each has a literal: of a candidate (their numbers from 1), of a possible transaction that counts, of
an order of two writers, or of two of these together. Of two writers that count one variable says
who is first; where one of them may not count there are two, of which one is true if both count.

Levels without a version order, where several wrote a value: who was read from is tried until there
is no cycle.

What explains a history at prefix consistency explains it at the weaker levels; so that is tried for
a while. Then a solver chooses a candidate for each undecided read. What the level's axioms say of
that is looked at for cycles (``saturating``), and each one found rules out what it needs: those
candidates together.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.columnar_graph import (
    add_edges,
    drop_chain_edges,
    find_path,
    reaches,
    strong_components,
    topological_order,
)
from isolitmus.checker.blackbox.cycles import trace_cycle
from isolitmus.checker.blackbox.events import Events
from isolitmus.checker.blackbox.read_from import portions, ranges, span
from isolitmus.checker.blackbox.recheck import find_misread
from isolitmus.checker.blackbox.saturation import saturate
from isolitmus.checker.blackbox.version_order import VersionOrderConstraints, solve_order
from isolitmus.model.errors import Limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.precedence import EdgeColumns, Precedence
    from isolitmus.checker.blackbox.read_from import AmbiguousReads, AttributedReads
    from isolitmus.model.budget import Budget

__all__ = ["ConditionalEdges", "prune_read_from", "search_read_from", "solve_read_from"]


def prune_read_from(
    open_: AmbiguousReads, choosing: VersionOrderConstraints, budget: Budget
) -> tuple[AmbiguousReads, VersionOrderConstraints | None]:
    """What is left of candidates, and what is known once reads that have one have it, beyond what
    was known before; None if that has a cycle, or a read has no candidate left.
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
    """What was there before all comes before possible transactions, too."""
    events, chain = choosing.events, choosing.chain
    _, first = np.unique(chain, return_index=True)
    first = first[chain[first] != chain[-1]]
    initial = events.end(np.full(len(first), choosing.seen.initial))
    add_edges(choosing.graph, chain, initial, first)


def _out(
    open_: AmbiguousReads, choosing: VersionOrderConstraints, budget: Budget
) -> NDArray[np.bool_]:
    """The candidates that come after the reader, or before another writer of the key that the
    reader comes after.
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
    """The edges of a history with undecided reads that are not known, and the clauses of their
    literals.
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
        """Who wrote each key, and who may have read each version, with the literal that says so, or
        0.
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
        """The literals of who is first of two writers, where it is not known and matters: by the
        number of the pair.
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
        # Of those that are known to come later the first one of each chain says it of the rest, if
        # it counts.
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
        """Edges that are there if two literals are true, of which 0 always is: those that are not
        known, and close no cycle, by their number.
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
        """Each edge once: with the literal that it is there for, or a new one that follows from any
        two it is there for.
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
        """Rows, so many at once that not too many of what they stand for are looked at together."""
        for rows in portions(many):
            self.budget.check()
            yield rows


def solve_read_from(
    open_: AmbiguousReads, choosing: VersionOrderConstraints, budget: Budget
) -> tuple[AttributedReads, NDArray[np.int64]] | None:
    """Who wrote what each read saw, and the events in an order that the level admits; None: there
    are none. What is decided has no cycle.
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
"""How long a stronger level is tried."""
STARTS = 32
"""From how many transactions on cycles a shortest one is looked for, after each choice."""


def search_read_from(open_: AmbiguousReads, level: str, budget: Budget) -> AttributedReads | None:
    """Who wrote what each read saw, so that the level holds; None: there is no such choice."""
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
    """Who wrote what each read saw at this stronger level; None: nobody, or it is not known so
    soon.
    """
    with suppress(Limit):
        choosing = VersionOrderConstraints(open_.seen, Events("prefix-consistency"))
        found = solve_read_from(open_, choosing, budget) if choosing.narrow(budget) else None
        return None if found is None else found[0]
    return None


def _cycles(size: int, edges: EdgeColumns) -> Iterator[tuple[int, ...]]:
    """Short cycles, as the edges that are on them."""
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
    """The literals of candidates, among those that were chosen, without which steps do not
    follow.
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
