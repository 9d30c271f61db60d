"""The abstract universe enumerated: every history, many at a time, smallest first.

A batch is a product: for each key a list of what the transactions may do with it, and the version
orders of its writers. A Boolean of the frame is one integer with a bit for each member of the
product, so a spec is evaluated once for all of them (``checker.judge.matrix_semantics.BitSlices``). Nothing of this
is shared with the solver's search but the frame; each is the other's oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from itertools import product as cartesian
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.judge.matrix_semantics import admitted
from isolitmus.checker.universes.abstract import (
    KEYS,
    Histories,
    Linear,
    Varied,
    uses_versions,
    varied,
)
from isolitmus.checker.universes.abstract_frames import AbstractFrames
from isolitmus.checker.universes.listing_histories import (
    ends_in_time,
    links_and_ends,
    option_lists,
    readings,
    reads_late,
    sizes_of_keys,
    version_ranks,
)
from isolitmus.checker.universes.product import Product
from isolitmus.model.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.checker.universes.abstract import OrderMatrix
    from isolitmus.checker.universes.listing_histories import Flags, KeyOption, Rank
    from isolitmus.model.history import History
    from isolitmus.model.spec import Spec

    Bits = NDArray[np.bool_]

__all__ = ["HistoryBatch", "history_batches", "search"]

LARGEST = 1 << 22
"""The most members of one batch, of up to FEW transactions; with more there are more Booleans of each."""
FEW = 4


@dataclass(frozen=True, slots=True)
class HistoryBatch:
    """Histories of one size; bit h·o + k is history h under its version order k of o."""

    size: tuple[int, int, int, int]
    """Links of sessions, aborted transactions, operations, keys."""
    product: Product
    """The choices that a history is made of."""
    histories: Histories[int]
    """What each does, a bit for each."""
    frames: AbstractFrames[int]
    """What specs see of them."""
    orders: tuple[OrderMatrix[int], ...]
    """The version orders of each key."""
    valid: Bits
    """The histories in which every transaction does something."""
    groups: tuple[tuple[int, int], ...]
    """Of each key how many operations there are and how many of them write."""
    reading: tuple[tuple[int, ...], ...]
    """Of each transaction the order of the keys in which it reads."""
    more: bool = False
    """The same histories under further version orders follow."""

    def admits(self, spec: Spec, *, observed: bool = False) -> Bits:
        """For each history whether the spec admits it under some version order (a column); with
        ``observed`` under each of them (so many columns).
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
        linear: Linear[int] | None,
        *,
        observed: bool,
    ) -> int:
        """In which frames the spec holds, if this is the commit order."""
        said = admitted(self.frames.of(spec, orders, linear), spec)
        if linear is None or not observed or spec.bound.get("ww") != "co":
            return said
        return said & self.histories.agreeing(self.orders, linear.co)

    def _linear(self, spec: Spec) -> Iterator[Linear[int] | None]:
        """Every commit order, with every choice of prefixes if the spec binds them."""
        if "co" not in spec.bound:
            yield None
            return
        n, true = self.histories.n, self.histories.booleans.true
        for places in permutations(range(n)):
            co = [[true if p < q else 0 for q in places] for p in places]
            if spec.bound.get("vis") != "snapshots":
                yield Linear(co)
                continue
            for seen in cartesian(*(range(place + 1) for place in places)):
                yield Linear(co, [[true if p < count else 0 for count in seen] for p in places])

    @property
    def choices(self) -> int:
        """The number of version orders of each history."""
        return self.product.size // self.valid.size

    def arrangements(self, keys: int) -> int:
        """In how many ways so many keys with names may be what the keys of the batch are."""
        return len(set(permutations(self.groups[:keys])))

    def once(self) -> Bits:
        """The valid histories, each in one batch alone of those that differ in ``reading``: what a transaction does
        not read comes last, in the order of the keys.
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
        """History number k of the batch (its bit); ``observed``: with its version order."""
        orders = self.orders if observed else None
        return self.histories.history(lambda plane: bool(plane >> k & 1), orders)


def search(
    a: Spec,
    b: Spec,
    n: int,
    vary: Varied | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[History | None, int]:
    """The history of n transactions that ``a`` admits and ``b`` forbids, with the fewest links of
    sessions, then aborted transactions, then operations, then keys, or None; and how many were looked at.
    ``vary`` (default: what the specs can tell): what may be. A Limit, with how many, once the budget is
    spent.

    >>> from isolitmus.specs.files.catalogue import level
    >>> search(level("snapshot-isolation"), level("serializable"), 2)[0].operations
    4
    """
    budget, examined = budget or Budget(), 0
    vary = vary or varied(a, b)
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
    n: int, vary: Varied, *specs: Spec, keys: int = len(KEYS)
) -> Iterator[HistoryBatch]:
    """All histories of n transactions as far as the specs can tell them apart, smallest first: fewest
    links of sessions, then aborted transactions (none of what does not ``vary``), then operations, then keys, of
    which there are at most so many.
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
                    for reading in readings(n, used, needs):
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
