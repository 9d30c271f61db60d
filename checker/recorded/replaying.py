"""Whether an order of events explains what was read: each is carried out, one after another, and nothing else."""

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
    history = seen.history
    reads: dict[int, list[tuple[int, int, int]]] = {}
    rows = zip(
        seen.reader.tolist(),
        seen.key.tolist(),
        seen.writer.tolist(),
        seen.read.tolist(),
        strict=True,
    )
    for reader, key, writer, read in rows:
        reads.setdefault(reader, []).append((key, writer, read))
    writes: dict[int, list[int]] = {}
    for key, writer in zip(seen.written_key.tolist(), seen.written_by.tolist(), strict=True):
        writes.setdefault(writer, []).append(key)
    there: dict[int, int] = {}
    when: dict[int, int] = {}  # of each key, the last write
    began: dict[int, int] = {}
    last: dict[int, int] = {}  # of each session
    for moment, event in enumerate(events.tolist()):
        number = event // each
        if number == seen.initial or not seen.counts[number]:
            continue
        if event % each == 0:
            session = int(history.session[number])
            if last.get(session, -1) > number:
                return transaction_name(history, number)
            began[number] = moment
            for key, writer, read in reads.get(number, ()):
                if there.get(key, seen.initial) != writer:
                    return operation_name(history, read)
        if event % each == each - 1:
            last[int(history.session[number])] = number
            for key in writes.get(number, ()):
                if level == "snapshot-isolation" and when.get(key, -1) > began[number]:
                    return transaction_name(history, number)
                there[key], when[key] = number, moment
    return "" if len(began) == int(seen.counts.sum()) else "a transaction that is missing"


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
