"""Commit loop: executes a litmus test step by step, and checks each commit with the protocol.

A protocol is a spec that is evaluated at each commit, on the frame of all commits so far and the
transaction that wants to commit. The earliest winning commit that violates an axiom decides, then
the order of axioms in the file; the axiom's name is the exception. Labels of the same file say
which isolation level a commit records, and whether it is a no-op: a protocol may record no commit
for a transaction that changes nothing.

If no axiom is violated and the protocol is silent on the two transactions, the outcome of the
commit is undetermined, and the run ends. Axioms only decide. The effect of a statement, and other
effects of a commit, are defined by its format (``model.format``); no protocol and no format is
named here.

`abort_violations` explains each transaction that did not commit: its conflict, or the silence, as
the violation that its commit would have been.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.execution.frame import add_real_time, needs_times
from isolitmus.checker.judge.graph_semantics import (
    explain_conflict,
    first_conflict,
    first_silence,
    fold_over,
    judge,
    label_members,
)
from isolitmus.checker.judge.read_nodes import NODE_SETS, READ_RELATIONS, needs_reads
from isolitmus.model.errors import LitmusError, SpecError, UndeterminedError
from isolitmus.model.execution import Effect, Event, Execution
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.run import ROLLED_BACK, SILENT, Run, TransactionRun
from isolitmus.model.spec_algebra import names_in
from isolitmus.model.sql.nondeterminism import OpenQuestion
from isolitmus.model.sql.statement import Block, Delete, Insert, Merge, Read, Update, statements_of
from isolitmus.model.sql.types import UNNAMED
from isolitmus.specs.files.spec_catalogue import protocol as named
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.execution import Database
    from isolitmus.model.format import Driver, Format
    from isolitmus.model.frame import Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.spec import Label, Spec
    from isolitmus.model.sql.nondeterminism import TriedAnswers
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.verdict import Verdict, Violation

NO_OP = "no-op"
"""Label of a commit that is not recorded."""
ENGINE, VERSION = "model", "1"
UNCLASSED = frozenset(("error_class",))
"""Attributes of an error that the model does not predict.

The model knows the exception, and of conflicts the error class if their format has one.
"""


UNSEEN = (Insert, Delete, Update, Merge, Read)
"""Statements that are invisible to others before commit."""
NOTHING = Effect()
"""Effect of a transaction before its first statement."""


def initial_database(
    form: Format, tables: Mapping[str, Schema], init: Sequence[Statement]
) -> Database:
    """Return the database when the schedule starts.

    Raises
    ------
    LitmusError
        If an init statement fails.
    """
    return initial_stages(form, tables, init)[-1]


def initial_stages(
    form: Format, tables: Mapping[str, Schema], init: Sequence[Statement]
) -> tuple[Database, ...]:
    """Return the database before ``init`` and after each of its statements.

    Each statement is one commit.

    The first one contains the existing tables, empty or with the files that they hold.

    Raises
    ------
    LitmusError
        If a statement fails.
    """
    database: Database = {
        name: form.empty(schema) for name, schema in tables.items() if schema.exists
    }
    found = [database]
    for k, statement in enumerate(init):
        done = form.effect(statement, database, f"+{k}", tables)
        if done.error is not None:
            raise LitmusError(
                f"init statement '{statement.sql}' fails with {done.error.exception}: {done.error}"
            )
        database = form.after(database, Event("", done, 0))
        found.append(database)
    states = {id(state): state for stage in found for state in stage.values()}
    plain = {key: state.of_nobody() for key, state in states.items()}
    return tuple({name: plain[id(state)] for name, state in stage.items()} for stage in found)


def execute(
    litmus: Litmus,
    protocol: Spec | None = None,
    attempts: list[Frame] | None = None,
    choices: TriedAnswers | None = None,
) -> Execution:
    """Execute the schedule of a litmus test.

    Parameters
    ----------
    litmus : Litmus
        The test.
    protocol : Spec, optional
        The commit protocol; without one every commit succeeds.
    attempts : list of Frame, optional
        Receives each frame on which the protocol checks a commit; the committing transaction is its
        last node.
    choices : TriedAnswers, optional
        Answers that are tried where the model cannot compute a value.

    Raises
    ------
    SpecError
        If the protocol is neither of the test's format nor of another writer of its log.
    UndeterminedError
        If the model cannot compute the run.

    Examples
    --------
    >>> from isolitmus.specs import litmus, protocol
    >>> done = execute(litmus("reorder"), protocol("delta-serializable"))
    >>> [(event.name, event.version, event.conflict) for event in done.events]
    [('insert', 1, None), ('delete', None, 'ConcurrentAppendException')]
    """
    form = _format(litmus, protocol)
    if form.carry_out is not None:
        return form.carry_out(litmus, protocol)
    work = _Work(litmus, protocol, form, attempts, choices)
    for step in litmus.schedule.steps:
        try:
            work.take(step)
        except OpenQuestion:
            raise
        except UndeterminedError as error:
            raise UndeterminedError(error.problem, work.told()) from None
        if work.events and work.events[-1].silence is not None:
            work.leave(work.events[-1].silence)
            break
    return Execution(tuple(work.events), tuple(work.states), work.form.name, litmus.schedule)


def _format(litmus: Litmus, protocol: Spec | None) -> Format:
    """Return the format by which a protocol executes a litmus test."""
    form = format_named(litmus.format)
    if protocol is None:
        return form
    own = form if protocol.format is None else format_named(protocol.format)
    if own.log != form.log:
        raise SpecError(
            f"{protocol.name} is of format {own.name}, and {litmus.name} of format {form.name}: no"
            " transaction of the one writes what the other reads; name a protocol of format"
            f" {form.name}"
        )
    if own.carry_out is not None:  # such a format does not check commits by axioms
        return own
    lacking = sorted(_named(protocol) - (own.terms.keys() - {*READ_RELATIONS, *NODE_SETS}))
    if lacking:
        raise SpecError(
            f"{protocol.name} needs {', '.join(lacking)}, which the check of a commit does not have"
        )
    return own


def unfit_table(litmus: Litmus, protocol: Spec) -> str:
    """Return why a writer of a run cannot have one of the tables; empty if none has a problem."""
    specs = [protocol, *(named(c.protocol) for c in litmus.clients.values() if c.protocol)]
    found = (
        _format(litmus, spec).unfit(table) for spec in specs for table in litmus.tables.values()
    )
    return next(filter(None, found), "")


@memoize_by_identity
def _named(protocol: Spec) -> frozenset[str]:
    """Return the base names that a protocol's checks use, which a frame must have."""
    exprs = [axiom.expr for axiom in protocol.axioms if axiom.test == "empty"]
    exprs += [silence.expr for silence in protocol.silences]
    exprs += [label.expr for label in protocol.labels]
    return frozenset(names_in(exprs, protocol.definitions))


def _with_confs(litmus: Litmus, writers: Mapping[str, Format]) -> Litmus:
    """Return the litmus test with the confs that the writers of its transactions have."""
    of = litmus.client
    clients = {
        name: replace(of(name), conf={**of(name).conf, **form.confs})
        for name, form in writers.items()
        if form.confs
    }
    return replace(litmus, clients={**litmus.clients, **clients}) if clients else litmus


@dataclass(slots=True)
class _Work:
    litmus: Litmus
    protocol: Spec | None
    form: Format
    own: dict[str, Spec]
    events: list[Event]
    states: list[Database]
    started: dict[str, Event]
    undetermined: dict[str, UndeterminedError]
    driver: Driver
    attempts: list[Frame] | None

    def __init__(
        self,
        litmus: Litmus,
        protocol: Spec | None,
        form: Format,
        attempts: list[Frame] | None = None,
        choices: TriedAnswers | None = None,
    ) -> None:
        self.protocol, self.form, self.attempts = protocol, form, attempts
        self.own = {n: named(c.protocol) for n, c in litmus.clients.items() if c.protocol}
        own = {name: _format(litmus, spec) for name, spec in self.own.items()}
        self.litmus = litmus = _with_confs(
            litmus, {n: own.get(n, form) for n in litmus.transactions}
        )
        self.events, self.started, self.undetermined = [], {}, {}
        why = "" if protocol is None else unfit_table(litmus, protocol)
        if why:
            raise UndeterminedError(f"{litmus.name}: {why}")
        try:
            inits = initial_stages(self.form, litmus.tables, litmus.init)
            self.states, self.driver = [inits[-1]], self.form.drive(litmus, inits, choices)
        except UndeterminedError as error:
            raise UndeterminedError(f"{litmus.name}: {error}") from None
        except LitmusError as error:
            raise LitmusError(f"{litmus.name}: {error}") from None

    @property
    def newest(self) -> int:
        """Newest version."""
        return len(self.states) - 1

    def take(self, step: Step) -> None:
        """Execute a step of the schedule."""
        name = step.transaction
        self.driver.take(step, self.newest)
        several = isinstance(self.litmus.transactions[name], Block)
        if step.reads and name not in self.started:
            self.start(name, several=several)
        if several and step.action == "both":
            for _ in statements_of(self.litmus.transactions[name]):
                self.next(name)
        elif step.action == "statement":
            self.next(name)
        if step.reads:
            self.driver.begun(name, self.started[name].effect, step)
        if step.action == "rollback":
            self.events.append(replace(self.started.pop(name), rolled_back=True))
        elif step.ends:
            self.commit(name)

    def told(self) -> str:
        """Return the outcomes of the transactions that ended before the run became undetermined."""
        return "; ".join(f"{e.name} {_transaction(self.form, e)}" for e in self.events)

    def leave(self, silence: str) -> None:
        """End the run because of a silence, the outcome of all transactions that have not ended."""
        done = {event.name for event in self.events}
        for name in [n for n in self.litmus.transactions if n not in done]:
            event = self.started.get(name) or Event(name, NOTHING, self.newest)
            self.events.append(replace(event, silence=silence))

    def start(self, name: str, *, several: bool) -> None:
        """Take the snapshot of a transaction; if it is a single statement, execute it."""
        session = self.litmus.client(name).session
        self.started[name] = Event(
            name, NOTHING, self.newest, session=session, under=self.own.get(name)
        )
        failed = self.failed_before(name)
        if failed is not None:
            self.started[name] = replace(
                self.started[name],
                effect=replace(NOTHING, error=failed.effect.error),
                conflict=failed.conflict,
                error_class=failed.error_class,
                ended_by=failed.ended_by or failed.name,
            )
        elif not several:
            self.next(name)

    def failed_before(self, name: str) -> Event | None:
        """Return the event of an earlier commit of the same statement that failed, if any."""
        commits = self.litmus.commits_of(name)
        earlier = commits[: commits.index(name)]
        return next((e for e in self.events if e.name in earlier and e.aborted), None)

    def next(self, name: str) -> None:
        """Execute the next statement of a transaction."""
        event = self.started[name]
        so_far = None if event.effect is NOTHING else event.effect
        if so_far is not None and so_far.error is not None:
            return
        try:
            done = self.driver.effect(name, self.states, event.read_version, so_far)
        except OpenQuestion:
            raise
        except UndeterminedError as error:
            if not isinstance(self.litmus.transactions[name], UNSEEN):
                raise
            self.undetermined[name] = error  # raised at its commit; until then it is invisible
            return
        statement, database = self.litmus.transactions[name], self.states[event.read_version]
        reads = writer(self.form, event).reads
        self.started[name] = reads(replace(event, effect=done), statement, database)

    def commit(self, name: str) -> None:
        """Commit a transaction; where its writer retries after a conflict, attempt once more."""
        form = self.form
        if name in self.undetermined:
            raise self.undetermined[name]
        event = self.attempt(self.started.pop(name))
        if event.conflict is not None:
            statement = self.litmus.transactions[name]
            if writer(form, event).retries(
                event, statement, self.states[event.read_version], self.states[-1]
            ):
                again = replace(event, conflict=None, error_class=None, read_version=self.newest)
                event = self.attempt(again)
        self.events.append(event)
        if not event.aborted:
            self.driver.ended(name)
        if event.version is not None:
            after = writer(form, event).after
            self.states += [after(self.states[-1], event)] * len(event.commits)

    def attempt(self, event: Event) -> Event:
        """Return the event after one attempt to commit at the next version."""
        version, protocol = len(self.states), self.protocol
        return after_attempt(
            self.form, event, self.events, version, protocol, attempts=self.attempts
        )


def writer(form: Format, event: Event) -> Format:
    """Return the format of the client that writes a transaction, in a run of this format."""
    return form if event.under is None else format_named(event.under.format or form.name)


def attempt_frame(
    form: Format, event: Event, others: Sequence[Event], *, reasons: bool = True
) -> Frame:
    """Return the frame on which a transaction is checked that wants to commit after others.

    Transactions of other writers appear as its own writer finds them in the log.
    """
    own = writer(form, event)
    found = [one if (of := writer(form, one)) is own else of.foreign(one) for one in others]
    return own.frame([*found, event], reasons=reasons)


def after_attempt(
    form: Format,
    event: Event,
    before: Sequence[Event],
    version: int,
    protocol: Spec | None,
    *,
    attempts: list[Frame] | None = None,
) -> Event:
    """Return a transaction after its attempt to commit: recorded or not, aborted or silent.

    A transaction of another writer has a commit check and a format of its own.

    Parameters
    ----------
    form : Format
        Format of the run.
    event : Event
        The transaction.
    before : sequence of Event
        Transactions that ended before it, in that order; aborted ones are ignored.
    version : int
        Version that the commit would have.
    protocol : Spec or None
        Commit protocol of the run; None if every commit succeeds.
    attempts : list of Frame, optional
        Receives the frame, if it is checked by ``protocol``.
    """
    own = writer(form, event)
    if event.effect.error is not None or event.effect.footprint is None:
        return event
    wanted = replace(event, version=version)
    if protocol is None:
        return wanted
    check = protocol if event.under is None else event.under
    others = [e for e in before if not e.aborted]
    attempt = attempt_frame(form, wanted, others, reasons=False)
    if attempts is not None and check is protocol:
        attempts.append(attempt)
    self, fold = len(attempt.nodes) - 1, fold_over(attempt, check)
    shown = frozenset(
        name for name, nodes in label_members(attempt, check, fold).items() if nodes >> self & 1
    )
    event = replace(event, labels=shown)
    if NO_OP in shown:
        return event
    missed = [other for other in others if event.missed(other)]
    error = own.forestalled(event, missed)
    if error is not None:
        return replace(event, effect=replace(event.effect, error=error))
    conflict = first_conflict(attempt, check, self, fold)
    silence = None if conflict is not None else first_silence(attempt, check, self, fold)
    if silence is not None:
        return replace(event, silence=silence[1])
    stopped = others[conflict[0]] if conflict is not None and conflict[0] < self else None
    for k, winner in enumerate(missed, 1):
        exception = conflict[1] if conflict is not None and winner is stopped else None
        error, error_class = own.refusal(exception, missed[:k], event)
        if error is not None:
            return replace(event, effect=replace(event.effect, error=error))
        if exception is not None:
            return replace(event, conflict=exception, error_class=error_class)
    # a conflict with itself or with a commit that it has seen: a check that only the protocol has
    if conflict is not None:
        return replace(event, conflict=conflict[1])
    return own.written(replace(event, version=version), missed)


def execution_frame(execution: Execution, *, reads: bool = False, times: bool = False) -> Frame:
    """Return the frame of all transactions that took effect in an execution, with reasons.

    Parameters
    ----------
    execution : Execution
        The execution.
    reads : bool
        Whether reads are nodes as well.
    times : bool
        Whether to add real time (``rt``), if the execution has a schedule.
    """
    form = format_named(execution.format)
    events = [e for e in execution.events if form.dirty or not e.aborted]
    frame = form.frame(events, reads=reads)
    if not times or execution.schedule is None:
        return frame
    return add_real_time(frame, execution.schedule)


def judge_execution(execution: Execution, spec: Spec) -> Verdict:
    """Return the verdict of a spec on the transactions that took effect in an execution.

    >>> from isolitmus.specs import level, litmus
    >>> judge_execution(execute(litmus("reorder")), level("causal"))
    allowed, in the order insert delete
    """
    return judge(frame_for_spec(spec, execution), spec)


def frame_for_spec(spec: Spec, execution: Execution) -> Frame:
    """Return the frame of an execution with what a spec needs: reads as nodes, and real time."""
    return execution_frame(execution, reads=needs_reads(spec), times=needs_times(spec))


def observed_run(litmus: Litmus, execution: Execution, protocol: str) -> Run:
    """Return the run that an observer of this execution records."""
    form = format_named(execution.format)
    transactions = {e.name: form.told(e, _transaction(form, e)) for e in execution.events}
    return Run(
        litmus.name,
        ENGINE,
        VERSION,
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


def _transaction(form: Format, event: Event) -> TransactionRun:
    """Return the observable outcome of an event: error, rollback, conflict, no-op or commit."""
    done = event.effect
    if done.error is not None:
        return TransactionRun(
            f"error:{done.error.exception}",
            done.error.exception,
            done.error.error_class,
            event.read_version,
            unsaid=(UNCLASSED if done.error.error_class is None else frozenset())
            | ({"exception"} if done.error.exception == UNNAMED else set()),
        )
    if event.rolled_back:
        return TransactionRun(ROLLED_BACK, read_version=event.read_version)
    if event.silence is not None:
        return TransactionRun(SILENT, read_version=None if done is NOTHING else event.read_version)
    if event.conflict is not None:
        return TransactionRun(
            event.conflict,
            event.conflict,
            event.error_class,
            event.read_version,
            unsaid=UNCLASSED if event.error_class is None else frozenset(),
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
        blind=form.blind(done),
        isolation_level=level,
        operation=done.closing or done.operation,
    )


def recording_spec(a: Spec, b: Spec) -> Spec | None:
    """Return which of two specs decides what is recorded: the protocol, if the other is a level.

    None if neither does, or if both are protocols: each then checks what it would record itself.

    >>> from isolitmus.specs import level, protocol
    >>> delta = protocol("delta-serializable")
    >>> recording_spec(level("serializable"), delta) is delta, recording_spec(delta, delta)
    (True, None)
    """
    protocols = [spec for spec in (a, b) if spec.format is not None or _drops(spec)]
    return protocols[0] if len(protocols) == 1 and _drops(protocols[0]) else None


def without_checks(protocol: Spec) -> Spec:
    """Return a protocol that records the same commits as this one, and checks nothing.

    >>> from isolitmus.specs import protocol
    >>> [label.name for label in without_checks(protocol("delta-serializable")).labels]
    ['no-op']
    """
    return replace(protocol, axioms=(), silences=(), labels=_drops(protocol))


def is_unrecorded(form: Format, done: Effect, protocol: Spec) -> bool:
    """Return whether a protocol does not record a commit; this depends only on the commit's sets.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus, protocol
    >>> from isolitmus.specs.registries import format_named
    >>> done = execute(litmus("noop-delete-recorded")).events[-1].effect
    >>> delta = "delta-serializable", "delta-write-serializable"
    >>> [is_unrecorded(format_named("delta"), done, protocol(name)) for name in delta]
    [True, False]
    """
    alone = form.frame([Event("T", done, 0, 1)], reasons=False)
    return bool(label_members(alone, protocol).get(NO_OP))


def _drops(spec: Spec) -> tuple[Label, ...]:
    return tuple(label for label in spec.labels if label.name == NO_OP)


def abort_violations(execution: Execution, protocol: Spec) -> dict[str, Violation]:
    """Return the violation of each transaction that the protocol aborted in an execution, by name.

    A transaction on which the protocol is silent, with which the run ended, is included. The result
    is empty for a format that executes its tests in its own way.

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus, protocol
    >>> spec = protocol("delta-serializable")
    >>> found = abort_violations(execute(litmus("reorder"), spec), spec)
    >>> found["delete"].axiom, found["delete"].cycle[0].source
    ('ConcurrentAppendException', 'insert')
    """
    form = format_named(execution.format)
    if form.carry_out is not None:
        return {}
    found: dict[str, Violation] = {}
    before: list[Event] = []
    version = 0
    for event in execution.events:
        stopped = event.conflict is not None or event.silence is not None
        if stopped and event.ended_by is None:
            attempt = attempt_frame(form, replace(event, version=version + 1), before)
            violation = explain_conflict(attempt, event.under or protocol, len(before))
            assert violation is not None, "the commit loop found it, too"
            found[event.name] = violation
        if event.silence is not None:
            break
        if not event.aborted:
            before.append(event)
            version = version if event.version is None else event.version
    return found
