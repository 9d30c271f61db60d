"""Run of a litmus test by an engine under a protocol, with everything that is observable."""

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

TOOK_EFFECT = ("committed", "no-op")
"""Outcomes of transactions that succeeded."""
PARKED = "parked"
"""Outcome of a transaction that is still held before its commit."""
ROLLED_BACK = "rolled back"
"""Outcome of a transaction that its client rolled back."""
SILENT = "silent"
"""Outcome of a transaction whose commit the source of the protocol leaves unspecified, and of all
transactions that had not ended by then: the run ends there.
"""


@dataclass(frozen=True, slots=True)
class Wait(ReadableRepr):
    """Wait of a transaction for others that held a lock or were ahead of it."""

    step: str
    """Step of the schedule that the transaction had reached."""
    behind: tuple[str, ...]
    """Transactions that it waited for, sorted."""

    def __str__(self) -> str:
        return f"at {self.step} for {' and '.join(self.behind)}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class TransactionRun(ReadableRepr):
    """Observed behaviour of one transaction; version 0 is the table when the schedule starts."""

    outcome: str
    """``committed``, ``no-op`` (nothing was recorded), ``rolled back``, ``silent`` (unspecified by
    the source of the protocol), ``unknown`` (not observable), the class of a conflict
    (``ConcurrentAppendException``), or ``error:CLASS``.
    """
    exception: str | None = None
    """Class of the exception that it failed with."""
    error_class: str | None = None
    """Error class as named by Spark."""
    read_version: int | None = None
    """Version of its snapshot."""
    version: int | None = None
    """Last version that it made; None if nothing was recorded."""
    commits: tuple[int, ...] = ()
    """All versions that it made."""
    blind: bool | None = None
    """True if its commit is marked as a blind append."""
    isolation_level: str | None = None
    """Isolation level that its commit records."""
    operation: str | None = None
    """Operation that its commit records."""
    rows: Rows | None = None
    """Result of a query."""
    emitted: Rows | None = None
    """Rows that its scans emitted, in order, if statements are scans."""
    waits: tuple[Wait, ...] = ()
    """Waits for other transactions, in order."""
    message: str | None = field(default=None, compare=False)
    """Error message of the engine, if any; not compared, as it contains paths and times."""
    unsaid: frozenset[str] = frozenset()
    """Fields that the observer cannot determine; they are never compared."""

    def __str__(self) -> str:
        """Return the version that it read, and the version that it committed or another outcome."""
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
        """Outcome in words."""
        return f"aborts with {self.outcome}" if self.aborted else self.outcome

    @property
    def aborted(self) -> bool:
        """True if it aborted with a conflict."""
        others = (*TOOK_EFFECT, PARKED, ROLLED_BACK, SILENT, "unknown")
        return self.outcome not in others and not self.failed

    @property
    def failed(self) -> bool:
        """True if it failed with an error other than a conflict."""
        return self.outcome.startswith("error:")


@dataclass(frozen=True, slots=True)
class Run(ReadableRepr, Tabular):
    """Run of a litmus test: observable behaviour of its transactions and contents of its tables.

    Examples
    --------
    >>> from isolitmus.checker import run
    >>> done = run("reorder", "delta-serializable").run
    >>> {name: one.outcome for name, one in done.transactions.items()}
    {'delete': 'ConcurrentAppendException', 'insert': 'committed'}
    """

    litmus: str
    """Name of the litmus test."""
    engine: str
    """Name of the engine."""
    engine_version: str
    """Version that the engine reports."""
    protocol: str
    """Commit protocol of the transactions."""
    base: int
    """Number that version 0 has in the engine."""
    transactions: Mapping[str, TransactionRun]
    """Observed behaviour of each transaction, by name."""
    versions: tuple[Mapping[str, Rows], ...]
    """Tables at every version, from 0: bags of rows, by the table's name."""
    unread: frozenset[int] = frozenset()
    """Versions whose tables the observer could not read, because another transaction had written
    there and had not ended.
    """

    @property
    def tables(self) -> Mapping[str, Rows]:
        """Tables after the last commit."""
        return self.versions[-1]

    @property
    def records(self) -> Records:
        """One row for each transaction."""
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
        """Return the lines of a report: engine and protocol, outcome of each transaction, final
        tables.
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
    """Return whether two tables contain the same rows equally often, in any order.

    Values of different types are different, although 1 equals True in Python.

    Examples
    --------
    >>> same_bag(((1,), (2,)), ((2,), (1,))), same_bag(((1,),), ((True,),))
    (True, False)
    """
    return Counter(a) == Counter(b) and Counter(map(_typed, a)) == Counter(map(_typed, b))


def same_rows(a: Rows | None, b: Rows | None) -> bool:
    """Return whether two lists contain the same rows in the same order.

    Values of different types are different.

    Examples
    --------
    >>> same_rows(((1,), (2,)), ((2,), (1,))), same_rows(((1,),), ((True,),))
    (False, False)
    """
    return a == b and (a is None or b is None or list(map(_typed, a)) == list(map(_typed, b)))


def _typed(row: Row) -> tuple[tuple[type, Value], ...]:
    return tuple((type(value), value) for value in row)


class SeveralRuns(UndeterminedError):
    """Test with several possible runs, depending on thread timing; ``runs`` are all of them."""

    def __init__(self, message: str, runs: tuple[Run, ...]) -> None:
        super().__init__(message)
        self.runs = runs


@dataclass(frozen=True, slots=True)
class Timeline(ReadableRepr):
    """Diagram of the starts and commits in a schedule, with outcomes if it has a run.

    Examples
    --------
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
        """Return a self-contained SVG image for light and dark backgrounds."""
        return render(self, "svg")

    def to_mermaid(self) -> str:
        """Return a Mermaid sequence diagram."""
        return render(self, "mermaid")

    def to_tikz(self) -> str:
        """Return a ``tikzpicture`` for LaTeX."""
        return render(self, "tikz")
