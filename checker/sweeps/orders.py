"""Serial orders by memory: every transition between tables is worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SerialOrders", "TableSteps", "WriterAt"]

WriterAt = tuple[int, int]
"""A statement of the scope by its number, and the commit position that it has."""


class TableSteps(Protocol):
    """Tables by numbers, as states (``Space``) or as rows alone (``RowContents``)."""

    def step(self, tables: int, k: int, position: int, /) -> int | None:
        """The tables after statement k at a commit position; None if it fails."""

    def bag(self, tables: int, /) -> int:
        """The number of the tables as bags of rows."""


class SerialOrders:
    """What serial orders of writers give, one after another from the tables at the ``start``."""

    def __init__(self, steps: TableSteps, start: int) -> None:
        self.steps = steps
        self._bags: dict[tuple[WriterAt, ...], frozenset[int]] = {}
        self._anyhow: dict[tuple[WriterAt, ...], frozenset[int]] = {(): frozenset((start,))}
        self._ends: dict[tuple[WriterAt, ...], int | None] = {(): start}

    def end(self, order: tuple[WriterAt, ...]) -> int | None:
        """The tables that writers in this order lead to; None if one of them fails."""
        if order not in self._ends:
            before = self.end(order[:-1])
            self._ends[order] = None if before is None else self.steps.step(before, *order[-1])
        return self._ends[order]

    def bags(self, writers: tuple[WriterAt, ...]) -> frozenset[int]:
        """The tables, as bags, that some order of the writers gives."""
        known = self._bags.get(writers)
        if known is None:
            known = frozenset(self.steps.bag(end) for end in self._any(writers))
            self._bags[writers] = known
        return known

    def _any(self, writers: tuple[WriterAt, ...]) -> frozenset[int]:
        """What some order of the writers leads to: whoever comes last, after the others."""
        known = self._anyhow.get(writers)
        if known is None:
            ends = (
                self.steps.step(tables, *last)
                for i, last in enumerate(writers)
                for tables in self._any(writers[:i] + writers[i + 1 :])
            )
            known = self._anyhow[writers] = frozenset(end for end in ends if end is not None)
        return known

    def gives(self, writers: tuple[WriterAt, ...], tables: int) -> bool:
        """Whether the writers in this order give some tables."""
        end = self.end(writers)
        return end is not None and self.steps.bag(end) == self.steps.bag(tables)

    def explain(self, writers: tuple[WriterAt, ...], versions: Sequence[int]) -> bool:
        """Whether at every version some order of the writers so far gives the tables: ``writers`` by
        position, ``versions`` the tables at each from 0.
        """
        count = 0
        for version, tables in enumerate(versions):
            while count < len(writers) and writers[count][1] <= version:
                count += 1
            if self.steps.bag(tables) not in self.bags(writers[:count]):
                return False
        return True
