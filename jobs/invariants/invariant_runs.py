"""Runs that violate an invariant: proposed by a solver, executed by the model, checked by DuckDB.

A run of one job, or of two jobs of which the second one runs during the first one, starts with
tables that satisfy all given invariants, and has a version that violates one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.checker.execution.postconditions import violated_queries
from isolitmus.jobs.invariant import BEFORE, Reference, TableVersions
from isolitmus.jobs.questions.counterexamples import (
    CounterexampleDraft,
    executed_part,
    printed_test_problem,
    proposal_of,
    value_of,
)
from isolitmus.jobs.questions.query_witnesses import SIMPLE, computed_value, unconfirmed_rows
from isolitmus.jobs.questions.start_rows import unwritten_start_row
from isolitmus.jobs.templates.expression_formulas import NoValue
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.litmus import Expectation
from isolitmus.model.sql.types import is_opaque
from isolitmus.specs.sql.parameters import is_unnamed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.jobs.invariant import Invariant
    from isolitmus.jobs.invariants.invariant_questions import InvariantQuestion
    from isolitmus.jobs.questions.counterexamples import Proposal
    from isolitmus.jobs.questions.instances import Instances, Participant
    from isolitmus.jobs.questions.simple_examples import QuestionSolver
    from isolitmus.jobs.questions.solver import Solution
    from isolitmus.jobs.workload import Job
    from isolitmus.model.execution import Database, Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.values import Row, Rows, Value

MODELS = 4
"""Maximum number of solver models that are executed for one question."""
TESTS = 60
"""Maximum number of initial tables that are executed for one model."""


@dataclass(frozen=True, slots=True)
class InvariantViolation(ReadableRepr):
    """Executed run that violates an invariant."""

    test: Litmus
    """Smallest test that was found."""
    jobs: tuple[str, ...]
    """Jobs whose runs it contains."""
    version: int
    """First version of the tables that violates the invariant."""
    versions: TableVersions
    """Rows of the tables at that version, and at the one before."""
    half_done: bool = False
    """True if the last version satisfies it: only versions inside a job's run violate it."""

    @property
    def alone(self) -> bool:
        """True if one run of one job suffices."""
        return len(self.jobs) == 1

    @property
    def size(self) -> tuple[bool, int, int, int]:
        """Order of violations: those after whole runs first, then small ones."""
        rows = sum(len(statement.sql) for statement in self.test.init)
        return self.half_done, len(self.jobs), len(self.test.transactions), rows

    def __repr__(self) -> str:
        return f"{self.test.schedule} violates it at version {self.version}"


class InvariantRuns:
    """Executions of a workload's jobs under a protocol, each once."""

    def __init__(self, instances: Instances, spec: Spec, invariants: tuple[Invariant, ...]) -> None:
        self.instances = instances
        self.workload = instances.workload
        self.spec = spec
        self.invariants = invariants
        self.unconfirmed: dict[str, str] = {}
        """Why a run that was found may not violate an invariant, by the invariant."""
        self._done: dict[tuple[object, ...], Execution | None] = {}

    def violation(
        self, invariant: Invariant, question: InvariantQuestion, asked: QuestionSolver
    ) -> InvariantViolation | None:
        """Return the smallest violation by values with which the question's formulas hold."""
        best: InvariantViolation | None = None
        more: list[Any] = []
        for k in range(MODELS):
            model = asked.example(*question.formulas, *more, wanted=question.wanted, apart=k > 0)
            if model is None:
                break
            for found in self._of_model(invariant, question, model):
                if best is None or found.size < best.size:
                    best = found
            if best is not None and not best.half_done:
                break
            values = [t for role in question.roles for t in role.terms.parameters.values()]
            if values:
                more.append(model.others(values))
            elif k:
                break
        return best

    def _of_model(
        self, invariant: Invariant, question: InvariantQuestion, model: Solution
    ) -> Iterator[InvariantViolation]:
        """Yield at most one violation for each schedule, with the values of a model."""
        try:
            proposal = proposal_of(self.instances, model, question.roles)
            rows = (*proposal.rows, *self._referred(proposal.rows))
            proposal = replace(proposal, rows=rows, beside=tuple(self._low_rows(question)))
            values = [self._values(role, model) for role in question.roles]
            jobs = [self.workload.jobs[role.statement.job] for role in question.roles]
            for draft, names in self._drafts(proposal, jobs, values):
                found = self._first(invariant, draft, names)
                if found is not None:
                    yield found
        except Disagreement as defect:
            jobs_ = dict.fromkeys(role.statement.job for role in question.roles)
            self.unconfirmed.setdefault(invariant.name, defect.report(jobs_))
        except (NoValue, IsolitmusError):
            return

    def _referred(self, rows: Sequence[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
        """Yield the rows to which rows of an initial table have to refer, as far as they lack."""
        there: dict[str, list[Row]] = {name: [] for name in self.workload.tables}
        for name, row in rows:
            there[name].append(row)
        references = [one for one in self.invariants if isinstance(one, Reference)]
        for _ in references:  # a row that is added may refer to another one
            for one in references:
                now = {name: tuple(some) for name, some in there.items()}
                for row in one.violations(TableVersions(now, now)):
                    made = self._parent(one, row)
                    if made not in there[one.parent]:
                        there[one.parent].append(made)
                        yield one.parent, made

    def _parent(self, reference: Reference, row: Row) -> Row:
        """Return a row to which a row may refer."""
        columns = self.workload.tables[reference.parent].columns
        made = [SIMPLE.get(column.type) for column in columns]
        for key, column in zip(reference.keys, reference.columns, strict=True):
            made[key] = row[column]
        return tuple(made)

    def _low_rows(self, question: InvariantQuestion) -> Iterator[tuple[str, Row]]:
        """Yield a row below the usual ones for each table that a subquery aggregates.

        ``WHERE at > (SELECT max(at) FROM t)`` selects nothing if the table is empty.
        """
        schemas, tables = self.workload.tables, set()
        for role in question.roles:
            for access in accesses(role.statement.statement, schemas):
                if access.subquery is not None and access.subquery.grouped:
                    tables.add(access.table)
        for table in sorted(tables):
            yield table, tuple(LOW.get(column.type) for column in schemas[table].columns)

    def _values(self, role: Participant, model: Solution) -> dict[str, Value]:
        """Return the values of the parameters of a participant, and of those that its job's
        condition relates to them.
        """
        job = self.workload.jobs[role.statement.job]
        types = {**({} if job.where is None else job.parameters), **role.statement.types}
        codes = self.instances.codes
        return {
            name: value_of(codes, model, role.terms.parameters[name], type_)
            for name, type_ in types.items()
        }

    def _drafts(
        self,
        proposal: Proposal,
        jobs: Sequence[Job],
        values: Sequence[Mapping[str, Value]],
    ) -> Iterator[tuple[CounterexampleDraft, tuple[str, ...]]]:
        """Yield drafts of whole runs: one job, or the second one while the first one runs."""
        names = [job.name for job in jobs]
        runs = [self._run(job, "") for job in jobs[:1]]
        runs += [self._run(job, "_run2" if job is jobs[0] else "") for job in jobs[1:]]
        roles = tuple(role for run in runs for role in run)
        tried: list[list[dict[str, Value]]] = []
        for others in (SIMPLE, UNUSUAL):
            given = [
                self._given(role, values[k], others) for k, run in enumerate(runs) for role in run
            ]
            if given in tried:
                continue
            tried.append(given)
            proposed = replace(proposal, parameters=tuple(given))
            for schedule in _schedules(runs):
                yield CounterexampleDraft(self.instances, proposed, roles, schedule), tuple(names)

    def _run(self, job: Job, suffix: str) -> list[Participant]:
        """Return the statements of a job as participants of one run."""
        return [self.instances.role(one, f"{one.name}{suffix}") for one in job.statements]

    def _given(
        self, role: Participant, values: Mapping[str, Value], others: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Return the values of the parameters of one statement, by type where they are free.

        Raises NoValue for an expression without columns that DuckDB does not compute.
        """
        found = {
            name: values.get(name, None if is_opaque(type_) else others.get(type_, others["INT"]))
            for name, type_ in role.statement.types.items()
        }
        computed = {
            name: computed_value(name, type_, found)
            for name, type_ in role.statement.types.items()
            if is_unnamed(name)
        }
        return {**found, **computed}

    def _first(
        self, invariant: Invariant, draft: CounterexampleDraft, jobs: tuple[str, ...]
    ) -> InvariantViolation | None:
        """Return the first test of a draft that violates the invariant."""
        best = None
        verb = "violate" if len(jobs) > 1 else "violates"
        for test in draft.tests(f"{' and '.join(jobs)} {verb} {invariant.name}", TESTS):
            execution = self._execution(test)
            if execution is None:
                continue
            found = self._judged(invariant, test, execution, jobs)
            if found is not None:
                needed = next(
                    unconfirmed_rows(
                        self.workload, test, draft.values, execution.states[0], self.invariants
                    ),
                    None,
                )
                if needed is not None:
                    why = (
                        f"a run was found that violates it if the query ({needed.query.sql})"
                        f" returns {needed}; no rows of its tables were found for which it does"
                    )
                    self.unconfirmed.setdefault(invariant.name, why)
                    continue
            if found is not None and not found.half_done:
                return found
            best = best or found
        return best

    def _execution(self, test: Litmus) -> Execution | None:
        """Return the execution of a test; None if the model cannot compute it."""
        key = executed_part(test)
        if key not in self._done:
            self._done[key] = None
            with suppress(IsolitmusError):
                self._done[key] = execute(test, self.spec)
        return self._done[key]

    def _judged(
        self, invariant: Invariant, test: Litmus, execution: Execution, jobs: tuple[str, ...]
    ) -> InvariantViolation | None:
        """Return an execution as a violation, if it is one."""
        if not self._may_start(execution.states[0]):
            return None
        versions = [self._rows(invariant, state) for state in execution.states]
        pairs = [TableVersions(now, before) for before, now in pairwise(versions)]
        broken = [k for k, one in enumerate(pairs, 1) if invariant.violations(one)]
        if not broken:
            return None
        if any(event.aborted for event in execution.events):  # its job would not go on
            return None
        found = pairs[broken[0] - 1]
        self._check(invariant, test, found)
        ended = observed_run(test, execution, self.spec.name)
        outcome = {name: (done.outcome,) for name, done in ended.transactions.items()}
        tables = {name: rows for name, rows in versions[-1].items() if name in test.tables}
        expect = {self.spec.name: Expectation(outcome=outcome, tables=tables)}
        test = replace(test, name="-".join((*jobs, "violate")), expect=expect)
        problem = unwritten_start_row(self.workload, execution.states[0])
        problem = problem or printed_test_problem(test, self.spec)
        if problem is not None:
            self.unconfirmed.setdefault(invariant.name, problem)
            return None
        half_done = not invariant.violations(TableVersions(versions[-1], versions[0]))
        return InvariantViolation(test, jobs, broken[0], found, half_done=half_done)

    def _rows(self, invariant: Invariant, state: Database) -> dict[str, Rows]:
        """Return the rows of the tables of an invariant; a test may leave out an empty one."""
        return {name: state[name].rows() if name in state else () for name in invariant.tables}

    def _may_start(self, start: Database) -> bool:
        """Return whether tables satisfy all invariants, and the keys of queries they stand for."""
        for one in self.invariants:
            rows = self._rows(one, start)
            if one.violations(TableVersions(rows, rows)):
                return False
        for table, keys in self.workload.keys.items():
            there = start[table].rows() if table in start else ()
            if any(len({tuple(row[k] for k in key) for row in there}) < len(there) for key in keys):
                return False
        return True

    def _check(self, invariant: Invariant, test: Litmus, versions: TableVersions) -> None:
        """Raise Disagreement unless DuckDB finds the violation with the invariant's query."""
        schemas = self.workload.tables
        tables = [(schemas[name], rows) for name, rows in versions.now.items()]
        own = schemas[invariant.table]
        tables.append((replace(own, name=BEFORE), versions.before[invariant.table]))
        if not violated_queries(tables, [invariant.query]):
            raise Disagreement(
                f"{invariant.name} is violated by {test.schedule}, but DuckDB finds no rows by"
                f" {invariant.query}"
            )


LOW: Mapping[str, Value] = {
    "INT": 0,
    "BIGINT": 0,
    "DATE": date(2025, 12, 31),
    "TIMESTAMP": datetime.fromisoformat("2025-12-31"),
    "STRING": "",
}
"""Values below those of other examples; NULL for other types."""
UNUSUAL: Mapping[str, Value] = {
    "INT": 90,
    "STRING": "z",
    "BOOLEAN": False,
    "DATE": date(2026, 1, 31),
    "TIMESTAMP": datetime.fromisoformat("2026-01-31"),
    "DOUBLE": 90.0,
}
"""Values that no row of an example has, for a violation that needs one."""


def _schedules(runs: Sequence[Sequence[Participant]]) -> Iterator[str]:
    """Yield the schedules of one run, or of a second run while the first one runs, in short form.

    The second run takes place between two statements of the first one, while one of them runs, or
    after a client has read for it.
    """
    first = [role.name for role in runs[0]]
    if len(runs) == 1:
        yield " ".join(first)
        return
    second = [role.name for role in runs[1]]
    for k, name in enumerate(first):
        yield " ".join((*first[:k], f"{name}.start", *second, f"{name}.commit", *first[k + 1 :]))
        if runs[0][k].statement.let:
            yield " ".join((*first[:k], f"{name}.before", *second, *first[k:]))
        if k:
            yield " ".join((*first[:k], *second, *first[k:]))
