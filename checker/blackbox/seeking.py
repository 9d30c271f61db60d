"""Levels without a version order, where several wrote a value: who was read from is tried until there is no cycle.

What explains a history at prefix consistency explains it at the weaker levels; so that is tried for a while. Then a
solver chooses a candidate for each undecided read. What the level's axioms say of that is looked at for cycles
(``saturating``), and each one found rules out what it needs: those candidates together.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.columnar_graph import knots, path_of, topological
from isolitmus.checker.blackbox.cycles import traced
from isolitmus.checker.blackbox.events import Events
from isolitmus.checker.blackbox.read_from_sat import elected
from isolitmus.checker.blackbox.saturation import saturated
from isolitmus.checker.blackbox.version_order import Choosing
from isolitmus.model.errors import Limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.precedence import Arrows, Precedence
    from isolitmus.checker.blackbox.read_from import Attributed
    from isolitmus.checker.blackbox.undecided import Undecided
    from isolitmus.model.budget import Budget

__all__ = ["sought"]

SECONDS = 20.0
"""How long a stronger level is tried."""
STARTS = 32
"""From how many transactions on cycles a shortest one is looked for, after each choice."""


def sought(open_: Undecided, level: str, budget: Budget) -> Attributed | None:
    """Who wrote what each read saw, so that the level holds; None: there is no such choice."""
    from pysat.solvers import Solver

    if open_.lost() is not None:
        return None
    stronger = _at_prefix_consistency(open_, budget.within(SECONDS))
    if stronger is not None:
        return stronger
    size = open_.seen.initial + 1
    known = saturated(open_.seen, "causal")
    place = np.argsort(topological(size, known.source, known.target))
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
            edges = saturated(seen, level)
            learned = {
                _needed(open_, rows, traced(seen, level, edges, cycle))
                for cycle in _cycles(size, edges)
            }
            if not learned:
                return seen
            if () in learned:
                return None
            for needed in learned:
                solver.add_clause([-one for one in needed])
            budget.check()


def _at_prefix_consistency(open_: Undecided, budget: Budget) -> Attributed | None:
    """Who wrote what each read saw at this stronger level; None: nobody, or it is not known so soon."""
    with suppress(Limit):
        choosing = Choosing(open_.seen, Events("prefix-consistency"))
        found = elected(open_, choosing, budget) if choosing.narrow(budget) else None
        return None if found is None else found[0]
    return None


def _cycles(size: int, edges: Arrows) -> Iterator[tuple[int, ...]]:
    """Short cycles, as the edges that are on them."""
    knot = knots(size, edges.source, edges.target, np.arange(size))
    within = np.flatnonzero((knot[edges.source] >= 0) & (knot[edges.source] == knot[edges.target]))
    source, target = edges.source[within], edges.target[within]
    nodes = np.unique(source)
    for start in nodes[:: max(1, len(nodes) // STARTS)].tolist():
        cycle = path_of(size, source, target, start, {start})
        assert cycle is not None
        yield tuple(within[[*cycle]].tolist())


def _needed(
    open_: Undecided, rows: NDArray[np.int64], steps: Iterable[Precedence]
) -> tuple[int, ...]:
    """The literals of candidates, among those that were chosen, without which steps do not follow."""
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
