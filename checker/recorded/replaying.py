"""Whether an order of events explains what was read: looked up of each read who wrote its key last, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.recorded.naming import operation_name, transaction_name

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    from isolitmus.checker.recorded.observing import Attributed

__all__ = ["misbuilt", "misread"]


def misread(seen: Attributed, level: str, events: NDArray[int64]) -> str:
    """What the order does not explain, in words; empty: it explains all.

    At serializable an event is a transaction, else twice its number is its beginning, and one more its end. A
    transaction reads what is there when it begins; its writes are there when it ends. At snapshot isolation nobody
    else has written in between what it writes; sessions go on after what they did before.
    """
    each = 1 if level == "serializable" else 2
    history, size = seen.history, len(events)
    if not np.array_equal(np.sort(events), np.arange(each * (seen.initial + 1))):
        return "a transaction that is missing"
    moment = np.empty(size, np.int64)
    moment[events] = np.arange(size)
    began, ended = moment[::each], moment[each - 1 :: each]
    before, number = seen.sessions()
    early = number[
        (before < seen.initial) & (ended[before] > began[number]) | (began > ended)[number]
    ]
    if len(early):
        return transaction_name(history, int(early[0]))
    when = seen.written_key * size + ended[seen.written_by]
    order = np.argsort(when)
    when, key, writer = when[order], seen.written_key[order], seen.written_by[order]
    last = np.searchsorted(when, seen.key * size + began[seen.reader]) - 1
    there = (last >= 0) & (key[last] == seen.key) if len(key) else np.zeros(len(last), bool)
    found = np.full(len(last), seen.initial)
    found[there] = writer[last[there]]
    if (found != seen.writer).any():
        return operation_name(history, int(seen.read[np.argmax(found != seen.writer)]))
    beside = (key[1:] == key[:-1]) & (began[writer[1:]] < ended[writer[:-1]])
    if level == "snapshot-isolation" and beside.any():
        return transaction_name(history, int(writer[1:][np.argmax(beside)]))
    return ""


def misbuilt(seen: Attributed, level: str, events: NDArray[int64]) -> str:
    """A read of a list that does not begin what the appends make, one transaction after another as they end in the
    order, in words; empty: there is none.
    """
    if seen.lists is None:
        return ""
    each = 1 if level == "serializable" else 2
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
