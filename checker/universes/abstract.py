"""Abstract search space: transactions in sessions that read and write keys, without tables or SQL.

Each of n transactions reads and writes each key at most once, reads first, from the initial
transaction or from another one that writes the key. The version order is not observed, unless a
spec uses it without binding it, or the search is told so. There are no predicate reads.

Choices. Sessions and aborts vary if one of the specs can tell (``Variation``). A session is a run
of consecutive transactions, as in any history whose transactions are numbered session by session.
An aborted transaction only writes, and is in no session: a dependency graph shows nothing else of
it. Reads are in the order of the keys unless a spec asks for ``po``.

The Booleans of `Histories` stand for many histories: they are literals of a circuit, or bits of
many cases. `Slots` is an order in time of all operations and ends. An interval order says which
transactions had ended when another one began.
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

B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Slots(Generic[B]):
    """Total order of slots: per transaction, one for the read and write of each key, and its end.

    Slots of absent operations have no meaning.
    """

    keys: int
    """Number of keys."""
    before: Sequence[Sequence[B]]
    """``before[p][q]``: slot p precedes slot q."""

    def read(self, t: int, x: int) -> int:
        """Return the slot of the read of key x by transaction t."""
        return t * (2 * self.keys + 1) + x

    def write(self, t: int, x: int) -> int:
        """Return the slot of the write of key x by transaction t."""
        return self.read(t, self.keys + x)

    def end(self, t: int) -> int:
        """Return the slot of the end of transaction t."""
        return self.read(t, 2 * self.keys)

    def turns(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of slots of a transaction in fixed order: reads, writes, end.

        Examples
        --------
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
        """Return the slots in their order, earliest first."""
        return sorted(slots, key=lambda q: sum(value(self.before[p][q]) for p in slots if p != q))

    def schedule(
        self,
        done: Sequence[Sequence[int]],
        value: Callable[[B], bool],
        ended: Sequence[Sequence[bool]] | None,
    ) -> tuple[Moment, ...]:
        """Return the times at which transactions began, executed their operations, and ended.

        Transactions are numbered from 1.

        Parameters
        ----------
        done : sequence of sequence of int
            Slots of the operations of each transaction, in turn.
        value : callable
            Maps a Boolean to its value.
        ended : matrix of bool, or None
            ``ended[i][j]``: i had ended when j began. None: each begins right before its first
            operation.
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
    """Yield the axioms of an interval order on n elements.

    Fishburn, Intransitive indifference with unequal indifference intervals, 1970: if (a, b) and (c,
    d) are in the relation, so is (a, d) or (c, b). The relation is irreflexive.

    Yields
    ------
    one, other : tuple of (int, int)
        Two pairs.
    then : tuple of pairs
        Pairs of which one must be in the relation if both of these are.

    Examples
    --------
    >>> [(one, other) for one, other, then in interval_crossings(2) if not then]
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    for (a, b), (c, d) in permutations(permutations(range(n), 2), 2):
        yield (a, b), (c, d), tuple((i, j) for i, j in ((a, d), (c, b)) if i != j)


def interval_orders(n: int) -> Iterator[list[list[bool]]]:
    """Yield all interval orders on n elements, as matrices: ``[i][j]``, i had ended when j began.

    Examples
    --------
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
    """Return times of beginnings and ends of transactions that have this interval order.

    ``ended[i][j]``: i had ended when j began. Transactions are numbered from 1.

    Examples
    --------
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
    """Return the history with times at which transactions do not overlap.

    No transaction reads what is not written yet. A spec that uses no time gives the same verdict.

    Returns
    -------
    History or None
        None if there are no such times, or if the outcome of a transaction is unknown.

    Examples
    --------
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
"""``order[i][j]``: version i of a key precedes version j, if both exist."""

KEYS = "xyz"
NAMES = frozenset(
    (
        *relations_of("histories", "reads", "operations", "moments", "items", "times"),
        *sets_of("histories", "reads", "operations"),
    )
)
"""Names that a spec may use on histories without a table, besides those that it binds."""

TIMES = frozenset(relations_of("times", "moments"))
"""Names that need times; other searches sample and count histories without times."""


@dataclass(frozen=True, slots=True)
class Variation:
    """Properties that vary among histories, besides reads and writes."""

    sessions: bool
    """True if there are sessions of several transactions."""
    aborts: bool
    """True if there are aborted transactions."""
    observed: bool = False
    """True if the version orders are observed."""
    times: bool = False
    """True if it is known which transactions had ended when another began."""
    moments: bool = False
    """True if the order of all operations and ends is known."""


def variation_for(
    a: Spec, b: Spec, *, sessions: bool = True, aborts: bool = True, observed: bool = False
) -> Variation:
    """Return what varies in the search of histories that ``a`` admits and ``b`` forbids.

    Properties that neither spec uses are left out, since they change no verdict. Sessions are also
    left out if only ``a`` uses them, and fewer pairs never make it forbid what it allowed: what it
    admits with sessions it admits without. Version orders are observed if ``observed`` is given, or
    a spec needs it, and one of them uses version orders.

    Examples
    --------
    >>> from isolitmus.specs.files.spec_catalogue import level
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
    """Return the names that this spec may use on histories without a table.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> spec = read('"A" with co from linearisations empty co ; log as alone', "a")
    >>> sorted(spec.needs - available_names(spec))
    ['log']
    """
    return NAMES.union(spec.bound)


def uses_versions(spec: Spec) -> bool:
    """Return whether the verdict of a spec depends on the version order in its own right."""
    return bool(spec.needs & BY_VERSIONS) and spec.bound.get("ww") != "co"


def observes_versions(*specs: Spec) -> bool:
    """Return whether some spec uses the version order without binding it; it is then observed."""
    return any(
        uses_versions(spec) and all(b.source != "versions" for b in spec.binders) for spec in specs
    )


@dataclass(frozen=True, slots=True)
class LinearOrders(Generic[B]):
    """Commit order that a spec assumes; aborted transactions are not in it."""

    co: OrderMatrix[B]
    """``co[i][j]``: i precedes j."""
    vis: OrderMatrix[B] | None = None
    """``vis[i][j]``: j sees i. None: no prefixes are bound."""


@dataclass(frozen=True, slots=True)
class Histories(Generic[B]):
    """Abstract histories of n transactions, with a Boolean for each possible fact."""

    booleans: Booleans[B]
    """Operations on these Booleans."""
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
    """``ended[i][j]``: i had ended when j began. None: times are unknown."""
    slots: Slots[B] | None = None
    """Order of operations in time. None: it is unknown."""

    @property
    def n(self) -> int:
        return len(self.writes)

    @property
    def keys(self) -> int:
        return len(self.writes[0])

    def reads(self, t: int, x: int) -> B:
        """Return the Boolean: t reads x."""
        return self.booleans.disj(self.sources[t][x].values())

    def installs(self, t: int, x: int) -> B:
        """Return the Boolean: t writes a version of x and commits."""
        booleans = self.booleans
        return booleans.both(self.writes[t][x], booleans.neg(self.aborted[t]))

    def writes_first(self, t: int, x: int, y: int) -> B:
        """Return the Boolean: t writes x before y, if it writes both.

        The order is that of time, if known, else that of the keys.
        """
        if self.slots is not None:
            return self.slots.before[self.slots.write(t, x)][self.slots.write(t, y)]
        return self.booleans.true if x < y else self.booleans.false

    def used(self, x: int) -> B:
        """Return the Boolean: some transaction reads or writes x."""
        return self.booleans.disj(
            does for t in range(self.n) for does in (self.reads(t, x), self.writes[t][x])
        )

    def agreeing(self, orders: Sequence[OrderMatrix[B]], co: OrderMatrix[B]) -> B:
        """Return the Boolean: installed versions come in the order of their transactions."""
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
        """Return the history in which the Booleans have these values.

        Parameters
        ----------
        value : callable
            Maps a Boolean to its value.
        orders : sequence of OrderMatrix, optional
            Observed version orders, by key.
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
        """Return the schedule: by slots of operations, by the ends of transactions, or empty."""
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
        """Return the reads of a transaction in their order."""
        found: dict[int, int] = {}
        for x in range(self.keys):
            for s, there in self.sources[t][x].items():
                if value(there):
                    found[x] = INITIAL if s == self.n else s + 1

        def earlier(x: int) -> int:
            return sum(value(self.first[t][y].get(x, self.booleans.false)) for y in found)

        return [ItemRead(Version(KEYS[x], found[x])) for x in sorted(found, key=earlier)]

    def _writes(self, t: int, value: Callable[[B], bool]) -> list[Write]:
        """Return the writes of a transaction in their order."""
        found = [x for x in range(self.keys) if value(self.writes[t][x])]

        def earlier(x: int) -> int:
            return sum(value(self.writes_first(t, y, x)) for y in found if y != x)

        return [Write(Version(KEYS[x], t + 1)) for x in sorted(found, key=earlier)]

    def _versions(self, x: int, order: OrderMatrix[B], value: Callable[[B], bool]) -> list[Version]:
        """Return the installed versions of a key in version order."""
        writers = [t for t in range(self.n) if value(self.installs(t, x))]

        def earlier(j: int) -> int:
            return sum(value(order[i][j]) for i in writers if i != j)

        return [Version(KEYS[x], t + 1) for t in sorted(writers, key=earlier)]
