"""Where jobs may break a promise: the patterns of dependencies that a cycle has to have, asked of a solver.

With snapshots and commits in the order of the log, only the one kind of dependency goes back in it: from a
transaction that has read (A) to one that it missed (I), which changed what it read. So without a pair (A, I) that the commit
check lets through nothing is ever out of order. A cycle of writers has, around its latest member A, such an I,
what depends on I (X) in the window of A, and a way from X back to A. (docs/semantics.md, 3.4)
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
    def key(self) -> tuple[object, ...]:
        """What tells it from others."""
        return self.names, self.seen, self.links, self.outside

    @property
    def schedule(self) -> str:
        """The last one begins, the others run one after another, the last one commits."""
        *others, last = self.names
        if self.outside:
            return " ".join((f"{last}.before", *others, last))
        return " ".join((f"{last}.start", *others, f"{last}.commit"))


class Refuted(NamedTuple):
    """A way in which a danger does not come about, and the question to the solver, in SMT-LIB."""

    danger: Danger
    """Which one."""
    text: str
    """The question: unsatisfiable."""


@dataclass
class DangerQuestion:
    """A danger as formulas: what its members are, and all ways in which it may come about."""

    danger: Danger
    """What is asked."""
    members: tuple[Participant, ...]
    """Who takes part."""
    ways: list[tuple[Asked, Any]] = field(default_factory=list)
    """For each way what the solver was told, and what is then possible."""


class Dangers:
    """The dangers of a workload's statements under a protocol."""

    def __init__(self, instances: Instances, protocol: Spec) -> None:
        self.instances = instances
        self.workload = instances.workload
        self.protocol = protocol
        self.proofs: list[Refuted] = []
        self.unsure: list[str] = []
        self._asked: dict[tuple[object, ...], DangerQuestion | None] = {}
        self._depends: dict[tuple[str, str, str], bool] = {}

    def possible(self, danger: Danger) -> DangerQuestion | None:
        """The danger as formulas, if it may come about; None is a proof that it may not."""
        if danger.key not in self._asked:
            self._asked[danger.key] = self._ask(danger)
        return self._asked[danger.key]

    def depends(self, kind: str, a: JobStatement, b: JobStatement) -> bool:
        """Whether some instance of the one may depend so on one of the other, b on a for wr and ww."""
        key = kind, a.name, b.name
        if key not in self._depends:
            first, second = self.instances.pair(a, b)
            ways = self._ways(Link(kind, 0, 1), (first, second))
            asked = Asked((first, second), ())
            self._depends[key] = any(asked.possible(formula) is not False for _, formula in ways)
        return self._depends[key]

    def reads(self, one: JobStatement, writers: Sequence[JobStatement]) -> bool:
        """Whether it reads anything that somebody writes."""
        return any(self.depends("rw", one, other) for other in writers)

    def reachable(self, start: JobStatement, writers: Sequence[JobStatement]) -> frozenset[str]:
        """Who may depend on a statement, at once or by way of others."""
        found: set[str] = set()
        todo = [start]
        while todo:
            one = todo.pop()
            for other in writers:
                if other.name not in found and any(
                    self.depends(kind, one, other) for kind in ("wr", "ww", "rw")
                ):
                    found.add(other.name)
                    todo.append(other)
        return frozenset(found)

    def _ask(self, danger: Danger) -> DangerQuestion | None:
        names = danger.names
        members = tuple(
            self.instances.role(one, name) for one, name in zip(danger.members, names, strict=True)
        )
        question = DangerQuestion(danger, members)
        ways = [self._ways(link, members, outside=danger.outside) for link in danger.links]
        for some in product(*ways):
            facts = [fact for known, _ in some for fact in known]
            last = len(members) - 1
            seen = danger.seen
            if danger.outside:
                seen |= {(k, last) for k in range(last)}
            frame = SymbolicFrame([m.instance for m in members], seen, facts)
            stops = [stop for _, stop in frame.stops(self.protocol, loser=last)]
            asked = Asked(members, frame.given)
            z3 = asked.z3
            wanted = z3.And(
                *(formula for _, formula in some),
                *(
                    m.instance.writes
                    for m in members[:-1]
                    if m.instance.template.target is not None
                ),
                z3.Not(frame.dropped(self.protocol, last)),
                z3.Not(z3.Or(*stops)),
            )
            said = asked.possible(wanted)
            if said is False:
                self.proofs.append(Refuted(danger, asked.text(wanted)))
                continue
            if said is None:
                self.unsure.append(" ".join(danger.names))
            question.ways.append((asked, wanted))
        return question if question.ways else None

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
            return [(self._both_remove(link, a, b, fact), formula) for fact, formula in found]
        return [  # back in the log: what the commit check looks at
            ([fact._replace(writer=link.target, reader=link.source)], formula)
            for fact, formula in found
            if fact.read.outside or not outside
        ]

    def _both_remove(self, link: Link, a: Instance, b: Instance, fact: Fact) -> list[Fact]:
        """Of a row that one has read and the other removes: if the one removes it, too, the other has read what
        is gone. Its file may be another one by then, but who moved it has taken away a file that was read.
        """
        if fact.kind != "went":
            return []
        terms = a.template.terms
        before, terms.exact = terms.exact, True
        removed = a.template.removes(fact.row)
        certain, terms.exact = terms.exact, terms.exact and before
        if not certain:
            return []
        return [
            Fact(
                "went", link.source, link.target, fact.row, read,
                a.template.z3.And(removed, read.matches(fact.row)),
            )
            for read in b.reads
            if b.template.target is not None and read.table == b.template.target.name
        ]  # fmt: skip
