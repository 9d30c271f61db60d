"""What specs say of frames that are numbers, each frame judged once.

Commits with the same numbers are one path in a tree, so a prefix is judged when the tree grows, not
when it is met again. Protocols and levels look at different names: a path is first cut down to the
names of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.reading.admission import admission
from isolitmus.checker.reading.monotone import monotone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.counting.pairs import Layout
    from isolitmus.checker.counting.tally import Choices
    from isolitmus.model.spec import Spec

__all__ = ["Judge", "Prefix"]


class _Some:
    """Specs, and the frames on their names that they judged."""

    def __init__(self, layout: Layout, specs: Sequence[Spec]) -> None:
        self.layout = layout
        self.names = frozenset[str]().union(*(spec.needs for spec in specs))
        self.judges = [admission(spec) for spec in specs]
        self.masks: list[int] = []
        self.known: dict[tuple[int, ...], int] = {}

    def cut(self, row: int, position: int) -> int:
        """A commit's number without the names that these specs do not look at."""
        while len(self.masks) < position:
            self.masks.append(self.layout.mask(self.names, len(self.masks) + 1))
        return row & self.masks[position - 1]

    def admitting(self, rows: tuple[int, ...]) -> int:
        """Which of the specs admit the frame, as bits."""
        known = self.known.get(rows)
        if known is None:
            frame = self.layout.frame(rows)
            admitted = (judge(frame) << b for b, judge in enumerate(self.judges))
            known = self.known[rows] = sum(admitted)
        return known


class Prefix:
    """Commits by their numbers: which protocols admit them, and which may admit more after them.

    ``below`` are the prefixes that are one commit longer, None for those that no protocol admits. Who
    counts has ``count``, ``unexplained``, ``not_log_order``, and in ``first`` the first candidate.
    """

    __slots__ = (
        "admitted", "alive", "below", "count", "first", "forbidden", "not_log_order", "rows_a",
        "rows_b", "unexplained",
    )  # fmt: skip

    def __init__(
        self, rows_a: tuple[int, ...], rows_b: tuple[int, ...], admitted: int, alive: int
    ) -> None:
        self.rows_a, self.rows_b = rows_a, rows_b
        self.admitted, self.alive = admitted, alive
        self.below: dict[int, Prefix | None] = {}
        self.forbidden = -1
        self.forget()

    def forget(self) -> None:
        """Count anew."""
        self.count = self.unexplained = self.not_log_order = 0
        self.first: tuple[int, Choices] | None = None


class Judge:
    """Protocols and levels over the frames of one layout.

    A protocol under which more commits can never turn refused into admitted ends with the first prefix
    that it refuses; prefixes that have lost every protocol are None.
    """

    def __init__(self, layout: Layout, protocols: Sequence[Spec], levels: Sequence[Spec]) -> None:
        self._protocols = _Some(layout, protocols)
        self._levels = _Some(layout, levels)
        every = (1 << len(protocols)) - 1
        self._forgiving = sum(1 << b for b, spec in enumerate(protocols) if not monotone(spec))
        self._levels_mask = (1 << len(levels)) - 1
        self.root = Prefix((), (), every, every)

    def longer(self, prefix: Prefix, row: int) -> Prefix | None:
        """The prefix with one commit more, by its number; kept in ``below``."""
        if row not in prefix.below:
            prefix.below[row] = self._longer(prefix, row)
        return prefix.below[row]

    def _longer(self, prefix: Prefix, row: int) -> Prefix | None:
        position = len(prefix.rows_a) + 1
        rows = (*prefix.rows_a, self._protocols.cut(row, position))
        admitted = self._protocols.admitting(rows) & prefix.alive
        alive = prefix.alive & (admitted | self._forgiving)
        if not alive:
            return None
        return Prefix(
            rows, (*prefix.rows_b, self._levels.cut(row, position)), admitted, alive
        )

    def forbidden(self, prefix: Prefix) -> int:
        """Which levels forbid the commits of a prefix, as bits; kept in ``forbidden``."""
        if prefix.forbidden < 0:
            prefix.forbidden = self._levels_mask & ~self._levels.admitting(prefix.rows_b)
        return prefix.forbidden
