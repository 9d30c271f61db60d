"""Times of abstract histories that a solver may choose: who had ended when another one began, and when operations were."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from isolitmus.checker.universes.abstract import KEYS
from isolitmus.checker.universes.intervals import crossings
from isolitmus.checker.universes.slots import Slots

if TYPE_CHECKING:
    from isolitmus.checker.solver.circuits import Gates
    from isolitmus.checker.universes.abstract import Histories, OrderMatrix

__all__ = ["between_moments", "between_times", "interval_order", "slots_of"]


def interval_order(gates: Gates, n: int) -> OrderMatrix[int]:
    """Who had ended when another one began: any order of intervals."""
    ended = [[gates.false if i == j else gates.new() for j in range(n)] for i in range(n)]
    for (a, b), (c, d), then in crossings(n):
        gates.add(-ended[a][b], -ended[c][d], *(ended[i][j] for i, j in then))
    return ended


def between_times(gates: Gates, h: Histories[int], ended: OrderMatrix[int]) -> None:
    """Sessions go on in real time, and nobody reads from one who begins after he ended."""
    for t, joined in enumerate(h.joined):
        gates.add(-joined, ended[t][t + 1])
    for t in range(h.n):
        for options in h.sources[t]:
            for s, there in options.items():
                if s < h.n:
                    gates.add(-there, -ended[t][s])


def slots_of(gates: Gates, n: int) -> Slots[int]:
    """Any order in time of what transactions may do, each its reads first, then its writes, then its end."""
    slots = Slots(len(KEYS), gates.order(n * (2 * len(KEYS) + 1)))
    for p, q in slots.turns():
        gates.add(slots.before[p][q])
    return slots


def between_moments(gates: Gates, h: Histories[int], slots: Slots[int]) -> None:
    """Sessions go on in real time, nobody reads what is not written yet, and who had ended when somebody began had
    ended before all that he does, with all who had ended earlier.
    """
    before, end, keys = slots.before, slots.end, range(h.keys)
    firsts = [[slots.read(t, x) for x in keys] + [slots.write(t, x) for x in keys] for t in range(h.n)]  # fmt: skip
    for t, joined in enumerate(h.joined):
        for slot in (*firsts[t + 1], end(t + 1)):
            gates.add(-joined, before[end(t)][slot])
    for t, x in product(range(h.n), keys):
        for s, there in h.sources[t][x].items():
            if s < h.n:
                gates.add(-there, before[slots.write(s, x)][slots.read(t, x)])
    for i, j in product(range(h.n), repeat=2) if h.ended is not None else ():
        if i != j:
            over = (h.ended or [])[i][j]
            for slot in (*firsts[j], end(j)):
                gates.add(-over, before[end(i)][slot])
            for k in range(h.n):
                if k not in (i, j):
                    gates.add(-over, -before[end(k)][end(i)], (h.ended or [])[k][j])
