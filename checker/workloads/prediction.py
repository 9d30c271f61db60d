"""The verb ``predict``: which jobs conflict, when, and conditions on their parameters.

The verb ``predict``: which jobs stop which, and when.

For two statements a solver says whether some parameters and some table make the commit check stop the one that the
other overtakes. If not, that is a proof. If so, what it proposes is carried out, and only what is then seen to stop
is shown. What has to be so of the parameters is guessed from comparisons of one with another, and proved.

What has to hold of two jobs' parameters, in words: comparisons of one with another, and proofs of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from isolitmus.checker.templates.instance_frames import SymbolicFrame
from isolitmus.checker.workloads.abort_examples import AbortExamples
from isolitmus.checker.workloads.instances import Instances
from isolitmus.checker.workloads.simple_examples import QuestionSolver
from isolitmus.model.budget import Budget
from isolitmus.model.defaults import DELTA
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import Disagreement, Ended, Limit, LitmusError
from isolitmus.model.sql.expression import Parameter
from isolitmus.model.sql.statement import Read
from isolitmus.specs.files.catalogue import protocol as named_protocol
from isolitmus.specs.files.workload_sources import as_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.checker.workloads.instances import Participant
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.types import Type
    from isolitmus.model.workload import JobStatement, Workload
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = [
    "JobPrediction",
    "PairPrediction",
    "ParameterComparison",
    "implied_comparisons",
    "parameter_comparisons",
    "predict_pair",
    "predict_workload",
]

WORDS = {
    "=": "equals",
    "<": "is below",
    ">": "is above",
    "<=": "is at most",
    ">=": "is at least",
    "<>": "is not",
}


class ParameterComparison(NamedTuple):
    """A comparison of two parameters."""

    words: str
    formula: Any


class _Side(NamedTuple):
    """A parameter: whose, in words, of which type, its term."""

    name: str
    words: str
    type: Type
    term: Any


def parameter_comparisons(
    a: Participant, b: Participant, shared: Mapping[str, Type]
) -> Iterator[ParameterComparison]:
    """The comparisons of a parameter of the one with one of the other, or with one that all share; the stronger
    ones first, and before others those of parameters with one name.
    """
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
                    else f"{x.words} {WORDS[op]} {y.words}"
                )
                yield ParameterComparison(words, _formula(op, x.term, y.term))


def _own(role: Participant, shared: Mapping[str, Type]) -> list[_Side]:
    return [
        _Side(p, f"{role.name}'s {Parameter(p, type_)}", type_, role.terms.parameters[p].value)
        for p, type_ in role.statement.types.items()
        if p not in shared and p not in role.statement.let
    ]


def _common(a: Participant, b: Participant, shared: Mapping[str, Type]) -> list[_Side]:
    known = {**a.terms.parameters, **b.terms.parameters}
    return [
        _Side(p, str(Parameter(p, type_)), type_, known[p].value)
        for p, type_ in shared.items()
        if p in known
    ]


def _formula(op: str, x: Any, y: Any) -> Any:
    match op:
        case "=":
            return x == y
        case "<":
            return x < y
        case ">":
            return x > y
        case "<=":
            return x <= y
        case ">=":
            return x >= y
    return x != y


def implied_comparisons(
    asked: QuestionSolver, what: Any, candidates: list[ParameterComparison]
) -> list[ParameterComparison]:
    """Those of the comparisons that hold wherever something does, and not in any case."""
    z3, left = asked.z3, list(candidates)
    while left:
        said = asked.possible(what, z3.Not(z3.And(*(atom.formula for atom in left))))
        if said is None:
            return []
        model = asked.model
        if model is None:
            break
        left = [atom for atom in left if model.has(atom.formula)]
    found: list[ParameterComparison] = []
    for atom in left:  # what the stronger ones before it, and the domains, do not say already
        if asked.possible(*(a.formula for a in found), z3.Not(atom.formula)) is not False:
            found.append(atom)
    return found


RELEASE = "4.4.0"
"""Of Delta Lake: the one whose sources the protocols cite, and on which examples are replayed."""
Word = Literal["never", "always", "when", "apart", "unknown"]


@dataclass(frozen=True, slots=True)
class PairPrediction(ReadableRepr):
    """How one statement ends that another one overtakes."""

    loser: str
    """The statement that has begun and wants to commit."""
    winner: str
    """The one that commits meanwhile."""
    word: Word
    """Whether the loser is stopped: ``never``, ``always``, ``when`` something holds; ``apart``: the two never
    overlap; ``unknown``: it may be, and no example was found."""
    condition: tuple[str, ...] = ()
    """What has to hold of the parameters; all of it."""
    certain: bool = False
    """Whether it is then always stopped, whatever is in the table; else that depends on the rows."""
    examples: Mapping[str, Litmus] = field(default_factory=dict)
    """By exception, the smallest example, in the order in which the commit check looks for them. An exception that is
    neither here nor in ``perhaps`` is proved impossible."""
    retries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By exception, how the loser may end when it is run again: what is not here is proved impossible, but "fails",
    which is here if it was seen."""
    perhaps: tuple[str, ...] = ()
    """The exceptions of which there is neither an example nor a proof that they are impossible."""
    why: str = ""
    """Why something is unknown."""

    def __repr__(self) -> str:
        when = " and ".join(self.condition)
        return f"{self.loser} overtaken by {self.winner}: {self.word} {when}".rstrip()

    def to_json(self) -> dict[str, object]:
        """The meeting as docs/interface.md, 6, has it."""
        return {
            "loser": self.loser,
            "winner": self.winner,
            "word": self.word,
            "condition": list(self.condition),
            "certain": self.certain,
            "examples": {name: str(test) for name, test in self.examples.items()},
            "retries": {name: list(ends) for name, ends in self.retries.items()},
            "perhaps": list(self.perhaps),
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class JobPrediction(ReadableRepr):
    """All pairs of a workload's statements, under one protocol."""

    workload: Workload
    """Whose they are."""
    protocol: str
    """The commit check."""
    meetings: tuple[PairPrediction, ...]
    """One for each ordered pair."""
    seconds: float = 0.0
    """How long it took."""
    ended: str | None = None
    """The limit that ended it, if one did."""
    engine: str = ""
    """The engine that it is of, and what differs on Databricks, if a table is of a kind for which something does."""

    @property
    def rows(self) -> dict[str, list[PairPrediction]]:
        """The meetings by the statement that is stopped."""
        found: dict[str, list[PairPrediction]] = {}
        for meeting in self.meetings:
            found.setdefault(meeting.loser, []).append(meeting)
        return found

    @property
    def examples(self) -> tuple[Litmus, ...]:
        """The smallest examples of all pairs, each with a name of its own."""
        return tuple(
            replace(test, name=test.name if not k else f"{test.name}-{k + 1}")
            for meeting in self.meetings
            for k, test in enumerate(meeting.examples.values())
        )

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.meetings))

    def to_json(self) -> dict[str, object]:
        """The prediction as docs/interface.md, 6, has it."""
        return {
            "workload": self.workload.name,
            "protocol": self.protocol,
            "engine": self.engine,
            "meetings": [meeting.to_json() for meeting in self.meetings],
            "assumptions": list(self.workload.assumptions),
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }


def predict_workload(
    workload: Workload | NameOrPath,
    protocol: SpecLike,
    *,
    examples: bool = True,
    processes: int = 1,
    tell: Callable[[str], None] | None = None,
    told: Callable[[Sequence[PairPrediction]], object] | None = None,
    budget: Budget | None = None,
) -> JobPrediction:
    """Every statement that writes, overtaken by every other one and by another run of itself. Without
    ``examples`` nothing is carried out: "when" is then what the solver says, and "never" the same proof. So many
    ``processes`` share the work; what is said is the same with any number. ``told`` is given each row when it is
    known: who stops one of the statements. Once the ``budget`` is spent, what was not asked is unknown.

    >>> from isolitmus.specs import protocol
    >>> from isolitmus.specs.files.workload_file import read_workload
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
    ingest overtaken by ingest: never
    ingest overtaken by cleanup: never
    cleanup overtaken by ingest: when both have the same :day
    cleanup overtaken by cleanup: when both have the same :day
    """
    start = monotonic()
    workload, protocol = as_workload(workload), named_protocol(protocol)
    Instances(workload).check_domains()
    losers = [one.name for one in _writers(workload)]
    if not losers:
        raise LitmusError(
            f"{workload.name}: no job writes to a table, and only who writes is stopped; add one that does"
        )
    rows = _Rows(workload, protocol, examples)
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
            unasked = (
                PairPrediction(loser, one.name, "unknown", why=str(limit))
                for one in _writers(workload)
            )
            found.append(tuple(unasked))
    meetings = tuple(meeting for row in found for meeting in row)
    seconds = monotonic() - start
    why = None if ended is None else str(ended)
    engine = _engine(protocol, workload)
    return JobPrediction(workload, protocol.name, meetings, seconds, why, engine)


def _engine(spec: Spec, workload: Workload) -> str:
    """The engine whose commit check a protocol is, for these tables."""
    if spec.format != DELTA:
        return f"{spec.title} ({spec.name})"
    told = f"open-source Delta Lake {RELEASE} on Spark ({spec.name})"
    rows = [one.name for one in workload.tables.values() if one.clustered_by or one.vectors]
    if not rows:
        return told
    return (
        f"{told}. On Databricks {' and '.join(rows)} would have row-level concurrency, and OPTIMIZE would stop fewer"
        " jobs: --level databricks-rows@15.4"
    )


def _found(
    rows: _Rows, losers: Sequence[str], processes: int, tell: Callable[[str], None] | None
) -> Iterator[tuple[PairPrediction, ...]]:
    """The rows, as they come."""
    if processes > 1:
        yield from _shared_out(rows, losers, processes, tell)
        return
    for loser in losers:
        if tell is not None:
            tell(f"who stops {loser}")
        yield rows.of(loser)


def _writers(workload: Workload) -> list[JobStatement]:
    return [one for one in workload.statements if not isinstance(one.statement, Read)]


class _Rows(NamedTuple):
    """What is predicted, a row for each that is stopped: no row needs what another one found."""

    workload: Workload
    protocol: Spec
    examples: bool

    def of(self, name: str) -> tuple[PairPrediction, ...]:
        """Who stops the statement of this name."""
        cast = Instances(self.workload)
        writers = _writers(self.workload)
        loser = next(one for one in writers if one.name == name)
        return tuple(
            predict_pair(cast, loser, winner, self.protocol, examples=self.examples)
            for winner in writers
        )


def _shared_out(
    rows: _Rows, losers: Sequence[str], processes: int, tell: Callable[[str], None] | None
) -> Iterator[tuple[PairPrediction, ...]]:
    """The rows of these, in their order, from several processes."""
    from concurrent.futures.process import BrokenProcessPool

    from isolitmus.checker.execution.worker_processes import ignore_interrupts, process_pool

    with process_pool(processes, _begin, rows) as pool:
        with ignore_interrupts():
            asked = [pool.submit(_row, loser) for loser in losers]
        try:
            for loser, one in zip(losers, asked, strict=True):
                if tell is not None:
                    tell(f"who stops {loser}")
                yield one.result()
        except BrokenProcessPool:
            raise Ended(
                "a process of predict was ended from outside (out of memory?); --cores 1 needs less"
            ) from None


class _Shared:
    """What a process of a pool predicts."""

    rows: _Rows


def _begin(rows: _Rows) -> None:
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
    """How a statement ends that another one overtakes, under a protocol."""
    if not cast.workload.overlap(loser.job, winner.job):
        return PairPrediction(loser.name, winner.name, "apart")
    pair = _Pair(cast, loser, winner, named_protocol(protocol))
    return pair.meeting() if examples else pair.proposal()


class _Pair:
    """One statement, overtaken by another one."""

    def __init__(
        self, cast: Instances, loser: JobStatement, winner: JobStatement, protocol: Spec
    ) -> None:
        self.cast = cast.anew()
        self.workload = cast.workload
        self.names = loser.name, winner.name
        self.protocol = protocol
        self.loser, self.winner = self.cast.pair(loser, winner)
        frame = SymbolicFrame([self.winner.instance, self.loser.instance], alone=True)
        self.stops = frame.stops(protocol, loser=1)
        roles = (self.loser, self.winner)
        self.asked = QuestionSolver(
            roles, [*frame.given, *self.cast.differing(self.loser, [self.winner])]
        )

    @property
    def exceptions(self) -> Mapping[str, Any]:
        """For each exception, that it is the first one: axioms are checked in the order of the protocol."""
        z3 = self.asked.z3
        ways: dict[str, list[Any]] = {}
        for k, (name, stop) in enumerate(self.stops):
            before = [z3.Not(other) for called, other in self.stops[:k] if called != name]
            ways.setdefault(name, []).append(z3.And(stop, *before))
        return {name: z3.Or(*some) for name, some in ways.items()}

    def proposal(self) -> PairPrediction:
        """When the loser may be stopped, as the solver has it; nothing is carried out."""
        z3 = self.asked.z3
        self.reached = {
            name: first
            for name, first in self.exceptions.items()
            if self.asked.possible(first) is not False
        }
        if not self.reached:
            return PairPrediction(*self.names, "never")
        anything = z3.Or(*(stop for _, stop in self.stops))
        condition = implied_comparisons(self.asked, anything, list(self._atoms()))
        known = [atom.formula for atom in condition]
        certain = self.asked.possible(*known, self._both_write(), z3.Not(anything)) is False
        words = tuple(atom.words for atom in condition)
        return PairPrediction(
            *self.names, "when" if words or not certain else "always", words, certain
        )

    def meeting(self) -> PairPrediction:
        """When the loser is stopped, with an example of each exception; Disagreement if a run shows one that was refuted."""
        found = self.proposal()
        if found.word == "never":
            return found
        search = AbortExamples(self.cast, self.asked, self.loser, self.winner, self.protocol)
        for name, first in self.reached.items():
            search.look_for(name, first)
        for name in search.found.keys() - self.reached.keys():
            raise Disagreement(
                f"{found.loser} overtaken by {found.winner}: the formulas prove {name} impossible,"
                f" and this run ends with it:\n{search.found[name].test}"
            )
        missing = tuple(name for name in self.reached if name not in search.found)
        if not search.found:
            why = search.why or "nothing that the solver proposes is stopped"
            return replace(found, word="unknown", certain=False, perhaps=missing, why=why)
        shown = [name for name in self.reached if name in search.found]
        return replace(
            found,
            examples={name: search.expecting(name) for name in shown},
            retries={name: search.retries(name, self.reached[name]) for name in shown},
            perhaps=missing,
            why=search.why if missing else "",
        )

    def _both_write(self) -> Any:
        return self.asked.z3.And(self.loser.instance.writes, self.winner.instance.writes)

    def _atoms(self) -> Iterator[ParameterComparison]:
        return parameter_comparisons(self.loser, self.winner, self.workload.shared)
