"""What was when in an abstract history: an order of all that transactions may do, and of their ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from isolitmus.model.recorded import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.model.recorded import Moment

__all__ = ["Slots"]

B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Slots(Generic[B]):
    """A total order of slots: for each transaction one for the read of each key, for the write of each key, and for its
    end. Of what does not happen the slot says nothing.
    """

    keys: int
    """How many there are."""
    before: Sequence[Sequence[B]]
    """``before[p][q]``: what is at p comes before what is at q."""

    def read(self, t: int, x: int) -> int:
        """The slot of a read."""
        return t * (2 * self.keys + 1) + x

    def write(self, t: int, x: int) -> int:
        """The slot of a write."""
        return self.read(t, self.keys + x)

    def end(self, t: int) -> int:
        """The slot of the end of a transaction."""
        return self.read(t, 2 * self.keys)

    def turns(self) -> Iterator[tuple[int, int]]:
        """Two slots of one transaction of which the first comes first, whatever there is: reads, writes, the end.

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
        """These slots, earliest first."""
        return sorted(slots, key=lambda q: sum(value(self.before[p][q]) for p in slots if p != q))

    def schedule(
        self,
        done: Sequence[Sequence[int]],
        value: Callable[[B], bool],
        ended: Sequence[Sequence[bool]] | None,
    ) -> tuple[Moment, ...]:
        """When transactions, from number 1, began, did what is at these slots, in turn, and ended. ``ended[i][j]``: i had
        ended when j began; None: each begins right before what it does first.
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
        return shortened(moments)
