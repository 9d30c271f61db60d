"""Robustness of jobs: whether they keep a promised level for any number of runs and all parameter
values.

The answer of the command ``robust`` is "safe" if each pattern that a violation needs
(``jobs.questions.cycle_patterns``) is proved impossible. A pattern that is not proved impossible
becomes a litmus test that is executed and judged. Only a run that the promise forbids is a
counterexample. Otherwise the answer is unknown, with the reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.judge.spec_properties import is_monotone
from isolitmus.checker.solver.refutation import Certificate, Refutation
from isolitmus.jobs.predict.conflict_paths import without_untaken_paths
from isolitmus.jobs.questions.counterexamples import CounterexampleCheck
from isolitmus.jobs.questions.cycle_patterns import (
    LEMMAS,
    PatternSearch,
    backward_pair,
    cycle_of_four,
    cycle_of_three,
    open_cycle,
    seen_in_between,
    way_in,
    ways_to_miss,
    write_skew,
)
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.questions.null_parameters import not_null_assumptions, with_not_null
from isolitmus.jobs.questions.table_alterations import altering_statements, leave_out_failing
from isolitmus.jobs.readers.workload_sources import as_workload
from isolitmus.jobs.templates.instance_frames import DEPENDENCIES
from isolitmus.jobs.workload import JobStatement
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.budget import Budget
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import Disagreement, Limit
from isolitmus.model.sql.statement import Read
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.jobs.questions.counterexamples import Counterexample
    from isolitmus.jobs.questions.cycle_patterns import (
        CyclePattern,
        PatternQuestion,
        RefutedPattern,
    )
    from isolitmus.jobs.workload import ConflictPath, Workload
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

AT_ROWS = frozenset(("wr", "ww", "rw"))
"""Relations in a commit protocol that compares rows rather than files and partitions."""
PROMISES = ("write-serializable", "update-serializable", "log-serializable")
"""Promised levels, from weakest to strongest.

write-serializable: the final table equals that of some serial order. update-serializable: every
reader sees a state of one. log-serializable: all readers see states of the serial order of the log.
"""
IN_VAIN = 12
"""Number of possible patterns without a counterexample after which no more are looked at: the
answer is unknown.
"""
Safety = Literal["safe", "unsafe", "unknown"]
UNLESS_NULL = "safe unless NULL"
"""Verdict on a promise that is proved for all parameter values but NULL."""
ASSUMED = (
    AssumptionKind.STATEMENTS.says(
        "Jobs execute only these statements; all their other reads are declared with let."
    ),
    AssumptionKind.LOG_ORDER.says(
        "Every statement reads one version of each table, and commits are versions in log order."
    ),
    AssumptionKind.OTHER_WRITERS.says(
        "No other job writes to the tables, and no job changes their columns or properties."
    ),
)
ALTERING = (
    *ASSUMED[:-1],
    AssumptionKind.OTHER_WRITERS.says(
        "No other job writes to the tables, or changes their columns or properties."
    ),
)
"""Assumptions if some job alters a table."""
SEVERAL = AssumptionKind.ONE_MOMENT.says(
    "A statement reads all its tables at one moment, and commits to all tables have one order."
)
"""A further assumption for several tables: each has a log of its own."""


def general_assumptions(workload: Workload) -> tuple[Assumption, ...]:
    """Return the assumptions of each answer about any number of runs of the jobs."""
    several = (SEVERAL,) if len(workload.tables) > 1 else ()
    return (*(ALTERING if altering_statements(workload) else ASSUMED), *several)


def _alone(one: RefutedPattern) -> tuple[str]:
    return (one.text,)


@dataclass(frozen=True, slots=True)
class Robustness(ReadableRepr):
    """Answer whether a workload keeps a promise under a protocol."""

    workload: Workload
    protocol: str
    """Name of the commit protocol."""
    promise: str
    """Name of the promised level."""
    word: Safety
    """``safe``, with a proof; ``unsafe``, with counterexamples; or ``unknown``."""
    refuted: tuple[RefutedPattern, ...] = ()
    """Patterns that are proved impossible, each with its question to the solver."""
    counterexamples: tuple[Counterexample, ...] = ()
    """One counterexample for each pattern that is possible."""
    why: tuple[str, ...] = ()
    """Reasons why the answer is unknown."""
    seconds: float = 0.0
    """Duration."""
    not_null: Safety | None = None
    """``safe`` if it is proved for parameters that are not NULL only; otherwise None."""

    @property
    def seen(self) -> Safety:
        """Answer for the results: whether a serial order produces the tables and all reads.

        If the conflicts are safe, so are the results; if all counterexamples are explained, it is
        unknown.
        """
        if self.word != "unsafe":
            return self.word
        return "unsafe" if any(not one.explained for one in self.counterexamples) else "unknown"

    @property
    def verdict(self) -> str:
        """``word``; "safe unless NULL" if it is proved for parameters that are not NULL only; or
        "unsafe, explained" if all counterexamples violate the promise by conflicts only.
        """
        if self.not_null == "safe":
            return UNLESS_NULL
        return "unsafe, explained" if self.word != self.seen else self.word

    @property
    def certificate(self) -> Certificate:
        """Certificate of a proof, with the solver's questions."""
        questions = [
            Refutation(
                f"{k:03}", f"{LEMMAS[one.lemma].fact}: {one.about}", "smt2", partial(_alone, one)
            )
            for k, one in enumerate(self.refuted, 1)
        ]
        return Certificate(
            f"{self.promise}-{self.protocol}",
            f"{self.workload.name}: under {self.protocol}, all runs of the jobs are {self.promise}",
            tuple(questions),
            (
                (
                    "A violation of the promise has one of these patterns (docs/semantics.md,"
                    " theorems 11 and 12)."
                ),
                "The questions model the statements and the protocol.",
                *self.assumptions,
            ),
        )

    @property
    def lemmas(self) -> Mapping[str, int]:
        """Number of patterns that are proved impossible, by lemma."""
        return Counter(one.lemma for one in self.refuted)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions of the answer."""
        given = (*self.workload.assumptions, *not_null_assumptions(self.workload))
        return (*general_assumptions(self.workload), *given)

    @property
    def worst(self) -> Counterexample | None:
        """Counterexample that no serial order explains, if there is one; otherwise the first."""
        return min(self.counterexamples, key=lambda one: bool(one.explained), default=None)

    def __repr__(self) -> str:
        return f"{self.promise} under {self.protocol}: {self.word}"

    def to_json(self) -> dict[str, object]:
        """Return the answer in the format of docs/interface.md, 6."""
        return {
            "workload": self.workload.name,
            "protocol": self.protocol,
            "promise": self.promise,
            "word": replace(self, not_null=None).verdict,
            "seen": self.seen,
            **({} if self.not_null is None else {"not_null": self.not_null}),
            "refuted": dict(self.lemmas),
            "counterexamples": [
                {
                    "schedule": one.danger.schedule,
                    "litmus": str(one.test),
                    "serial": list(one.serial),
                    "explained": list(one.explained),
                    "nulls": list(one.nulls),
                    "unshown": list(one.unshown),
                }
                for one in self.counterexamples
            ],
            "why": list(self.why),
            "not_understood": [one.to_json() for one in self.workload.unread],
            "assumptions": list(self.assumptions),
            "seconds": round(self.seconds, 3),
        }


def decide_robustness(
    workload: Workload | NameOrPath,
    protocol: SpecLike,
    promise: str,
    *,
    tell: Callable[[str], None] | None = None,
) -> Robustness:
    """Decide whether any number of runs of the jobs, with any parameters, keep a promise under a
    protocol.

    Parameters
    ----------
    workload : Workload, str or path
        The jobs.
    protocol : Spec, str or path
        The commit protocol.
    promise : str
        One of `PROMISES`.
    tell : callable, optional
        Receives progress messages.

    Examples
    --------
    >>> from isolitmus.specs import protocol
    >>> from isolitmus.jobs.readers.workload_file import read_workload
    >>> jobs = read_workload('''
    ... ddl = "CREATE TABLE t (id INT, day INT) USING delta PARTITIONED BY (day)"
    ... [jobs.ingest]
    ... sql = "INSERT INTO t VALUES (:id, :day)"
    ... parameters = { id = "INT", day = "INT" }
    ... [jobs.cleanup]
    ... sql = "DELETE FROM t WHERE day = :day"
    ... parameters = { day = "INT" }
    ... ''', "jobs")
    >>> under = protocol("delta-write-serializable")
    >>> decide_robustness(jobs, under, "write-serializable")
    write-serializable under delta-write-serializable: safe
    >>> decide_robustness(jobs, under, "log-serializable")
    log-serializable under delta-write-serializable: unsafe
    """
    (found,) = decide_all(workload, (protocol,), (promise,), tell=tell)
    return found


def decide_all(
    workload: Workload | NameOrPath,
    protocols: Sequence[SpecLike],
    promises: Sequence[str],
    *,
    examples: bool = True,
    tell: Callable[[str], None] | None = None,
    budget: Budget | None = None,
) -> Iterator[Robustness]:
    """Decide several promises, each under several protocols; common questions are asked once.

    Parameters
    ----------
    workload : Workload, str or path
        The jobs.
    protocols : sequence of Spec, str or path
        Commit protocols.
    promises : sequence of str
        Some of `PROMISES`.
    examples : bool
        Whether to execute examples. If not, an answer is "safe", with the same proof, or "unknown".
    tell : callable, optional
        Receives progress messages.
    budget : Budget, optional
        Limits; the answers that remain when it is spent are unknown.
    """
    budget = budget or Budget(memory=inf)
    workload = leave_out_failing(as_workload(workload))
    asked = []
    same: dict[tuple[ConflictPath, ...], tuple[Instances, Instances | None]] = {}
    for each in map(named_protocol, protocols):
        work = without_untaken_paths(workload, each, budget)
        if (key := work.conflict_paths) not in same:
            instances = Instances(with_not_null(work))
            instances.check_domains()
            same[key] = instances, instances.without_nulls() if instances.may_have_nulls else None
        instances, plain = same[key]
        asked.append((work, _Promises(instances, each, tell, examples=examples, plain=plain)))
    for promise in promises:
        for work, one in asked:
            try:
                with budget.interrupting():
                    found = one.answer(promise, promises)
            except Limit as limit:
                name = one.dangers.protocol.name
                found = Robustness(workload, name, promise, "unknown", why=(str(limit),))
            if work.unread and found.word == "safe":
                names = ", ".join(one.name for one in work.unread)
                why = f"the other statements are safe, but these are not understood: {names}"
                found = replace(found, word="unknown", why=(why,))
            if work.unread:
                found = replace(found, not_null=None)
            # with all paths: a repair may change what aborts
            yield replace(found, workload=replace(workload, left_out=work.left_out))


class _Promises:
    """All promises of one workload under one protocol.

    A promise implies those before it in PROMISES: a violation of one of them violates it, and its
    proof proves them.
    """

    def __init__(
        self,
        instances: Instances,
        protocol: Spec,
        tell: Callable[[str], None] | None,
        *,
        examples: bool,
        plain: Instances | None = None,
    ) -> None:
        self.plain = None if plain is None else _Promises(plain, protocol, tell, examples=False)
        """Proofs without NULL as a parameter."""
        self.dangers = PatternSearch(instances, protocol)
        self.trials = CounterexampleCheck(instances, protocol) if examples else None
        self.tell = tell
        self._asked: dict[str, Robustness] = {}

    def answer(self, promise: str, wanted: Sequence[str]) -> Robustness:
        """Return the answer for one promise; if unknown, use the answers for the others."""
        start = monotonic()
        found = self._ask(promise)
        if found.word == "unknown":
            place = PROMISES.index(promise)
            others = [p for p in PROMISES if p != promise]
            for other in sorted(others, key=lambda p: p not in wanted):
                stronger = PROMISES.index(other) > place
                asked = self._ask(other)
                if stronger and asked.word == "safe":
                    found = replace(found, word="safe", refuted=asked.refuted, why=())
                    break
                found = self._with_runs(found)
                if found.word == "unsafe":
                    break
        else:
            weaker = PROMISES[: PROMISES.index(promise)]
            for other in wanted:
                if other in weaker and found.seen != found.word:
                    self._ask(other)  # a run that breaks it breaks this promise as well
            found = self._with_runs(found)
        if self.plain is not None and _may_need_null(found):
            is_safe = self.plain.answer(promise, wanted).word == "safe"
            found = replace(found, not_null="safe" if is_safe else None)
        return replace(found, seconds=found.seconds + monotonic() - start)

    def _ask(self, promise: str) -> Robustness:
        """Return the answer for a promise, computed once."""
        if promise not in self._asked:
            asking = _Asking(self.dangers, self.trials, promise, self.tell)
            self._asked[promise] = asking.answer()
        return self._asked[promise]

    def _with_runs(self, found: Robustness) -> Robustness:
        """Return the answer with runs found for other promises that violate this one."""
        if self.trials is None or (found.word, found.seen) == ("unsafe", "unsafe"):
            return found
        known = {one.danger.key for one in found.counterexamples}
        more = [one for one in self.trials.breaking(found.promise) if one.danger.key not in known]
        if not more:
            return found
        if found.word == "safe":
            defect = Disagreement(
                f"{found.promise} under {found.protocol} is proved, but a run violates it:"
                f" {more[0]!r}"
            )
            why = defect.report(more[0].danger.names)
            return replace(found, word="unknown", why=(why,))
        if found.word == "unsafe":
            more = [one for one in more if not one.explained]
        counterexamples = sorted(
            (*found.counterexamples, *more), key=lambda one: len(one.danger.members)
        )
        return replace(found, word="unsafe", counterexamples=tuple(counterexamples), why=())


def _may_need_null(found: Robustness) -> bool:
    """Return whether no counterexample shows that a promise is violated without NULL, too."""
    if found.word != "unsafe":
        return found.word == "unknown"
    explained = found.seen != "unsafe"
    return all(one.nulls for one in found.counterexamples if bool(one.explained) == explained)


class _Asking:
    """Decision of one promise of one workload under one protocol."""

    def __init__(
        self,
        dangers: PatternSearch,
        trials: CounterexampleCheck | None,
        promise: str,
        tell: Callable[[str], None] | None,
    ) -> None:
        self.instances = dangers.instances
        self.workload = self.instances.workload
        self.protocol = dangers.protocol
        self.promise = promise
        self.tell = tell
        self.dangers = dangers
        self.trials = trials
        statements = self.workload.statements
        self.writers = [one for one in statements if not isinstance(one.statement, Read)]
        self.readers = [one for one in statements if isinstance(one.statement, Read)]
        self.refuted: dict[RefutedPattern, None] = {}
        self.unsure: dict[str, None] = {}
        self.found: list[Counterexample] = []
        self.why: list[str] = []
        self.in_vain = 0
        self.sources: list[JobStatement] = []
        self.open: list[tuple[JobStatement, JobStatement, JobStatement, str]] = []

    def answer(self) -> Robustness:
        """Return the answer from all patterns."""
        if not is_monotone(self.protocol):
            self.why.append(
                f"under {self.protocol.name}, more commits may admit more transactions, so nothing"
                " is proved"
            )
        if rows := sorted(self.protocol.needs & AT_ROWS):
            self.why.append(
                f"{self.protocol.name} compares rows ({', '.join(rows)}); the theorems cover only"
                " commit protocols that compare files, so nothing is proved"
            )
        back = [pair for pair in product(self.writers, repeat=2) if self._goes_back(*pair)]
        self.sources = list({last.name: last for last, _ in back}.values())
        for last, early in back:
            if self._gives_up:
                break
            match self.promise:
                case "log-serializable":
                    self._look(backward_pair(last, early))
                case "update-serializable":
                    for reader in self.readers or [self._any_reader(early)]:
                        if not self._look(seen_in_between(last, early, reader)):
                            self._around(last, early, reader)
            if self.promise != "log-serializable":
                self._cycles(last, early)
        apart = [one.name for one in self.writers if one.let and self._reads(one)]
        if apart and back and self.promise != "log-serializable":
            self.why.append(
                f"reads outside the transaction by the client of {', '.join(apart)} are checked"
                " only in cycles of at most three transactions"
            )
        for open_ in () if self.found else self.open:
            if self._gives_up:
                break
            self._longer(*open_)
        if self._gives_up:
            self.why.append(f"after {IN_VAIN} such patterns, no more were looked at")
        word: Safety = "unsafe" if self.found else "unknown" if self.why or self.unsure else "safe"
        unsure = [f"the solver gave up on the pattern of {title}" for title in self.unsure]
        return Robustness(
            self.workload, self.protocol.name, self.promise, word, tuple(self.refuted),
            tuple(sorted(self.found, key=lambda one: len(one.danger.members))),
            () if self.found else tuple(dict.fromkeys((*self.why, *unsure))),
        )  # fmt: skip

    @property
    def _gives_up(self) -> bool:
        """True if many patterns are possible, and no example of any violates the promise."""
        return not self.found and self.in_vain >= IN_VAIN

    def _goes_back(self, last: JobStatement, early: JobStatement) -> bool:
        """Return whether ``last`` may miss a change of its read set by ``early`` and commit."""
        if self.tell is not None:
            self.tell(f"{last.name} with concurrent {early.name}")
        if not self.workload.overlap(last.job, early.job):
            return False
        return any([self._may(one).ways for one in ways_to_miss(backward_pair(last, early))])  # noqa: C419 - no short circuit

    def _may(self, danger: CyclePattern) -> PatternQuestion:
        """Ask about a pattern; impossible ways become part of the proof."""
        question = self.dangers.question(danger)
        self.refuted.update(dict.fromkeys(question.refuted.values()))
        if question.unsure:
            self.unsure[", ".join(danger.names)] = None
        return question

    def _depends(self, a: JobStatement, b: JobStatement, *kinds: str) -> bool:
        """Return whether a dependency of one of these kinds is possible: b on a for wr and ww, a on
        b for rw.
        """
        for kind in kinds:
            found = self.dangers.depends(kind, a, b)
            if found.possible:
                return True
            self.refuted.update(dict.fromkeys(found.refuted))
        return False

    def _reads(self, one: JobStatement) -> bool:
        """Return whether a statement reads what some job writes."""
        return any(self._depends(one, other, "rw") for other in self.writers)

    def _reach(self, start: JobStatement) -> frozenset[str]:
        """Return the statements that may depend on a statement, directly or through others."""
        found: set[str] = set()
        todo = [start]
        while todo:
            one = todo.pop()
            for other in self.writers:
                if other.name not in found and self._depends(one, other, "wr", "ww", "rw"):
                    found.add(other.name)
                    todo.append(other)
        return frozenset(found)

    def _cycles(self, last: JobStatement, early: JobStatement) -> None:
        """Look at the cycles of writers around a backward pair."""
        if self._look(write_skew(last, early)):
            return
        if self._reads(early):
            self.why.append(
                f"{last.name} may not see {early.name}, which in turn may not see others: cycles"
                " with two such steps are searched for among two transactions only"
            )
        for between in self.writers:
            if self.workload.overlap(last.job, between.job):
                kinds = [kind for kind in DEPENDENCIES if self._depends(early, between, kind)]
                direct = bool(kinds) and self._depends(between, last, "rw")
                met = direct and any(
                    [self._look(cycle_of_three(last, early, between, kind)) for kind in kinds]  # noqa: C419 - as above
                )
                self.open += [(last, early, between, kind) for kind in kinds if not met]

    def _longer(
        self, last: JobStatement, early: JobStatement, between: JobStatement, kind: str
    ) -> None:
        """Look for longer cycles, whose path back leads through other statements.

        See docs/semantics.md, Theorem 12. The path ends with a statement that the last one does not
        see, or leads through another backward pair.
        """
        open_ = open_cycle(last, early, between, kind)
        if not self._may(open_).ways:
            return
        reach = self._reach(between)
        for later in self.sources:
            if later.name != last.name and later.name not in reach:
                continue
            for other in self.writers:
                if other.name not in (between.name, *reach):
                    continue
                if not self.workload.overlap(later.job, other.job):
                    continue
                if not self._may(way_in(other, later)).ways:
                    continue
                four = (
                    cycle_of_four(last, early, between, other, kind)
                    if later.name == last.name
                    else ()
                )
                if not any([self._look(danger) for danger in four]):  # noqa: C419 - as above
                    self.why.append(
                        f"{', '.join(open_.names)} may be part of a longer cycle through"
                        f" {other.name}"
                    )

    def _around(self, last: JobStatement, early: JobStatement, reader: JobStatement) -> None:
        """Record a reason if a reader may be on a longer path from the unseen change to the last
        statement.
        """
        after = [w for w in self.writers if self._depends(reader, w, "rw")]
        reach = self._reach(early)
        before = self._depends(early, reader, "wr") or any(
            self._depends(w, reader, "wr") for w in self.writers if w.name in reach
        )
        if before and (last in after or any(last.name in self._reach(w) for w in after)):
            self.why.append(
                f"{reader.name} may read between {early.name} and {last.name} through other"
                " transactions, which is not searched for"
            )

    def _any_reader(self, early: JobStatement) -> JobStatement:
        """Return a reader of the whole table."""
        table = early.statement.target  # type: ignore[union-attr] # a writer has a target
        sql = f"SELECT * FROM {table}"
        return JobStatement(
            "reader", early.job, sql, read_statement(sql, self.workload.tables), {}, {}
        )

    def _look(self, danger: CyclePattern) -> bool:
        """Return whether a pattern is possible, also by reads outside the transaction; if so,
        execute it.
        """
        return any([self._look_at(one) for one in ways_to_miss(danger)])  # noqa: C419 - as above

    def _look_at(self, danger: CyclePattern) -> bool:
        """Return whether a pattern is possible; record its counterexample, or the lack of one."""
        question = self._may(danger)
        if not question.ways:
            return False
        jobs = dict.fromkeys(one.statement.job for one in question.members)
        uncertain = {job: self.workload.uncertain.get(job) for job in jobs}
        if any(uncertain.values()):
            self.why += (
                f"the pattern of {', '.join(danger.names)} is not proved impossible; {why}"
                for why in uncertain.values()
                if why
            )
            return True
        if self._gives_up:
            return True
        shown = None if self.trials is None else self.trials.shown(question, self.promise)
        if shown is not None:
            self.found.append(shown)
        else:
            self.in_vain += 1
            defect = None if self.trials is None else self.trials.defects.get(danger.key)
            no_example = "no example of the solver violates the promise"
            why = no_example if defect is None else defect.report(dict.fromkeys(danger.names))
            pattern = f"the pattern of {', '.join(danger.names)} is not proved impossible"
            self.why.append(f"{pattern}, and {why}" if defect is None else f"{pattern}; {why}")
        return True
