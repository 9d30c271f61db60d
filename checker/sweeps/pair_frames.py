"""Frames of candidates as numbers, pair by pair, and the verdicts on them.

The frame of a candidate as numbers: one for each commit, made of what it has with each earlier one.

As long as no two commits overwrote one version of a row, every pair of a frame is a matter of two
effects and of whether the later commit had seen the earlier: ww leads to who overwrote the very
version written, rw from who read a version to who overwrote it, and by predicate from a read to
each change of its matches, since the version overwritten is the one before in the version order (a
fork in it would take two that overwrote one version). What footprints and versions say is asked of
the frame of the two alone. Where two did overwrite one version, the frame of all is made as for a
litmus test.

What specs say of frames that are numbers, each frame judged once.

Commits with the same numbers are one path in a tree, so a prefix is judged when the tree grows, not
when it is met again. Protocols and levels look at different names: a path is first cut down to the
names of each.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.graph_semantics import find_violations
from isolitmus.checker.judge.spec_properties import is_monotone, is_pairwise
from isolitmus.checker.sweeps.space import transaction_name_at
from isolitmus.checker.sweeps.tally import BrokenKind
from isolitmus.model.execution import Event
from isolitmus.model.frame import Frame
from isolitmus.model.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from isolitmus.checker.sweeps.space import RememberedEffect, Space
    from isolitmus.checker.sweeps.tally import Choices
    from isolitmus.model.execution import Effect
    from isolitmus.model.spec import Spec

    Rows = tuple[int, ...]

__all__ = [
    "BrokenAxiom",
    "Judge",
    "Layout",
    "Pairs",
    "Prefix",
    "commit_number",
    "first_broken",
    "is_decided_by_pairs",
]

OF_ROWS = frozenset(("wr", "ww", "rw"))
"""The relations that rows decide; all others are asked of a frame of two, without rows."""


class Layout:
    """Where names stand in the numbers: a bit for each set, then, for each earlier commit, a bit
    that says that the two are a fork, and two for each relation: from the earlier to the later, and
    back.

    >>> layout = Layout({"rw", "log", "Blind"})
    >>> layout.relations, layout.sets, bin(layout.mask({"rw"}, 3))
    (('log', 'rw'), ('Blind',), '0b11000110000')
    """

    def __init__(self, names: Iterable[str]) -> None:
        wanted = frozenset(names)
        self.relations = tuple(sorted(name for name in wanted if name[0].islower()))
        self.sets = tuple(sorted(wanted.difference(self.relations)))
        self.start = len(self.sets)
        self.width = 1 + 2 * len(self.relations)

    def row(self, of_sets: int, pairs: Iterable[int]) -> int:
        """The number of a commit."""
        row, place = of_sets, self.start
        for pair in pairs:
            row |= pair << place
            place += self.width
        return row

    def forks(self, position: int) -> int:
        """The bits of a commit's number that say that it is in a fork with an earlier one."""
        return self.row(0, [1] * (position - 1))

    def mask(self, names: Iterable[str], position: int) -> int:
        """The bits of a commit's number that belong to some names."""
        wanted = frozenset(names)
        of_sets = sum(1 << b for b, name in enumerate(self.sets) if name in wanted)
        pair = sum(0b110 << 2 * b for b, name in enumerate(self.relations) if name in wanted)
        return self.row(of_sets, [pair] * (position - 1))

    def rows_of(self, seen: Frame) -> list[int]:
        """A frame as numbers."""
        return [
            self.row(self.members(seen, j), [self.pair(seen, i, j) for i in range(j)])
            for j in range(len(seen.nodes))
        ]

    def pair(self, seen: Frame, i: int, j: int) -> int:
        """The number of two nodes of a frame."""
        number = 0
        for b, name in enumerate(self.relations):
            rows = seen.relations[name].rows
            number |= (rows[i] >> j & 1 | (rows[j] >> i & 1) << 1) << 2 * b + 1
        return number

    def members(self, seen: Frame, i: int) -> int:
        """The sets that a node of a frame is in, as a number."""
        return sum((seen.sets[name] >> i & 1) << b for b, name in enumerate(self.sets))

    def frame(self, rows: Sequence[int]) -> Frame:
        """The frame that has these numbers."""
        n = len(rows)
        relations = {name: [0] * n for name in self.relations}
        sets = dict.fromkeys(self.sets, 0)
        for j, row in enumerate(rows):
            for b, name in enumerate(self.sets):
                sets[name] |= (row >> b & 1) << j
            rest = row >> self.start
            for i in range(j):
                rest >>= 1
                for name in self.relations:
                    relations[name][i] |= (rest & 1) << j
                    relations[name][j] |= (rest >> 1 & 1) << i
                    rest >>= 2
        made = {name: Relation(tuple(found)) for name, found in relations.items()}
        return Frame(tuple(map(transaction_name_at, range(1, n + 1))), made, sets)


def commit_number(effect: int, *, recorded: bool = True) -> int:
    """The number of a commit: an effect by its number, and whether it is recorded."""
    return 2 * effect + (not recorded)


class Pairs:
    """What the commits of a space's effects have with each other, each pair worked out once.

    ``alone`` are the numbers of single commits, ``unseen[i].get(j)`` of commit i and a later j that
    had not seen it, ``seen`` if it had; None: to be asked of ``single`` and ``pair``. The low bits
    of each number, one for each of ``protocols``, say which admit the two (1 if more than two have
    a say), the others are of the layout.
    """

    def __init__(self, space: Space, layout: Layout, protocols: Sequence[Spec]) -> None:
        self.space, self.layout = space, layout
        self.alone: dict[int, int] = {}
        self.unseen: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.seen: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.shift = len(protocols)
        self._judges = [
            compile_spec(spec) if is_decided_by_pairs(spec) else None for spec in protocols
        ]
        self._footings: dict[Hashable, int] = {}
        bits = {name: 2 << 2 * b for b, name in enumerate(layout.relations)}
        self._ww, self._wr, self._rw = (bits.get(name, 0) for name in ("ww", "wr", "rw"))

    def single(self, number: int) -> int:
        """The number of a commit alone; kept in ``alone``."""
        done, recorded = self._parts(number)
        key = done.footing, recorded
        if key not in self._footings:
            made = self.space.form.frame([_event(done.bare, 1, recorded, 0)], reasons=False)
            of_sets = self.layout.members(made, 0)
            self._footings[key] = of_sets << self.shift | self._admitting(made)
        self.alone[number] = self._footings[key]
        return self.alone[number]

    def pair(self, first: int, second: int, *, seen: bool) -> int:
        """What a commit and a later one have with each other; kept in ``seen`` and ``unseen``."""
        a, a_writes = self._parts(first)
        b, b_writes = self._parts(second)
        rows = 0
        name = transaction_name_at(a.position)
        if a_writes:
            changed = _changes(b.effect, a.effect)
            if b_writes and any(writer == name for _, _, writer in b.overwrote):
                rows |= self._ww
            if (seen and changed) or any(writer == name for _, _, writer in b.read):
                rows |= self._wr
            if (changed and not seen) or not a.overwrote.isdisjoint(b.read):
                rows |= self._rw << 1
        if b_writes and (not b.overwrote.isdisjoint(a.read) or _changes(a.effect, b.effect)):
            rows |= self._rw
        rows |= not (a.plain and b.plain and a.overwrote.isdisjoint(b.overwrote))
        number = self._footing(a, b, a_writes, b_writes, seen) | rows << self.shift
        (self.seen if seen else self.unseen)[first][second] = number
        return number

    def _admitting(self, made: Frame) -> int:
        return sum((judge is None or judge(made)) << b for b, judge in enumerate(self._judges))

    def frame(self, commits: Sequence[int], versions: Sequence[int]) -> Frame:
        """The frame of commits with these read versions, whatever they overwrote."""
        events = []
        for number, read_version in zip(commits, versions, strict=True):
            done, recorded = self._parts(number)
            events.append(_event(done.effect, done.position, recorded, read_version))
        return self.space.form.frame(events, reasons=False)

    def _parts(self, number: int) -> tuple[RememberedEffect, bool]:
        return self.space.done[number >> 1], not number & 1

    def _footing(
        self, a: RememberedEffect, b: RememberedEffect, a_writes: bool, b_writes: bool, seen: bool
    ) -> int:
        """What the two have with each other but for rows."""
        key = a.footing, b.footing, a_writes, b_writes, seen, _same(a, b)
        if key not in self._footings:
            first = _event(a.bare, 1, a_writes, 0)
            second = _event(b.bare, 2, b_writes, 1 if seen else 0)
            two = self.space.form.frame([first, second], reasons=False)
            number = self.layout.pair(two, 0, 1)
            self._footings[key] = number << self.shift | self._admitting(two)
        return self._footings[key]


def is_decided_by_pairs(spec: Spec) -> bool:
    """Whether a protocol is decided two by two, and without rows, so that forks have no say."""
    return is_pairwise(spec) and spec.needs.isdisjoint(OF_ROWS)


def _event(effect: Effect, position: int, recorded: bool, read_version: int) -> Event:
    version = position if recorded else None
    return Event(transaction_name_at(position), effect, read_version, version)


def _same(a: RememberedEffect, b: RememberedEffect) -> Hashable:
    """Which files the two name in common: for each in which of their sets it is. How many others
    there are in which sets is of their footings.
    """
    return tuple(sorted((sets, b.paths[path]) for path, sets in a.paths.items() if path in b.paths))


def _changes(reader: Effect, writer: Effect) -> bool:
    """Whether a write changes the matches of a predicate that the other read."""
    return any(
        write.table == read.table and read.sees(write.before) != read.sees(write.after)
        for read in reader.reads
        for write in writer.writes
    )


class BrokenAxiom(NamedTuple):
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

        >>> BrokenAxiom("order", "acyclic", ((1, 2, "wr"), (2, 1, "rw"))).kind.relations
        ('rw', 'wr')
        """
        names = tuple(relation for _, _, relation in self.dependencies)
        turns = range(len(names)) if self.test == "acyclic" else range(1)
        return BrokenKind(self.axiom, min(names[k:] + names[:k] for k in turns))


def first_broken(frame: Frame, spec: Spec) -> BrokenAxiom:
    """What a spec that does not admit a frame finds broken first."""
    first = find_violations(frame, spec)[0]
    place = {name: position for position, name in enumerate(frame.nodes, 1)}
    edges = ((place[e.source], place[e.target], e.kind) for e in first.cycle)
    return BrokenAxiom(first.axiom, first.kind, tuple(edges))


class _Some:
    """Specs, and the frames on their names that they judged."""

    def __init__(self, layout: Layout, specs: Mapping[int, Spec]) -> None:
        self.layout = layout
        self.names = frozenset[str]().union(*(spec.needs for spec in specs.values()))
        self.specs = specs
        self.judges = {b: compile_spec(spec) for b, spec in specs.items()}
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
    commits can never turn refused into admitted ends with the first prefix that it refuses;
    prefixes that have lost every protocol are None. ``mine`` are the protocols in question, as
    bits.
    """

    def __init__(
        self,
        layout: Layout,
        protocols: Sequence[Spec],
        levels: Sequence[Spec],
        mine: int,
    ) -> None:
        self.width, self.mine = len(protocols), mine
        asked = {
            b: s for b, s in enumerate(protocols) if mine >> b & 1 and not is_decided_by_pairs(s)
        }
        self._protocols = _Some(layout, asked)
        self._levels = _Some(layout, dict(enumerate(levels)))
        self._forgiving = sum(1 << b for b, spec in asked.items() if not is_monotone(spec))
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
        """Of what kind the commits of a prefix are that a level, by its number, forbids; kept in
        ``kinds``.
        """
        if level not in prefix.kinds:
            frame = self._levels.layout.frame(prefix.for_levels)
            prefix.kinds[level] = first_broken(frame, self._levels.specs[level]).kind
        return prefix.kinds[level]
