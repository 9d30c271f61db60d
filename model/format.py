"""A format: what a table format or a database does, as a record of functions.

The commit loop, the searches and the counts (``checker.execution.commit_loop``,
``checker.universes``, ``checker.sweeps``) ask a format what a statement reads and writes on a
snapshot, how a commit is seen by the others, and what it leaves of its tables. They know no format
by name; a protocol, a litmus test and a scope each say theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.model.budget import Budget
    from isolitmus.model.delta.data_file import File
    from isolitmus.model.delta.table import TableState
    from isolitmus.model.execution import Database, Effect, Event, Execution
    from isolitmus.model.frame import Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.nondeterminism import TriedAnswers
    from isolitmus.model.run import TransactionRun
    from isolitmus.model.schedule import Step
    from isolitmus.model.schema import Schema
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Clause, Spec
    from isolitmus.model.sql.statement import Read, Statement
    from isolitmus.model.sql.types import EvaluationError
    from isolitmus.model.sql.values import Rows
    from isolitmus.model.vocabulary import Term

__all__ = [
    "BuildsFrame",
    "Driver",
    "Executor",
    "Format",
    "PicksFiles",
    "RandomTests",
    "Scans",
    "ScopeSolver",
    "Stepwise",
]


class Driver(Protocol):
    """Follows a schedule and carries its statements out, each on the version that it sees."""

    def take(self, step: Step, now: int) -> None:
        """Before the step, when the newest version is ``now``."""

    def effect(
        self, name: str, states: Sequence[Database], version: int, so_far: Effect | None = None
    ) -> Effect:
        """What a transaction has done once its next statement is through, on a version that was
        read; ``so_far`` is what its statements before have done.
        """

    def begun(self, name: str, done: Effect, step: Step) -> None:
        """After the step: the transaction, which does this, has come so far."""

    def ended(self, name: str) -> None:
        """The transaction has ended, and did not fail."""


class Executor(Protocol):
    """Something that runs transactions one after another from the initial tables."""

    def after(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """The tables after these transactions in this order; None if one of them fails."""


class BuildsFrame(Protocol):
    """From events to their frame."""

    def __call__(
        self, events: Sequence[Event], *, reasons: bool = True, reads: bool = False
    ) -> Frame:
        """The frame of the transactions that took effect, in the order in which they ended;
        ``reasons`` False leaves out why, ``reads`` True gives it the reads as nodes.
        """


class PicksFiles(Protocol):
    """Picks files of a table."""

    def files(self, schema: Schema, files: Sequence[File], /) -> Sequence[File]:
        """Those that are picked."""


Scans = tuple[tuple[str, PicksFiles], ...]
"""Tables by name, and what picks files of each."""


class ScopeSolver(Protocol):
    """A search of a scope that is not by enumeration."""

    def unsupported_scope(self, scope: Scope) -> str | None:
        """Why it cannot search a scope exactly; None if it can."""

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
        """The first candidate with n transactions that is accepted, or None; and how many were
        proposed. ``refuted`` gets the questions by which there is none.
        """


class Stepwise(Protocol):
    """A litmus test under way, whose next step is chosen when those before are done."""

    beyond: str
    """What is wrong with a step to where scans do not come; empty: nothing."""

    def take(self, step: Step, /) -> None:
        """Do it, as far as nobody has to be waited for."""

    def state(self, *, judged: bool) -> Hashable:
        """All that what comes next depends on; ``judged``: and all that frames and serial orders
        depend on.
        """

    def done(self) -> Execution:
        """What has happened, when all is over."""


@dataclass(frozen=True, slots=True)
class RandomTests:
    """Litmus tests that are drawn at random."""

    name: str
    """What they are called."""
    title: str
    """What they are, in a line."""
    strategy: Callable[[], SearchStrategy[Litmus]]
    """How Hypothesis draws them."""


def _fits(_schema: Schema) -> str:
    return ""


def _as_it_is(event: Event, _missed: Sequence[Event]) -> Event:
    return event


def _its_own(event: Event) -> Event:
    return event


def _unsaid(_exception: str | None, _missed: Sequence[Event], _loser: Event) -> tuple[None, None]:
    return None, None


def _never(_event: Event, _statement: Statement, _then: Database, _now: Database) -> bool:
    return False


def _nothing(_event: Event, _missed: Sequence[Event]) -> None:
    return None


def _nothing_more(event: Event, _statement: Statement, _database: Database) -> Event:
    return event


def _no_more_to_tell(_event: Event, seen: TransactionRun) -> TransactionRun:
    return seen


def _says_nothing(_done: Effect) -> None:
    return None


def _all_of_it(_statement: Statement, _tables: Mapping[str, Schema]) -> None:
    return None


def _no_definitions(
    _database: Database, _tables: Mapping[str, Schema], _names: Collection[str]
) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Format:
    """What a table format or a database does.

    Two formats with one ``log`` may share a table: their commits are versions of it. Of the fields
    with a default, the default is what a store does that only checks its protocol's axioms.
    """

    name: str
    """What protocols, litmus tests and scopes call it."""
    title: str
    """What it is, in one line."""
    log: str
    """Whose versions its commits are: the name of the format that all formats of one log share."""
    terms: Mapping[str, Term]
    """What its frames have, relations and sets by name (``terms_of`` of ``model.vocabulary``):
    names of the vocabulary, and terms of its own. These follow from the footprints and versions of
    transactions: counts ask for them without rows."""
    statement: Callable[[str, Mapping[str, Schema], str], Statement]
    """A statement read from its text, on these tables; the last argument says where it stands."""
    empty: Callable[[Schema], TableState]
    """A table before anybody wrote to it."""
    effect: Callable[[Statement, Database, str, Mapping[str, Schema]], Effect]
    """What a statement does on a snapshot when the transaction of this name runs it."""
    after: Callable[[Database, Event], Database]
    """The database after a commit."""
    frame: BuildsFrame
    """From events to their frame."""
    drive: Callable[[Litmus, Sequence[Database], TriedAnswers | None], Driver]
    """Who follows a schedule; the databases are those after each init statement, the choices what
    is tried where nobody can compute what is so."""
    alone: Callable[[Litmus, str, Database, Sequence[Database]], Effect]
    """What a transaction does all by itself on a database, as in a serial order."""
    independent: Callable[[Litmus], Executor]
    """Something that executes serial orders and shares nothing with ``effect`` and ``after``."""
    sequences: str = ""
    """Why a transaction has one statement only; empty if it may have several."""
    steps: bool = False
    """Whether statements are scans of indexes, which a schedule may stop at a row:
    ``x.scan[2]``.
    """
    carry_out: Callable[[Litmus, Spec | None], Execution] | None = None
    """How a litmus test is carried out, where that is not a snapshot, statements on it, and a check
    at the commit; None: so."""
    stepwise: Callable[[Litmus, Spec | None], Callable[[], Stepwise]] | None = None
    """What begins a litmus test under a protocol whose steps are chosen one by one, as often as it
    is called; None: nothing waits, so that there is nothing to choose."""
    interleave: Callable[[Litmus, Spec], Any] | None = None
    """What comes out of all interleavings of a litmus test's steps under a protocol, as a result
    that prints; None: it has no such steps."""
    clauses: Callable[[Sequence[Clause]], object] | None = None
    """What the clauses of its protocols mean; ClauseError for what they cannot. None: they have
    none.
    """
    told: Callable[[Event, TransactionRun], TransactionRun] = _no_more_to_tell
    """What an observer sees of a transaction besides what there is to see of any."""
    dirty: bool = False
    """Whether others may read what a transaction writes before it commits: then those that abort
    are in frames.
    """
    confs: Mapping[str, str] = field(default_factory=dict)
    """The confs that its writers have, whatever their clients set."""
    unfit: Callable[[Schema], str] = _fits
    """Why its writers cannot have a table that is declared like this; empty if they can."""
    reads: Callable[[Event, Statement, Database], Event] = _nothing_more
    """The transaction once it has begun, with what else of its reads its conflict check needs."""
    forestalled: Callable[[Event, Sequence[Event]], EvaluationError | None] = _nothing
    """How a commit fails before any check, for those that it missed; None if it does not."""
    refusal: Callable[
        [str | None, Sequence[Event], Event], tuple[EvaluationError | None, str | None]
    ] = _unsaid
    """How the check of a commit, the last argument, ends at the last of those that it missed so
    far, where the exception of an axiom is due (None: it would go on): another error, if it ends
    so, and the error class of the exception, if it has one."""
    written: Callable[[Event, Sequence[Event]], Event] = _as_it_is
    """The commit as it is recorded after those that it missed: its effect may still fail, or
    change.
    """
    foreign: Callable[[Event], Event] = _its_own
    """A commit as writers of other formats of the log find it there."""
    retries: Callable[[Event, Statement, Database, Database], bool] = _never
    """Whether a transaction tries again after a conflict, from the newest version; the databases
    are what it read and what there is."""
    blind: Callable[[Effect], bool | None] = _says_nothing
    """Whether a commit says of itself that it read nothing and only added; None if commits say no
    such thing.
    """
    definitions: Callable[[Database, Mapping[str, Schema], Collection[str]], object] = (
        _no_definitions
    )
    """What everybody reads of some tables besides rows, to be compared."""
    solver: Callable[[], ScopeSolver] | None = None
    """A search of its scopes by a solver, if there is one."""
    scans: Callable[[Statement, Mapping[str, Schema]], Scans | None] = _all_of_it
    """Tables and what picks files of them, such that a statement's effect depends on the files that
    are picked and on nothing else; None: on the whole snapshot."""
    instance: Callable[[Any, Sequence[Read], Sequence[str]], Any] | None = None
    """How it sees an instance of a statement with parameters (``checker.templates``), the queries
    of its client, and tables of which any row may count for it; None: nobody can say."""
    protocols: tuple[str, ...] = ()
    """The protocols that are meant where none is named."""
    levels: tuple[str, ...] = ()
    """The levels that a sweep judges by where none is named."""
    random: tuple[RandomTests, ...] = ()
    """Random tests of it, first those that are drawn where nobody says which."""
    universe: str = ""
    """The scope that ``separate`` searches where none is named."""
    searched_as: str = ""
    """The format of the scopes that its protocols are searched, counted and compared in; empty: its
    own.
    """
    unsearched: str = ""
    """Why its scopes are not searched and counted; empty if they are."""
