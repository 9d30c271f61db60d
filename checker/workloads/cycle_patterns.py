"""Cycle patterns that a broken promise has to have (docs/semantics.md, Theorem 12).

Where jobs may break a promise: the patterns of dependencies that a cycle has to have, asked of a solver.

With snapshots and commits in the order of the log, only the one kind of dependency goes back in it: from a
transaction that has read (A) to one that it missed (I), which changed what it read. So without a pair (A, I) that the commit
check lets through nothing is ever out of order. A cycle of writers has, around its latest member A, such an I,
what depends on I (X) in the window of A, and a way from X back to A. (docs/semantics.md, Theorem 12)

The patterns that a broken promise has to have, of statements that are given: pairs, and cycles around one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.judge.spec_properties import is_monotone
from isolitmus.checker.templates.instance_frames import (
    AssumedChange,
    Instance,
    SymbolicFrame,
    may_miss,
)
from isolitmus.checker.workloads.simple_examples import QuestionSolver
from isolitmus.model.sql.statement import Read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.checker.workloads.instances import Instances, Participant
    from isolitmus.model.spec import Spec
    from isolitmus.model.workload import JobStatement

__all__ = [
    "LEMMAS",
    "AssumedDependency",
    "CyclePattern",
    "Lemma",
    "PatternQuestion",
    "PatternSearch",
    "RefutedPattern",
    "backward_pair",
    "cycle_of_four",
    "cycle_of_three",
    "open_cycle",
    "seen_in_between",
    "way_in",
    "ways_to_miss",
    "write_skew",
]


class Lemma(NamedTuple):
    """A kind of pattern that a proof shows to be impossible, in words."""

    one: str
    """A pattern of this kind."""
    several: str
    """The same in the plural."""
    fact: str
    """What would happen if the pattern were possible."""


LEMMAS = {
    "nothing goes back": Lemma(
        "potential conflict",
        "potential conflicts",
        "a statement commits without seeing a concurrent change to its read set",
    ),
    "no dependency": Lemma(
        "potential dependency", "potential dependencies", "one statement depends on another"
    ),
    "no reader in between": Lemma(
        "potential read",
        "potential reads",
        "a reader sees a change that a concurrent statement did not see, but not that statement",
    ),
    "no cycle": Lemma(
        "potential cycle",
        "potential cycles",
        "a statement and a change that it did not see are in a cycle of dependencies",
    ),
    "no way back": Lemma(
        "potential longer cycle",
        "potential longer cycles",
        "a statement and a change that it did not see are in a cycle through other statements",
    ),
}
"""The lemmas of proofs, by the names that documents in JSON use."""

WayNumbers = tuple[int, ...]
"""A way in which a danger may come about: for each of its dependencies which of the ways of that it is."""


class AssumedDependency(NamedTuple):
    """A dependency that is supposed: of which kind, from whom to whom, by their places in the log."""

    kind: str
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class CyclePattern:
    """A pattern that the commit check may let through: who takes part, in the order of the log, the last one
    (who began first) last, and how they depend on each other.
    """

    members: tuple[JobStatement, ...]
    """In the order in which they commit; the last one has seen none of the others."""
    seen: frozenset[tuple[int, int]] = frozenset()
    """Who of them has seen whom."""
    links: tuple[AssumedDependency, ...] = ()
    """The dependencies."""
    closed: bool = True
    """Whether they make a cycle; else the way back leads by way of other jobs."""
    outside: bool = False
    """The last one has missed the others in what its client reads before it starts, and only there."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the members are called in a test: different ones, also where a statement takes part twice."""
        found: list[str] = []
        for one in self.members:
            again = sum(name == one.name or name.startswith(f"{one.name}_run") for name in found)
            found.append(one.name if not again else f"{one.name}_run{again + 1}")
        return tuple(found)

    @property
    def lemma(self) -> str:
        """The name of what is proved if it cannot come about."""
        if len(self.links) == 1 and self.closed:
            return "nothing goes back"
        if any(isinstance(one.statement, Read) for one in self.members):
            return "no reader in between"
        return "no cycle" if self.closed else "no way back"

    @property
    def writers(self) -> tuple[int, ...]:
        """Who writes rows for the dependencies to be there; others may find nothing to do."""
        found = {
            k
            for link in self.links
            for kinds, k in ((("wr", "ww"), link.source), (("ww", "rw"), link.target))
            if link.kind in kinds
        }
        return tuple(sorted(found))

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that its members write to."""
        found = (getattr(one.statement, "target", None) for one in self.members)
        return tuple(dict.fromkeys(table for table in found if table is not None))

    def pair(self, k: int) -> tuple[tuple[int, ...], CyclePattern]:
        """What it says of one of them and the last one alone: which of the dependencies, and as a danger."""
        last = len(self.members) - 1
        places = tuple(n for n, link in enumerate(self.links) if {*link[1:]} == {k, last})
        links = tuple(
            AssumedDependency(kind, int(source == last), int(target == last))
            for kind, source, target in (self.links[n] for n in places)
        )
        closed = any(link.target < link.source for link in links)
        members = self.members[k], self.members[last]
        return places, CyclePattern(members, links=links, closed=closed, outside=self.outside)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from others."""
        return self.names, self.seen, self.links, self.closed, self.outside

    @property
    def schedule(self) -> str:
        """The last one begins, the others run one after another, the last one commits."""
        *others, last = self.names
        if self.outside:
            return " ".join((f"{last}.before", *others, last))
        return " ".join((f"{last}.start", *others, f"{last}.commit"))


@dataclass(frozen=True, eq=False)
class RefutedPattern:
    """Something that does not come about."""

    lemma: str
    """The name of what is proved so."""
    about: str
    """Who takes part, and how."""
    _text: Callable[[], str]

    @property
    def text(self) -> str:
        """The question to the solver, in SMT-LIB: unsatisfiable."""
        return self._text()


@dataclass
class PatternQuestion:
    """A danger as formulas: what its members are, and in which ways it may come about."""

    danger: CyclePattern
    """What is asked."""
    members: tuple[Participant, ...] = ()
    """Who takes part in the ways."""
    asked: QuestionSolver | None = None
    """The solver that was asked, if any was."""
    ways: list[tuple[Any, ...]] = field(default_factory=list)
    """For each way that is not refuted what has to hold."""
    refuted: dict[WayNumbers, RefutedPattern] = field(default_factory=dict)
    """The other ways."""
    unsure: bool = False
    """Whether the solver could not say of some way if it may come about."""


class Dependency(NamedTuple):
    """Whether some instance of a statement may depend on one of another, and the proof if none does."""

    possible: bool
    refuted: tuple[RefutedPattern, ...]


class PatternSearch:
    """The dangers of a workload's statements under a protocol."""

    def __init__(self, instances: Instances, protocol: Spec) -> None:
        self.instances = instances
        self.protocol = protocol
        self.z3 = instances.everybody.z3
        self._questions: dict[tuple[object, ...], PatternQuestion] = {}
        self._refuted: dict[tuple[object, ...], PatternQuestion] = {}
        self._depends: dict[tuple[object, ...], Dependency] = {}
        self._counts: dict[tuple[object, ...], int] = {}
        self._grows = is_monotone(protocol)

    def question(self, danger: CyclePattern) -> PatternQuestion:
        """The danger as formulas; without ways that is a proof that it does not come about."""
        if danger.key not in self._questions:
            kinds = tuple(self.instances.kind(one) for one in danger.members)
            alike = (kinds, danger.seen, danger.links, danger.closed, danger.outside)
            found = self._refuted.get(alike) or self._ask(danger)
            if not found.ways:
                self._refuted[alike] = found
            self._questions[danger.key] = found
        return self._questions[danger.key]

    def depends(self, kind: str, a: JobStatement, b: JobStatement) -> Dependency:
        """Whether some instance of the one may depend so on one of the other, b on a for wr and ww."""
        key = kind, self.instances.kind(a), self.instances.kind(b)
        if key not in self._depends:
            members = self.instances.pair(a, b)
            ways = [formula for _, formula in self._ways(AssumedDependency(kind, 0, 1), members)]
            asked = QuestionSolver(members)
            either = asked.z3.Or(*ways)
            possible = bool(ways) and asked.possible(either) is not False
            about = f"{members[0].name} {kind} {members[1].name}"
            no = RefutedPattern("no dependency", about, partial(asked.text, either))
            self._depends[key] = Dependency(possible, (no,) if ways and not possible else ())
        return self._depends[key]

    def _ask(self, danger: CyclePattern) -> PatternQuestion:
        counts = [self._count(danger, link) for link in danger.links]
        choices = list(product(*map(range, counts)))
        question = PatternQuestion(danger)
        pairs = list(self._pairs(danger))
        for choice in choices:
            if any(tuple(choice[n] for n in places) in pair.refuted for places, pair in pairs):
                question.refuted[choice] = self._no(danger, choice)
        if len(question.refuted) == len(choices):
            return question
        question.members, supposed = self._ways_of(danger, choices)
        question.asked = QuestionSolver(question.members)
        for choice, way in zip(choices, supposed, strict=True):
            if choice in question.refuted:
                continue
            said = question.asked.possible(*way)
            if said is False:
                question.refuted[choice] = self._no(danger, choice)
                continue
            question.unsure |= said is None
            question.ways.append(way)
        return question

    def _no(self, danger: CyclePattern, choice: WayNumbers) -> RefutedPattern:
        return RefutedPattern(danger.lemma, danger.schedule, partial(self._text, danger, choice))

    def _text(self, danger: CyclePattern, choice: WayNumbers) -> str:
        """The question of one way, made anew."""
        members, (way,) = self._ways_of(danger, [choice])
        return QuestionSolver(members).text(*way)

    def _pairs(self, danger: CyclePattern) -> Iterator[tuple[tuple[int, ...], PatternQuestion]]:
        """What was asked of two of more: under a check that only refuses more where there are more commits, what
        is refuted of them is so of all. For each pair the places of its dependencies.
        """
        last = len(danger.members) - 1
        if last > 1 and self._grows:
            for k in range(last):
                places, pair = danger.pair(k)
                if places:
                    yield places, self.question(pair)

    def _count(self, danger: CyclePattern, link: AssumedDependency) -> int:
        """In how many ways a dependency may come about."""
        back = link.target < link.source
        source, target = danger.members[link.source], danger.members[link.target]
        kinds = self.instances.kind(source), self.instances.kind(target)
        key = link.kind, back and danger.outside, *kinds
        if key not in self._counts:
            pair = self.instances.pair(source, target)
            alone, members = (
                (AssumedDependency(link.kind, 1, 0), pair[::-1])
                if back
                else (AssumedDependency(link.kind, 0, 1), pair)
            )
            self._counts[key] = len(self._ways(alone, members, outside=danger.outside))
        return self._counts[key]

    def _ways_of(
        self, danger: CyclePattern, choices: Sequence[WayNumbers]
    ) -> tuple[tuple[Participant, ...], list[tuple[Any, ...]]]:
        """Some ways in which a danger may come about: who takes part, and for each what has to hold."""
        members = tuple(
            self.instances.role(one, name)
            for one, name in zip(danger.members, danger.names, strict=True)
        )
        ways = [self._ways(link, members, outside=danger.outside) for link in danger.links]
        found = []
        for choice in choices:
            some = [link[k] for link, k in zip(ways, choice, strict=True)]
            facts = [fact for known, _ in some for fact in known]
            found.append((*(formula for _, formula in some), *self._passes(danger, members, facts)))
        return members, found

    def _passes(
        self, danger: CyclePattern, members: Sequence[Participant], facts: Sequence[AssumedChange]
    ) -> Iterator[Any]:
        """What has to hold if these facts come about, and everybody commits."""
        last = len(members) - 1
        seen = danger.seen
        if danger.outside:
            seen |= {(k, last) for k in range(last)}
        frame = SymbolicFrame([m.instance for m in members], seen, facts)
        stops = [stop for _, stop in frame.stops(self.protocol, loser=last)]
        dropped = [
            frame.dropped(self.protocol, k)
            for k, m in enumerate(members)
            if m.instance.template.target is not None
        ]
        yield from (members[k].instance.writes for k in danger.writers if k != last)
        yield from (self.z3.Not(no) for no in (*stops, *dropped))
        yield from frame.given
        yield from self.instances.differing(members[last], members[:last])

    def _ways(
        self, link: AssumedDependency, members: Sequence[Participant], *, outside: bool = False
    ) -> list[tuple[list[AssumedChange], Any]]:
        """How one member may depend on another one in this way, each with what the commit check then sees."""
        a, b = members[link.source].instance, members[link.target].instance
        if link.kind == "ww":
            table = b.template.target
            if table is None or a.template.target != table:
                return []
            row = b.template.terms.row(table, f"{table.name} that both write")
            return [([], a.template.z3.And(a.template.adds(row), b.template.removes(row)))]
        if link.kind == "wr":
            return [([], formula) for _, formula in may_miss(b, a)]
        found = may_miss(a, b)
        if link.source < link.target:
            return [(self._gone(link, a, b, fact), formula) for fact, formula in found]
        return [  # back in the log: what the commit check looks at
            ([fact._replace(writer=link.target, reader=link.source)], formula)
            for fact, formula in found
            if fact.read.outside or not outside
        ]

    def _gone(
        self, link: AssumedDependency, a: Instance, b: Instance, fact: AssumedChange
    ) -> list[AssumedChange]:
        """Of rows that the later one has read, to remove them or to make of them what the other one reads: if the
        other one removes them, too, what was read is gone. The file may be another one by then, but who moved
        the row has taken away a file that was read.
        """
        table, template = b.template.target, a.template
        if table is None or a.template.target != table:
            return []
        true = template.z3.BoolVal(True)
        rows = (
            [(true, fact.row)]
            if fact.kind == "went"
            else [(chosen, row) for chosen, name, row in fact.sources if name == table.name]
        )
        found = []
        for chosen, row in rows:
            unknowns = len(template.terms.unknowns)
            removed = template.removes(row)
            if len(template.terms.unknowns) == unknowns:  # else it is not certain
                found += [
                    AssumedChange(
                        "went", link.source, link.target, row, read,
                        template.z3.And(chosen, removed, read.matches(row)),
                    )
                    for read in b.reads
                    if read.table == table.name
                ]  # fmt: skip
        return found


def ways_to_miss(danger: CyclePattern) -> Iterator[CyclePattern]:
    """A danger, and the same by what the last one's client reads before it starts."""
    yield danger
    if danger.members[-1].let and any(link.target < link.source for link in danger.links):
        yield replace(danger, outside=True)


def backward_pair(last: JobStatement, early: JobStatement) -> CyclePattern:
    """The last one misses the early one, which changed what it read."""
    return CyclePattern((early, last), links=(AssumedDependency("rw", 1, 0),))


def way_in(other: JobStatement, last: JobStatement) -> CyclePattern:
    """Another one, which the last one has missed, has read what the last one then changes: how a way back may end."""
    return CyclePattern((other, last), links=(AssumedDependency("rw", 0, 1),), closed=False)


def write_skew(last: JobStatement, early: JobStatement) -> CyclePattern:
    """Two that miss each other."""
    return CyclePattern(
        (early, last), links=(AssumedDependency("rw", 1, 0), AssumedDependency("rw", 0, 1))
    )


def seen_in_between(last: JobStatement, early: JobStatement, reader: JobStatement) -> CyclePattern:
    """A reader has seen the early one, and not the last one, which has missed both."""
    links = (
        AssumedDependency("rw", 2, 0),
        AssumedDependency("wr", 0, 1),
        AssumedDependency("rw", 1, 2),
    )
    return CyclePattern((early, reader, last), frozenset({(0, 1)}), links)


def cycle_of_three(
    last: JobStatement, early: JobStatement, between: JobStatement, kind: str
) -> CyclePattern:
    """One between them depends in this way on the early one, and has read what the last one then changes."""
    links = (
        AssumedDependency("rw", 2, 0),
        AssumedDependency(kind, 0, 1),
        AssumedDependency("rw", 1, 2),
    )
    return CyclePattern((early, between, last), frozenset({(0, 1)}), links)


def open_cycle(
    last: JobStatement, early: JobStatement, between: JobStatement, kind: str
) -> CyclePattern:
    """The same without the way back to the last one, which may lead by way of others."""
    links = (AssumedDependency("rw", 2, 0), AssumedDependency(kind, 0, 1))
    return CyclePattern((early, between, last), frozenset({(0, 1)}), links, closed=False)


def cycle_of_four(
    last: JobStatement, early: JobStatement, between: JobStatement, other: JobStatement, kind: str
) -> Iterator[CyclePattern]:
    """The same by way of one other, in each way in which that may depend on the one between."""
    seen = frozenset({(0, 1), (0, 2), (1, 2)})
    for second in ("wr", "ww", "rw"):
        links = (
            AssumedDependency("rw", 3, 0),
            AssumedDependency(kind, 0, 1),
            AssumedDependency(second, 1, 2),
            AssumedDependency("rw", 2, 3),
        )
        yield CyclePattern((early, between, other, last), seen, links)
