"""Orders of events for what pruning leaves open: a guess, then a solver that learns the cycles it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.recorded.clocks import direct
from isolitmus.checker.recorded.topology import cycle_of, path_of, topological

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.recorded.choosing import Choosing
    from isolitmus.model.budget import Budget

__all__ = ["order_of"]

CYCLES = 100
"""The most cycles that are learned from one answer of the solver."""


def order_of(choosing: Choosing, budget: Budget) -> NDArray[np.int64] | None:
    """The events in an order that the level admits; None: there is none. TimeLimit if the ``budget`` ends it."""
    source, target = direct(choosing.graph, choosing.chain)
    size = len(choosing.chain)
    order = topological(size, source, target)
    edges, option = choosing.open.edges()
    tails, heads = choosing.events.of(edges)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    ends = choosing.events.end(choosing.open.first), choosing.events.end(choosing.open.second)
    guess = place[ends[0]] < place[ends[1]]
    if (place[tails] < place[heads])[guess[option]].all():
        return order
    return _solved(choosing, guess, (source, target), (tails, heads, option), budget)


def _solved(
    choosing: Choosing,
    guess: NDArray[np.bool_],
    known: tuple[NDArray[np.int64], NDArray[np.int64]],
    optional: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    budget: Budget,
) -> NDArray[np.int64] | None:
    """By a solver: one variable says of two transactions who is first, of all keys that both write."""
    from pysat.solvers import Solver

    first, second = choosing.open.first, choosing.open.second
    size = len(choosing.chain)
    tails, heads, option = optional
    _, variable = np.unique(
        np.minimum(first, second) * size + np.maximum(first, second), return_inverse=True
    )
    literal = (variable + 1) * np.where(first < second, 1, -1)
    with Solver(name="glucose4") as solver:
        solver.set_phases(np.unique(literal[guess]).tolist())
        while True:
            with budget.stopping(solver.interrupt):
                found = solver.solve_limited(expect_interrupt=True)
            if not found:
                return None
            true = np.array(solver.get_model() or [0])
            value = np.zeros(int(variable.max()) + 2, np.int64)
            value[np.abs(true)[np.abs(true) < len(value)]] = true[np.abs(true) < len(value)]
            value[value == 0] = 1
            taken = np.sign(literal) == np.sign(value[np.abs(literal)])
            which = np.flatnonzero(taken[option])
            source = np.concatenate([known[0], tails[which]])
            target = np.concatenate([known[1], heads[which]])
            order = topological(size, source, target)
            if len(order) == size:
                return order
            for cycle in _cycles(size, source, target, len(known[0])):
                used = option[
                    which[[edge - len(known[0]) for edge in cycle if edge >= len(known[0])]]
                ]
                solver.add_clause([-int(one) for one in np.unique(literal[used])])
            budget.check()


def _cycles(
    size: int, source: NDArray[np.int64], target: NDArray[np.int64], known: int
) -> set[frozenset[int]]:
    """Some cycles, as sets of edges: short ones through edges that were chosen."""
    shortest = cycle_of(size, source, target)
    assert shortest is not None
    found = {frozenset(shortest)}
    free = np.zeros(size, bool)
    free[topological(size, source, target)] = True
    core = np.flatnonzero(~free[source] & ~free[target])
    chosen = core[core >= known]
    for edge in chosen[:: max(1, len(chosen) // CYCLES)].tolist():
        path = path_of(size, source[core], target[core], int(target[edge]), {int(source[edge])})
        if path is not None:
            found.add(frozenset([edge, *core[[*path]].tolist()]))
    return found
