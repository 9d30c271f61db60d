"""Serial orders by memory: every transition between states is worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.counting.space import Space

__all__ = ["SerialOrders"]

WriterAt = tuple[int, int]
"""A statement of the scope by its number, and the commit position that it has."""


class SerialOrders:
    """What serial orders of writers give, one after another from the initial table."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._bags: dict[tuple[WriterAt, ...], frozenset[int]] = {}
        self._anyhow: dict[tuple[WriterAt, ...], frozenset[int]] = {(): frozenset((0,))}
        self._ends: dict[tuple[WriterAt, ...], int | None] = {(): 0}

    def end(self, order: tuple[WriterAt, ...]) -> int | None:
        """The state that writers in this order lead to; None if one of them fails."""
        if order not in self._ends:
            before = self.end(order[:-1])
            self._ends[order] = None if before is None else self._step(before, *order[-1])
        return self._ends[order]

    def _step(self, state: int, k: int, position: int) -> int | None:
        number = self.space.run(state, k, position)
        if self.space.done[number].effect.error is not None:
            return None
        return self.space.after(state, number)

    def bags(self, writers: tuple[WriterAt, ...]) -> frozenset[int]:
        """The tables, as bags, that some order of the writers gives."""
        known = self._bags.get(writers)
        if known is None:
            known = frozenset(self.space.bag(end) for end in self._any(writers))
            self._bags[writers] = known
        return known

    def _any(self, writers: tuple[WriterAt, ...]) -> frozenset[int]:
        """The states that some order of the writers leads to: whoever comes last, after the others."""
        known = self._anyhow.get(writers)
        if known is None:
            ends = (
                self._step(state, *last)
                for i, last in enumerate(writers)
                for state in self._any(writers[:i] + writers[i + 1 :])
            )
            known = self._anyhow[writers] = frozenset(end for end in ends if end is not None)
        return known

    def gives(self, writers: tuple[WriterAt, ...], state: int) -> bool:
        """Whether the writers in this order give the tables of a state."""
        end = self.end(writers)
        return end is not None and self.space.bag(end) == self.space.bag(state)

    def explain(self, writers: Sequence[WriterAt], states: Sequence[int]) -> bool:
        """Whether at every version some order of the writers so far gives the tables: ``writers`` by
        position, ``states`` the state at each version from 0.
        """
        for version, state in enumerate(states):
            so_far = tuple(w for w in writers if w[1] <= version)
            if self.space.bag(state) not in self.bags(so_far):
                return False
        return True
