"""The abstract universe enumerated: every history, many at a time, smallest first.

A batch is a product: for each key a list of what the transactions may do with it, and the version
orders of its writers. A Boolean of the frame is one integer with a bit for each member of the
product, so a spec is evaluated once for all of them (``checker.reading.matrix.BitSlices``). Nothing of this
is shared with the solver's search but the frame; each is the other's oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations
from itertools import product as cartesian
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.reading.matrix import admitted
from isolitmus.checker.searching.abstract import (
    KEYS,
    Histories,
    observes_versions,
    sessions_vary,
    uses_versions,
)
from isolitmus.checker.searching.product import Product
from isolitmus.model.errors import TimeLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from isolitmus.checker.searching.abstract import Order
    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec

    Bits = NDArray[np.bool_]

__all__ = ["Batch", "batches", "search"]

LARGEST = 1 << 22
"""The most members of one batch."""


@dataclass(frozen=True, slots=True)
class _Option:
    """What n transactions do with one key: who writes it, who reads it from whom (or None)."""

    writes: tuple[bool, ...]
    sources: tuple[int | None, ...]

    @property
    def size(self) -> tuple[int, int]:
        """The number of operations, the number of writers."""
        writers = sum(self.writes)
        return writers + sum(s is not None for s in self.sources), writers


@dataclass(frozen=True, slots=True)
class Batch:
    """Histories of one size (links of sessions, operations, keys); bit h·o + k is history h under
    its version order k of o.
    """

    size: tuple[int, int, int]
    product: Product
    histories: Histories[int]
    orders: tuple[Order[int], ...]
    valid: Bits

    def admits(self, spec: Spec, *, observed: bool = False) -> Bits:
        """For each history whether the spec admits it under some version order (a column); with
        ``observed`` under each of them (so many columns).
        """
        frames = self.histories.frames(spec, self.orders if uses_versions(spec) else ())
        table = self.product.bits(admitted(frames, spec)).reshape(self.valid.size, -1)
        if observed:
            return table
        return np.asarray(table.any(axis=1, keepdims=True), np.bool_)

    @property
    def choices(self) -> int:
        """The number of version orders of each history."""
        return self.product.size // self.valid.size

    def history(self, k: int, *, observed: bool) -> History:
        """History number k of the batch (its bit); ``observed``: with its version order."""
        orders = self.orders if observed else None
        return self.histories.history(lambda plane: bool(plane >> k & 1), orders)


def search(
    a: Spec,
    b: Spec,
    n: int,
    *,
    deadline: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[History | None, int]:
    """The history of n transactions that ``a`` admits and ``b`` forbids, with the fewest links of
    sessions, then operations, then keys, or None; and how many were looked at. TimeLimit after the
    deadline.

    >>> from isolitmus.specs.catalogue import level
    >>> search(level("snapshot-isolation"), level("serializable"), 2)[0].operations
    4
    """
    examined = 0
    observed = observes_versions(a, b)
    for batch in batches(n, a, b, sessions=sessions_vary(a, b)):
        if deadline is not None and monotonic() > deadline:
            raise TimeLimit(f"the time limit ended the search after {examined} histories")
        examined += int(batch.valid.sum())
        admits, permits = (batch.admits(spec, observed=observed) for spec in (a, b))
        separating = batch.valid[:, None] & admits & ~permits
        if separating.any():
            h, order = (int(i) for i in np.argwhere(separating)[0])
            return batch.history(h * batch.choices + order, observed=observed), examined
        if progress is not None:
            progress(examined)
    return None, examined


def batches(n: int, *specs: Spec, sessions: bool) -> Iterator[Batch]:
    """All histories of n transactions as far as the specs can tell them apart, smallest first:
    fewest links of sessions (``sessions`` False: none), then operations, then keys.
    """
    needs = frozenset[str]().union(*(spec.needs for spec in specs))
    ordered = any(uses_versions(spec) for spec in specs)
    options = _options(n)
    joins = sorted(cartesian((False, True), repeat=n - 1 if sessions else 0), key=sum)
    for links in range(n if sessions else 1):
        for operations, keys, groups in _sizes(n, options):
            for lists in _pieces([options[size] for size in groups], ordered=ordered):
                for joined in (join for join in joins if sum(join) == links):
                    for reading in _readings(n, keys, needs):
                        together = (*joined, *[False] * (n - 1 - len(joined)))
                        size = (links, operations, keys)
                        yield _batch(n, size, lists, together, reading, ordered=ordered)


def _options(n: int) -> dict[tuple[int, int], list[_Option]]:
    """What n transactions may do with one key, by number of operations and of writers."""
    found: dict[tuple[int, int], list[_Option]] = {}
    for writes in cartesian((False, True), repeat=n):
        sources = [[None, n, *(s for s in range(n) if s != t and writes[s])] for t in range(n)]
        for chosen in cartesian(*sources):
            option = _Option(writes, chosen)
            found.setdefault(option.size, []).append(option)
    return found


def _sizes(
    n: int, options: dict[tuple[int, int], list[_Option]]
) -> list[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """Every choice of a size for each key: the number of operations, of keys used, the choice."""
    found = []
    for groups in combinations_with_replacement(sorted(options, reverse=True), len(KEYS)):
        operations = sum(size for size, _ in groups)
        if operations >= n:
            found.append((operations, sum(size > 0 for size, _ in groups), groups))
    return sorted(found)


def _pieces(lists: list[list[_Option]], *, ordered: bool) -> Iterator[list[list[_Option]]]:
    """The product cut into batches of bearable size."""
    size = 1
    for options in lists:
        size *= len(options) * (len(_orders(options[0])) if ordered else 1)
    longest = max(range(len(lists)), key=lambda k: len(lists[k]))
    half = len(lists[longest]) // 2
    if size <= LARGEST or not half:
        yield lists
        return
    for part in (lists[longest][:half], lists[longest][half:]):
        yield from _pieces([*lists[:longest], part, *lists[longest + 1 :]], ordered=ordered)


def _orders(option: _Option) -> list[tuple[int, ...]]:
    return list(permutations(range(sum(option.writes))))


def _readings(n: int, keys: int, needs: frozenset[str]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """For each transaction the order in which it reads the keys, if any spec can see it."""
    every = permutations(range(keys)) if "po" in needs else [tuple(range(keys))]
    return cartesian([(*order, *range(keys, len(KEYS))) for order in every], repeat=n)


def _batch(
    n: int,
    measure: tuple[int, int, int],
    lists: list[list[_Option]],
    joined: tuple[bool, ...],
    reading: tuple[tuple[int, ...], ...],
    *,
    ordered: bool,
) -> Batch:
    axes = [len(options) for options in lists]
    ranks = [_orders(options[0]) if ordered else [()] for options in lists]
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
    orders: list[Order[int]] = []
    for x in range(count if ordered else 0):
        before = np.zeros((n, n, axes[x], len(ranks[x])), np.bool_)
        for h, option in enumerate(lists[x]):
            writers = [t for t in range(n) if option.writes[t]]
            for k, rank in enumerate(ranks[x]):
                for (i, at), (j, to) in cartesian(zip(writers, rank, strict=True), repeat=2):
                    before[i, j, h, k] = at < to
        orders.append([[plane(before[i, j], x, count + x) for j in range(n)] for i in range(n)])
    place = [[order.index(x) for x in range(count)] for order in reading]
    first = [
        [{y: true if place[t][x] < place[t][y] else 0 for y in range(count) if y != x} for x in range(count)]
        for t in range(n)
    ]  # fmt: skip
    busy = np.ones(axes, np.bool_)
    for t in range(n):
        does = np.zeros(axes, np.bool_)
        for x in range(count):
            acts = np.array([o.writes[t] or o.sources[t] is not None for o in lists[x]])
            does |= acts.reshape([-1 if axis == x else 1 for axis in range(count)])
        busy &= does
    joins = [true if together else 0 for together in joined]
    histories = Histories(product.booleans, writes, sources, joins, first)
    return Batch(measure, product, histories, tuple(orders), busy.ravel())
