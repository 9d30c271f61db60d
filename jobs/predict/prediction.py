"""Predicted conflicts of jobs, with conditions on their parameters (the command ``predict``).

For two statements, a solver decides whether some parameters and some table make the first one abort
if the second one commits between its snapshot and its commit. If not, that is a proof. If so, the
proposal is executed, and only an execution that aborts is an example. Conditions on parameters are
candidates (comparisons of one parameter with another) that the solver proves.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from isolitmus.jobs.predict.abort_examples import AbortExamples
from isolitmus.jobs.predict.pair_formulas import PairFormulas
from isolitmus.jobs.questions.counterexamples import printed_test_problem
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.questions.null_parameters import with_not_null
from isolitmus.jobs.questions.pair_prediction import (
    COMPARISONS,
    JobPrediction,
    PairPrediction,
    PlainAnswer,
    pair_names,
)
from isolitmus.jobs.questions.table_alterations import leave_out_failing
from isolitmus.jobs.readers.workload_sources import as_workload, choose_protocol
from isolitmus.jobs.workload import JobStatement, UnreadStatement
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Disagreement, Ended, Limit, LitmusError
from isolitmus.model.sql.expression import Parameter
from isolitmus.model.sql.statement import Delete, Insert, Merge, Read, Update
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from isolitmus.jobs.questions.instances import Participant
    from isolitmus.jobs.questions.pair_prediction import Word
    from isolitmus.jobs.questions.simple_examples import QuestionSolver
    from isolitmus.jobs.templates.expression_formulas import ValueTerm
    from isolitmus.jobs.workload import Workload
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.types import Type
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike


class ParameterComparison(NamedTuple):
    """A comparison of two parameters, in words and as a formula."""

    words: str
    formula: Any


class _Side(NamedTuple):
    """Parameter of a comparison: name, words with the owner, type, term."""

    name: str
    words: str
    type: Type
    term: ValueTerm


def parameter_comparisons(
    a: Participant, b: Participant, shared: Mapping[str, Type]
) -> Iterator[ParameterComparison]:
    """Yield comparisons of a parameter of one statement with one of the other, or with a shared
    one.

    Stronger comparisons come first, and among them those of parameters with the same name.
    """
    z3 = a.terms.z3
    first, second, common = _own(a, shared), _own(b, shared), _common(a, b, shared)
    pairs = sorted(((x, y) for x in first for y in second), key=lambda p: p[0].name != p[1].name)
    pairs += [(x, y) for x in (*first, *second) for y in common]
    for op in ("=", "<", ">", "<=", ">=", "<>"):
        for x, y in pairs:
            if x.type == y.type and (x.type != "STRING" or op in ("=", "<>")):
                both = op == "=" and x.name == y.name
                words = (
                    f"both have the same {Parameter(x.name, x.type)}"
                    if both
                    else f"{x.words} {COMPARISONS[op]} {y.words}"
                )
                yield ParameterComparison(words, _formula(z3, op, x.term, y.term))


def _own(role: Participant, shared: Mapping[str, Type]) -> list[_Side]:
    """Return the parameters of one participant that are neither shared nor results of queries."""
    return [
        _Side(
            p,
            f"{role.name}'s {Parameter(p, type_)}",
            type_,
            role.terms.parameters[p],
        )
        for p, type_ in role.statement.types.items()
        if p not in shared and p not in role.statement.let
    ]


def _common(a: Participant, b: Participant, shared: Mapping[str, Type]) -> list[_Side]:
    """Return the shared parameters that one of two participants has."""
    known = {**a.terms.parameters, **b.terms.parameters}
    return [
        _Side(p, str(Parameter(p, type_)), type_, known[p])
        for p, type_ in shared.items()
        if p in known
    ]


def _formula(z3: Any, op: str, a: ValueTerm, b: ValueTerm) -> Any:
    """Return the Z3 formula of a comparison: NULL is the same as NULL, and in no order."""
    x, y = a.value, b.value
    nulls = [one.null for one in (a, b) if not z3.is_false(one.null)]
    known = [z3.Not(null) for null in nulls]
    match op:
        case "<":
            said = x < y
        case ">":
            said = x > y
        case "<=":
            said = x <= y
        case ">=":
            said = x >= y
        case _:
            same = z3.And(*known, x == y) if nulls else x == y
            if len(nulls) == 2:
                same = z3.Or(z3.And(*nulls), same)
            return same if op == "=" else z3.Not(same)
    return z3.And(*known, said) if nulls else said


def implied_comparisons(
    asked: QuestionSolver,
    what: Any,
    candidates: list[ParameterComparison],
    given: Sequence[Any] = (),
) -> list[ParameterComparison]:
    """Return the candidates that a formula implies, without those that hold in any case.

    Parameters
    ----------
    asked : QuestionSolver
        Solver of the two statements.
    what : z3 formula
        The formula, for example that one statement aborts.
    candidates : list of ParameterComparison
        Comparisons to test, stronger ones first.
    given : sequence of z3 formula
        Facts with which they are implied.

    Returns
    -------
    list of ParameterComparison
        Implied candidates that do not follow from the ones before them; empty if the solver gives
        up.
    """
    z3, left = asked.z3, list(candidates)
    # drop the candidates that a model of the formula violates, until the others are implied
    while left:
        said, model = asked.model_of(*given, what, z3.Not(z3.And(*(atom.formula for atom in left))))
        if said is None:
            return []
        if model is None:
            break
        left = [atom for atom in left if model.has(atom.formula)]
    found: list[ParameterComparison] = []
    for atom in left:  # keep those that do not follow from the domains and the stronger ones
        known = (*given, *(a.formula for a in found))
        if asked.possible(*known, z3.Not(atom.formula)) is not False:
            found.append(atom)
    return found


RELEASE = "4.4.0"
"""Release of Delta Lake whose sources the protocols cite, and on which examples are replayed."""


def predict_workload(
    workload: Workload | NameOrPath,
    protocol: SpecLike | None = None,
    *,
    examples: bool = True,
    processes: int = 1,
    tell: Callable[[str], None] | None = None,
    told: Callable[[Sequence[PairPrediction]], object] | None = None,
    budget: Budget | None = None,
) -> JobPrediction:
    """Predict which statements abort if another one commits concurrently.

    A statement that writes is paired with every other writer and with another run of itself. The
    answer does not depend on the number of processes.

    Parameters
    ----------
    workload : Workload, str or path
        The jobs.
    protocol : Spec, str or path, optional
        The commit protocol, or "Serializable" or "WriteSerializable"; default: that of the tables.
    examples : bool
        Whether to execute examples. If not, "when" is the solver's answer, and "never" the same
        proof.
    processes : int
        Number of worker processes.
    tell : callable, optional
        Receives progress messages.
    told : callable, optional
        Receives each row when it is known: the predictions for one statement.
    budget : Budget, optional
        Limits; the pairs that remain when it is spent are unknown.

    Returns
    -------
    JobPrediction
        One prediction for each ordered pair of statements, with examples.

    Raises
    ------
    LitmusError
        If no job writes to a table.

    Examples
    --------
    >>> from isolitmus.specs import protocol
    >>> from isolitmus.jobs.readers.workload_file import read_workload
    >>> jobs = read_workload('''
    ... ddl = "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)"
    ... [jobs.ingest]
    ... sql = "INSERT INTO t VALUES (:id, :day)"
    ... parameters = { id = "INT", day = "DATE" }
    ... [jobs.cleanup]
    ... sql = "DELETE FROM t WHERE day = :day"
    ... parameters = { day = "DATE" }
    ... ''', "jobs")
    >>> for meeting in predict_workload(jobs, protocol("delta-serializable")).meetings:
    ...     print(meeting)
    ingest aborts if ingest commits: never
    ingest aborts if cleanup commits: never
    cleanup aborts if ingest commits: when both have the same :day
    cleanup aborts if cleanup commits: when both have the same :day
    """
    start = monotonic()
    workload = leave_out_failing(as_workload(workload))
    protocol = choose_protocol(workload, protocol)
    Instances(workload).check_domains()
    losers = [one.name for one in _writers(workload)] + [one.name for one in workload.unread]
    if not losers:
        raise LitmusError(
            f"{workload.name}: no job writes to a table, so no job can abort; add a job that writes"
        )
    rows = PairPredictor(workload, protocol, examples)
    found: list[tuple[PairPrediction, ...]] = []
    ended: Limit | None = None
    try:
        with (budget or Budget(memory=inf)).interrupting():
            for row in _found(rows, losers, processes, tell):
                found.append(row)
                if told is not None:
                    told(row)
    except Limit as limit:
        ended = limit
        for loser in losers[len(found) :]:
            unasked = (PairPrediction(loser, one, "unknown", why=str(limit)) for one in losers)
            found.append(tuple(unasked))
    meetings = tuple(meeting for row in found for meeting in row)
    seconds = monotonic() - start
    why = None if ended is None else str(ended)
    engine = _engine(protocol, workload)
    return JobPrediction(workload, protocol.name, meetings, seconds, why, engine)


def _engine(spec: Spec, workload: Workload) -> str:
    """Return the engine that the protocol models, with differences on Databricks, if any."""
    if spec.format != workload.format:
        return f"{spec.title} ({spec.name})"
    told = f"open-source Delta Lake {RELEASE} on Spark ({spec.name})"
    rows = [one.name for one in workload.tables.values() if one.clustered_by or one.vectors]
    if not rows:
        return told
    return (
        f"{told}. On Databricks, {' and '.join(rows)} would have row-level concurrency, and fewer"
        " jobs would conflict with OPTIMIZE: ask with --level databricks-rows@15.4"
    )


def _found(
    rows: PairPredictor, losers: Sequence[str], processes: int, tell: Callable[[str], None] | None
) -> Iterator[tuple[PairPrediction, ...]]:
    """Yield the rows as they become known."""
    if processes > 1:
        yield from _shared_out(rows, losers, processes, tell)
        return
    for loser in losers:
        if tell is not None:
            tell(f"conflicts of {loser}")
        yield rows.of(loser)


def _writers(workload: Workload) -> list[JobStatement]:
    return [one for one in workload.statements if not isinstance(one.statement, Read)]


class PairPredictor:
    """Predictions for one statement after another, under one protocol.

    Pairs of statements with the same shapes share formulas and values of examples. These are made
    for the first statements of the shapes, so that the answers do not depend on the order of the
    questions.
    """

    def __init__(self, workload: Workload, protocol: Spec, examples: bool) -> None:
        self.given = workload, protocol, examples
        self.protocol = protocol
        self.examples = examples
        self.cast = Instances(with_not_null(workload))
        self.writers = {one.name: one for one in _writers(workload)}
        self.every: dict[str, JobStatement | UnreadStatement] = {
            **self.writers,
            **{one.name: one for one in workload.unread},
        }
        self.alike: dict[tuple[object, ...], list[JobStatement]] = {}
        for one in self.writers.values():
            self.alike.setdefault(self.cast.shape(one).key, []).append(one)
        self._shared: dict[tuple[str, str], PairFormulas] = {}

    def __reduce__(self) -> tuple[type[PairPredictor], tuple[Workload, Spec, bool]]:
        return PairPredictor, self.given

    def of(self, name: str) -> tuple[PairPrediction, ...]:
        """Return the predictions for the statement with this name."""
        return tuple(self.pair(self.every[name], winner) for winner in self.every.values())

    def pair(
        self, loser: JobStatement | UnreadStatement, winner: JobStatement | UnreadStatement
    ) -> PairPrediction:
        """Return the prediction for two statements of the workload."""
        if not self.cast.workload.overlap(loser.job, winner.job):
            return PairPrediction(loser.name, winner.name, "apart")
        if isinstance(loser, UnreadStatement) or isinstance(winner, UnreadStatement):
            return _not_understood(loser, winner)
        if not self._names_target(loser, winner):
            return PairPrediction(loser.name, winner.name, "never")
        try:
            return _Pair(self._formulas(loser, winner), loser, winner, self.protocol).prediction(
                examples=self.examples
            )
        except Disagreement as defect:
            why = defect.report(dict.fromkeys((loser.name, winner.name)))
            return PairPrediction(loser.name, winner.name, "unknown", why=why)

    def _names_target(self, loser: JobStatement, winner: JobStatement) -> bool:
        """Return whether a statement names the table that another one writes to.

        A commit is checked against the commits of its own table only, so without that nothing can
        stop it.
        """
        table = getattr(winner.statement, "target", None)
        if table in (None, getattr(loser.statement, "target", None)):
            return True
        known = {name.lower(): name for name in self.cast.workload.tables}
        return table in loser.named_tables(known)

    def _formulas(self, loser: JobStatement, winner: JobStatement) -> PairFormulas:
        """Return the formulas of a pair, made for the first statements of its shapes.

        They are kept if another pair needs them, with examples of the pair of the first ones.
        """
        losers, winners = (self.alike[self.cast.shape(one).key] for one in (loser, winner))
        first = losers[0], winners[0]
        key = first[0].name, first[1].name
        found = self._shared.get(key)
        if found is None:
            found = PairFormulas(self.cast, *first, self.protocol)
            if len(losers) * len(winners) > 1:
                self._shared[key] = found
                found.shared = True
                found.number_texts(self.cast.shape(one) for one in (*losers, *winners))
                if self.examples:
                    _Pair(found, *first, self.protocol).precede()
        return found


def _not_understood(
    loser: JobStatement | UnreadStatement, winner: JobStatement | UnreadStatement
) -> PairPrediction:
    """Return the prediction of a pair of which one is not understood, or both.

    They never conflict if the other one writes to a table that this one does not name, nor if they
    change the rows of different tables.
    """
    both = loser, winner
    unread = [one for one in both if isinstance(one, UnreadStatement)]
    known = [one.statement for one in both if isinstance(one, JobStatement)]
    targets = [getattr(one, "target", None) for one in known]
    named = [one.tables for one in unread if one.tables is not None]
    apart = len(named) == 2 and not named[0] & named[1]
    changed = {_changed_table(one) for one in both}
    apart = apart or (None not in changed and len(changed) == 2)
    if apart or not all(one.may_concern(table) for one in unread for table in targets):
        return PairPrediction(loser.name, winner.name, "never")
    names = dict.fromkeys(one.name for one in unread)
    why = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not understood"
    return PairPrediction(loser.name, winner.name, "unknown", why=why)


def _changed_table(one: JobStatement | UnreadStatement) -> str | None:
    """Return the table of a statement that does nothing but change rows, in lower case, or None."""
    if isinstance(one, UnreadStatement):
        return one.target
    if isinstance(one.statement, Delete | Insert | Merge | Update):
        return one.statement.target.lower()
    return None


def _shared_out(
    rows: PairPredictor, losers: Sequence[str], processes: int, tell: Callable[[str], None] | None
) -> Iterator[tuple[PairPrediction, ...]]:
    """Yield the rows in order, computed by several processes."""
    from concurrent.futures.process import BrokenProcessPool

    from isolitmus.checker.execution.worker_processes import ignore_interrupts, process_pool

    with process_pool(processes, _begin, rows) as pool:
        with ignore_interrupts():
            asked = [pool.submit(_row, loser) for loser in losers]
        try:
            for loser, one in zip(losers, asked, strict=True):
                if tell is not None:
                    tell(f"conflicts of {loser}")
                yield one.result()
        except BrokenProcessPool:
            raise Ended(
                "a process of predict was killed (out of memory?); --cores 1 needs less memory"
            ) from None


class _Shared:
    """Task of a worker process."""

    rows: ClassVar[PairPredictor]


def _begin(rows: PairPredictor) -> None:
    _Shared.rows = rows


def _row(loser: str) -> tuple[PairPrediction, ...]:
    return _Shared.rows.of(loser)


def predict_pair(
    cast: Instances,
    loser: JobStatement,
    winner: JobStatement,
    protocol: SpecLike,
    *,
    examples: bool = True,
) -> PairPrediction:
    """Predict whether a statement aborts if another one commits between its snapshot and its
    commit.
    """
    if not cast.workload.overlap(loser.job, winner.job):
        return PairPrediction(loser.name, winner.name, "apart")
    protocol = named_protocol(protocol)
    formulas = PairFormulas(cast, loser, winner, protocol)
    return _Pair(formulas, loser, winner, protocol).prediction(examples=examples)


class _PairAnswer(NamedTuple):
    """When a statement aborts: the word, necessary conditions, and whether they suffice."""

    word: Word
    condition: tuple[ParameterComparison, ...] = ()
    certain: bool = False

    @property
    def words(self) -> PlainAnswer:
        """The answer without formulas."""
        return PlainAnswer(self.word, tuple(one.words for one in self.condition), self.certain)

    def prediction(self, loser: str, winner: str) -> PairPrediction:
        """Return the answer as the prediction of two statements."""
        return PairPrediction(loser, winner, *self.words)


def _null_conditions(
    z3: Any, nulls: Sequence[ParameterComparison]
) -> Iterator[ParameterComparison]:
    """Yield conditions: all these parameters are NULL, one is, or none is."""
    if not nulls:
        return
    for one in nulls:
        yield ParameterComparison(f"{one.words} is NULL", one.formula)
    if len(nulls) > 1:
        words = " or ".join(f"{one.words} is NULL" for one in nulls)
        yield ParameterComparison(words, z3.Or(*(one.formula for one in nulls)))
    for one in nulls:
        yield ParameterComparison(f"{one.words} is not NULL", z3.Not(one.formula))


class _Pair:
    """A statement and one that commits between its snapshot and its commit."""

    def __init__(
        self, formulas: PairFormulas, loser: JobStatement, winner: JobStatement, protocol: Spec
    ) -> None:
        self.formulas = formulas
        self.names = loser.name, winner.name
        self.protocol = protocol
        first, second = pair_names(loser, winner)
        self.loser = formulas.cast.playing(formulas.loser, loser, first)
        self.winner = formulas.cast.playing(formulas.winner, winner, second)
        self.asked = formulas.asked.about((self.loser, self.winner))

    def prediction(self, *, examples: bool) -> PairPrediction:
        """Return when the loser may abort, with executed examples if they are wanted."""
        return self.meeting() if examples else self.proposal()

    def proposal(self) -> PairPrediction:
        """Return the solver's answer to when the loser may abort; nothing is executed."""
        z3 = self.asked.z3
        self.reached = {
            name: first
            for name, first in self.formulas.exceptions.items()
            if self.asked.possible(first) is not False
        }
        if not self.reached:
            return PairPrediction(*self.names, "never")
        nulls = self._nulls()
        plain = self._answer(z3.Not(one.formula) for one in nulls)
        changing = self._changing(plain, nulls)
        if not changing:
            return plain.prediction(*self.names)
        every = self._answer((), changing)
        word = "when" if every.word == "always" else every.word
        unless = tuple(one.words for one in changing)
        return replace(
            every.prediction(*self.names), word=word, unless=unless, not_null=plain.words
        )

    def _nulls(self) -> list[ParameterComparison]:
        """Return the parameters that may be NULL, in words, each with the formula that it is."""
        shared = self.formulas.cast.workload.shared
        found: dict[str, Any] = {}
        for role in (self.loser, self.winner):
            for name, null in role.nulls.items():
                parameter = str(Parameter(name, role.statement.types[name]))
                found[parameter if name in shared else f"{role.name}'s {parameter}"] = null
        return [ParameterComparison(words, null) for words, null in found.items()]

    def _answer(
        self, given: Iterable[Any], nulls: Sequence[ParameterComparison] = ()
    ) -> _PairAnswer:
        """Return when the loser aborts, given facts; `nulls` are conditions to test, too."""
        z3, facts, anything = self.asked.z3, tuple(given), self.formulas.anything
        if facts and self.asked.possible(*facts, anything) is False:
            return _PairAnswer("never")
        atoms = [*_null_conditions(z3, nulls), *self._atoms()]
        condition = implied_comparisons(self.asked, anything, atoms, facts)
        known = (*facts, *(atom.formula for atom in condition), self.formulas.both_write)
        certain = self.asked.possible(*known, z3.Not(anything)) is False
        word: Word = "when" if condition or not certain else "always"
        return _PairAnswer(word, tuple(condition), certain)

    def _changing(
        self, plain: _PairAnswer, nulls: list[ParameterComparison]
    ) -> list[ParameterComparison]:
        """Return the fewest parameters such that the answer without NULL holds unless one is NULL.

        None if it holds in any case.
        """
        z3, left = self.asked.z3, list(nulls)
        if self._holds(plain, ()):
            return []
        for one in nulls:
            others = [other for other in left if other is not one]
            if self._holds(plain, [z3.Not(other.formula) for other in others]):
                left = others
        return left

    def _holds(self, plain: _PairAnswer, given: Sequence[Any]) -> bool:
        """Return whether an answer is proved, given facts."""
        z3, anything = self.asked.z3, self.formulas.anything
        if plain.word == "never":
            return self.asked.possible(*given, anything) is False
        known = [atom.formula for atom in plain.condition]
        if known and self.asked.possible(*given, anything, z3.Not(z3.And(*known))) is not False:
            return False
        if not plain.certain:
            return True
        both = self.formulas.both_write
        return self.asked.possible(*given, *known, both, z3.Not(anything)) is False

    def precede(self) -> None:
        """Keep the examples for other pairs of the same shapes."""
        self.proposal()
        self.formulas.found = self._examples().found

    def _examples(self) -> AbortExamples:
        """Return a finished search for an example of each exception."""
        search = AbortExamples(self.formulas, self.asked, self.protocol)
        for name, first in self.reached.items():
            search.look_for(name, first)
        return search

    def meeting(self) -> PairPrediction:
        """Return when the loser aborts, with an executed example of each exception.

        Disagreement if an execution aborts with an exception that was proved impossible.
        """
        found = self.proposal()
        if found.word == "never":
            return found
        search = self._examples()
        for name in search.found.keys() - self.reached.keys():
            raise Disagreement(
                f"{found.loser} with concurrent commit of {found.winner}: the formulas prove {name}"
                f" impossible, but this run ends with it:\n{search.found[name].test}"
            )
        examples: dict[str, Litmus] = {}
        for name in (name for name in self.reached if name in search.found):
            test = search.expecting(name)
            problem = printed_test_problem(test, self.protocol)
            if problem is None:
                examples[name] = test
            search.why = problem or search.why
        missing = tuple(name for name in self.reached if name not in examples)
        if not examples:
            why = search.why or "no example that the solver proposes aborts"
            unless, plain = found.unless, found.not_null
            if plain is None or plain.word != "never":
                unless, plain = (), None
            return replace(
                found, word="unknown", certain=False, perhaps=missing, why=why,
                unless=unless, not_null=plain,
            )  # fmt: skip
        shown = [*examples]
        unshown = (table for name in shown for table in search.unshown(name))
        return replace(
            found,
            examples=examples,
            retries={name: search.retries(name, self.reached[name]) for name in shown},
            perhaps=missing,
            why=search.why if missing else "",
            unshown=tuple(dict.fromkeys(unshown)),
        )

    def _atoms(self) -> Iterator[ParameterComparison]:
        shared = self.formulas.cast.workload.shared
        return parameter_comparisons(self.loser, self.winner, shared)
