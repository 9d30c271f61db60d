"""Repairs of workloads: changes that end conflicts, and those that make a promise hold.

What would make jobs safe: jobs that must not overlap, an insert that reads, another level; each proved anew.

The price of a repair is whom it stops needlessly: the ordered pairs of statements that may now stop each other, or have
to wait, though they are in no pattern that breaks the promise. The cheapest has the fewest of them.

What would end conflicts: another level, a literal on the partition column, another layout, parameters that differ,
an INSERT in place of a MERGE, a retry; each asked anew, with what it costs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.checker.solver.circuits import ask_solver
from isolitmus.checker.workloads.abort_examples import FAILS
from isolitmus.checker.workloads.prediction import JobPrediction, PairPrediction, predict_workload
from isolitmus.checker.workloads.robustness import PROMISES, decide_all, decide_robustness
from isolitmus.model.defaults import DELTA
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.query import Values
from isolitmus.model.sql.statement import Insert, Merge
from isolitmus.specs.files.catalogue import protocol as named
from isolitmus.specs.files.workload_sources import as_workload, replace_statement
from isolitmus.specs.registries.formats import format_named
from isolitmus.specs.sql.parameter_types import merge_assignments, single_row
from isolitmus.specs.sql.statements import syntax_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.checker.workloads.robustness import Robustness
    from isolitmus.model.spec import Spec
    from isolitmus.model.workload import JobStatement, Workload
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = [
    "STOPPED",
    "JobChange",
    "Repair",
    "conflicting_pairs",
    "find_repairs",
    "job_changes",
    "try_changes",
]

STOPPED = ("when", "always", "unknown")
DIALECT = "databricks"
LOST = {"unsafe": "is not kept any more", "unknown": "is not proved any more"}
AGAIN = "it inserts again what is there already, also where it runs alone"
MOVED = "what is there has to be written anew"
KEPT = "whoever starts the jobs has to see to it"


@dataclass(frozen=True, slots=True)
class JobChange:
    """Something that one could change, and what is then predicted."""

    title: str
    """What it is."""
    workload: Workload
    """The jobs with it."""
    under: Spec
    """The commit check with it."""
    ends: tuple[tuple[str, str], ...] = ()
    """The pairs (loser, winner) that may stop each other without it, and not with it."""
    brings: tuple[tuple[str, str], ...] = ()
    """Those that may with it, and not without it."""
    narrows: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Those that may without it whatever their parameters are, and with it only if something holds of these."""
    costs: tuple[str, ...] = ()
    """What one pays for it."""
    ended: str = "no more"
    """What becomes of the pairs that it ends."""

    def to_json(self) -> dict[str, object]:
        """The change as docs/interface.md, 6, has it."""
        return {
            "title": self.title,
            "ends": [list(pair) for pair in self.ends],
            "brings": [list(pair) for pair in self.brings],
            "narrows": [
                {"loser": a, "winner": b, "condition": list(when)} for a, b, when in self.narrows
            ],
            "costs": list(self.costs),
        }


def job_changes(workload: Workload | NameOrPath, under: SpecLike) -> Iterator[JobChange]:
    """What one could change; nobody has looked yet whether it helps."""
    workload, under = as_workload(workload), named(under)
    for other in format_named(DELTA).protocols:
        spec = named(other)
        if other != under.name:
            yield JobChange(f"the level {spec.setting.rpartition('= ')[2]}", workload, spec)
    for one in workload.statements:
        for sql, column in _literals(workload, one):
            title = f"{one.name} with {column} as a literal in ON"
            yield JobChange(title, replace_statement(workload, one, sql), under)
        for sql in _appends(workload, one):
            yield JobChange(
                f"{one.name} as {sql}", replace_statement(workload, one, sql), under, costs=(AGAIN,)
            )
    for name in _parameters(workload):
        distinct = replace(workload, distinct=(*workload.distinct, name))
        title = f"no two runs at a time with the same :{name}"
        yield JobChange(title, distinct, under, costs=(KEPT,))
    for name, schema in workload.tables.items():
        if schema.exists and not schema.clustered_by:
            for each in schema.columns:
                if each.name not in schema.partitioned_by and len(schema.columns) > 1:
                    layout = replace(schema, partitioned_by=(each.name,))
                    tables = {**workload.tables, name: layout}
                    title = f"{name} partitioned by {each.name}"
                    yield JobChange(title, replace(workload, tables=tables), under, costs=(MOVED,))


def try_changes(before: JobPrediction, under: SpecLike) -> Iterator[JobChange]:
    """The changes that end some conflict, or leave it to fewer parameters; those first that leave the fewest, and
    last what a retry does.
    """
    at_first, under = conflicting_pairs(before), named(under)
    asked = decide_all(before.workload, (under,), PROMISES, examples=False)
    kept = [one.promise for one in asked if one.word == "safe"]
    found = []
    for change in job_changes(before.workload, under):
        after = conflicting_pairs(predict_workload(change.workload, change.under, examples=False))
        ends = tuple(pair for pair in at_first if pair not in after)
        brings = tuple(pair for pair in after if pair not in at_first)
        narrows = tuple(
            (*pair, m.condition)
            for pair, m in after.items()
            if m.condition and pair in at_first and not at_first[pair].condition
        )
        if ends or narrows:
            now = decide_all(change.workload, (change.under,), kept)
            lost = (f"{one.promise} {LOST[one.word]}" for one in now if one.word in LOST)
            costs = (*change.costs, *lost)
            made = replace(change, ends=ends, brings=brings, narrows=narrows, costs=costs)
            found.append((len(after), -len(narrows), made))
    yield from (change for _, _, change in sorted(found, key=lambda each: each[:2]))
    yield from _retry(before, under)


def _retry(before: JobPrediction, under: Spec) -> Iterator[JobChange]:
    """What becomes of those who are stopped if they run again: what they missed, they have then seen."""
    work, again = before.workload, [m for m in before.meetings if m.retries]
    through = [m for m in again if not any(FAILS in ends for ends in m.retries.values())]
    if not again:
        return
    losers = [one for one in work.statements if one.name in {m.loser for m in again}]
    costs = [
        f"{m.loser} by {m.winner} fails when it is run again" for m in again if m not in through
    ]
    for one in losers:
        if one.let:
            costs.append(f"{one.name} has to read {', '.join(one.let)} anew")
        if len(work.jobs[one.job].statements) > 1:
            costs.append(
                f"of {one.job} only {one.name} is run again: what came before it has committed"
            )
    yield JobChange(
        "a retry once the other one has committed (in the examples)", work, under,
        tuple((m.loser, m.winner) for m in through), costs=tuple(costs), ended="goes through:",
    )  # fmt: skip


def conflicting_pairs(prediction: JobPrediction) -> dict[tuple[str, str], PairPrediction]:
    """The pairs (loser, winner) of which the winner may stop the loser."""
    return {(m.loser, m.winner): m for m in prediction.meetings if m.word in STOPPED}


def _parameters(workload: Workload) -> Iterator[str]:
    """The parameters that runs could differ in: each job's own, of one type."""
    types: dict[str, set[str]] = {}
    for job in workload.jobs.values():
        for name, type_ in job.parameters.items():
            types.setdefault(name, set()).add(type_)
    for name, found in types.items():
        if len(found) == 1 and name not in (*workload.shared, *workload.distinct):
            yield name


def _appends(workload: Workload, one: JobStatement) -> Iterator[str]:
    """A MERGE that only inserts as an INSERT, which looks at nothing that is there."""
    merge = one.statement
    if not isinstance(merge, Merge):
        return
    tree = syntax_of(merge).bound({}).tree()
    whens, source = tree.args["whens"].expressions, tree.args["using"]
    if len(whens) > 1:
        return
    insert = whens[0].args["then"]
    if not isinstance(insert, exp.Insert) or whens[0].args.get("source"):
        return
    every = [column.name for column in workload.tables[merge.target].columns]
    pairs = merge_assignments(insert, every, source.alias_or_name)
    named = [name for name, _ in pairs]
    columns, row = "" if named == every else f" ({', '.join(named)})", [value for _, value in pairs]
    condition, given = whens[0].args.get("condition"), single_row(source)
    if given is not None and condition is None:
        values = (value.transform(lambda node: _value_in(given, node)) for value in row)
        what = f"VALUES ({', '.join(value.sql(DIALECT) for value in values)})"
    else:
        where = "" if condition is None else f" WHERE {condition.sql(DIALECT)}"
        said = ", ".join(value.sql(DIALECT) for value in row)
        what = f"SELECT {said} FROM {source.sql(DIALECT)}{where}"
    yield f"INSERT INTO {merge.target}{columns} {what}"


def _value_in(given: Mapping[str, exp.Expr], node: exp.Expr) -> exp.Expr:
    """The value that a column of the source's one row has there."""
    known = given.get(node.name.lower()) if isinstance(node, exp.Column) else None
    return node if known is None else known.copy()


def _literals(workload: Workload, one: JobStatement) -> Iterator[tuple[str, str]]:
    """A MERGE that pairs partitions by a column of its source, whose value its one row says: the text with that
    value in ON.
    """
    merge = one.statement
    if not isinstance(merge, Merge):
        return
    tree = syntax_of(merge).bound({}).tree()
    source = tree.args["using"]
    values = single_row(source)
    if values is None:
        return
    alias = source.alias_or_name.lower()
    on = tree.args["on"]
    parts = list(on.flatten()) if isinstance(on, exp.And) else [on]
    for column in workload.tables[merge.target].partitioned_by:
        for own, other in _equated(parts, alias):
            if own.name.lower() == column.lower() and other.name.lower() in values:
                changed, value = tree.copy(), values[other.name.lower()]
                known = exp.EQ(this=own.copy(), expression=value.copy())
                changed.set("on", exp.and_(changed.args["on"], known))
                yield changed.sql(DIALECT), column


def _equated(parts: list[exp.Expr], alias: str) -> Iterator[tuple[exp.Column, exp.Column]]:
    """The columns of the target and of the source (of this name) that parts of ON say are equal."""
    for part in parts:
        if isinstance(part, exp.EQ):
            sides = [s for s in (part.this, part.expression) if isinstance(s, exp.Column)]
            own = [s for s in sides if s.table.lower() != alias]
            other = [s for s in sides if s.table.lower() == alias]
            if own and other:
                yield own[0], other[0]


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


def find_repairs(broken: Robustness, protocol: SpecLike) -> Iterator[Repair]:
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
        brings = tuple(pair for pair in conflicting_pairs(after) if pair not in before)
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


def _named(meeting: PairPrediction) -> Pair:
    return meeting.loser, meeting.winner


def _jobs(workload: Workload, meeting: PairPrediction) -> Pair:
    """The jobs of two statements."""
    home = {one.name: one.job for one in workload.statements}
    return _ordered(home[meeting.loser], home[meeting.winner])


def _levels(broken: Robustness) -> Iterator[Repair]:
    for other in format_named(DELTA).protocols:
        if other != broken.protocol:
            spec = named(other)
            if decide_robustness(broken.workload, spec, broken.promise).word == "safe":
                title = f"the level {spec.setting.rpartition('= ')[2]}"
                yield Repair(title, broken.workload, other)


def _reading(broken: Robustness, protocol: Spec) -> Iterator[Repair]:
    """Let an append read whether its row is there: then it is no blind append."""
    for one in broken.workload.statements:
        for sql in _if_none(broken.workload, one):
            try:
                changed = replace_statement(broken.workload, one, sql)
            except IsolitmusError:
                continue
            if decide_robustness(changed, protocol, broken.promise).word == "safe":
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
    broken: Robustness, protocol: Spec, passing: Sequence[PairPrediction], harmful: set[Pair]
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
        found = decide_robustness(workload, protocol, broken.promise)


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
    ask_solver(solver)
    model = solver.model()
    return [pair for pair, name in chosen.items() if z3.is_true(model.eval(name))]
