"""Orders of intervals: of transactions that begin and end, who had ended when another one began."""

from __future__ import annotations

from itertools import permutations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.recorded import Moment

__all__ = ["crossings", "intervals", "scheduled"]


def crossings(
    n: int,
) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[tuple[int, int], ...]]]:
    """What makes a relation on n an order of intervals (Fishburn, Intransitive indifference with unequal indifference
    intervals, 1970): of each two pairs (a, b) and (c, d), those of which then one is there, too, (a, d) or (c, b).
    None relates anybody to himself.

    >>> [(one, other) for one, other, then in crossings(2) if not then]
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    for (a, b), (c, d) in permutations(permutations(range(n), 2), 2):
        yield (a, b), (c, d), tuple((i, j) for i, j in ((a, d), (c, b)) if i != j)


def intervals(n: int) -> Iterator[list[list[bool]]]:
    """All orders of n intervals: ``[i][j]``, i had ended when j began.

    >>> [sum(1 for _ in intervals(n)) for n in (1, 2, 3)]
    [1, 3, 19]
    """
    pairs = [*permutations(range(n), 2)]
    demands = [*crossings(n)]
    for chosen in product((False, True), repeat=len(pairs)):
        there = {pair for pair, one in zip(pairs, chosen, strict=True) if one}
        if all(
            one not in there or other not in there or not there.isdisjoint(then)
            for one, other, then in demands
        ):
            yield [[(i, j) in there for j in range(n)] for i in range(n)]


def scheduled(ended: Sequence[Sequence[bool]]) -> tuple[Moment, ...]:
    """When transactions, from number 1, began and ended, so that just these had ended when others began.

    >>> scheduled([[False, True], [False, False]])
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
