"""A history in one line, as papers have it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.litmus import HistoryTest
from isolitmus.specs.parameters import one_line

if TYPE_CHECKING:
    from isolitmus.model.history import History
    from isolitmus.model.litmus import Litmus

__all__ = ["linear", "one_line_of"]

OPERATION = re.compile(r"(?<![\w:])([rw])\(")
ENDS = {"committed": "c", "aborted": "a"}


def linear(history: History) -> str:
    """Adya's notation: ``History.parse`` reads it, with the sessions and the schedule, which stand behind it.

    >>> from isolitmus.specs import litmus
    >>> linear(litmus("history-write-skew").history)
    'r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2)'
    >>> linear(litmus("history-write-cycle").history)
    'w1(x1) w1(y1) w2(x2) w2(y2) [x1 < x2] [y2 < y1]'
    >>> linear(litmus("history-own-write-missed").history)
    'w1(x1) r2(x0), T1 T2 in one session'
    >>> linear(litmus("history-stale-read").history)
    'w1(x1) r2(x0), in time T1 T2'
    """
    every = all(one.status == "committed" for one in history.transactions)
    parts = []
    for one in history.transactions:
        parts.append(OPERATION.sub(rf"\g<1>{one.number}(", str(one)))
        if not every and one.status in ENDS:
            parts.append(f"{ENDS[one.status]}{one.number}")
    parts += [f"[{first} < {second}]" for first, second in history.order]
    together = (" ".join(f"T{n}" for n in some) for some in history.sessions if len(some) > 1)
    time = [f"in time {history.to_table()['schedule']}"] if history.schedule else []
    return ", ".join([" ".join(parts), *(f"{names} in one session" for names in together), *time])


def one_line_of(test: HistoryTest | Litmus) -> str:
    """A history, or the schedule of statements, in one line.

    >>> from isolitmus.specs import litmus
    >>> one_line_of(litmus("reorder"))
    'delete.start insert delete.commit, where delete: DELETE FROM t WHERE part = 0; insert: INSERT INTO t VALUES (100, 0)'
    """
    if isinstance(test, HistoryTest):
        return linear(test.history)
    sql = "; ".join(f"{name}: {one_line(one.sql)}" for name, one in test.transactions.items())
    return f"{test.schedule}, where {sql}"
