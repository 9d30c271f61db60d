"""Execution of a schedule by the model, with everything that an engine hides.

A ``Run`` contains what anyone can observe. An ``Execution`` also contains row identities, the rows
that each statement read and wrote, and its footprint. The Run and the Frame are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.delta.table import TableState
from isolitmus.model.display import ReadableRepr, count_of, first_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.delta.footprint import Footprint
    from isolitmus.model.schedule import Schedule
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.data_file import File, FileKey, TableRow
    from isolitmus.model.sql.types import EvaluationError
    from isolitmus.model.sql.values import Row, Rows

Database = Mapping[str, TableState]
"""Tables by name; a table that has not been created yet is missing."""


@dataclass(frozen=True, slots=True)
class RowRead:
    """Predicate read (Adya)."""

    table: str
    """Table that is read."""
    words: str
    """Description of the predicate."""
    matches: Callable[[Row], bool]
    """Predicate on a row's values."""
    matched: tuple[TableRow, ...]
    """Row versions that matched and were used."""
    version: int | None = None
    """Version that was read; None for the transaction's read version. It differs if the client read
    outside the transaction, or if a subquery was planned before the snapshot was taken.
    """

    def sees(self, row: Row | None) -> bool:
        """Return whether `row` exists and matches."""
        return row is not None and self.matches(row)


@dataclass(frozen=True, slots=True)
class RowWrite:
    """Row that is inserted (``before`` is None), updated, or deleted (``after`` is None)."""

    table: str
    id: str
    before: Row | None
    after: Row | None


def births(table: str, rows: Iterable[TableRow]) -> tuple[RowWrite, ...]:
    """Return the writes that insert `rows` into a table.

    Examples
    --------
    >>> from isolitmus.model.sql.data_file import TableRow
    >>> births("t", [TableRow("a.0", "a", (1,))])
    (RowWrite(table='t', id='a.0', before=None, after=(1,)),)
    """
    return tuple(RowWrite(table, row.id, None, row.values) for row in rows)


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of a statement on a snapshot: reads, writes, files, footprint, or the error it fails
    with.
    """

    reads: tuple[RowRead, ...] = ()
    """Predicates that were read, with the matching rows."""
    writes: tuple[RowWrite, ...] = ()
    """Rows that were inserted, updated and deleted."""
    adds: tuple[File, ...] = ()
    """Files that are added."""
    removes: frozenset[str | FileKey] = frozenset()
    """Files that are removed: paths (with any deletion vector), or keys of path and deletion
    vector.
    """
    footprint: Footprint | None = None
    """Read and write set that the commit is checked by; None for a query."""
    operation: str | None = None
    """Operation that the commit records."""
    closing: str | None = None
    """Operation of an empty commit that immediately follows the main one."""
    rows: Rows | None = None
    """Result of a query."""
    error: EvaluationError | None = None
    """Error that the statement fails with."""
    unwritable: EvaluationError | None = None
    """Error that it fails with when it writes; the values are checked no earlier."""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """Read set of a transaction as delta-rs tracks it."""

    files: frozenset[str] | None
    """Paths of the files; None for all files of the snapshot."""
    could_match: Callable[[File], bool]
    """Return whether a file that another transaction adds could contain rows that were read."""


@dataclass(frozen=True, slots=True)
class Event(ReadableRepr):
    """Transaction in an execution."""

    name: str
    """Name in the litmus test."""
    effect: Effect
    """Effect of its statement on its snapshot."""
    read_version: int
    """Version of its snapshot."""
    version: int | None = None
    """First version that it made; None if it committed nothing (a query, a no-op, an abort)."""
    conflict: str | None = None
    """Conflict exception that it aborted with."""
    error_class: str | None = None
    """Error class of its error, if it has one."""
    labels: frozenset[str] = field(default_factory=frozenset)
    """Labels that the protocol reports for it (``show … as``)."""
    session: str | None = None
    """Session that it shares with other transactions; None if it has a session of its own."""
    read_set: ReadSet | None = None
    """Read set as delta-rs tracks it, if the protocol needs it."""
    rolled_back: bool = False
    """True if its client rolled it back."""
    silence: str | None = None
    """Part of its commit that the protocol leaves unspecified (``silent … as``): the run ended
    there. Transactions that had not ended by then have the same value.
    """
    under: Spec | None = None
    """Commit protocol of its own writer, if it differs from the run's."""
    ended_by: str | None = None
    """Earlier commit of its statement with whose error the statement ended; None if there is none.
    """

    def __repr__(self) -> str:
        """Return the outcome, and the number of rows read and written."""
        effect = self.effect
        end = (
            self.conflict
            or self.silence
            or (type(effect.error).__name__ if effect.error is not None else "")
        )
        made = " and ".join(map(str, self.commits))
        fate = end or (f"commits version {made}" if made else "records nothing")
        rows = sum(len(read.matched) for read in effect.reads)
        counts = f"{count_of(rows, 'row')} read, {count_of(len(effect.writes), 'row')} written"
        return f"{self.name} reads version {self.read_version}, {fate}: {counts}"

    def seen_by(self, read: RowRead) -> int:
        """Return the version that `read`, one of its reads, saw."""
        return self.read_version if read.version is None else read.version

    @property
    def commits(self) -> tuple[int, ...]:
        """Versions that it made."""
        if self.version is None:
            return ()
        return (self.version,) if self.effect.closing is None else (self.version, self.version + 1)

    def missed(self, winner: Event) -> bool:
        """Return whether `winner` made a version of the same table after the version that this one
        read.
        """
        wrote, read = winner.effect.footprint, self.effect.footprint
        if wrote is None or read is None or wrote.table != read.table:
            return False
        return winner.version is not None and winner.version > self.read_version

    @property
    def aborted(self) -> bool:
        """True if it ended without a commit: by a conflict, an error, its client or a silence."""
        stopped = self.conflict is not None or self.silence is not None
        return stopped or self.rolled_back or self.effect.error is not None


@dataclass(frozen=True, slots=True)
class Execution(ReadableRepr):
    """Events in the order in which they ended, and the database at every version.

    ``format`` is the name of the format of the execution.
    """

    events: tuple[Event, ...]
    states: tuple[Database, ...]
    format: str
    schedule: Schedule | None = None
    """Steps that were executed; None if their order is unknown."""

    def __repr__(self) -> str:
        return first_lines(
            [f"versions 0 to {len(self.states) - 1}", *(f"  {e}" for e in self.events)]
        )
