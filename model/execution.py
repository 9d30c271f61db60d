"""An execution: a schedule as the model carries it out, with everything that an engine would hide.

A ``Run`` is what anyone can observe; an ``Execution`` also has row identities, what each statement
read and wrote at row level, and its footprint. From it come the Run and the Frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.defaults import DELTA
from isolitmus.model.delta.table import TableState
from isolitmus.model.display import ReadableRepr, count_of, first_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.delta.data_file import File, FileKey, TableRow
    from isolitmus.model.delta.footprint import Footprint
    from isolitmus.model.schedule import Schedule
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.types import EvaluationError
    from isolitmus.model.sql.values import Row, Rows

__all__ = ["Database", "Effect", "Event", "Execution", "ReadSet", "RowRead", "RowWrite", "births"]

Database = Mapping[str, TableState]
"""The tables by name; one that nobody has made yet is not among them."""


@dataclass(frozen=True, slots=True)
class RowRead:
    """A predicate read (Adya)."""

    table: str
    """The table that is read."""
    words: str
    """The predicate, in words."""
    matches: Callable[[Row], bool]
    """The predicate, of a row's values."""
    matched: tuple[TableRow, ...]
    """The row versions that matched and were used."""
    version: int | None = None
    """The version at which it was made; None: the transaction's read version. It differs where the
    client read outside the transaction, or a subquery was planned before the snapshot was taken."""

    def sees(self, row: Row | None) -> bool:
        """Whether there is a row and it matches."""
        return row is not None and self.matches(row)


@dataclass(frozen=True, slots=True)
class RowWrite:
    """One row inserted (``before`` None), rewritten, or deleted (``after`` None)."""

    table: str
    id: str
    before: Row | None
    after: Row | None


def births(table: str, rows: Iterable[TableRow]) -> tuple[RowWrite, ...]:
    """The writes of rows that are new in a table.

    >>> from isolitmus.model.delta.data_file import TableRow
    >>> births("t", [TableRow("a.0", "a", (1,))])
    (RowWrite(table='t', id='a.0', before=None, after=(1,)),)
    """
    return tuple(RowWrite(table, row.id, None, row.values) for row in rows)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a statement does on a snapshot: reads, writes, files, footprint, or the error it fails
    with.
    """

    reads: tuple[RowRead, ...] = ()
    """The predicates that it read, with the rows that matched."""
    writes: tuple[RowWrite, ...] = ()
    """The rows that it inserted, rewrote and deleted."""
    adds: tuple[File, ...] = ()
    """The files that it adds."""
    removes: frozenset[str | FileKey] = frozenset()
    """Paths of files that it removes, whatever their vectors, or files with theirs."""
    footprint: Footprint | None = None
    """What its commit is checked by; a reader has none."""
    operation: str | None = None
    """What its commit says that it is."""
    closing: str | None = None
    """The operation of an empty commit that follows its own at once."""
    rows: Rows | None = None
    """The result of a reader."""
    error: EvaluationError | None = None
    """What it fails with."""
    unwritable: EvaluationError | None = None
    """What it fails with when it is written: no sooner is what it writes looked at."""


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What delta-rs takes a transaction to have read."""

    files: frozenset[str] | None
    """The paths of files; None: whatever was there."""
    could_match: Callable[[File], bool]
    """Whether a file that another transaction adds could hold what it read."""


@dataclass(frozen=True, slots=True)
class Event(ReadableRepr):
    """A transaction in an execution."""

    name: str
    """What the litmus test calls it."""
    effect: Effect
    """What its statement did on its snapshot."""
    read_version: int
    """The version of its snapshot."""
    version: int | None = None
    """The first that it made; None: it recorded nothing (a reader, a no-op, an abort)."""
    conflict: str | None = None
    """The exception of the conflict that ended it."""
    error_class: str | None = None
    """The class of the error, where it has one."""
    labels: frozenset[str] = field(default_factory=frozenset)
    """What the protocol reports of it (``show … as``)."""
    session: str | None = None
    """The session that it shares with others; None: one of its own."""
    read_set: ReadSet | None = None
    """There where a protocol needs it."""
    rolled_back: bool = False
    """Whether its client ended it without a commit."""
    silence: str | None = None
    """What its protocol leaves unsaid of its commit (``silent … as``): there the run ended. Of
    those that had not ended by then the same."""
    under: Spec | None = None
    """The commit check of its own writer, if another one than the run's writes it."""

    def __repr__(self) -> str:
        """What became of it, and how much it read and wrote."""
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
        """The version at which one of its reads was made."""
        return self.read_version if read.version is None else read.version

    @property
    def commits(self) -> tuple[int, ...]:
        """The versions that it made."""
        if self.version is None:
            return ()
        return (self.version,) if self.effect.closing is None else (self.version, self.version + 1)

    def missed(self, winner: Event) -> bool:
        """Whether another one became a version of the same table after the one that it read."""
        wrote, read = winner.effect.footprint, self.effect.footprint
        if wrote is None or read is None or wrote.table != read.table:
            return False
        return winner.version is not None and winner.version > self.read_version

    @property
    def aborted(self) -> bool:
        """Whether a conflict, an error, its client or a silence ended it, without a commit."""
        stopped = self.conflict is not None or self.silence is not None
        return stopped or self.rolled_back or self.effect.error is not None


@dataclass(frozen=True, slots=True)
class Execution(ReadableRepr):
    """Events in the order in which they ended, and the database at every version; the ``format`` by
    which they were carried out.
    """

    events: tuple[Event, ...]
    states: tuple[Database, ...]
    format: str = DELTA
    schedule: Schedule | None = None
    """The steps, each taken when it came; None: nobody knows what was when."""

    def __repr__(self) -> str:
        return first_lines(
            [f"versions 0 to {len(self.states) - 1}", *(f"  {e}" for e in self.events)]
        )
