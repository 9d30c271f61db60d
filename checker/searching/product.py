"""All members of a product as bits: a Boolean that depends on some axes, as one integer."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.reading.matrix import BitSlices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bits = NDArray[np.bool_]

__all__ = ["Product"]


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
        """The Boolean that has these values (an array with a dimension for each of these axes)."""
        if not values.any():
            return 0
        inner = [self.shape[axis] if axis in axes else 1 for axis in range(len(self.shape))]
        whole = np.broadcast_to(values.reshape(inner), self.shape)
        return int.from_bytes(np.packbits(whole.ravel(), bitorder="little").tobytes(), "little")

    def bits(self, plane: int) -> Bits:
        """A Boolean as an array of its members' values."""
        flat = np.frombuffer(plane.to_bytes(-(-self.size // 8), "little"), np.uint8)
        return np.unpackbits(flat, bitorder="little", count=self.size).astype(np.bool_)

    def member(self, k: int) -> tuple[int, ...]:
        """The choices of member k, one for each axis."""
        return tuple(int(i) for i in np.unravel_index(k, self.shape))
