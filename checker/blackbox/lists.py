"""Recorded lists: who wrote what each read saw, and which versions came in which order.

Kingsbury and Alvaro, Elle, VLDB 2020, section 3: the lists that were read tell the order of the versions. A read sees
who appended its last element; versions of a key came as the longest list has them, and then those that nobody
read, in an order of which nothing is known. What a level makes of that order its text says: those of Biswas and
Enea do not look at it. Of a transaction whose end nobody saw it is supposed that it committed if an element of it is
in a list that counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.elements import elements_of
from isolitmus.checker.blackbox.list_flaws import list_flaws
from isolitmus.checker.blackbox.naming import operation_name, value_name
from isolitmus.checker.blackbox.precedence import Arrows, concatenated
from isolitmus.checker.blackbox.read_from import attributed, own_writes
from isolitmus.model.blackbox_history import ABORTED, COMMITTED, UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.elements import Elements
    from isolitmus.checker.blackbox.read_from import Attributed
    from isolitmus.model.list_history import ListHistory

__all__ = ["attributed_lists"]


def attributed_lists(lists: ListHistory) -> Attributed:
    """Who wrote what each read of a list saw, and the order of versions that the lists show.

    >>> from isolitmus.model.list_history import ListHistory
    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t", "u"), np.array([0, 1, 2]), np.array([0, 0, 0]), np.array([0, 1, 2, 3]),
    ...     np.array([True, True, False]), np.array([0, 0, 0]), np.array([7, 8, 8]), np.array([1, 2, 3]),
    ... )
    >>> seen = attributed_lists(ListHistory(registers, np.array([0, 0, 0, 2]), np.array([7, 8])))
    >>> seen.writer.tolist(), seen.observed.source.tolist(), seen.observed.target.tolist()
    ([1], [0], [1])
    """
    history = lists.registers
    owner = np.repeat(np.arange(len(history.session)), np.diff(history.first))
    elements = elements_of(lists, owner)
    status = history.status
    while True:
        status = _ended(status, owner, elements)
        seen = attributed(replace(history, status=status))
        if (status[seen.counts] == COMMITTED).all():
            break
        status = np.where(seen.counts, COMMITTED, status).astype(status.dtype)
    lists = replace(lists, registers=seen.history)
    elements = elements.only(seen.counts[owner[elements.read]])
    group = owner * len(history.keys) + history.key
    before = np.where(history.is_write, own_writes(group, history.is_write)[0], -1)
    flaws = (*seen.flaws, *list_flaws(lists, elements, owner, before))
    return replace(
        seen,
        flaws=tuple(sorted(flaws, key=lambda flaw: flaw.read)),
        ambiguous=_ambiguity(lists, elements),
        observed=_observed(seen, lists, elements),
        lists=lists,
    )


def _ended(
    status: NDArray[np.int8], owner: NDArray[np.int64], elements: Elements
) -> NDArray[np.int8]:
    """How each transaction ended; unknown is one of which no element is in a list that counts."""
    status = status.copy()
    known = elements.append >= 0
    reader, writer = owner[elements.read[known]], owner[elements.append[known]]
    while True:
        more = writer[(status[reader] == COMMITTED) & (status[writer] == UNKNOWN)]
        if not len(more):
            return status
        status[more] = COMMITTED


def _ambiguity(lists: ListHistory, elements: Elements) -> str:
    (several,) = np.nonzero(elements.many > 1)
    if not len(several):
        return ""
    read = int(elements.read[several[0]])
    element = value_name(lists.registers, int(lists.list_of(read)[elements.place[several[0]]]))
    name = operation_name(lists.registers, read)
    return (
        f"{name}, a list with {element}, which is written twice: a list does not tell whose it is"
    )


def _observed(seen: Attributed, lists: ListHistory, elements: Elements) -> Arrows:
    """Who wrote a version comes before who wrote the next one; and the last of whom there was a read before all whom
    nobody read.
    """
    history, owner, size = lists.registers, seen.owner, seen.initial
    counting = np.zeros(len(history.key), bool)
    counting[elements.read] = True
    longest = lists.longest(counting)
    shown = elements.only(np.isin(elements.read, longest[longest >= 0]))
    known = shown.only(shown.append >= 0)
    key, writer = history.key[known.read].astype(np.int64), owner[known.append]
    order = np.argsort(key, kind="stable")
    key, writer = key[order], writer[order]
    last = np.ones(len(key), bool)
    last[:-1] = key[1:] != key[:-1]
    (at,) = np.nonzero(~last[:-1] & (writer[1:] != writer[:-1]))
    parts = [Arrows.of("ww", writer[at], writer[at + 1], longest[key[at]])]
    # Of an element that several appended none of them counts as one that nobody read.
    appends = np.flatnonzero(history.is_write & (history.status[owner] != ABORTED))
    read = appends[np.isin(elements.cells[appends], shown.cell)]
    there = history.key[read].astype(np.int64) * size + owner[read]
    final = np.full(len(history.keys), -1)
    final[key[last]] = writer[last]
    after = final[seen.written_key] >= 0
    after &= ~np.isin(seen.written_key * size + seen.written_by, there)
    unread = seen.written_key[after]
    parts.append(Arrows.of("ww", final[unread], seen.written_by[after], longest[unread]))
    return concatenated(parts)
