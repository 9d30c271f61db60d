"""Mutation analysis of specs: for each mutant, a history that distinguishes it from the spec.

The catalogue is tried first. A protocol and its mutant execute every litmus test; a different
outcome, or a different recorded level, kills the mutant. A level and its mutant judge every
abstract history, and the runs of litmus tests under the protocols for which they have expectations.
If no test kills the mutant, ``separate`` searches the smallest history that one of the two admits
and the other forbids. Such a search cannot establish equivalence. A file may argue for it
(``specs.files.equivalents_file``), and an argument that a history refutes is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.checker.execution.commit_loop import NO_OP, execute, observed_run
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.graph_semantics import BitsetAlgebra, judge_commit, missing_names
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.search.separation import format_of, separate
from isolitmus.checker.search.space_searches import ABSTRACT
from isolitmus.checker.universes import abstract
from isolitmus.model.budget import Budget
from isolitmus.model.display import TextResult
from isolitmus.model.errors import Ended, IsolitmusError, LitmusError, Refused, UndeterminedError
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.records import Records, Tabular
from isolitmus.model.spec import Fold
from isolitmus.model.spec_algebra import without_silences
from isolitmus.specs.files.catalogue import litmus, litmus_names
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.equivalents_file import equivalents, equivalents_path
from isolitmus.specs.files.spec_catalogue import protocol, protocols
from isolitmus.specs.files.spec_catalogue import spec as named
from isolitmus.specs.files.spec_reader import PACKAGE
from isolitmus.specs.language.mutants import make_mutants
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.model.frame import Frame
    from isolitmus.model.relation import Relation
    from isolitmus.model.spec import Axiom, CatExpr, Label, Spec, Unsaid
    from isolitmus.specs.files.spec_catalogue import SpecLike
    from isolitmus.specs.language.mutants import Mutant

COLUMNS = ("spec", "mutant", "was", "becomes", "outcome", "by", "argument")


@dataclass(frozen=True, slots=True)
class Kill:
    """Test that distinguishes a mutant from its spec."""

    test: Litmus | HistoryTest
    """Litmus test, of the catalogue or found by a search."""
    words: str
    """Verdicts of the spec and of the mutant as text."""
    found: bool = False
    """True if a search found it; otherwise it is of the catalogue."""

    @property
    def name(self) -> str:
        """Name of the test."""
        return self.test.name


@dataclass(frozen=True, slots=True)
class JudgedMutant:
    """Mutant with the tests that kill it."""

    mutant: Mutant
    kills: tuple[Kill, ...] = ()
    """Litmus tests of the catalogue that kill it; if there are none, the history found."""
    bound: str = ""
    """Bound of a search that found nothing."""
    argument: str = ""
    """Argument that it is equivalent; empty if there is none."""
    ended: str | None = None
    """Limit that ended the search for a history; None if none did."""

    @property
    def outcome(self) -> Literal["told", "argued", "unknown", "survives"]:
        """Outcome: "told" if a test kills it, "argued" if it is argued to be equivalent.

        Otherwise "unknown" if a limit ended the search, else "survives".
        """
        if self.kills:
            return "told"
        if self.argument:
            return "argued"
        return "survives" if self.ended is None else "unknown"

    def to_json(self) -> dict[str, object]:
        """Return the mutant in the form of docs/interface.md, 6."""
        first = self.kills[0] if self.kills else None
        return {
            "mutant": self.mutant.number,
            "was": self.mutant.was,
            "becomes": self.mutant.becomes,
            "what": self.mutant.what,
            "outcome": self.outcome,
            "by": [kill.name for kill in self.kills],
            "how": None if first is None else first.words,
            "litmus": first.test.text if first is not None and first.found else None,
            "bound": self.bound or None,
            "argument": self.argument or None,
            "ended": self.ended,
        }


@dataclass(frozen=True, slots=True, repr=False)
class MutantReport(TextResult, Tabular):
    """Result of ``separate LEVEL --mutants``."""

    spec: Spec
    """Spec whose mutants were judged."""
    judged: tuple[JudgedMutant, ...]
    """Mutants in the order of the text."""
    seconds: float
    """Run time in seconds."""

    @property
    def survivors(self) -> tuple[JudgedMutant, ...]:
        """Mutants that are neither killed nor argued to be equivalent."""
        return tuple(one for one in self.judged if one.outcome in {"survives", "unknown"})

    @property
    def argued(self) -> tuple[JudgedMutant, ...]:
        """Mutants that are argued to be equivalent and not killed."""
        return tuple(one for one in self.judged if one.outcome == "argued")

    @property
    def told(self) -> tuple[JudgedMutant, ...]:
        """Mutants that are killed."""
        return tuple(one for one in self.judged if one.outcome == "told")

    @property
    def records(self) -> Records:
        """One row per mutant; column ``by`` is the first test that kills it."""
        return Records(
            COLUMNS,
            tuple(
                (
                    self.spec.name,
                    one.mutant.number,
                    one.mutant.was,
                    one.mutant.becomes,
                    one.outcome,
                    one.kills[0].name if one.kills else None,
                    one.argument or None,
                )
                for one in self.judged
            ),
        )

    def to_json(self) -> dict[str, object]:
        """Return the report in the form of docs/interface.md, 6."""
        return {
            "spec": self.spec.name,
            "mutants": [one.to_json() for one in self.judged],
            "survivors": [one.mutant.number for one in self.survivors],
            "seconds": round(self.seconds, 3),
        }


def separate_mutants(
    spec: SpecLike,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
    **search: Any,
) -> MutantReport:
    """Return every mutant of a spec with the tests that distinguish it from the spec.

    Parameters
    ----------
    spec : Spec, str or path
        Spec, its name or its file.
    budget : Budget, optional
        Limit of all searches together. Once it is spent, mutants that are not killed are unknown.
    progress : callable, optional
        Receives the number of mutants done and the number of all.
    **search
        Options of ``separate`` for mutants that the catalogue does not kill. By default all search
        spaces in which the spec can be judged are searched.

    Raises
    ------
    LitmusError
        If a mutant that is argued to be equivalent is killed.

    Examples
    --------
    >>> report = separate_mutants("read-committed")
    >>> len(report.judged), report.survivors, report.judged[0].kills[0].name
    (14, (), 'history-aborted-read')
    """
    spec = named(spec)
    start, every = monotonic(), make_mutants(spec, PACKAGE)
    arguments = equivalents(spec, every)
    budget = budget or Budget()
    tests = [AskedTest(test, spec) for test in _tests(spec)]
    judged = []
    for done, mutant in enumerate(every):
        if progress is not None:
            progress(done, len(every))
        one = _judge(spec, mutant, tests, budget, search)
        argument = arguments.get(mutant.number, "")
        if argument and one.kills:
            kill = one.kills[0]
            raise LitmusError(
                f"{equivalents_path(spec)}: '{mutant.change}' is said to be equivalent, and"
                f" {kill.name} tells it apart: {kill.words}; take the argument out"
            )
        judged.append(replace(one, argument=argument))
    return MutantReport(spec, tuple(judged), monotonic() - start)


class AskedTest:
    """Test with the verdict of a spec.

    For a protocol it also keeps the dependency graphs of its commit checks. A mutant with equal
    verdicts on each of them has the same run, and need not execute the test.
    """

    def __init__(self, test: Litmus | HistoryTest, spec: Spec) -> None:
        self.test, self.spec = test, spec
        self._attempts: list[Frame] | None = None
        if isinstance(test, Litmus) and PACKAGE.is_commit_check(spec):
            self._attempts = []
            self.said = _ends(test, spec, self._attempts)
        else:
            self.said = spec_answer(test, spec)
        self._before = [
            (frame, Fold(BitsetAlgebra(frame), spec.definitions), judge_commit(frame, spec))
            for frame in self._attempts or ()
        ]

    def may_differ(self, mutant: Mutant, changed: Sequence[Changed]) -> bool:
        """Return whether a mutant with the ``changed`` expressions may have another verdict.

        If not, it has the same one.
        """
        return self._attempts is None or any(
            _differ(fold, changed) and judge_commit(frame, mutant.spec) != said
            for frame, fold, said in self._before
        )


Changed = tuple["CatExpr | None", "CatExpr | None", bool]
"""Old and new expression, None if absent, and whether they denote sets."""


def changed_expressions(spec: SpecLike, mutant: SpecLike) -> list[Changed]:
    """Return the expressions in which a mutant differs from the spec.

    The mutant has one statement changed or removed.
    """
    spec, mutant = named(spec), named(mutant)
    found: list[Changed] = []
    for name, was in spec.definitions.items():
        now = mutant.definitions.get(name, was)
        if now != was:
            found.append((was, now, name[0].isupper()))
    parts: list[tuple[Sequence[Axiom | Unsaid | Label], Sequence[Axiom | Unsaid | Label]]]
    parts = [(spec.axioms, mutant.axioms), (spec.silences, mutant.silences)]
    for olds, news in (*parts, (spec.labels, mutant.labels)):
        sets = olds is spec.labels
        if len(olds) == len(news):
            both = zip(olds, news, strict=True)
            found += ((old.expr, new.expr, sets) for old, new in both if old != new)
        else:
            found += ((old.expr, None, sets) for old in olds if old not in news)
    return found


def _differ(fold: Fold[Relation, int], pairs: Sequence[Changed]) -> bool:
    """Return whether a changed expression has another value in a dependency graph."""

    def value(expr: CatExpr | None, sets: bool) -> object:
        if expr is None:
            return None
        return fold.members(expr) if sets else fold.relation(expr)

    return any(value(was, sets) != value(now, sets) for was, now, sets in pairs)


def _judge(
    spec: Spec, mutant: Mutant, tests: Iterable[AskedTest], budget: Budget, search: dict[str, Any]
) -> JudgedMutant:
    """Return the mutant with the tests that kill it, or with the result of a search."""
    ended = budget.spent()
    if ended is not None:
        return JudgedMutant(mutant, bound="nothing was asked", ended=str(ended))
    kills = tuple(find_kills(mutant, tests))
    return JudgedMutant(mutant, kills) if kills else _searched(spec, mutant, budget, search)


def find_kills(mutant: Mutant, tests: Iterable[AskedTest]) -> Iterator[Kill]:
    """Yield the tests on which a mutant has another verdict than the spec."""
    changed: dict[str, list[Changed]] = {}
    for asked in tests:
        of = asked.spec
        if of.name not in changed:
            changed[of.name] = changed_expressions(of, mutant.spec)
        if not asked.may_differ(mutant, changed[of.name]):
            continue
        test, said = asked.test, asked.said
        other = spec_answer(test, mutant.spec)
        for who in said.keys() & other.keys():
            if said[who] != other[who]:
                about = f"{who}: " if who else ""
                yield Kill(test, f"{about}{said[who]}, in the mutant {other[who]}")
                break


def _tests(spec: Spec) -> Iterator[Litmus | HistoryTest]:
    """Yield the catalogue's tests that apply to a spec, abstract histories first."""
    form = format_named(format_of(spec))
    tests = map(litmus, litmus_names(form.log))
    for test in sorted(tests, key=lambda test: isinstance(test, Litmus)):
        if isinstance(test, Litmus) or not PACKAGE.is_commit_check(spec):
            yield test


def spec_answer(test: Litmus | HistoryTest, spec: SpecLike) -> Mapping[str, str]:
    """Return the verdict of a spec on a test, as texts.

    Returns
    -------
    mapping of str to str
        For a protocol: by transaction its outcome and recorded level, under locking also the rows
        that its scans emitted and its waits. For a level: the verdict on an abstract history, by
        "", or on the run of a test on tables under each protocol. Empty if there is no verdict.

    Examples
    --------
    >>> from isolitmus.specs import level, protocol
    >>> spec_answer(litmus("reorder"), protocol("delta-serializable"))
    {'insert': 'committed at Serializable', 'delete': 'ConcurrentAppendException'}
    >>> spec_answer(litmus("reorder"), level("log-serializable"))["under delta-write-serializable"]
    'forbidden'
    >>> spec_answer(litmus("history-lost-update"), level("snapshot-isolation"))
    {'': 'forbidden'}
    """
    spec = named(spec)
    if isinstance(test, HistoryTest):
        verdict = str(check_history(test.history, spec))
        return {"": verdict} if verdict in {"allowed", "forbidden", "silent"} else {}
    if PACKAGE.is_commit_check(spec) or spec.clauses:
        return _ends(test, spec)
    admits, permits = compile_spec(spec), compile_spec(without_silences(spec))
    found = {}
    for judged in _runs(test):
        frame = judged.frame_for(spec)
        if frame is not None and not missing_names(frame, spec):
            word = "allowed" if admits(frame) else "silent" if permits(frame) else "forbidden"
            found[f"under {judged.run.protocol}"] = word
    return found


def _ends(test: Litmus, spec: Spec, attempts: list[Frame] | None = None) -> Mapping[str, str]:
    """Return outcome, level, rows and waits per transaction; empty if the run fails."""
    try:
        done = execute(test, spec, attempts)
    except (Refused, UndeterminedError):
        return {}
    seen = observed_run(test, done, spec.name).transactions
    found = {}
    for event in done.events:
        outcome = seen[event.name].outcome
        levels = sorted(event.labels - {NO_OP}) if event.version is not None else []
        found[event.name] = f"{outcome} at {' and '.join(levels)}" if levels else outcome
        given = seen[event.name].emitted
        if given:
            rows = " ".join(f"({', '.join(map(str, row))})" for row in given)
            found[event.name] += f" with {rows}"
        found[event.name] += "".join(f", waits {wait}" for wait in seen[event.name].waits)
    return found


@cache
def _runs_of(name: str, log: str) -> tuple[RunResult, ...]:
    """Return the runs of a catalogue test under the protocols that it has expectations for."""
    test = litmus(name)
    assert isinstance(test, Litmus)
    found = []
    for under in protocols(log):
        if under in test.expect and not test.raw:
            try:
                found.append(run(test, protocol(under)))
            except UndeterminedError:
                continue
    return tuple(found)


def _runs(test: Litmus) -> tuple[RunResult, ...]:
    """Return the runs of a catalogue test under the protocols for which it has expectations."""
    return _runs_of(test.name, format_named(test.format).log)


def _searched(spec: Spec, mutant: Mutant, budget: Budget, search: dict[str, Any]) -> JudgedMutant:
    """Return the mutant with the smallest separating history, or with the bound of the search."""
    if spec.clauses:
        return JudgedMutant(mutant, bound="only the catalogue's litmus tests were run")
    bounds = []
    for universe in [search["universe"]] if search.get("universe") else _universes(spec):
        for a, b in ((spec, mutant.spec), (mutant.spec, spec)):
            options = {"universe": universe, "shipped": False, "exercise": False}
            asked = {**search, **options, "budget": budget}
            try:
                answer = separate(a, b, **asked)
            except Ended:
                raise
            except IsolitmusError as problem:
                if any(value is not None for value in search.values()):
                    raise
                return JudgedMutant(mutant, bound=f"the catalogue alone was asked: {problem}")
            if answer.found:
                assert answer.litmus is not None
                who = ("it", "the mutant") if a is spec else ("the mutant", "it")
                words = f"{who[0]} admits what {who[1]} forbids"
                return JudgedMutant(mutant, (Kill(answer.litmus, words, found=True),))
            if answer.found is None:
                return JudgedMutant(mutant, bound=answer.bound, ended=answer.ended)
        bounds.append(answer.bound)
    return JudgedMutant(mutant, bound="; ".join(bounds))


def _universes(spec: Spec) -> list[Any]:
    """Return the search spaces in which a spec can be judged.

    They are the abstract histories, if they have all names it needs, and its format's default
    tables.
    """
    form = format_named(format_of(spec))
    tables = [named_scope(form.universe)] if form.universe else [None]
    if not spec.needs <= abstract.available_names(spec):
        return tables
    return [ABSTRACT, *tables] if spec.needs <= {*form.terms} else [ABSTRACT]
