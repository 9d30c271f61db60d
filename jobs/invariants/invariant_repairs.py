"""Repairs of a broken invariant: changes with which it is proved, each with its price.

They are another isolation level, jobs that never run at the same time, an INSERT as a MERGE on the
key, a condition that leaves out rows, and sources without duplicates.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.invariant import GroupLimit
from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_sources import replace_statement
from isolitmus.jobs.robust.repairs import (
    UNLESS_NULL,
    Repair,
    level_title,
    price_repairs,
    separated_jobs,
)
from isolitmus.jobs.sql.guards import insert_as_merge, with_condition
from isolitmus.jobs.sql.invariant_text import read_invariant
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.expression import IsNull, Not, walk
from isolitmus.model.sql.query import source_tables
from isolitmus.model.sql.statement import Insert, Merge
from isolitmus.specs.files.spec_catalogue import protocol as named
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.jobs.invariant import Invariant
    from isolitmus.jobs.invariants.invariant_runs import InvariantViolation
    from isolitmus.jobs.invariants.invariants import InvariantAnswer
    from isolitmus.jobs.workload import JobStatement, Workload

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
    start = _Changed(work, tuple(given))
    found = [*_levels(broken, start), *_apart(broken, start), *_rewritten(broken, start)]
    found += _sources(broken, start)
    if not found:
        found += _together(broken, start)
    meetings = predict_workload(work, spec, examples=False).meetings
    jobs = {way for one in broken.violations for way in (one.jobs, one.jobs[::-1])}
    home = {one.name: one.job for one in work.statements}
    harmful = {
        (m.loser, m.winner)
        for m in meetings
        if (home.get(m.loser, ""), home.get(m.winner, "")) in jobs
    }
    yield from price_repairs(found, work, meetings, harmful)


def _levels(broken: InvariantAnswer, start: _Changed) -> Iterator[Repair]:
    """Yield the other protocols of the format under which the invariant is kept."""
    for other in format_named(start.workload.format).protocols:
        if other != broken.protocol:
            answer = start.answer(replace(broken, protocol=other))
            if (repair := start.repair(broken, answer)) is not None:
                yield replace(repair, title=level_title(named(other)), protocol=other)


class _Changed(NamedTuple):
    """Workload and invariants of sources after some changes, one after another."""

    workload: Workload
    given: tuple[Invariant, ...]
    titles: tuple[str, ...] = ()
    apart: tuple[tuple[str, str], ...] = ()
    costs: tuple[str, ...] = ()

    def separated(self, pairs: Sequence[tuple[str, str]]) -> _Changed:
        """Return the change that pairs of jobs never run at the same time."""
        ways = {way for a, b in pairs for way in ((a, b), (b, a))}
        return self._replace(
            workload=replace(self.workload, apart=self.workload.apart | ways),
            titles=(*self.titles, f"never run at the same time: {separated_jobs(pairs)}"),
            apart=(*self.apart, *pairs),
        )

    def rewritten(self, cost: str, some: Sequence[tuple[JobStatement, str]]) -> _Changed | None:
        """Return the change to other texts of statements; None if one of them is not modelled."""
        work = self.workload
        try:
            for one, sql in some:
                own = next(each for each in work.statements if each.name == one.name)
                work = replace_statement(work, own, sql)
        except IsolitmusError:
            return None
        titles = (*self.titles, *(f"write {one.name} as {sql}" for one, sql in some))
        return self._replace(workload=work, titles=titles, costs=(*self.costs, cost))

    def with_key(self, unique: Invariant) -> _Changed:
        """Return the change that a source has one row for each key."""
        return self._replace(
            given=(*self.given, unique),
            titles=(*self.titles, f"let a source have one row for each key: {unique.text}"),
            costs=(*self.costs, UPSTREAM),
        )

    def answer(self, broken: InvariantAnswer, *, examples: bool = False) -> InvariantAnswer:
        """Return the answer about the invariant after the changes."""
        answers = decide_invariants(self.workload, [broken.protocol], self.given, examples=examples)
        return next(one for one in answers if one.invariant == broken.invariant)

    def repair(self, broken: InvariantAnswer, after: InvariantAnswer) -> Repair | None:
        """Return the changes as a repair if the invariant is kept after them, or unless a parameter
        is NULL if without them not only NULL violates it.
        """
        given = self.costs
        if after.word != "kept":
            if after.not_null is None or broken.not_null is not None:
                return None
            given = (*given, UNLESS_NULL)
        title, costs = "; ".join(self.titles), tuple(dict.fromkeys(given))
        return Repair(title, self.workload, broken.protocol, self.apart, costs=costs)


def _apart(broken: InvariantAnswer, start: _Changed) -> Iterator[Repair]:
    """Yield the repair by jobs that never run at the same time."""
    answer = broken
    pairs: list[tuple[str, str]] = []
    for _ in range(ROUNDS):
        if not answer.violations or answer.violations[0].alone:
            return
        pairs += (_sorted_pair(found) for found in answer.violations)
        changed = start.separated(pairs)
        answer = changed.answer(broken, examples=True)
        if (repair := changed.repair(broken, answer)) is not None:
            yield repair
            return


def _sorted_pair(found: InvariantViolation) -> tuple[str, str]:
    """Return the two jobs of a violation."""
    a, b = sorted(found.jobs)
    return a, b


def _rewritten(broken: InvariantAnswer, start: _Changed) -> Iterator[Repair]:
    """Yield the repairs by other statements: of one, or of all that can be changed alike."""
    changes: dict[str, list[tuple[JobStatement, str]]] = {}
    for cost, statement, text in _other_texts(broken.workload, broken.invariant):
        changes.setdefault(cost, []).append((statement, text))
    for cost, every in changes.items():
        for some in [*([each] for each in every), every] if len(every) > 1 else [every]:
            changed = start.rewritten(cost, some)
            if changed is None:
                continue
            if (repair := changed.repair(broken, changed.answer(broken))) is not None:
                yield repair
                break


def _sources(broken: InvariantAnswer, start: _Changed) -> Iterator[Repair]:
    """Yield the repairs by sources in which each key has one row."""
    for unique in _source_keys(broken.workload, broken.invariant):
        if unique not in start.given:
            changed = start.with_key(unique)
            if (repair := changed.repair(broken, changed.answer(broken))) is not None:
                yield repair


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


def _together(broken: InvariantAnswer, start: _Changed) -> Iterator[Repair]:
    """Yield the smallest repair of several changes: each ends the smallest violation left."""
    now = [(start, broken)]
    for _ in range(ROUNDS):
        later = []
        for state, answer in now:
            for change in _steps(state, answer):
                after = change.answer(broken, examples=True)
                if (repair := change.repair(broken, after)) is not None:
                    yield repair
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
        yield state.separated([_sorted_pair(found)])
    for cost, one, sql in _other_texts(work, invariant):
        changed = state.rewritten(cost, [(one, sql)]) if one.job in found.jobs else None
        if changed is not None:
            yield changed
    for unique in _source_keys(work, invariant):
        if unique not in state.given:
            yield state.with_key(unique)


def _allowed(invariant: Invariant) -> str:
    """Return the condition that a row does not violate an invariant, in SQL."""
    bad = invariant.query.partition(" WHERE ")[2]
    parts = [] if invariant.where is None else [*walk(invariant.where)]
    if all(isinstance(part, IsNull | Not) or part.type != "BOOLEAN" for part in parts):
        column = bad.removesuffix(" IS NULL")
        return f"{column} IS NOT NULL" if " " not in column else f"NOT ({bad})"
    return f"NOT coalesce({bad}, FALSE)"


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
