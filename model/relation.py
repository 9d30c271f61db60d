"""Binary relations over numbered nodes, as bit masks: bit j of row i is set if (i, j) is a pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from isolitmus.model.errors import FrameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits of `mask`, ascending.

    Examples
    --------
    >>> list(bits(0b1011))
    [0, 1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True, slots=True)
class Relation:
    """Binary relation on ``{0 … n-1}``; bit j of ``rows[i]`` says that j is a successor of i.

    Examples
    --------
    >>> r = Relation.of(3, [(0, 1), (1, 2)])
    >>> (r @ r).pairs()
    [(0, 2)]
    >>> r.plus().pairs()
    [(0, 1), (0, 2), (1, 2)]
    """

    rows: tuple[int, ...]

    @classmethod
    def of(cls, n: int, pairs: Iterable[tuple[int, int]]) -> Relation:
        """Return the relation on n nodes with these pairs; FrameError if a pair is out of range."""
        rows = [0] * n
        for i, j in pairs:
            if not (0 <= i < n and 0 <= j < n):
                raise FrameError(f"pair ({i}, {j}) is outside a relation on {n} nodes")
            rows[i] |= 1 << j
        return cls(tuple(rows))

    @classmethod
    def empty(cls, n: int) -> Relation:
        """Return the empty relation on n nodes."""
        return cls((0,) * n)

    @classmethod
    def identity(cls, n: int, on: int | None = None) -> Relation:
        """Return ``[S]``: the identity on the set `on` (a bit mask; all nodes by default)."""
        mask = (1 << n) - 1 if on is None else on
        return cls(tuple(mask & (1 << i) for i in range(n)))

    @property
    def size(self) -> int:
        """Number of nodes."""
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
        """Return the composition, ``;`` in a spec: pairs (i, k) with (i, j) in self and (j, k) in
        other.
        """
        if len(self.rows) != len(other.rows):
            raise FrameError(f"relations on {self.size} and {other.size} nodes do not compose")
        return Relation(
            tuple(reduce(or_, (other.rows[j] for j in bits(row)), 0) for row in self.rows)
        )

    def inverse(self) -> Relation:
        """Return the inverse relation, ``^-1`` in a spec."""
        rows = [0] * self.size
        for i, row in enumerate(self.rows):
            for j in bits(row):
                rows[j] |= 1 << i
        return Relation(tuple(rows))

    def plus(self) -> Relation:
        """Return the transitive closure (Warshall over bit masks)."""
        rows = list(self.rows)
        for k in range(len(rows)):
            via = rows[k]
            for i, row in enumerate(rows):
                if row >> k & 1:
                    rows[i] = row | via
        return Relation(tuple(rows))

    def reflexive(self) -> Relation:
        """Return the reflexive closure, ``?`` in a spec."""
        return Relation(tuple(row | 1 << i for i, row in enumerate(self.rows)))

    def core(self) -> int:
        """Return the nodes on a cycle or with a path to a cycle, as a bit mask; 0 if the relation
        is acyclic.

        Nodes without a remaining successor are removed until nothing changes.

        Examples
        --------
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
        """Return whether the relation has no cycle."""
        return not self.core()

    def pairs(self) -> list[tuple[int, int]]:
        """Return all pairs, sorted."""
        return [(i, j) for i, row in enumerate(self.rows) for j in bits(row)]
