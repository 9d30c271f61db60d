"""The abstract universe: its parameters, orders of slots and of intervals.

The abstract universe: transactions in sessions that read and write keys, no table and no SQL.

Each of n transactions reads and writes each key at most once, reads first, from the initial
transaction or from another one that writes the key. Nobody observes the version order unless a spec
uses it without binding it, or the search is told that somebody does. There are no predicate reads.

Choices. Sessions vary, and who aborted, wherever one of the specs can tell (``Variation``). A
session is a run of consecutive transactions, as any history is written once its transactions are
numbered session by session. Who aborted only writes, and is in no session: frames have nothing else
of it. Reads are in the order of the keys unless a spec asks for ``po``.

One set of Booleans stands for many histories: literals of a circuit, or bits of many cases.

What was when in an abstract history: an order of all that transactions may do, and of their ends.

Orders of intervals: of transactions that begin and end, who had ended when another one began.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from typing import TYPE_CHECKING, Generic, TypeVar

from isolitmus.checker.judge.read_nodes import needs_operations
from isolitmus.checker.judge.spec_properties import is_increasing
from isolitmus.model.history import History
from isolitmus.model.operations import (
    INITIAL,
    ItemRead,
    Transaction,
    Version,
    Write,
    read_versions,
    shorten_schedule,
)
from isolitmus.model.vocabulary import BY_VERSIONS, relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.checker.judge.matrix_semantics import Booleans
    from isolitmus.model.operations import Moment, Operation, Status
    from isolitmus.model.spec import Spec

__all__ = [
    "KEYS",
    "NAMES",
    "TIMES",
    "Histories",
    "LinearOrders",
    "OrderMatrix",
    "Slots",
    "Variation",
    "assumptions",
    "available_names",
    "interval_crossings",
    "interval_orders",
    "observes_versions",
    "uses_versions",
    "variation_for",
    "with_schedule",
    "with_serial_time",
]

B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Slots(Generic[B]):
    """A total order of slots: for each transaction one for the read of each key, for the write of
    each key, and for its end. Of what does not happen the slot says nothing.
    """

    keys: int
    """How many there are."""
    before: Sequence[Sequence[B]]
    """``before[p][q]``: what is at p comes before what is at q."""

    def read(self, t: int, x: int) -> int:
        """The slot of a read."""
        return t * (2 * self.keys + 1) + x

    def write(self, t: int, x: int) -> int:
        """The slot of a write."""
        return self.read(t, self.keys + x)

    def end(self, t: int) -> int:
        """The slot of the end of a transaction."""
        return self.read(t, 2 * self.keys)

    def turns(self) -> Iterator[tuple[int, int]]:
        """Two slots of one transaction of which the first comes first, whatever there is: reads,
        writes, the end.

        >>> [*Slots(1, [[0] * 6] * 6).turns()]
        [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]
        """
        keys = range(self.keys)
        for t in range(len(self.before) // (2 * self.keys + 1)):
            for x in keys:
                yield from ((self.read(t, x), self.write(t, y)) for y in keys)
                yield self.read(t, x), self.end(t)
            yield from ((self.write(t, x), self.end(t)) for x in keys)

    def sorted(self, slots: Sequence[int], value: Callable[[B], bool]) -> list[int]:
        """These slots, earliest first."""
        return sorted(slots, key=lambda q: sum(value(self.before[p][q]) for p in slots if p != q))

    def schedule(
        self,
        done: Sequence[Sequence[int]],
        value: Callable[[B], bool],
        ended: Sequence[Sequence[bool]] | None,
    ) -> tuple[Moment, ...]:
        """When transactions, from number 1, began, did what is at these slots, in turn, and ended.
        ``ended[i][j]``: i had ended when j began; None: each begins right before what it does
        first.
        """
        n = len(done)
        at = {slot: (t, k) for t, slots in enumerate(done) for k, slot in enumerate(slots, 1)}
        at |= {self.end(t): (t, 0) for t in range(n)}
        moments: list[Moment] = []
        waiting = dict.fromkeys(range(n))
        for slot in self.sorted([*at], value):
            t, k = at[slot]
            late = [] if ended is None or k else [j for j in waiting if not ended[t][j]]
            for j in late if t in late or t not in waiting else [*late, t]:
                moments.append((j + 1, "start"))
                del waiting[j]
            moments.append((t + 1, k or "end"))
        return shorten_schedule(moments)


def interval_crossings(
    n: int,
) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[tuple[int, int], ...]]]:
    """What makes a relation on n an order of intervals (Fishburn, Intransitive indifference with
    unequal indifference intervals, 1970): of each two pairs (a, b) and (c, d), those of which then
    one is there, too, (a, d) or (c, b). None relates anybody to himself.

    >>> [(one, other) for one, other, then in interval_crossings(2) if not then]
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    for (a, b), (c, d) in permutations(permutations(range(n), 2), 2):
        yield (a, b), (c, d), tuple((i, j) for i, j in ((a, d), (c, b)) if i != j)


def interval_orders(n: int) -> Iterator[list[list[bool]]]:
    """All orders of n intervals: ``[i][j]``, i had ended when j began.

    >>> [sum(1 for _ in interval_orders(n)) for n in (1, 2, 3)]
    [1, 3, 19]
    """
    pairs = [*permutations(range(n), 2)]
    demands = [*interval_crossings(n)]
    for chosen in product((False, True), repeat=len(pairs)):
        there = {pair for pair, one in zip(pairs, chosen, strict=True) if one}
        if all(
            one not in there or other not in there or not there.isdisjoint(then)
            for one, other, then in demands
        ):
            yield [[(i, j) in there for j in range(n)] for i in range(n)]


def with_schedule(ended: Sequence[Sequence[bool]]) -> tuple[Moment, ...]:
    """When transactions, from number 1, began and ended, so that just these had ended when others
    began.

    >>> with_schedule([[False, True], [False, False]])
    ((1, 'start'), (1, 'end'), (2, 'start'), (2, 'end'))
    """
    n = len(ended)
    before = [{i for i in range(n) if ended[i][j]} for j in range(n)]
    moments: list[Moment] = []
    over: set[int] = set()
    for j in sorted(range(n), key=lambda j: (len(before[j]), j)):
        moments += [(i + 1, "end") for i in sorted(before[j] - over)]
        over |= before[j]
        moments.append((j + 1, "start"))
    return (*moments, *((i + 1, "end") for i in range(n) if i not in over))


def with_serial_time(history: History) -> History | None:
    """The history with a time in which nobody overlaps, and nobody reads what is not written yet:
    whoever asks for no time says the same of it. None if there is no such time, or if nobody knows
    how somebody ended.

    >>> from isolitmus.model.history import History
    >>> with_serial_time(History.from_table({"T1": "r(x2)", "T2": "w(x2)"})).to_table()["schedule"]
    'T2 T1'
    >>> with_serial_time(History.from_table({"T1": "r(x2) w(y1)", "T2": "r(y1) w(x2)"}))
    """
    from networkx import DiGraph, NetworkXUnfeasible, lexicographical_topological_sort

    graph = DiGraph()
    graph.add_nodes_from(t.number for t in history.transactions)
    graph.add_edges_from(pair for session in history.sessions for pair in pairwise(session))
    graph.add_edges_from((a.writer, b.writer) for a, b in history.order)
    written = history.versions()
    for t in history.transactions:
        saw = {version for done in t.operations for version in read_versions(done)}
        graph.add_edges_from((v.writer, t.number) for v in saw & written if v.writer != t.number)
    graph.remove_nodes_from([INITIAL])
    try:
        order = [*lexicographical_topological_sort(graph)]
    except NetworkXUnfeasible:
        return None
    if any(t.status == "unknown" for t in history.transactions):
        return None
    moments: list[Moment] = []
    for number in order:
        moments += [(number, "start"), (number, "end")]
    return replace(history, schedule=tuple(moments))


OrderMatrix = list[list[B]]
"""``order[i][j]``: version i of a key comes before version j, if both are there."""

KEYS = "xyz"
NAMES = frozenset(
    (
        *relations_of("histories", "reads", "operations", "moments", "items", "times"),
        *sets_of("histories", "reads", "operations"),
    )
)
"""What histories without a table can say: the names that a spec may use here, with those that it
binds.
"""

TIMES = frozenset(relations_of("times", "moments"))
"""What only those say that tell what was when; others draw and count histories without."""


@dataclass(frozen=True, slots=True)
class Variation:
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


def variation_for(
    a: Spec, b: Spec, *, sessions: bool = True, aborts: bool = True, observed: bool = False
) -> Variation:
    """What varies in the search of what ``a`` admits and ``b`` forbids, if it may.

    What neither looks at is left out, for it changes no verdict; and so are sessions if only ``a``
    looks at them, and fewer pairs never make it forbid what it allowed: what it admits with
    sessions it admits without. Version orders are observed if that is asked for, or a spec needs
    it, and one looks at them.

    >>> from isolitmus.specs.files.catalogue import level
    >>> variation_for(level("update-serializable"), level("causal"))
    Variation(sessions=True, aborts=True, observed=False, times=False, moments=False)
    >>> variation_for(level("causal"), level("update-serializable")).sessions
    False
    """
    tells = "so" in b.needs or ("so" in a.needs and not is_increasing(a))
    ordered = observes_versions(a, b) or (observed and (uses_versions(a) or uses_versions(b)))
    needs = a.needs | b.needs
    aborted = aborts and "Aborted" in needs
    return Variation(sessions and tells, aborted, ordered, "rt" in needs, "time" in needs)


def assumptions(a: Spec, b: Spec, *, sessions: bool = True, aborts: bool = True) -> tuple[str, ...]:
    """Return the assumptions of a comparison of these specs."""
    commits = "" if variation_for(a, b, aborts=aborts).aborts else "every transaction commits, and "
    who = commits or "each transaction "
    alone = () if sessions else ("each transaction is its own session",)
    if TIMES & (a.needs | b.needs):
        alone = (
            *alone,
            "sessions run in real time, and no transaction reads a version before it is written",
        )
    elif needs_operations(a) or needs_operations(b):
        alone = (*alone, "each transaction writes its keys in their order")
    return (
        f"{who}reads and writes each key at most once, with reads before writes",
        f"there are at most {len(KEYS)} keys and no predicate reads",
        *alone,
    )


def available_names(spec: Spec) -> frozenset[str]:
    """The names that this spec may use here.

    >>> from isolitmus.specs.language.parser import read
    >>> spec = read('"A" with co from linearisations empty co ; log as alone', "a")
    >>> sorted(spec.needs - available_names(spec))
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
class LinearOrders(Generic[B]):
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
        """Whether t writes x before y, if it writes both: as the time says, else in the order of
        the keys.
        """
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
            return () if ended is None else with_schedule(ended)
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
