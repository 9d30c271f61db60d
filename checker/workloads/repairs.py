"""What would make jobs safe: jobs that must not overlap, an insert that reads, another level; each proved anew.

The price of a repair is whom it stops needlessly: the ordered pairs of statements that may now stop each other, or have
to wait, though they are in no pattern that breaks the promise. The cheapest has the fewest of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.solver.solver import answer
from isolitmus.checker.workloads.changes import STOPPED, stopped
from isolitmus.checker.workloads.prediction import predict_workload
from isolitmus.checker.workloads.robustness import robustness
from isolitmus.model.defaults import DELTA
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.query import Values
from isolitmus.model.sql.statement import Insert
from isolitmus.specs.files.catalogue import protocol as named
from isolitmus.specs.files.workload_sources import with_statement
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.workloads.prediction import Meeting
    from isolitmus.checker.workloads.robustness import Robustness
    from isolitmus.model.spec import Spec
    from isolitmus.model.workload import JobStatement, Workload
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = ["Repair", "repaired"]

ROUNDS = 6
"""So often jobs that must not overlap are looked for anew, with the dangers that were hidden behind others."""
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Repair:
    """A change with which the promise is kept: proved."""

    title: str
    """What it is."""
    workload: Workload
    """The jobs with it."""
    protocol: str
    """The commit check with it."""
    apart: tuple[Pair, ...] = ()
    """The jobs that must not overlap any more."""
    brings: tuple[Pair, ...] = ()
    """Pairs (loser, winner) that may stop each other with it, and not without it."""
    waits: tuple[Pair, ...] = ()
    """Those of which the one could overtake the other without it, and both commit, and that are now apart."""
    needless: tuple[Pair, ...] = ()
    """Its price: those of both that are in no pattern that breaks the promise."""

    def to_json(self) -> dict[str, object]:
        """The repair as docs/interface.md, 6, has it."""
        return {
            "title": self.title,
            "protocol": self.protocol,
            "apart": [list(pair) for pair in self.apart],
            "brings": [list(pair) for pair in self.brings],
            "waits": [list(pair) for pair in self.waits],
            "needless": [list(pair) for pair in self.needless],
        }


def repaired(broken: Robustness, protocol: SpecLike) -> Iterator[Repair]:
    """The repairs of a promise that is not kept, the cheapest first."""
    protocol = named(protocol)
    meetings = predict_workload(broken.workload, protocol, examples=False).meetings
    passing = [m for m in meetings if m.word not in ("always", "apart")]
    harmful = _harmful(broken)
    found = list(_apart(broken, protocol, passing, harmful))
    found += [*_levels(broken), *_reading(broken, protocol)]
    before = {_named(m) for m in meetings if m.word in STOPPED}
    priced = []
    for repair in found:
        after = predict_workload(repair.workload, named(repair.protocol), examples=False)
        brings = tuple(pair for pair in stopped(after) if pair not in before)
        waits = tuple(_named(m) for m in passing if _jobs(broken.workload, m) in repair.apart)
        needless = tuple(pair for pair in (*brings, *waits) if pair not in harmful)
        priced.append(replace(repair, brings=brings, waits=waits, needless=needless))
    yield from sorted(priced, key=lambda one: (len(one.needless), len(one.brings) + len(one.waits)))


def _harmful(broken: Robustness) -> set[Pair]:
    """The ordered pairs of statements of which one overtakes the other in a pattern that breaks the promise."""
    return {
        (one.danger.members[-1].name, other.name)
        for one in broken.counterexamples
        for other in one.danger.members[:-1]
    }


def _named(meeting: Meeting) -> Pair:
    return meeting.loser, meeting.winner


def _jobs(workload: Workload, meeting: Meeting) -> Pair:
    """The jobs of two statements."""
    home = {one.name: one.job for one in workload.statements}
    return _ordered(home[meeting.loser], home[meeting.winner])


def _levels(broken: Robustness) -> Iterator[Repair]:
    for other in format_named(DELTA).protocols:
        if other != broken.protocol:
            spec = named(other)
            if robustness(broken.workload, spec, broken.promise).word == "safe":
                title = f"the level {spec.setting.rpartition('= ')[2]}"
                yield Repair(title, broken.workload, other)


def _reading(broken: Robustness, protocol: Spec) -> Iterator[Repair]:
    """Let an append read whether its row is there: then it is no blind append."""
    for one in broken.workload.statements:
        for sql in _if_none(broken.workload, one):
            try:
                changed = with_statement(broken.workload, one, sql)
            except IsolitmusError:
                continue
            if robustness(changed, protocol, broken.promise).word == "safe":
                yield Repair(f"{one.name} as {sql}", changed, protocol.name)


def _if_none(workload: Workload, one: JobStatement) -> Iterator[str]:
    """An INSERT of one row as one that looks whether a row of that partition is there with the same first column."""
    insert = one.statement
    if not isinstance(insert, Insert) or insert.overwrite or len(insert.query) != 1:
        return
    (branch,) = insert.query
    if not isinstance(branch, Values) or len(branch.rows) != 1 or branch.where is not None:
        return
    schema = workload.tables[insert.target]
    row = [str(item) for item in branch.rows[0]]
    keys = dict.fromkeys((0, *schema.partition_indexes))
    same = " AND ".join(f"{schema.columns[k].name} = {row[k]}" for k in keys)
    none = f"NOT EXISTS (SELECT 1 FROM {schema.name} WHERE {same})"
    yield f"INSERT INTO {schema.name} SELECT {', '.join(row)} WHERE {none}"


def _apart(
    broken: Robustness, protocol: Spec, passing: Sequence[Meeting], harmful: set[Pair]
) -> Iterator[Repair]:
    """The cheapest pairs of jobs that must not overlap: each danger has to lose one of its own. What was hidden behind
    others comes to what is ``harmful``.
    """
    workload, dangers = broken.workload, []
    found = broken
    for _ in range(ROUNDS):
        if found.word == "safe":
            chosen = sorted(workload.apart - broken.workload.apart)
            pairs = tuple((a, b) for a, b in chosen if a <= b)
            yield Repair(f"never overlap {_words(pairs)}", workload, protocol.name, pairs)
            return
        if not found.counterexamples:
            return
        dangers += [
            [_ordered(one.danger.members[-1].job, other.job) for other in one.danger.members[:-1]]
            for one in found.counterexamples
        ]
        harmful |= _harmful(found)
        needless = Counter(_jobs(broken.workload, m) for m in passing if _named(m) not in harmful)
        apart = {pair for a, b in _hit(dangers, needless) for pair in ((a, b), (b, a))}
        workload = replace(broken.workload, apart=broken.workload.apart | apart)
        found = robustness(workload, protocol, broken.promise)


def _ordered(a: str, b: str) -> Pair:
    return (a, b) if a <= b else (b, a)


def _words(pairs: Sequence[Pair]) -> str:
    said = [f"two runs of {a}" if a == b else f"{a} and {b}" for a, b in pairs]
    return ", nor ".join(said)


def _hit(dangers: Sequence[Sequence[Pair]], needless: Mapping[Pair, int]) -> list[Pair]:
    """Pairs of which each danger has one, such that the fewest have to wait needlessly; of those the fewest."""
    import z3

    context = z3.Context()
    named = sorted({pair for danger in dangers for pair in danger})
    chosen = {pair: z3.Bool(f"{pair[0]} apart from {pair[1]}", context) for pair in named}
    solver = z3.Optimize(ctx=context)
    for danger in dangers:
        solver.add(z3.Or(*(chosen[pair] for pair in danger)))
    for pair, name in sorted(chosen.items()):
        # of two choices of one price and size the one that lets two runs of a job overlap
        size = 11 if pair[0] == pair[1] else 10
        solver.add_soft(z3.Not(name), weight=needless.get(pair, 0) * 1_000 + size)
    answer(solver)
    model = solver.model()
    return [pair for pair, name in chosen.items() if z3.is_true(model.eval(name))]
