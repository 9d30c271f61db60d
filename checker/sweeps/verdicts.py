"""What specs say of frames that are numbers, each frame judged once.

Commits with the same numbers are one path in a tree, so a prefix is judged when the tree grows, not
when it is met again. Protocols and levels look at different names: a path is first cut down to the
names of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.judge.compiled_semantics import admission
from isolitmus.checker.judge.graph_semantics import violations
from isolitmus.checker.judge.spec_properties import monotone
from isolitmus.checker.sweeps.pair_frames import decides
from isolitmus.checker.sweeps.tally import BrokenKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.sweeps.pair_frames import Layout
    from isolitmus.checker.sweeps.tally import Choices
    from isolitmus.model.frame import Frame
    from isolitmus.model.spec import Spec

    Rows = tuple[int, ...]

__all__ = ["Broken", "Judge", "Prefix", "broken"]


class Broken(NamedTuple):
    """What a spec finds broken."""

    axiom: str
    """Its axiom."""
    test: str
    """What that asks for: ``acyclic``, …"""
    dependencies: tuple[tuple[int, int, str], ...]
    """What breaks it: from and to whom, by commit position from 1, and the relation."""

    @property
    def kind(self) -> BrokenKind:
        """What is broken, whoever breaks it.

        >>> Broken("order", "acyclic", ((1, 2, "wr"), (2, 1, "rw"))).kind.relations
        ('rw', 'wr')
        """
        names = tuple(relation for _, _, relation in self.dependencies)
        turns = range(len(names)) if self.test == "acyclic" else range(1)
        return BrokenKind(self.axiom, min(names[k:] + names[:k] for k in turns))


def broken(frame: Frame, spec: Spec) -> Broken:
    """What a spec that does not admit a frame finds broken first."""
    first = violations(frame, spec)[0]
    place = {name: position for position, name in enumerate(frame.nodes, 1)}
    edges = ((place[e.source], place[e.target], e.kind) for e in first.cycle)
    return Broken(first.axiom, first.kind, tuple(edges))


class _Some:
    """Specs, and the frames on their names that they judged."""

    def __init__(self, layout: Layout, specs: Mapping[int, Spec]) -> None:
        self.layout = layout
        self.names = frozenset[str]().union(*(spec.needs for spec in specs.values()))
        self.specs = specs
        self.judges = {b: admission(spec) for b, spec in specs.items()}
        self.masks: list[int] = []
        self.known: dict[Rows, int] = {}

    def cut(self, row: int, position: int) -> int:
        """A commit's number without the names that these specs do not look at."""
        while len(self.masks) < position:
            self.masks.append(self.layout.mask(self.names, len(self.masks) + 1))
        return row & self.masks[position - 1]

    def admitting(self, rows: Rows) -> int:
        """Which of the specs admit the frame, as bits."""
        if not self.judges:
            return 0
        known = self.known.get(rows)
        if known is None:
            frame = self.layout.frame(rows)
            known = self.known[rows] = sum(j(frame) << b for b, j in self.judges.items())
        return known


class Prefix:
    """Commits by their numbers: which protocols admit them, and which may admit more after them.

    ``below`` are the prefixes that are one commit longer, by its number and, in the low bits, the
    protocols that admit each two; None for those that no protocol admits. Who counts has ``count``,
    ``unexplained``, ``not_log_order``, and in ``first`` the first candidate.
    """

    __slots__ = (
        "admitted",
        "alive",
        "below",
        "count",
        "first",
        "for_levels",
        "for_protocols",
        "forbidden",
        "kinds",
        "not_log_order",
        "unexplained",
    )  # fmt: skip

    def __init__(self, for_protocols: Rows, for_levels: Rows, admitted: int, alive: int) -> None:
        self.for_protocols, self.for_levels = for_protocols, for_levels
        self.admitted, self.alive = admitted, alive
        self.below: dict[int, Prefix | None] = {}
        self.forbidden = -1
        self.kinds: dict[int, BrokenKind] = {}
        self.forget()

    def forget(self) -> None:
        """Count anew."""
        self.count = self.unexplained = self.not_log_order = 0
        self.first: tuple[int, Choices] | None = None


class Judge:
    """Protocols and levels over the frames of one layout.

    Specs that are decided two by two (``decides``) are not asked again. A protocol under which more
    commits can never turn refused into admitted ends with the first prefix that it refuses; prefixes
    that have lost every protocol are None. ``mine`` are the protocols in question, as bits.
    """

    def __init__(
        self,
        layout: Layout,
        protocols: Sequence[Spec],
        levels: Sequence[Spec],
        mine: int,
    ) -> None:
        self.width, self.mine = len(protocols), mine
        asked = {b: s for b, s in enumerate(protocols) if mine >> b & 1 and not decides(s)}
        self._protocols = _Some(layout, asked)
        self._levels = _Some(layout, dict(enumerate(levels)))
        self._forgiving = sum(1 << b for b, spec in asked.items() if not monotone(spec))
        self._decided = ~sum(1 << b for b in asked)
        self._every_level = (1 << len(levels)) - 1
        self.root = Prefix((), (), mine, mine)

    def longer(self, prefix: Prefix, key: int) -> Prefix | None:
        """The prefix with one commit more, by its number; kept in ``below``."""
        if key not in prefix.below:
            prefix.below[key] = self._longer(prefix, key >> self.width, key & prefix.alive)
        return prefix.below[key]

    def _longer(self, prefix: Prefix, row: int, alive: int) -> Prefix | None:
        rows = (*prefix.for_protocols, self._protocols.cut(row, len(prefix.for_levels) + 1))
        admitted = alive & (self._decided | self._protocols.admitting(rows))
        alive &= admitted | self._forgiving
        if not alive & self.mine:
            return None
        cut = self._levels.cut(row, len(prefix.for_levels) + 1)
        return Prefix(rows, (*prefix.for_levels, cut), admitted, alive)

    def forbidden(self, prefix: Prefix) -> int:
        """Which levels forbid the commits of a prefix, as bits; kept in ``forbidden``."""
        if prefix.forbidden < 0:
            prefix.forbidden = self._every_level & ~self._levels.admitting(prefix.for_levels)
        return prefix.forbidden

    def kind(self, prefix: Prefix, level: int) -> BrokenKind:
        """Of what kind the commits of a prefix are that a level, by its number, forbids; kept in ``kinds``."""
        if level not in prefix.kinds:
            frame = self._levels.layout.frame(prefix.for_levels)
            prefix.kinds[level] = broken(frame, self._levels.specs[level]).kind
        return prefix.kinds[level]
