"""Recorded lists: writers of their elements, the version order that they show, and their flaws.

Kingsbury and Alvaro, Elle, VLDB 2020, section 3: the lists that were read show the version order.
A read reads from the transaction that appended its last element. The versions of a key come in the
order of the longest list; versions that nobody read come after these, in an unknown order. The text
of a level decides what it makes of that order: the levels of Biswas and Enea ignore it. A
transaction of unknown outcome is assumed committed if an element of it is in a list that counts.

At each level of the catalogue the committed versions of a key are totally ordered (``with ww from
versions``), and a version is all appends of one transaction, contiguously. So of two lists of a key
one is a prefix of the other, and nothing stands between the appends of a transaction. A list that
breaks this is a flaw at every level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.blackbox.precedence import (
    EdgeColumns,
    concatenate_edges,
    operation_name,
    value_name,
)
from isolitmus.histories.blackbox.read_from import Flaw, attribute_reads, last_own_writes, span
from isolitmus.histories.readers.blackbox_history import ABORTED, COMMITTED, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.histories.blackbox.precedence import Names
    from isolitmus.histories.blackbox.read_from import AttributedReads
    from isolitmus.histories.readers.blackbox_history import ListHistory, RegisterHistory
    from isolitmus.model.reason import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """Elements of all lists that some reads observed, as columns, in the order of each list."""

    read: NDArray[np.int64]
    """Shape (n_elements,): operation index of the read that observed the element."""
    place: NDArray[np.int64]
    """Shape (n_elements,): position of the element in its list, from 0."""
    cell: NDArray[np.int64]
    """Shape (n_elements,): code of the pair (key, value) of the element."""
    append: NDArray[np.int64]
    """Shape (n_elements,): operation index of the only append of the element that did not abort; −1
    if there is none, or more than one.
    """
    many: NDArray[np.int64]
    """Shape (n_elements,): number of appends of the element that did not abort."""
    cells: NDArray[np.int64]
    """Shape (n_operations,): code of the pair (key, value) of each operation of the history."""

    def __len__(self) -> int:
        return len(self.read)

    def only(self, which: NDArray[np.bool_]) -> Elements:
        """Return the elements that the mask ``which``, of shape (n_elements,), selects."""
        return Elements(
            self.read[which],
            self.place[which],
            self.cell[which],
            self.append[which],
            self.many[which],
            self.cells,
        )


def list_elements(lists: ListHistory, owner: NDArray[np.int64]) -> Elements:
    """Return the elements of all lists as columns.

    Parameters
    ----------
    lists : ListHistory
        History of appends and reads of lists.
    owner : ndarray of int64, shape (n_operations,)
        Transaction of each operation.

    Returns
    -------
    Elements
        One row per element of each list that was read.

    Examples
    --------
    >>> from isolitmus.histories.readers.blackbox_history import ListHistory
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 3]),
    ...     np.array([True, True, False]), np.array([0, 0, 0]), np.array([7, 8, 9]),
    ...     np.array([1, 1, 2]),
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
    "thin-air-read": "{read} after {element}, which no transaction wrote",
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
    """Read of a list that no order of appends explains; ``kind`` is a key of WORDS.

    ``write`` is the append that shows the flaw; of two lists of which neither is a prefix of the
    other, it is the read of the other list.
    """

    element: int
    """Value in the list that the flaw is about."""

    def said(self, numbers: Sequence[int] | None = None) -> str:
        """Return the flaw as text; ``numbers`` maps transactions of a part to their numbers in the
        whole.
        """
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
    """Yield the first flaw of each kind of each read, besides flaws of last elements.

    Parameters
    ----------
    lists : ListHistory
        History of appends and reads of lists.
    elements : Elements
        Elements of the reads that count.
    owner : ndarray of int64, shape (n_operations,)
        Transaction of each operation.
    before : ndarray of int64, shape (n_operations,)
        For each append, the previous append of its transaction to its key; −1 if there is none.

    Yields
    ------
    ListFlaw
        Flaws, each with the element that shows it.
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
    """Return the selected elements, each with its first append, aborted or not; −1 if there is
    none.
    """
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
    """Yield elements without the neighbouring append of their transaction, with that append and the
    kind.
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
    """Return a mask of elements that repeat in a list, more often than they were appended."""
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
    """Return the writer of each read of a list, and the version order that the lists show.

    Parameters
    ----------
    lists : ListHistory
        History of appends and reads of lists.

    Returns
    -------
    AttributedReads
        Reads with their writers, flaws of all lists, and the observed version order. Its
        ``ambiguous`` is not empty if a list shows an element that several transactions appended.

    Examples
    --------
    >>> from isolitmus.histories.readers.blackbox_history import ListHistory
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t", "u"), np.array([0, 1, 2]), np.array([0, 0, 0]),
    ...     np.array([0, 1, 2, 3]), np.array([True, True, False]), np.array([0, 0, 0]),
    ...     np.array([7, 8, 8]), np.array([1, 2, 3]),
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
    """Return the status of each transaction; one with an element in a list that counts is
    committed.
    """
    status = status.copy()
    known = elements.append >= 0
    reader, writer = owner[elements.read[known]], owner[elements.append[known]]
    while True:
        more = writer[(status[reader] == COMMITTED) & (status[writer] == UNKNOWN)]
        if not len(more):
            return status
        status[more] = COMMITTED


def _ambiguity(lists: ListHistory, elements: Elements) -> str:
    """Return why a list does not determine its writer; empty if no element is written twice."""
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
    """Return version-order edges: writer to next writer of the longest list of each key, and its
    last writer to each writer of a version that nobody read.
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
    # All appends of an element with several appends count as read.
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
    """Return the reason why the version of ``first`` comes before that of ``second``.

    Returns
    -------
    Reason or None
        None if the longest list of ``key`` does not show it.
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
