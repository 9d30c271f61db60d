"""What serializable and snapshot isolation say of recorded lists: what each append followed is taken as read.

Kingsbury and Alvaro, Elle, VLDB 2020, section 3: the lists that were read tell the order of the versions. At these
two levels nobody else writes a key between a transaction's snapshot and its append, so the snapshot ended with the
element before. With that read beside each append the history is one of registers; an order that is found builds
every list that was read, or the verdict is unknown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.recorded.judging import JudgedRecord, judge_recorded
from isolitmus.checker.recorded.naming import operation_name
from isolitmus.model.errors import UnknownName, near
from isolitmus.model.register_history import COMMITTED, INITIAL

if TYPE_CHECKING:
    from isolitmus.model.budget import Budget
    from isolitmus.model.list_history import ListHistory
    from isolitmus.model.register_history import RegisterHistory

__all__ = ["LISTED", "judge_lists"]

LISTED = ("snapshot-isolation", "serializable")
"""Levels at which lists are judged."""


def judge_lists(lists: ListHistory, level: str, *, budget: Budget | None = None) -> JudgedRecord:
    """What one of LISTED says of lists; UnknownName for another level. Where the order of appends breaks it, what was
    judged has the reads of the elements before them, too.

    >>> from isolitmus.model.list_history import ListHistory
    >>> from isolitmus.model.register_history import RegisterHistory
    >>> registers = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 2]),
    ...     np.array([True, False]), np.array([0, 0]), np.array([7, 7]), np.array([1, 2]),
    ... )
    >>> judge_lists(ListHistory(registers, np.array([0, 0, 1]), np.array([7])), "serializable")
    serializable: allowed, in the order 1, 2
    """
    if level not in LISTED:
        raise UnknownName(f"no level '{level}' for recorded lists{near(level, LISTED)}")
    history = lists.registers
    alone = judge_recorded(history, level, budget=budget)
    if alone.verdict == "forbidden":
        return alone
    cells = list(zip(history.key[history.is_write], history.value[history.is_write], strict=True))
    if len({*cells}) < len(cells):
        reason = "an element is appended twice: a list does not tell whose it is"
        return JudgedRecord(history, level, "unknown", reason=reason)
    owner = np.repeat(np.arange(len(history.session)), np.diff(history.first)).tolist()
    longest: dict[int, int] = {}
    reads = [
        int(read)
        for read in np.flatnonzero(~history.is_write)
        if history.status[owner[read]] == COMMITTED
    ]
    for read in sorted(reads, key=lambda one: -len(lists.list_of(one))):
        most = longest.setdefault(int(history.key[read]), read)
        found = lists.list_of(read)
        if not np.array_equal(lists.list_of(most)[: len(found)], found):
            both = " and ".join(operation_name(history, one) for one in (read, most))
            reason = f"neither list begins the other: {both}"
            return JudgedRecord(history, level, "forbidden", reason=reason, torn=read)
    torn = _torn(lists, reads, owner)
    if torn is not None:
        reason = (
            f"appends of one transaction are missing or torn apart: {operation_name(history, torn)}"
        )
        return JudgedRecord(history, level, "forbidden", reason=reason, torn=torn)
    judged = judge_recorded(_followed(lists, owner, longest), level, budget=budget)
    if judged.verdict == "forbidden":
        return judged
    if judged.verdict == "allowed" and not _builds(lists, judged.order, reads, owner):
        reason = "the order that was found does not build the lists that were read"
        return JudgedRecord(history, level, "unknown", reason=reason)
    return replace(judged, history=history)


def _torn(lists: ListHistory, reads: list[int], owner: list[int]) -> int | None:
    """A read of a list without an own append, or with another after one that its transaction did not do before."""
    history = lists.registers
    earlier: dict[int, int] = {}  # of an append, the one before it of its transaction and key
    latest: dict[tuple[int, int], int] = {}
    append: dict[tuple[int, int], int] = {}
    own: dict[int, int] = {}  # of a read, the latest own append before it
    for one in range(len(history.key)):
        group = owner[one], int(history.key[one])
        if history.is_write[one]:
            append[group[1], int(history.value[one])] = one
            if group in latest:
                earlier[one] = latest[group]
            latest[group] = one
        elif group in latest:
            own[one] = latest[group]
    for read in reads:
        key = int(history.key[read])
        found = [append.get((key, element), -1) for element in lists.list_of(read).tolist()]
        if read in own and own[read] not in found[-1:]:
            return read
        for place, one in enumerate(found):
            if one in earlier and (place == 0 or found[place - 1] != earlier[one]):
                return read
    return None


def _followed(lists: ListHistory, owner: list[int], longest: dict[int, int]) -> RegisterHistory:
    """The registers, and before the first append of a transaction to a key a read of the element before."""
    history = lists.registers
    before: dict[tuple[int, int], int] = {}
    for key, read in longest.items():
        last = INITIAL
        for element in lists.list_of(read).tolist():
            before[key, element] = last
            last = element
    first: dict[tuple[int, int], int] = {}
    for one in np.flatnonzero(history.is_write).tolist():
        if history.status[owner[one]] == COMMITTED:
            first.setdefault((owner[one], int(history.key[one])), one)
    at = sorted(one for (_, key), one in first.items() if (key, int(history.value[one])) in before)
    each = np.array(at, np.int64)
    found = [before[int(history.key[one]), int(history.value[one])] for one in at]
    return replace(
        history,
        first=history.first + np.searchsorted(each, history.first, "left"),
        is_write=np.insert(history.is_write, each, False),
        key=np.insert(history.key, each, history.key[each]),
        value=np.insert(history.value, each, np.array(found, np.int64)),
        line=np.insert(history.line, each, history.line[each]),
    )


def _builds(lists: ListHistory, order: tuple[int, ...], reads: list[int], owner: list[int]) -> bool:
    """Whether each list is what was there at its last element: appends in the order, and then own ones."""
    history = lists.registers
    built: dict[int, list[int]] = {}
    for number in order:
        for one in range(int(history.first[number]), int(history.first[number + 1])):
            if history.is_write[one]:
                built.setdefault(int(history.key[one]), []).append(int(history.value[one]))
    for read in reads:
        found, key = lists.list_of(read).tolist(), int(history.key[read])
        begins = range(int(history.first[owner[read]]), read)
        own = [
            int(history.value[one])
            for one in begins
            if history.is_write[one] and history.key[one] == key
        ]
        if found != built.get(key, [])[: len(found)] or found[len(found) - len(own) :] != own:
            return False
    return True
