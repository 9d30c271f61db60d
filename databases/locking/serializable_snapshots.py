"""Serializable snapshot isolation: abort on dangerous structures of rw edges.

The algorithm is that of PostgreSQL 15 (README-SSI and predicate.c). Reads leave marks, SIREAD
locks, which block no transaction. An rw edge from reader to writer arises in two cases: a
transaction reads a row of which another one writes another version, or a write meets a mark. The
reader then precedes the writer in any serial order.

A transaction aborts if two edges follow each other, in -> pivot -> out, and ``out`` was the first
to commit; if ``in`` only reads, ``out`` must have committed before the snapshot of ``in``. The
transaction that adds the edge aborts if it is the pivot or the pivot has committed. Otherwise the
pivot aborts, at the next row that it reads or writes or at its commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from isolitmus.databases.locking.protocol_rules import ProtocolRules
    from isolitmus.databases.locking.row_versions import RowImage, StoredRow

WRITE_CONFLICT = "SerializationFailure"
"""Error of a write to a row changed since the snapshot, and of a dangerous structure."""
ReadMark = tuple[str, str, int]
"""SIREAD mark: table, kind, and place of the row version.

The kind is "table" (the whole table), "page" (all existing rows), "row" (one version of a row), or
"index NAME". The place is 0 unless the kind is "row".
"""


@dataclass(slots=True, eq=False)
class OverlappingTransaction:
    """State of a transaction that overlapping transactions need."""

    name: str
    """Name in the litmus test."""
    oldest: int
    """Number of the oldest active writer at its snapshot; the next number if there was none."""
    seen: int
    """Number of the last commit before its snapshot."""
    writers: frozenset[str]
    """Writers that had committed before its snapshot."""
    number: int | None = None
    """Its number among the writers; None if it has written nothing."""
    wrote: bool = False
    """True if it has inserted, changed or deleted a row."""
    doomed: bool = False
    """True if it aborts at its next operation."""
    committed: int | None = None
    """Number of its commit; None if not committed."""
    next: int = 0
    """Next free writer number when it committed."""
    first_out: int | None = None
    """After its commit: the smallest commit number among its successors that committed before it.
    """
    outs: list[OverlappingTransaction] = field(default_factory=list)
    """Successors: it read versions that they replaced."""
    ins: list[OverlappingTransaction] = field(default_factory=list)
    """Predecessors: they read versions that it replaced."""
    marks: list[ReadMark] = field(default_factory=list)
    """Its SIREAD marks."""

    @property
    def reads_only(self) -> bool:
        """True if it has committed and written nothing."""
        return self.committed is not None and not self.wrote

    def state(self) -> Hashable:
        """Return its whole state, with other transactions by name."""
        others = tuple(one.name for one in self.outs), tuple(one.name for one in self.ins)
        return (
            self.name, self.oldest, self.seen, self.number, self.wrote, self.doomed,
            self.committed, self.next, self.first_out, *others, tuple(self.marks),
        )  # fmt: skip


class SireadMarks:
    """Active transactions and those committed since the first of them began, with their marks."""

    def __init__(self, rules: ProtocolRules) -> None:
        self.rules = rules
        self.going: dict[str, OverlappingTransaction] = {}
        self.known: list[OverlappingTransaction] = []
        self.marked: dict[ReadMark, list[OverlappingTransaction]] = {}
        self.writers: frozenset[str] = frozenset()
        self.running: dict[str, int] = {}
        self.commits = 0
        self.next = 1
        self._oldest: int | None = None

    def state(self) -> Hashable:
        """Return the state that determines all later outcomes."""
        marked = tuple((mark, tuple(one.name for one in by)) for mark, by in self.marked.items())
        every = tuple(one.state() for one in (*self.going.values(), *self.known))
        return every, marked, tuple(self.running.items()), self.commits, self.next, self._oldest

    def begin(self, name: str) -> None:
        """Take the snapshot of a transaction."""
        oldest = min(self.running.values(), default=self.next)
        self.going[name] = OverlappingTransaction(name, oldest, self.commits, self.writers)
        self._oldest = oldest if self._oldest is None else self._oldest

    def numbered(self, name: str) -> None:
        """Number a transaction as a writer, when it has found a row to write or inserts one."""
        one = self.going[name]
        if one.number is None:
            one.number, self.next = self.next, self.next + 1
            self.running[name] = one.number

    # Reads

    def scan(self, name: str, table: str) -> None:
        """Mark a whole table as read by a scan without an index."""
        one = self.going[name]
        if "tables" not in self.rules.siread:
            return
        self._mark(one, (table, "table", 0))
        for mark in [m for m in one.marks if m[0] == table and m[1] in ("row", "page")]:
            self._unmark(one, mark)

    def search(self, name: str, table: str, index: str) -> None:
        """Mark an index as read; later entries into it meet the mark."""
        if "indexes" in self.rules.siread:
            self._mark(self.going[name], (table, f"index {index}", 0))

    def version(self, name: str, image: RowImage, writer: str | None, *, seen: bool) -> None:
        """Record that a transaction meets a version of a row.

        Parameters
        ----------
        name : str
            The transaction.
        image : RowImage
            The version.
        writer : str or None
            Writer of the next version; None if there is none.
        seen : bool
            Whether the version is visible to the transaction.

        Raises
        ------
        EvaluationError
            If the transaction has to abort.
        """
        one = self.going[name]
        self._doomed(one)
        other = writer if seen else image.writer
        if other and other != name:
            self._out(one, other)

    def read(self, name: str, row: StoredRow, image: RowImage) -> None:
        """Mark a visible version of a row that was found by an index."""
        one = self.going[name]
        around: tuple[ReadMark, ...] = ((row.table, "table", 0), (row.table, "page", 0))
        mark = (row.table, "row", image.place)
        if "rows" not in self.rules.siread or image.writer == name:
            return
        if any(m in one.marks for m in (*around, mark)):
            return
        self._mark(one, mark)
        rows = [m for m in one.marks if m[:2] == mark[:2]]
        if self.rules.siread_page is not None and len(rows) >= self.rules.siread_page:
            self._mark(one, around[1])
            for mark in rows:
                self._unmark(one, mark)

    def _out(self, one: OverlappingTransaction, name: str) -> None:
        """Add an edge to the writer of another version, unless the reader's snapshot has it."""
        every = (*self.going.values(), *self.known)
        other = next((o for o in every if o.name == name), None)
        if other is None or other.doomed or name in one.writers or other in one.outs:
            return
        self._edge(one, one, other)

    # Writes

    def changes(self, name: str, row: StoredRow, image: RowImage) -> None:
        """Record the change or deletion of a row with `image` as its newest version."""
        table = row.table
        self._met(name, ((table, "row", image.place), (table, "page", 0), (table, "table", 0)))

    def puts(self, name: str, table: str) -> None:
        """Record the insertion of a row into a table."""
        self._met(name, ((table, "table", 0),))

    def enters(self, name: str, table: str, index: str) -> None:
        """Record a new entry in an index."""
        self._met(name, ((table, f"index {index}", 0),))

    def _met(self, name: str, marks: tuple[ReadMark, ...]) -> None:
        """Add edges to this writer from the transactions that left one of these marks."""
        one = self.going[name]
        self._doomed(one)
        one.wrote = True
        for mark in marks:
            for other in list(self.marked.get(mark, ())):
                late = other.committed is None or one.oldest < other.next
                if other is not one and not other.doomed and late and other not in one.ins:
                    self._edge(one, other, one)
            # the mark is unnecessary: while this writer holds the row, no other can write it
            if mark[1] == "row" and mark in one.marks:
                self._unmark(one, mark)

    # Edges

    def _edge(
        self,
        me: OverlappingTransaction,
        reader: OverlappingTransaction,
        writer: OverlappingTransaction,
    ) -> None:
        """Add an rw edge; raise EvaluationError if ``me`` has to abort because of it."""
        if self._dangerous(reader, writer):
            if writer is me or writer.committed is not None:
                raise _failure(me.name)
            writer.doomed = True
        reader.outs.append(writer)
        writer.ins.append(reader)

    def _dangerous(self, reader: OverlappingTransaction, writer: OverlappingTransaction) -> bool:
        """Return whether the edge makes one of the two a pivot whose successor committed first."""
        if writer.committed is not None and writer.first_out is not None:
            return True
        for out in writer.outs:
            first = out.committed is not None and all(
                one.committed is None or out.committed <= one.committed for one in (reader, writer)
            )
            if first and (not reader.reads_only or (out.committed or 0) <= reader.seen):
                return True
        if writer.committed is None or reader.reads_only:
            return False
        return any(
            not one.doomed
            and (one.committed is None or one.committed >= writer.committed)
            and (not one.reads_only or one.seen >= writer.committed)
            for one in reader.ins
        )

    def _doomed(self, one: OverlappingTransaction) -> None:
        if one.doomed:
            raise _failure(one.name)

    # Ends

    def commit(self, name: str) -> None:
        """Commit a transaction; raise EvaluationError if it is doomed.

        If it is the first to commit among the successors of a pivot, the pivot is doomed.
        """
        one = self.going.get(name)
        if one is None:
            return
        self._doomed(one)
        for pivot in one.ins:
            if pivot.committed is None and not pivot.doomed:
                pivot.doomed = any(
                    first is one or (first.committed is None and not first.doomed)
                    for first in pivot.ins
                )
        self.commits += 1
        one.committed = self.commits
        one.next = self.next
        outs = [out.committed for out in one.outs if out.committed is not None]
        if one.wrote and outs:
            one.first_out = min(outs)
        for out in list(one.outs):
            if out.committed is not None:
                _cut(one, out)
        for first in list(one.ins):
            if first.committed is not None:
                _cut(first, one)
        self.writers |= {name} if one.number is not None else set()
        self.known.append(one)
        self._over(one)

    def undo(self, name: str) -> None:
        """End a transaction without a commit."""
        one = self.going.get(name)
        if one is not None:
            one.doomed = True
            self._forget(one)
            self._over(one)

    def _over(self, one: OverlappingTransaction) -> None:
        """Remove an ended transaction, and forget those that no active transaction overlaps.

        The latter happens when the last transaction with the oldest snapshot ends.
        """
        del self.going[one.name]
        self.running.pop(one.name, None)
        if one.oldest != self._oldest or any(o.oldest == one.oldest for o in self.going.values()):
            return
        self._oldest = min((o.oldest for o in self.going.values()), default=None)
        while self.known and (self._oldest is None or self.known[0].next <= self._oldest):
            self._forget(self.known.pop(0))

    def _forget(self, one: OverlappingTransaction) -> None:
        """Remove the marks and rw edges of a transaction."""
        for mark in list(one.marks):
            self._unmark(one, mark)
        for out in list(one.outs):
            _cut(one, out)
        for first in list(one.ins):
            _cut(first, one)

    # Marks

    def _mark(self, one: OverlappingTransaction, mark: ReadMark) -> None:
        if mark not in one.marks:
            one.marks.append(mark)
            self.marked.setdefault(mark, []).append(one)

    def _unmark(self, one: OverlappingTransaction, mark: ReadMark) -> None:
        """Remove a mark of a transaction."""
        one.marks.remove(mark)
        self.marked[mark].remove(one)
        if not self.marked[mark]:
            del self.marked[mark]


def _cut(reader: OverlappingTransaction, writer: OverlappingTransaction) -> None:
    """Remove an edge."""
    reader.outs.remove(writer)
    writer.ins.remove(reader)


def _failure(name: str) -> EvaluationError:
    return EvaluationError(
        WRITE_CONFLICT, f"{name} reads and writes what others write and read, as in no serial order"
    )
