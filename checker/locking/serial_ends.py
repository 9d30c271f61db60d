"""Ends beside serial orders: which of them look the same, which postconditions each breaks.

Serial orders are carried out by the model and by DuckDB, which must agree.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from isolitmus.checker.execution.postconditions import Postconditions
from isolitmus.checker.execution.serial_orders import ModelExecutor
from isolitmus.checker.locking.duck import DuckTexts
from isolitmus.checker.locking.events import Scanned
from isolitmus.checker.locking.final_state import End, table_rows, told_of
from isolitmus.model.errors import Disagreement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.locking.final_state import Told
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.values import Rows

__all__ = ["SerialEnds"]


class SerialEnds:
    """What there is to see after the serial orders of a litmus test."""

    def __init__(self, litmus: Litmus) -> None:
        self.litmus = litmus
        self.model, self.duck = ModelExecutor(litmus), DuckTexts(litmus)
        self.postconditions = Postconditions(litmus)
        self._orders: dict[tuple[str, ...], End | None] = {}

    def orders(self, end: End) -> tuple[str, ...]:
        """The serial orders after which all is the same."""
        names = [told.name for told in end.told if told.outcome == "committed"]
        seen = end.tables, {_plain(told) for told in end.told if told.outcome == "committed"}
        return tuple(
            " ".join(order)
            for order in permutations(names)
            if (one := self.order(order)) is not None
            and (one.tables, set(map(_plain, one.told))) == seen
        )

    def order(self, names: tuple[str, ...]) -> End | None:
        """What there is to see after a serial order; None if one of it fails."""
        if names not in self._orders:
            self._orders[names] = self._order(names)
        return self._orders[names]

    def _order(self, names: tuple[str, ...]) -> End | None:
        state = self.model.state(names)
        end = None
        if state is not None:
            told, left = [], []
            for k, name in enumerate(names):
                done = self.model.effect(names[: k + 1])
                assert isinstance(done, Scanned)
                told.append(told_of(name, done))
                left += [(w.table, name, w.after) for w in done.writes if w.after is not None]
            end = End(table_rows(state), tuple(told), tuple(sorted(left, key=repr)))
        theirs = self.duck.told(names)
        ours = None if end is None else (end.tables, tuple((t.rows, t.changed) for t in end.told))
        if ours != theirs:
            raise Disagreement(
                f"{self.litmus.name}: the serial order '{' '.join(names)}' gives {ours} by the model and {theirs} by DuckDB"
            )
        return end

    def breaks(self, end: End) -> tuple[str, ...]:
        """The postconditions that an end breaks."""
        return tuple(self.postconditions.broken(dict(end.tables), end.written))

    def alone(self) -> dict[str, tuple[str, ...]]:
        """The postconditions that serial orders break."""
        orders = {order: self.order(order) for order in permutations(self.litmus.transactions)}
        return {" ".join(o): self.breaks(end) for o, end in orders.items() if end is not None}

    def plausible(self, end: End) -> bool | None:
        """Whether each result of no version of its run is that of a version of some serial order."""
        late = [told for told in end.told if told.timely is False]
        return None if not late else all(told.rows in self._results(told.name) for told in late)

    def _results(self, name: str) -> Iterator[Rows | None]:
        """What a query gives somewhere in the serial orders."""
        others = [other for other in self.litmus.transactions if other != name]
        for size in range(len(others) + 1):
            for before in permutations(others, size):
                end = self.order((*before, name))
                if end is not None:
                    yield end.told[-1].rows


def _plain(told: Told) -> tuple[str, Rows | None, int]:
    return told.name, told.rows, told.changed
