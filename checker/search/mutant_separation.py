"""The verb ``separate --mutants``: what tells each mutant of a spec from it.

First the catalogue. A protocol and its mutant carry every litmus test out; who ends in another way,
or is recorded at another level, tells them apart. A level and its mutant judge every abstract
history, and what the protocols of which a litmus test expects something make of it. Where none of
these tells, ``separate`` looks for the smallest history that one of the two admits and the other
forbids. That something is equivalent nobody finds out so: a file argues for it
(``specs.files.equivalents_file``), and what a history refutes is refused.

What became of a spec's mutants: which are told from it, by what, and which are not.
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
from isolitmus.checker.search.separation import ABSTRACT, separate
from isolitmus.checker.universes import abstract
from isolitmus.model.budget import Budget
from isolitmus.model.defaults import DELTA
from isolitmus.model.display import TextResult
from isolitmus.model.errors import Ended, IsolitmusError, LitmusError, Refused, UndeterminedError
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.records import Records, Tabular
from isolitmus.model.spec import Fold
from isolitmus.model.spec_algebra import without_silences
from isolitmus.specs.files.catalogue import litmus, litmus_names, protocol, protocols
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.catalogue import spec as named
from isolitmus.specs.files.equivalents_file import equivalents, equivalents_path
from isolitmus.specs.language.mutants import is_commit_check, make_mutants
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.execution.run_result import RunResult
    from isolitmus.model.frame import Frame
    from isolitmus.model.relation import Relation
    from isolitmus.model.spec import Axiom, CatExpr, Label, Spec, Unsaid
    from isolitmus.specs.files.spec_catalogue import SpecLike
    from isolitmus.specs.language.mutants import Mutant

__all__ = [
    "AskedTest",
    "JudgedMutant",
    "Kill",
    "MutantReport",
    "changed_expressions",
    "find_kills",
    "separate_mutants",
    "spec_answer",
]

COLUMNS = ("spec", "mutant", "was", "becomes", "outcome", "by", "argument")


@dataclass(frozen=True, slots=True)
class Kill:
    """What tells a mutant from its spec."""

    test: Litmus | HistoryTest
    """The litmus test, of the catalogue or one that was found."""
    words: str
    """What the spec says of it, and what the mutant says."""
    found: bool = False
    """Whether a search has found it; else it ships."""

    @property
    def name(self) -> str:
        """The test's name."""
        return self.test.name


@dataclass(frozen=True, slots=True)
class JudgedMutant:
    """A mutant with what tells it from the spec."""

    mutant: Mutant
    """Which one."""
    kills: tuple[Kill, ...] = ()
    """Every litmus test of the catalogue that tells it; if none does, the history that a search
    found.
    """
    bound: str = ""
    """How far nothing was found, where nothing was."""
    argument: str = ""
    """Why it is equivalent, if somebody says so."""
    ended: str | None = None
    """The limit that ended the search for a history that tells it."""

    @property
    def outcome(self) -> Literal["told", "argued", "unknown", "survives"]:
        """``told``; or nothing tells it: ``argued`` to be equivalent, ``unknown`` where a limit
        ended the search, else ``survives``.
        """
        if self.kills:
            return "told"
        if self.argument:
            return "argued"
        return "survives" if self.ended is None else "unknown"

    def to_json(self) -> dict[str, object]:
        """The mutant as docs/interface.md, 6, has it."""
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
    """The answer to ``separate LEVEL --mutants``."""

    spec: Spec
    """Whose mutants."""
    judged: tuple[JudgedMutant, ...]
    """Each, in the order of the text."""
    seconds: float
    """What it took."""

    @property
    def survivors(self) -> tuple[JudgedMutant, ...]:
        """Those that nothing tells from the spec, and for which nobody argues."""
        return tuple(one for one in self.judged if one.outcome in {"survives", "unknown"})

    @property
    def argued(self) -> tuple[JudgedMutant, ...]:
        """Those that somebody says are equivalent, and that nothing tells from the spec."""
        return tuple(one for one in self.judged if one.outcome == "argued")

    @property
    def told(self) -> tuple[JudgedMutant, ...]:
        """Those that a history tells from the spec."""
        return tuple(one for one in self.judged if one.outcome == "told")

    @property
    def records(self) -> Records:
        """A row for each mutant; by is the first test that tells it."""
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
        """The report as docs/interface.md, 6, has it."""
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
    """Every mutant of a spec, of the spec of a name or of a file, with what tells it from it.

    ``search``: as for ``separate``, where the catalogue does not tell them apart (default: the
    universes that the spec can be asked of). ``budget``: of all; once it is spent, what has not
    been told is unknown. ``progress`` is told how many mutants are done, of how many. LitmusError
    for an argument on a mutant that a history tells.

    >>> report = separate_mutants("read-committed")
    >>> len(report.judged), report.survivors, report.judged[0].kills[0].name
    (14, (), 'history-aborted-read')
    """
    spec = named(spec)
    start, every = monotonic(), make_mutants(spec)
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
    """A test, and what a spec says of it; of a protocol's also the frames by which it checked
    commits, so that a mutant that says the same of each need not carry the test out: its run is
    this one.
    """

    def __init__(self, test: Litmus | HistoryTest, spec: Spec) -> None:
        self.test, self.spec = test, spec
        self._attempts: list[Frame] | None = None
        if isinstance(test, Litmus) and is_commit_check(spec):
            self._attempts = []
            self.said = _ends(test, spec, self._attempts)
        else:
            self.said = spec_answer(test, spec)
        self._before = [
            (frame, Fold(BitsetAlgebra(frame), spec.definitions), judge_commit(frame, spec))
            for frame in self._attempts or ()
        ]

    def may_differ(self, mutant: Mutant, changed: Sequence[Changed]) -> bool:
        """Whether a mutant of the spec, with what was ``changed``, may say something else; if not,
        it says the same.
        """
        return self._attempts is None or any(
            _differ(fold, changed) and judge_commit(frame, mutant.spec) != said
            for frame, fold, said in self._before
        )


Changed = tuple["CatExpr | None", "CatExpr | None", bool]
"""An expression as it was and as it is now, None if it is not there; and whether it is of a set."""


def changed_expressions(spec: SpecLike, mutant: SpecLike) -> list[Changed]:
    """Where a mutant, in which one statement is another or is gone, is another text."""
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
    def value(expr: CatExpr | None, sets: bool) -> object:
        if expr is None:
            return None
        return fold.members(expr) if sets else fold.relation(expr)

    return any(value(was, sets) != value(now, sets) for was, now, sets in pairs)


def _judge(
    spec: Spec, mutant: Mutant, tests: Iterable[AskedTest], budget: Budget, search: dict[str, Any]
) -> JudgedMutant:
    ended = budget.spent()
    if ended is not None:
        return JudgedMutant(mutant, bound="nothing was asked", ended=str(ended))
    kills = tuple(find_kills(mutant, tests))
    return JudgedMutant(mutant, kills) if kills else _searched(spec, mutant, budget, search)


def find_kills(mutant: Mutant, tests: Iterable[AskedTest]) -> Iterator[Kill]:
    """The tests that a spec was asked of, of which the mutant says something else."""
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
    """The catalogue's tests that a spec may be asked of, abstract histories first."""
    form = format_named(spec.format or DELTA)
    tests = map(litmus, litmus_names(form.log))
    for test in sorted(tests, key=lambda test: isinstance(test, Litmus)):
        if isinstance(test, Litmus) or not is_commit_check(spec):
            yield test


def spec_answer(test: Litmus | HistoryTest, spec: SpecLike) -> Mapping[str, str]:
    """What a spec says of a test: a protocol of each transaction how it ends and at what level it
    is recorded, one of an engine with locks also which rows its scans gave and for whom it waited,
    a level of an abstract history whether it is allowed, and of a test on tables so of what each
    protocol makes of it. Empty where it says nothing, or nobody knows.

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
    if is_commit_check(spec) or spec.clauses:
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
    """What the protocols of which a test of the catalogue expects something make of it."""
    return _runs_of(test.name, format_named(test.format).log)


def _searched(spec: Spec, mutant: Mutant, budget: Budget, search: dict[str, Any]) -> JudgedMutant:
    """The smallest history that one of the two admits and the other forbids, or how far there is
    none.
    """
    if spec.clauses:
        return JudgedMutant(mutant, bound="the catalogue's litmus tests alone were carried out")
    bounds = []
    for universe in [search["universe"]] if search.get("universe") else _universes(spec):
        for a, b in ((spec, mutant.spec), (mutant.spec, spec)):
            asked = {**search, "universe": universe, "shipped": False, "budget": budget}
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
    """Where a spec can be asked: abstract histories, if their names will do, and its format's
    tables, if any ship.
    """
    form = format_named(spec.format or DELTA)
    tables = [named_scope(form.universe)] if form.universe else [None]
    if not spec.needs <= abstract.available_names(spec):
        return tables
    return [ABSTRACT, *tables] if spec.needs <= {*form.terms} else [ABSTRACT]
