"""The verb ``predict``: which jobs stop which, and when.

For two statements a solver says whether some parameters and some table make the commit check stop the one that the
other overtakes. If not, that is a proof. If so, what it proposes is carried out, and only what is then seen to stop
is shown. What has to be so of the parameters is guessed from comparisons of one with another, and proved.
"""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from isolitmus.checker.processes import process_pool, unheard
from isolitmus.checker.robustness.asking import Asked
from isolitmus.checker.robustness.casting import Instances
from isolitmus.checker.robustness.conditions import atoms, implied
from isolitmus.checker.robustness.staging import Stage
from isolitmus.checker.running.execute import execute, observed_run
from isolitmus.checker.templates.codes import NoValue
from isolitmus.checker.templates.frames import SymbolicFrame
from isolitmus.model.errors import Ended, IsolitmusError, LitmusError, UndeterminedError
from isolitmus.model.litmus import Expectation
from isolitmus.model.readable import Readable
from isolitmus.model.schedule import Schedule
from isolitmus.model.statement import Read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.checker.robustness.conditions import Atom
    from isolitmus.model.execution import Event
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.model.workload import JobStatement, Workload

__all__ = ["JobPrediction", "Meeting", "predict_pair", "predict_workload"]

Word = Literal["never", "always", "when", "apart", "unknown"]
MODELS = 4
"""So many proposals of the solver are carried out for one exception."""


@dataclass(frozen=True, slots=True)
class Meeting(Readable):
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
    """By exception, the smallest example."""
    retries: Mapping[str, str] = field(default_factory=dict)
    """By exception, how the loser of the example ends when it is run again."""
    why: str = ""
    """Why it is unknown."""

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
            "retries": dict(self.retries),
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class JobPrediction(Readable):
    """All pairs of a workload's statements, under one protocol."""

    workload: Workload
    """Whose they are."""
    protocol: str
    """The commit check."""
    meetings: tuple[Meeting, ...]
    """One for each ordered pair."""
    seconds: float = 0.0
    """How long it took."""

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
            "meetings": [meeting.to_json() for meeting in self.meetings],
            "assumptions": list(self.workload.assumptions),
            "seconds": round(self.seconds, 3),
        }


def predict_workload(
    workload: Workload,
    protocol: Spec,
    *,
    examples: bool = True,
    processes: int = 1,
    tell: Callable[[str], None] | None = None,
) -> JobPrediction:
    """Every statement that writes, overtaken by every other one and by another run of itself. Without
    ``examples`` nothing is carried out: "when" is then what the solver says, and "never" the same proof. So many
    ``processes`` share the work; what is said is the same with any number.

    >>> from isolitmus.specs import protocol
    >>> from isolitmus.specs.workload_file import read_workload
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
    Instances(workload).check_domains()
    losers = [one.name for one in _writers(workload)]
    if not losers:
        raise LitmusError(
            f"{workload.name}: no job writes to a table, and only who writes is stopped; add one that does"
        )
    rows = _Rows(workload, protocol, examples)
    if processes == 1:
        found = []
        for loser in losers:
            if tell is not None:
                tell(f"who stops {loser}")
            found.append(rows.of(loser))
    else:
        found = list(_shared_out(rows, losers, processes, tell))
    meetings = tuple(meeting for row in found for meeting in row)
    return JobPrediction(workload, protocol.name, meetings, monotonic() - start)


def _writers(workload: Workload) -> list[JobStatement]:
    return [one for one in workload.statements if not isinstance(one.statement, Read)]


class _Rows(NamedTuple):
    """What is predicted, a row for each that is stopped: no row needs what another one found."""

    workload: Workload
    protocol: Spec
    examples: bool

    def of(self, name: str) -> tuple[Meeting, ...]:
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
) -> Iterator[tuple[Meeting, ...]]:
    """The rows of these, in their order, from several processes."""
    with process_pool(processes, _begin, rows) as pool:
        with unheard():
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


def _row(loser: str) -> tuple[Meeting, ...]:
    return _Shared.rows.of(loser)


def predict_pair(
    cast: Instances,
    loser: JobStatement,
    winner: JobStatement,
    protocol: Spec,
    *,
    examples: bool = True,
) -> Meeting:
    """How a statement ends that another one overtakes, under a protocol."""
    if not cast.workload.overlap(loser.job, winner.job):
        return Meeting(loser.name, winner.name, "apart")
    pair = _Pair(cast, loser, winner, protocol)
    return pair.meeting() if examples else pair.proposal()


class _Pair:
    """One statement, overtaken by another one."""

    def __init__(
        self, cast: Instances, loser: JobStatement, winner: JobStatement, protocol: Spec
    ) -> None:
        self.workload = cast.workload
        self.names = loser.name, winner.name
        self.protocol = protocol
        self.cast = cast
        self.loser, self.winner = self.cast.pair(loser, winner)
        frame = SymbolicFrame([self.winner.instance, self.loser.instance])
        self.stops = frame.stops(protocol, loser=1)
        roles = (self.loser, self.winner)
        self.busy = cast.everybody.z3.And(*(role.instance.busy for role in roles))
        self.asked = Asked(roles, [*frame.given, *cast.differing(self.loser, [self.winner])])

    @property
    def schedule(self) -> str:
        """The loser begins, the winner commits, the loser wants to."""
        return f"{self.loser.name}.start {self.winner.name} {self.loser.name}.commit"

    def proposal(self) -> Meeting:
        """When the loser may be stopped, as the solver has it; nothing is carried out."""
        z3 = self.asked.z3
        self.reached = [
            (name, stop) for name, stop in self.stops if self.asked.possible(stop) is not False
        ]
        if not self.reached:
            return Meeting(*self.names, "never")
        anything = z3.Or(*(stop for _, stop in self.reached))
        condition = implied(self.asked, anything, list(self._atoms()))
        known = [atom.formula for atom in condition]
        certain = self.asked.possible(*known, self._both_write(), z3.Not(anything)) is False
        words = tuple(atom.words for atom in condition)
        return Meeting(*self.names, "when" if words or not certain else "always", words, certain)

    def meeting(self) -> Meeting:
        """When the loser is stopped, with examples."""
        found = self.proposal()
        if found.word == "never":
            return found
        examples: dict[str, Litmus] = {}
        why = ""
        for name, stop in self.reached:
            if name not in examples:
                why = self._example(stop, examples) or why
        if not examples:
            why = why or "nothing that the solver proposes is stopped"
            return replace(found, word="unknown", certain=False, why=why)
        examples = {name: examples[name] for name, _ in self.reached if name in examples}
        retries = {name: self._retry(test) for name, test in examples.items()}
        expecting = {name: self._expecting(test) for name, test in examples.items()}
        return replace(found, examples=expecting, retries=retries)

    def _both_write(self) -> Any:
        return self.asked.z3.And(self.loser.instance.writes, self.winner.instance.writes)

    def _atoms(self) -> Iterator[Atom]:
        return atoms(self.loser, self.winner, self.workload.shared)

    def _example(self, stop: Any, examples: dict[str, Litmus]) -> str:
        """Carry out what the solver proposes, until an exception is seen that was not; why none was."""
        why = ""
        more: list[Any] = []
        for k in range(2 if examples else MODELS):
            model = self.asked.example(stop, *more, wanted=self.busy, apart=bool(k or examples))
            if model is None:
                break
            before = len(examples)
            why = self._carry_out(model, examples) or why
            if len(examples) > before:
                return ""
            known = [
                t.value
                for role in (self.loser, self.winner)
                for t in role.terms.parameters.values()
            ]
            if known:
                more.append(model.others(known))
            elif k:
                break
        return why

    def _carry_out(self, model: Any, examples: dict[str, Litmus]) -> str:
        """Carry out the tests that a model proposes, smallest first, until the loser is stopped."""
        title = f"{self.loser.name} is overtaken by {self.winner.name}"
        stage = Stage(self.cast, model, (self.loser, self.winner), self.schedule)
        why = ""
        try:
            for test in stage.tests(title):
                try:
                    ended = self._event(test, self.loser.name)
                except UndeterminedError as problem:
                    why = problem.problem
                    continue
                except IsolitmusError as problem:
                    why = str(problem).partition("\n")[0]
                    continue
                if ended is not None and ended.conflict is not None:
                    examples.setdefault(ended.conflict, test)
                    return ""
        except NoValue as problem:
            return str(problem)
        except IsolitmusError as problem:
            return str(problem).partition("\n")[0]
        return why

    def _event(self, test: Litmus, name: str) -> Event | None:
        """What became of a transaction; None if another one did not commit, so that it shows nothing."""
        execution = execute(test, self.protocol)
        events = {event.name: event for event in execution.events}
        winner = events.get(self.winner.name)
        if winner is None or winner.aborted:
            return None
        return events.get(name)

    def _expecting(self, test: Litmus) -> Litmus:
        """The test with what becomes of it, and a name."""
        ended = observed_run(test, execute(test, self.protocol), self.protocol.name)
        outcome = {name: (done.outcome,) for name, done in ended.transactions.items()}
        expect = {self.protocol.name: Expectation(outcome=outcome)}
        return replace(test, name=f"{self.names[0]}-by-{self.names[1]}", expect=expect)

    def _retry(self, test: Litmus) -> str:
        """How the loser ends if it begins after the winner: what a retry does."""
        words = f"{self.winner.name} {self.loser.name}"
        again = replace(test, schedule=Schedule.parse(words, test.transactions))
        ended = self._event(again, self.loser.name)
        if ended is None or ended.effect.error is not None:
            return "fails"
        return "commits" if ended.version is not None else "finds nothing to do"
