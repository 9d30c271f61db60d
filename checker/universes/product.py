"""All members of a product as bits: a Boolean that depends on some axes, as one integer."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from isolitmus.checker.judge.matrix_semantics import BitSlices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bits = NDArray[np.bool_]

__all__ = ["Product", "repeated"]


@dataclass(frozen=True, slots=True)
class Product:
    """The members of a product of choices, the last axis changing fastest; bit k is member k.

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
        """The Booleans of this many members."""
        return BitSlices((1 << self.size) - 1)

    def plane(self, values: Bits, *axes: int) -> int:
        """The Boolean that has these values (an array with a dimension for each of these axes, the first ones first)."""
        return self._within(values.tolist(), axes, 0) if values.any() else 0

    def _within(self, values: Any, axes: tuple[int, ...], first: int) -> int:
        """The same of the members that differ by the axes from ``first`` on."""
        if not axes:
            return (1 << prod(self.shape[first:])) - 1 if values else 0
        axis, *others = axes
        width, found = prod(self.shape[axis + 1 :]), 0
        for k, some in enumerate(values):
            if some:
                found |= self._within(some, tuple(others), axis + 1) << k * width
        return repeated(found, width * self.shape[axis], prod(self.shape[first:axis]))

    def bits(self, plane: int) -> Bits:
        """A Boolean as an array of its members' values."""
        flat = np.frombuffer(plane.to_bytes(-(-self.size // 8), "little"), np.uint8)
        return np.unpackbits(flat, bitorder="little", count=self.size).astype(np.bool_)

    def member(self, k: int) -> tuple[int, ...]:
        """The choices of member k, one for each axis."""
        return tuple(int(i) for i in np.unravel_index(k, self.shape))


def repeated(bits: int, width: int, times: int) -> int:
    """So many bits, again and again.

    >>> bin(repeated(0b01, 2, 3))
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
