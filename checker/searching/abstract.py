"""The abstract universe: transactions in sessions that read and write keys, no table and no SQL.

Each of n transactions reads and writes each key at most once, reads first, from the initial
transaction or from another one that writes the key. Nobody observes the version order unless a spec
uses it without binding it, or the search is told that somebody does. There are no predicate reads.

Choices. Sessions vary, and who aborted, wherever one of the specs can tell (``Varied``). A session is a
run of consecutive transactions, as any history is written once its transactions are numbered session
by session. Who aborted only writes, and is in no session: frames have nothing else of it. Reads are in
the order of the keys unless a spec asks for ``po``.

One set of Booleans stands for many histories: literals of a circuit, or bits of many cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, TypeVar

from isolitmus.checker.reading.matrix import Matrices
from isolitmus.checker.reading.monotone import increasing
from isolitmus.checker.searching.intervals import scheduled
from isolitmus.model.history import History
from isolitmus.model.operations import INITIAL, ItemRead, Transaction, Version, Write
from isolitmus.model.reads import needs_reads
from isolitmus.model.vocabulary import BY_VERSIONS, relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.reading.matrix import BooleanMatrix, Booleans
    from isolitmus.model.operations import Operation, Status
    from isolitmus.model.spec import Spec

__all__ = [
    "KEYS",
    "NAMES",
    "TIMES",
    "Histories",
    "Linear",
    "OrderMatrix",
    "Varied",
    "assumptions",
    "names_for",
    "observes_versions",
    "uses_versions",
    "varied",
]

B = TypeVar("B")
OrderMatrix = list[list[B]]
"""``order[i][j]``: version i of a key comes before version j, if both are there."""

KEYS = "xyz"
NAMES = frozenset((*relations_of("histories", "reads", "items", "times"), *sets_of("histories")))
"""What histories without a table can say: the names that a spec may use here, with those that it binds."""

TIMES = frozenset(relations_of("times"))
"""What only those say that tell when transactions began and ended; others draw and count histories without."""


@dataclass(frozen=True, slots=True)
class Varied:
    """Whether histories have sessions of several transactions, and transactions that aborted, whether the
    version orders are ``observed``, and whether it is known who had ended when somebody began (``times``).
    """

    sessions: bool
    aborts: bool
    observed: bool = False
    times: bool = False


def varied(
    a: Spec, b: Spec, *, sessions: bool = True, aborts: bool = True, observed: bool = False
) -> Varied:
    """What varies in the search of what ``a`` admits and ``b`` forbids, if it may.

    What neither looks at is left out, for it changes no verdict; and so are sessions if only ``a`` looks
    at them, and fewer pairs never make it forbid what it allowed: what it admits with sessions it admits
    without. Version orders are observed if that is asked for, or a spec needs it, and one looks at them.

    >>> from isolitmus.specs.catalogue import level
    >>> varied(level("update-serializable"), level("causal"))
    Varied(sessions=True, aborts=True, observed=False, times=False)
    >>> varied(level("causal"), level("update-serializable")).sessions
    False
    """
    tells = "so" in b.needs or ("so" in a.needs and not increasing(a))
    ordered = observes_versions(a, b) or (observed and (uses_versions(a) or uses_versions(b)))
    needs = a.needs | b.needs
    return Varied(sessions and tells, aborts and "Aborted" in needs, ordered, "rt" in needs)


def assumptions(a: Spec, b: Spec, *, sessions: bool = True, aborts: bool = True) -> tuple[str, ...]:
    """What is taken for granted when these specs are compared."""
    commits = "" if varied(a, b, aborts=aborts).aborts else "every transaction commits, and "
    who = commits or "every transaction "
    alone = () if sessions else ("every transaction is a session of its own",)
    if "rt" in a.needs | b.needs:
        alone = (
            *alone,
            "sessions go on in real time, and nobody reads what is begun after he ended",
        )
    return (
        f"{who}reads and writes each key at most once, reads first",
        f"at most {len(KEYS)} keys, no reads by predicate",
        *alone,
    )


def names_for(spec: Spec) -> frozenset[str]:
    """The names that this spec may use here.

    >>> from isolitmus.specs.cat import read
    >>> spec = read('"A" with co from linearisations empty co ; log as alone', "a")
    >>> sorted(spec.needs - names_for(spec))
    ['log']
    """
    return NAMES.union(spec.bound)


def uses_versions(spec: Spec) -> bool:
    """Whether the version order has a say in what a spec judges, for itself."""
    return bool(spec.needs & BY_VERSIONS) and spec.bound.get("ww") != "co"


def observes_versions(*specs: Spec) -> bool:
    """Whether some spec uses the version order without saying "for some": then it is observed."""
    return any(
        uses_versions(spec) and all(b.source != "versions" for b in spec.binders) for spec in specs
    )


@dataclass(frozen=True, slots=True)
class Linear(Generic[B]):
    """The commit order that a spec supposes; of transactions that aborted it says nothing."""

    co: OrderMatrix[B]
    """``co[i][j]``: i comes before j."""
    vis: OrderMatrix[B] | None = None
    """``vis[i][j]``: j sees i; None: no prefixes are bound."""


@dataclass(frozen=True, slots=True)
class Histories(Generic[B]):
    """Abstract histories of n transactions: Booleans for what each may do."""

    booleans: Booleans[B]
    """Of what kind."""
    writes: Sequence[Sequence[B]]
    """``writes[t][x]``: t writes x."""
    sources: Sequence[Sequence[dict[int, B]]]
    """``sources[t][x][s]``: t reads x from transaction s (0 … n-1) or from the initial one (n)."""
    joined: Sequence[B]
    """``joined[t]``: t + 1 continues the session of t."""
    first: Sequence[Sequence[dict[int, B]]]
    """``first[t][x][y]``: t reads x before y."""
    aborted: Sequence[B]
    """``aborted[t]``: t aborted, reads nothing and is in no session."""
    ended: OrderMatrix[B] | None = None
    """``ended[i][j]``: i had ended when j began; None: nobody knows of times."""

    @property
    def n(self) -> int:
        return len(self.writes)

    @property
    def keys(self) -> int:
        return len(self.writes[0])

    def reads(self, t: int, x: int) -> B:
        """Whether t reads x."""
        return self.booleans.disj(self.sources[t][x].values())

    def installs(self, t: int, x: int) -> B:
        """Whether t writes a version of x and commits."""
        booleans = self.booleans
        return booleans.both(self.writes[t][x], booleans.neg(self.aborted[t]))

    def used(self, x: int) -> B:
        """Whether some transaction reads or writes x."""
        return self.booleans.disj(
            does for t in range(self.n) for does in (self.reads(t, x), self.writes[t][x])
        )

    def frames(
        self, spec: Spec, orders: Sequence[OrderMatrix[B]], linear: Linear[B] | None = None
    ) -> Matrices[B]:
        """The frames on which the spec is judged, with a version order for each key, and a commit order."""
        if linear is not None and spec.bound.get("ww") == "co":
            orders = [linear.co] * self.keys
        builder = _HistoryMatrices(self, spec.needs, needs_reads(spec))
        return builder.frames(orders, linear)

    def agreeing(self, orders: Sequence[OrderMatrix[B]], co: OrderMatrix[B]) -> B:
        """Whether the versions that were installed come in the order of the transactions."""
        neg, conj = self.booleans.neg, self.booleans.conj
        pairs = [(i, j) for i in range(self.n) for j in range(self.n) if i != j]
        return conj(
            neg(conj([self.installs(i, x), self.installs(j, x), before[i][j], neg(co[i][j])]))
            for x, before in enumerate(orders)
            for i, j in pairs
        )

    def history(
        self, value: Callable[[B], bool], orders: Sequence[OrderMatrix[B]] | None = None
    ) -> History:
        """One history: the one in which the Booleans have these values. ``orders``: the version
        orders that were observed, if any.
        """
        transactions: list[Transaction] = []
        sessions: list[list[int]] = []
        for t in range(self.n):
            operations: tuple[Operation, ...] = (
                *self._reads(t, value),
                *self._writes(t, value),
            )
            status: Status = "aborted" if value(self.aborted[t]) else "committed"
            transactions.append(Transaction(t + 1, operations, status))
            if t and value(self.joined[t - 1]):
                sessions[-1].append(t + 1)
            else:
                sessions.append([t + 1])
        together = tuple(tuple(s) for s in sessions) if len(sessions) < self.n else ()
        observed = [
            pair
            for x, order in enumerate(orders or ())
            for pair in pairwise(self._versions(x, order, value))
        ]
        schedule = (
            ()
            if self.ended is None
            else scheduled([[value(one) for one in row] for row in self.ended])
        )
        return History(tuple(transactions), together, tuple(observed), schedule)

    def _reads(self, t: int, value: Callable[[B], bool]) -> list[ItemRead]:
        found: dict[int, int] = {}
        for x in range(self.keys):
            for s, there in self.sources[t][x].items():
                if value(there):
                    found[x] = INITIAL if s == self.n else s + 1

        def earlier(x: int) -> int:
            return sum(value(self.first[t][y].get(x, self.booleans.false)) for y in found)

        return [ItemRead(Version(KEYS[x], found[x])) for x in sorted(found, key=earlier)]

    def _writes(self, t: int, value: Callable[[B], bool]) -> list[Write]:
        return [
            Write(Version(KEYS[x], t + 1)) for x in range(self.keys) if value(self.writes[t][x])
        ]

    def _versions(self, x: int, order: OrderMatrix[B], value: Callable[[B], bool]) -> list[Version]:
        writers = [t for t in range(self.n) if value(self.installs(t, x))]

        def earlier(j: int) -> int:
            return sum(value(order[i][j]) for i in writers if i != j)

        return [Version(KEYS[x], t + 1) for t in sorted(writers, key=earlier)]


class _HistoryMatrices(Generic[B]):
    """Nodes: the transactions; with reads then the initial transaction and every possible read."""

    def __init__(self, histories: Histories[B], needs: frozenset[str], with_reads: bool) -> None:
        self.h = histories
        self.needs = needs
        self.booleans = histories.booleans
        self.with_reads = with_reads
        self.initial = histories.n
        self.size = histories.n + (1 + histories.n * histories.keys if with_reads else 0)

    def node(self, t: int, x: int) -> int:
        return self.h.n + 1 + t * self.h.keys + x

    def frames(
        self, orders: Sequence[OrderMatrix[B]], linear: Linear[B] | None = None
    ) -> Matrices[B]:
        h, disj, true, false = self.h, self.booleans.disj, self.booleans.true, self.booleans.false
        exists = [true] * (h.n + self.with_reads)
        if self.with_reads:
            exists += [h.reads(t, x) for t in range(h.n) for x in range(h.keys)]
        writer = [disj(h.writes[t]) for t in range(h.n)]
        rest = [false] * (self.size - h.n)
        reader = [self.booleans.neg(w) for w in writer]
        made = {
            "so": self.so,
            "wr": self.wr,
            "wr-item": self.wr,
            "wr-predicate": self.nothing,
            "intermediate": self.nothing,
            "rw-predicate": self.nothing,
            "rf": self.rf,
            "po": self.po,
            "in": self.inside,
            "rival": self.rival,
        }
        relations = {name: make() for name, make in made.items() if name in self.needs}
        if self.needs & BY_VERSIONS:
            relations["ww"], relations["rw"] = self.versions(orders)
            relations["rw-item"] = relations["rw"]
        if "rt" in self.needs and self.h.ended is not None:
            relations["rt"] = self.among(self.h.ended, initial=False)
        if linear is not None:
            relations["co"] = self.among(linear.co)
            if linear.vis is not None:
                relations["vis"] = self.among(linear.vis)
        sets = {
            "Writer": writer + rest,
            "Reader": reader + rest,
            "Aborted": [*self.h.aborted, *rest],
        }
        return Matrices(self.booleans, exists, relations, sets)

    def matrix(self, pairs: dict[tuple[int, int], list[B]]) -> BooleanMatrix[B]:
        rows: BooleanMatrix[B] = [{} for _ in range(self.size)]
        for (i, j), parts in pairs.items():
            value = self.booleans.disj(parts)
            if value != self.booleans.false:
                rows[i][j] = value
        return rows

    def so(self) -> BooleanMatrix[B]:
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
        """Pairs of transactions that committed; the ``initial`` one is before them all."""
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
        """Nobody reads by predicate, nor writes a key twice."""
        return self.matrix({})

    def wr(self) -> BooleanMatrix[B]:
        pairs: dict[tuple[int, int], list[B]] = {}
        for t in range(self.h.n):
            for x in range(self.h.keys):
                for s, there in self.h.sources[t][x].items():
                    if s < self.h.n or self.with_reads:
                        pairs.setdefault((s, t), []).append(there)
        return self.matrix(pairs)

    def rf(self) -> BooleanMatrix[B]:
        return self.matrix(
            {
                (s, self.node(t, x)): [there]
                for t in range(self.h.n)
                for x in range(self.h.keys)
                for s, there in self.h.sources[t][x].items()
            }
        )

    def inside(self) -> BooleanMatrix[B]:
        return self.matrix(
            {
                (self.node(t, x), t): [self.h.reads(t, x)]
                for t in range(self.h.n)
                for x in range(self.h.keys)
            }
        )

    def po(self) -> BooleanMatrix[B]:
        conj = self.booleans.conj
        return self.matrix(
            {
                (self.node(t, x), self.node(t, y)): [
                    conj([self.h.reads(t, x), self.h.reads(t, y), before])
                ]
                for t in range(self.h.n)
                for x in range(self.h.keys)
                for y, before in self.h.first[t][x].items()
            }
        )

    def rival(self) -> BooleanMatrix[B]:
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

    def versions(
        self, orders: Sequence[OrderMatrix[B]]
    ) -> tuple[BooleanMatrix[B], BooleanMatrix[B]]:
        """ww and rw: a version and the next one; a version that was read and the next one."""
        h, both, conj, neg = self.h, self.booleans.both, self.booleans.conj, self.booleans.neg
        ww: dict[tuple[int, int], list[B]] = {}
        rw: dict[tuple[int, int], list[B]] = {}
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
                            rw.setdefault((t, i), []).append(both(there, following[s, i]))
        return self.matrix(ww), self.matrix(rw)
