"""Dependency graphs of candidates as bit codes, pair by pair, and memoized verdicts on them.

A graph is a sequence of integers, one per commit, that code its sets and its relations to each
earlier commit (`Layout`). As long as no two commits overwrote one version of a row, each pair
depends only on two effects and on whether the later commit had seen the earlier one. A ww edge
leads to the commit that overwrote the very version written, an rw edge from the reader of a version
to the commit that overwrote it. An rw edge by predicate leads from a read to each change of its
matches, since the version overwritten is the previous one in the version order; a fork in that
order would need two commits that overwrote one version. Relations of footprints and versions are
taken from the graph of the two commits alone. If two commits did overwrite one version, the whole
graph is built as for a litmus test.

Equal code sequences are one path in a tree of prefixes (`Judge`), so a prefix is judged when the
tree grows, not when it is met again. Protocols and levels use different names, so a path is first
reduced to the names of each.
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
from isolitmus.model.vocabulary import relations_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from isolitmus.checker.sweeps.space import RememberedEffect, Space
    from isolitmus.checker.sweeps.tally import Choices
    from isolitmus.model.execution import Effect
    from isolitmus.model.spec import Spec

    Rows = tuple[int, ...]

OF_ROWS = frozenset(("wr", "ww", "rw"))
"""Relations that depend on rows; all others are taken from a graph of two commits, without rows."""
BELOW_FILES = frozenset(relations_of("delta-rows"))
"""Relations of which no pair of commits is the measure: the whole graph is built for them."""


class Layout:
    """Bit layout of the code of a commit.

    From the lowest bit: one bit per set; then, for each earlier commit, one bit that says that the
    two are a fork (overwrote one row version), and two per relation: from the earlier to the later
    commit, and back.

    Parameters
    ----------
    names : iterable of str
        Relations (lower case) and sets (upper case) to code.

    Examples
    --------
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
        """Return the code of a commit from its sets and its codes with each earlier commit."""
        row, place = of_sets, self.start
        for pair in pairs:
            row |= pair << place
            place += self.width
        return row

    def forks(self, position: int) -> int:
        """Return the mask of the fork bits in the code of the commit at ``position``."""
        return self.row(0, [1] * (position - 1))

    def mask(self, names: Iterable[str], position: int) -> int:
        """Return the mask of the bits of some names in the code of the commit at ``position``."""
        wanted = frozenset(names)
        of_sets = sum(1 << b for b, name in enumerate(self.sets) if name in wanted)
        pair = sum(0b110 << 2 * b for b, name in enumerate(self.relations) if name in wanted)
        return self.row(of_sets, [pair] * (position - 1))

    def rows_of(self, seen: Frame) -> list[int]:
        """Return the codes of the nodes of a dependency graph."""
        return [
            self.row(self.members(seen, j), [self.pair(seen, i, j) for i in range(j)])
            for j in range(len(seen.nodes))
        ]

    def pair(self, seen: Frame, i: int, j: int) -> int:
        """Return the code of two nodes of a dependency graph."""
        number = 0
        for b, name in enumerate(self.relations):
            rows = seen.relations[name].rows
            number |= (rows[i] >> j & 1 | (rows[j] >> i & 1) << 1) << 2 * b + 1
        return number

    def members(self, seen: Frame, i: int) -> int:
        """Return the sets of a node of a graph as a mask; bit b stands for ``sets[b]``."""
        return sum((seen.sets[name] >> i & 1) << b for b, name in enumerate(self.sets))

    def frame(self, rows: Sequence[int]) -> Frame:
        """Return the dependency graph that has these codes."""
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
    """Return the number of a commit: twice its effect's number, plus 1 if it is not recorded."""
    return 2 * effect + (not recorded)


class Pairs:
    """Codes of single commits and of pairs of commits of a space, each computed once.

    ``alone[j]`` is the code of commit j; ``unseen[i].get(j)`` that of commit i and a later j that
    had not seen it, ``seen`` if it had. None: not yet computed by ``single`` or ``pair``. Bit b of
    a code, below ``shift``, says whether ``protocols[b]`` admits the two; it is 1 for protocols
    that are not decided by pairs. The bits from ``shift`` on follow the layout.
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
        self._whole = not BELOW_FILES.isdisjoint(layout.relations)
        self._ww, self._wr, self._rw = (bits.get(name, 0) for name in ("ww", "wr", "rw"))

    def single(self, number: int) -> int:
        """Return the code of a commit alone; it is kept in ``alone``."""
        done, recorded = self._parts(number)
        key = done.footing, recorded
        if key not in self._footings:
            made = self.space.form.frame([_event(done.bare, 1, recorded, 0)], reasons=False)
            of_sets = self.layout.members(made, 0)
            self._footings[key] = of_sets << self.shift | self._admitting(made)
        self.alone[number] = self._footings[key]
        return self.alone[number]

    def pair(self, first: int, second: int, *, seen: bool) -> int:
        """Return the code of a commit and a later one; it is kept in ``seen`` or ``unseen``."""
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
        rows |= self._whole or not (a.plain and b.plain and a.overwrote.isdisjoint(b.overwrote))
        number = self._footing(a, b, a_writes, b_writes, seen) | rows << self.shift
        (self.seen if seen else self.unseen)[first][second] = number
        return number

    def _admitting(self, made: Frame) -> int:
        return sum((judge is None or judge(made)) << b for b, judge in enumerate(self._judges))

    def frame(self, commits: Sequence[int], versions: Sequence[int]) -> Frame:
        """Return the dependency graph of commits with these read versions, by whole effects."""
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
        """Return the code of two commits without the relations of rows."""
        key = a.footing, b.footing, a_writes, b_writes, seen, _same(a, b)
        if key not in self._footings:
            first = _event(a.bare, 1, a_writes, 0)
            second = _event(b.bare, 2, b_writes, 1 if seen else 0)
            two = self.space.form.frame([first, second], reasons=False)
            number = self.layout.pair(two, 0, 1)
            self._footings[key] = number << self.shift | self._admitting(two)
        return self._footings[key]


def is_decided_by_pairs(spec: Spec) -> bool:
    """Return whether a protocol is decided pair by pair, and without rows.

    Forks do not matter for such a protocol.
    """
    return is_pairwise(spec) and spec.needs.isdisjoint(OF_ROWS | BELOW_FILES)


def _event(effect: Effect, position: int, recorded: bool, read_version: int) -> Event:
    version = position if recorded else None
    return Event(transaction_name_at(position), effect, read_version, version)


def _same(a: RememberedEffect, b: RememberedEffect) -> Hashable:
    """Return, for each file that both effects name, the sets of each that it is in.

    The number of other files in these sets is part of their footings.
    """
    return tuple(sorted((sets, b.paths[path]) for path, sets in a.paths.items() if path in b.paths))


def _changes(reader: Effect, writer: Effect) -> bool:
    """Return whether a write changes the matches of a predicate that the reader read."""
    return any(
        write.table == read.table and read.sees(write.before) != read.sees(write.after)
        for read in reader.reads
        for write in writer.writes
    )


class BrokenAxiom(NamedTuple):
    """Axiom of a spec that a dependency graph breaks."""

    axiom: str
    """Name of the axiom."""
    test: str
    """Test of the axiom, such as ``acyclic``."""
    dependencies: tuple[tuple[int, int, str], ...]
    """Dependencies that break it: source and target, as commit positions from 1, and relation."""

    @property
    def kind(self) -> BrokenKind:
        """Kind of the violation, without the transactions involved.

        Examples
        --------
        >>> BrokenAxiom("order", "acyclic", ((1, 2, "wr"), (2, 1, "rw"))).kind.relations
        ('rw', 'wr')
        """
        names = tuple(relation for _, _, relation in self.dependencies)
        turns = range(len(names)) if self.test == "acyclic" else range(1)
        return BrokenKind(self.axiom, min(names[k:] + names[:k] for k in turns))


def first_broken(frame: Frame, spec: Spec) -> BrokenAxiom:
    """Return the first axiom that breaks, for a spec that does not admit the dependency graph."""
    first = find_violations(frame, spec)[0]
    place = {name: position for position, name in enumerate(frame.nodes, 1)}
    edges = ((place[e.source], place[e.target], e.kind) for e in first.cycle)
    return BrokenAxiom(first.axiom, first.kind, tuple(edges))


class _Some:
    """Specs by number, with their verdicts on graphs reduced to the names that they use."""

    def __init__(self, layout: Layout, specs: Mapping[int, Spec]) -> None:
        self.layout = layout
        self.names = frozenset[str]().union(*(spec.needs for spec in specs.values()))
        self.specs = specs
        self.judges = {b: compile_spec(spec) for b, spec in specs.items()}
        self.masks: list[int] = []
        self.known: dict[Rows, int] = {}

    def cut(self, row: int, position: int) -> int:
        """Return the code of a commit without the names that these specs do not use."""
        while len(self.masks) < position:
            self.masks.append(self.layout.mask(self.names, len(self.masks) + 1))
        return row & self.masks[position - 1]

    def admitting(self, rows: Rows) -> int:
        """Return the specs that admit the graph, as a mask; bit b stands for ``specs[b]``."""
        if not self.judges:
            return 0
        known = self.known.get(rows)
        if known is None:
            frame = self.layout.frame(rows)
            known = self.known[rows] = sum(j(frame) << b for b, j in self.judges.items())
        return known


class Prefix:
    """Commits by their codes, with the protocols that admit them, or may admit more after them.

    ``admitted`` and ``alive`` are these protocols as masks. ``below`` maps the code of a commit,
    with the mask of the protocols that admit each pair in its low bits, to the prefix extended by
    it; None if no protocol admits that. ``forbidden`` is a mask of levels, -1 until computed.
    ``count``, ``unexplained`` and ``not_log_order`` are tallies of candidates, ``first`` the first
    of them.
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
        """Reset the tallies."""
        self.count = self.unexplained = self.not_log_order = 0
        self.first: tuple[int, Choices] | None = None


class Judge:
    """Verdicts of protocols and levels on the graphs of one layout.

    Protocols that are decided by pairs are not evaluated again. A protocol under which further
    commits never turn refused into admitted is dropped at the first prefix that it refuses. A
    prefix without a protocol left is None.

    Parameters
    ----------
    layout : Layout
        Bit layout of the codes.
    protocols, levels : sequence of Spec
        Specs to evaluate.
    mine : int
        Mask of the protocols in question; bit b stands for ``protocols[b]``.
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
        """Return the prefix extended by a commit, by its code; it is kept in ``below``."""
        if key not in prefix.below:
            prefix.below[key] = self._longer(prefix, key >> self.width, key & prefix.alive)
        return prefix.below[key]

    def _longer(self, prefix: Prefix, row: int, alive: int) -> Prefix | None:
        """Return the prefix with one more commit; None if no protocol in question is left."""
        rows = (*prefix.for_protocols, self._protocols.cut(row, len(prefix.for_levels) + 1))
        admitted = alive & (self._decided | self._protocols.admitting(rows))
        alive &= admitted | self._forgiving
        if not alive & self.mine:
            return None
        cut = self._levels.cut(row, len(prefix.for_levels) + 1)
        return Prefix(rows, (*prefix.for_levels, cut), admitted, alive)

    def forbidden(self, prefix: Prefix) -> int:
        """Return the mask of levels that forbid the commits of a prefix; bit b stands for level b.

        The mask is kept in ``forbidden``.
        """
        if prefix.forbidden < 0:
            prefix.forbidden = self._every_level & ~self._levels.admitting(prefix.for_levels)
        return prefix.forbidden

    def kind(self, prefix: Prefix, level: int) -> BrokenKind:
        """Return the kind of violation of a level, by its number; it is kept in ``kinds``."""
        if level not in prefix.kinds:
            frame = self._levels.layout.frame(prefix.for_levels)
            prefix.kinds[level] = first_broken(frame, self._levels.specs[level]).kind
        return prefix.kinds[level]
