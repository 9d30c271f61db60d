"""Levels that ask for a version order, where several wrote a value: a solver says who was read from, too.

Each read that is undecided has one of its candidates; what follows from that, given the order of two versions, is an
edge that is there if both are so. A transaction that may have committed has edges and needs writers for its reads
if it is read from.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.recorded.clocks import direct, reaches
from isolitmus.checker.recorded.excluding import excluded
from isolitmus.checker.recorded.misses import Misses
from isolitmus.checker.recorded.ordering import solved
from isolitmus.checker.recorded.replaying import misread
from isolitmus.checker.recorded.topology import topological

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.recorded.choosing import Choosing
    from isolitmus.checker.recorded.observing import Attributed
    from isolitmus.checker.recorded.undecided import Undecided
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
