"""What transactions may do, listed for the enumeration: sessions and ends, operations on each key, orders of versions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement, islice, permutations
from itertools import product as cartesian
from math import factorial, prod
from typing import TYPE_CHECKING, TypeVar

from isolitmus.checker.universes.abstract import KEYS, Varied
from isolitmus.checker.universes.intervals import intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "Flags",
    "KeyOption",
    "Rank",
    "ends_in_time",
    "links_and_ends",
    "option_lists",
    "readings",
    "reads_late",
    "sizes_of_keys",
    "version_ranks",
]

LISTED = 1 << 12
"""So much of what transactions may do with one key is listed at a time."""

Flags = tuple[bool, ...]
"""Of each transaction, or of each but the first, whether it is so."""
Rank = tuple[int, ...]
"""Of each writer of a key its place in the version order."""


@dataclass(frozen=True, slots=True)
class KeyOption:
    """What n transactions do with one key: who writes it, who reads it from whom (or None)."""

    writes: tuple[bool, ...]
    sources: tuple[int | None, ...]


def links_and_ends(n: int, vary: Varied) -> list[tuple[int, int]]:
    """How many continue the session of the one before, and how many aborted."""
    return [
        (links, ends)
        for links in range(n if vary.sessions else 1)
        for ends in range(n + 1 if vary.aborts else 1)
    ]


def _ends(n: int, links: int, ends: int) -> Iterator[tuple[Flags, Flags]]:
    """Who continues whose session, and who aborted; who aborted is in no session."""
    for joined in _some(n - 1, links):
        for aborted in _some(n, ends):
            pairs = zip(joined, aborted, aborted[1:], strict=False)
            if not any(together and (a or b) for together, a, b in pairs):
                yield joined, aborted


def ends_in_time(
    n: int, links: int, ends: int, vary: Varied
) -> Iterator[tuple[Flags, Flags, list[list[bool]] | None]]:
    """The same with who had ended when another one began, if that may vary; sessions go on in real time."""
    for joined, aborted in _ends(n, links, ends):
        if not vary.times:
            yield joined, aborted, None
            continue
        for ended in intervals(n):
            if all(ended[t][t + 1] for t, together in enumerate(joined) if together):
                yield joined, aborted, ended


def _some(n: int, count: int) -> Iterator[Flags]:
    """So many of n, in every way."""
    if n == count == 0:
        yield ()
    if count < n:
        yield from ((False, *rest) for rest in _some(n - 1, count))
    if count:
        yield from ((True, *rest) for rest in _some(n - 1, count - 1))


def sizes_of_keys(n: int) -> Iterator[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """Every choice for each key of how many operations there are and how many of them write, fewest
    operations first, then fewest keys; with the number of operations, of keys used.
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
    """What transactions may do with one key, in so many operations, of which so many write; nobody reads who
    aborted.
    """
    operations, writers = size
    for writes in _some(len(aborted), writers):
        for sources in _sources(writes, operations - writers, aborted, 0):
            yield KeyOption(writes, sources)


def _sources(writes: Flags, reads: int, aborted: Flags, t: int) -> Iterator[tuple[int | None, ...]]:
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
    """What transactions may do with each key, so much of it at a time that a batch is of bearable size."""
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
    """The product cut into batches of bearable size."""
    size = prod(len(options) * (_orders(options) if ordered else 1) for options in lists)
    longest = max(range(len(lists)), key=lambda k: len(lists[k]))
    half = len(lists[longest]) // 2
    if size <= most or not half:
        yield lists
        return
    for part in (lists[longest][:half], lists[longest][half:]):
        yield from _pieces([*lists[:longest], part, *lists[longest + 1 :]], most, ordered=ordered)


def _orders(options: list[KeyOption]) -> int:
    """The number of version orders of a key: as many have written it in all of these."""
    return factorial(sum(options[0].writes))


def version_ranks(
    lists: list[list[KeyOption]], most: int, *, ordered: bool
) -> Iterator[tuple[Sequence[list[Rank]], bool]]:
    """Version orders of each key, so many at a time that a batch is of bearable size, and whether there are
    more: for each writer its place.
    """
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


def readings(n: int, keys: int, needs: frozenset[str]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """For each transaction the order in which it reads the keys, if any spec can see it."""
    every = permutations(range(keys)) if "po" in needs else [tuple(range(keys))]
    return cartesian([(*order, *range(keys, len(KEYS))) for order in every], repeat=n)


def reads_late(option: KeyOption, ended: list[list[bool]]) -> bool:
    """Whether somebody reads from one who began after he had ended."""
    n = len(ended)
    return any(s is not None and s < n and ended[t][s] for t, s in enumerate(option.sources))
