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

from isolitmus.checker.judge.read_nodes import needs_operations
from isolitmus.checker.judge.spec_properties import increasing
from isolitmus.checker.universes.intervals import scheduled
from isolitmus.model.history import History
from isolitmus.model.operations import INITIAL, ItemRead, Transaction, Version, Write
from isolitmus.model.vocabulary import BY_VERSIONS, relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.judge.matrix_semantics import Booleans
    from isolitmus.checker.universes.slots import Slots
    from isolitmus.model.operations import Operation, Status
    from isolitmus.model.recorded import Moment
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
NAMES = frozenset(
    (
        *relations_of("histories", "reads", "operations", "moments", "items", "times"),
        *sets_of("histories", "reads", "operations"),
    )
)
"""What histories without a table can say: the names that a spec may use here, with those that it binds."""

TIMES = frozenset(relations_of("times", "moments"))
"""What only those say that tell what was when; others draw and count histories without."""


@dataclass(frozen=True, slots=True)
class Varied:
    """What may vary from history to history, besides what transactions read and write."""

    sessions: bool
    """Whether there are sessions of several transactions."""
    aborts: bool
    """Whether there are transactions that aborted."""
    observed: bool = False
    """Whether the version orders are observed."""
    times: bool = False
    """Whether it is known who had ended when somebody began."""
    moments: bool = False
    """Whether it is known in what order all operations and ends were."""


def varied(
    a: Spec, b: Spec, *, sessions: bool = True, aborts: bool = True, observed: bool = False
) -> Varied:
    """What varies in the search of what ``a`` admits and ``b`` forbids, if it may.

    What neither looks at is left out, for it changes no verdict; and so are sessions if only ``a`` looks
    at them, and fewer pairs never make it forbid what it allowed: what it admits with sessions it admits
    without. Version orders are observed if that is asked for, or a spec needs it, and one looks at them.

    >>> from isolitmus.specs.files.catalogue import level
    >>> varied(level("update-serializable"), level("causal"))
    Varied(sessions=True, aborts=True, observed=False, times=False, moments=False)
    >>> varied(level("causal"), level("update-serializable")).sessions
    False
    """
    tells = "so" in b.needs or ("so" in a.needs and not increasing(a))
    ordered = observes_versions(a, b) or (observed and (uses_versions(a) or uses_versions(b)))
    needs = a.needs | b.needs
    aborted = aborts and "Aborted" in needs
    return Varied(sessions and tells, aborted, ordered, "rt" in needs, "time" in needs)


def assumptions(a: Spec, b: Spec, *, sessions: bool = True, aborts: bool = True) -> tuple[str, ...]:
    """What is taken for granted when these specs are compared."""
    commits = "" if varied(a, b, aborts=aborts).aborts else "every transaction commits, and "
    who = commits or "every transaction "
    alone = () if sessions else ("every transaction is a session of its own",)
    if TIMES & (a.needs | b.needs):
        alone = (
            *alone,
            "sessions go on in real time, and nobody reads what is not written yet",
        )
    elif needs_operations(a) or needs_operations(b):
        alone = (*alone, "writes come in the order of the keys")
    return (
        f"{who}reads and writes each key at most once, reads first",
        f"at most {len(KEYS)} keys, no reads by predicate",
        *alone,
    )


def names_for(spec: Spec) -> frozenset[str]:
    """The names that this spec may use here.

    >>> from isolitmus.specs.language.parser import read
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
    slots: Slots[B] | None = None
    """When operations were; None: nobody knows."""

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

    def writes_first(self, t: int, x: int, y: int) -> B:
        """Whether t writes x before y, if it writes both: as the time says, else in the order of the keys."""
        if self.slots is not None:
            return self.slots.before[self.slots.write(t, x)][self.slots.write(t, y)]
        return self.booleans.true if x < y else self.booleans.false

    def used(self, x: int) -> B:
        """Whether some transaction reads or writes x."""
        return self.booleans.disj(
            does for t in range(self.n) for does in (self.reads(t, x), self.writes[t][x])
        )

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
        return History(tuple(transactions), together, tuple(observed), self._schedule(value))

    def _schedule(self, value: Callable[[B], bool]) -> tuple[Moment, ...]:
        ended = None
        if self.ended is not None:
            ended = [[value(one) for one in row] for row in self.ended]
        if self.slots is None:
            return () if ended is None else scheduled(ended)
        done = [
            [
                *(self.slots.read(t, KEYS.index(r.version.object)) for r in self._reads(t, value)),
                *(
                    self.slots.write(t, KEYS.index(w.version.object))
                    for w in self._writes(t, value)
                ),
            ]
            for t in range(self.n)
        ]
        return self.slots.schedule(done, value, ended)

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
        found = [x for x in range(self.keys) if value(self.writes[t][x])]

        def earlier(x: int) -> int:
            return sum(value(self.writes_first(t, y, x)) for y in found if y != x)

        return [Write(Version(KEYS[x], t + 1)) for x in sorted(found, key=earlier)]

    def _versions(self, x: int, order: OrderMatrix[B], value: Callable[[B], bool]) -> list[Version]:
        writers = [t for t in range(self.n) if value(self.installs(t, x))]

        def earlier(j: int) -> int:
            return sum(value(order[i][j]) for i in writers if i != j)

        return [Version(KEYS[x], t + 1) for t in sorted(writers, key=earlier)]
