"""The abstract universe searched by a solver: propose a history, excuse it, ask again.

That the second spec forbids a history under every version order is a universal. It is not expanded:
the solver proposes a history that every order so far condemns; another solver looks for an order that
excuses the proposal; that order condemns or not from then on. When none excuses it, it is found;
when nothing is left to propose, there is none.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.checker.reading.gates import Gates
from isolitmus.checker.reading.solver import Solver
from isolitmus.checker.reading.symbolic import admit, forbid
from isolitmus.checker.searching.abstract import (
    KEYS,
    Histories,
    observes_versions,
    sessions_vary,
    uses_versions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.reading.solver import Model
    from isolitmus.checker.searching.abstract import Order
    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec

__all__ = ["CANONICAL", "search"]

CANONICAL = 4
"""Up to so many transactions the answer is made canonical, decision by decision."""


def search(
    a: Spec, b: Spec, n: int, *, deadline: float | None = None
) -> tuple[History | None, int]:
    """The history of n transactions that ``a`` admits and ``b`` forbids, or None; and how many were
    proposed. Up to CANONICAL transactions it has the fewest links of sessions, then operations, then
    keys. TimeLimit after the deadline.

    >>> from isolitmus.specs.catalogue import level
    >>> found, _ = search(level("snapshot-isolation"), level("serializable"), 2)
    >>> [str(t) for t in found.transactions]
    ['r(x0) w(y1)', 'r(y0) w(x2)']
    """
    space = _Space(a, b, n, deadline)
    best = space.simple() or space.propose([])
    if best is None:
        return None, space.examined
    if n <= CANONICAL:
        for literals in space.measures():
            best = space.fewest(best, literals)
        best = space.canonical(best)
    return space.history(best), space.examined


class _Space:
    """The circuit of all histories of n transactions that the first spec admits."""

    def __init__(self, a: Spec, b: Spec, n: int, deadline: float | None) -> None:
        self.n, self.b, self.deadline = n, b, deadline
        self.examined = 0
        self.gates = Gates()
        self.histories = _histories(self.gates, n, a, b)
        self.given: list[Order[int]] = []
        if observes_versions(a, b):
            self.given = [self.gates.order(n) for _ in KEYS]
        self.universal = uses_versions(b) and not self.given
        orders = self.given or ([self.gates.order(n) for _ in KEYS] if uses_versions(a) else [])
        admit(self.gates, self.histories.frames(a, orders), a)
        if self.universal and not orders:
            orders = [[[1 if i < j else -1 for j in range(n)] for i in range(n)]] * len(KEYS)
        # the order under which the first spec admits the history is one that must not excuse it
        self.condemn(orders)
        self.solver = Solver(self.gates, deadline)

    def condemn(self, orders: Sequence[Order[int]]) -> None:
        """Under these version orders the second spec forbids the history."""
        forbid(self.gates, self.histories.frames(self.b, orders), self.b)

    def propose(self, assumptions: Sequence[int]) -> Model | None:
        """A history that the second spec forbids, whatever the version order."""
        while True:
            model = self.solver.check(assumptions)
            if model is None:
                return None
            self.examined += 1
            if not self.universal:
                return model
            orders = self.excuse(model)
            if orders is None:
                return model
            self.condemn(orders)

    def simple(self) -> Model | None:
        """A history in which few transactions do more than read one initial value, if there is one:
        what is large is found faster, and reads better.
        """
        for busy in range(2, min(self.n, CANONICAL + 1)):
            found = self.propose([a for t in range(busy, self.n) for a in self.idle(t)])
            if found is not None:
                return found
        return None

    def idle(self, t: int) -> list[int]:
        """What makes a transaction read the last key's initial version and nothing else."""
        sources = self.histories.sources[t]
        others = [literal for options in sources for literal in options.values()]
        only = sources[-1][self.n]
        alone = [-joined for joined in self.histories.joined[t - 1 : t + 1]]
        return [
            only,
            *(-o for o in others if o != only),
            *(-w for w in self.histories.writes[t]),
            *alone,
        ]

    def excuse(self, model: Model) -> list[Order[int]] | None:
        """Version orders under which the second spec admits the proposal: if possible one order for
        all keys in which sources come before their readers, for it excuses more.
        """
        for shared in (True, False):
            gates = Gates()
            fixed = _fixed(self.histories, model)
            orders = [gates.order(self.n)] * len(KEYS) if shared else [gates.order(self.n) for _ in KEYS]  # fmt: skip
            frames = Histories(gates, *fixed).frames(self.b, orders)
            admit(gates, frames, self.b)
            if shared:
                for name in ("so", "wr"):
                    for i, row in enumerate(frames.relations.get(name, ())[: self.n]):
                        for j, pair in row.items():
                            gates.add(-pair, orders[0][i][j])
            found = Solver(gates, self.deadline).check()
            if found is not None:
                return [
                    [
                        [1 if found[order[i][j]] else -1 for j in range(self.n)]
                        for i in range(self.n)
                    ]
                    for order in orders
                ]
        return None

    def decisions(self) -> list[int]:
        """What a history consists of; the earlier ones are decided first, to be so if possible."""
        h = self.histories
        found = [-joined for joined in h.joined]
        for t in range(self.n):
            for x in range(len(KEYS)):
                sources = h.sources[t][x]
                found += [sources[s] for s in (self.n, *range(self.n)) if s in sources]
                found.append(h.writes[t][x])
            found += [before for row in h.first[t] for before in row.values()]
        return found + [pair for order in self.given for row in order for pair in row]

    def measures(self) -> Iterator[list[int]]:
        """What there should be little of, most important first."""
        h = self.histories
        yield list(h.joined)
        reads = [[h.reads(t, x) for t in range(self.n)] for x in range(len(KEYS))]
        writes = [[h.writes[t][x] for t in range(self.n)] for x in range(len(KEYS))]
        yield [literal for row in (*reads, *writes) for literal in row]
        yield [h.used(x) for x in range(len(KEYS))]

    def fewest(self, best: Model, literals: list[int]) -> Model:
        """A model in which the fewest of the literals hold; no more may from now on."""
        count = sum(best[literal] for literal in literals)
        at_least = self.gates.at_least(literals, count + 1)
        while count:
            fewer = self.propose([-at_least[count - 1]])
            if fewer is None:
                break
            best, count = fewer, sum(fewer[literal] for literal in literals)
        self.gates.add(-at_least[count])
        return best

    def canonical(self, best: Model) -> Model:
        """The model in which the decisions are the first possible, one after the other."""
        for decision in self.decisions():
            if not best[decision]:
                other = self.propose([decision])
                if other is None:
                    self.gates.add(-decision)
                    continue
                best = other
            self.gates.add(decision)
        return best

    def history(self, model: Model) -> History:
        return self.histories.history(model.__getitem__, self.given)


def _histories(gates: Gates, n: int, *specs: Spec) -> Histories[int]:
    """All abstract histories of n transactions, each of which does something."""
    keys = range(len(KEYS))
    writes = [[gates.new() for _ in keys] for _ in range(n)]
    sources: list[list[dict[int, int]]] = []
    for t in range(n):
        sources.append([])
        for x in keys:
            options = {s: gates.new() for s in (*range(n), n) if s != t}
            for s, option in options.items():
                if s < n:
                    gates.add(-option, writes[s][x])
                for other in range(s):
                    if other in options:
                        gates.add(-option, -options[other])
            sources[t].append(options)
    joined = [gates.new() if sessions_vary(*specs) else gates.false for _ in range(n - 1)]
    first: list[list[dict[int, int]]] = []
    for _ in range(n):
        if any("po" in spec.needs for spec in specs):
            order = gates.order(len(KEYS))
            first.append([{y: order[x][y] for y in keys if y != x} for x in keys])
        else:
            first.append([{y: gates.true for y in keys if y > x} for x in keys])
    histories = Histories(gates, writes, sources, joined, first)
    for t in range(n):
        gates.add(*writes[t], *(s for x in keys for s in sources[t][x].values()))
    used = [histories.used(x) for x in keys]
    for x in keys[1:]:
        gates.add(-used[x], used[x - 1])
    _descending(gates, histories)
    return histories


def _descending(gates: Gates, h: Histories[int]) -> None:
    """Without sessions the transactions have no order: what one does, as a row of bits, is not less
    than what the next one does.
    """
    rows = [
        [bit for x in range(h.keys) for bit in (h.reads(t, x), h.writes[t][x])] for t in range(h.n)
    ]
    for first, second in pairwise(rows):
        equal = gates.conj(-joined for joined in h.joined)
        for a, b in zip(first, second, strict=True):
            gates.add(-equal, a, -b)
            equal = gates.conj([equal, gates.disj([-a, b])])


def _fixed(
    h: Histories[int], model: Model
) -> tuple[list[list[int]], list[list[dict[int, int]]], list[int], list[list[dict[int, int]]]]:
    """The parts of one history as constants."""

    def constant(literal: int) -> int:
        return 1 if model[literal] else -1

    return (
        [[constant(w) for w in row] for row in h.writes],
        [[{s: constant(v) for s, v in options.items()} for options in row] for row in h.sources],
        [constant(j) for j in h.joined],
        [[{y: constant(v) for y, v in row.items()} for row in rows] for rows in h.first],
    )
