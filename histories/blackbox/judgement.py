"""Verdicts of levels on recorded histories, of registers or of lists.

Levels of POLYNOMIAL are decided by saturation; those of ORDERED and TIMED by constraints on the
version order and, for what these leave open, a SAT solver. Where several transactions wrote a value
that was read, the writer is searched for, too. Each cycle and each order found is checked again
(`recheck`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from isolitmus.histories.blackbox.columnar_graph import find_cycle, latest_edges
from isolitmus.histories.blackbox.cycles import trace_cycle, trace_version_cycle
from isolitmus.histories.blackbox.events import TIMED, Events, has_times
from isolitmus.histories.blackbox.lists import attribute_lists
from isolitmus.histories.blackbox.precedence import concatenate_edges, operation_name
from isolitmus.histories.blackbox.read_from import attribute_reads, find_ambiguous_reads
from isolitmus.histories.blackbox.read_from_sat import search_read_from, solve_read_from
from isolitmus.histories.blackbox.recheck import (
    confirm_cycle,
    find_misattributed_read,
    find_misbuilt_list,
    find_misread,
)
from isolitmus.histories.blackbox.saturation import saturate
from isolitmus.histories.blackbox.version_order import VersionOrderConstraints, solve_version_order
from isolitmus.histories.readers.blackbox_history import ListHistory
from isolitmus.model.budget import Budget
from isolitmus.model.display import ReadableRepr, first_lines
from isolitmus.model.errors import Limit, UnknownName, near

if TYPE_CHECKING:
    from isolitmus.histories.blackbox.precedence import Precedence
    from isolitmus.histories.blackbox.read_from import AttributedReads, Flaw
    from isolitmus.histories.readers.blackbox_history import RegisterHistory

POLYNOMIAL = ("read-committed", "read-committed-biswas-enea", "read-atomic", "causal")
"""Levels that are decided in polynomial time."""
ORDERED = ("prefix-consistency", "snapshot-isolation", "serializable")
"""Levels that ask for a version order; deciding them is NP-complete. Those of TIMED ask for one,
too.
"""
SEEING_ORDER = ("read-committed", *ORDERED, *TIMED)
"""Levels that use an observed version order."""


@dataclass(frozen=True, slots=True)
class RecordVerdict(ReadableRepr):
    """Verdict of a level on a recorded history, with its evidence."""

    history: RegisterHistory
    """The judged history; for a history of lists, its last elements."""
    level: str
    verdict: Literal["allowed", "forbidden", "unknown"]
    """Allowed: some order of the transactions explains every read."""
    flaws: tuple[Flaw, ...] = ()
    """Reads that no order explains."""
    cycle: tuple[Precedence, ...] = ()
    """Cycle of edges that all follow from the history; empty if there are flaws, or if none was
    found by inference alone.
    """
    reason: str = ""
    """Clause that gives the reason of an unknown verdict, or of a forbidden one without a cycle."""
    order: tuple[int, ...] = ()
    """Transactions in commit order, if a version order was asked for and found."""
    lists: ListHistory | None = None
    """The whole lists, if they were used."""

    def __repr__(self) -> str:
        because = f": {self.reason}" if self.reason else ""
        names = ", ".join(str(number + 1) for number in self.order)
        order = f", in the order {names}" if names and len(self.order) < 20 else ""
        lines = [*map(repr, self.flaws), *map(repr, self.cycle)]
        return first_lines(
            [f"{self.level}: {self.verdict}{because}{order}", *(f"  {line}" for line in lines)]
        )


def judge_recorded(
    history: RegisterHistory | ListHistory, level: str, *, budget: Budget | None = None
) -> RecordVerdict:
    """Return the verdict of a level on a recorded history.

    Lists are judged with the version order that they show, as far as the level uses it.

    Parameters
    ----------
    history : RegisterHistory or ListHistory
        Recorded history.
    level : str
        One of POLYNOMIAL, ORDERED or TIMED.
    budget : Budget, optional
        Limits of time and memory (default: none).

    Returns
    -------
    RecordVerdict
        Unknown if the budget is spent before the level is decided. Also unknown if a list shows an
        element that several transactions appended, unless the level forbids the history anyway.

    Raises
    ------
    UnknownName
        For another level, or for one of TIMED if the history has no times.

    Examples
    --------
    >>> import numpy as np
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
    >>> lost = RegisterHistory(  # two read nothing of x, and each wrote it
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 4]),
    ...     np.array([False, True] * 2), np.zeros(4, int), np.array([-1, 1, -1, 2]),
    ...     np.arange(1, 5),
    ... )
    >>> judge_recorded(lost, "causal")
    causal: allowed
    >>> judge_recorded(lost, "snapshot-isolation").verdict
    'forbidden'
    """
    known = (*POLYNOMIAL, *ORDERED, *TIMED)
    if level not in known:
        raise UnknownName(f"unknown level '{level}' for recorded histories{near(level, known)}")
    if level in TIMED and not has_times(history.registers):
        raise UnknownName(f"{level} needs rt, which this history does not have")
    budget = budget or Budget()
    seen = reads_at_level(history, level)
    if seen.flaws:
        return RecordVerdict(seen.history, level, "forbidden", flaws=seen.flaws)
    try:
        return (_polynomial if level in POLYNOMIAL else _ordered)(seen, level, budget)
    except Limit as limit:
        return RecordVerdict(seen.history, level, "unknown", reason=str(limit))


def reads_at_level(history: RegisterHistory | ListHistory, level: str) -> AttributedReads:
    """Return the reads with their writers; for lists also the observed version order if ``level``
    uses it.
    """
    if not isinstance(history, ListHistory):
        return attribute_reads(history)
    seen = attribute_lists(history)
    if seen.flaws or level in SEEING_ORDER:
        return seen
    return replace(attribute_reads(seen.history), ambiguous=seen.ambiguous)


def find_contradiction(seen: AttributedReads, level: str, budget: Budget) -> RecordVerdict | None:
    """Return a forbidden verdict that holds whoever wrote what the unclear reads saw.

    Parameters
    ----------
    seen : AttributedReads
        Reads with their writers, as far as these are known.
    level : str
        One of POLYNOMIAL, ORDERED or TIMED.
    budget : Budget
        Limits of time and memory.

    Returns
    -------
    RecordVerdict or None
        None if the known reads do not contradict the level.

    Raises
    ------
    Limit
        TimeLimit or MemoryLimit if the ``budget`` is spent.
    """
    if seen.flaws:
        return RecordVerdict(seen.history, level, "forbidden", flaws=seen.flaws)
    if level in POLYNOMIAL:
        return _cyclic(seen, level, budget)
    choosing = VersionOrderConstraints(seen, Events(level))
    if not choosing.narrow(budget):
        return _forbidden(seen, level, trace_version_cycle(choosing))
    return (
        None if solve_version_order(choosing, budget) is not None else _unordered(choosing, budget)
    )


def _forbidden(seen: AttributedReads, level: str, cycle: tuple[Precedence, ...]) -> RecordVerdict:
    given = dict(zip(seen.read.tolist(), seen.writer.tolist(), strict=True))
    assert confirm_cycle(seen.lists or seen.history, level, cycle, given), f"{level}: {cycle}"
    return RecordVerdict(seen.history, level, "forbidden", cycle=cycle, lists=seen.lists)


def _cyclic(seen: AttributedReads, level: str, budget: Budget) -> RecordVerdict | None:
    """Return the forbidden verdict with a cycle of saturated edges; None without a cycle."""
    edges = concatenate_edges([saturate(seen, level, budget), seen.observed])
    columns, few = (edges.source, edges.target), None
    if level != "read-committed":  # which has no session order
        few = latest_edges(seen.chains(), *columns)
    cycle = find_cycle(seen.initial + 1, *columns, few)
    return (
        None if cycle is None else _forbidden(seen, level, trace_cycle(seen, level, edges, cycle))
    )


def _unordered(choosing: VersionOrderConstraints, budget: Budget) -> RecordVerdict:
    """Return the verdict that every version order has a cycle."""
    pairs = len(choosing.open(budget)) // 2
    reason = f"none of the orders of {pairs} pairs of versions has no cycle"
    seen, level = choosing.seen, choosing.events.level
    return RecordVerdict(seen.history, level, "forbidden", reason=reason, lists=seen.lists)


def _polynomial(seen: AttributedReads, level: str, budget: Budget) -> RecordVerdict:
    """Return the verdict of a level of POLYNOMIAL, by saturation."""
    budget.check()
    forbidden = _cyclic(seen, level, budget)
    if forbidden is not None:
        return forbidden
    if seen.ambiguous:
        return RecordVerdict(seen.history, level, "unknown", reason=seen.ambiguous)
    if len(seen.unclear):
        found = search_read_from(find_ambiguous_reads(seen), level, budget)
        if found is None:
            return _without_writers(seen, level)
        wrong = found.flaws or find_misattributed_read(found) or _cyclic(found, level, budget)
        assert not wrong, f"{level}: the choice of writers does not explain {wrong}"
    return RecordVerdict(seen.history, level, "allowed")


def _ordered(seen: AttributedReads, level: str, budget: Budget) -> RecordVerdict:
    """Return the verdict of a level by constraints on the version order, then a SAT solver."""
    choosing = VersionOrderConstraints(seen, Events(level))
    if not choosing.narrow(budget):
        return _forbidden(seen, level, trace_version_cycle(choosing))
    if seen.ambiguous:
        if solve_version_order(choosing, budget) is None:
            return _unordered(choosing, budget)
        return RecordVerdict(seen.history, level, "unknown", reason=seen.ambiguous)
    if len(seen.unclear):
        found = solve_read_from(find_ambiguous_reads(seen), choosing, budget)
        if found is None:
            return _without_writers(seen, level)
        seen, events = found
    else:
        order_found = solve_version_order(choosing, budget)
        if order_found is None:
            return _unordered(choosing, budget)
        events = order_found
    each = choosing.events.each
    wrong = find_misread(seen, level, events) or find_misbuilt_list(seen, level, events)
    assert not wrong, f"{level}: the order does not explain {wrong}"
    ends = (number // each for number in events.tolist() if number % each == each - 1)
    order = tuple(number for number in ends if number < seen.initial and seen.counts[number])
    return RecordVerdict(seen.history, level, "allowed", order=order)


def _without_writers(seen: AttributedReads, level: str) -> RecordVerdict:
    """Return the verdict that no choice of writers of the unclear reads explains the history."""
    many, first = len(seen.unclear), operation_name(seen.history, int(seen.unclear[0]))
    reason = f"none of those who wrote it can have been read from: {first}"
    if many > 1:
        reason = (
            f"several wrote what {many} reads saw, and no choice explains them; the first: {first}"
        )
    return RecordVerdict(seen.history, level, "forbidden", reason=reason)
