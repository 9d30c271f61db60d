"""Examples of aborts: litmus tests in which one statement aborts because another one commits first.

A solver proposes parameters and rows for each exception. Which exception a commit check raises
first, and the outcome of a retry, depend on the other rows of the files: a file that keeps a row is
rewritten, and counts as an added file. So each proposal is executed with more rows beside it. There
is one for each way in which the two statements may match a row of the same partition, in the same
file as the others and in a file of its own.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.jobs.predict.pair_formulas import AbortExample
from isolitmus.jobs.questions.counterexamples import (
    CounterexampleDraft,
    Proposal,
    executed_part,
    proposal_of,
    value_of,
)
from isolitmus.jobs.questions.instances import value_bounds
from isolitmus.jobs.questions.pair_prediction import COMMITS, FAILS, NO_OP
from isolitmus.jobs.questions.query_witnesses import unconfirmed_rows
from isolitmus.jobs.questions.simple_examples import assert_softly
from isolitmus.jobs.questions.solver import LimitedSolver
from isolitmus.jobs.templates.expression_formulas import NoValue
from isolitmus.jobs.templates.statement_template import are_equal, are_in_one_partition
from isolitmus.model.errors import Disagreement, IsolitmusError, UndeterminedError
from isolitmus.model.litmus import Expectation
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.statement import Insert, Merge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from isolitmus.jobs.predict.pair_formulas import PairFormulas
    from isolitmus.jobs.questions.instances import Participant
    from isolitmus.jobs.questions.simple_examples import QuestionSolver
    from isolitmus.jobs.questions.solver import Solution
    from isolitmus.jobs.templates.expression_formulas import RowTerm
    from isolitmus.jobs.templates.statement_template import SourceRow
    from isolitmus.model.execution import Event, Execution
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.values import Row

MODELS = 4
"""Maximum number of solver models that are executed for one exception."""
TESTS = 150
"""Maximum number of initial tables of the first model that are executed to find its exception."""
MORE_TESTS = 50
"""The same for each later model: of 245 examples none was found after more."""
UNDETERMINED = 20
"""Number of tests in a row without a known outcome, for one reason, after which no more follow."""


class AbortExamples:
    """Search for executions in which one statement aborts because another one commits first."""

    def __init__(self, formulas: PairFormulas, asked: QuestionSolver, protocol: Spec) -> None:
        self.formulas = formulas
        self.instances = formulas.cast
        self.wanted = formulas.of_examples
        self.asked = asked
        self.loser, self.winner = asked.roles
        self.protocol = protocol
        self.found: dict[str, AbortExample] = {}
        self.why = ""
        """Reason why the last test that did not abort is no example."""
        self.roles = (self.loser, self.winner)
        self._done: set[tuple[object, ...]] = set()
        self._undetermined: list[str] = []

    @property
    def schedule(self) -> str:
        """Schedule of a test: the loser starts, the winner runs and commits, the loser commits."""
        return f"{self.loser.name}.start {self.winner.name} {self.loser.name}.commit"

    def look_for(self, exception: str, stop: Any) -> None:
        """Execute models of the solver until one aborts with the exception, and its retry.

        The values with which another pair of the same shapes aborted are tried first.
        """
        if exception in self.found:
            return
        first = self.formulas.found.get(exception)
        self._undetermined = []
        if first is not None and self._are_possible(first.proposal):
            self._execute_tables(first.proposal, exception, TESTS)
        known = self.found.get(exception)
        if known is not None and first is not None and known.size == first.size:
            return
        self.found.pop(exception, None)
        found = self._search(exception, stop)
        if known is not None and (found is None or known.size < found.size):
            self.found[exception] = known

    def _search(self, exception: str, stop: Any) -> AbortExample | None:
        """Execute models of the solver until one aborts with the exception."""
        more: list[Any] = []
        for k in range(MODELS):
            apart = bool(k or self.found)
            model = self._model(stop, *more, apart=apart, declared=k % 2 == 0)
            if not more and model is not None and model.has(self.wanted.goes):
                model = self._in_tests(stop, more, apart=apart)
            if model is None:
                break
            self._execute_model(model, exception, MORE_TESTS if k else TESTS)
            if exception in self.found or self._is_undetermined:
                break
            values = [t for role in self.roles for t in role.terms.parameters.values()]
            if values:
                more.append(model.others(values))
            elif k:
                break
        return self.found.get(exception)

    def _model(self, *parts: Any, apart: bool, declared: bool) -> Solution | None:
        """Return a model of formulas, if possible on tables as they were declared, or on others."""
        busy = self.wanted.busy
        if any(role.instance.header.varies for role in self.roles):
            ways = self.wanted.as_declared, self.wanted.as_altered
            for way in ways if declared else reversed(ways):
                found = self.asked.example(*parts, way, wanted=busy, apart=apart)
                if found is not None:
                    return found
        return self.asked.example(*parts, wanted=busy, apart=apart)

    def _in_tests(self, stop: Any, more: list[Any], *, apart: bool) -> Solution | None:
        """Return a model with which a removed file is read in a test; add its formula to `more`.

        If there is none, the exception may have another reason than this file.
        """
        may = self.wanted.goes_in_tests
        for formula in (may, self.asked.z3.Implies(self.wanted.goes, may)):
            model = self.asked.example(stop, formula, wanted=self.wanted.busy, apart=apart)
            if model is not None:
                more.append(formula)
                return model
        return None

    def _are_possible(self, proposal: Proposal) -> bool:
        """Return whether the statements may have these parameters."""
        term = self.instances.codes.term
        with self.formulas.aside():
            given = [
                role.terms.parameters[name].null
                if value is None
                else self.asked.z3.And(
                    self.asked.z3.Not(role.terms.parameters[name].null),
                    role.terms.parameters[name].value == term(value),
                )
                for role, values in zip(self.roles, proposal.parameters, strict=True)
                for name, value in values.items()
            ]
            return self.asked.possible(*given) is True

    def retries(self, exception: str, stop: Any) -> tuple[str, ...]:
        """Return possible outcomes of a retry: not proved impossible, or failures observed."""
        ends = []
        if self.asked.possible(stop, self.wanted.finds_rows) is not False:
            ends.append(COMMITS)
        if self.asked.possible(stop, self.wanted.finds_no_row) is not False:
            ends.append(NO_OP)
        if self.found[exception].fails:
            ends.append(FAILS)
        return tuple(ends)

    def expecting(self, exception: str) -> Litmus:
        """Return the smallest test with this exception, which expects its own outcome."""
        test = self.found[exception].test
        ended = observed_run(test, self.found[exception].run, self.protocol.name)
        outcome = {name: (done.outcome,) for name, done in ended.transactions.items()}
        name = f"{self.loser.statement.name}-by-{self.winner.statement.name}"
        expect = {self.protocol.name: Expectation(outcome=outcome)}
        return replace(test, name=name, expect=expect)

    def unshown(self, exception: str) -> tuple[str, ...]:
        """Return the tables that stand for queries of which it is not shown that they return the
        rows of the smallest test with this exception.
        """
        found = self.found[exception]
        names = [role.name for role in self.roles]
        parameters = dict(zip(names, found.proposal.parameters, strict=True))
        start = found.run.states[0]
        needed = unconfirmed_rows(self.instances.workload, found.test, parameters, start)
        return tuple(one.table for one in needed)

    @property
    def _is_undetermined(self) -> bool:
        """True if the last tests have no known outcome, for one reason."""
        return len(self._undetermined) >= UNDETERMINED

    def _execute_model(self, model: Solution, exception: str, most: int) -> None:
        """Execute the values of a model, with more rows beside them."""
        late: Callable[[], Sequence[tuple[str, Row]]] | None = partial(self._rows_beside, model)
        try:
            with self.formulas.aside():
                proposal = proposal_of(self.instances, model, self.roles)
                file = tuple(dict.fromkeys(self._file(model)))
            if self.formulas.shared:  # other pairs need the whole proposal
                proposal, late = replace(proposal, beside=self._rows_beside(model)), None
        except Disagreement:
            raise
        except (NoValue, IsolitmusError) as problem:
            self.why = str(problem).partition("\n")[0]
            return
        self._execute_tables(replace(proposal, file=file), exception, most, late)

    def _rows_beside(self, model: Solution) -> tuple[tuple[str, Row], ...]:
        """Return more rows beside the relevant ones, each once."""
        with self.formulas.aside():
            return tuple(dict.fromkeys(self._beside(model)))

    def _file(self, model: Solution) -> Iterator[tuple[str, Row]]:
        """Yield the relevant rows of a file that goes, if the model has one."""
        if model.has(self.wanted.goes):
            own = {id(row) for _, row in self.wanted.file}
            for table, row in model.rows:
                if id(row) in own:
                    with suppress(NoValue):
                        yield table, self._values(model, table, row)

    def _execute_tables(
        self,
        proposal: Proposal,
        exception: str,
        most: int,
        beside: Callable[[], Sequence[tuple[str, Row]]] | None = None,
    ) -> None:
        """Execute tables with the rows that are needed, then with more rows, the smallest first."""
        title = f"{self.loser.name} conflicts with {self.winner.name}"
        try:
            stage = CounterexampleDraft(self.instances, proposal, self.roles, self.schedule, beside)
            for test in stage.tests(title, most):
                self._execute(test, proposal)
                if exception in self.found or self._is_undetermined:
                    return
        except Disagreement:
            raise
        except (NoValue, IsolitmusError) as problem:
            self.why = str(problem).partition("\n")[0]

    def _execute(self, test: Litmus, proposal: Proposal) -> None:
        """Execute a test, and its retry if the loser aborts; each once."""
        key = executed_part(test)
        if key in self._done:
            return
        self._done.add(key)
        try:
            run, ended = self._ended(test)
        except UndeterminedError as problem:
            self.why = problem.problem
            if self.why not in self._undetermined:
                self._undetermined = []
            self._undetermined.append(self.why)
            return
        except Disagreement:
            raise
        except IsolitmusError as problem:
            self.why = str(problem).partition("\n")[0]
            return
        self._undetermined = []
        if ended is not None and ended.conflict is not None:
            found = self.found.setdefault(ended.conflict, AbortExample(test, run, proposal))
            found.fails |= self._retry_fails(test)

    def _ended(self, test: Litmus) -> tuple[Execution, Event | None]:
        """Return the execution of a test, and the event of the loser; None if the winner did not
        commit.
        """
        run = execute(test, self.protocol)
        events = {event.name: event for event in run.events}
        winner = events.get(self.winner.name)
        return run, None if winner is None or winner.aborted else events.get(self.loser.name)

    def _retry_fails(self, test: Litmus) -> bool:
        """Return whether the loser fails if it starts after the winner has committed."""
        words = f"{self.winner.name} {self.loser.name}"
        again = replace(test, schedule=Schedule.parse(words, test.transactions))
        try:
            _, ended = self._ended(again)
        except Disagreement:
            raise
        except IsolitmusError:
            return True
        return ended is None or ended.effect.error is not None

    def _beside(self, model: Solution) -> Iterator[tuple[str, Row]]:
        """Yield more rows of the table that both write to, in the partition of a relevant row.

        There is one for each way in which the two statements may match it, with rows of other
        tables that it needs.
        """
        schema = self.winner.instance.template.target
        if schema is None or self.loser.instance.template.target != schema:
            return
        z3, terms = self.asked.z3, self.loser.terms
        first = next((row for table, row in model.rows if table == schema.name), None)
        row = terms.row(schema, f"{schema.name} beside")
        told = [*self._as_in(model), *(role.domain for role in self.roles)]
        if first is not None:
            told += self._fixed(model, first)
            told += [
                are_in_one_partition(terms, schema, row, first),
                z3.Not(are_equal(terms, row, first)),
            ]
        known = [len(role.terms.rows) for role in self.roles]
        applied = [len(role.terms.applications) for role in self.roles]
        sources = [(table, one) for table, one in model.rows if table != schema.name]
        for _, source in sources:
            told += self._fixed(model, source)
        matches = [
            (self._spares(role, row, sources), self._matches(role, row)) for role in self.roles
        ]
        others = [
            one
            for role, many in zip(self.roles, known, strict=True)
            for one in role.terms.rows[many:]
            if one[0] != schema.name
        ]
        samples = [
            sampled
            for role, many in zip(self.roles, applied, strict=True)
            for one in role.terms.applications[many:]
            if (sampled := role.sampled(one)) is not None
        ]
        # a source row of this row's own leaves the first one as it is
        unpaired = [] if first is None else _unpaired(self.roles, first, others)
        solver = LimitedSolver()
        solver.tell(*value_bounds(self.roles), *told)
        own = {term.value.get_id() for some in (row, *(one for _, one in others)) for term in some}
        usual = [u for v in terms.values if v.value.get_id() in own for u in v.usual]
        merges = [
            role for role in self.roles if isinstance(role.instance.template.statement, Merge)
        ]
        known_kinds: set[object] = set()
        for ways in product(*matches):
            sparing = [
                role
                for role, way, (spared, _) in zip(self.roles, ways, matches, strict=True)
                if way is spared
            ]
            wishes = [
                *samples,
                *unpaired,
                *_unpaired(sparing, row, [*sources, *others]),
                *(z3.Not(term.null) for term in row),
                *usual,
            ]
            with solver.within(*ways):
                if not solver.possible():
                    continue
                assert_softly(solver, wishes)
                if not solver.possible():
                    continue
                found = solver.model
            with suppress(NoValue):
                values = self._values(found, schema.name, row)
                yield schema.name, values
                for table, source in others:
                    paired = tuple(
                        not found.has(one) for one in _unpaired(merges, row, [(table, source)])
                    )
                    # of source rows that are paired alike with one row, one is enough
                    kind = (table, paired, values if any(paired) else ()) if merges else source
                    if kind not in known_kinds:
                        known_kinds.add(kind)
                        yield table, self._values(found, table, source)

    def _values(self, model: Solution, table: str, row: RowTerm) -> Row:
        """Return the values of a row in a model."""
        columns = self.instances.workload.tables[table].columns
        return tuple(
            value_of(self.instances.codes, model, term, column.type)
            for term, column in zip(row, columns, strict=True)
        )

    def _as_in(self, model: Solution) -> Iterator[Any]:
        """Yield formulas: the parameters are those of a model."""
        for role in self.roles:
            yield from self._fixed(model, tuple(role.terms.parameters.values()))

    def _fixed(self, model: Solution, terms: RowTerm) -> Iterator[Any]:
        """Yield formulas: values are those of a model."""
        for term in terms:
            yield from model.fixed(term)

    def _matches(self, role: Participant, row: RowTerm) -> Any:
        """Return the formula that a statement reads, removes or changes the row."""
        template = role.instance.template
        target = template.target
        reads = [
            read.matches(row)
            for read in role.instance.reads
            if target is not None and read.table == target.name and not read.outside
        ]
        return self.asked.z3.Or(*reads, template.removes(row))

    def _spares(self, role: Participant, row: RowTerm, sources: Sequence[SourceRow]) -> Any:
        """Return the formula that a statement does not remove or change the row.

        A MERGE with WHEN MATCHED changes no row that these rows of other tables leave unpaired.
        """
        if isinstance(role.statement.statement, Insert) and not role.statement.statement.overwrite:
            return self.asked.z3.Not(self._matches(role, row))
        template = role.instance.template
        kept = template.keeps(row)
        if isinstance(template.statement, Merge) and template.statement.matched:
            return self.asked.z3.And(kept, *_unpaired([role], row, sources))
        return kept


def _unpaired(
    roles: Iterable[Participant], row: RowTerm, sources: Sequence[SourceRow]
) -> list[Any]:
    """Return formulas that MERGEs pair a row with none of these rows of other tables."""
    templates = [role.instance.template for role in roles]
    return [
        one.z3.Not(one.paired_with(row, table, source))
        for one in templates
        for table, source in sources
    ]
