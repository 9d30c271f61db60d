"""Histories in one line, in the notation of papers."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from isolitmus.model.litmus import HistoryTest
from isolitmus.model.operations import Write, read_versions
from isolitmus.specs.sql.parameters import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.history import History
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.operations import Transaction

OPERATION = re.compile(r"(?<![\w:])([rw])\(")
ENDS = {"committed": "c", "aborted": "a"}


def adya_notation(history: History) -> str:
    """Return a history in Adya's notation, each read after the write that it saw.

    ``History.parse`` reads the result, with the sessions, the schedule and the version orders
    behind it. If reads and writes wait for each other in a cycle, each transaction is written by
    itself.

    >>> from isolitmus.specs import litmus
    >>> adya_notation(litmus("history-write-skew").history)
    'r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2)'
    >>> adya_notation(litmus("history-write-cycle").history)
    'w1(x1) w1(y1) w2(x2) w2(y2) [x1 < x2] [y2 < y1]'
    >>> adya_notation(litmus("history-own-write-missed").history)
    'w1(x1) r2(x0), T1 T2 in one session'
    >>> adya_notation(litmus("history-stale-read").history)
    'w1(x1) r2(x0), in time T1 T2'
    >>> adya_notation(litmus("history-lost-update-in-time").history)
    'b1 r1(x0) b2 w2(x2) c2 w1(x1) c1 [x2 < x1]'
    >>> adya_notation(litmus("history-fractured-read").history)
    'w1(x1) w1(y1) r2(x1) r2(y0)'

    >>> from isolitmus.model import History
    >>> adya_notation(History.from_table({"T1": "r(x2) w(y1)", "T2": "r(y1) w(x2)"}))
    'T1: r(x2) w(y1); T2: r(y1) w(x2)'
    """
    parts = timed = [*_in_turn(history)]
    if not timed:
        parts = _after_writes(history) or _apart(history)
    parts += [f"[{first} < {second}]" for first, second in history.order]
    together = (" ".join(f"T{n}" for n in some) for some in history.sessions if len(some) > 1)
    time = [f"in time {history.to_table()['schedule']}"] if history.schedule and not timed else []
    sets = (f"{' '.join(f'T{n}' for n in who) or 'nobody'} in {name}" for name, who in history.sets)
    behind = (*(f"{names} in one session" for names in together), *time, *sets)
    return ", ".join([" ".join(parts), *behind])


def _after_writes(history: History) -> list[str]:
    """Return the operations by transaction, each read after its write; empty if impossible."""
    place = {
        op.version: (one.number, at)
        for one in history.transactions
        for at, op in enumerate(one.operations, 1)
        if isinstance(op, Write)
    }
    by = {one.number: one for one in history.transactions}
    done = dict.fromkeys(by, 0)
    going: set[int] = set()
    parts: list[str] = []
    every = all(one.status == "committed" and one.operations for one in history.transactions)

    def go(number: int, until: int) -> bool:
        """Write its operations up to one; return False if one of them waits for itself."""
        if until <= done[number] and until:
            return True
        if number in going:
            return False
        going.add(number)
        for at in range(done[number] + 1, until + 1):
            waits = (place.get(version) for version in read_versions(by[number].operations[at - 1]))
            if not all(go(*one) for one in waits if one is not None and one[0] != number):
                return False
            parts.append(_of(by[number], at))
            done[number] = at
        going.remove(number)
        if until == len(by[number].operations) and not every and by[number].status in ENDS:
            parts.append(f"{ENDS[by[number].status]}{number}")
        return True

    whole = all(go(one.number, len(one.operations)) for one in history.transactions)
    return parts if whole else []


def _apart(history: History) -> list[str]:
    """Return each transaction by itself."""
    every = [
        f"{one.name}{'' if one.status == 'committed' else f' ({one.status})'}: {one}"
        for one in history.transactions
    ]
    return ["; ".join(every)]


def _of(transaction: Transaction, only: int | None = None) -> str:
    """Return the operations of a transaction, or only one of them."""
    done = str(transaction if only is None else transaction.operations[only - 1])
    return OPERATION.sub(rf"\g<1>{transaction.number}(", done)


def _in_turn(history: History) -> Iterator[str]:
    """Yield beginnings, operations and ends in temporal order.

    Nothing is yielded if the order is not known for all transactions, or if each ran at one moment.
    """
    single = any(isinstance(moment, int) for _, moment in history.schedule)
    known = {(t.number, moment) for t in history.transactions for moment in ("start", "end")}
    unknown = any(t.status == "unknown" for t in history.transactions)
    if not single or unknown or history.moments() is None or not known <= {*history.schedule}:
        return
    by = {t.number: t for t in history.transactions}
    for (number, moment), after in zip_longest(history.schedule, history.schedule[1:]):
        if moment == "end":
            yield f"{ENDS[by[number].status]}{number}"
        elif moment == "start":
            yield f"b{number}"
            if after == (number, "end"):
                yield from filter(None, [_of(by[number])])
        else:
            yield _of(by[number], moment)


def one_line_of(test: HistoryTest | Litmus) -> str:
    """Return a history, or a schedule with its statements, in one line.

    >>> from isolitmus.specs import litmus
    >>> one_line_of(litmus("reorder"))  # doctest: +NORMALIZE_WHITESPACE
    'delete.start insert delete.commit, where delete: DELETE FROM t WHERE part = 0;
    insert: INSERT INTO t VALUES (100, 0)'
    """
    if isinstance(test, HistoryTest):
        return adya_notation(test.history)
    sql = "; ".join(f"{name}: {one_line(one.sql)}" for name, one in test.transactions.items())
    return f"{test.schedule}, where {sql}"
