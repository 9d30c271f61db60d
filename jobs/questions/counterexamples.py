"""Counterexamples of workloads: proposed by a solver, executed, judged.

A solver's model becomes a litmus test with the parameters and rows that it needs. Only the
execution of the test and its verdict decide: a counterexample is a run that the promised level
forbids.

Conflicts may forbid a run whose results some serial order explains (docs/semantics.md, 3.2), for
example if a row was inserted and deleted without being seen. A proof is about conflicts, and so
about all results. Each counterexample says whether its results violate the promise as well.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, count, islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.checker.execution.run_result import run
from isolitmus.jobs.questions.query_witnesses import unconfirmed_rows
from isolitmus.jobs.sql.job_binding import bind_job_statement
from isolitmus.jobs.templates.expression_formulas import NoValue
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.litmus import ClientSettings, Expectation, Litmus
from isolitmus.model.run import same_bag
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.expression import Parameter
from isolitmus.model.sql.statement import Optimize, Read, Restore
from isolitmus.model.sql.types import is_opaque
from isolitmus.model.sql.values import literal, sort_rows
from isolitmus.model.verdict import Forbidden
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import level
from isolitmus.specs.sql.definitions import restored_version
from isolitmus.specs.sql.parameters import bound_literals, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.jobs.questions.cycle_patterns import CyclePattern, PatternQuestion
    from isolitmus.jobs.questions.instances import Instances, Participant
    from isolitmus.jobs.questions.solver import Solution
    from isolitmus.jobs.templates.expression_formulas import Codes, ValueTerm
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row, Value

OF_THE_LOG = "log-serializable"
OF_WRITERS = "write-serializable"


@dataclass(frozen=True, slots=True)
class Counterexample(ReadableRepr):
    """An executed run that violates a promise."""

    danger: CyclePattern
    """Cycle pattern: the statements and their dependencies."""
    test: Litmus
    """Smallest test that was found."""
    serial: tuple[str, ...]
    """Serial orders that produce the final table; empty if none does."""
    explained: tuple[str, ...] = ()
    """Serial orders whose results keep the promise; if there are any, only conflicts forbid the
    run.
    """
    nulls: tuple[str, ...] = ()
    """Parameters that are NULL in the test, in words."""
    unshown: tuple[str, ...] = ()
    """Tables that stand for queries of which it is not shown that they return the rows of the test.
    """

    def __repr__(self) -> str:
        return f"{self.danger.schedule}: {'; '.join(self.serial) or 'no serial order'}"


def keeping_orders(promise: str, judged: RunResult) -> tuple[str, ...]:
    """Return the serial orders by which the results of a run keep a promise that its conflicts
    violate.

    For write-serializable: the orders that produce the final table. For update-serializable with
    readers: those in which all reads are the same, or the log's order as for log-serializable,
    which implies it. For log-serializable: that of the log, if it produces every version.

    >>> from isolitmus.checker import run
    >>> from isolitmus.specs import litmus, protocol
    >>> done = run(litmus("came-and-went"), protocol("delta-write-serializable"))
    >>> keeping_orders("write-serializable", done), str(done.levels["write-serializable"])
    (('insert delete count',), 'forbidden')
    """
    reading = any(isinstance(one, Read) for one in judged.litmus.transactions.values())
    if promise == OF_WRITERS or (promise != OF_THE_LOG and not reading):
        return judged.serial.orders
    one = judged.explained.get(promise)
    if one is not None and (one.reads or (promise == OF_THE_LOG and one.versions)):
        return tuple(map(" ".join, one.orders))
    return () if promise == OF_THE_LOG else keeping_orders(OF_THE_LOG, judged)


def null_parameters(danger: CyclePattern, test: Litmus) -> Iterator[str]:
    """Yield the parameters that are NULL in a test of a pattern, such as load's :day."""
    for statement, name in zip(danger.members, danger.names, strict=True):
        given = [one for one in statement.types if one not in statement.let]
        text = one_line(statement.sql)
        literals = bound_literals(text, test.transactions[name].sql, given) or {}
        for parameter, value in literals.items():
            if parameter in given and NULL.fullmatch(value):
                yield f"{name}'s {Parameter(parameter, statement.types[parameter])}"


NULL = re.compile(r"NULL|CAST\(NULL AS .*\)")
MOST = 3
"""Maximum number of relevant rows in an initial table."""
FEW = 2
"""Maximum number of irrelevant rows in an initial table."""
TESTS = 25
"""Maximum number of initial tables that are tried for one model of the solver."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Values of a test: parameters of its participants, and initial rows, each with its table."""

    parameters: tuple[Mapping[str, Value], ...]
    rows: tuple[tuple[str, Row], ...]
    beside: tuple[tuple[str, Row], ...] = ()
    """Rows that are not needed for the dependencies."""
    file: tuple[tuple[str, Row], ...] = ()
    """Rows that have to be in one file, without others."""
    alterations: tuple[tuple[str, bool], ...] = ()
    """Statements that alter tables before the test, each with whether its table loses its rows."""


def proposal_of(instances: Instances, model: Solution, roles: Sequence[Participant]) -> Proposal:
    """Return the values of a model, without rows that no values can express.

    Raises
    ------
    NoValue
        If a parameter has no value.
    """
    codes = instances.codes
    found: dict[tuple[str, Row], None] = {}
    parameters = tuple(values_of(codes, model, role) for role in roles)
    for table, row in model.rows:
        columns = instances.workload.tables[table].columns
        with suppress(NoValue):
            values = tuple(
                value_of(codes, model, term, column.type)
                for term, column in zip(row, columns, strict=True)
            )
            found[table, values] = None
    altered: dict[str, Sequence[tuple[str, bool]]] = {}
    for role in reversed(roles):  # the last one to commit starts first
        target, header = role.instance.template.target, role.instance.header
        if target is not None and header.varies and target.name not in altered:
            altered[target.name] = header.alterations_to(int(model.value(header.state)))
    alterations = tuple(one for some in altered.values() for one in some)
    return Proposal(parameters, tuple(found), alterations=alterations)


class CounterexampleDraft:
    """Values for some participants, and their schedule.

    With `beside`, the rows that are not needed are those that it returns: it is called when the
    tests without them are exhausted.
    """

    def __init__(
        self,
        cast: Instances,
        proposal: Proposal,
        roles: Sequence[Participant],
        schedule: str,
        beside: Callable[[], Sequence[tuple[str, Row]]] | None = None,
    ) -> None:
        self.cast = cast
        self.proposal = proposal
        self.roles = roles
        self.schedule = schedule
        self.beside = beside

    @property
    def values(self) -> dict[str, Mapping[str, Value]]:
        """Parameters of each participant, by its name."""
        return {
            role.name: values
            for role, values in zip(self.roles, self.proposal.parameters, strict=True)
        }

    def tests(self, title: str, most: int = TESTS) -> Iterator[Litmus]:
        """Yield litmus tests with the proposed parameters, those with few initial rows first."""
        transactions, clients = self._transactions()
        schedule = Schedule.parse(self.schedule, transactions)
        altered = self.proposal.alterations
        last = max((k for k, (_, replaces) in enumerate(altered, 1) if replaces), default=0)
        first, then = (
            tuple(self.cast.read(sql) for sql, _ in some)
            for some in (altered[:last], altered[last:])
        )
        for some in islice(self._starts(), most):
            for inits, made in self._restored((*first, *some, *then), transactions):
                ordered = self._in_file_order(inits)
                yield Litmus(
                    "example", title, "", self._tables(inits), ordered, made, schedule,
                    clients=clients, format=self.cast.workload.format,
                )  # fmt: skip

    def _in_file_order(self, inits: Iterable[Statement]) -> tuple[Statement, ...]:
        """Return statements that fill tables in the order of a litmus file: table by table."""
        order = {name: k for k, name in enumerate(self.cast.workload.tables)}
        return tuple(sorted(inits, key=lambda one: order.get(getattr(one, "target", ""), 0)))

    def _tables(self, inits: Sequence[Statement]) -> dict[str, Schema]:
        """Return the tables that a test needs, as the workload declares them."""
        schemas = self.cast.workload.tables
        if len(schemas) == 1:
            return dict(schemas)
        named = {one.target for one in inits if not isinstance(one, Read)}
        for role in self.roles:
            statement = role.statement
            for one in (statement.statement, *statement.let.values()):
                named |= {access.table for access in accesses(one, schemas)}
                named |= set() if isinstance(one, Read) else {one.target}
        return {name: schema for name, schema in schemas.items() if name in named}

    def _restored(
        self, inits: tuple[Statement, ...], transactions: dict[str, Statement]
    ) -> Iterator[tuple[tuple[Statement, ...], dict[str, Statement]]]:
        """Yield initial tables and transactions in which RESTORE has an earlier version.

        It is the last one before some statement, the first one, or one with a row that is deleted.
        """
        restored = sorted({o.target for o in transactions.values() if isinstance(o, Restore)})
        if not restored:
            yield inits, transactions
            return
        before, erased = zip(*map(self._erased_row, restored), strict=True)
        more = self._in_file_order((*before, *inits))
        more_erased = self._in_file_order((*more, *erased))
        earlier = {table: _versions_of(table, more) for table in restored}
        ways: list[tuple[tuple[Statement, ...], dict[str, int]]] = []
        for end in (-1, 0) if all(earlier.values()) else ():
            way = more, {table: own[end] for table, own in earlier.items()}
            ways += [way] if way not in ways else []
        last = {table: _versions_of(table, more_erased)[-1] for table in restored}
        for some, version in (*ways, (more_erased, last)):
            yield (
                some,
                {
                    name: self.cast.read(restored_version(one.target, version[one.target]))
                    if isinstance(one, Restore)
                    else one
                    for name, one in transactions.items()
                },
            )

    def _erased_row(self, table: str) -> tuple[Statement, Statement]:
        """Return an INSERT of a row in the partition of a needed one, and the DELETE of it."""
        schema = self.cast.workload.tables[table]
        own = (values for name, values in self.proposal.rows if name == table)
        row = list(next(own, (None,) * len(schema.columns)))
        free = [k for k in schema.shown if k not in schema.partition_indexes]
        where = ""
        if free:
            row[free[0]] = None
            where = f" WHERE {schema.columns[free[0]].name} IS NULL"
        values = ", ".join(map(literal, row))
        return (
            self.cast.read(f"INSERT INTO {table} VALUES ({values})"),
            self.cast.read(f"DELETE FROM {table}{where}"),
        )

    def _starts(self) -> Iterator[tuple[Statement, ...]]:
        """Yield initial tables, each once, few rows first."""
        needed = min(MOST, len(self.proposal.rows))
        enough = max(needed, len(self.proposal.file) + 1)
        seen: set[tuple[str, ...]] = set()
        for many in count():
            if many > enough and many > needed + min(FEW, len(self._others)):
                return
            for way in chain(self._with_file(many), self._with_rows(many, needed)):
                key = tuple(one.sql for one in way)
                if key not in seen:
                    seen.add(key)
                    yield way

    @cached_property
    def _others(self) -> list[tuple[str, Row]]:
        """Rows that are not needed."""
        beside = self.proposal.beside if self.beside is None else self.beside()
        return [row for row in beside if row not in self.proposal.rows]

    def _with_file(self, many: int) -> Iterator[tuple[Statement, ...]]:
        """Yield the tables of this many rows with those that have to be in one file.

        The file is alone, or a file with another row is beside it.
        """
        file = self.proposal.file
        if not file or many not in (len(file), len(file) + 1):
            return
        others = self._others if many > len(file) else ()
        rows = [row for row in (*self.proposal.rows, *others) if row not in file]
        for other in combinations(rows, many - len(file)):
            yield (*self._inits(file, together=True), *self._inits(other, together=True))

    def _with_rows(self, many: int, needed: int) -> Iterator[tuple[Statement, ...]]:
        """Yield the tables of this many rows, of which at most ``needed`` are needed ones."""
        statements = [role.statement.statement for role in self.roles]
        compacted = {one.target for one in statements if isinstance(one, Optimize)}
        for more in range(max(0, many - needed), min(FEW, many) + 1):
            others = self._others if more else []
            for some, besides in product(
                combinations(self.proposal.rows, many - more), combinations(others, more)
            ):
                yield from self._ways(some, besides, compacted)

    def _ways(
        self,
        some: tuple[tuple[str, Row], ...],
        besides: tuple[tuple[str, Row], ...],
        compacted: set[str],
    ) -> Iterator[tuple[Statement, ...]]:
        """Yield the layouts of these rows: in one file, in one file per row, in two files."""
        every = (*some, *besides)
        together = tuple(self._inits(every, together=True))
        yield together
        yield tuple(self._inits(every, together=False))
        if some and besides:
            yield (*self._inits(some, together=True), *self._inits(besides, together=True))
        if again := [row for row in every if row[0] in compacted]:
            yield (*together, *self._inits(again, together=True))

    def _transactions(self) -> tuple[dict[str, Statement], dict[str, ClientSettings]]:
        """Return the statements with the model's parameter values, and their client settings."""
        transactions: dict[str, Statement] = {}
        clients: dict[str, ClientSettings] = {}
        for role, values in zip(self.roles, self.proposal.parameters, strict=True):
            transactions[role.name], queries = bind_job_statement(
                role.statement, values, self.cast.workload.tables, self.cast.read
            )
            if queries or role.statement.conf:
                clients[role.name] = ClientSettings(let=queries, conf=role.statement.conf)
        return transactions, clients

    def _inits(self, rows: Sequence[tuple[str, Row]], *, together: bool) -> Iterator[Statement]:
        """Yield INSERT statements of initial rows: one per table if ``together``, else per row."""
        by_table: dict[str, list[Row]] = {}
        for table, row in rows:
            made = self.cast.workload.tables[table].with_generated_values(row)
            by_table.setdefault(table, []).append(made)
        for table, some in by_table.items():
            lists = [sort_rows(some)] if together else [(row,) for row in sort_rows(some)]
            for each in lists:
                yield self.cast.insert(table, each)


def _versions_of(table: str, inits: Sequence[Statement]) -> list[int]:
    """Return the numbers of the statements that write a table, from 1, but for the last one."""
    return [
        number
        for number, one in enumerate(inits, 1)
        if not isinstance(one, Read) and one.target == table
    ][:-1]


def executed_part(test: Litmus) -> tuple[object, ...]:
    """Return the executed part of a test: all but its title and its expectations."""
    queries = [(name, *(q.sql for q in one.let.values())) for name, one in test.clients.items()]
    statements = [(name, one.sql) for name, one in test.transactions.items()]
    return tuple(one.sql for one in test.init), *statements, str(test.schedule), *queries


def values_of(codes: Codes, model: Solution, role: Participant) -> dict[str, Value]:
    """Return the parameter values of a participant in a model.

    Raises
    ------
    NoValue
        If a parameter has no value.
    """
    types = role.statement.types
    return {
        p: value_of(codes, model, role.terms.parameters[p], type_) for p, type_ in types.items()
    }


def value_of(codes: Codes, model: Solution, term: ValueTerm, type_: Any) -> Value:
    """Return the value of a term in a model."""
    # a value of opaque type is written as NULL; the execution of the test judges that choice
    if model.has(term.null) or is_opaque(type_):
        return None
    found = model.value(term.value)
    return found if isinstance(found, bool) else codes.value(found, type_)


MODELS = 3
"""Maximum number of solver models that are executed for one way of a pattern."""
WAYS = 2
"""Maximum number of ways tried for a counterexample without serial explanation, after a first one.
"""
IN_VAIN = 80
"""Number of tests of a pattern without a counterexample after which no more follow: of 124
counterexamples, none was found after more than 30.
"""
STRONGEST = "log-serializable"
"""Promise that implies the others."""


class _PatternRun(NamedTuple):
    """Run of a pattern, with the parameters of each transaction."""

    danger: CyclePattern
    values: Mapping[str, Mapping[str, Value]]
    judged: RunResult


class CounterexampleCheck:
    """Tests of a workload's patterns under a protocol; each is executed once."""

    def __init__(self, instances: Instances, protocol: Spec) -> None:
        self.instances = instances
        self.protocol = protocol
        self._broken: dict[tuple[object, ...], RunResult | None] = {}
        self.defects: dict[tuple[object, ...], Disagreement] = {}
        """Tests on which two results differ that must agree, by the key of their pattern."""
        self._runs: dict[tuple[object, ...], _PatternRun] = {}
        self._tests = 0

    def shown(self, question: PatternQuestion, promise: str) -> Counterexample | None:
        """Return a run that the promise forbids, preferably one that no serial order explains."""
        best: Counterexample | None = None
        self._tests = 0
        for way, wanted in enumerate(question.ways):
            if best is not None and way >= WAYS:
                break
            assert question.asked is not None
            more: list[Any] = []
            for k in range(MODELS if best is None else 2):
                if best is None and self._tests >= IN_VAIN:
                    return None
                model = question.asked.example(*wanted, *more, apart=k > 0)
                if model is None:
                    break
                found = self._carried_out(question, model, promise)
                if found is not None and not found.explained:
                    return found
                best = best or found
                values = [t for m in question.members for t in m.terms.parameters.values()]
                if values:
                    more.append(model.others(values))
                elif k:
                    break
        return best

    def breaking(self, promise: str) -> Iterator[Counterexample]:
        """Yield the runs judged so far that violate a promise, one for each pattern.

        A run that no serial order explains is preferred.
        """
        best: dict[tuple[object, ...], Counterexample] = {}
        for one in list(self._runs.values()):
            found = best.get(one.danger.key)
            if found is None or found.explained:
                shown = self._breaks(one, promise)
                if shown is not None and (found is None or not shown.explained):
                    best[one.danger.key] = shown
        yield from best.values()

    def _carried_out(
        self, question: PatternQuestion, model: Any, promise: str
    ) -> Counterexample | None:
        """Return a counterexample of a model, preferably one without a serial order, or None."""
        danger = question.danger
        best: Counterexample | None = None
        try:
            proposal = proposal_of(self.instances, model, question.members)
            stage = CounterexampleDraft(self.instances, proposal, question.members, danger.schedule)
            for test in stage.tests(" and ".join(danger.names)):
                self._tests += 1
                found = self._counterexample(test, danger, stage.values, promise)
                if found is not None and not found.explained:
                    return found
                best = best or found
        except Disagreement as defect:
            self.defects.setdefault(danger.key, defect)
        except (NoValue, IsolitmusError):
            pass
        return best

    def _counterexample(
        self,
        test: Litmus,
        danger: CyclePattern,
        values: Mapping[str, Mapping[str, Value]],
        promise: str,
    ) -> Counterexample | None:
        """Return the test as a counterexample, if the promise forbids its run."""
        try:
            judged = self._judged(test)
        except Disagreement as defect:
            self.defects.setdefault(danger.key, defect)
            return None
        except IsolitmusError:
            return None
        if judged is None:
            return None
        done = _PatternRun(danger, values, judged)
        self._runs.setdefault((danger.key, *executed_part(test)), done)
        return self._breaks(done, promise)

    def _breaks(self, done: _PatternRun, promise: str) -> Counterexample | None:
        """Return a run as a counterexample, if the promise forbids it."""
        danger, judged = done.danger, done.judged
        test = judged.litmus
        try:
            if not isinstance(judged.verdict(level(promise)), Forbidden):
                return None
            serial, explained = judged.serial.orders, keeping_orders(promise, judged)
        except Disagreement as defect:
            self.defects.setdefault(danger.key, defect)
            return None
        except IsolitmusError:
            return None
        outcome = {name: (t.outcome,) for name, t in judged.run.transactions.items()}
        expect = {self.protocol.name: Expectation(outcome=outcome, fails=(promise,))}
        title = f"{' and '.join(danger.names)}: not {promise}"
        shown = replace(test, name="-".join(danger.names), title=title, expect=expect)
        if printed_test_problem(shown, self.protocol) is not None:
            return None
        nulls = tuple(null_parameters(danger, test))
        assert judged.execution is not None, "the model's own run"
        start = judged.execution.states[0]
        needed = unconfirmed_rows(self.instances.workload, test, done.values, start)
        unshown = tuple(dict.fromkeys(one.table for one in needed))
        return Counterexample(danger, shown, serial, explained, nulls, unshown)

    def _judged(self, test: Litmus) -> RunResult | None:
        """Return the run of a test if all transactions commit and it violates the strongest
        promise.
        """
        key = executed_part(test)
        if key not in self._broken:
            self._broken[key] = None
            judged = run(test, self.protocol)
            ended = judged.run.transactions.values()
            if not any(t.aborted or t.outcome.startswith("error") for t in ended) and isinstance(
                judged.verdict(level(STRONGEST)), Forbidden
            ):
                self._broken[key] = judged
        return self._broken[key]


def printed_test_problem(test: Litmus, spec: Spec) -> str | None:
    """Return why the text of a test does not have the outcomes and tables that it expects.

    None if it has them.

    Parameters
    ----------
    test : Litmus
        Test with the outcomes that it expects under the protocol.
    spec : Spec
        The commit protocol.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from isolitmus.model.litmus import Expectation
    >>> from isolitmus.specs import litmus, protocol
    >>> spec, test = protocol("delta-serializable"), litmus("reorder")
    >>> for outcome in ("committed", "no-op"):
    ...     expect = {spec.name: Expectation(outcome={"insert": (outcome,)})}
    ...     print(printed_test_problem(replace(test, expect=expect), spec))
    None
    the text of the example ends otherwise: insert committed
    """
    expected = test.expect[spec.name]
    try:
        printed = read_litmus(str(test), test.name)
        assert isinstance(printed, Litmus), "a test on tables"
        ended = observed_run(printed, execute(printed, spec), spec.name)
    except Disagreement:
        raise
    except IsolitmusError as problem:
        return f"the text of the example is not executed: {str(problem).partition(chr(10))[0]}"
    for name, outcomes in expected.outcome.items():
        if ended.transactions[name].outcome not in outcomes:
            return (
                f"the text of the example ends otherwise: {name} {ended.transactions[name].outcome}"
            )
    for table, rows in (expected.tables or {}).items():
        if not same_bag(ended.versions[-1][table], rows):
            return f"the text of the example ends with another table {table}"
    return None
