"""Relations over a numbered set of nodes, as bitsets: row i holds a bit for every j with (i, j) in
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from isolitmus.model.errors import FrameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Relation", "bits"]


def bits(mask: int) -> Iterator[int]:
    """The positions of the set bits, ascending.

    >>> list(bits(0b1011))
    [0, 1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True, slots=True)
class Relation:
    """A binary relation on ``{0 … n-1}``; ``rows[i]`` is the bitset of i's successors.

    >>> r = Relation.of(3, [(0, 1), (1, 2)])
    >>> (r @ r).pairs()
    [(0, 2)]
    >>> r.plus().pairs()
    [(0, 1), (0, 2), (1, 2)]
    """

    rows: tuple[int, ...]

    @classmethod
    def of(cls, n: int, pairs: Iterable[tuple[int, int]]) -> Relation:
        """The relation on n nodes with these pairs; a pair outside is a FrameError."""
        rows = [0] * n
        for i, j in pairs:
            if not (0 <= i < n and 0 <= j < n):
                raise FrameError(f"pair ({i}, {j}) is outside a relation on {n} nodes")
            rows[i] |= 1 << j
        return cls(tuple(rows))

    @classmethod
    def empty(cls, n: int) -> Relation:
        """The relation on n nodes that relates nothing."""
        return cls((0,) * n)

    @classmethod
    def identity(cls, n: int, on: int | None = None) -> Relation:
        """``[S]``: every node of the set ``on`` (a bitset; default: all) related to itself."""
        mask = (1 << n) - 1 if on is None else on
        return cls(tuple(mask & (1 << i) for i in range(n)))

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.rows)

    def __contains__(self, pair: tuple[int, int]) -> bool:
        return bool(self.rows[pair[0]] >> pair[1] & 1)

    def __bool__(self) -> bool:
        return any(self.rows)

    def __or__(self, other: Relation) -> Relation:
        return Relation(tuple(a | b for a, b in zip(self.rows, other.rows, strict=True)))

    def __and__(self, other: Relation) -> Relation:
        return Relation(tuple(a & b for a, b in zip(self.rows, other.rows, strict=True)))

    def __sub__(self, other: Relation) -> Relation:
        return Relation(tuple(a & ~b for a, b in zip(self.rows, other.rows, strict=True)))

    def __matmul__(self, other: Relation) -> Relation:
        """Composition, written ``;`` in a spec: from i to k where i → j here and j → k there."""
        if len(self.rows) != len(other.rows):
            raise FrameError(f"relations on {self.size} and {other.size} nodes do not compose")
        return Relation(
            tuple(reduce(or_, (other.rows[j] for j in bits(row)), 0) for row in self.rows)
        )

    def inverse(self) -> Relation:
        """Every pair turned round, written ``^-1``."""
        rows = [0] * self.size
        for i, row in enumerate(self.rows):
            for j in bits(row):
                rows[j] |= 1 << i
        return Relation(tuple(rows))

    def plus(self) -> Relation:
        """The transitive closure (Warshall over bitsets)."""
        rows = list(self.rows)
        for k in range(len(rows)):
            via = rows[k]
            for i, row in enumerate(rows):
                if row >> k & 1:
                    rows[i] = row | via
        return Relation(tuple(rows))

    def reflexive(self) -> Relation:
        """With every node related to itself, written ``?``."""
        return Relation(tuple(row | 1 << i for i, row in enumerate(self.rows)))

    def core(self) -> int:
        """The nodes on a cycle or between cycles and before them: taking away nodes without a
        successor, again and again, leaves them; a bitset, 0 if the relation is acyclic.

        >>> bin(Relation.of(4, [(0, 1), (1, 2), (2, 1), (2, 3)]).core())
        '0b111'
        """
        rows = self.rows
        left = (1 << len(rows)) - 1
        before = 0
        while left != before:
            before = left
            for i in range(len(rows) - 1, -1, -1):
                if left >> i & 1 and not rows[i] & left:
                    left ^= 1 << i
        return left

    def acyclic(self) -> bool:
        """Whether no path leads from a node back to itself."""
        return not self.core()

    def pairs(self) -> list[tuple[int, int]]:
        """All pairs, sorted."""
        return [(i, j) for i, row in enumerate(self.rows) for j in bits(row)]
