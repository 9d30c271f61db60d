"""Repairs of workloads: changes that prevent conflicts, and changes that make a promise hold.

Repairs of a promise: jobs that never run at the same time, an INSERT that reads, another level.
Each is proved. The cost of a repair is its needless aborts and waits: ordered pairs of statements
that may now conflict, or have to wait, and are in no pattern that violates the promise. The
cheapest repair has the fewest of them.

Changes that prevent conflicts: another level, a literal on the partition column, another layout,
distinct parameters, an INSERT instead of a MERGE, a retry. Each is predicted anew, with its costs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.checker.solver.smt import ask_solver
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.questions.pair_prediction import FAILS
from isolitmus.jobs.readers.workload_sources import as_workload, replace_statement
from isolitmus.jobs.robust.robustness import PROMISES, decide_all, decide_robustness
from isolitmus.jobs.sql.parameter_types import merge_assignments, single_row
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.query import Values
from isolitmus.model.sql.statement import Insert, Merge
from isolitmus.specs.files.spec_catalogue import protocol as named
from isolitmus.specs.registries import format_named
from isolitmus.specs.sql.statements import syntax_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from isolitmus.jobs.questions.pair_prediction import JobPrediction, PairPrediction
    from isolitmus.jobs.robust.robustness import Robustness
    from isolitmus.jobs.workload import JobStatement, Workload
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

STOPPED = ("when", "always", "unknown")
DIALECT = "databricks"
LOST = {"unsafe": "is no longer kept", "unknown": "is no longer proved"}
AGAIN = "the INSERT adds rows that exist already once more, even without concurrent jobs"
MOVED = "the existing data has to be rewritten"
KEPT = "the scheduler has to ensure it"


@dataclass(frozen=True, slots=True)
class JobChange:
    """Change of the jobs, the table or the level, with its predicted effect on conflicts."""

    title: str
    """Description of the change."""
    workload: Workload
    """Changed jobs."""
    under: Spec
    """Commit protocol after the change."""
    ends: tuple[tuple[str, str], ...] = ()
    """Pairs (loser, winner) that can conflict without the change, and not with it."""
    brings: tuple[tuple[str, str], ...] = ()
    """Pairs (loser, winner) that can conflict with the change, and not without it."""
    narrows: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Pairs with their condition: they conflict only under it with the change, and without it
    always could.
    """
    costs: tuple[str, ...] = ()
    """Costs of the change, in words."""
    is_retry: bool = False
    """True if the change is a retry; its `ends` are then the pairs in which the retry does not
    fail.
    """

    def to_json(self) -> dict[str, object]:
        """Return the change in the format of docs/interface.md, 6."""
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
    """Yield candidate changes of a workload; their effect is not predicted yet."""
    workload, under = as_workload(workload), named(under)
    for other in format_named(workload.format).protocols:
        spec = named(other)
        if other != under.name:
            yield JobChange(level_title(spec), workload, spec)
    for one in workload.statements:
        for sql, column in _literals(workload, one):
            title = f"write {one.name} with a literal for {column} in ON"
            yield JobChange(title, replace_statement(workload, one, sql), under)
        for sql in _appends(workload, one):
            changed = replace_statement(workload, one, sql)
            yield JobChange(f"write {one.name} as {sql}", changed, under, costs=(AGAIN,))
    for name in _parameters(workload):
        distinct = replace(workload, distinct=(*workload.distinct, name))
        title = f"never run two jobs with the same :{name} at the same time"
        yield JobChange(title, distinct, under, costs=(KEPT,))
    for name, schema in workload.tables.items():
        if schema.exists and not schema.clustered_by:
            for each in schema.columns:
                if each.name not in schema.partitioned_by and len(schema.columns) > 1:
                    layout = replace(schema, partitioned_by=(each.name,))
                    tables = {**workload.tables, name: layout}
                    title = f"partition {name} by {each.name}"
                    yield JobChange(title, replace(workload, tables=tables), under, costs=(MOVED,))


def level_title(spec: Spec) -> str:
    """Return the title of a change or repair by another isolation level."""
    return f"set the isolation level to {spec.setting.rpartition('= ')[2]}"


def try_changes(before: JobPrediction, under: SpecLike) -> Iterator[JobChange]:
    """Yield the changes that prevent a conflict or restrict it by a condition.

    The most effective changes come first, a retry last.
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
    """Yield the outcome of retries: a retry sees the concurrent commit that it conflicted with."""
    work, again = before.workload, [m for m in before.meetings if m.retries]
    through = [m for m in again if not any(FAILS in ends for ends in m.retries.values())]
    if not again:
        return
    losers = [one for one in work.statements if one.name in {m.loser for m in again}]
    costs = [f"a retry of {m.loser} after {m.winner} can fail" for m in again if m not in through]
    for one in losers:
        if one.let:
            costs.append(f"{one.name} has to read {', '.join(one.let)} again")
        if len(work.jobs[one.job].statements) > 1:
            costs.append(
                f"of {one.job}, only {one.name} is retried: earlier statements have committed"
            )
    yield JobChange(
        "retry after the other transaction has committed (in the examples)", work, under,
        tuple((m.loser, m.winner) for m in through), costs=tuple(costs), is_retry=True,
    )  # fmt: skip


def conflicting_pairs(prediction: JobPrediction) -> dict[tuple[str, str], PairPrediction]:
    """Return the pairs (loser, winner) in which the loser may abort."""
    return {(m.loser, m.winner): m for m in prediction.meetings if m.word in STOPPED}


def _parameters(workload: Workload) -> Iterator[str]:
    """Yield parameters that could be required to differ between runs: not shared, of one type in
    all jobs.
    """
    types: dict[str, set[str]] = {}
    for job in workload.jobs.values():
        for name, type_ in job.parameters.items():
            types.setdefault(name, set()).add(type_)
    for name, found in types.items():
        if len(found) == 1 and name not in (*workload.shared, *workload.distinct):
            yield name


def _appends(workload: Workload, one: JobStatement) -> Iterator[str]:
    """Yield an INSERT for a MERGE that only inserts; the INSERT does not read the target."""
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
    """Return the value of a column in the source's only row; other nodes are returned unchanged."""
    known = given.get(node.name.lower()) if isinstance(node, exp.Column) else None
    return node if known is None else known.copy()


def _literals(workload: Workload, one: JobStatement) -> Iterator[tuple[str, str]]:
    """Yield a MERGE with a literal for a partition column in ON, and that column.

    The MERGE must equate the partition column with a column of its source, and the source must be
    one row whose value is written in the statement.
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
    """Yield pairs of a target column and a source column that parts of ON equate; ``alias`` is the
    source.
    """
    for part in parts:
        if isinstance(part, exp.EQ):
            sides = [s for s in (part.this, part.expression) if isinstance(s, exp.Column)]
            own = [s for s in sides if s.table.lower() != alias]
            other = [s for s in sides if s.table.lower() == alias]
            if own and other:
                yield own[0], other[0]


UNLESS_NULL = "it is not proved if a parameter is NULL"
"""Cost of a repair that leaves what only NULL violates."""
ROUNDS = 6
"""Maximum number of searches for jobs to separate; each may find patterns that others have hidden.
"""
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Repair:
    """Change with which the promise is proved."""

    title: str
    """Description of the change."""
    workload: Workload
    """Changed jobs."""
    protocol: str
    """Commit protocol after the change."""
    apart: tuple[Pair, ...] = ()
    """Jobs that must no longer run at the same time."""
    brings: tuple[Pair, ...] = ()
    """Pairs (loser, winner) that can conflict with the change, and not without it."""
    waits: tuple[Pair, ...] = ()
    """Pairs that could overlap and both commit without the change, and now wait for each other."""
    costs: tuple[str, ...] = ()
    """Other costs, in words."""
    needless: tuple[Pair, ...] = ()
    """Cost: pairs in `brings` and `waits` that are in no pattern that violates the promise."""

    def to_json(self) -> dict[str, object]:
        """Return the repair in the format of docs/interface.md, 6."""
        return {
            "title": self.title,
            "protocol": self.protocol,
            "apart": [list(pair) for pair in self.apart],
            "brings": [list(pair) for pair in self.brings],
            "waits": [list(pair) for pair in self.waits],
            "costs": list(self.costs),
            "needless": [list(pair) for pair in self.needless],
        }


def find_repairs(broken: Robustness, protocol: SpecLike) -> Iterator[Repair]:
    """Yield repairs of a violated promise, the cheapest first."""
    protocol = named(protocol)
    meetings = predict_workload(broken.workload, protocol, examples=False).meetings
    passing = [m for m in meetings if m.word not in ("always", "apart")]
    harmful = _harmful(broken)
    found = list(_apart(broken, protocol, passing, harmful))
    found += [*_levels(broken), *_reading(broken, protocol)]
    yield from price_repairs(found, broken.workload, meetings, harmful)


def _null_costs(broken: Robustness, after: Robustness) -> tuple[str, ...] | None:
    """Return the cost of a repair that proves a promise unless a parameter is NULL; None if it is
    no repair, or if only NULL violates the promise without it.
    """
    if after.word == "safe":
        return ()
    repaired = after.not_null is not None and broken.not_null is None
    return (UNLESS_NULL,) if repaired else None


def price_repairs(
    found: Sequence[Repair],
    workload: Workload,
    meetings: Sequence[PairPrediction],
    harmful: Collection[Pair],
) -> Iterator[Repair]:
    """Yield repairs with their costs, the cheapest first.

    Parameters
    ----------
    found : sequence of Repair
        The repairs, each proved.
    workload : Workload
        Jobs without a repair.
    meetings : sequence of PairPrediction
        Predictions of their conflicts.
    harmful : collection of (str, str)
        Ordered pairs of statements whose overlap does harm.
    """
    passing = [m for m in meetings if m.word not in ("always", "apart")]
    before = {_named(m) for m in meetings if m.word in STOPPED}
    priced = []
    for repair in found:
        after = predict_workload(repair.workload, named(repair.protocol), examples=False)
        brings = tuple(pair for pair in conflicting_pairs(after) if pair not in before)
        waits = tuple(_named(m) for m in passing if _jobs(workload, m) in repair.apart)
        needless = tuple(pair for pair in (*brings, *waits) if pair not in harmful)
        priced.append(replace(repair, brings=brings, waits=waits, needless=needless))
    yield from sorted(priced, key=lambda one: (len(one.needless), len(one.brings) + len(one.waits)))


def _harmful(broken: Robustness) -> set[Pair]:
    """Return the ordered pairs of statements that are concurrent in a pattern that violates the
    promise.
    """
    return {
        (one.danger.members[-1].name, other.name)
        for one in broken.counterexamples
        for other in one.danger.members[:-1]
    }


def _named(meeting: PairPrediction) -> Pair:
    return meeting.loser, meeting.winner


def _jobs(workload: Workload, meeting: PairPrediction) -> Pair:
    """Return the jobs of the two statements, in alphabetical order."""
    home = {one.name: one.job for one in workload.statements}
    return _ordered(home[meeting.loser], home[meeting.winner])


def _levels(broken: Robustness) -> Iterator[Repair]:
    """Yield the other protocols of the format under which the promise is proved."""
    for other in format_named(broken.workload.format).protocols:
        if other != broken.protocol:
            spec = named(other)
            costs = _null_costs(broken, decide_robustness(broken.workload, spec, broken.promise))
            if costs is not None:
                yield Repair(level_title(spec), broken.workload, other, costs=costs)


def _reading(broken: Robustness, protocol: Spec) -> Iterator[Repair]:
    """Yield the repair in which an append first reads whether its row exists, so that it is not
    blind.
    """
    for one in broken.workload.statements:
        for sql in _if_none(broken.workload, one):
            try:
                changed = replace_statement(broken.workload, one, sql)
            except IsolitmusError:
                continue
            costs = _null_costs(broken, decide_robustness(changed, protocol, broken.promise))
            if costs is not None:
                yield Repair(f"write {one.name} as {sql}", changed, protocol.name, costs=costs)


def _if_none(workload: Workload, one: JobStatement) -> Iterator[str]:
    """Yield an INSERT of one row that first checks for a row of the same partition and first
    column.
    """
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
    """Yield the repair by the cheapest pairs of jobs that must not overlap.

    Each violating pattern must lose one of its pairs. Patterns that were hidden behind others are
    added to ``harmful``.
    """
    workload, dangers = broken.workload, []
    found = broken
    for _ in range(ROUNDS):
        costs = _null_costs(broken, found)
        if costs is not None:
            chosen = sorted(workload.apart - broken.workload.apart)
            pairs = tuple((a, b) for a, b in chosen if a <= b)
            title = f"never run at the same time: {separated_jobs(pairs)}"
            yield Repair(title, workload, protocol.name, pairs, costs=costs)
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


def separated_jobs(pairs: Sequence[Pair]) -> str:
    """Return the jobs that must not run at the same time, in words.

    Examples
    --------
    >>> separated_jobs([("load", "load"), ("load", "purge")])
    'two runs of load; load and purge'
    """
    said = [f"two runs of {a}" if a == b else f"{a} and {b}" for a, b in pairs]
    return "; ".join(said)


def _hit(dangers: Sequence[Sequence[Pair]], needless: Mapping[Pair, int]) -> list[Pair]:
    """Return pairs that hit every pattern (a minimum hitting set).

    The number of needless waits is minimized first, then the number of pairs.
    """
    import z3

    context = z3.Context()
    named = sorted({pair for danger in dangers for pair in danger})
    chosen = {pair: z3.Bool(f"{pair[0]} apart from {pair[1]}", context) for pair in named}
    solver = z3.Optimize(ctx=context)
    for danger in dangers:
        solver.add(z3.Or(*(chosen[pair] for pair in danger)))
    for pair, name in sorted(chosen.items()):
        # at equal cost and size, prefer the choice that lets two runs of one job overlap
        size = 11 if pair[0] == pair[1] else 10
        solver.add_soft(z3.Not(name), weight=needless.get(pair, 0) * 1_000 + size)
    ask_solver(solver)
    model = solver.model()
    return [pair for pair, name in chosen.items() if z3.is_true(model.eval(name))]
