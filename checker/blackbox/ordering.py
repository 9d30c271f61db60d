"""Orders of events for what pruning leaves open: a guess, then a solver that learns the cycles it makes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.clocks import clocks, direct, reaches
from isolitmus.checker.blackbox.columnar_graph import cheap_cycles, knots, topological
from isolitmus.checker.blackbox.writers import portions, ranges, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.version_order import Choosing
    from isolitmus.model.budget import Budget

    Leads = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]

__all__ = ["order_of", "solved"]

CLAUSES = 100_000
"""So many clauses are given to the solver between two looks at the budget."""
MOST = 100_000_000
"""The most pairs of edges that are looked at before the solver begins; of more it learns what it needs."""
MANY = 500
"""Up to so many edges that lie on cycles with each other, each two are looked at together."""
CYCLES = 100
"""The most cycles that are learned from one answer of the solver."""


def order_of(choosing: Choosing, budget: Budget) -> NDArray[np.int64] | None:
    """The events in an order that the level admits; None: there is none. TimeLimit if the ``budget`` ends it."""
    known = direct(choosing.graph, choosing.chain)
    size = len(choosing.chain)
    order = _guess(choosing, known)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    if _explains(choosing, place):
        return order
    return _solved(choosing, known, place, budget)


def _guess(
    choosing: Choosing, known: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """An order of events that keeps what is known: one transaction after another, if there is one like that."""
    each, size = choosing.events.each, len(choosing.chain)
    source, target = known[0] // each, known[1] // each
    apart = source != target
    order = topological(size // each, source[apart], target[apart])
    if len(order) < size // each:
        return topological(size, *known)
    return (order[:, None] * each + np.arange(each)).reshape(-1)


def _explains(choosing: Choosing, place: NDArray[np.int64]) -> bool:
    """Whether no version is there before those who read an earlier one began; at snapshot isolation, before
    who wrote it began, either. Events have these places in an order that keeps what is known.
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
    choosing: Choosing,
    known: tuple[NDArray[np.int64], NDArray[np.int64]],
    place: NDArray[np.int64],
    budget: Budget,
) -> NDArray[np.int64] | None:
    """By a solver, from what is known: one variable says of two transactions who is first, of all keys that both write."""
    clock = clocks(choosing.graph, choosing.chain, budget)
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
    found = solved(known, leads, (tails, heads), of, place, budget=budget, phases=phases)
    return None if found is None else found[0]


def solved(
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
    """An order of all that is known and of those edges whose literal is true, and the sign of each variable, by its
    number, where the clauses hold; None: there is none. ``place`` is a node's in an order of what is known.
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
            order = topological(size, source, target)
            if len(order) == size:
                return order, value
            knot = knots(size, source, target, place)
            inside = taken[(knot[tails[taken]] >= 0) & (knot[tails[taken]] == knot[heads[taken]])]
            for number in np.unique(knot[tails[inside]]).tolist():
                on = inside[knot[tails[inside]] == number]
                budget.check()
                if len(on) > MANY:
                    free = (knot[known[0]] == number) & (knot[known[1]] == number)
                    paid = tails[on], heads[on]
                    cycles = cheap_cycles(size, (known[0][free], known[1][free]), paid, CYCLES)
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
    """The literals of which no two can be true: an edge of the one and one of the other are on a cycle. Two
    such edges overlap in any order that keeps what is known.
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
    """Short cycles through some of the edges, each as the edges that are on it; what is known leads from one to the
    next.
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
