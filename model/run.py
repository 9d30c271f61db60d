"""A run: a schedule carried out by an engine under a protocol, as anyone can observe it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.display import ReadableRepr, first_lines, render
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.records import Records, Tabular
from isolitmus.model.sql.values import show_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schedule import Schedule
    from isolitmus.model.sql.values import Row, Rows, Value

__all__ = [
    "PARKED",
    "ROLLED_BACK",
    "SILENT",
    "TOOK_EFFECT",
    "Run",
    "SeveralRuns",
    "Timeline",
    "TransactionRun",
    "Wait",
    "same_bag",
    "same_rows",
]

TOOK_EFFECT = ("committed", "no-op")
"""The outcomes of transactions that ended well."""
PARKED = "parked"
"""The outcome of a transaction that is still held before its commit."""
ROLLED_BACK = "rolled back"
"""The outcome of a transaction that its client ended without a commit."""
SILENT = "silent"
"""The outcome of a transaction of whose commit the protocol's source says nothing; and of all that
had not ended by then, for the run ends there."""


@dataclass(frozen=True, slots=True)
class Wait(ReadableRepr):
    """A transaction had to wait for others, who held what it wanted or were before it."""

    step: str
    """The step of its own that it had come to, as the schedule has it."""
    behind: tuple[str, ...]
    """For whom it waited, sorted."""

    def __str__(self) -> str:
        return f"at {self.step} for {' and '.join(self.behind)}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class TransactionRun(ReadableRepr):
    """What one transaction did. Versions count from the table at the start of the schedule, which
    is 0.
    """

    outcome: str
    """``committed``, ``no-op`` (nothing was recorded), ``rolled back``, ``silent`` (the protocol's
    source does not say), ``unknown`` (nobody could tell), the class of a conflict
    (``ConcurrentAppendException``), or ``error:CLASS``.
    """
    exception: str | None = None
    """The class of what it failed with."""
    error_class: str | None = None
    """Spark's name of the error."""
    read_version: int | None = None
    """The version of its snapshot."""
    version: int | None = None
    """The last that it made; None: nothing was recorded."""
    commits: tuple[int, ...] = ()
    """All that it made."""
    blind: bool | None = None
    """Whether its commit calls itself a blind append."""
    isolation_level: str | None = None
    """The level that its commit says it was checked at."""
    operation: str | None = None
    """What its commit says that it is."""
    rows: Rows | None = None
    """A reader's result."""
    emitted: Rows | None = None
    """Where statements are scans: the rows of tables that these gave, in the order in which they
    came.
    """
    waits: tuple[Wait, ...] = ()
    """When it waited for others, in order."""
    message: str | None = field(default=None, compare=False)
    """What it failed with says, in the words of the engine, if it has any: no two runs agree in
    paths and times.
    """
    unsaid: frozenset[str] = frozenset()
    """The fields that who saw it cannot tell: nobody can compare them, whatever they hold."""

    def __str__(self) -> str:
        """Return the version that it read, and the version that it committed or how else it
        ended.
        """
        parts = [] if self.read_version is None else [f"reads version {self.read_version}"]
        if self.outcome != "committed":
            parts.append(self.ending)
        elif self.commits:
            versions = " and ".join(map(str, self.commits))
            parts.append(f"commits version{'s' if len(self.commits) > 1 else ''} {versions}")
        parts += [f"waits {wait}" for wait in self.waits]
        return ", ".join(parts) or self.outcome

    def __repr__(self) -> str:
        return str(self)

    @property
    def ending(self) -> str:
        """The outcome in words."""
        return f"aborts with {self.outcome}" if self.aborted else self.outcome

    @property
    def aborted(self) -> bool:
        """Whether a conflict ended it."""
        others = (*TOOK_EFFECT, PARKED, ROLLED_BACK, SILENT, "unknown")
        return self.outcome not in others and not self.failed

    @property
    def failed(self) -> bool:
        """Whether an error ended it, and no conflict."""
        return self.outcome.startswith("error:")


@dataclass(frozen=True, slots=True)
class Run(ReadableRepr, Tabular):
    """A schedule carried out, as anyone can observe it."""

    litmus: str
    """The name of the litmus test."""
    engine: str
    """The name of the engine."""
    engine_version: str
    """What the engine says of its version."""
    protocol: str
    """The commit check under which the transactions ran."""
    base: int
    """The engine's own number of version 0."""
    transactions: Mapping[str, TransactionRun]
    """How each ended, and what it says of itself, by name."""
    versions: tuple[Mapping[str, Rows], ...]
    """The tables at every version, from 0: bags of rows, by the table's name."""
    unread: frozenset[int] = frozenset()
    """The versions whose tables who saw it could not read: somebody else had written there and not
    ended.
    """

    @property
    def tables(self) -> Mapping[str, Rows]:
        """The tables after the last commit."""
        return self.versions[-1]

    @property
    def records(self) -> Records:
        """What each transaction did, a row each."""
        of_run = ("litmus", "engine", "engine_version", "protocol")
        of_each = (
            "outcome",
            "error_class",
            "read_version",
            "version",
            "isolation_level",
            "operation",
        )
        run = tuple(getattr(self, name) for name in of_run)
        rows = (
            (*run, name, *(getattr(done, key) for key in of_each))
            for name, done in self.transactions.items()
        )
        return Records((*of_run, "transaction", *of_each), tuple(rows))

    def lines(self) -> list[str]:
        """Who carried out what, what became of each transaction, the tables after the last
        commit.
        """
        width = max(map(len, self.transactions), default=0)
        head = f"{self.litmus} on {self.engine} ({self.engine_version}) under {self.protocol}"
        ends = [f"  {name:<{width}}  {done}" for name, done in self.transactions.items()]
        rows = [(name, " ".join(map(show_row, rows))) for name, rows in self.tables.items()]
        at = len(self.versions) - 1
        return [
            head,
            *ends,
            *(f"  {name} at version {at}: {held or 'no rows'}" for name, held in rows),
        ]

    def __repr__(self) -> str:
        return first_lines(self.lines())


def same_bag(a: Rows, b: Rows) -> bool:
    """Whether two tables hold the same rows, each as often, in whatever order; values of different
    types are different, though Python has 1 equal to True.

    >>> same_bag(((1,), (2,)), ((2,), (1,))), same_bag(((1,),), ((True,),))
    (True, False)
    """
    return Counter(a) == Counter(b) and Counter(map(_typed, a)) == Counter(map(_typed, b))


def same_rows(a: Rows | None, b: Rows | None) -> bool:
    """Whether two lists hold the same rows in the same order, values of different types being
    different.

    >>> same_rows(((1,), (2,)), ((2,), (1,))), same_rows(((1,),), ((True,),))
    (False, False)
    """
    return a == b and (a is None or b is None or list(map(_typed, a)) == list(map(_typed, b)))


def _typed(row: Row) -> tuple[tuple[type, Value], ...]:
    return tuple((type(value), value) for value in row)


class SeveralRuns(UndeterminedError):
    """A test that ends in one of several ways, by whose thread is faster; ``runs`` are all of
    them.
    """

    def __init__(self, message: str, runs: tuple[Run, ...]) -> None:
        super().__init__(message)
        self.runs = runs


@dataclass(frozen=True, slots=True)
class Timeline(ReadableRepr):
    """When each transaction of a schedule starts and commits; with a run, what became of it.

    >>> import isolitmus.checker  # which draws it
    >>> from isolitmus.model.schedule import Schedule
    >>> Timeline(Schedule.parse("a.start b a.commit", ["a", "b"]))
    a  ├───────┤
    b      ●
    """

    schedule: Schedule
    run: Run | None = None

    def __repr__(self) -> str:
        return render(self)

    def to_svg(self) -> str:
        """A picture that stands alone, in light and in dark."""
        return render(self, "svg")

    def to_mermaid(self) -> str:
        """A sequence diagram of Mermaid."""
        return render(self, "mermaid")

    def to_tikz(self) -> str:
        """A ``tikzpicture`` for LaTeX."""
        return render(self, "tikz")
