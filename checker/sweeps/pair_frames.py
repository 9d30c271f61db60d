"""The frame of a candidate as numbers: one for each commit, made of what it has with each earlier one.

As long as no two commits overwrote one version of a row, every pair of a frame is a matter of two
effects and of whether the later commit had seen the earlier: ww leads to who overwrote the very
version written, rw from who read a version to who overwrote it, and by predicate from a read to each
change of its matches, since the version overwritten is the one before in the version order (a fork in
it would take two that overwrote one version). What footprints and versions say is asked of the frame
of the two alone. Where two did overwrite one version, the frame of all is made as for a litmus test.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from isolitmus.checker.judge.compiled_semantics import admission
from isolitmus.checker.judge.spec_properties import pairwise
from isolitmus.checker.sweeps.space import transaction
from isolitmus.model.execution import Event
from isolitmus.model.frame import Frame
from isolitmus.model.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from isolitmus.checker.sweeps.space import Done, Space
    from isolitmus.model.execution import Effect
    from isolitmus.model.spec import Spec

__all__ = ["Layout", "Pairs", "commit", "decides"]

OF_ROWS = frozenset(("wr", "ww", "rw"))
"""The relations that rows decide; all others are asked of a frame of two, without rows."""


class Layout:
    """Where names stand in the numbers: a bit for each set, then, for each earlier commit, a bit that
    says that the two are a fork, and two for each relation: from the earlier to the later, and back.

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
        return Frame(tuple(map(transaction, range(1, n + 1))), made, sets)


def commit(effect: int, *, recorded: bool = True) -> int:
    """The number of a commit: an effect by its number, and whether it is recorded."""
    return 2 * effect + (not recorded)


class Pairs:
    """What the commits of a space's effects have with each other, each pair worked out once.

    ``alone`` are the numbers of single commits, ``unseen[i].get(j)`` of commit i and a later j that had
    not seen it, ``seen`` if it had; None: to be asked of ``single`` and ``pair``. The low bits of
    each number, one for each of ``protocols``, say which admit the two (1 if more than two have a say),
    the others are of the layout.
    """

    def __init__(self, space: Space, layout: Layout, protocols: Sequence[Spec]) -> None:
        self.space, self.layout = space, layout
        self.alone: dict[int, int] = {}
        self.unseen: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.seen: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.shift = len(protocols)
        self._judges = [admission(spec) if decides(spec) else None for spec in protocols]
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
        name = transaction(a.position)
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

    def _parts(self, number: int) -> tuple[Done, bool]:
        return self.space.done[number >> 1], not number & 1

    def _footing(self, a: Done, b: Done, a_writes: bool, b_writes: bool, seen: bool) -> int:
        """What the two have with each other but for rows."""
        key = a.footing, b.footing, a_writes, b_writes, seen, _same(a, b)
        if key not in self._footings:
            first = _event(a.bare, 1, a_writes, 0)
            second = _event(b.bare, 2, b_writes, 1 if seen else 0)
            two = self.space.form.frame([first, second], reasons=False)
            number = self.layout.pair(two, 0, 1)
            self._footings[key] = number << self.shift | self._admitting(two)
        return self._footings[key]


def decides(spec: Spec) -> bool:
    """Whether a protocol is decided two by two, and without rows, so that forks have no say."""
    return pairwise(spec) and spec.needs.isdisjoint(OF_ROWS)


def _event(effect: Effect, position: int, recorded: bool, read_version: int) -> Event:
    version = position if recorded else None
    return Event(transaction(position), effect, read_version, version)


def _same(a: Done, b: Done) -> Hashable:
    """Which files the two name in common: for each in which of their sets it is. How many others there are in which
    sets is of their footings.
    """
    return tuple(sorted((sets, b.paths[path]) for path, sets in a.paths.items() if path in b.paths))


def _changes(reader: Effect, writer: Effect) -> bool:
    """Whether a write changes the matches of a predicate that the other read."""
    return any(
        write.table == read.table and read.sees(write.before) != read.sees(write.after)
        for read in reader.reads
        for write in writer.writes
    )
