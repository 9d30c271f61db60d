"""Whether an order of events explains what was read: each is carried out, one after another, by values, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.events import TIMED, Events
from isolitmus.checker.blackbox.naming import operation_name, transaction_name
from isolitmus.checker.blackbox.timing import out_of_time
from isolitmus.model.blackbox_history import ABORTED, COMMITTED, INITIAL

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.read_from import Attributed

__all__ = ["misattributed", "misbuilt", "misread"]


def misread(seen: Attributed, level: str, events: NDArray[int64]) -> str:
    """What the order does not explain, in words; empty: it explains all.

    At serializable an event is a transaction, else twice its number is its beginning, and one more its end. A
    transaction reads what is there when it begins, and its own writes; these are there for others when it ends. At
    snapshot isolation nobody else has written in between what it writes; sessions go on after what they did before, and
    at levels that ask for real time everybody after who had ended.
    What counts of a history is carried out by its values; who wrote them is not asked.
    """
    at_level = Events(level)
    each, turns = at_level.each, at_level.base == "snapshot-isolation"
    history = seen.history
    counts, sessions = seen.counts.tolist(), history.session.tolist()
    before: list[int] = []  # of each transaction, the one in its session that must have ended
    latest: dict[int, int] = {}
    for number, status in enumerate(history.status.tolist()):
        if (status == COMMITTED and not counts[number]) or (status == ABORTED and counts[number]):
            return transaction_name(history, number)
        before.append(latest.get(sessions[number], -1))
        if counts[number]:
            latest[sessions[number]] = number
    first, is_write = history.first.tolist(), history.is_write.tolist()
    key, value = history.key.tolist(), history.value.tolist()
    there: dict[int, int] = {}
    when: dict[int, int] = {}  # of each key, the last write
    began: dict[int, int] = {}
    last: dict[int, int] = {}  # of each session, who ended
    wrote: dict[int, dict[int, int]] = {}
    for moment, event in enumerate(events.tolist()):
        number = event // each
        if number == seen.initial or not counts[number]:
            continue
        if event % each == 0:
            if last.get(sessions[number], -1) != before[number]:
                return transaction_name(history, number)
            began[number] = moment
            own = wrote[number] = {}
            for one in range(first[number], first[number + 1]):
                at = key[one]
                if is_write[one]:
                    own[at] = value[one]
                elif (own[at] if at in own else there.get(at, INITIAL)) != value[one]:
                    return operation_name(history, one)
        if event % each == each - 1:
            if number not in wrote:
                return transaction_name(history, number)
            last[sessions[number]] = number
            for at, left in wrote.pop(number).items():
                if turns and when.get(at, -1) > began[number]:
                    return transaction_name(history, number)
                there[at], when[at] = left, moment
    if len(began) < sum(counts):
        return "a transaction that is missing"
    late = out_of_time(seen, np.argsort(events), each) if level in TIMED else None
    return "" if late is None else transaction_name(history, late)


def misattributed(seen: Attributed) -> str:
    """A read of what counts that did not see what its writer left, or its own write, in words; empty: there is none."""
    history = seen.history
    writer = dict(zip(seen.read.tolist(), seen.writer.tolist(), strict=True))
    left: dict[tuple[int, int], int] = {}
    external: list[tuple[int, int, int]] = []
    rows = zip(
        seen.owner.tolist(),
        history.is_write.tolist(),
        history.key.tolist(),
        history.value.tolist(),
        strict=True,
    )
    for one, (number, is_write, key, value) in enumerate(rows):
        if not seen.counts[number]:
            continue
        if is_write:
            left[number, key] = value
        elif (number, key) not in left:
            external.append((one, key, value))
        elif left[number, key] != value:
            return operation_name(history, one)
    for one, key, value in external:
        from_ = writer.get(one)
        there = (
            INITIAL if from_ == seen.initial else left.get((-1 if from_ is None else from_, key))
        )
        if there != value:
            return operation_name(history, one)
    return ""


def misbuilt(seen: Attributed, level: str, events: NDArray[int64]) -> str:
    """A read of a list that does not begin what the appends make, one transaction after another as they end in the
    order, in words; empty: there is none.
    """
    if seen.lists is None:
        return ""
    each = Events(level).each
    history, lists = seen.history, seen.lists
    ended = np.empty(len(events), np.int64)
    ended[events] = np.arange(len(events))
    ended = ended[each - 1 :: each]
    appends = np.flatnonzero(history.is_write & seen.counts[seen.owner])
    appends = appends[np.lexsort((appends, ended[seen.owner[appends]], history.key[appends]))]
    begin = np.searchsorted(history.key[appends], np.arange(len(history.keys) + 1))
    lengths = np.where(seen.counts[seen.owner], np.diff(lists.seen_first), 0)
    read = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(read)) - (np.cumsum(lengths) - lengths)[read]
    at = begin[history.key[read]] + place
    wrong = at >= begin[history.key[read] + 1]
    wrong[~wrong] = (
        history.value[appends[at[~wrong]]] != lists.seen[(lists.seen_first[read] + place)[~wrong]]
    )
    return operation_name(history, int(read[np.argmax(wrong)])) if wrong.any() else ""
