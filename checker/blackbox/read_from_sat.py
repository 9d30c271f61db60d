"""Levels that ask for a version order, where several wrote a value: a solver says who was read from, too.

Each read that is undecided has one of its candidates; what follows from that, given the order of two versions, is an
edge that is there if both are so. A transaction that may have committed has edges and needs writers for its reads
if it is read from.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.clocks import direct, reaches
from isolitmus.checker.blackbox.columnar_graph import topological
from isolitmus.checker.blackbox.excluding import excluded
from isolitmus.checker.blackbox.misses import Misses
from isolitmus.checker.blackbox.ordering import solved
from isolitmus.checker.blackbox.replaying import misread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.read_from import Attributed
    from isolitmus.checker.blackbox.undecided import Undecided
    from isolitmus.checker.blackbox.version_order import Choosing
    from isolitmus.model.budget import Budget

__all__ = ["elected"]


def elected(
    open_: Undecided, choosing: Choosing, budget: Budget
) -> tuple[Attributed, NDArray[np.int64]] | None:
    """Who wrote what each read saw, and the events in an order that the level admits; None: there are none. What is
    decided has no cycle.
    """
    if open_.lost() is not None:
        return None
    open_, narrowed = excluded(open_, choosing, budget)
    if narrowed is None:
        return None
    choosing = narrowed
    known = direct(choosing.graph, choosing.chain)
    size = len(choosing.chain)
    order = topological(size, *known)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    begin, end = choosing.events.begin(open_.reader), choosing.events.end(open_.writer)
    guess = open_.latest(place[begin], place[end])
    if not misread(open_.seen, choosing.events.level, order):
        return open_.chosen(guess), order
    leads = partial(reaches, choosing.clock, choosing.chain)
    misses = Misses(open_, choosing, budget)
    found = solved(
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
