"""Snapshots that are kept serializable: who read what another one, under way at the same time,
wrote.

As PostgreSQL 15 does it (README-SSI and predicate.c). What a transaction has read leaves marks,
SIREAD locks, which make nobody wait. Where a row is read of which others write another version, and
where a write meets a mark, the reader comes before the writer in any serial order: an rw edge.
Somebody ends where two of them follow each other, in -> pivot -> out, and ``out`` was the first to
commit; if ``in`` only reads, ``out`` must have committed before the snapshot of ``in``. Who ends:
whoever makes the edge, if it is the pivot or the pivot has committed; else the pivot, at the next
row that it reads or writes or at its commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from isolitmus.checker.locking.protocol_rules import ProtocolRules
    from isolitmus.checker.locking.row_versions import RowImage, StoredRow

__all__ = ["WRITE_CONFLICT", "OverlappingTransaction", "SireadMarks"]

WRITE_CONFLICT = "SerializationFailure"
"""What a transaction ends with that wants to write what was changed since its snapshot, or that
others would have to come before and after.
"""
ReadMark = tuple[str, str, int]
"""What was read: of a table (its name first) the whole (``table``), the rows that there are
(``page``), one version of a row (``row``, with its place), or an index (its name).
"""


@dataclass(slots=True, eq=False)
class OverlappingTransaction:
    """A transaction, as far as others that overlap with it have to know."""

    name: str
    """What the litmus test calls it."""
    oldest: int
    """At its snapshot, the number of the oldest writer that was under way; without one, the next
    number.
    """
    seen: int
    """The number of the last commit before its snapshot."""
    writers: frozenset[str]
    """Those that had committed before its snapshot."""
    number: int | None = None
    """Its own number among the writers; None: it has written nothing."""
    wrote: bool = False
    """Whether it has put, changed or deleted a row."""
    doomed: bool = False
    """Whether it is to end as soon as it does something."""
    committed: int | None = None
    """The number of its commit."""
    next: int = 0
    """The next number that a writer would have got when it committed."""
    first_out: int | None = None
    """Once it has committed: the number of the first commit, before its own, among those before
    which it comes.
    """
    outs: list[OverlappingTransaction] = field(default_factory=list)
    """Those that it comes before: it read what they wrote otherwise."""
    ins: list[OverlappingTransaction] = field(default_factory=list)
    """Those that come before it."""
    marks: list[ReadMark] = field(default_factory=list)
    """What it has read."""

    @property
    def reads_only(self) -> bool:
        """Whether it has committed and written nothing."""
        return self.committed is not None and not self.wrote

    def state(self) -> Hashable:
        """All of it, the others by name."""
        others = tuple(one.name for one in self.outs), tuple(one.name for one in self.ins)
        return (
            self.name, self.oldest, self.seen, self.number, self.wrote, self.doomed, self.committed, self.next,
            self.first_out, *others, tuple(self.marks),
        )  # fmt: skip


class SireadMarks:
    """The transactions that are under way, and those that have committed since the first of them
    began.
    """

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
        """All that what comes next depends on."""
        marked = tuple((mark, tuple(one.name for one in by)) for mark, by in self.marked.items())
        every = tuple(one.state() for one in (*self.going.values(), *self.known))
        return every, marked, tuple(self.running.items()), self.commits, self.next, self._oldest

    def begin(self, name: str) -> None:
        """A transaction takes its snapshot."""
        oldest = min(self.running.values(), default=self.next)
        self.going[name] = OverlappingTransaction(name, oldest, self.commits, self.writers)
        self._oldest = oldest if self._oldest is None else self._oldest

    def numbered(self, name: str) -> None:
        """A transaction has found a row to write, or brings one."""
        one = self.going[name]
        if one.number is None:
            one.number, self.next = self.next, self.next + 1
            self.running[name] = one.number

    # Reads

    def scan(self, name: str, table: str) -> None:
        """All of a table is read, in the order of its rows."""
        one = self.going[name]
        if "tables" not in self.rules.siread:
            return
        self._mark(one, (table, "table", 0))
        for mark in [m for m in one.marks if m[0] == table and m[1] in ("row", "page")]:
            self._unmark(one, mark)

    def search(self, name: str, table: str, index: str) -> None:
        """A table is read by an index: whatever may come into it is marked with the index."""
        if "indexes" in self.rules.siread:
            self._mark(self.going[name], (table, f"index {index}", 0))

    def version(self, name: str, image: RowImage, writer: str | None, *, seen: bool) -> None:
        """A version of a row is met, which is ``seen`` or not, and the ``writer`` of the next one
        (None: there is none).

        EvaluationError if that is no longer possible.
        """
        one = self.going[name]
        self._doomed(one)
        other = writer if seen else image.writer
        if other and other != name:
            self._out(one, other)

    def read(self, name: str, row: StoredRow, image: RowImage) -> None:
        """A version of a row was found by an index and is seen."""
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
        """What is read was written, or is no longer what it was, by somebody: an edge, if he was
        not there before.
        """
        every = (*self.going.values(), *self.known)
        other = next((o for o in every if o.name == name), None)
        if other is None or other.doomed or name in one.writers or other in one.outs:
            return
        self._edge(one, one, other)

    # Writes

    def changes(self, name: str, row: StoredRow, image: RowImage) -> None:
        """A row of which this is the newest version is changed or deleted."""
        table = row.table
        self._met(name, ((table, "row", image.place), (table, "page", 0), (table, "table", 0)))

    def puts(self, name: str, table: str) -> None:
        """A row is put into a table."""
        self._met(name, ((table, "table", 0),))

    def enters(self, name: str, table: str, index: str) -> None:
        """An entry comes into an index."""
        self._met(name, ((table, f"index {index}", 0),))

    def _met(self, name: str, marks: tuple[ReadMark, ...]) -> None:
        """Whoever has left one of these marks comes before this writer."""
        one = self.going[name]
        self._doomed(one)
        one.wrote = True
        for mark in marks:
            for other in list(self.marked.get(mark, ())):
                late = other.committed is None or one.oldest < other.next
                if other is not one and not other.doomed and late and other not in one.ins:
                    self._edge(one, other, one)
            if mark[1] == "row" and mark in one.marks:  # what it writes nobody else can
                self._unmark(one, mark)

    # Edges

    def _edge(
        self,
        me: OverlappingTransaction,
        reader: OverlappingTransaction,
        writer: OverlappingTransaction,
    ) -> None:
        """One comes before another; EvaluationError if ``me`` has to end for it."""
        if self._dangerous(reader, writer):
            if writer is me or writer.committed is not None:
                raise _failure(me.name)
            writer.doomed = True
        reader.outs.append(writer)
        writer.ins.append(reader)

    def _dangerous(self, reader: OverlappingTransaction, writer: OverlappingTransaction) -> bool:
        """Whether the edge makes one of the two a pivot behind which somebody was the first to
        commit.
        """
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
        """A transaction wants to commit; EvaluationError if it is doomed. If it is the first behind
        a pivot to do so, the pivot is.
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
        """A transaction ends otherwise."""
        one = self.going.get(name)
        if one is not None:
            one.doomed = True
            self._forget(one)
            self._over(one)

    def _over(self, one: OverlappingTransaction) -> None:
        """Once all that saw as far back as the oldest snapshot are over, those are forgotten that
        ended before the others began.
        """
        del self.going[one.name]
        self.running.pop(one.name, None)
        if one.oldest != self._oldest or any(o.oldest == one.oldest for o in self.going.values()):
            return
        self._oldest = min((o.oldest for o in self.going.values()), default=None)
        while self.known and (self._oldest is None or self.known[0].next <= self._oldest):
            self._forget(self.known.pop(0))

    def _forget(self, one: OverlappingTransaction) -> None:
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
        one.marks.remove(mark)
        self.marked[mark].remove(one)
        if not self.marked[mark]:
            del self.marked[mark]


def _cut(reader: OverlappingTransaction, writer: OverlappingTransaction) -> None:
    """Forget an edge."""
    reader.outs.remove(writer)
    writer.ins.remove(reader)


def _failure(name: str) -> EvaluationError:
    return EvaluationError(
        WRITE_CONFLICT, f"{name} reads and writes what others write and read, as in no serial order"
    )
