"""An execution: a schedule as the model carries it out, with everything that an engine would hide.

A ``Run`` is what anyone can observe; an ``Execution`` also has row identities, what each statement
read and wrote at row level, and its footprint. From it come the Run and the Frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.table import File, TableRow, TableState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.expression import EvaluationError
    from isolitmus.model.footprint import Footprint
    from isolitmus.model.values import Row, Rows

__all__ = ["Asked", "Database", "Effect", "Event", "Execution", "RowRead", "RowWrite", "births"]

Database = Mapping[str, TableState]
"""The tables by name; one that nobody has made yet is not among them."""


@dataclass(frozen=True, slots=True)
class RowRead:
    """A predicate read (Adya): the table, the predicate in words and as a function of a row's
    values, and the row versions that matched and were used.

    ``version`` is the one it was made at, None for the transaction's read version. It differs where
    the client read outside the transaction, or a subquery was planned before the snapshot was taken.
    """

    table: str
    words: str
    matches: Callable[[Row], bool]
    matched: tuple[TableRow, ...]
    version: int | None = None

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

    >>> births("t", [TableRow("a.0", "a", (1,))])
    (RowWrite(table='t', id='a.0', before=None, after=(1,)),)
    """
    return tuple(RowWrite(table, row.id, None, row.values) for row in rows)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a statement does on a snapshot: reads, writes, files, footprint, or the error it fails with.

    ``rows`` is the result of a reader, which has no footprint. ``closing``: the operation of an empty
    commit that follows the statement's own at once.
    """

    reads: tuple[RowRead, ...] = ()
    writes: tuple[RowWrite, ...] = ()
    adds: tuple[File, ...] = ()
    removes: frozenset[str] = frozenset()
    footprint: Footprint | None = None
    operation: str | None = None
    closing: str | None = None
    rows: Rows | None = None
    error: EvaluationError | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What delta-rs takes a transaction to have read: the paths of files (None: whatever was there), and
    whether a file that another one adds could hold what it asks for.
    """

    files: frozenset[str] | None
    could_match: Callable[[File], bool]


@dataclass(frozen=True, slots=True)
class Event:
    """A transaction in an execution; ``version`` is the first that it made, None if it recorded nothing (a reader, a no-op, an
    abort). ``session`` is the name of the session that it shares with others, if it does; ``asked`` is
    there where a protocol needs it.
    """

    name: str
    effect: Effect
    read_version: int
    version: int | None = None
    conflict: str | None = None
    error_class: str | None = None
    labels: frozenset[str] = field(default_factory=frozenset)
    session: str | None = None
    asked: Asked | None = None

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
        if wrote is None or read is None or wrote.schema.name != read.schema.name:
            return False
        return winner.version is not None and winner.version > self.read_version

    @property
    def aborted(self) -> bool:
        """Whether a conflict or an error ended it."""
        return self.conflict is not None or self.effect.error is not None


@dataclass(frozen=True, slots=True)
class Execution:
    """Events in the order in which they ended, and the database at every version."""

    events: tuple[Event, ...]
    states: tuple[Database, ...]
