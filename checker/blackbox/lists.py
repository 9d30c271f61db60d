"""Recorded lists: their elements, who wrote what each read saw, flaws.

Recorded lists: who wrote what each read saw, and which versions came in which order.

Kingsbury and Alvaro, Elle, VLDB 2020, section 3: the lists that were read tell the order of the
versions. A read sees who appended its last element; versions of a key came as the longest list has
them, and then those that nobody read, in an order of which nothing is known. What a level makes of
that order its text says: those of Biswas and Enea do not look at it. Of a transaction whose end
nobody saw it is supposed that it committed if an element of it is in a list that counts.

The elements of recorded lists as columns, each with the append that put it there.

Lists that no order of appends gives, whatever a level promises.

Of a key the committed versions come in one order, at each level of the catalogue (``with ww from
versions``), and a version is what a transaction left: all of its appends, one right after another.
So of two lists one begins the other, and nothing stands between the appends of a transaction.

Which list shows that one version came before another, in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.precedence import (
    EdgeColumns,
    concatenate_edges,
    operation_name,
    value_name,
)
from isolitmus.checker.blackbox.read_from import Flaw, attribute_reads, last_own_writes, span
from isolitmus.model.blackbox_history import ABORTED, COMMITTED, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.precedence import Names
    from isolitmus.checker.blackbox.read_from import AttributedReads
    from isolitmus.model.blackbox_history import ListHistory, RegisterHistory
    from isolitmus.model.reason import Reason

__all__ = [
    "Elements",
    "ListFlaw",
    "attribute_lists",
    "find_list_flaws",
    "list_elements",
    "list_order_reason",
]


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """What the reads of some transactions saw, list by list in the order of each list."""

    read: NDArray[np.int64]
    """Of each element, the read that saw it, by operation."""
    place: NDArray[np.int64]
    """Of each element, its place in the list, from 0."""
    cell: NDArray[np.int64]
    """Of each element one number for its key and its value."""
    append: NDArray[np.int64]
    """Of each element, the one operation that appended it and was not aborted; −1: there is none,
    or several.
    """
    many: NDArray[np.int64]
    """Of each element, how many operations appended it that were not aborted."""
    cells: NDArray[np.int64]
    """Of each operation of the history the number of its key and its value."""

    def __len__(self) -> int:
        return len(self.read)

    def only(self, which: NDArray[np.bool_]) -> Elements:
        """These of them."""
        return Elements(
            self.read[which],
            self.place[which],
            self.cell[which],
            self.append[which],
            self.many[which],
            self.cells,
        )


def list_elements(lists: ListHistory, owner: NDArray[np.int64]) -> Elements:
    """The elements of all lists; ``owner``: of each operation its transaction.

    >>> from isolitmus.model.blackbox_history import ListHistory
    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 3]),
    ...     np.array([True, True, False]), np.array([0, 0, 0]), np.array([7, 8, 9]), np.array([1, 1, 2]),
    ... )
    >>> lists = ListHistory(registers, np.array([0, 0, 0, 3]), np.array([7, 8, 9]))
    >>> list_elements(lists, np.array([0, 0, 1])).append.tolist()
    [0, 1, -1]
    """
    history = lists.registers
    lengths = np.diff(lists.seen_first)
    read = np.repeat(np.arange(len(lengths)), lengths)
    code = np.unique(np.append(lists.seen, history.value), return_inverse=True)[1]
    key = np.append(history.key[read], history.key)
    cell, cells = np.split(code * len(history.keys) + key, [len(read)])
    appends = np.flatnonzero(history.is_write & (history.status[owner] != ABORTED))
    appends = appends[np.argsort(cells[appends], kind="stable")]
    low, many = span(cells[appends], cell)
    append = np.full(len(read), -1)
    append[many == 1] = appends[low[many == 1]]
    return Elements(read, np.arange(len(read)) - lists.seen_first[read], cell, append, many, cells)


WORDS = {
    "thin-air-read": "{read} after {element}, which nobody wrote",
    "aborted-read": "{read} after {element}, which an aborted transaction wrote: {write}",
    "future-read": "{read} after {element} before its own write: {write}",
    "dirty-write": (
        "{read} after {element}, and between two writes of one transaction another's: {write}"
    ),
    "lost-append": "{read} with {element} and without what its writer wrote before: {write}",
    "duplicate-element": "{read} with {element} more often than somebody wrote it: {write}",
    "incompatible-order": "neither list begins the other: {read}, and {write}",
}


@dataclass(frozen=True, slots=True, repr=False)
class ListFlaw(Flaw):
    """A read of a list that no order of appends gives, of a kind of WORDS; ``write``: the append
    that shows it, or of two lists of which neither begins the other the read of the other one.
    """

    element: int
    """The value in the list that it is about."""

    def said(self, numbers: Sequence[int] | None = None) -> str:
        """The flaw in words; ``numbers``: of the transactions of a part in the whole."""
        history = self.history
        return WORDS[self.kind].format(
            read=operation_name(history, self.read, numbers),
            write="" if self.write is None else operation_name(history, self.write, numbers),
            element=value_name(history, self.element),
        )


def find_list_flaws(
    lists: ListHistory,
    elements: Elements,
    owner: NDArray[np.int64],
    before: NDArray[np.int64],
) -> Iterator[ListFlaw]:
    """What is wrong with lists besides their last elements, of each read and kind the first.

    ``elements``: of the reads that count; ``owner``: of each operation its transaction; ``before``:
    of each append the one before it of its transaction and key, or −1.
    """
    history = lists.registers
    found: dict[tuple[str, int], ListFlaw] = {}

    def add(kind: str, at: int, write: int | None) -> None:
        read = int(elements.read[at])
        value = int(lists.list_of(read)[elements.place[at]])
        found.setdefault((kind, read), ListFlaw(history, kind, read, write, value))

    append, read = elements.append, elements.read
    ends = np.ones(len(elements), bool)
    ends[:-1] = read[1:] != read[:-1]
    for at, aborted in _with_writes(history, elements, (elements.many == 0) & ~ends):
        add(
            "thin-air-read" if aborted < 0 else "aborted-read", at, None if aborted < 0 else aborted
        )
    known = append >= 0
    own = known & (owner[append] == owner[read])
    for at in np.flatnonzero(own & (append > read) & ~ends).tolist():
        add("future-read", at, int(append[at]))
    for at, write, kind in _torn(elements, owner, before, ends):
        add(kind, at, write)
    for at, write in _with_writes(history, elements, _repeated(elements)):
        add("duplicate-element", at, write)
    counting = np.zeros(len(history.key), bool)
    counting[read] = True
    longest = lists.longest(counting)
    for stray in lists.strays(counting).tolist():
        at = int(np.searchsorted(read, stray))
        most = int(longest[history.key[stray]])
        other = lists.list_of(most)[: len(lists.list_of(stray))]
        add("incompatible-order", at + int(np.argmax(lists.list_of(stray) != other)), most)
    yield from found.values()


def _with_writes(
    history: RegisterHistory, elements: Elements, which: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Some elements, each with the first append of it, be it aborted, or −1."""
    (at,) = np.nonzero(which)
    (writes,) = np.nonzero(history.is_write)
    writes = writes[np.argsort(elements.cells[writes], kind="stable")]
    low, many = span(elements.cells[writes], elements.cell[at])
    found = np.full(len(at), -1)
    found[many > 0] = writes[low[many > 0]]
    return [*zip(at.tolist(), found.tolist(), strict=True)]


def _torn(
    elements: Elements,
    owner: NDArray[np.int64],
    before: NDArray[np.int64],
    ends: NDArray[np.bool_],
) -> Iterator[tuple[int, int, str]]:
    """Elements beside which another append of their transaction should stand and does not, and that
    append.
    """
    append, read, cell, cells = elements.append, elements.read, elements.cell, elements.cells
    known = append >= 0
    earlier = np.where(known, before[append], -1)
    left = np.append(-1, cell[:-1])
    left[elements.place == 0] = -1
    for at in np.flatnonzero((earlier >= 0) & (left != cells[earlier])).tolist():
        start = at - int(elements.place[at])
        torn = cells[earlier[at]] in cell[start:at]
        yield at, int(earlier[at]), "dirty-write" if torn else "lost-append"
    later = np.full(len(before), -1)
    (after,) = np.nonzero(before >= 0)
    later[before[after]] = after
    then = np.where(known & ~ends, later[append], -1)
    missing = (then >= 0) & (np.append(cell[1:], -1) != cells[then])
    missing &= (owner[append] != owner[read]) | (then < read)
    for at in np.flatnonzero(missing).tolist():
        rest = int(np.searchsorted(read, read[at], "right"))
        if cells[then[at]] not in cell[at + 1 : rest]:
            yield at, int(then[at]), "dirty-write"


def _repeated(elements: Elements) -> NDArray[np.bool_]:
    """Elements that are in a list for the second time, and more often than they were appended."""
    order = np.lexsort((elements.place, elements.cell, elements.read))
    read, cell = elements.read[order], elements.cell[order]
    here = np.arange(len(order))
    begins = np.ones(len(order), bool)
    begins[1:] = (read[1:] != read[:-1]) | (cell[1:] != cell[:-1])
    earlier = here - np.maximum.accumulate(np.where(begins, here, 0))
    most = elements.many[order]
    found = np.zeros(len(order), bool)
    found[order] = (earlier >= most) & (most > 0)
    return found


def attribute_lists(lists: ListHistory) -> AttributedReads:
    """Who wrote what each read of a list saw, and the order of versions that the lists show.

    >>> from isolitmus.model.blackbox_history import ListHistory
    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t", "u"), np.array([0, 1, 2]), np.array([0, 0, 0]), np.array([0, 1, 2, 3]),
    ...     np.array([True, True, False]), np.array([0, 0, 0]), np.array([7, 8, 8]), np.array([1, 2, 3]),
    ... )
    >>> seen = attribute_lists(ListHistory(registers, np.array([0, 0, 0, 2]), np.array([7, 8])))
    >>> seen.writer.tolist(), seen.observed.source.tolist(), seen.observed.target.tolist()
    ([1], [0], [1])
    """
    history = lists.registers
    owner = np.repeat(np.arange(len(history.session)), np.diff(history.first))
    elements = list_elements(lists, owner)
    status = history.status
    while True:
        status = _ended(status, owner, elements)
        seen = attribute_reads(replace(history, status=status))
        if (status[seen.counts] == COMMITTED).all():
            break
        status = np.where(seen.counts, COMMITTED, status).astype(status.dtype)
    lists = replace(lists, registers=seen.history)
    elements = elements.only(seen.counts[owner[elements.read]])
    group = owner * len(history.keys) + history.key
    before = np.where(history.is_write, last_own_writes(group, history.is_write)[0], -1)
    flaws = (*seen.flaws, *find_list_flaws(lists, elements, owner, before))
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


def _observed(seen: AttributedReads, lists: ListHistory, elements: Elements) -> EdgeColumns:
    """Who wrote a version comes before who wrote the next one; and the last of whom there was a
    read before all whom nobody read.
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
    parts = [EdgeColumns.of("ww", writer[at], writer[at + 1], longest[key[at]])]
    # Of an element that several appended none of them counts as one that nobody read.
    appends = np.flatnonzero(history.is_write & (history.status[owner] != ABORTED))
    read = appends[np.isin(elements.cells[appends], shown.cell)]
    there = history.key[read].astype(np.int64) * size + owner[read]
    final = np.full(len(history.keys), -1)
    final[key[last]] = writer[last]
    after = final[seen.written_key] >= 0
    after &= ~np.isin(seen.written_key * size + seen.written_by, there)
    unread = seen.written_key[after]
    parts.append(EdgeColumns.of("ww", final[unread], seen.written_by[after], longest[unread]))
    return concatenate_edges(parts)


def list_order_reason(
    names: Names, lists: ListHistory, first: int, second: int, key: int
) -> Reason | None:
    """The reason why a transaction's version of a key comes before another's; None: no list shows
    it.
    """
    read = int(lists.longest()[key])
    if read < 0:
        return None
    place = {element: at for at, element in enumerate(lists.list_of(read).tolist())}
    before, after = (place.get(names.left(one, key), -1) for one in (first, second))
    if before < 0 or 0 <= after < before:
        return None
    return names.listed(
        "recorded unlisted" if after < 0 else "recorded listed", first, second, read
    )
