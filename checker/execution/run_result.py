"""Results of the command ``run``: a run judged, explained and compared, or possible runs.

A run is judged by observable facts. Its transactions are retraced: the model evaluates each
statement on the version that the run says it read, in the log order of the run. If the tables of
the retraced execution equal those of the run at every version, its frame is that of the run.
Otherwise the verdicts of levels are unknown, with the reason.

`PossibleRuns` is the result for a test with several possible runs: what holds in all of them, and
what is possible.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import (
    ENGINE,
    VERSION,
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
    only_execution,
    run_differences,
)
from isolitmus.checker.execution.serial_orders import (
    ModelExecutor,
    SerialOrders,
    explain_serially,
    strongest_explanations,
)
from isolitmus.checker.judge.anomalies import anomaly_names, cycle_anomalies
from isolitmus.checker.judge.graph_semantics import judge
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.model.dependency_graph import GraphResult
from isolitmus.model.display import PageResult
from isolitmus.model.engine import Engine, RunsTests
from isolitmus.model.errors import LitmusError, UndeterminedError
from isolitmus.model.execution import Event, Execution
from isolitmus.model.litmus import Expectation, HistoryTest
from isolitmus.model.records import Tabular
from isolitmus.model.run import SILENT, TOOK_EFFECT, SeveralRuns, same_bag
from isolitmus.model.sql.nondeterminism import ABOUT_ROWS
from isolitmus.model.sql.statement import statements_of
from isolitmus.model.sql.types import UNNAMED
from isolitmus.model.sql.values import show_row, to_json
from isolitmus.model.verdict import Forbidden, Unknown
from isolitmus.specs.files.catalogue import litmus as named_litmus
from isolitmus.specs.files.spec_catalogue import level, levels, protocol
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol
from isolitmus.specs.registries import format_named

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


def run(litmus: Litmus | NameOrPath, protocol: SpecLike) -> RunResult:
    """Execute a litmus test on the model under a protocol.

    Parameters
    ----------
    litmus : Litmus, str or path
        The test, its name or the path of its file.
    protocol : Spec, str or path
        The commit protocol, its name or the path of its file.

    Returns
    -------
    RunResult
        The run, its serial orders, the verdicts of levels, and differences from the expectations.

    Raises
    ------
    LitmusError
        If the test is an abstract history, which has no statements.
    SeveralRuns
        If the test has a part that the model cannot compute; it contains all possible runs.

    Examples
    --------
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
        execution = only_execution(test, under, undecided)
    return RunResult(test, observed_run(test, execution, under.name), execution)


def retrace(litmus: Litmus, observed: Run) -> Execution:
    """Return the model's execution along a run's read versions and log order, without checks."""
    form = format_named(litmus.format)
    inits = initial_stages(form, litmus.tables, litmus.init)
    driver, now = form.drive(litmus, inits, ABOUT_ROWS), 0
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
    """Return what took effect in an execution of the model, in the form that `retrace` has.

    Transactions are in log order, with tables of the test's own format, whatever the protocol's
    format did to the files.
    """
    took = [replace(event, read_set=None) for event in execution.events if not event.aborted]
    took.sort(key=lambda e: ((e.commits or (e.read_version,))[-1], e.version is None, e.name))
    states, form = [execution.states[0]], format_named(litmus.format)
    for event in took:
        states += [form.after(states[-1], event)] * len(event.commits)
    return Execution(tuple(took), tuple(states), litmus.format, execution.schedule)


@dataclass(frozen=True)
class RunResult(PageResult, GraphResult, Tabular):
    """Run with its frame, its serial orders, the verdicts of levels, and its expectations."""

    litmus: Litmus
    """Executed test."""
    run: Run
    """Observed run."""
    execution: Execution | None = field(default=None, repr=False, compare=False)
    """Execution of the model, if the run is its own; any other run is retraced."""

    @cached_property
    def serial(self) -> SerialOrders:
        """Serial orders that produce the tables of the run."""
        if self.litmus.raw:
            return SerialOrders((), ())
        return explain_serially(self.litmus, self.run, self.executor)

    @cached_property
    def breaks(self) -> tuple[str, ...] | None:
        """Violated postconditions of the litmus test; None if the model cannot retrace the run."""
        execution, _ = self._retraced
        if execution is None:
            return None
        left = written_rows(event for event in execution.events if not event.aborted)
        return tuple(Postconditions(self.litmus).broken(self.run.tables, left))

    @cached_property
    def executor(self) -> ModelExecutor:
        """Model's executor, which caches the orders it has executed."""
        return ModelExecutor(self.litmus)

    @cached_property
    def _retraced(self) -> tuple[Execution | None, str]:
        """Execution with the run's tables at every version, or None with the reason."""
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
        """Frame of the transactions that took effect; None if the model cannot retrace the run."""
        execution, _ = self._retraced
        return None if execution is None else execution_frame(execution)

    @cached_property
    def _frame_with_reads(self) -> Frame | None:
        execution, _ = self._retraced
        return None if execution is None else execution_frame(execution, reads=True)

    def frame_for(self, spec: Spec) -> Frame | None:
        """Return the frame on which a spec judges the run.

        Reads are nodes and real time is included if the spec needs them.
        """
        frame = self._frame_with_reads if needs_reads(spec) else self.frame
        execution, _ = self._retraced
        if frame is None or execution is None or execution.schedule is None:
            return frame
        return add_real_time(frame, execution.schedule) if needs_times(spec) else frame

    def verdict(self, spec: Spec) -> Verdict:
        """Return the verdict of a spec on the run."""
        frame = self.frame_for(spec)
        return Unknown(self._retraced[1]) if frame is None else judge(frame, spec)

    @cached_property
    def levels(self) -> Mapping[str, Verdict]:
        """Verdict of every shipped level."""
        log = format_named(self.litmus.format).log
        return {name: self.verdict(level(name)) for name in levels(log)}

    @cached_property
    def anomalies(self) -> tuple[str, ...]:
        """Names of the anomalies of a run that is not serializable: those of its cycles.

        Examples
        --------
        >>> run("write-skew-two-tables", "delta-serializable").anomalies
        ('write skew (G2)',)
        >>> run("reorder", "delta-write-serializable").anomalies
        ()
        """
        verdict = self.levels.get("serializable")
        if not isinstance(verdict, Forbidden):
            return ()
        cycles = cycle_anomalies(self.frame) if self.frame is not None else ()
        return tuple(dict.fromkeys((*anomaly_names(verdict), *cycles)))

    @cached_property
    def explained(self) -> Mapping[str, Explanation]:
        """Serial explanations of the run, by level that forbids it for its conflicts."""
        execution, _ = self._retraced
        forbidden = [name for name, v in self.levels.items() if isinstance(v, Forbidden)]
        if execution is None:
            return {}
        return strongest_explanations(self.litmus, execution, forbidden, self.serial, self.executor)

    @property
    def expectation(self) -> Expectation | None:
        """Expectation of the test for this engine's release or this protocol; None if none."""
        expect = self.litmus.expect
        found = (expect.get(name, Expectation()) for name in (self._release, self.run.protocol))
        return next((each for each in found if each != Expectation()), None)

    @property
    def apart(self) -> bool:
        """True if the test expects something else from this engine's release than from the
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
        """Outcome of the run in one word.

        ``anomaly``: at some version no serial order produces the table. ``aborted``: a transaction
        aborted by a conflict. ``silent``: the protocol's source does not say how a transaction
        ends. ``error``: a transaction ended otherwise. ``unknown``: the outcome of a transaction is
        unknown. ``allowed``: none of these.
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
        """Comparison of the run with the expectation of the test."""
        return (
            RunDiff.of(())
            if self.expectation is None
            else compare_with_expectation(self.expectation, self)
        )

    @property
    def differences(self) -> tuple[str, ...]:
        """Differences from the expectation, one sentence each."""
        return self.held.differences

    @property
    def uncompared(self) -> tuple[str, ...]:
        """Points that cannot be compared: the engine does not tell them, or they are unreadable."""
        return (
            *self.held.uncompared,
            *(f"the rows of {name}" for name in sorted(self.litmus.opaque)),
        )

    @property
    def expected(self) -> str:
        """``met``, ``not met``, or ``none`` if no expected point could be compared."""
        if not self.held.points:
            return "none"
        return "not met" if self.differences else "met"

    @property
    def graph(self) -> DependencyGraph:
        """Transactions, and the dependencies between those that took effect."""
        from isolitmus.checker.execution.dependency_graph import transaction_graph

        return transaction_graph(self.litmus, self.frame)

    @property
    def timeline(self) -> Timeline:
        """Start, end and outcome of each transaction."""
        from isolitmus.model.run import Timeline

        return Timeline(self.litmus.schedule, self.run)

    @property
    def records(self) -> Records:
        """Transactions as a table, one row each."""
        return self.run.records

    def __repr__(self) -> str:
        return repr(self.run)

    def to_json(self) -> dict[str, object]:
        """Return the run in the format of docs/interface.md, 6."""
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
            "anomalies": list(self.anomalies),
            "levels": {name: str(verdict) for name, verdict in self.levels.items()},
            "explained": {name: one.to_json() for name, one in self.explained.items()},
            "expected": self.expected,
            "differences": list(self.differences),
            "uncompared": list(self.uncompared),
        }


def _predicted(litmus: Litmus, seen: Run) -> tuple[Execution | None, str]:
    """Return the model's execution of a run of another engine, if the two are indistinguishable.

    Otherwise return None and the first difference.
    """
    execution = execute(litmus, protocol(seen.protocol))
    unlike = run_differences(observed_run(litmus, execution, seen.protocol), seen)
    return (None, unlike[0]) if unlike else (execution, "")


def _unlike(litmus: Litmus, run: Run, execution: Execution) -> str:
    """Return the first difference of a run from its retraced execution; empty if there is none."""
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
    """Return the JSON fields of a transaction whose statements are scans."""
    if transaction.emitted is None and not transaction.waits:
        return {}
    waits = [{"step": wait.step, "behind": list(wait.behind)} for wait in transaction.waits]
    return {"emitted": to_json(transaction.emitted or ()), "waits": waits}


def _transaction_json(transaction: TransactionRun) -> dict[str, object]:
    """Return the JSON object of a transaction of a run."""
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
    """All possible runs of a test, and the run that an engine executed, if any."""

    litmus: Litmus
    several: SeveralRuns
    seen: Run | None

    @property
    def run(self) -> Run:
        """Observed run; else the first possible one, which names the engine."""
        return self.several.runs[0] if self.seen is None else self.seen

    @property
    def word(self) -> str:
        """Outcome in one word, which is never known."""
        return "unknown"

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """Differences from the expectation, and of the observed run from the closest possible one.

        Without an observed run, those of the possible run with the fewest differences.
        """
        if self.seen is None:
            return min(
                (RunResult(self.litmus, run).differences for run in self.several.runs), key=len
            )
        judged = RunResult(self.litmus, self.seen)
        apart = () if judged.apart else self._none()
        return judged.differences + apart

    def _none(self) -> tuple[str, ...]:
        """Return the differences of the observed run from the closest possible run."""
        assert self.seen is not None
        return min((run_differences(one, self.seen) for one in self.several.runs), key=len)

    @property
    def end(self) -> str:
        """Result of the comparison: ``not met``, ``met``, ``possible`` or ``predicted``.

        ``met`` if all possible runs, or the observed one, meet the expectation; otherwise
        ``possible``, or ``predicted`` for an observed run.
        """
        if self.differences:
            return "not met"
        runs = self.several.runs if self.seen is None else (self.seen,)
        if all(RunResult(self.litmus, run).expected == "met" for run in runs):
            return "met"
        return "possible" if self.seen is None else "predicted"

    @property
    def ends(self) -> dict[str, tuple[str, ...]]:
        """Possible endings of each transaction, in words; a single one is certain."""
        runs = self.several.runs
        return {
            name: tuple(sorted({_ending(run.transactions[name]) for run in runs}, key=_rank))
            for name in runs[0].transactions
        }

    @property
    def lines(self) -> Iterator[str]:
        """Lines of text: differences of a failed run, possible endings, tables that are certain."""
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
        """Return the possible runs in the format of docs/interface.md, 6."""
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
    """Return a sort key: endings that take effect first, failures last."""
    return not ending.startswith(TOOK_EFFECT), "error" in ending, ending


def _carry(litmus: Litmus, spec: Spec) -> Run:
    return observed_run(litmus, execute(litmus, spec), spec.name)


MODEL = Engine(
    ENGINE,
    "isolitmus's own executor: any protocol file, no JVM",
    lambda: nullcontext(RunsTests(VERSION, _carry)),
    hosts=True,
)
