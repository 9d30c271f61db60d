"""Results of ``run``: a run judged, explained serially, compared; or several possible runs.

The verb ``run``: a run judged, explained serially, and compared with what is expected of it.

A run is judged by what anyone can observe of it. Its transactions are retraced: each statement is
evaluated by the model on the version that the run says it read, in the order that the run says the
log has. If the tables of the retraced execution are those of the run at every version, its frame is
the run's; if not, the levels are unknown, and why is said.

A litmus test of which the model says several runs: what is so in all of them, and what is possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import (
    execute,
    execution_frame,
    initial_stages,
    observed_run,
)
from isolitmus.checker.execution.frame import add_real_time, needs_times
from isolitmus.checker.execution.postconditions import Postconditions, written_rows
from isolitmus.checker.execution.run_diff import (
    RunDiff,
    compare_with_expectation,
    possible_runs,
    run_differences,
)
from isolitmus.checker.execution.serial_orders import (
    ModelExecutor,
    SerialOrders,
    explain_serially,
    strongest_explanations,
)
from isolitmus.checker.judge.graph_semantics import judge
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.model.dependency_graph import GraphResult
from isolitmus.model.display import PageResult
from isolitmus.model.errors import LitmusError, UndeterminedError
from isolitmus.model.execution import Event, Execution
from isolitmus.model.litmus import Expectation, HistoryTest
from isolitmus.model.records import Tabular
from isolitmus.model.run import SILENT, TOOK_EFFECT, SeveralRuns, same_bag
from isolitmus.model.sql.statement import statements_of
from isolitmus.model.sql.types import UNNAMED
from isolitmus.model.sql.values import show_row, to_json
from isolitmus.model.verdict import Forbidden, Unknown
from isolitmus.specs.files.catalogue import level, levels, protocol
from isolitmus.specs.files.catalogue import litmus as named_litmus
from isolitmus.specs.files.catalogue import protocol as named_protocol
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.execution.serial_orders import Explanation
    from isolitmus.model.dependency_graph import DependencyGraph
    from isolitmus.model.frame import Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.records import Records
    from isolitmus.model.run import Run, Timeline, TransactionRun
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.values import Rows
    from isolitmus.model.verdict import Verdict
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = ["PossibleRuns", "RunResult", "retrace", "run"]


def run(litmus: Litmus | NameOrPath, protocol: SpecLike) -> RunResult:
    """Carry a litmus test out on the model, under a protocol; of either the name or the path of its
    file will do. SeveralRuns if it has a part that the model cannot compute, with all runs that may
    come of it.

    >>> done = run("reorder", "delta-write-serializable")
    >>> done.serial.orders, str(done.levels["log-serializable"])
    (('delete insert',), 'forbidden')
    """
    test, under = named_litmus(litmus), named_protocol(protocol)
    if isinstance(test, HistoryTest):
        raise LitmusError(
            f"{test.name} is an abstract history, without statements; check judges it"
        )
    try:
        execution = execute(test, under)
    except SeveralRuns:
        raise
    except UndeterminedError as undecided:
        raise possible_runs(test, under, undecided) from None
    return RunResult(test, observed_run(test, execution, under.name), execution)


def retrace(litmus: Litmus, observed: Run) -> Execution:
    """The model's execution along a run's own read versions and log order, without any check."""
    form = format_named(litmus.format)
    inits = initial_stages(form, litmus.tables, litmus.init)
    driver, now = form.drive(litmus, inits, None), 0
    for step in litmus.schedule.steps:
        driver.take(step, now)
        seen = observed.transactions[step.transaction]
        if step.ends:
            now = max(now, *seen.commits, 0)
            if seen.outcome in TOOK_EFFECT:
                driver.ended(step.transaction)
    states = [inits[-1]]
    events: list[Event] = []
    by_version = sorted(
        (t.version if t.version is not None else t.read_version or 0, t.version is None, name)
        for name, t in observed.transactions.items()
        if t.outcome in TOOK_EFFECT
    )
    for _, _, name in by_version:
        seen = observed.transactions[name]
        read_version = seen.read_version or 0
        if read_version >= len(states):
            break
        done = None
        for _ in statements_of(litmus.transactions[name]):
            done = driver.effect(name, states, read_version, done)
        assert done is not None
        first = min(seen.commits, default=None)
        event = Event(name, done, read_version, first, session=litmus.client(name).session)
        events.append(event)
        if first is not None and done.footprint is not None:
            states += [form.after(states[-1], event)] * len(event.commits)
    return Execution(tuple(events), tuple(states), litmus.format, litmus.schedule)


def retrace_by_rows(litmus: Litmus, execution: Execution) -> Execution:
    """What took effect in an execution of the model's own, as ``retrace`` has it: in the order of
    the log, and with the tables that the test's own format gives, whatever that of the protocol
    made of the files.
    """
    took = [replace(event, read_set=None) for event in execution.events if not event.aborted]
    took.sort(key=lambda e: ((e.commits or (e.read_version,))[-1], e.version is None, e.name))
    states, form = [execution.states[0]], format_named(litmus.format)
    for event in took:
        states += [form.after(states[-1], event)] * len(event.commits)
    return Execution(tuple(took), tuple(states), litmus.format, execution.schedule)


@dataclass(frozen=True)
class RunResult(PageResult, GraphResult, Tabular):
    """A run with its frame, its serial explanation, its levels, and how far it met expectations."""

    litmus: Litmus
    """What was carried out."""
    run: Run
    """What was observed."""
    execution: Execution | None = field(default=None, repr=False, compare=False)
    """The model's, if the run is its own; of any other it is retraced."""

    @cached_property
    def serial(self) -> SerialOrders:
        """The serial explanation, from the rows that the run shows."""
        if self.litmus.raw:
            return SerialOrders((), ())
        return explain_serially(self.litmus, self.run, self.executor)

    @cached_property
    def breaks(self) -> tuple[str, ...] | None:
        """The postconditions of the litmus test that do not hold at the end; None if the model
        cannot retrace the run.
        """
        execution, _ = self._retraced
        if execution is None:
            return None
        left = written_rows(event for event in execution.events if not event.aborted)
        return tuple(Postconditions(self.litmus).broken(self.run.tables, left))

    @cached_property
    def executor(self) -> ModelExecutor:
        """The model's own, which keeps what it has executed."""
        return ModelExecutor(self.litmus)

    @cached_property
    def _retraced(self) -> tuple[Execution | None, str]:
        if self.litmus.raw:
            return None, "raw transactions have no rows"
        own = self.execution
        if format_named(self.litmus.format).carry_out is not None:
            return (own, "") if own is not None else _predicted(self.litmus, self.run)
        execution = (
            retrace(self.litmus, self.run) if own is None else retrace_by_rows(self.litmus, own)
        )
        problem = _unlike(self.litmus, self.run, execution)
        return (None, problem) if problem else (execution, "")

    @cached_property
    def frame(self) -> Frame | None:
        """The frame of what took effect; None if the model cannot retrace the run."""
        execution, _ = self._retraced
        return None if execution is None else execution_frame(execution)

    @cached_property
    def _frame_with_reads(self) -> Frame | None:
        execution, _ = self._retraced
        return None if execution is None else execution_frame(execution, reads=True)

    def frame_for(self, spec: Spec) -> Frame | None:
        """The frame on which a spec judges the run: with its reads as nodes, and what was when, if
        it asks for them.
        """
        frame = self._frame_with_reads if needs_reads(spec) else self.frame
        execution, _ = self._retraced
        if frame is None or execution is None or execution.schedule is None:
            return frame
        return add_real_time(frame, execution.schedule) if needs_times(spec) else frame

    def verdict(self, spec: Spec) -> Verdict:
        """What a spec says of the run."""
        frame = self.frame_for(spec)
        return Unknown(self._retraced[1]) if frame is None else judge(frame, spec)

    @cached_property
    def levels(self) -> Mapping[str, Verdict]:
        """The verdict of every level that ships."""
        log = format_named(self.litmus.format).log
        return {name: self.verdict(level(name)) for name in levels(log)}

    @cached_property
    def explained(self) -> Mapping[str, Explanation]:
        """What a serial order explains, by the levels that forbid the run for its conflicts."""
        execution, _ = self._retraced
        forbidden = [name for name, v in self.levels.items() if isinstance(v, Forbidden)]
        if execution is None:
            return {}
        return strongest_explanations(self.litmus, execution, forbidden, self.serial, self.executor)

    @property
    def expectation(self) -> Expectation | None:
        """What the litmus test expects of this engine by name and release, or of this protocol;
        None if that is nothing.
        """
        expect = self.litmus.expect
        found = (expect.get(name, Expectation()) for name in (self._release, self.run.protocol))
        return next((each for each in found if each != Expectation()), None)

    @property
    def apart(self) -> bool:
        """Whether the litmus test says of this engine's release what it does: it differs from the
        model.
        """
        return self.expectation is not None and self.expectation is self.litmus.expect.get(
            self._release
        )

    @property
    def _release(self) -> str:
        return f"{self.run.engine}-{self.run.engine_version}"

    @property
    def word(self) -> str:
        """The run in one word: ``anomaly`` (at some version no serial order gives the table),
        ``aborted`` (a conflict ended a transaction), ``silent`` (the protocol's source does not say
        how one ends), ``error`` (something else ended one), or ``allowed``.
        """
        seen = self.run.transactions.values()
        if self.serial.unexplained:
            return "anomaly"
        if any(t.aborted for t in seen):
            return "aborted"
        others = [t.outcome for t in seen if t.outcome not in TOOK_EFFECT]
        words = (word for word in (SILENT, "unknown") if word in others)
        return next(words, "error" if others else "allowed")

    @cached_property
    def held(self) -> RunDiff:
        """The run beside what the litmus test expects of it."""
        return (
            RunDiff.of(())
            if self.expectation is None
            else compare_with_expectation(self.expectation, self)
        )

    @property
    def differences(self) -> tuple[str, ...]:
        """Where the run is not what the litmus test expects, a sentence each."""
        return self.held.differences

    @property
    def uncompared(self) -> tuple[str, ...]:
        """What nobody can compare, because the engine does not tell it or nobody can read it."""
        return (
            *self.held.uncompared,
            *(f"the rows of {name}" for name in sorted(self.litmus.opaque)),
        )

    @property
    def expected(self) -> str:
        """``met``, ``not met``, or ``none`` where nothing is expected that could be compared."""
        if not self.held.points:
            return "none"
        return "not met" if self.differences else "met"

    @property
    def graph(self) -> DependencyGraph:
        """The transactions, and the dependencies between those that took effect."""
        from isolitmus.checker.execution.dependency_graph import transaction_graph

        return transaction_graph(self.litmus, self.frame)

    @property
    def timeline(self) -> Timeline:
        """When each transaction started and ended, and what became of it."""
        from isolitmus.model.run import Timeline

        return Timeline(self.litmus.schedule, self.run)

    @property
    def records(self) -> Records:
        """What each transaction did, a row each."""
        return self.run.records

    def __repr__(self) -> str:
        return repr(self.run)

    def to_json(self) -> dict[str, object]:
        """The run as docs/interface.md, 6, has it."""
        observed = self.run
        return {
            "engine": observed.engine,
            "engine_version": observed.engine_version,
            "protocol": observed.protocol,
            "base": observed.base,
            "transactions": {n: _transaction_json(t) for n, t in observed.transactions.items()},
            "versions": [
                {"version": k, "tables": _tables_json(tables)}
                for k, tables in enumerate(observed.versions)
            ],
            "tables": _tables_json(observed.tables),
            "serial": list(self.serial.orders),
            "unexplained": list(self.serial.unexplained),
            **({"breaks": list(self.breaks or ())} if self.litmus.postconditions else {}),
            "levels": {name: str(verdict) for name, verdict in self.levels.items()},
            "explained": {name: one.to_json() for name, one in self.explained.items()},
            "expected": self.expected,
            "differences": list(self.differences),
            "uncompared": list(self.uncompared),
        }


def _predicted(litmus: Litmus, seen: Run) -> tuple[Execution | None, str]:
    """The model's execution of what another engine has carried out, if nobody can tell the two
    apart; else why not.
    """
    execution = execute(litmus, protocol(seen.protocol))
    unlike = run_differences(observed_run(litmus, execution, seen.protocol), seen)
    return (None, unlike[0]) if unlike else (execution, "")


def _unlike(litmus: Litmus, run: Run, execution: Execution) -> str:
    """Where the retraced execution is not the run; empty if nowhere."""
    retraced = {event.name: event.effect for event in execution.events}
    for name, seen in run.transactions.items():
        if seen.outcome not in TOOK_EFFECT:
            continue
        if name not in retraced:
            return f"{name} read version {seen.read_version}, which the run does not have"
        done = retraced[name]
        if done.error is not None:
            return f"{name} ended well, and its statement fails on version {seen.read_version}"
        if (done.rows is None) != (seen.rows is None) or not same_bag(
            done.rows or (), seen.rows or ()
        ):
            return f"{name} read what version {seen.read_version} does not have"
        if seen.outcome == "no-op" and done.writes:
            return f"{name} wrote nothing, and its statement does on version {seen.read_version}"
    for k, (ours, theirs) in enumerate(zip(execution.states, run.versions, strict=False)):
        for name in litmus.tables:
            a = ours[name].rows() if name in ours and name not in litmus.opaque else None
            b = theirs.get(name)
            if (a is None) != (b is None) or not same_bag(a or (), b or ()):
                return f"table {name} at version {k} is not what its statements give"
    if len(execution.states) != len(run.versions):
        return "the run has versions that no statement wrote"
    return ""


def _tables_json(tables: Mapping[str, Rows]) -> dict[str, object]:
    return {name: to_json(rows) for name, rows in tables.items()}


def _scanned_json(transaction: TransactionRun) -> dict[str, object]:
    """What there is to say of one whose statements are scans."""
    if transaction.emitted is None and not transaction.waits:
        return {}
    waits = [{"step": wait.step, "behind": list(wait.behind)} for wait in transaction.waits]
    return {"emitted": to_json(transaction.emitted or ()), "waits": waits}


def _transaction_json(transaction: TransactionRun) -> dict[str, object]:
    t = transaction
    return {
        "outcome": t.outcome,
        "exception": t.exception,
        "error_class": t.error_class,
        "read_version": t.read_version,
        "version": t.version,
        "commits": list(t.commits),
        "blind": t.blind,
        "isolation_level": t.isolation_level,
        "operation": t.operation,
        "rows": None if t.rows is None else to_json(t.rows),
        **_scanned_json(t),
    }


@dataclass(frozen=True)
class PossibleRuns:
    """All runs that a test may end in, and the one that an engine's ended in, if it was carried
    out.
    """

    litmus: Litmus
    several: SeveralRuns
    seen: Run | None

    @property
    def run(self) -> Run:
        """The run that was seen; else one of those that may be, to name who says so."""
        return self.several.runs[0] if self.seen is None else self.seen

    @property
    def word(self) -> str:
        """No word tells which it is."""
        return "unknown"

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """Where it is not as expected, and where what was seen is none of those that may be."""
        if self.seen is None:
            return min(
                (RunResult(self.litmus, run).differences for run in self.several.runs), key=len
            )
        judged = RunResult(self.litmus, self.seen)
        apart = () if judged.apart else self._none()
        return judged.differences + apart

    def _none(self) -> tuple[str, ...]:
        """Where the run that was seen differs from that of the possible ones which is most like
        it.
        """
        assert self.seen is not None
        return min((run_differences(one, self.seen) for one in self.several.runs), key=len)

    @property
    def end(self) -> str:
        """``not met``; ``met`` if what is expected holds of all that may be, or of what was seen;
        else ``possible``, or ``predicted`` of what was seen.
        """
        if self.differences:
            return "not met"
        runs = self.several.runs if self.seen is None else (self.seen,)
        if all(RunResult(self.litmus, run).expected == "met" for run in runs):
            return "met"
        return "possible" if self.seen is None else "predicted"

    @property
    def ends(self) -> dict[str, tuple[str, ...]]:
        """How each transaction may end, in words: one way, if that is certain."""
        runs = self.several.runs
        return {
            name: tuple(sorted({_ending(run.transactions[name]) for run in runs}, key=_rank))
            for name in runs[0].transactions
        }

    @property
    def lines(self) -> Iterator[str]:
        """The differences of a run that failed, how each transaction can end, and the certain
        tables.
        """
        yield from self.differences
        runs = self.several.runs
        ends = self.ends
        width = max(map(len, ends))
        for name, ways in ends.items():
            if len(ways) > 1:
                yield f"{name:<{width}}  possible: {', '.join(ways[:-1])} or {ways[-1]}"
            else:
                yield f"{name:<{width}}  {ways[0]}"
        for table, rows in runs[0].tables.items():
            same = all(table in run.tables and same_bag(run.tables[table], rows) for run in runs)
            shown = " ".join(map(show_row, rows)) or "no rows"
            yield f"{table} at the end: {shown if same else 'unknown'}"
        yield f"Reason: {self.several.problem}"
        if self.seen is not None and not self._none():
            yield "The engine did one of them:"
            for name, done in self.seen.transactions.items():
                yield f"  {name:<{width}}  {done}"

    def to_json(self) -> dict[str, object]:
        """The possible runs as docs/interface.md, 6, has them."""
        first = self.run
        return {
            "engine": first.engine,
            "engine_version": first.engine_version,
            "protocol": first.protocol,
            "possible": [
                {
                    "outcomes": {name: t.outcome for name, t in run.transactions.items()},
                    "tables": {name: to_json(rows) for name, rows in run.tables.items()},
                }
                for run in self.several.runs
            ],
            "why": self.several.problem,
            "seen": None
            if self.seen is None
            else {name: t.outcome for name, t in self.seen.transactions.items()},
            "expected": {"met": "met", "not met": "not met"}.get(self.end, "none"),
            "differences": list(self.differences),
        }


def _ending(done: TransactionRun) -> str:
    if done.outcome == "committed":
        return "committed" if done.version is None else f"committed as version {done.version}"
    return "an error of its own" if done.outcome == f"error:{UNNAMED}" else done.outcome


def _rank(ending: str) -> tuple[bool, bool, str]:
    """First what takes effect, last what fails."""
    return not ending.startswith(TOOK_EFFECT), "error" in ending, ending
