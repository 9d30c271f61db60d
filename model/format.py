"""Format: behaviour of a table format or a database, as a record of functions.

The commit loop, the searches and the counts (``checker.execution.commit_loop``,
``checker.universes``, ``checker.sweeps``) ask a format for the reads and writes of a statement on a
snapshot, for the commit as others see it, and for the tables after it. They do not refer to any
format by name; a protocol, a litmus test and a scope each name theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.model.budget import Budget
    from isolitmus.model.delta.table import TableState
    from isolitmus.model.execution import Database, Effect, Event, Execution
    from isolitmus.model.frame import Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import TransactionRun
    from isolitmus.model.schedule import Step
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Clause, Spec
    from isolitmus.model.sql.data_file import File
    from isolitmus.model.sql.nondeterminism import TriedAnswers
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.types import EvaluationError
    from isolitmus.model.sql.values import Rows
    from isolitmus.model.vocabulary import Term


class Driver(Protocol):
    """Executor of the statements of a schedule, each on the version that it sees."""

    def take(self, step: Step, now: int) -> None:
        """Handle a step before it is executed, when the newest version is `now`."""

    def effect(
        self, name: str, states: Sequence[Database], version: int, so_far: Effect | None = None
    ) -> Effect:
        """Return the effect of a transaction up to and including its next statement.

        Parameters
        ----------
        name : str
            Transaction.
        states : sequence of Database
            Database at every version.
        version : int
            Version that the statement reads.
        so_far : Effect, optional
            Effect of the earlier statements of the transaction.
        """

    def begun(self, name: str, done: Effect, step: Step) -> None:
        """Handle a step after it is executed; `done` is the effect of the transaction so far."""

    def ended(self, name: str) -> None:
        """Handle the end of a transaction that did not fail."""


class Executor(Protocol):
    """Executor of transactions one after another from the initial tables."""

    def after(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """Return the tables after these transactions in this order; None if one of them fails."""


class BuildsFrame(Protocol):
    """Function that builds the frame of events."""

    def __call__(
        self, events: Sequence[Event], *, reasons: bool = True, reads: bool = False
    ) -> Frame:
        """Return the frame of the transactions that took effect, in the order in which they ended.

        Parameters
        ----------
        events : sequence of Event
            Transactions of an execution.
        reasons : bool
            Whether edges get reasons.
        reads : bool
            Whether reads are nodes.
        """


class PicksFiles(Protocol):
    """Selection of files of a table."""

    def files(self, schema: Schema, files: Sequence[File], /) -> Sequence[File]:
        """Return the selected files."""


Scans = tuple[tuple[str, PicksFiles], ...]
"""Tables by name, each with a selection of its files."""


class ScopeSolver(Protocol):
    """Search of a scope by a solver instead of enumeration."""

    def unsupported_scope(self, scope: Scope, *specs: Spec) -> str | None:
        """Return why the solver cannot search a scope exactly for these specs; None if it can."""

    def search(
        self,
        a: Spec,
        b: Spec,
        scope: Scope,
        n: int,
        accept: Callable[..., bool],
        *,
        budget: Budget,
        refuted: list[Any] | None = None,
    ) -> tuple[Any | None, int]:
        """Search for a candidate with `n` transactions that `accept` accepts.

        Returns
        -------
        candidate
            First accepted candidate, or None.
        int
            Number of candidates that were proposed.

        Notes
        -----
        If there is none, `refuted` receives the queries that prove it.
        """


class Stepwise(Protocol):
    """Litmus test in execution, whose next step is chosen after the previous steps are done."""

    beyond: str
    """Problem with a step to a place that no scan reaches; empty if there is none."""

    def take(self, step: Step, /) -> None:
        """Execute a step, as far as it does not have to wait."""

    def state(self, *, judged: bool) -> Hashable:
        """Return all that the future of the execution depends on.

        If `judged`, it also contains all that frames and serial orders depend on.
        """

    def done(self) -> Execution:
        """Return the execution, when all steps are done."""


@dataclass(frozen=True, slots=True)
class RandomTests:
    """Random litmus tests of one kind."""

    name: str
    """Name of the kind."""
    title: str
    """Description in one line."""
    strategy: Callable[[], SearchStrategy[Litmus]]
    """Hypothesis strategy that draws them."""


def _no_words(_of: object) -> str:
    return ""


def _unchanged(event: Event, *_beside: object) -> Event:
    return event


def _nothing(*_of: object) -> None:
    return None


def _unsaid(_exception: str | None, _missed: Sequence[Event], _loser: Event) -> tuple[None, None]:
    return None, None


def never_retries(_event: Event, _statement: Statement, _then: Database, _now: Database) -> bool:
    """Return False: a transaction that conflicts aborts."""
    return False


def _no_more_to_tell(_event: Event, seen: TransactionRun) -> TransactionRun:
    return seen


@dataclass(frozen=True, slots=True)
class Format:
    """Behaviour of a table format or a database.

    Two formats with one ``log`` may share a table: their commits are versions of it. Defaults of
    fields describe a store that only checks the axioms of its protocol.
    """

    name: str
    """Name in protocols, litmus tests and scopes."""
    title: str
    """Description in one line."""
    log: str
    """Name of the format that all formats with the same log share."""
    terms: Mapping[str, Term]
    """Relations and sets of its frames, by name (``terms_of`` of ``model.vocabulary``): names of
    the vocabulary, and terms of its own. They follow from footprints and versions of transactions;
    counts use them without rows.
    """
    statement: Callable[[str, Mapping[str, Schema], str], Statement]
    """Parse a statement; arguments are its text, the tables, and its position for error messages.
    """
    empty: Callable[[Schema], TableState]
    """Return the table before its first write."""
    effect: Callable[[Statement, Database, str, Mapping[str, Schema]], Effect]
    """Return the effect of a statement on a snapshot, run by the transaction of this name."""
    after: Callable[[Database, Event], Database]
    """Return the database after a commit."""
    frame: BuildsFrame
    """Build the frame of events."""
    drive: Callable[[Litmus, Sequence[Database], TriedAnswers | None], Driver]
    """Return the driver of a schedule. The databases are those after each init statement; the tried
    answers stand for results that the model cannot compute.
    """
    alone: Callable[[Litmus, str, Database, Sequence[Database]], Effect]
    """Return the effect of a transaction that runs alone on a database, as in a serial order."""
    independent: Callable[[Litmus], Executor]
    """Return an executor of serial orders that shares no code with ``effect`` and ``after``."""
    sequences: str = ""
    """Reason why a transaction has only one statement; empty if it may have several."""
    steps: bool = False
    """True if statements scan indexes and a schedule may stop them at a row: ``x.scan[2]``."""
    carry_out: Callable[[Litmus, Spec | None], Execution] | None = None
    """Execute a litmus test; None for the default: a snapshot, statements on it, and a check at
    commit.
    """
    stepwise: Callable[[Litmus, Spec | None], Callable[[], Stepwise]] | None = None
    """Return a function that starts a litmus test under a protocol whose steps are chosen one by
    one, as often as it is called. None if nothing waits, so that there is no choice.
    """
    interleave: Callable[[Litmus, Spec], Any] | None = None
    """Return the outcomes of all interleavings of a litmus test's steps under a protocol, as a
    printable result; None if the format has no such steps.
    """
    prove: Callable[[Any, Scope], Any] | None = None
    """Attempt a proof of a question about two specs (``checker.prove``) for any number of
    transactions, with the statements of a scope; None for the lemmas about commits to tables.
    """
    clauses: Callable[[Sequence[Clause]], object] | None = None
    """Return the meaning of the clauses of a protocol, or raise ClauseError; None if there are no
    clauses.
    """
    told: Callable[[Event, TransactionRun], TransactionRun] = _no_more_to_tell
    """Add what an observer of this format sees of a transaction to what is visible in any format.
    """
    dirty: bool = False
    """True if others may read writes of a transaction before its commit; aborted transactions are
    then in frames.
    """
    confs: Mapping[str, str] = field(default_factory=dict)
    """Configuration of its writers, whatever their clients set."""
    unfit: Callable[[Schema], str] = _no_words
    """Return why its writers cannot use a table with this schema; empty if they can."""
    reads: Callable[[Event, Statement, Database], Event] = _unchanged
    """Return the transaction after its begin, with further reads that its conflict check needs."""
    forestalled: Callable[[Event, Sequence[Event]], EvaluationError | None] = _nothing
    """Return the error with which a commit fails before any check, given the commits that it
    missed, or None.
    """
    refusal: Callable[
        [str | None, Sequence[Event], Event], tuple[EvaluationError | None, str | None]
    ] = _unsaid
    """Return how the check of a commit (last argument) ends at the last of the commits that it
    missed so far, if an axiom demands this exception (None: the check would go on): another error
    if it ends with one, and the error class of the exception if it has one.
    """
    written: Callable[[Event, Sequence[Event]], Event] = _unchanged
    """Return the commit as it is recorded after those that it missed; its effect may still fail or
    change.
    """
    foreign: Callable[[Event], Event] = _unchanged
    """Return a commit as writers of other formats of the log see it."""
    retries: Callable[[Event, Statement, Database, Database], bool] = never_retries
    """Return whether a transaction retries after a conflict from the newest version; the databases
    are the one that it read and the newest one.
    """
    blind: Callable[[Effect], bool | None] = _nothing
    """Return whether a commit is marked as a blind append; None if commits carry no such mark."""
    definitions: Callable[[Database, Mapping[str, Schema], Collection[str]], object] = _nothing
    """Return what every transaction reads of some tables besides rows, as a comparable object."""
    supposed: Callable[[Spec], str] = _no_words
    """Return what an answer about a spec supposes of its writers; empty if nothing."""
    solver: Callable[[], ScopeSolver] | None = None
    """Return a solver for its scopes; None if there is none."""
    scans: Callable[[Statement, Mapping[str, Schema]], Scans | None] = _nothing
    """Return a selection of files per table on which alone the effect of a statement depends; None
    if it depends on the whole snapshot.
    """
    protocols: tuple[str, ...] = ()
    """Default protocols."""
    levels: tuple[str, ...] = ()
    """Default levels of a sweep."""
    random: tuple[RandomTests, ...] = ()
    """Kinds of random tests; the first is the default."""
    universe: str = ""
    """Default scope of ``separate``."""
    searched_as: str = ""
    """Format of the scopes in which its protocols are searched, counted and compared; empty for its
    own.
    """
    unsearched: str = ""
    """Reason why its scopes are not searched and counted; empty if they are."""
