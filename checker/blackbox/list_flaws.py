"""Lists that no order of appends gives, whatever a level promises.

Of a key the committed versions come in one order, at each level of the catalogue (``with ww from versions``), and a version
is what a transaction left: all of its appends, one right after another. So of two lists one begins the other, and
nothing stands between the appends of a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.naming import operation_name, value_name
from isolitmus.checker.blackbox.read_from import Flaw
from isolitmus.checker.blackbox.writers import span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.elements import Elements
    from isolitmus.model.blackbox_history import RegisterHistory
    from isolitmus.model.list_history import ListHistory

__all__ = ["ListFlaw", "list_flaws"]

WORDS = {
    "thin-air-read": "{read} after {element}, which nobody wrote",
    "aborted-read": "{read} after {element}, which an aborted transaction wrote: {write}",
    "future-read": "{read} after {element} before its own write: {write}",
    "dirty-write": "{read} after {element}, and between two writes of one transaction another's: {write}",
    "lost-append": "{read} with {element} and without what its writer wrote before: {write}",
    "duplicate-element": "{read} with {element} more often than somebody wrote it: {write}",
    "incompatible-order": "neither list begins the other: {read}, and {write}",
}


@dataclass(frozen=True, slots=True, repr=False)
class ListFlaw(Flaw):
    """A read of a list that no order of appends gives, of a kind of WORDS; ``write``: the append that shows it, or of
    two lists of which neither begins the other the read of the other one.
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


def list_flaws(
    lists: ListHistory,
    elements: Elements,
    owner: NDArray[np.int64],
    before: NDArray[np.int64],
) -> Iterator[ListFlaw]:
    """What is wrong with lists besides their last elements, of each read and kind the first.

    ``elements``: of the reads that count; ``owner``: of each operation its transaction; ``before``: of each append
    the one before it of its transaction and key, or −1.
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
    """Elements beside which another append of their transaction should stand and does not, and that append."""
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
