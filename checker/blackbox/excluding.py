"""Levels that ask for a version order: which candidates of an undecided read are out, by what is known of the events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.clocks import add, reaches
from isolitmus.checker.blackbox.version_order import Choosing
from isolitmus.checker.blackbox.writers import portions, ranges, span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.undecided import Undecided
    from isolitmus.model.budget import Budget

__all__ = ["excluded"]


def excluded(
    open_: Undecided, choosing: Choosing, budget: Budget
) -> tuple[Undecided, Choosing | None]:
    """What is left of candidates, and what is known once reads that have one have it, beyond what was known before;
    None if that has a cycle, or a read has no candidate left.
    """
    while True:
        graph = choosing.graph
        choosing = Choosing(open_.seen, choosing.events)
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


def _from_the_start(choosing: Choosing) -> None:
    """What was there before all comes before possible transactions, too."""
    events, chain = choosing.events, choosing.chain
    _, first = np.unique(chain, return_index=True)
    first = first[chain[first] != chain[-1]]
    initial = events.end(np.full(len(first), choosing.seen.initial))
    add(choosing.graph, chain, initial, first)


def _out(open_: Undecided, choosing: Choosing, budget: Budget) -> NDArray[np.bool_]:
    """The candidates that come after the reader, or before another writer of the key that the reader comes after."""
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
