"""The commit loop: a schedule executed step by step, each commit judged by the protocol.

The model as an engine: a litmus test carried out step by step, under a protocol or under none.

A protocol is a spec that is checked at each commit: over the frame of all commits so far and the
one that wants in, the earliest winner that breaks an axiom decides, then the order of the file; the
axiom's name is the exception. What the protocol shows of a commit (its level, or that it is a
no-op) are labels of the same text. Where no axiom is broken and the text is silent on the two,
nobody knows whether the commit would be there, so the run ends. The axioms judge, they never act:
what a statement does, and what else happens at a commit, is its format's business
(``model.format``). No protocol and no format is named here.

Which commits are recorded: a protocol may drop one that finds nothing to do, and shows it as a
no-op.

Why transactions did not commit: the conflict of each, or the silence on it, as the violation that
its commit would have been.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.execution.frame import add_real_time, needs_times
from isolitmus.checker.judge.graph_semantics import (
    explain_conflict,
    first_conflict,
    first_silence,
    judge,
    label_members,
)
from isolitmus.checker.judge.read_nodes import NODE_SETS, READ_RELATIONS, needs_reads
from isolitmus.model.errors import LitmusError, SpecError, UndeterminedError
from isolitmus.model.execution import Effect, Event, Execution
from isolitmus.model.nondeterminism import OpenQuestion
from isolitmus.model.run import ROLLED_BACK, SILENT, Run, TransactionRun
from isolitmus.model.spec_algebra import names_in
from isolitmus.model.sql.statement import Block, Delete, Insert, Merge, Read, Update, statements_of
from isolitmus.model.sql.types import UNNAMED
from isolitmus.specs.files.catalogue import protocol as named
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.execution import Database
    from isolitmus.model.format import Driver, Format
    from isolitmus.model.frame import Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.nondeterminism import TriedAnswers
    from isolitmus.model.schedule import Step
    from isolitmus.model.schema import Schema
    from isolitmus.model.spec import Label, Spec
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.verdict import Verdict, Violation

__all__ = [
    "NO_OP",
    "abort_violations",
    "after_attempt",
    "attempt_frame",
    "execute",
    "execution_frame",
    "frame_for_spec",
    "initial_database",
    "initial_stages",
    "is_unrecorded",
    "judge_execution",
    "observed_run",
    "recording_spec",
    "unfit_table",
    "without_checks",
]

NO_OP = "no-op"
"""The label of a commit that is not recorded."""
ENGINE, VERSION = "model", "1"
UNCLASSED = frozenset(("error_class",))
"""What is unsaid of errors: the model knows their exception, and of conflicts the error class, if
their format has one."""


UNSEEN = (Insert, Delete, Update, Merge, Read)
"""Statements of which others see nothing before they commit."""
NOTHING = Effect()
"""What a transaction has done before its first statement."""


def initial_database(
    form: Format, tables: Mapping[str, Schema], init: Sequence[Statement]
) -> Database:
    """The database when the schedule starts; LitmusError for an init statement that fails."""
    return initial_stages(form, tables, init)[-1]


def initial_stages(
    form: Format, tables: Mapping[str, Schema], init: Sequence[Statement]
) -> tuple[Database, ...]:
    """The tables that are there, empty or with the files that they hold, and what they are after
    each statement of ``init``, each one commit.

    LitmusError for a statement that fails.
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
    """The execution of the litmus test's schedule; without a protocol every commit goes through.

    To ``attempts``, if they are asked for, each frame is added by which the protocol checks who
    wants to commit, the last node. ``choices``: what is tried where nobody can compute what is so.
    SpecError for a protocol that is not of the test's format, nor of another writer of its log.

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
    """The format by which a protocol carries a litmus test out."""
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
    if own.carry_out is not None:  # it has no check of commits by axioms
        return own
    lacking = sorted(_named(protocol) - (own.terms.keys() - {*READ_RELATIONS, *NODE_SETS}))
    if lacking:
        raise SpecError(
            f"{protocol.name} needs {', '.join(lacking)}, which the check of a commit does not have"
        )
    return own


def unfit_table(litmus: Litmus, protocol: Spec) -> str:
    """Return why one of those who write in a run under a protocol cannot have one of the tables;
    empty if all can.
    """
    specs = [protocol, *(named(c.protocol) for c in litmus.clients.values() if c.protocol)]
    found = (
        _format(litmus, spec).unfit(table) for spec in specs for table in litmus.tables.values()
    )
    return next(filter(None, found), "")


def _named(protocol: Spec) -> frozenset[str]:
    """The base names that a protocol's checks use: what a frame needs for them to be asked."""
    exprs = [axiom.expr for axiom in protocol.axioms if axiom.test == "empty"]
    exprs += [silence.expr for silence in protocol.silences]
    exprs += [label.expr for label in protocol.labels]
    return frozenset(names_in(exprs, protocol.definitions))


def _with_confs(litmus: Litmus, writers: Mapping[str, Format]) -> Litmus:
    """The litmus test with the confs that the writers of its transactions have."""
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
        """The newest version."""
        return len(self.states) - 1

    def take(self, step: Step) -> None:
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
        """What is decided of a run that is not: nobody who ended in it saw the rest."""
        return "; ".join(f"{e.name} {_transaction(self.form, e)}" for e in self.events)

    def leave(self, silence: str) -> None:
        """End the run in a silence: nobody says what becomes of those that have not ended."""
        done = {event.name for event in self.events}
        for name in [n for n in self.litmus.transactions if n not in done]:
            event = self.started.get(name) or Event(name, NOTHING, self.newest)
            self.events.append(replace(event, silence=silence))

    def start(self, name: str, *, several: bool) -> None:
        """Take the snapshot; a transaction that is one statement runs it."""
        session = self.litmus.client(name).session
        self.started[name] = Event(
            name, NOTHING, self.newest, session=session, under=self.own.get(name)
        )
        if not several:
            self.next(name)

    def next(self, name: str) -> None:
        """The next statement of a transaction."""
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
            self.undetermined[name] = error  # nobody sees of it before it commits
            return
        statement, database = self.litmus.transactions[name], self.states[event.read_version]
        reads = writer(self.form, event).reads
        self.started[name] = reads(replace(event, effect=done), statement, database)

    def commit(self, name: str) -> None:
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
        version, protocol = len(self.states), self.protocol
        return after_attempt(
            self.form, event, self.events, version, protocol, attempts=self.attempts
        )


def writer(form: Format, event: Event) -> Format:
    """The format of who writes a transaction, in a run by this one."""
    return form if event.under is None else format_named(event.under.format or form.name)


def attempt_frame(
    form: Format, event: Event, others: Sequence[Event], *, reasons: bool = True
) -> Frame:
    """The frame by which a transaction is checked that wants to commit after some others, as its
    writer finds these in the log.
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
    """The transaction after its attempt to become ``version``: recorded, not recorded, aborted, or
    in silence.

    ``before`` are those that ended before it, in that order; aborted ones do not count. What
    another writer commits has a commit check and a format of its own. The frame that ``protocol``
    is asked of is added to ``attempts``.
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
    self = len(attempt.nodes) - 1
    shown = frozenset(
        name for name, nodes in label_members(attempt, check).items() if nodes >> self & 1
    )
    event = replace(event, labels=shown)
    if NO_OP in shown:
        return event
    missed = [other for other in others if event.missed(other)]
    error = own.forestalled(event, missed)
    if error is not None:
        return replace(event, effect=replace(event.effect, error=error))
    conflict = first_conflict(attempt, check, self)
    silence = None if conflict is not None else first_silence(attempt, check, self)
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
    if conflict is not None:  # with itself or one that it had seen: a check of its protocol's own
        return replace(event, conflict=conflict[1])
    return own.written(replace(event, version=version), missed)


def execution_frame(execution: Execution, *, reads: bool = False, times: bool = False) -> Frame:
    """The frame of everything that took effect in an execution, with reasons; ``reads`` True gives
    it the reads as nodes, ``times`` True what was when, if that is known.
    """
    form = format_named(execution.format)
    events = [e for e in execution.events if form.dirty or not e.aborted]
    frame = form.frame(events, reads=reads)
    if not times or execution.schedule is None:
        return frame
    return add_real_time(frame, execution.schedule)


def judge_execution(execution: Execution, spec: Spec) -> Verdict:
    """What a spec says of everything that took effect in an execution.

    >>> from isolitmus.specs import level, litmus
    >>> judge_execution(execute(litmus("reorder")), level("causal"))
    allowed, in the order insert delete
    """
    return judge(frame_for_spec(spec, execution), spec)


def frame_for_spec(spec: Spec, execution: Execution) -> Frame:
    """The frame with what a spec looks at beside transactions: reads as nodes, and times."""
    return execution_frame(execution, reads=needs_reads(spec), times=needs_times(spec))


def observed_run(litmus: Litmus, execution: Execution, protocol: str) -> Run:
    """The run that an observer of this execution records."""
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
    """Which of two specs says what is not recorded: the protocol, if the other is a level; None if
    neither does. Of two protocols each checks what it would record itself.

    >>> from isolitmus.specs import level, protocol
    >>> delta = protocol("delta-serializable")
    >>> recording_spec(level("serializable"), delta) is delta, recording_spec(delta, delta)
    (True, None)
    """
    protocols = [spec for spec in (a, b) if spec.format is not None or _drops(spec)]
    return protocols[0] if len(protocols) == 1 and _drops(protocols[0]) else None


def without_checks(protocol: Spec) -> Spec:
    """A protocol that records what this one does, and checks nothing.

    >>> from isolitmus.specs import protocol
    >>> [label.name for label in without_checks(protocol("delta-serializable")).labels]
    ['no-op']
    """
    return replace(protocol, axioms=(), silences=(), labels=_drops(protocol))


def is_unrecorded(form: Format, done: Effect, protocol: Spec) -> bool:
    """Whether a protocol does not record a commit (which is a matter of its sets alone).

    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus, protocol
    >>> from isolitmus.specs.registries.formats import format_named
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
    """The violation of every transaction that the protocol refused in an execution under it, by
    name; and of the one that it is silent on, with which the run ended; of a format that carries
    its tests out in its own way, none.

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
        if event.conflict is not None or event.silence is not None:
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
