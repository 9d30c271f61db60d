"""Where jobs may break a promise: the patterns of dependencies that a cycle has to have, asked of a solver.

With snapshots and commits in the order of the log, only the one kind of dependency goes back in it: from a
transaction that has read (A) to one that it missed (I), which changed what it read. So without a pair (A, I) that the commit
check lets through nothing is ever out of order. A cycle of writers has, around its latest member A, such an I,
what depends on I (X) in the window of A, and a way from X back to A. (docs/semantics.md, Theorem 12)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.robustness.asking import Asked
from isolitmus.checker.templates.frames import Fact, Instance, SymbolicFrame, may_miss
from isolitmus.model.statement import Read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.robustness.casting import Instances, Participant
    from isolitmus.model.spec import Spec
    from isolitmus.model.workload import JobStatement

__all__ = ["Danger", "DangerQuestion", "Dangers", "Link", "Refuted"]


class Link(NamedTuple):
    """A dependency that is supposed: of which kind, from whom to whom, by their places in the log."""

    kind: str
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Danger:
    """A pattern that the commit check may let through: who takes part, in the order of the log, the last one
    (who began first) last, and how they depend on each other.
    """

    members: tuple[JobStatement, ...]
    """In the order in which they commit; the last one has seen none of the others."""
    seen: frozenset[tuple[int, int]] = frozenset()
    """Who of them has seen whom."""
    links: tuple[Link, ...] = ()
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
class Refuted:
    """Something that does not come about."""

    lemma: str
    """The name of what is proved so."""
    about: str
    """Who takes part, and how."""
    _asked: Asked
    _parts: tuple[Any, ...]

    @property
    def text(self) -> str:
        """The question to the solver, in SMT-LIB: unsatisfiable."""
        return self._asked.text(*self._parts)


@dataclass
class DangerQuestion:
    """A danger as formulas: what its members are, and in which ways it may come about."""

    danger: Danger
    """What is asked."""
    members: tuple[Participant, ...]
    """Who takes part."""
    asked: Asked
    """The solver that was asked."""
    ways: list[tuple[Any, ...]] = field(default_factory=list)
    """For each way that is not refuted what has to hold."""
    refuted: list[Refuted] = field(default_factory=list)
    """The other ways."""
    unsure: bool = False
    """Whether the solver could not say of some way if it may come about."""


class Dependency(NamedTuple):
    """Whether some instance of a statement may depend on one of another, and the proof if none does."""

    possible: bool
    refuted: tuple[Refuted, ...]


class Dangers:
    """The dangers of a workload's statements under a protocol."""

    def __init__(self, instances: Instances, protocol: Spec) -> None:
        self.instances = instances
        self.protocol = protocol
        self.z3 = instances.everybody.z3
        self._questions: dict[tuple[object, ...], DangerQuestion] = {}
        self._refuted: dict[tuple[object, ...], DangerQuestion] = {}
        self._depends: dict[tuple[object, ...], Dependency] = {}

    def question(self, danger: Danger) -> DangerQuestion:
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
            ways = [formula for _, formula in self._ways(Link(kind, 0, 1), members)]
            asked = Asked(members)
            either = asked.z3.Or(*ways)
            possible = bool(ways) and asked.possible(either) is not False
            about = f"{members[0].name} {kind} {members[1].name}"
            no = Refuted("no dependency", about, asked, (either,))
            self._depends[key] = Dependency(possible, (no,) if ways and not possible else ())
        return self._depends[key]

    def _ask(self, danger: Danger) -> DangerQuestion:
        members = tuple(
            self.instances.role(one, name)
            for one, name in zip(danger.members, danger.names, strict=True)
        )
        ways = [self._ways(link, members, outside=danger.outside) for link in danger.links]
        supposed = [self._supposed(danger, members, some) for some in product(*ways)]
        question = DangerQuestion(danger, members, Asked(members))
        for way in supposed:
            said = question.asked.possible(*way)
            if said is False:
                proof = Refuted(danger.lemma, danger.schedule, question.asked, way)
                question.refuted.append(proof)
                continue
            question.unsure |= said is None
            question.ways.append(way)
        return question

    def _supposed(
        self,
        danger: Danger,
        members: Sequence[Participant],
        some: Sequence[tuple[list[Fact], Any]],
    ) -> tuple[Any, ...]:
        """What has to hold if the dependencies come about in this way, and everybody commits."""
        last = len(members) - 1
        seen = danger.seen
        if danger.outside:
            seen |= {(k, last) for k in range(last)}
        facts = [fact for known, _ in some for fact in known]
        frame = SymbolicFrame([m.instance for m in members], seen, facts)
        stops = [stop for _, stop in frame.stops(self.protocol, loser=last)]
        dropped = [
            frame.dropped(self.protocol, k)
            for k, m in enumerate(members)
            if m.instance.template.target is not None
        ]
        z3 = self.z3
        return (
            *(formula for _, formula in some),
            *(members[k].instance.writes for k in danger.writers if k != last),
            *(z3.Not(no) for no in (*stops, *dropped)),
            *frame.given,
            *self.instances.differing(members[last], members[:last]),
        )

    def _ways(
        self, link: Link, members: Sequence[Participant], *, outside: bool = False
    ) -> list[tuple[list[Fact], Any]]:
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

    def _gone(self, link: Link, a: Instance, b: Instance, fact: Fact) -> list[Fact]:
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
                    Fact(
                        "went", link.source, link.target, row, read,
                        template.z3.And(chosen, removed, read.matches(row)),
                    )
                    for read in b.reads
                    if read.table == table.name
                ]  # fmt: skip
        return found
