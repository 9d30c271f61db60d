"""Invariants of workloads: whether any number of runs of the jobs keep them (``robust --keeps``).

An invariant is kept at every version if two facts are proved of the statements that add rows
(docs/semantics.md, theorem 14):

* alone: on any table that satisfies the invariants, a statement leaves one that does;
* in pairs: if one commit and a statement that does not see it add rows that count for the same
  values, the commit protocol aborts the statement.

What is not proved is proposed as a litmus test, which the model executes. Only an execution that
starts with tables that satisfy all invariants, and has a version that violates one, is a violation.
DuckDB runs the invariant's query on that version, and has to find rows as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.checker.judge.spec_properties import is_monotone
from isolitmus.checker.solver.refutation import Certificate, Refutation
from isolitmus.jobs.invariant import GroupLimit, Invariant, Reference, Total
from isolitmus.jobs.invariants.invariant_questions import (
    GroupLimitQuestions,
    InvariantQuestions,
    table_writers,
)
from isolitmus.jobs.invariants.invariant_runs import InvariantRuns
from isolitmus.jobs.invariants.row_change_questions import ReferenceQuestions, TotalQuestions
from isolitmus.jobs.predict.conflict_paths import without_untaken_paths
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.questions.null_parameters import with_not_null
from isolitmus.jobs.questions.simple_examples import QuestionSolver
from isolitmus.jobs.questions.table_alterations import leave_out_failing
from isolitmus.jobs.readers.table_names import plain_names
from isolitmus.jobs.readers.workload_file import written_by
from isolitmus.jobs.readers.workload_sources import as_workload, choose_protocol
from isolitmus.jobs.robust.robustness import (
    AT_ROWS,
    PROMISES,
    decide_all,
    general_assumptions,
)
from isolitmus.jobs.sql.invariant_text import read_invariants_of
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.budget import Budget
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import IsolitmusError, Limit, near
from isolitmus.model.sql.statement import Definition, DropColumns, RenameColumn, Restore
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.jobs.invariants.invariant_questions import InvariantQuestion
    from isolitmus.jobs.invariants.invariant_runs import InvariantViolation
    from isolitmus.jobs.robust.robustness import Robustness
    from isolitmus.jobs.workload import ConflictPath, Workload
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

InvariantWord = Literal["kept", "broken", "unknown"]
REMOVED_TWICE = "removes-meets-removes"
"""Relation by which a protocol aborts a statement that removes a file that is gone."""


@dataclass(frozen=True, slots=True)
class InvariantAnswer(ReadableRepr):
    """Answer whether the jobs of a workload keep an invariant under a protocol."""

    workload: Workload
    protocol: str
    """Name of the commit protocol."""
    invariant: Invariant
    word: InvariantWord
    """``kept`` at every version, with a proof; ``broken``, with a run; or ``unknown``."""
    violations: tuple[InvariantViolation, ...] = ()
    """Smallest violations that were found, by different jobs: those by one run come first."""
    alone: tuple[str, ...] = ()
    """Questions about one statement that are proved impossible."""
    pairs: tuple[str, ...] = ()
    """Questions about two concurrent statements that are proved impossible."""
    why: tuple[str, ...] = ()
    """Reasons why the answer is unknown."""
    given: tuple[str, ...] = ()
    """Other invariants that the proof uses; they are kept as well."""
    refuted: tuple[Refutation, ...] = ()
    """Questions to the solver that are proved impossible."""
    lasting: tuple[str, ...] = ()
    """Statements whose clients count rows that cannot be more when the statement commits."""
    keeps_alone: bool = False
    """True if each statement is proved to keep it while no other one runs."""
    seconds: float = 0.0
    """Duration."""
    not_null: InvariantWord | None = None
    """``kept`` if it is proved for parameters that are not NULL only; otherwise None."""

    @property
    def violation(self) -> InvariantViolation | None:
        """Smallest violation, if one was found."""
        return next(iter(self.violations), None)

    def __repr__(self) -> str:
        found = "" if self.violation is None else f" by {' and '.join(self.violation.jobs)}"
        return f"{self.invariant.name} under {self.protocol}: {self.word}{found}"

    @property
    def certificate(self) -> Certificate:
        """Certificate of a proof, with the solver's questions."""
        return Certificate(
            f"{self.invariant.file_name}-{self.protocol}",
            f"{self.workload.name}: under {self.protocol}, all runs of the jobs keep"
            f" {self.invariant.text}: no rows from {self.invariant.query}",
            self.refuted,
            (
                (
                    "If no question has an answer, no version violates it (docs/semantics.md,"
                    " theorem 14)."
                ),
                "The questions model the statements and the protocol.",
                *self.assumptions,
            ),
        )

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions of the answer."""
        return (START, *general_assumptions(self.workload), *self.workload.assumptions)

    def to_json(self) -> dict[str, object]:
        """Return the answer in the format of docs/interface.md, 6."""
        return {
            "workload": self.workload.name,
            "protocol": self.protocol,
            "invariant": self.invariant.name,
            "query": self.invariant.query,
            "word": self.word,
            **({} if self.not_null is None else {"not_null": self.not_null}),
            "violations": [
                {
                    "jobs": list(one.jobs),
                    "schedule": str(one.test.schedule),
                    "version": one.version,
                    "half_done": one.half_done,
                    "litmus": str(one.test),
                }
                for one in self.violations
            ],
            "proved": {
                "alone": list(self.alone),
                "pairs": list(self.pairs),
                "lasting": list(self.lasting),
            },
            "keeps_alone": self.keeps_alone,
            "given": list(self.given),
            "why": list(self.why),
            "not_understood": [one.to_json() for one in self.workload.unread],
            "assumptions": list(self.assumptions),
            "seconds": round(self.seconds, 3),
        }


START = AssumptionKind.START.says("At the start, the tables satisfy all invariants that are given.")


def decide_invariants(
    workload: Workload | NameOrPath,
    protocols: Sequence[SpecLike],
    invariants: Sequence[Invariant] | None = None,
    *,
    examples: bool = True,
    tell: Callable[[str], None] | None = None,
    budget: Budget | None = None,
) -> Iterator[InvariantAnswer]:
    """Decide whether any number of runs of the jobs keep invariants, under several protocols.

    Parameters
    ----------
    workload : Workload, str or path
        The jobs.
    protocols : sequence of Spec, str or path
        Commit protocols.
    invariants : sequence of Invariant, optional
        By default those of the workload.
    examples : bool
        Whether to look for violations; if not, what is not proved is unknown.
    tell : callable, optional
        Receives progress messages.
    budget : Budget, optional
        Limits; the answers that remain when it is spent are unknown.

    Yields
    ------
    InvariantAnswer
        One for each invariant and protocol.

    Examples
    --------
    >>> from isolitmus.specs import protocol
    >>> from isolitmus.jobs.readers.workload_file import read_workload
    >>> jobs = read_workload('''
    ... ddl = "CREATE TABLE t (id INT, v STRING) USING delta"
    ... [jobs.upsert]
    ... sql = \"\"\"MERGE INTO t USING (SELECT :id AS id, :v AS v) AS s ON t.id = s.id
    ...   WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *\"\"\"
    ... [invariants]
    ... one_row = "unique(id)"
    ... ''', "jobs")
    >>> for answer in decide_invariants(jobs, ["delta-write-serializable"]):
    ...     print(answer)
    one_row under delta-write-serializable: kept
    """
    workload = leave_out_failing(as_workload(workload))
    given = tuple(workload.invariants if invariants is None else invariants)
    budget = budget or Budget(memory=inf)
    same: dict[tuple[ConflictPath, ...], list[tuple[Instances, _AloneAnswers]]] = {}
    for spec in map(named_protocol, protocols):
        work = without_untaken_paths(workload, spec, budget)
        if (key := work.conflict_paths) not in same:
            instances = Instances(with_not_null(work, invariants=False))
            same[key] = [(instances, _AloneAnswers())]
            if instances.may_have_nulls:
                same[key].append((instances.without_nulls(), _AloneAnswers()))
        instances, alone = same[key][0]
        try:
            with budget.interrupting():
                answers = list(
                    _Decision(instances, spec, given, alone, tell, examples=examples).answers()
                    if len(same[key]) == 1
                    else _answers_with_nulls(
                        [
                            partial(_Decision, some, spec, given, known, tell)
                            for some, known in same[key]
                        ],
                        examples=examples,
                    )
                )
        except Limit as limit:
            answers = [
                InvariantAnswer(workload, spec.name, one, "unknown", why=(str(limit),))
                for one in given
            ]
        # with all paths: a repair may change what aborts
        told = replace(workload, left_out=work.left_out)
        yield from (replace(one, workload=told) for one in answers)


def chosen_invariants(
    workload: Workload, texts: Sequence[str], label: str = "invariant"
) -> tuple[Invariant, ...]:
    """Return the invariants of a workload and those of some texts, each once.

    Examples
    --------
    >>> from isolitmus.jobs.readers.workload_sources import workload
    >>> [one.name for one in chosen_invariants(workload("shop"), ["unique(id)"])]
    ['unique(id)']
    """
    written = written_by(workload.statements)
    asked = [
        one
        for text in texts
        for one in read_invariants_of(
            plain_names(text, workload.full_names),
            workload.tables,
            written,
            label,
            stand_ins=workload.stand_ins,
        )
    ]
    found = {one.query: one for one in (*workload.invariants, *asked)}
    return tuple(found.values())


def decide_jobs(
    jobs: Workload | NameOrPath,
    level: SpecLike | None = None,
    *,
    promises: Sequence[str] = PROMISES,
    keeps: Sequence[str] = (),
    tell: Callable[[str], None] | None = None,
    budget: Budget | None = None,
) -> tuple[Robustness | InvariantAnswer, ...]:
    """Decide which promises and invariants any number of runs of the jobs keep.

    Parameters
    ----------
    jobs : Workload, str or path
        The jobs.
    level : Spec, str or path, optional
        "Serializable", "WriteSerializable" or a commit protocol; default: each level of Delta.
    promises : sequence of str
        Some of `PROMISES`.
    keeps : sequence of str
        Invariants, such as "unique(id)", besides those of the jobs.
    tell : callable, optional
        Receives progress messages.
    budget : Budget, optional
        Limits; the answers that remain when it is spent are unknown.

    Returns
    -------
    tuple of Robustness and InvariantAnswer
        One for each promise and level, then one for each invariant and level.

    Raises
    ------
    IsolitmusError
        For an unknown level or promise, or an invariant that is not understood.

    Examples
    --------
    >>> [answer] = decide_jobs("shop", "Serializable", promises=["write-serializable"])
    >>> answer.word
    'safe'
    """
    for promise in promises:
        if promise not in PROMISES:
            raise IsolitmusError(f"unknown promise '{promise}'{near(promise, PROMISES)}")
    jobs = as_workload(jobs)
    names = format_named(jobs.format).protocols if level is None else (level,)
    levels = [choose_protocol(jobs, name) for name in names]
    invariants = chosen_invariants(jobs, keeps)
    return (
        *decide_all(jobs, levels, promises, tell=tell, budget=budget),
        *decide_invariants(jobs, levels, invariants, tell=tell, budget=budget),
    )


def _answers_with_nulls(
    decisions: Sequence[Callable[..., _Decision]], *, examples: bool
) -> Iterator[InvariantAnswer]:
    """Yield the answers for parameters that may be NULL.

    A violation without NULL is preferred, and what only NULL violates is told apart. ``decisions``
    are those with NULL and without.
    """
    with_nulls, without_nulls = decisions
    proofs = list(with_nulls(examples=False).answers())
    if all(one.word == "kept" for one in proofs):
        yield from proofs
        return
    plain = list(without_nulls(examples=examples).answers())
    runs: list[InvariantAnswer] | None = None
    for k, proof in enumerate(proofs):
        if proof.word == "kept":
            yield proof
        elif plain[k].word == "broken":
            yield replace(proof, word="broken", violations=plain[k].violations, why=())
        else:
            if runs is None:
                runs = list(with_nulls(examples=examples).answers()) if examples else proofs
            yield replace(runs[k], not_null="kept" if plain[k].word == "kept" else None)


_QUESTIONS: Mapping[type[Invariant], type[InvariantQuestions[Any]]] = {
    GroupLimit: GroupLimitQuestions,
    Reference: ReferenceQuestions,
    Total: TotalQuestions,
}
"""Questions about each kind of invariant."""


def _text(question: InvariantQuestion, asked: QuestionSolver) -> tuple[str]:
    """Return a question in SMT-LIB."""
    return (asked.text(*question.formulas),)


_Asked = list[tuple["InvariantQuestion", QuestionSolver]]


class _AloneAnswers:
    """Answers to the questions about single statements, which no protocol changes."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], tuple[_Asked, _Asked, InvariantQuestions[Any]]] = {}

    def of(
        self, asks: InvariantQuestions[Any], invariant: Invariant
    ) -> tuple[_Asked, _Asked, InvariantQuestions[Any]]:
        """Return the questions that are proved impossible, with those that they depend on, the
        others, and who asked them.
        """
        key = invariant.name, *(one.name for one in asks.assumed)
        if key not in self._found:
            proved, left = _ask(asks.alone(invariant))
            self._found[key] = [*proved, *asks.lemmas], left, asks
        return self._found[key]


def _ask(questions: Iterator[InvariantQuestion]) -> tuple[_Asked, _Asked]:
    """Return the questions that are proved impossible, and the others."""
    proved: _Asked = []
    left: _Asked = []
    for question in questions:
        asked = QuestionSolver(question.roles)
        impossible = asked.possible(*question.formulas) is False
        (proved if impossible else left).append((question, asked))
    return proved, left


class _Decision:
    """Decision of all invariants of a workload under one protocol."""

    def __init__(
        self,
        instances: Instances,
        spec: Spec,
        invariants: tuple[Invariant, ...],
        alone: _AloneAnswers,
        tell: Callable[[str], None] | None,
        *,
        examples: bool,
    ) -> None:
        self.workload = instances.workload
        self.spec = spec
        self.invariants = invariants
        self.alone = alone
        self.tell = tell
        self.instances = instances
        self.assumed: tuple[Invariant, ...] = ()
        self.runs = InvariantRuns(self.instances, spec, invariants) if examples else None
        self._found: dict[str, tuple[InvariantViolation, ...]] = {}

    def answers(self) -> Iterator[InvariantAnswer]:
        """Yield the answers: a proof uses only invariants that are kept as well."""
        self.assumed = self.invariants
        known: dict[tuple[Invariant, ...], InvariantAnswer] = {}
        while True:
            found: dict[str, InvariantAnswer] = {}
            for one in self.invariants:
                given = (one, *(other for other in self.assumed if other != one))
                if given not in known:
                    known[given] = self._answer(one)
                found[one.name] = known[given]
            kept = tuple(one for one in self.assumed if found[one.name].word == "kept")
            if kept == self.assumed:
                break
            self.assumed = kept
        for answer in found.values():
            names = tuple(
                one.name
                for one in self.assumed
                if one != answer.invariant and isinstance(one, GroupLimit)
            )
            yield (
                replace(answer, given=names) if answer.word == "kept" and answer.refuted else answer
            )

    def _answer(self, invariant: Invariant) -> InvariantAnswer:
        """Return the answer for one invariant, given those that are assumed."""
        start = monotonic()
        if self.tell is not None:
            self.tell(f"{invariant.name} under {self.spec.name}")
        why = [*self._gaps(invariant)]
        assumed = [one for one in self.invariants if one in self.assumed or one == invariant]
        asks = _QUESTIONS[type(invariant)](self.instances, self.spec, assumed)
        proved, left, first = self.alone.of(asks, invariant)
        if left or asks.needs_pairs:
            more, others = _ask(asks.pairs(invariant))
            proved, left = [*proved, *more], [*left, *others]
        word: InvariantWord = "unknown" if left or why else "kept"
        violations = self._violations(invariant, left)
        open_ = dict.fromkeys(question.about for question, _ in left)
        if violations:
            word, why = "broken", []
        else:
            jobs = dict.fromkeys(role.statement.job for one, _ in left for role in one.roles)
            uncertain = self._uncertain(invariant)
            why += (uncertain[job] for job in jobs if job in uncertain)
            if self.runs is not None and invariant.name in self.runs.unconfirmed:
                why.append(self.runs.unconfirmed[invariant.name])
            why += (f"{about}: neither a proof nor a violation was found" for about in open_)
        alone = [one.about for one, _ in proved if len(one.roles) == 1 and one.about not in open_]
        pairs = [one.about for one, _ in proved if len(one.roles) > 1 and one.about not in open_]
        refuted = tuple(
            Refutation(f"{k:03}", f"not violated: {one.about}", "smt2", partial(_text, one, asked))
            for k, (one, asked) in enumerate(proved, 1)
        )
        return InvariantAnswer(
            self.workload, self.spec.name, invariant, word, violations,
            tuple(dict.fromkeys(alone)), tuple(dict.fromkeys(pairs)), tuple(why),
            refuted=refuted, lasting=tuple(sorted(first.lasting)),
            keeps_alone=self._keep_alone(left),
            seconds=monotonic() - start,
        )  # fmt: skip

    def _keep_alone(self, left: list[tuple[InvariantQuestion, QuestionSolver]]) -> bool:
        """Return whether each statement is proved to keep the invariant if no other one runs.

        Its client has then read the version that it changes.
        """
        return all(
            asked.possible(*question.formulas, *question.at_once) is False
            for question, asked in left
            if len(question.roles) == 1
        )

    def _gaps(self, invariant: Invariant) -> Iterator[str]:
        """Yield the reasons why nothing can be proved of the invariant."""
        tables = dict.fromkeys(invariant.tables)
        unread = [
            one.name
            for one in self.workload.unread
            if any(map(one.may_concern, self.workload.named_tables(tables)))
        ]
        if unread:
            yield f"these statements are not understood: {', '.join(unread)}"
        for table in tables:
            for one in table_writers(self.workload, table):
                match one.statement:
                    case Definition(change=DropColumns() | RenameColumn()):
                        yield f"{one.name} changes the columns of {table}"
                    case Restore():
                        yield f"the rows that {one.name} restores are not modelled"
        if not is_monotone(self.spec):
            yield f"under {self.spec.name}, more commits may admit more transactions"
        if self.spec.needs & AT_ROWS or REMOVED_TWICE not in self.spec.needs:
            yield (
                f"{self.spec.name} does not compare the files that two commits remove, and the"
                " proof is about protocols that do"
            )

    def _uncertain(self, invariant: Invariant) -> dict[str, str]:
        """Return the jobs of which no whole run can be executed, each with the reason."""
        work = replace(self.workload, invariants=(invariant,))
        return {**work.without_unread().uncertain}

    def _violations(
        self, invariant: Invariant, left: list[tuple[InvariantQuestion, QuestionSolver]]
    ) -> tuple[InvariantViolation, ...]:
        """Return the smallest violation by each set of jobs of which no single one violates it.

        Questions about one statement come first.
        """
        if self.runs is None:
            return ()
        if invariant.name not in self._found:
            best: dict[frozenset[str], InvariantViolation] = {}
            uncertain = self._uncertain(invariant).keys()
            for question, asked in left:
                jobs = {role.statement.job for role in question.roles}
                if jobs & uncertain:
                    continue
                if any(key <= jobs and one.alone for key, one in best.items() if not one.half_done):
                    continue
                found = self.runs.violation(invariant, question, asked)
                key = frozenset(jobs)
                if found is not None and (key not in best or found.size < best[key].size):
                    best[key] = found
            if not best:
                return ()
            self._found[invariant.name] = tuple(sorted(best.values(), key=lambda one: one.size))
        return self._found[invariant.name]
