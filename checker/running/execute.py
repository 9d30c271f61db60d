"""The model as an engine: a litmus test carried out step by step, under a protocol or under none.

A protocol is a spec that is checked at each commit: over the frame of all commits so far and the
one that wants in, the earliest winner that breaks an axiom decides, then the order of the file; the
axiom's name is the exception. What the protocol shows of a commit (its level, or that it is a
no-op) are labels of the same text. No protocol is named here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.reading.graph import first_conflict, judge, labels
from isolitmus.checker.running.asking import ASKED, asked
from isolitmus.checker.running.clients import Clock
from isolitmus.checker.running.conflicts import error_class, unbound, undone
from isolitmus.checker.running.effects import effect
from isolitmus.checker.running.frames import frame
from isolitmus.checker.running.raw import file_of
from isolitmus.checker.running.rebase import replayed
from isolitmus.model.combine import names_in
from isolitmus.model.errors import LitmusError, SpecError
from isolitmus.model.execution import Event, Execution
from isolitmus.model.expression import EvaluationError
from isolitmus.model.footprint import PLAIN
from isolitmus.model.header import Header
from isolitmus.model.reads import needs_reads
from isolitmus.model.run import Run, TransactionRun
from isolitmus.model.table import TableState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.execution import Database
    from isolitmus.model.frame import Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.schema import Schema
    from isolitmus.model.spec import Spec
    from isolitmus.model.statement import Statement
    from isolitmus.model.verdict import Verdict

__all__ = [
    "NO_OP",
    "after",
    "committed",
    "execute",
    "execution_frame",
    "initial",
    "judge_execution",
    "observe",
    "stages",
]

NO_OP = "no-op"
"""The label of a commit that is not recorded."""
ENGINE = "model"
RETRIES = ("OPTIMIZE", "REORG")
"""The operations that try again after a conflict."""


def initial(tables: Mapping[str, Schema], init: Sequence[Statement]) -> Database:
    """The database when the schedule starts; LitmusError for an init statement that fails."""
    return stages(tables, init)[-1]


def stages(tables: Mapping[str, Schema], init: Sequence[Statement]) -> tuple[Database, ...]:
    """The tables that are there, empty or with the files that they hold, and what they are after each
    statement of ``init``, each one commit.

    LitmusError for a statement that fails.
    """
    database: Database = {
        name: TableState((*schema.held, *(file_of(schema, file) for file in schema.files)))
        for name, schema in tables.items()
        if schema.exists
    }
    found = [database]
    for k, statement in enumerate(init):
        done = effect(statement, database, f"+{k}", tables)
        if done.error is not None:
            raise LitmusError(
                f"init statement '{statement.sql}' fails with {done.error.exception}: {done.error}"
            )
        database = after(database, Event("", done, 0))
        found.append(database)
    return tuple(map(_of_nobody, found))


def _of_nobody(database: Database) -> Database:
    """The database with rows that no transaction wrote."""
    return {
        name: replace(
            state,
            files=tuple(
                replace(f, rows=tuple(replace(row, writer="") for row in f.rows))
                for f in state.files
            ),
        )
        for name, state in database.items()
    }


def execute(litmus: Litmus, protocol: Spec | None = None) -> Execution:
    """The execution of the litmus test's schedule; without a protocol every commit goes through.

    >>> from isolitmus.specs import litmus, protocol
    >>> done = execute(litmus("reorder"), protocol("delta-serializable"))
    >>> [(event.name, event.version, event.conflict) for event in done.events]
    [('insert', 1, None), ('delete', None, 'ConcurrentAppendException')]
    """
    if protocol is not None:
        _refuse_unanswerable(protocol)
    work = _Work(litmus, protocol)
    for step in litmus.schedule.steps:
        work.take(step)
    return Execution(tuple(work.events), tuple(work.states))


def _refuse_unanswerable(protocol: Spec) -> None:
    """SpecError for a protocol whose checks use names that the frame of a commit does not have."""
    known = {*frame([], reasons=False).names(), *ASKED}
    lacking = sorted(_named(protocol).difference(known))
    if lacking:
        raise SpecError(
            f"{protocol.name} needs {', '.join(lacking)}, which the check of a commit does not have"
        )


def _named(protocol: Spec) -> frozenset[str]:
    """The base names that a protocol's checks use."""
    exprs = [axiom.expr for axiom in protocol.axioms if axiom.test == "empty"]
    exprs += [label.expr for label in protocol.labels]
    return frozenset(names_in(exprs, protocol.definitions))


@dataclass(slots=True)
class _Work:
    litmus: Litmus
    protocol: Spec | None
    events: list[Event]
    states: list[Database]
    started: dict[str, Event]
    clock: Clock
    asks: bool

    def __init__(self, litmus: Litmus, protocol: Spec | None) -> None:
        self.litmus, self.protocol = litmus, protocol
        self.asks = protocol is not None and not _named(protocol).isdisjoint(ASKED)
        self.events, self.started = [], {}
        try:
            inits = stages(litmus.tables, litmus.init)
            self.states, self.clock = [inits[-1]], Clock(litmus, inits)
        except LitmusError as error:
            raise LitmusError(f"{litmus.name}: {error}") from None

    def take(self, step: Step) -> None:
        name = step.transaction
        self.clock.take(step, len(self.states) - 1)
        if step.reads and name not in self.started:
            self.start(name)
        if step.reads:
            self.clock.begun(name, self.started[name].effect, step)
        if step.ends:
            self.commit(name)

    def start(self, name: str) -> None:
        version = len(self.states) - 1
        done = self.clock.effect(name, self.states, version)
        session = self.litmus.client(name).session
        event = Event(name, done, version, session=session)
        if self.asks and done.footprint is not None:
            schema = done.footprint.schema
            table = self.states[version].get(schema.name, TableState())
            wants = asked(self.litmus.transactions[name], schema, table.files)
            event = replace(event, asked=wants)
        self.started[name] = event

    def commit(self, name: str) -> None:
        event = committed(self.started.pop(name), self.events, len(self.states), self.protocol)
        if event.conflict is not None and self.compacts_still(event):
            newest = len(self.states) - 1
            again = replace(event, conflict=None, error_class=None, read_version=newest)
            event = committed(again, self.events, len(self.states), self.protocol)
        self.events.append(event)
        if not event.aborted:
            self.clock.ended(name)
        if event.version is not None:
            self.states += [after(self.states[-1], event)] * len(event.commits)

    def compacts_still(self, event: Event) -> bool:
        """Whether a compaction tries again after a conflict: while all its files are there as they
        were, deletion vectors and all (OptimizeTableCommand.scala, commitAndRetry).
        """
        footprint = event.effect.footprint
        if event.effect.operation not in RETRIES or footprint is None:
            return False
        name = footprint.schema.name
        then, now = (
            {(f.path, f.dead) for f in state[name].files}
            for state in (self.states[event.read_version], self.states[-1])
        )
        return {f for f in then if f[0] in footprint.removes} <= now


def committed(event: Event, before: Sequence[Event], version: int, protocol: Spec | None) -> Event:
    """The transaction after its attempt to become ``version``: recorded, not recorded, or aborted.

    ``before`` are those that ended before it, in that order; aborted ones do not count.
    """
    if event.effect.error is not None or event.effect.footprint is None:
        return event
    wanted = replace(event, version=version)
    if protocol is None:
        return wanted
    others = [e for e in before if not e.aborted]
    attempt = frame([*others, wanted], reasons=False)
    self = len(attempt.nodes) - 1
    shown = frozenset(
        name for name, nodes in labels(attempt, protocol).items() if nodes >> self & 1
    )
    if NO_OP in shown:
        return replace(event, labels=shown)
    footprint = event.effect.footprint
    if footprint.marks.once and any(map(event.missed, others)):
        late = EvaluationError("DeltaIllegalStateException", "another commit was first")
        return replace(event, effect=replace(event.effect, error=late), labels=shown)
    conflict = first_conflict(attempt, protocol, self)
    if conflict is not None:
        winner, exception = conflict
        wrote = others[winner].effect.footprint
        assert wrote is not None
        failure = None
        if undone(wrote, footprint):
            failure = EvaluationError("DeltaTableFeatureException", "the feature is in use again")
        if unbound(exception, footprint):
            failure = EvaluationError("SparkException", "a subquery is not bound in the check")
        if failure is not None:
            return replace(event, effect=replace(event.effect, error=failure), labels=shown)
        said = error_class(exception, wrote, footprint)
        return replace(event, conflict=exception, error_class=said, labels=shown)
    return replace(wanted, labels=shown)


def after(database: Database, event: Event) -> Database:
    """The database after a commit; a reader leaves it as it was."""
    done = event.effect
    if done.footprint is None:
        return database
    name, marks = done.footprint.schema.name, done.footprint.marks
    before = database.get(name, TableState())
    if event.asked is not None:  # the log decides, whatever became of what was read
        state = before.replay(done.removes, done.adds)
    elif marks is PLAIN or done.writes:
        state = replayed(before, done)
    else:  # a raw transaction's files have no rows that could be carried over
        state = before.replay(done.removes, done.adds)
    header = before.header
    if marks is not PLAIN:
        header = (header or Header.of(done.footprint.schema)).after(
            marks.metadata, marks.features, marks.domains, marks.apps
        )
    return {**database, name: state if header is None else state.under(header)}


def execution_frame(execution: Execution, *, reads: bool = False) -> Frame:
    """The frame of everything that took effect in an execution, with reasons; ``reads`` True gives it
    the reads as nodes.
    """
    return frame([e for e in execution.events if not e.aborted], reads=reads)


def judge_execution(execution: Execution, spec: Spec) -> Verdict:
    """What a spec says of everything that took effect in an execution.

    >>> from isolitmus.specs import level, litmus
    >>> judge_execution(execute(litmus("reorder")), level("causal"))
    Allowed(witness=('insert', 'delete'))
    """
    return judge(execution_frame(execution, reads=needs_reads(spec)), spec)


def observe(litmus: Litmus, execution: Execution, protocol: str) -> Run:
    """The run that an observer of this execution records."""
    transactions = {e.name: _transaction(e) for e in execution.events}
    return Run(
        litmus.name,
        ENGINE,
        "1",
        protocol,
        0,
        {name: transactions[name] for name in litmus.transactions},
        tuple(
            {
                n: database[n].rows()
                for n in litmus.tables
                if n in database and n not in litmus.opaque
            }
            for database in execution.states
        ),
    )


def _transaction(event: Event) -> TransactionRun:
    done = event.effect
    if done.error is not None:
        return TransactionRun(
            f"error:{done.error.exception}", done.error.exception, read_version=event.read_version
        )
    if event.conflict is not None:
        return TransactionRun(
            event.conflict, event.conflict, event.error_class, read_version=event.read_version
        )
    if done.footprint is None:
        return TransactionRun("committed", read_version=event.read_version, rows=done.rows)
    if event.version is None:
        return TransactionRun("no-op", read_version=event.read_version)
    level = next((label for label in sorted(event.labels) if label != NO_OP), None)
    return TransactionRun(
        "committed",
        read_version=event.read_version,
        version=event.commits[-1],
        commits=event.commits,
        blind=done.footprint.claims_blind,
        isolation_level=level,
        operation=done.closing or done.operation,
    )
