"""Repairs of a broken invariant: changes with which it is proved, each with its price.

They are another isolation level, jobs that never run at the same time, an INSERT as a MERGE on the
key, a condition that leaves out rows, and sources without duplicates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.workloads.invariants import decide_invariants
from isolitmus.checker.workloads.prediction import predict_workload
from isolitmus.checker.workloads.repairs import (
    Repair,
    level_title,
    price_repairs,
    separated_jobs,
)
from isolitmus.model.defaults import DELTA
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.expression import IsNull, Not, walk
from isolitmus.model.sql.query import source_tables
from isolitmus.model.sql.statement import Insert, Merge
from isolitmus.specs.files.catalogue import protocol as named
from isolitmus.specs.files.workload_sources import replace_statement
from isolitmus.specs.registries.formats import format_named
from isolitmus.specs.sql.guards import insert_as_merge, with_condition
from isolitmus.specs.sql.invariants import read_invariant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.workloads.invariants import InvariantAnswer
    from isolitmus.model.invariant import Invariant
    from isolitmus.model.workload import JobStatement, Workload

__all__ = ["find_invariant_repairs"]

ROUNDS = 4
"""Maximum number of times that jobs are separated; each may show violations by other jobs."""
LEFT_OUT = "rows that violate the invariant are left out"
UPSTREAM = "the source has to be without duplicates"
NOT_AGAIN = "a row whose key is there is not inserted"


def find_invariant_repairs(broken: InvariantAnswer, given: Sequence[Invariant]) -> Iterator[Repair]:
    """Yield repairs of a broken invariant, the cheapest first; each is proved.

    Parameters
    ----------
    broken : InvariantAnswer
        Answer with a violation.
    given : sequence of Invariant
        All invariants that the tables satisfy at the start.
    """
    if broken.violation is None:
        return
    work, spec = broken.workload, named(broken.protocol)
    found = [*_levels(broken, given), *_apart(broken, given), *_rewritten(broken, given)]
    found += _sources(broken, given)
    meetings = predict_workload(work, spec, examples=False).meetings
    jobs = {way for one in broken.violations for way in (one.jobs, one.jobs[::-1])}
    home = {one.name: one.job for one in work.statements}
    harmful = {
        (m.loser, m.winner)
        for m in meetings
        if (home.get(m.loser, ""), home.get(m.winner, "")) in jobs
    }
    yield from price_repairs(found, work, meetings, harmful)


def _answer(
    broken: InvariantAnswer,
    given: Sequence[Invariant],
    workload: Workload,
    protocol: str,
    *,
    examples: bool = False,
) -> InvariantAnswer:
    """Return the answer about the invariant for a changed workload or level."""
    answers = decide_invariants(workload, [protocol], given, examples=examples)
    return next(one for one in answers if one.invariant == broken.invariant)


def _levels(broken: InvariantAnswer, given: Sequence[Invariant]) -> Iterator[Repair]:
    """Yield the other protocols of Delta under which the invariant is kept."""
    for other in format_named(DELTA).protocols:
        if other != broken.protocol:
            answer = _answer(broken, given, broken.workload, other)
            if answer.word == "kept":
                yield Repair(level_title(named(other)), broken.workload, other)


def _apart(broken: InvariantAnswer, given: Sequence[Invariant]) -> Iterator[Repair]:
    """Yield the repair by jobs that never run at the same time."""
    answer, work = broken, broken.workload
    pairs: list[tuple[str, str]] = []
    for _ in range(ROUNDS):
        if not answer.violations or answer.violations[0].alone:
            return
        for found in answer.violations:
            a, b = sorted(found.jobs)
            pairs.append((a, b))
            work = replace(work, apart=work.apart | {(a, b), (b, a)})
        answer = _answer(broken, given, work, broken.protocol, examples=True)
        if answer.word == "kept":
            title = f"never run at the same time: {separated_jobs(pairs)}"
            yield Repair(title, work, broken.protocol, tuple(pairs))
            return


def _rewritten(broken: InvariantAnswer, given: Sequence[Invariant]) -> Iterator[Repair]:
    """Yield the repairs by other statements: of one, or of all that can be changed alike."""
    work, invariant = broken.workload, broken.invariant
    schema = work.tables[invariant.table]
    keys = [schema.columns[k].name for k in invariant.columns]
    changes: dict[str, list[tuple[JobStatement, str]]] = {}
    for one in work.statements:
        if getattr(one.statement, "target", None) != invariant.table:
            continue
        if invariant.most == 1 and (sql := insert_as_merge(one.sql, schema, keys, work.tables)):
            changes.setdefault(NOT_AGAIN, []).append((one, sql))
        if not invariant.most:
            sql = with_condition(one.sql, schema, _allowed(invariant), work.tables)
            if sql is not None:
                changes.setdefault(LEFT_OUT, []).append((one, sql))
    for cost, every in changes.items():
        for some in [*([each] for each in every), every] if len(every) > 1 else [every]:
            changed = _changed(work, some)
            if changed is None:
                continue
            if _answer(broken, given, changed, broken.protocol).word == "kept":
                said = "; ".join(f"write {one.name} as {sql}" for one, sql in some)
                yield Repair(said, changed, broken.protocol, costs=(cost,))
                break


def _allowed(invariant: Invariant) -> str:
    """Return the condition that a row does not violate an invariant, in SQL."""
    bad = invariant.query.partition(" WHERE ")[2]
    parts = [] if invariant.where is None else [*walk(invariant.where)]
    if all(isinstance(part, IsNull | Not) or part.type != "BOOLEAN" for part in parts):
        column = bad.removesuffix(" IS NULL")
        return f"{column} IS NOT NULL" if " " not in column else f"NOT ({bad})"
    return f"NOT coalesce({bad}, FALSE)"


def _changed(work: Workload, some: Sequence[tuple[JobStatement, str]]) -> Workload | None:
    """Return the workload with other statements; None if one of them is not modelled."""
    try:
        for one, sql in some:
            own = next(each for each in work.statements if each.name == one.name)
            work = replace_statement(work, own, sql)
    except IsolitmusError:
        return None
    return work


def _sources(broken: InvariantAnswer, given: Sequence[Invariant]) -> Iterator[Repair]:
    """Yield the repairs by sources in which each key has one row."""
    work, invariant = broken.workload, broken.invariant
    if invariant.most != 1:
        return
    keys = ", ".join(work.tables[invariant.table].columns[k].name for k in invariant.columns)
    tables: dict[str, None] = {}
    for one in work.statements:
        match one.statement:
            case Insert(target=invariant.table, query=query):
                tables |= dict.fromkeys(sorted(source_tables(query)))
            case Merge(target=invariant.table, source=query):
                tables |= dict.fromkeys(sorted(source_tables(query)))
    for table in tables:
        if table == invariant.table:
            continue
        try:
            unique = read_invariant(f"{table}: unique({keys})", work.tables, [table])
        except IsolitmusError:
            continue
        if unique in given:
            continue
        answer = _answer(broken, [*given, unique], work, broken.protocol)
        if answer.word == "kept":
            title = f"keep one row for each {keys} in {table}: {unique.text}"
            yield Repair(title, work, broken.protocol, costs=(UPSTREAM,))
