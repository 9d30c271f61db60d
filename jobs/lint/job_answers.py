"""Answers to the linter's questions about a workload, asked anew or from the cache.

Statements that mention a table which one of them writes are related, and so are the statements of a
job. Conflicts and dependency cycles stay within a class of related statements, so each class is
asked about on its own.

The modules that decide questions are imported at the first question: most runs ask none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from isolitmus.jobs.lint.finding import BrokenInvariant, RunViolation
from isolitmus.jobs.lint.structure_keys import QuestionKeys
from isolitmus.jobs.questions.pair_prediction import (
    PairPrediction,
    PlainAnswer,
    Word,
    pair_names,
)
from isolitmus.model.display import text_digest
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.statement import Read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from isolitmus.jobs.invariant import Invariant
    from isolitmus.jobs.invariants.invariants import InvariantAnswer
    from isolitmus.jobs.lint.answer_cache import AnswerCache
    from isolitmus.jobs.predict.prediction import PairPredictor
    from isolitmus.jobs.robust.robustness import Robustness
    from isolitmus.jobs.workload import Job, JobStatement, Workload
    from isolitmus.model.budget import Budget
    from isolitmus.model.spec import Spec

OWNER = re.compile(r"\b(\w+)'s (?=[:\w])")
"""Owner of a parameter in a condition."""
LOSER, WINNER = "<loser>", "<winner>"
NAMED = re.compile(rf"({LOSER}|{WINNER})'s (?=[:\w])")
OTHER_RESULTS = "all runs found have the results of some serial order, though not its conflicts"


def writes_of(one: JobStatement) -> str | None:
    """Return the table that a statement writes, or None."""
    return None if isinstance(one.statement, Read) else getattr(one.statement, "target", None)


class PromiseAnswer:
    """Answer whether related statements keep a promise.

    Attributes
    ----------
    violations : tuple of RunViolation
        Executed runs whose results violate the promise.
    why : tuple of str
        Reasons why the answer is unknown; empty if it is not.
    not_null : bool
        Whether the promise is kept unless a parameter is NULL.
    """

    def __init__(
        self,
        violations: tuple[RunViolation, ...],
        why: tuple[str, ...],
        *,
        not_null: bool = False,
    ) -> None:
        self.violations = violations
        self.why = why
        self.not_null = not_null


class InvariantFindings(NamedTuple):
    """Answer whether the jobs keep an invariant."""

    invariant: Invariant
    broken: tuple[BrokenInvariant, ...]
    """Executed runs that violate it, by different jobs."""
    why: tuple[str, ...]
    """Reasons why the answer is unknown; empty if it is not."""
    not_null: bool = False
    """Whether it is kept unless a parameter is NULL."""


class JobAnswers:
    """Answers about the statements of a workload under a protocol."""

    def __init__(self, workload: Workload, protocol: Spec, cache: AnswerCache) -> None:
        self.protocol = protocol
        self.cache = cache
        self.asked = self.cached = 0
        known = {name.lower(): name for name in workload.tables}
        self.tables = {one.name: one.named_tables(known) for one in workload.statements}
        self.keys = QuestionKeys(workload, protocol, self.tables)
        self.idle = dict(self._jobs_that_never_run(workload))
        """Jobs whose condition no parameter values satisfy, with the reason."""
        jobs = {name: job for name, job in workload.jobs.items() if name not in self.idle}
        self.workload = replace(workload, jobs=jobs, unread=())
        self.uncertain = workload.without_unread().uncertain
        """Jobs that are not executed as a whole when invariants are decided."""
        self.statements = self.workload.statements
        self.classes = self._related()
        self._class_of = {one.name: k for k, some in enumerate(self.classes) for one in some}
        self._predictors: dict[int, PairPredictor] = {}

    def _jobs_that_never_run(self, workload: Workload) -> Iterator[tuple[str, str]]:
        """Yield the jobs whose condition no parameter values satisfy, each with the reason."""
        for name, job in workload.jobs.items():
            key = self.keys.condition(job)
            if job.where is None or self.cache.get(key) == {"runs": True}:
                continue
            from isolitmus.jobs.questions.instances import Instances

            try:
                Instances(replace(workload, jobs={name: job})).check_domains()
            except LitmusError as error:
                yield name, _without_place(job, str(error))
            else:
                self.cache.put(key, {"runs": True})

    def _related(self) -> list[list[JobStatement]]:
        """Return the classes of related statements, in the order of their first statements."""
        parents = {one.name: one.name for one in self.statements}

        def root(name: str) -> str:
            while parents[name] != name:
                parents[name] = parents[parents[name]]
                name = parents[name]
            return name

        written = {writes_of(one) for one in self.statements}
        first: dict[object, str] = {}
        for one in self.statements:
            tables = self.tables[one.name]
            together = (each.tables for each in self.workload.invariants)
            referring = (each for each in together if len(each) > 1 and tables & {*each})
            for thing in (("job", one.job), *(tables & written), *referring):
                parents[root(one.name)] = root(first.setdefault(thing, one.name))
        found: dict[str, list[JobStatement]] = defaultdict(list)
        for one in self.statements:
            found[root(one.name)].append(one)
        return list(found.values())

    # Pairs

    def pairs(self) -> Iterator[tuple[JobStatement, JobStatement]]:
        """Yield the pairs of statements that may run concurrently and conflict, each once.

        A pair of statements that mention no table written by the other never conflicts.
        """
        for some in self.classes:
            writers = [one for one in some if writes_of(one) is not None]
            for k, one in enumerate(writers):
                for other in writers[k:]:
                    if not self.workload.overlap(one.job, other.job):
                        continue
                    if writes_of(one) in self.tables[other.name] or (
                        writes_of(other) in self.tables[one.name]
                    ):
                        yield one, other

    def meetings(self, one: JobStatement, other: JobStatement) -> tuple[PairPrediction, ...]:
        """Return the predictions of a pair: both directions, or one of a statement with itself."""
        if one is other:
            return (self._meeting(one, one),)
        return self._meeting(one, other), self._meeting(other, one)

    def _meeting(self, loser: JobStatement, winner: JobStatement) -> PairPrediction:
        key = self.keys.pair(loser, winner)
        known = _read_meeting(self.cache.get(key), loser, winner)
        if known is not None:
            self.cached += 1
            return known
        self.asked += 1
        found = self.predictor(loser).pair(loser, winner)
        answer = _meeting_answer(found, pair_names(loser, winner))
        if answer is not None:
            self.cache.put(key, answer)
        return found

    def predictor(self, one: JobStatement) -> PairPredictor:
        """Return the predictor for the class of a statement."""
        k = self._class_of[one.name]
        if k not in self._predictors:
            from isolitmus.jobs.predict.prediction import PairPredictor

            self._predictors[k] = PairPredictor(self._part(k), self.protocol, examples=True)
        return self._predictors[k]

    def _part(self, k: int) -> Workload:
        """Return the workload of a class of related statements, with the tables that they name."""
        names = {one.job for one in self.classes[k]}
        named = {table for one in self.classes[k] for table in self.tables[one.name]}
        about = (one.tables for one in self.workload.invariants if named & {*one.tables})
        tables = named.union(*about)
        queries = {name: one for name, one in self.workload.queries.items() if name in tables}
        read = {table for one in queries.values() for table in one.tables}
        return replace(
            self.workload,
            jobs={name: job for name, job in self.workload.jobs.items() if name in names},
            tables={
                name: one
                for name, one in self.workload.tables.items()
                if name in tables or name.lower() in read
            },
            queries=queries,
        )

    # Promises

    def promises(
        self, some: Sequence[JobStatement], wanted: Sequence[str], budget: Budget
    ) -> dict[str, PromiseAnswer]:
        """Return the answers about a class of related statements, by promise."""
        keys = {promise: self.keys.component(some, promise) for promise in wanted}
        found: dict[str, PromiseAnswer] = {}
        names = [one.name for one in some]
        own = {
            promise: key and f"{key} {text_digest(repr(names))}" for promise, key in keys.items()
        }
        for promise in wanted:
            answer = self.cache.get(keys[promise]) or self.cache.get(own[promise])
            known = _read_promise(answer, promise, self.protocol, some)
            if known is not None:
                found[promise] = known
        self.cached += len(found)
        left = [promise for promise in wanted if promise not in found]
        self.asked += len(left)
        if left:
            from isolitmus.jobs.robust.robustness import decide_all

            part = self._part(self._class_of[some[0].name])
            for answer in decide_all(part, (self.protocol,), left, budget=budget):
                told = _promise_answer(answer, names)
                if budget.spent() is None:
                    says_names = any(name in text for name in names for text in told["why"])
                    self.cache.put((own if says_names else keys)[answer.promise], told)
                read = _read_promise(told, answer.promise, self.protocol, some)
                assert read is not None
                found[answer.promise] = read
        return found

    # Invariants

    def invariants(
        self, some: Sequence[JobStatement], budget: Budget
    ) -> Iterator[InvariantFindings]:
        """Yield the answers about the invariants of the tables that related statements write."""
        written = {writes_of(one) for one in some}
        asked = [one for one in self.workload.invariants if written & {*one.tables}]
        if not asked:
            return
        named = {table for one in some for table in self.tables[one.name]}
        given = tuple(one for one in self.workload.invariants if named & {*one.tables})
        texts = [(one.name, one.query) for one in given]
        open_ = [self.uncertain.get(one.job) for one in some]
        names = [one.name for one in some]
        key = self.keys.component(some, repr(("invariants", texts, names, open_)))
        known = self.cache.get(key)
        if not isinstance(known, dict):
            from isolitmus.jobs.invariants.invariants import decide_invariants

            self.asked += len(asked)
            part = self._part(self._class_of[some[0].name])
            part = replace(part, uncertain=self.uncertain)
            answers = decide_invariants(part, (self.protocol,), given, budget=budget)
            known = {answer.invariant.name: _invariant_answer(answer) for answer in answers}
            if budget.spent() is None:
                self.cache.put(key, known)
        else:
            self.cached += len(asked)
        jobs = {one.job for one in some}
        for one in asked:
            yield _read_invariant_answer(known.get(one.name), one, jobs)


def _invariant_answer(answer: InvariantAnswer) -> dict[str, Any]:
    """Return an answer about an invariant as data."""
    return {
        "why": list(answer.why),
        "not_null": answer.not_null is not None,
        "broken": [
            {"jobs": list(one.jobs), "half_done": one.half_done, "alone": one.alone}
            for one in answer.violations
        ],
    }


def _read_invariant_answer(
    answer: Any, invariant: Invariant, jobs: Collection[str]
) -> InvariantFindings:
    """Return the answer in data; unknown if the data are no answer."""
    match answer:
        case {"why": [*why], "broken": [*broken], "not_null": bool(not_null)} if all(
            isinstance(one, str) for one in why
        ):
            pass
        case _:
            return InvariantFindings(invariant, (), ("the answer in the cache is damaged",))
    found = []
    for one in broken:
        match one:
            case {"jobs": [*named], "half_done": bool(half), "alone": bool(alone)} if all(
                name in jobs for name in named
            ):
                found.append(
                    BrokenInvariant(invariant.name, invariant.text, tuple(named), half, alone)
                )
    return InvariantFindings(invariant, tuple(found), tuple(why), not_null)


def _without_place(job: Job, text: str) -> str:
    return text.removeprefix(f"{job.place}: ").removeprefix(f"jobs.{job.name}.where: ")


def _meeting_answer(found: PairPrediction, names: tuple[str, str]) -> dict[str, Any] | None:
    """Return a prediction as data without the names of its statements; None if it is not kept."""
    if any(name in found.why for name in names):
        return None
    marks = dict(zip(names, (LOSER, WINNER), strict=True))

    def mark(owner: re.Match[str]) -> str:
        return f"{marks.get(owner[1], owner[1])}'s "

    return {
        "word": found.word,
        "condition": [OWNER.sub(mark, one) for one in found.condition],
        "certain": found.certain,
        "exceptions": list(found.exceptions),
        "retries": {name: list(ends) for name, ends in found.retries.items()},
        "perhaps": list(found.perhaps),
        "why": found.why,
        "unless": [OWNER.sub(mark, one) for one in found.unless],
        "not_null": found.not_null
        and [
            found.not_null.word,
            [OWNER.sub(mark, one) for one in found.not_null.condition],
            found.not_null.certain,
        ],
    }


def _read_meeting(answer: Any, loser: JobStatement, winner: JobStatement) -> PairPrediction | None:
    """Return the prediction in an answer, with the names of its statements; None if it is none."""
    if not isinstance(answer, dict) or answer.get("word") not in get_args(Word):
        return None
    names = dict(zip((LOSER, WINNER), pair_names(loser, winner), strict=True))

    def named(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(NAMED.sub(lambda one: f"{names[one[1]]}'s ", text) for text in texts)

    try:
        condition, retries = answer["condition"], answer["retries"]
        unless, plain = answer["unless"], answer["not_null"]
        lists = (condition, answer["exceptions"], answer["perhaps"], unless, *retries.values())
        if plain is not None:
            word, *_, certain = plain
            if word not in get_args(Word) or not isinstance(certain, bool) or len(plain) != 3:
                return None
            lists = (*lists, plain[1])
        if not all(isinstance(one, list) for one in lists) or not isinstance(answer["why"], str):
            return None
        if not all(isinstance(text, str) for one in lists for text in one):
            return None
        return PairPrediction(
            loser.name,
            winner.name,
            answer["word"],
            named(condition),
            answer["certain"] is True,
            {},
            {name: tuple(ends) for name, ends in retries.items()},
            tuple(answer["perhaps"]),
            answer["why"],
            tuple(answer["exceptions"]),
            named(unless),
            None if plain is None else PlainAnswer(plain[0], named(plain[1]), plain[2]),
        )
    except (KeyError, AttributeError, TypeError, ValueError):
        return None


def _promise_answer(answer: Robustness, names: Sequence[str]) -> dict[str, Any]:
    """Return an answer as data, with numbers for the statements."""
    not_null = answer.not_null is not None
    if answer.word != "unsafe":
        why = list(answer.why) if answer.word == "unknown" else []
        return {"violations": [], "why": why, "not_null": not_null}
    numbers = {name: k for k, name in enumerate(names)}
    smallest: dict[frozenset[int], list[int]] = {}
    for one in sorted(answer.counterexamples, key=lambda one: len(one.danger.members)):
        members = [numbers[member.name] for member in one.danger.members if member.name in numbers]
        if members and not one.explained:
            smallest.setdefault(frozenset(members), members)
    why = [] if smallest else [OTHER_RESULTS]
    return {"violations": list(smallest.values()), "why": why, "not_null": not_null}


def _read_promise(
    answer: Any, promise: str, protocol: Spec, some: Sequence[JobStatement]
) -> PromiseAnswer | None:
    """Return the answer about a promise, with the names of the statements; None if it is none."""
    match answer:
        case {"violations": [*violations], "why": [*why], "not_null": bool(not_null)}:
            pass
        case _:
            return None
    for members in violations:
        if not isinstance(members, list) or not members:
            return None
        if not all(type(k) is int and 0 <= k < len(some) for k in members):
            return None
    if not all(isinstance(one, str) for one in why):
        return None
    runs = (
        RunViolation(promise, protocol.name, tuple(some[k].name for k in members))
        for members in cast("list[list[int]]", violations)
    )
    return PromiseAnswer(tuple(runs), tuple(why), not_null=not_null)
