"""Repairs of a broken invariant: changes with which it is proved, each with its price.

They are another isolation level, jobs that never run at the same time, an INSERT as a MERGE on the
key, a condition that leaves out rows, and sources without duplicates.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

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
from isolitmus.model.invariant import GroupLimit
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
MOST = 3
"""Maximum number of combinations of changes to which another change is added."""
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
    if not found:
        found += _together(broken, given)
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
    work = broken.workload
    changes: dict[str, list[tuple[JobStatement, str]]] = {}
    for cost, statement, text in _other_texts(work, broken.invariant):
        changes.setdefault(cost, []).append((statement, text))
    for cost, every in changes.items():
        for some in [*([each] for each in every), every] if len(every) > 1 else [every]:
            changed = _changed(work, some)
            if changed is None:
                continue
            if _answer(broken, given, changed, broken.protocol).word == "kept":
                said = "; ".join(f"write {one.name} as {sql}" for one, sql in some)
                yield Repair(said, changed, broken.protocol, costs=(cost,))
                break


def _other_texts(work: Workload, invariant: Invariant) -> Iterator[tuple[str, JobStatement, str]]:
    """Yield the other texts of statements, each with its cost and the statement."""
    schema = work.tables[invariant.table]
    keys = [schema.columns[k].name for k in invariant.columns]
    for one in work.statements:
        if getattr(one.statement, "target", None) != invariant.table:
            continue
        if invariant.is_key and (sql := insert_as_merge(one.sql, schema, keys, work.tables)):
            yield NOT_AGAIN, one, sql
        if isinstance(invariant, GroupLimit) and not invariant.most:
            sql = with_condition(one.sql, schema, _allowed(invariant), work.tables)
            if sql is not None:
                yield LEFT_OUT, one, sql


class _Changed(NamedTuple):
    """Several changes of a workload, one after another."""

    workload: Workload
    given: tuple[Invariant, ...]
    titles: tuple[str, ...] = ()
    apart: tuple[tuple[str, str], ...] = ()
    costs: tuple[str, ...] = ()


def _together(broken: InvariantAnswer, given: Sequence[Invariant]) -> Iterator[Repair]:
    """Yield the smallest repair of several changes: each ends the smallest violation left."""
    now = [(_Changed(broken.workload, tuple(given)), broken)]
    for _ in range(ROUNDS):
        later = []
        for state, answer in now:
            for change in _steps(state, answer):
                after = _answer(
                    broken, change.given, change.workload, broken.protocol, examples=True
                )
                if after.word == "kept":
                    title = "; ".join(change.titles)
                    yield Repair(
                        title, change.workload, broken.protocol, change.apart,
                        costs=tuple(dict.fromkeys(change.costs)),
                    )  # fmt: skip
                    return
                ended = answer.violation is not None and answer.violation.jobs not in {
                    one.jobs for one in after.violations
                }
                if after.violations and ended:
                    later.append((change, after))
        now = later[:MOST]


def _steps(state: _Changed, answer: InvariantAnswer) -> Iterator[_Changed]:
    """Yield the changes that may end the smallest violation."""
    work, invariant, found = state.workload, answer.invariant, answer.violation
    if found is None:
        return
    if not found.alone:
        a, b = sorted(found.jobs)
        yield state._replace(
            workload=replace(work, apart=work.apart | {(a, b), (b, a)}),
            titles=(*state.titles, f"never run at the same time: {separated_jobs([(a, b)])}"),
            apart=(*state.apart, (a, b)),
        )
    for cost, one, sql in _other_texts(work, invariant):
        if one.job in found.jobs and (changed := _changed(work, [(one, sql)])) is not None:
            yield state._replace(
                workload=changed,
                titles=(*state.titles, f"write {one.name} as {sql}"),
                costs=(*state.costs, cost),
            )
    for unique in _source_keys(work, invariant):
        if unique not in state.given:
            yield state._replace(
                given=(*state.given, unique),
                titles=(*state.titles, _of_source(unique)),
                costs=(*state.costs, UPSTREAM),
            )


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
    for unique in _source_keys(broken.workload, broken.invariant):
        if unique not in given:
            answer = _answer(broken, [*given, unique], broken.workload, broken.protocol)
            if answer.word == "kept":
                yield Repair(
                    _of_source(unique), broken.workload, broken.protocol, costs=(UPSTREAM,)
                )


def _of_source(unique: Invariant) -> str:
    """Return the change that a source has one row for each key."""
    return f"let a source have one row for each key: {unique.text}"


def _source_keys(work: Workload, invariant: Invariant) -> Iterator[Invariant]:
    """Yield the same key of each table from which statements write to the table of an invariant."""
    if not invariant.is_key:
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
        if table != invariant.table:
            with suppress(IsolitmusError):
                yield read_invariant(f"{table}: unique({keys})", work.tables, [table])
