"""Enumeration of abstract histories in bit-sliced batches, smallest first.

A batch is a product: for each key a list of options (what each transaction does with it), and the
version orders of its writers. A Boolean of the dependency graph is one integer with a bit for each
member of the product, so a spec is evaluated once for all of them
(``checker.judge.matrix_semantics.BitSlices``). The enumeration shares only the construction of the
graph with the search by a solver; each is the other's oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement, islice, permutations
from itertools import product as cartesian
from math import factorial, prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from isolitmus.checker.judge.matrix_semantics import BitSlices, spec_holds
from isolitmus.checker.universes.abstract import (
    KEYS,
    Histories,
    LinearOrders,
    Variation,
    interval_orders,
    uses_versions,
    variation_for,
)
from isolitmus.checker.universes.abstract_frames import AbstractFrames
from isolitmus.model.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Bits = NDArray[np.bool_]
    from collections.abc import Callable

    from isolitmus.checker.universes.abstract import OrderMatrix
    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec

LISTED = 1 << 12
"""Maximal number of options of a key that are listed at a time."""

Flags = tuple[bool, ...]
"""One Boolean per transaction, or per transaction but the first."""
Rank = tuple[int, ...]
"""Position in the version order of each writer of a key."""


@dataclass(frozen=True, slots=True)
class KeyOption:
    """Operations of n transactions on one key: writers, and sources of reads (None: no read)."""

    writes: tuple[bool, ...]
    sources: tuple[int | None, ...]


def links_and_ends(n: int, vary: Variation) -> list[tuple[int, int]]:
    """Return all pairs: number of session links, number of aborted transactions.

    A link joins a transaction to the session of the one before.
    """
    return [
        (links, ends)
        for links in range(n if vary.sessions else 1)
        for ends in range(n + 1 if vary.aborts else 1)
    ]


def _ends(n: int, links: int, ends: int) -> Iterator[tuple[Flags, Flags]]:
    """Yield session links and aborted transactions; an aborted one is in no session."""
    for joined in _some(n - 1, links):
        for aborted in _some(n, ends):
            pairs = zip(joined, aborted, aborted[1:], strict=False)
            if not any(together and (a or b) for together, a, b in pairs):
                yield joined, aborted


def ends_in_time(
    n: int, links: int, ends: int, vary: Variation
) -> Iterator[tuple[Flags, Flags, list[list[bool]] | None]]:
    """Yield session links, aborted transactions, and an interval order if times vary.

    Sessions run in real time.
    """
    for joined, aborted in _ends(n, links, ends):
        if not vary.times:
            yield joined, aborted, None
            continue
        for ended in interval_orders(n):
            if all(ended[t][t + 1] for t, together in enumerate(joined) if together):
                yield joined, aborted, ended


def _some(n: int, count: int) -> Iterator[Flags]:
    """Yield all subsets of ``count`` of n, as flags."""
    if n == count == 0:
        yield ()
    if count < n:
        yield from ((False, *rest) for rest in _some(n - 1, count))
    if count:
        yield from ((True, *rest) for rest in _some(n - 1, count - 1))


def sizes_of_keys(n: int) -> Iterator[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """Yield the sizes of all keys: numbers of operations and of writes among them.

    Fewest operations first, then fewest keys.

    Yields
    ------
    operations, keys : int
        Number of operations, and of keys used.
    groups : tuple of (int, int)
        Operations and writes of each key.
    """
    sizes = sorted(((w + r, w) for w in range(n + 1) for r in range(n + 1)), reverse=True)
    for operations in range(n, 2 * n * len(KEYS) + 1):
        found = [
            (sum(size > 0 for size, _ in groups), groups)
            for groups in combinations_with_replacement(sizes, len(KEYS))
            if sum(size for size, _ in groups) == operations
        ]
        yield from ((operations, keys, groups) for keys, groups in sorted(found))


def _options(size: tuple[int, int], aborted: Flags) -> Iterator[KeyOption]:
    """Yield the options of one key with this number of operations and of writes.

    Aborted transactions read nothing.
    """
    operations, writers = size
    for writes in _some(len(aborted), writers):
        for sources in _sources(writes, operations - writers, aborted, 0):
            yield KeyOption(writes, sources)


def _sources(writes: Flags, reads: int, aborted: Flags, t: int) -> Iterator[tuple[int | None, ...]]:
    """Yield the sources of reads of one key, from transaction t on, with this number of reads."""
    n = len(writes)
    if reads > n - t - sum(aborted[t:]):
        return
    if t == n:
        yield ()
        return
    yield from ((None, *rest) for rest in _sources(writes, reads, aborted, t + 1))
    if reads and not aborted[t]:
        for source in (n, *(s for s in range(n) if s != t and writes[s])):
            yield from ((source, *rest) for rest in _sources(writes, reads - 1, aborted, t + 1))


def option_lists(
    groups: Sequence[tuple[int, int]], aborted: Flags, most: int, *, ordered: bool
) -> Iterator[list[list[KeyOption]]]:
    """Yield the options of each key in parts, for batches of at most about ``most`` members."""
    first, second, third = (partial(_options, size, aborted) for size in groups)
    for x in _cut(first(), LISTED):
        for y in _cut(second(), LISTED):
            for z in _cut(third(), LISTED):
                yield from _pieces([x, y, z], most, ordered=ordered)


T = TypeVar("T")


def _cut(things: Iterator[T], length: int) -> Iterator[list[T]]:
    while some := list(islice(things, length)):
        yield some


def _pieces(
    lists: list[list[KeyOption]], most: int, *, ordered: bool
) -> Iterator[list[list[KeyOption]]]:
    """Yield the product in parts of at most ``most`` members, if possible."""
    size = prod(len(options) * (_orders(options) if ordered else 1) for options in lists)
    longest = max(range(len(lists)), key=lambda k: len(lists[k]))
    half = len(lists[longest]) // 2
    if size <= most or not half:
        yield lists
        return
    for part in (lists[longest][:half], lists[longest][half:]):
        yield from _pieces([*lists[:longest], part, *lists[longest + 1 :]], most, ordered=ordered)


def _orders(options: list[KeyOption]) -> int:
    """Return the number of version orders of a key; all options have the same number of writers."""
    return factorial(sum(options[0].writes))


def version_ranks(
    lists: list[list[KeyOption]], most: int, *, ordered: bool
) -> Iterator[tuple[Sequence[list[Rank]], bool]]:
    """Yield the version orders of each key in parts, as ranks, and whether more follow."""
    if not ordered:
        yield (), False
        return
    size = prod(len(options) * _orders(options) for options in lists)
    each = most if size <= most else max(1, int((most // prod(map(len, lists))) ** (1 / 3)))
    first, second, third = (sum(options[0].writes) for options in lists)
    left = prod(-(-_orders(options) // each) for options in lists)
    for x in _cut(permutations(range(first)), each):
        for y in _cut(permutations(range(second)), each):
            for z in _cut(permutations(range(third)), each):
                left -= 1
                yield [x, y, z], left > 0


def read_orders(n: int, keys: int, needs: frozenset[str]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield, for each transaction, the order in which it reads the keys, if a spec uses ``po``."""
    every = permutations(range(keys)) if "po" in needs else [tuple(range(keys))]
    return cartesian([(*order, *range(keys, len(KEYS))) for order in every], repeat=n)


def reads_late(option: KeyOption, ended: list[list[bool]]) -> bool:
    """Return whether a transaction reads from one that began after it had ended."""
    n = len(ended)
    return any(s is not None and s < n and ended[t][s] for t, s in enumerate(option.sources))


@dataclass(frozen=True, slots=True)
class Product:
    """Members of a product of choices, the last axis changing fastest; bit k is member k.

    Examples
    --------
    >>> two_by_three = Product((2, 3))
    >>> bin(two_by_three.plane(np.array([False, True]), 0))
    '0b111000'
    >>> two_by_three.bits(0b111000).tolist()
    [False, False, False, True, True, True]
    """

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def booleans(self) -> BitSlices:
        """Bit slices of this many members."""
        return BitSlices((1 << self.size) - 1)

    def plane(self, values: Bits, *axes: int) -> int:
        """Return the bit-sliced Boolean with these values.

        Parameters
        ----------
        values : ndarray of bool
            One dimension for each of ``axes``, in order.
        *axes : int
            Axes that the value depends on, ascending.

        Returns
        -------
        int
            Bit k is the value of member k.
        """
        return self._within(values.tolist(), axes, 0) if values.any() else 0

    def _within(self, values: Any, axes: tuple[int, ...], first: int) -> int:
        """Return the plane of the members that differ only in the axes from ``first`` on."""
        if not axes:
            return (1 << prod(self.shape[first:])) - 1 if values else 0
        axis, *others = axes
        width, found = prod(self.shape[axis + 1 :]), 0
        for k, some in enumerate(values):
            if some:
                found |= self._within(some, tuple(others), axis + 1) << k * width
        return repeat_bits(found, width * self.shape[axis], prod(self.shape[first:axis]))

    def bits(self, plane: int) -> Bits:
        """Return a bit-sliced Boolean as an ndarray of bool, shape (size,)."""
        flat = np.frombuffer(plane.to_bytes(-(-self.size // 8), "little"), np.uint8)
        return np.unpackbits(flat, bitorder="little", count=self.size).astype(np.bool_)

    def member(self, k: int) -> tuple[int, ...]:
        """Return the choices of member k, one per axis."""
        return tuple(int(i) for i in np.unravel_index(k, self.shape))


def repeat_bits(bits: int, width: int, times: int) -> int:
    """Return a pattern of ``width`` bits, repeated.

    Examples
    --------
    >>> bin(repeat_bits(0b01, 2, 3))
    '0b10101'
    """
    found = size = 0
    while times:
        if times & 1:
            found |= bits << size
            size += width
        times >>= 1
        if times:
            bits |= bits << width
            width *= 2
    return found


LARGEST = 1 << 22
"""Maximal number of members of a batch, for up to FEW transactions; with more transactions, each
has more Booleans.
"""
FEW = 4


@dataclass(frozen=True, slots=True)
class HistoryBatch:
    """Histories of one size; bit h·o + k is history h under its version order k of o."""

    size: tuple[int, int, int, int]
    """Numbers of session links, aborted transactions, operations, keys."""
    product: Product
    """Choices that a history is made of."""
    histories: Histories[int]
    """Facts of the histories, one bit per member."""
    frames: AbstractFrames[int]
    """Dependency graphs of the histories."""
    orders: tuple[OrderMatrix[int], ...]
    """Version order of each key."""
    valid: Bits
    """Shape (n_histories,): every transaction does something, and no read precedes its source."""
    groups: tuple[tuple[int, int], ...]
    """Numbers of operations and of writes among them, per key."""
    reading: tuple[tuple[int, ...], ...]
    """Order of the keys in which each transaction reads."""
    more: bool = False
    """True if the same histories follow under further version orders."""

    def admits(self, spec: Spec, *, observed: bool = False) -> Bits:
        """Return whether the spec admits each history.

        Parameters
        ----------
        spec : Spec
            Spec to evaluate.
        observed : bool
            Whether the version order is observed.

        Returns
        -------
        ndarray of bool
            Shape (n_histories, 1): admitted under some version order. With ``observed``, shape
            (n_histories, choices): admitted under each one.
        """
        orders = self.orders if uses_versions(spec) else ()
        said = self.histories.booleans.disj(
            self._admitted(spec, orders, linear, observed=observed) for linear in self._linear(spec)
        )
        table = self.product.bits(said).reshape(self.valid.size, -1)
        if observed:
            return table
        return np.asarray(table.any(axis=1, keepdims=True), np.bool_)

    def _admitted(
        self,
        spec: Spec,
        orders: Sequence[OrderMatrix[int]],
        linear: LinearOrders[int] | None,
        *,
        observed: bool,
    ) -> int:
        """Return the members that the spec admits with this commit order, as bits."""
        said = spec_holds(self.frames.of(spec, orders, linear), spec)
        if linear is None or not observed or spec.bound.get("ww") != "co":
            return said
        return said & self.histories.agreeing(self.orders, linear.co)

    def _linear(self, spec: Spec) -> Iterator[LinearOrders[int] | None]:
        """Yield every commit order, with every choice of prefixes if the spec binds them."""
        if "co" not in spec.bound:
            yield None
            return
        n, true = self.histories.n, self.histories.booleans.true
        for places in permutations(range(n)):
            co = [[true if p < q else 0 for q in places] for p in places]
            if spec.bound.get("vis") != "snapshots":
                yield LinearOrders(co)
                continue
            for seen in cartesian(*(range(place + 1) for place in places)):
                yield LinearOrders(
                    co, [[true if p < count else 0 for count in seen] for p in places]
                )

    @property
    def choices(self) -> int:
        """Number of version orders of each history."""
        return self.product.size // self.valid.size

    def arrangements(self, keys: int) -> int:
        """Return the number of ways to assign named keys to the keys of the batch."""
        return len(set(permutations(self.groups[:keys])))

    def once(self) -> Bits:
        """Return a mask that keeps one of the histories that differ only in ``reading``.

        Shape (n_histories,). Keys that a transaction does not read come last in its order, sorted.
        Only valid histories are kept.
        """
        found = self.valid
        for t, order in enumerate(self.reading):
            reads = [
                self.product.bits(self.histories.reads(t, x)).reshape(found.size, -1)[:, 0]
                for x in range(len(KEYS))
            ]
            for k, x in enumerate(order):
                for y in order[k + 1 :]:
                    found = found & (reads[x] | (~reads[y] & np.bool_(x < y)))
        return found

    def history(self, k: int, *, observed: bool) -> History:
        """Return the history of bit k; ``observed``: with its version order."""
        orders = self.orders if observed else None
        return self.histories.history(lambda plane: bool(plane >> k & 1), orders)


def search(
    a: Spec,
    b: Spec,
    n: int,
    vary: Variation | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[History | None, int]:
    """Return the smallest history of n transactions that ``a`` admits and ``b`` forbids.

    Smallest means: fewest session links, then aborted transactions, operations, keys.

    Parameters
    ----------
    a, b : Spec
        Specs to separate.
    n : int
        Number of transactions.
    vary : Variation, optional
        Properties that vary (default: those that the specs can tell).
    budget : Budget, optional
        Limits of time and memory.
    progress : callable, optional
        Called with the number of histories examined so far.

    Returns
    -------
    tuple of (History or None, int)
        The history, if there is one, and the number of histories examined.

    Raises
    ------
    Limit
        If the budget is spent; its ``examined`` has the number examined.

    Examples
    --------
    >>> from isolitmus.specs.files.spec_catalogue import level
    >>> search(level("snapshot-isolation"), level("serializable"), 2)[0].operations
    4
    """
    budget, examined = budget or Budget(), 0
    vary = vary or variation_for(a, b)
    observed = vary.observed
    so_far: list[Bits] = []
    for batch in history_batches(n, vary, a, b):
        said: list[Bits] = []
        for spec in (a, b):
            limit = budget.spent()
            if limit is not None:
                limit.examined = examined
                raise limit
            said.append(batch.admits(spec, observed=observed))
        if so_far:
            said = [one | other for one, other in zip(said, so_far, strict=True)]
        so_far = said if batch.more and not observed else []
        examined += 0 if batch.more else int(batch.valid.sum())
        if so_far:
            continue
        separating = batch.valid[:, None] & said[0] & ~said[1]
        if separating.any():
            h, order = (int(i) for i in np.argwhere(separating)[0])
            return batch.history(h * batch.choices + order, observed=observed), examined
        if progress is not None:
            progress(examined)
    return None, examined


def history_batches(
    n: int, vary: Variation, *specs: Spec, keys: int = len(KEYS)
) -> Iterator[HistoryBatch]:
    """Yield all histories of n transactions that the specs can tell apart, smallest first.

    Smallest means: fewest session links, then aborted transactions (none of what does not
    ``vary``), then operations, then keys, of which there are at most ``keys``.
    """
    needs = frozenset[str]().union(*(spec.needs for spec in specs))
    ordered = any(uses_versions(spec) for spec in specs)
    most = LARGEST if n <= FEW else LARGEST * FEW * FEW // (n * n)
    for links, ends in links_and_ends(n, vary):
        for operations, used, groups in sizes_of_keys(n):
            if used > keys:
                continue
            for joined, aborted, ended in ends_in_time(n, links, ends, vary):
                for lists in option_lists(groups, aborted, most, ordered=ordered):
                    for reading in read_orders(n, used, needs):
                        for ranks, more in version_ranks(lists, most, ordered=ordered):
                            size = (links, ends, operations, used)
                            shape = (joined, aborted, ended)
                            yield _batch(
                                size, lists, shape, reading, ranks, groups=groups, more=more
                            )


def _batch(
    measure: tuple[int, int, int, int],
    lists: list[list[KeyOption]],
    shape: tuple[Flags, Flags, list[list[bool]] | None],
    reading: tuple[tuple[int, ...], ...],
    ranks: Sequence[list[Rank]],
    *,
    groups: tuple[tuple[int, int], ...],
    more: bool,
) -> HistoryBatch:
    """Return the batch of all choices of one option per key and one version order per key."""
    n, axes = len(shape[1]), [len(options) for options in lists]
    product = Product((*axes, *(len(r) for r in ranks)))
    plane = product.plane
    true = product.booleans.true
    count = len(KEYS)
    writes = [
        [plane(np.array([o.writes[t] for o in lists[x]]), x) for x in range(count)]
        for t in range(n)
    ]
    sources = [
        [
            {
                s: plane(np.array([o.sources[t] == s for o in lists[x]]), x)
                for s in (*range(n), n)
                if s != t
            }
            for x in range(count)
        ]
        for t in range(n)
    ]
    orders: list[OrderMatrix[int]] = []
    for x in range(len(ranks)):
        before = np.zeros((n, n, axes[x], len(ranks[x])), np.bool_)
        places = np.array(ranks[x], np.int8)
        for h, option in enumerate(lists[x]):
            writers = [t for t in range(n) if option.writes[t]]
            for (p, i), (q, j) in cartesian(enumerate(writers), repeat=2):
                before[i, j, h] = places[:, p] < places[:, q]
        orders.append([[plane(before[i, j], x, count + x) for j in range(n)] for i in range(n)])
    place = [[order.index(x) for x in range(count)] for order in reading]
    first = [
        [{y: true if place[t][x] < place[t][y] else 0 for y in range(count) if y != x}
         for x in range(count)]
        for t in range(n)
    ]  # fmt: skip
    # Valid members: every transaction does something.
    busy = np.ones(axes, np.bool_)
    for t in range(n):
        does = np.zeros(axes, np.bool_)
        for x in range(count):
            acts = np.array([o.writes[t] or o.sources[t] is not None for o in lists[x]])
            does |= acts.reshape([-1 if axis == x else 1 for axis in range(count)])
        busy &= does
    joined, aborted, times = shape
    joins, ends = ([true if choice else 0 for choice in row] for row in (joined, aborted))
    ended = None if times is None else [[true if one else 0 for one in row] for row in times]
    for x in range(count) if times is not None else ():
        late = np.array([reads_late(option, times or []) for option in lists[x]])
        busy &= ~late.reshape([-1 if axis == x else 1 for axis in range(count)])
    histories = Histories(product.booleans, writes, sources, joins, first, ends, ended)
    return HistoryBatch(
        measure,
        product,
        histories,
        AbstractFrames(histories),
        tuple(orders),
        busy.ravel(),
        groups,
        reading,
        more,
    )
