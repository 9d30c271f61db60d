"""Dependency graphs of abstract histories, with Booleans that stand for many histories.

Nodes are the transactions. If reads are nodes, the initial transaction and every possible read
follow; if writes are nodes, every possible write, too.
"""

from __future__ import annotations

from functools import cached_property
from itertools import permutations, product
from typing import TYPE_CHECKING, Generic, TypeVar

from isolitmus.checker.judge.matrix_semantics import Matrices
from isolitmus.checker.judge.read_nodes import needs_operations, needs_reads
from isolitmus.model.vocabulary import BY_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.judge.matrix_semantics import BooleanMatrix
    from isolitmus.checker.universes.abstract import Histories, LinearOrders, OrderMatrix
    from isolitmus.model.spec import Spec

B = TypeVar("B")


class AbstractFrames(Generic[B]):
    """Dependency graphs of histories, with relations shared among specs and version orders."""

    def __init__(self, histories: Histories[B]) -> None:
        self._histories = histories
        self._by_nodes: dict[tuple[bool, bool], _HistoryMatrices[B]] = {}

    def of(
        self, spec: Spec, orders: Sequence[OrderMatrix[B]], linear: LinearOrders[B] | None = None
    ) -> Matrices[B]:
        """Return the graph for a spec, with a version order for each key, and a commit order."""
        if linear is not None and spec.bound.get("ww") == "co":
            orders = [linear.co] * self._histories.keys
        nodes = needs_reads(spec), needs_operations(spec)
        if nodes not in self._by_nodes:
            self._by_nodes[nodes] = _HistoryMatrices(self._histories, *nodes)
        return self._by_nodes[nodes].frames(spec.needs, orders, linear)


class _HistoryMatrices(Generic[B]):
    def __init__(self, histories: Histories[B], with_reads: bool, with_writes: bool) -> None:
        self.h = histories
        self.booleans = histories.booleans
        self.with_reads, self.with_writes = with_reads, with_writes
        self.initial = histories.n
        kinds = self.with_reads + self.with_writes
        self.size = histories.n + self.with_reads + kinds * histories.n * histories.keys
        self.made: dict[str, BooleanMatrix[B]] = {}
        self.under: tuple[Sequence[OrderMatrix[B]], dict[str, BooleanMatrix[B]]] | None = None

    def node(self, t: int, x: int) -> int:
        """Return the node of the read of a key."""
        return self.h.n + 1 + t * self.h.keys + x

    def wrote(self, t: int, x: int) -> int:
        """Return the node of the write of a key."""
        return self.h.n + 1 + (self.h.n + t) * self.h.keys + x

    def frames(
        self,
        needs: frozenset[str],
        orders: Sequence[OrderMatrix[B]],
        linear: LinearOrders[B] | None = None,
    ) -> Matrices[B]:
        """Return the graph with the relations in ``needs``, each computed once."""
        made = {
            "so": self.so,
            "wr": self.wr,
            "wr-item": self.wr,
            "wr-predicate": self.nothing,
            "intermediate": self.nothing,
            "rw-predicate": self.nothing,
            "rf": self.rf,
            "wr-read": self.rf,
            "po": self.po,
            "in": self.inside,
            "rival": self.rival,
            "loc": self.loc,
            "rt": self.rt,
            "time": self.time,
        }
        for name, make in made.items():
            if name in needs and name not in self.made:
                self.made[name] = make()
        relations = {name: self.made[name] for name in made if name in needs}
        if needs & BY_VERSIONS:
            if self.under is None or self.under[0] is not orders:
                self.under = orders, self.versions(orders)
            relations |= self.under[1]
        if linear is not None:
            relations["co"] = self.among(linear.co)
            if linear.vis is not None:
                relations["vis"] = self.among(linear.vis)
        return Matrices(self.booleans, self.exists, relations, self.sets)

    @cached_property
    def exists(self) -> list[B]:
        """Existence of each node."""
        h = self.h
        exists = [self.booleans.true] * (h.n + self.with_reads)
        if self.with_reads:
            exists += [h.reads(t, x) for t in range(h.n) for x in range(h.keys)]
        if self.with_writes:
            exists += [h.writes[t][x] for t in range(h.n) for x in range(h.keys)]
        return exists

    @cached_property
    def sets(self) -> dict[str, list[B]]:
        """Membership of each node in each set."""
        writer = [self.booleans.disj(self.h.writes[t]) for t in range(self.h.n)]
        rest = [self.booleans.false] * (self.size - self.h.n)
        return {
            "Writer": writer + rest,
            "Reader": [*map(self.booleans.neg, writer), *rest],
            "Aborted": [*self.h.aborted, *rest],
            "Initial": self.members(self.initial, self.initial + 1),
            "ItemRead": self.members(self.node(0, 0), self.wrote(0, 0)),
            "PredicateRead": self.members(0, 0),
            "Write": self.members(self.wrote(0, 0), self.size),
        }

    def members(self, first: int, end: int) -> list[B]:
        """Return the set of the nodes from ``first`` to ``end - 1``."""
        true, false = self.booleans.true, self.booleans.false
        return [true if first <= i < end else false for i in range(self.size)]

    def operations(self) -> Iterator[tuple[int, int, int, B]]:
        """Yield transaction, key, node and existence of each read, and of each write node."""
        for t, x in product(range(self.h.n), range(self.h.keys)):
            yield t, x, self.node(t, x), self.h.reads(t, x)
            if self.with_writes:
                yield t, x, self.wrote(t, x), self.h.writes[t][x]

    def matrix(self, pairs: dict[tuple[int, int], list[B]]) -> BooleanMatrix[B]:
        """Return a relation whose entries are disjunctions, without those that are false."""
        rows: BooleanMatrix[B] = [{} for _ in range(self.size)]
        for (i, j), parts in pairs.items():
            value = self.booleans.disj(parts)
            if value != self.booleans.false:
                rows[i][j] = value
        return rows

    def so(self) -> BooleanMatrix[B]:
        """Return the session order; the initial transaction precedes all that do not abort."""
        pairs: dict[tuple[int, int], list[B]] = {}
        for i in range(self.h.n):
            together = self.booleans.true
            for j in range(i + 1, self.h.n):
                together = self.booleans.both(together, self.h.joined[j - 1])
                pairs[i, j] = [together]
            if self.with_reads:
                pairs[self.initial, i] = [self.booleans.neg(self.h.aborted[i])]
        return self.matrix(pairs)

    def among(self, order: OrderMatrix[B], *, initial: bool = True) -> BooleanMatrix[B]:
        """Return the pairs of committed transactions in an order.

        The ``initial`` transaction, if included, precedes them all.
        """
        done = [self.booleans.neg(aborted) for aborted in self.h.aborted]
        pairs = {
            (i, j): [self.booleans.conj([order[i][j], done[i], done[j]])]
            for i in range(self.h.n)
            for j in range(self.h.n)
            if i != j
        }
        if self.with_reads and initial:
            pairs |= {(self.initial, j): [done[j]] for j in range(self.h.n)}
        return self.matrix(pairs)

    def nothing(self) -> BooleanMatrix[B]:
        """Return the empty relation: there are no predicate reads, and no key is written twice."""
        return self.matrix({})

    def wr(self) -> BooleanMatrix[B]:
        """Return the read dependencies between transactions."""
        pairs: dict[tuple[int, int], list[B]] = {}
        for t in range(self.h.n):
            for x in range(self.h.keys):
                for s, there in self.h.sources[t][x].items():
                    if s < self.h.n or self.with_reads:
                        pairs.setdefault((s, t), []).append(there)
        return self.matrix(pairs)

    def rf(self) -> BooleanMatrix[B]:
        """Return the pairs of a source transaction and a read of its version."""
        return self.matrix(
            {
                (s, self.node(t, x)): [there]
                for t in range(self.h.n)
                for x in range(self.h.keys)
                for s, there in self.h.sources[t][x].items()
            }
        )

    def inside(self) -> BooleanMatrix[B]:
        return self.matrix({(node, t): [there] for t, _, node, there in self.operations()})

    def po(self) -> BooleanMatrix[B]:
        """Return the program order of operations: reads of a transaction before its writes."""
        h, conj = self.h, self.booleans.conj
        pairs: dict[tuple[int, int], list[B]] = {}
        for t, x, y in product(range(h.n), range(h.keys), range(h.keys)):
            if x != y:
                both = [h.reads(t, x), h.reads(t, y), h.first[t][x].get(y, self.booleans.false)]
                pairs[self.node(t, x), self.node(t, y)] = [conj(both)]
            if self.with_writes:
                pairs[self.node(t, x), self.wrote(t, y)] = [conj([h.reads(t, x), h.writes[t][y]])]
                if x != y:
                    both = [h.writes[t][x], h.writes[t][y], h.writes_first(t, x, y)]
                    pairs[self.wrote(t, x), self.wrote(t, y)] = [conj(both)]
        return self.matrix(pairs)

    def loc(self) -> BooleanMatrix[B]:
        """Return the pairs of operations on one key."""
        return self.matrix(
            {
                (i, j): [self.booleans.both(one, other)]
                for (_, x, i, one), (_, y, j, other) in permutations(self.operations(), 2)
                if x == y
            }
        )

    def rt(self) -> BooleanMatrix[B]:
        """Return the real-time pairs of transactions; the initial one has no time."""
        assert self.h.ended is not None
        return self.among(self.h.ended, initial=False)

    def time(self) -> BooleanMatrix[B]:
        """Return the time pairs of operations, and of transactions as they end."""
        h, slots = self.h, self.h.slots
        assert slots is not None
        places = [(t, slots.end(t), self.booleans.true) for t in range(h.n)]
        for t, x in product(range(h.n), range(h.keys)):
            places.append((self.node(t, x), slots.read(t, x), h.reads(t, x)))
            places.append((self.wrote(t, x), slots.write(t, x), h.writes[t][x]))
        return self.matrix(
            {
                (i, j): [self.booleans.conj([one, other, slots.before[p][q]])]
                for (i, p, one), (j, q, other) in permutations(places, 2)
            }
        )

    def rival(self) -> BooleanMatrix[B]:
        """Return the pairs of a writer of a key, and a read of the key from another source."""
        conj, neg = self.booleans.conj, self.booleans.neg
        pairs: dict[tuple[int, int], list[B]] = {}
        for t in range(self.h.n):
            for x in range(self.h.keys):
                reads = self.h.reads(t, x)
                for u in (*range(self.h.n), self.initial):
                    if u != t:
                        source = self.h.sources[t][x].get(u, self.booleans.false)
                        wrote = self.h.installs(u, x) if u < self.h.n else self.booleans.true
                        there = conj([wrote, reads, neg(source)])
                        pairs[u, self.node(t, x)] = [there]
        return self.matrix(pairs)

    def versions(self, orders: Sequence[OrderMatrix[B]]) -> dict[str, BooleanMatrix[B]]:
        """Return ww, rw and fr.

        A version leads to the next one (ww); a reader of a version, or its read, to the writer of
        the next one (rw, fr).
        """
        h, both, conj, neg = self.h, self.booleans.both, self.booleans.conj, self.booleans.neg
        ww: dict[tuple[int, int], list[B]] = {}
        rw: dict[tuple[int, int], list[B]] = {}
        fr: dict[tuple[int, int], list[B]] = {}
        for x, before in enumerate(orders):
            wrote = [h.installs(t, x) for t in range(h.n)]
            writers = [t for t in range(h.n) if wrote[t] != self.booleans.false]
            following: dict[tuple[int, int], B] = {}
            for j in writers:
                earlier = [neg(both(wrote[k], before[k][j])) for k in writers if k != j]
                following[h.n, j] = conj([wrote[j], *earlier])
            for i in writers:
                later = {k: both(wrote[k], before[i][k]) for k in writers if k != i}
                for j, comes in later.items():
                    apart = [neg(both(v, before[k][j])) for k, v in later.items() if k != j]
                    following[i, j] = conj([wrote[i], comes, *apart])
                    ww.setdefault((i, j), []).append(following[i, j])
            for t in range(h.n):
                for s, there in h.sources[t][x].items():
                    if there == self.booleans.false:
                        continue
                    for i in writers:
                        if i not in (t, s) and (s, i) in following:
                            missed = both(there, following[s, i])
                            rw.setdefault((t, i), []).append(missed)
                            if self.with_writes:
                                fr.setdefault((self.node(t, x), i), []).append(missed)
        overwrites = self.matrix(rw)
        found = {"ww": self.matrix(ww), "rw": overwrites, "rw-item": overwrites}
        return found | {"fr": self.matrix(fr)}
