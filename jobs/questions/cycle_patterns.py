"""Cycle patterns that every violation of a promise contains (docs/semantics.md, Theorem 11 and
Theorem 12).

With snapshots and commits in log order, only one kind of dependency points backward in the log. It
goes from a transaction A that has read to a concurrent transaction I that changed A's read set and
that A does not see. Without a pair (A, I) that the commit protocol admits, the order of the log is
a serial order. A cycle of writers has, around its latest member A, such an I, an X in the window of
A that depends on I, and a path of dependencies from X back to A. A solver decides whether given
statements can form each pattern.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.judge.spec_properties import is_monotone
from isolitmus.jobs.questions.pair_prediction import pair_names
from isolitmus.jobs.questions.simple_examples import QuestionSolver
from isolitmus.jobs.templates.instance_frames import (
    AssumedChange,
    Instance,
    SymbolicFrame,
    items_of_both,
    may_miss,
)
from isolitmus.model.sql.statement import Read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.jobs.questions.instances import Instances, Participant
    from isolitmus.jobs.workload import JobStatement
    from isolitmus.model.spec import Spec


class PatternLemma(NamedTuple):
    """Kind of pattern that a proof shows to be impossible, in words."""

    one: str
    """Singular name of a pattern of this kind."""
    several: str
    """Plural name."""
    fact: str
    """Event that a possible pattern would allow."""


LEMMAS = {
    "nothing goes back": PatternLemma(
        "potential conflict",
        "potential conflicts",
        "a statement commits without seeing a concurrent change to its read set",
    ),
    "no dependency": PatternLemma(
        "potential dependency", "potential dependencies", "one statement depends on another"
    ),
    "no reader in between": PatternLemma(
        "potential read",
        "potential reads",
        "a reader sees a change that a concurrent statement did not see, but not that statement",
    ),
    "no cycle": PatternLemma(
        "potential cycle",
        "potential cycles",
        "a statement and a change that it did not see are in a cycle of dependencies",
    ),
    "no way back": PatternLemma(
        "potential longer cycle",
        "potential longer cycles",
        "a statement and a change that it did not see are in a cycle through other statements",
    ),
}
"""Lemmas of proofs, by their names in JSON documents."""

WayNumbers = tuple[int, ...]
"""Way of a pattern: for each of its dependencies, the index of the way of that dependency."""


class AssumedDependency(NamedTuple):
    """Assumed dependency: kind, source and target; source and target are positions in the log."""

    kind: str
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class CyclePattern:
    """Pattern that the commit protocol may admit: statements in log order and their dependencies.

    The statement that commits last starts first.
    """

    members: tuple[JobStatement, ...]
    """Statements in commit order; the last one has seen none of the others."""
    seen: frozenset[tuple[int, int]] = frozenset()
    """Pairs (a, b): b sees the commit of a."""
    links: tuple[AssumedDependency, ...] = ()
    """Dependencies between members."""
    closed: bool = True
    """True if the dependencies form a cycle; otherwise the path back leads through other jobs."""
    outside: bool = False
    """True if only reads by the last member's client, before its transaction, miss the other
    members.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members in a test; they differ even if a statement occurs twice."""
        found: list[str] = []
        for one in self.members:
            again = sum(name == one.name or name.startswith(f"{one.name}_run") for name in found)
            found.append(one.name if not again else f"{one.name}_run{again + 1}")
        return tuple(found)

    @property
    def lemma(self) -> str:
        """Lemma that is proved if the pattern is impossible."""
        if len(self.links) == 1 and self.closed:
            return "nothing goes back"
        if any(isinstance(one.statement, Read) for one in self.members):
            return "no reader in between"
        return "no cycle" if self.closed else "no way back"

    @property
    def writers(self) -> tuple[int, ...]:
        """Members that have to write rows for the dependencies; others may be no-ops."""
        found = {
            k
            for link in self.links
            for kinds, k in ((("wr", "ww"), link.source), (("ww", "rw"), link.target))
            if link.kind in kinds
        }
        return tuple(sorted(found))

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables that the members write to."""
        found = (getattr(one.statement, "target", None) for one in self.members)
        return tuple(dict.fromkeys(table for table in found if table is not None))

    def pair(self, k: int) -> tuple[tuple[int, ...], CyclePattern]:
        """Return the dependencies between member ``k`` and the last one, and the pattern of these
        two.
        """
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
        """Key that identifies the pattern."""
        return self.names, self.seen, self.links, self.closed, self.outside

    @property
    def schedule(self) -> str:
        """Schedule of a test: the last member starts, the others run in order, the last member
        commits.
        """
        *others, last = self.names
        if self.outside:
            return " ".join((f"{last}.before", *others, last))
        return " ".join((f"{last}.start", *others, f"{last}.commit"))


@dataclass(frozen=True, eq=False)
class RefutedPattern:
    """Pattern that is proved impossible."""

    lemma: str
    """Key of its lemma in `LEMMAS`."""
    about: str
    """Statements and dependencies of the pattern, in words."""
    _text: Callable[[], str]

    @property
    def text(self) -> str:
        """Unsatisfiable question to the solver, in SMT-LIB."""
        return self._text()


@dataclass
class PatternQuestion:
    """A pattern as formulas: its members, and the ways in which it is possible."""

    danger: CyclePattern
    members: tuple[Participant, ...] = ()
    asked: QuestionSolver | None = None
    """Solver of the question; None if all ways are impossible because a pair is."""
    ways: list[tuple[Any, ...]] = field(default_factory=list)
    """Formulas of each way that is not proved impossible."""
    refuted: dict[WayNumbers, RefutedPattern] = field(default_factory=dict)
    """Ways that are proved impossible."""
    unsure: bool = False
    """True if the solver gave up on a way."""


@dataclass
class _GeneralQuestion:
    """A question as formulas, for all statements with the shapes of its members."""

    members: tuple[Participant, ...]
    asked: QuestionSolver
    ways: dict[WayNumbers, tuple[Any, ...]]
    """Formulas of all ways."""
    free: bool
    """True if the literals are unknowns; if not, they are those of the members."""
    _said: dict[WayNumbers, bool | None] = field(default_factory=dict)

    def rules_out(self, choice: WayNumbers) -> bool:
        """Return whether a way is impossible whatever the literals are."""
        if not self.free:
            return False
        if choice not in self._said:
            self._said[choice] = self.asked.possible(*self.ways[choice])
        return self._said[choice] is False


class Dependency(NamedTuple):
    """Answer whether one statement may depend on another, with the proof if not."""

    possible: bool
    refuted: tuple[RefutedPattern, ...]


class PatternSearch:
    """Search for the cycle patterns of a workload's statements that a protocol admits."""

    def __init__(self, instances: Instances, protocol: Spec) -> None:
        self.instances = instances
        self.protocol = protocol
        self.z3 = instances.everybody.z3
        self._questions: dict[tuple[object, ...], PatternQuestion] = {}
        self._refuted: dict[tuple[object, ...], PatternQuestion] = {}
        self._generals: dict[tuple[object, ...], _GeneralQuestion] = {}
        self._depends: dict[tuple[object, ...], Dependency] = {}
        self._counts: dict[tuple[object, ...], int] = {}
        self._grows = is_monotone(protocol)

    def question(self, danger: CyclePattern) -> PatternQuestion:
        """Return the pattern as formulas; if it has no ways, it is proved impossible."""
        if danger.key not in self._questions:
            kinds = tuple(self.instances.kind(one) for one in danger.members)
            alike = (kinds, danger.seen, danger.links, danger.closed, danger.outside)
            found = self._refuted.get(alike) or self._ask(danger)
            if not found.ways:
                self._refuted[alike] = found
            self._questions[danger.key] = found
        return self._questions[danger.key]

    def depends(self, kind: str, a: JobStatement, b: JobStatement) -> Dependency:
        """Return whether a dependency of this kind is possible: b on a for wr and ww, a on b for
        rw.
        """
        key = kind, self.instances.kind(a), self.instances.kind(b)
        if key not in self._depends:
            found = self._dependency(kind, a, b)
            asked = found.asked
            if found.free:
                named = zip(found.members, (a, b), pair_names(a, b), strict=True)
                asked = asked.about([self.instances.playing(*one) for one in named])
            possible = any(
                not found.rules_out(way) and asked.possible(*formulas) is not False
                for way, formulas in found.ways.items()
            )
            about = f" {kind} ".join(pair_names(a, b))
            no = RefutedPattern("no dependency", about, partial(self._dependency_text, kind, a, b))
            self._depends[key] = Dependency(possible, (no,) if found.ways and not possible else ())
        return self._depends[key]

    def _dependency(self, kind: str, a: JobStatement, b: JobStatement) -> _GeneralQuestion:
        """Return the question of a dependency for all statements with the shapes of two."""
        key = kind, self.instances.shape(a).key, self.instances.shape(b).key
        found = self._generals.get(key)
        if found is None:
            free = max(map(self.instances.alike, (a, b))) > 1
            members = self.instances.pair(a, b)
            either = self._either(kind, members)
            asked = QuestionSolver(members, free=free)
            found = _GeneralQuestion(members, asked, either, free)
            if free:
                self._generals[key] = found
        return found

    def _dependency_text(self, kind: str, a: JobStatement, b: JobStatement) -> str:
        """Return the question of a dependency between two statements."""
        members = self.instances.pair(a, b)
        (formulas,) = self._either(kind, members).values()
        return QuestionSolver(members).text(*formulas)

    def _either(
        self, kind: str, members: Sequence[Participant]
    ) -> dict[WayNumbers, tuple[Any, ...]]:
        """Return all ways of a dependency as one way; empty if there is none."""
        ways = self._ways(AssumedDependency(kind, 0, 1), members)
        return {(): (self.z3.Or(*(formula for _, formula in ways)),)} if ways else {}

    def _ask(self, danger: CyclePattern) -> PatternQuestion:
        """Return the question of a pattern: its possible ways, and those proved impossible."""
        counts = [self._count(danger, link) for link in danger.links]
        choices = list(product(*map(range, counts)))
        question = PatternQuestion(danger)
        pairs = list(self._pairs(danger))
        for choice in choices:
            if any(tuple(choice[n] for n in places) in pair.refuted for places, pair in pairs):
                question.refuted[choice] = self._no(danger, choice)
        if len(question.refuted) == len(choices):
            return question
        general = self._general(danger, choices)
        question.members, question.asked = general.members, general.asked
        if general.free:
            named = zip(general.members, danger.members, danger.names, strict=True)
            question.members = tuple(self.instances.playing(*one) for one in named)
            question.asked = general.asked.about(question.members)
        for choice in choices:
            if choice in question.refuted:
                continue
            way = general.ways[choice]
            said = False if general.rules_out(choice) else question.asked.possible(*way)
            if said is False:
                question.refuted[choice] = self._no(danger, choice)
                continue
            question.unsure |= said is None
            question.ways.append(way)
        if not general.free:
            general.asked.rest()
        return question

    def _general(self, danger: CyclePattern, choices: Sequence[WayNumbers]) -> _GeneralQuestion:
        """Return the question of a pattern for all statements with the shapes of its members.

        If there are no others, it is the question of this pattern, with its literals.
        """
        shapes = tuple(self.instances.shape(one).key for one in danger.members)
        key = shapes, danger.seen, danger.links, danger.closed, danger.outside
        found = self._generals.get(key)
        if found is None:
            free = any(self.instances.alike(one) > 1 for one in danger.members)
            members, ways = self._ways_of(danger, choices)
            asked = QuestionSolver(members, free=free)
            found = _GeneralQuestion(members, asked, dict(zip(choices, ways, strict=True)), free)
            if free:
                self._generals[key] = found
        return found

    def _no(self, danger: CyclePattern, choice: WayNumbers) -> RefutedPattern:
        return RefutedPattern(danger.lemma, danger.schedule, partial(self._text, danger, choice))

    def _text(self, danger: CyclePattern, choice: WayNumbers) -> str:
        """Return the question of one way."""
        members, (way,) = self._ways_of(danger, [choice])
        return QuestionSolver(members).text(*way)

    def _pairs(self, danger: CyclePattern) -> Iterator[tuple[tuple[int, ...], PatternQuestion]]:
        """Yield the questions about pairs of members, with the places of their dependencies.

        If the protocol is monotone (more commits abort more), an impossible pair makes the pattern
        impossible.
        """
        last = len(danger.members) - 1
        if last > 1 and self._grows:
            for k in range(last):
                places, pair = danger.pair(k)
                if places:
                    yield places, self.question(pair)

    def _count(self, danger: CyclePattern, link: AssumedDependency) -> int:
        """Return the number of ways of a dependency."""
        back = link.target < link.source
        source, target = danger.members[link.source], danger.members[link.target]
        shapes = self.instances.shape(source).key, self.instances.shape(target).key
        key = link.kind, back and danger.outside, *shapes
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
        """Return the participants, and the formulas of some ways of a pattern."""
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
        """Yield formulas that hold if these changes happen and all members commit."""
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
        """Return the ways of a dependency, each with the changes that the protocol compares."""
        a, b = members[link.source].instance, members[link.target].instance
        if link.kind == "ww":
            table = b.template.target
            if table is None or a.template.target != table:
                return []
            row = b.template.terms.row(table, f"{table.name} that both write")
            rows = a.template.z3.And(a.template.adds(row), b.template.removes(row))
            return [([], formula) for formula in (rows, *items_of_both(a, b))]
        if link.kind == "wr":
            return [([], formula) for _, formula in may_miss(b, a)]
        found = may_miss(a, b)
        if link.source < link.target:
            return [(self._gone(link, a, b, fact), formula) for fact, formula in found]
        # a dependency that points backward in the log is a change that the commit check compares
        return [
            ([fact._replace(writer=link.target, reader=link.source)], formula)
            for fact, formula in found
            if fact.read.outside or not outside
        ]

    def _gone(
        self, link: AssumedDependency, a: Instance, b: Instance, fact: AssumedChange
    ) -> list[AssumedChange]:
        """Return the removals, by the earlier member, of rows that the later member has read.

        The row may be in another file by then, but the statement that moved it has removed a file
        that was read.
        """
        table, template = b.template.target, a.template
        if table is None or a.template.target != table:
            return []
        true = template.z3.BoolVal(True)
        if fact.kind == "item":
            return []
        rows = (
            [(true, fact.row)]
            if fact.kind == "went"
            else [(chosen, row) for chosen, name, row in fact.sources if name == table.name]
        )
        found = []
        for chosen, row in rows:
            unknowns = len(template.terms.unknowns)
            removed = template.removes(row)
            # a removal that introduces unknowns is not certain
            if len(template.terms.unknowns) == unknowns:
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
    """Yield a pattern, and its variant in which the last member's client reads before the
    transaction.
    """
    yield danger
    if danger.members[-1].let and any(link.target < link.source for link in danger.links):
        yield replace(danger, outside=True)


def backward_pair(last: JobStatement, early: JobStatement) -> CyclePattern:
    """Return the pattern in which ``last`` does not see a change of its read set by ``early``."""
    return CyclePattern((early, last), links=(AssumedDependency("rw", 1, 0),))


def way_in(other: JobStatement, last: JobStatement) -> CyclePattern:
    """Return the end of a path back: ``last`` changes what ``other``, which it does not see, has
    read.
    """
    return CyclePattern((other, last), links=(AssumedDependency("rw", 0, 1),), closed=False)


def write_skew(last: JobStatement, early: JobStatement) -> CyclePattern:
    """Return the pattern of two statements that do not see each other."""
    return CyclePattern(
        (early, last), links=(AssumedDependency("rw", 1, 0), AssumedDependency("rw", 0, 1))
    )


def seen_in_between(last: JobStatement, early: JobStatement, reader: JobStatement) -> CyclePattern:
    """Return the pattern in which ``reader`` sees ``early``, and ``last`` sees neither."""
    links = (
        AssumedDependency("rw", 2, 0),
        AssumedDependency("wr", 0, 1),
        AssumedDependency("rw", 1, 2),
    )
    return CyclePattern((early, reader, last), frozenset({(0, 1)}), links)


def cycle_of_three(
    last: JobStatement, early: JobStatement, between: JobStatement, kind: str
) -> CyclePattern:
    """Return the cycle in which ``between`` depends on ``early`` and has read what ``last``
    changes.
    """
    links = (
        AssumedDependency("rw", 2, 0),
        AssumedDependency(kind, 0, 1),
        AssumedDependency("rw", 1, 2),
    )
    return CyclePattern((early, between, last), frozenset({(0, 1)}), links)


def open_cycle(
    last: JobStatement, early: JobStatement, between: JobStatement, kind: str
) -> CyclePattern:
    """Return `cycle_of_three` without the dependency on ``last``, which may lead through other
    statements.
    """
    links = (AssumedDependency("rw", 2, 0), AssumedDependency(kind, 0, 1))
    return CyclePattern((early, between, last), frozenset({(0, 1)}), links, closed=False)


def cycle_of_four(
    last: JobStatement, early: JobStatement, between: JobStatement, other: JobStatement, kind: str
) -> Iterator[CyclePattern]:
    """Yield cycles through a fourth statement, one for each kind of dependency on ``between``."""
    seen = frozenset({(0, 1), (0, 2), (1, 2)})
    for second in ("wr", "ww", "rw"):
        links = (
            AssumedDependency("rw", 3, 0),
            AssumedDependency(kind, 0, 1),
            AssumedDependency(second, 1, 2),
            AssumedDependency("rw", 2, 3),
        )
        yield CyclePattern((early, between, other, last), seen, links)
