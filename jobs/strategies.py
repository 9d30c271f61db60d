"""Hypothesis strategies for runs of a workload's jobs.

Parameter values satisfy the conditions of the workload, and the times of the runs are such as it
allows.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property, reduce
from itertools import chain, count, islice
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from isolitmus.checker.strategies.level_tests import (
    ROWS,
    SECONDS,
    SmallestTest,
    between_levels,
    complete_test,
    draw_between,
    fails_when_drawn,
    note_overlap,
    read_times,
    samples,
    search_smallest,
    too_few_tests,
)
from isolitmus.checker.strategies.table_strategies import constants_in, table_rows_for, values_for
from isolitmus.checker.universes.schedules import Times, schedule_at
from isolitmus.jobs.readers.workload_sources import as_workload
from isolitmus.jobs.sql.job_binding import bind_job_statement
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError, LitmusError, UndeterminedError, near
from isolitmus.model.litmus import ClientSettings, Litmus
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.expression import TRUE, And, ColumnRef, Const, In, conjuncts, walk
from isolitmus.model.sql.types import EvaluationError
from isolitmus.model.sql.values import cast_value
from isolitmus.specs.sql.parameters import CLOCKS, bind_text, is_unnamed, one_line
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.checker.strategies.level_tests import BetweenLevels
    from isolitmus.jobs.workload import Job, JobStatement, Workload
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.statement import Read, Statement
    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Row, Value
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

LOOKED_AT = 20_000
"""Maximal number of parameter values tried to find those that a job's ``where`` admits."""
MOST = 200
"""Maximal number of admitted values from which is drawn."""
FACTOR = 10
"""Time units between two steps of a smallest test; further statements of its jobs fit in between.
"""
SAMPLES = 16
"""Number of statements, and of rows, in the search for the smallest tests between two levels."""
ParameterValues = dict[str, "Value"]
JobChoices = tuple[tuple["Job", tuple[ParameterValues, ...]], ...]
"""Jobs that can run, each with its possible parameter values, for one choice of shared parameters.
"""


class _Run(NamedTuple):
    """Run of a job: its parameter values and the timing of its statements.

    `lasting` has one triple per statement: the time from the end of the previous statement to the
    read of its client, the time from that to its start, and its duration.
    """

    job: Job
    values: ParameterValues
    lasting: tuple[tuple[int, int, int], ...]

    def times(self, at: int = 0) -> Iterator[Times]:
        """Yield the times of each statement if the run begins at `at`."""
        for wait, early, long in self.lasting:
            found = Times(at + wait + early, long, early)
            yield found
            at = found.end


class WorkloadDomain:
    """Workload, and strategies for its runs and table contents: a ``TestDomain`` of drawn tests."""

    def __init__(
        self,
        workload: Workload,
        values: Mapping[str, Sequence[Value]],
        rows: Mapping[str, SearchStrategy[str]],
    ) -> None:
        """Compute the parameter values with which each job can run.

        Parameters
        ----------
        workload : Workload
            The workload.
        values : mapping of str to sequence
            Values by parameter name, for some parameters.
        rows : mapping of str to SearchStrategy
            Strategy for rows by table name, for some tables, as VALUES has them.

        Raises
        ------
        IsolitmusError
            If the workload does not have a name, a value has another type, or no parameter values
            are found for a job.
        """
        self.workload = workload
        self.given = rows
        self.read: dict[str, Statement] = {}
        self.shared = {
            **workload.shared,
            **{
                p: t
                for one in workload.statements
                for p, t in one.types.items()
                if p in CLOCKS or is_unnamed(p)
            },
        }
        types = dict(self.shared)
        for job in workload.jobs.values():
            types |= job.parameters
        self._refuse_unknown("parameter", values, types)
        self._refuse_unknown("table", rows, workload.tables)
        self.named = tuple(dict.fromkeys((*chain(*values.values()), *self._constants())))
        self.values = {name: self._values(name, type_, values) for name, type_ in types.items()}
        self.domains: list[JobChoices] = list(self._domains())

    def _refuse_unknown(self, kind: str, given: Iterable[str], known: Collection[str]) -> None:
        """Raise IsolitmusError if a given name is not a known one."""
        for name in given:
            if name not in known:
                raise IsolitmusError(
                    f"{self.workload.name} has no {kind} '{name}'{near(name, known)}"
                )

    # Parameter values

    def _constants(self) -> Iterator[Value]:
        """Yield the constants of statements and conditions, and neighbours of the latter."""
        known = [part for job in self.workload.jobs.values() for part in walk(job.where or TRUE)]
        for value in (p.value for p in known if isinstance(p, Const) and p.type != "BOOLEAN"):
            step = timedelta(1) if isinstance(value, date) else 1
            yield value
            if isinstance(value, date | int):
                yield from (value - step, value + step)  # type: ignore[operator]  # days of dates
        yield from constants_in(one.sql for one in self.workload.statements)

    def _values(
        self, name: str, type_: Type, given: Mapping[str, Sequence[Value]]
    ) -> tuple[Value, ...]:
        """Return the values of a parameter, cast to its type: given ones or default ones."""
        if name not in given:
            return _cast(values_for(type_, self.named), type_)
        found = [_cast(values_for(type_, [value])[:1], type_) for value in given[name]]
        for value, own in zip(given[name], found, strict=True):
            if value not in own:
                raise IsolitmusError(
                    f"values: {value!r} is none of type {type_}, which '{name}' has"
                )
        return tuple(value for own in found for value in own)

    def _domains(self) -> Iterator[JobChoices]:
        """Yield, per choice of shared parameters, the jobs that can run with their values.

        Choices with which most jobs can run come first.
        """
        found = []
        for shared in islice(self._choices(self.shared, (), {}), MOST):
            every = [
                (job, tuple(shared | own for own in islice(self._of_job(job, shared), MOST)))
                for job in self.workload.jobs.values()
            ]
            found.append(tuple((job, choices) for job, choices in every if choices))
        for job in self.workload.jobs.values():
            if not any(job is other for run in found for other, _ in run):
                raise IsolitmusError(
                    f"{job.place}: jobs.{job.name}.where: '{job.known}' holds for none of the"
                    " values that were tried; say which are to be drawn, as"
                    f" values={{'{next(iter(job.parameters))}': […]}}"
                )
        yield from sorted(found, key=len, reverse=True)

    def _of_job(self, job: Job, shared: ParameterValues) -> Iterator[ParameterValues]:
        return self._choices(job.parameters, conjuncts(job.where), shared)

    def _choices(
        self, parameters: Iterable[str], known: Sequence[Expr], given: ParameterValues
    ) -> Iterator[ParameterValues]:
        """Yield values of the parameters for which all of `known` holds, in lexicographic order.

        `given` fixes the values of some parameters. A conjunct is evaluated as soon as its last
        parameter has a value, and at most `LOOKED_AT` values are tried.
        """
        order = list(parameters)
        looked = count()

        def filled(row: Row) -> Iterator[ParameterValues]:
            if len(row) == len(order):
                yield dict(zip(order, row, strict=True))
                return
            name = order[len(row)]
            for value in [given[name]] if name in given else self.values[name]:
                if next(looked) >= LOOKED_AT:
                    return
                if _holds(known, (*row, value)):
                    yield from filled((*row, value))

        return filled(())

    # Drawn tests

    @property
    def runs(self) -> SearchStrategy[SearchStrategy[_Run]]:
        """Strategy for a choice of the shared parameters: draws a strategy for its runs."""
        return st.sampled_from(list(map(_any_run, self.domains)))

    @cached_property
    def rows(self) -> SearchStrategy[str]:
        """Strategy for the INSERT statement of an initial row."""
        named = list(dict.fromkeys((*chain(*self.values.values()), *self.named)))
        into = [
            self.given.get(name, table_rows_for(schema, named)).map(
                f"INSERT INTO {name} VALUES {{}}".format
            )
            for name, schema in self.workload.tables.items()
        ]
        return st.one_of(into)

    def litmus(self, runs: Sequence[_Run], inits: Sequence[str]) -> Litmus:
        """Return the litmus test of these runs, on tables with these rows."""
        transactions: dict[str, Statement] = {}
        clients: dict[str, ClientSettings] = {}
        sessions: dict[str, str] = {}
        times: dict[str, Times] = {}
        for k, (run, lasting) in enumerate(self._apart(runs), 1):
            for one, when in zip(run.job.statements, lasting, strict=True):
                name = next(n for n in _names(one.name) if n not in transactions)
                transactions[name], let = self._bound(one, run.values)
                times[name] = when
                if len(run.job.statements) > 1:
                    sessions[name] = f"run_{k}"
                if let or one.conf or name in sessions:
                    clients[name] = ClientSettings(
                        let=let, session=sessions.get(name), conf=one.conf
                    )
        return Litmus(
            "drawn", f"Runs of {self.workload.name}", "", self.workload.tables,
            tuple(map(self._statement, inits)), transactions, schedule_at(times, sessions),
            clients=clients, format=self.workload.format,
        )  # fmt: skip

    def later(self, part: _Run, by: int) -> _Run:
        """Return the run with its start `by` time units later."""
        (wait, early, long), *others = part.lasting
        return part._replace(lasting=((wait + by, early, long), *others))

    def ends(self, part: _Run) -> int:
        """Return the time of the commit of the last statement."""
        return max(one.end for one in part.times())

    def instead(self, part: _Run, other: _Run) -> _Run | None:
        """Return `other` at the times of `part`; None if their numbers of statements differ."""
        fits = len(part.lasting) == len(other.lasting)
        return other._replace(lasting=part.lasting) if fits else None

    # The smallest tests between two levels

    def cores(self, asked: BetweenLevels, *, least: int, most: int) -> list[SmallestTest[_Run]]:
        """Return the smallest tests that meet the constraints, those with fewest runs first.

        Raises
        ------
        IsolitmusError
            If no such test is known.
        """
        found: list[SmallestTest[_Run]] = []
        for core in self._proposed(asked, most):
            if len(core.parts) <= most:
                whole = complete_test(asked, self, core, self._first_runs(core.parts), least)
                if whole is not None:
                    found.append(whole)
        if not found:
            raise too_few_tests(asked, least)
        return sorted(found, key=lambda core: len(core.parts))

    def _proposed(self, asked: BetweenLevels, most: int) -> Iterator[SmallestTest[_Run]]:
        """Yield tests that perhaps are cores.

        For promises that ``robust`` decides, these are the runs of its counterexamples. For other
        levels, or if it has no counterexample with drawn values, a search of single statements
        finds them.
        """
        from isolitmus.jobs.robust.robustness import PROMISES

        assert asked.forbidden_by is not None
        proposed = False
        if asked.forbidden_by.name in PROMISES and all(
            a.test == "empty" for a in asked.level.axioms
        ):
            for core in self._counterexamples(asked, asked.forbidden_by.name):
                proposed = True
                yield core
        if not proposed:
            yield from self._found(asked, most)

    def _counterexamples(self, asked: BetweenLevels, promise: str) -> Iterator[SmallestTest[_Run]]:
        """Yield smallest tests that break a promise; raise IsolitmusError if it is proved."""
        from isolitmus.jobs.robust.robustness import decide_all

        jobs = {name: self._within(job) for name, job in self.workload.jobs.items()}
        within = replace(self.workload, jobs=jobs)
        budget = Budget(SECONDS)
        (answer,) = decide_all(within, (asked.level,), (promise,), budget=budget)
        if answer.word == "safe":
            raise IsolitmusError(
                f"{promise} forbids no runs of {self.workload.name} that {asked.level.name} admits:"
                " proved for all values that are drawn"
            )
        for one in answer.counterexamples:
            runs = self._runs_in(one.test, one.danger.members)
            if runs is None:
                continue
            inits = tuple(init.sql for init in one.test.init)
            if not self.given:
                yield SmallestTest(runs, inits, self._more(runs))
            else:
                yield SmallestTest(runs, tuple(samples(self.rows, SAMPLES)), self._more(runs))

    def _within(self, job: Job) -> Job:
        """Return the job with its parameters restricted to the values that are drawn."""
        known = [] if job.where is None else [job.where]
        for k, (name, type_) in enumerate(job.parameters.items()):
            known.append(In(ColumnRef(0, k, name, type_), self.values[name]))
        return replace(job, where=reduce(And, known) if known else None)

    def _runs_in(self, test: Litmus, members: Sequence[JobStatement]) -> tuple[_Run, ...] | None:
        """Return the runs to which a test's transactions belong.

        Other statements of their jobs run just before and just after. The result is None if some
        parameter values are not among those that are drawn.
        """
        times = read_times(test)
        for domain in self.domains:
            choices = {job.name: values for job, values in domain}
            runs = []
            for (name, statement), one in zip(test.transactions.items(), members, strict=True):
                let = {key: query.sql for key, query in test.client(name).let.items()}
                wanted = (statement.sql, *let.values())
                values = next(
                    (v for v in choices.get(one.job, ()) if _texts(one, v) == wanted), None
                )
                if values is not None:
                    job = self.workload.jobs[one.job]
                    place = [each.name for each in job.statements].index(one.name)
                    runs.append(_around(job, values, place, times[name]))
            if len(runs) == len(members):
                return tuple(runs)
        return None

    def _found(self, asked: BetweenLevels, most: int) -> Iterator[SmallestTest[_Run]]:
        """Yield the tests that a search of single statements finds.

        The statements have the parameter values that come first, and the rows are drawn.
        """
        known: dict[str, tuple[Job, ParameterValues]] = {}
        for job, choices in self.domains[0]:
            one = job.statements[0]
            if len(job.statements) == 1 and not one.let:
                for values in choices[: max(1, SAMPLES // len(self.domains[0]))]:
                    statement, _ = self._bound(one, values)
                    known.setdefault(statement.sql, (job, values))
        statements = list(map(self._statement, known))
        inits = [self._statement(row) for row in samples(self.rows, SAMPLES)]
        tables, form = self.workload.tables, self.workload.format
        for test in search_smallest(asked, tables, statements, inits, most, form=form):
            times = read_times(test)
            runs = tuple(
                _around(*known[one.sql], 0, times[name]) for name, one in test.transactions.items()
            )
            yield SmallestTest(runs, tuple(init.sql for init in test.init), self._more(runs))

    def _more(self, runs: Sequence[_Run]) -> SearchStrategy[_Run]:
        """Return a strategy for further runs with the shared parameter values of `runs`."""
        return _any_run(self._domain_of(runs))

    def _domain_of(self, runs: Sequence[_Run]) -> JobChoices:
        """Return the first domain that contains the job and values of each run."""
        return next(
            domain
            for domain in self.domains
            if all(any(run.job is job and run.values in v for job, v in domain) for run in runs)
        )

    def _first_runs(self, runs: Sequence[_Run]) -> Iterator[_Run]:
        """Yield the first run of each job that may be added to `runs`."""
        return (_at_once(job, choices[0]) for job, choices in self._domain_of(runs))

    def _bound(
        self, one: JobStatement, values: ParameterValues
    ) -> tuple[Statement, dict[str, Read]]:
        return bind_job_statement(one, values, self.workload.tables, self._statement)

    def _apart(self, runs: Sequence[_Run]) -> Iterator[tuple[_Run, list[Times]]]:
        """Yield the runs with their times.

        A run that must not overlap an earlier one begins when that one has ended.
        """
        placed: list[tuple[_Run, int, int]] = []
        for run in runs:
            at, before = 0, -1
            while at > before:
                lasting = list(run.times(at))
                begins, ends, before = lasting[0].start - lasting[0].early, lasting[-1].end, at
                for other, start, end in placed:
                    if not self._overlap(other, run) and begins <= end and start <= ends:
                        at = max(at, end + 1)
            placed.append((run, begins, ends))
            yield run, lasting

    def _overlap(self, a: _Run, b: _Run) -> bool:
        """Return whether two runs may overlap in time."""
        same = any(
            p in a.job.parameters and p in b.job.parameters and a.values[p] == b.values[p]
            for p in self.workload.distinct
        )
        return self.workload.overlap(a.job.name, b.job.name) and not same

    def _statement(self, sql: str) -> Statement:
        if sql not in self.read:
            self.read[sql] = read_statement(sql, self.workload.tables, opaque=True)
        return self.read[sql]


@fails_when_drawn
def jobs(
    workload: Workload | NameOrPath,
    *,
    values: Mapping[str, Sequence[Value]] | None = None,
    rows: Mapping[str, SearchStrategy[str]] | None = None,
    level: SpecLike | None = None,
    forbidden_by: SpecLike | None = None,
    least: int = 2,
    most: int = 3,
) -> SearchStrategy[Litmus]:
    """Return a strategy for litmus tests, without expectations, whose transactions are job runs.

    Each run has parameter values that satisfy the workload's conditions, and runs overlap only
    where the workload allows it. A failing example shrinks to the fewest runs and rows, of the jobs
    that come first, and prints as a litmus file.

    With ``level`` and ``forbidden_by``, the runs grow around the counterexamples of ``robust`` if
    it decides the promise, else around the tests that ``separate`` finds.

    Parameters
    ----------
    workload : Workload, str or path
        Workload, or its file or name.
    values : mapping of str to sequence, optional
        Values by parameter name. By default the values that the statements name, the neighbours of
        those in conditions, and a few others.
    rows : mapping of str to SearchStrategy, optional
        Strategy for rows by table name, as VALUES has them: ``(1, 'mon')``. By default rows of the
        same values and of those of the parameters.
    level, forbidden_by : str, path or Spec, optional
        As in ``litmus_tests``.
    least, most : int
        Least and greatest number of runs.

    Raises
    ------
    IsolitmusError
        When a test is drawn: if the workload, the values or the rows are invalid, or if no test
        that meets ``level`` and ``forbidden_by`` is known or exists.

    Examples
    --------
    >>> from hypothesis import find
    >>> tests = jobs("shop", values={"customer": [7]})
    >>> print(find(tests, lambda test: "erase" in test.transactions).transactions["erase"].sql)
    DELETE FROM orders WHERE customer = 7 AND day < DATE '2026-01-02'
    """
    jobs = as_workload(workload)
    if jobs.unread:
        raise LitmusError(f"a statement is not understood: {jobs.unread[0]}")
    own = WorkloadDomain(jobs, values or {}, rows or {})
    runs = own.runs.flatmap(lambda run: st.lists(run, min_size=least, max_size=most))
    asked = between_levels(level, forbidden_by)
    if asked is None:
        return st.builds(own.litmus, runs, st.lists(own.rows, max_size=ROWS)).map(note_overlap)
    cores = [] if asked.forbidden_by is None else own.cores(asked, least=least, most=most)
    return draw_between(asked, own, runs, cores, least=least, most=most)


def _any_run(domain: JobChoices) -> SearchStrategy[_Run]:
    """Return a strategy for a run of one of the jobs of a domain."""
    return st.one_of([_runs(job, choices) for job, choices in domain])


def _at_once(job: Job, values: ParameterValues) -> _Run:
    """Return a run that takes no time."""
    return _Run(job, values, ((0, 0, 0),) * len(job.statements))


def _around(job: Job, values: ParameterValues, place: int, times: Times) -> _Run:
    """Return a run whose statement at `place` has these times.

    The other statements run just before and just after it.
    """
    begins, early, long = FACTOR * (times.start - times.early + 1), times.early, times.long
    lasting = [(0, 0, 0)] * len(job.statements)
    lasting[place] = (0, FACTOR * early, FACTOR * long)
    if place:
        lasting[place] = (1, *lasting[place][1:])
        begins -= 1
    lasting[0] = (begins, *lasting[0][1:])
    return _Run(job, values, tuple(lasting))


def _texts(one: JobStatement, values: ParameterValues) -> tuple[str, ...]:
    """Return the texts of a statement and its client's queries, with parameter values.

    They are the texts that ``bind_job_statement`` makes.
    """
    given = {name: value for name, value in values.items() if name not in one.let}
    queries = (bind_text(query.sql, given) for query in one.let.values())
    return bind_text(one_line(one.sql), given, one.types), *queries


def _runs(job: Job, choices: Sequence[ParameterValues]) -> SearchStrategy[_Run]:
    """Return a strategy for runs of a job: parameter values, and the waits of each statement."""
    wait = st.integers(0, 5)
    lasting = st.tuples(
        *(
            st.tuples(wait, st.integers(0, 3) if one.let else st.just(0), wait)
            for one in job.statements
        )
    )
    # the same range for each job, because Hypothesis prefers smaller choices
    which = st.integers(0, MOST - 1)
    return st.builds(_Run, st.just(job), which.map(lambda k: choices[k % len(choices)]), lasting)


def _names(name: str) -> Iterator[str]:
    """Yield a name, then numbered variants of it."""
    yield name
    yield from (f"{name}_{k}" for k in count(2))


def _cast(values: Iterable[Value], type_: Type) -> tuple[Value, ...]:
    """Return the distinct values that a type can hold, cast to it."""
    found: dict[Value, None] = {}
    for value in values:
        with suppress(EvaluationError, UndeterminedError):
            found[cast_value(value, type_)] = None
    return tuple(found)


def _holds(known: Sequence[Expr], row: Row) -> bool:
    """Return whether the conditions that end at the last parameter of `row` hold.

    Conditions on further parameters are evaluated later.
    """
    with suppress(EvaluationError, UndeterminedError):
        return all(evaluate(part, (row,)) is True for part in known if _last(part) == len(row) - 1)
    return False


def _last(part: Expr) -> int:
    """Return the index of the last parameter in a condition."""
    return max((c.index for c in walk(part) if isinstance(c, ColumnRef)), default=0)
