"""Scans of an index, entry by entry in its order, under the locks of a protocol.

`WatchedScan` models a scan with SIREAD marks as PostgreSQL 15 does it (heapam.c, nbtsearch.c): it
records the versions that the scan meets, also those that it does not see. A table is read page by
page, and has one page here: without an index, all versions are met when the scan begins. An index
has one entry per chain of versions without a key change. The matching entries are collected when
the scan begins, and a chain is followed up to the visible version when the scan reaches it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.databases.locking.lock_table import Lock, Resource
from isolitmus.databases.locking.row_versions import key_of
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.conditions import columns_in
from isolitmus.model.sql.evaluation import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from isolitmus.databases.locking.lock_table import LockTable
    from isolitmus.databases.locking.protocol_rules import LockRule, ProtocolRules
    from isolitmus.databases.locking.row_versions import (
        IndexEntry,
        Position,
        RowImage,
        RowStore,
        StoredRow,
    )
    from isolitmus.databases.locking.serializable_snapshots import SireadMarks
    from isolitmus.model.sql.schema import Column, Index
    from isolitmus.model.sql.values import Row

    Going = Generator["Lock | LockGranted | MatchingRow | PassedEntry", None, None]


@dataclass(slots=True)
class WatchedScan:
    """Scan that records what it meets, with the index entries that it has not reached."""

    overlaps: SireadMarks
    """Record of SIREAD marks and edges."""
    who: str
    table: str
    sees: Callable[[StoredRow], RowImage | None]
    """Function that returns the visible version of a row."""
    left: list[tuple[StoredRow, RowImage]] = field(default_factory=list)
    """Entries not reached yet, each with the first version of its chain."""

    def begin(self, store: RowStore, index: Index | None, asks: Callable[[RowImage], bool]) -> None:
        """Begin the scan of an index, whose entries ``asks`` selects, or of the whole table."""
        every = store.versions(self.table)
        if index is None:
            self.overlaps.scan(self.who, self.table)
            for row, image in every:
                self.meet(row, image)
            return
        self.overlaps.search(self.who, self.table, index.name)
        self.left = [(row, v) for row, v in every if v.root == v.place and asks(v)]
        self.left.sort(key=lambda entry: (key_of(index, entry[1].values or ()), entry[1].place))

    def upto(self, row: StoredRow | None) -> None:
        """Advance the scan to a row; None for its end."""
        if row is not None and not any(of is row for of, _ in self.left):
            return
        while self.left:
            of, first = self.left.pop(0)
            for image in of.versions:
                mine = image.root == first.root and image.values is not None
                if mine and self.meet(of, image):
                    self.overlaps.read(self.who, of, image)
                    if of is row:
                        return
                    break

    def meet(self, row: StoredRow, image: RowImage) -> bool:
        """Meet a version, and return whether it is visible."""
        seen = self.sees(row) is image
        later = row.versions[row.versions.index(image) + 1 :]
        writer = next((version.writer for version in later if version.undone is None), None)
        self.overlaps.version(self.who, image, writer, seen=seen)
        return seen


KEPT = ("read", "statement", "commit")
"""Releases of a lock that do not depend on the next lock."""


@dataclass(slots=True)
class EmittedRow:
    """Row that a scan emitted: the version that it read, its position, and the time."""

    row: StoredRow
    version: RowImage
    position: Position
    at: int


@dataclass(slots=True)
class ScanTrace:
    """Trace of a scan: the rows that it emitted, and the times at which it passed positions."""

    statement: int
    """Number of its statement in the transaction, from 1."""
    table: str
    index: Index | None
    """Index that it uses; None for the order of insertion."""
    words: str
    """Condition as text."""
    matches: Sequence[ex.Expr]
    """Conjuncts of its condition."""
    outer: tuple[Row, ...]
    """Rows of the outer queries."""
    columns: Sequence[Column]
    """Columns of the table."""
    sight: str
    """Visibility rule (``protocol_rules.SIGHTS``)."""
    began: int
    """Time of its snapshot, or of its start if it has none."""
    visits: list[EmittedRow] = field(default_factory=list)
    """Rows that it emitted, in order."""
    passed: list[tuple[Position | None, int]] = field(default_factory=list)
    """Positions with the time at which the scan passed each; None for its end."""
    again: dict[str, int] = field(default_factory=dict)
    """Time at which it rechecked the newest version of a row, by row id."""
    watch: WatchedScan | None = None
    """Record of what it meets; None without SIREAD marks."""

    def look_again(self, row: StoredRow, version: RowImage | None, at: int) -> bool:
        """Replace the version read of an emitted row by a newer one; return whether it matches."""
        self.again[row.id] = at
        (seen,) = (visit for visit in self.visits if visit.row is row)
        if version is None or not self.asks(version.values):
            self.visits.remove(seen)
            return False
        seen.version, seen.at = version, at
        return True

    def asks(self, values: Row | None) -> bool:
        """Return whether a row with these values matches."""
        return values is not None and all_true(self.matches, (*self.outer, values))


@dataclass(frozen=True, slots=True)
class MatchingRow:
    """Row that a scan has reached and that matches its condition."""

    row: StoredRow
    version: RowImage
    values: Row
    trace: ScanTrace


@dataclass(frozen=True, slots=True)
class PassedEntry:
    """Entry that a scan has passed and that does not match; its position is None at the end."""

    position: Position | None


@dataclass(frozen=True, slots=True)
class LockGranted:
    """Grant of a lock over a heap; other resuming transactions may act before the next step."""

    waited: bool
    """True if the transaction had to wait for it."""


OVER = PassedEntry(None)


@dataclass(slots=True)
class SharedState:
    """State shared by the transactions of a run."""

    store: RowStore
    """Rows of the tables."""
    locks: LockTable
    """Locks held and requested."""
    rules: ProtocolRules
    """Clauses of the protocol."""
    overlaps: SireadMarks | None = None
    """SIREAD marks and edges; None unless snapshots are kept serializable."""


@dataclass(slots=True)
class ScanPlan:
    """Plan of a scan."""

    who: str
    """Transaction that scans."""
    table: str
    index: Index | None
    """Index that it uses; None for the order of insertion."""
    where: tuple[ex.Expr, ...]
    """Conjuncts of its condition, without subqueries."""
    outer: tuple[Row, ...]
    """Rows of the outer queries."""
    sight: str
    """Visibility rule (``protocol_rules.SIGHTS``)."""
    at: int
    """Time of its snapshot, or of its start if it has none."""
    held: LockRule | None
    """Lock that it takes; None if it takes none."""
    statement: int
    """Number of its statement in the transaction, from 1."""
    passing: set[str] = field(default_factory=set)
    """Rows to skip because the statement has written them itself."""
    until_statement: list[Lock] = field(default_factory=list)
    """Receives the locks that it keeps until the end of its statement."""
    ranges: bool = False
    """True if it locks the gaps between the entries of an index that is not over a heap."""
    skips: bool = False
    """True if it skips rows that others have locked."""

    def scan(self, work: SharedState, traces: list[ScanTrace]) -> Going:
        """Yield locks to wait for, and each entry that the scan reaches."""
        trace = self.trace(work)
        traces.append(trace)
        watch = trace.watch = self.watched(work)
        cursor: Position | None = None
        mine: Lock | None = None
        # `mine` is the lock at the previous position. It is released only once the next one is
        # requested or granted, as the rule says, or when the row is read.
        while True:
            entry, beyond = self.come(work.store, cursor, watch)
            place = None if entry is None else self.place(work, entry)
            if mine is not None and self.leaves(mine, place, "next-asked"):
                work.locks.release(mine)
                mine = None
            if entry is None or place is None:
                break
            got = mine
            if self.held is not None and (mine is None or mine.place != place):
                wanted = Lock(self.who, place, self.held.mode)
                covered = work.locks.covered(wanted)
                if not covered and work.locks.behind(wanted):
                    cursor = yield from self.kept_from(wanted, entry, cursor)
                    continue
                if not covered:
                    work.locks.grant(wanted)
                    self.keeps(wanted)
                if mine is not None:
                    work.locks.release(mine)
                got = None if covered else wanted
            self.gap(work, entry.position)
            cursor, mine = entry.position, got
            trace.passed.append((cursor, work.store.now))
            version = entry.row.seen(self.sight, self.at, self.who)
            if mine is not None and self.held is not None and self.held.until in KEPT:
                if self.held.until == "read":
                    work.locks.release(mine)
                mine = None
            come: MatchingRow | PassedEntry = PassedEntry(cursor)
            passing = entry.ghost or entry.row.id in self.passing or version is None
            if not passing and version is not None and trace.asks(version.values):
                assert version.values is not None
                trace.visits.append(EmittedRow(entry.row, version, cursor, work.store.now))
                come = MatchingRow(entry.row, version, version.values, trace)
            try:
                yield come
            except GeneratorExit:
                if mine is not None:
                    work.locks.release(mine)
                raise
        trace.passed.append((None, work.store.now))
        self.gap(work, beyond)

    def kept_from(
        self, wanted: Lock, entry: IndexEntry, cursor: Position | None
    ) -> Generator[Lock, None, Position | None]:
        """Wait at an entry that others have locked, or skip it; return the scan's position."""
        if self.skips:
            return entry.position
        yield wanted
        return cursor

    def come(
        self, store: RowStore, cursor: Position | None, watch: WatchedScan | None
    ) -> tuple[IndexEntry | None, Position | None]:
        """Go to the next entry, and record what is met on the way."""
        entry, beyond = self.next(store, cursor)
        if watch is not None:
            watch.upto(None if entry is None else entry.row)
        return entry, beyond

    def trace(self, work: SharedState) -> ScanTrace:
        """Return the empty trace of the scan."""
        return ScanTrace(
            self.statement,
            self.table,
            self.index,
            " AND ".join(map(str, self.where)) or "TRUE",
            self.where,
            self.outer,
            work.store.schemas[self.table].columns,
            self.sight,
            self.at,
        )

    def next(
        self, store: RowStore, cursor: Position | None
    ) -> tuple[IndexEntry | None, Position | None]:
        """Return the next entry in the range, else the position of the first entry beyond it."""
        ghosts = self.held is not None
        bounds = list(self.range())
        inside = False
        for entry in store.entries(
            self.table, self.index, self.sight, self.at, self.who, ghosts=ghosts
        ):
            if cursor is not None and entry.position <= cursor:
                continue
            values = self.standing(entry)
            if all_true(bounds, (*self.outer, values)):
                return entry, None
            if inside or cursor is not None or self.past(entry, bounds):
                return None, entry.position
        return None, None

    def standing(self, entry: IndexEntry) -> Row:
        """Return the values that determine the position of an entry."""
        version = entry.row.last if entry.ghost else entry.row.seen(self.sight, self.at, self.who)
        assert version is not None
        assert version.values is not None
        return version.values

    def past(self, entry: IndexEntry, bounds: Sequence[ex.Expr]) -> bool:
        """Return whether an entry outside of the range comes after all of the range."""
        if self.index is None or not bounds:
            return False
        rows = (*self.outer, self.standing(entry))
        first = next((part for part in bounds if evaluate(part, rows) is not True), None)
        return first is not None and self.above(first, rows)

    def above(self, part: ex.Expr, rows: Sequence[Row]) -> bool:
        """Return whether a row that a bound excludes comes after the rows that it admits."""
        assert self.index is not None
        if isinstance(part, ex.IsNull):
            return not self.down(part.operand)
        assert isinstance(part, ex.Compare)
        column, other, op = self.sided(part)
        a, b = evaluate(column, rows), evaluate(other, rows)
        if b is None:
            return True
        greater = a is not None and bool(a > b or op == "<")  # type: ignore[operator]
        return greater != self.down(column)

    def sided(self, part: ex.Compare) -> tuple[ex.Expr, ex.Expr, str]:
        """Return a comparison with the index column on the left."""
        if self.own(part.left):
            return part.left, part.right, part.op
        turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(part.op, part.op)
        return part.right, part.left, turned

    def down(self, column: ex.Expr) -> bool:
        """Return whether the index is descending in a column."""
        assert self.index is not None
        assert isinstance(column, ex.ColumnRef)
        return self.index.descending[self.index.columns.index(column.index)]

    def watched(self, work: SharedState) -> WatchedScan | None:
        """Begin to record what the scan meets; return None without SIREAD marks."""
        if work.overlaps is None:
            return None

        def sees(row: StoredRow) -> RowImage | None:
            return row.seen(self.sight, self.at, self.who)

        def asks(image: RowImage) -> bool:
            return image.values is not None and all_true(asked, (*self.outer, image.values))

        asked = [part for part in self.where if self.of_index(part)]
        watch = WatchedScan(work.overlaps, self.who, self.table, sees)
        watch.begin(work.store, self.index, asks)
        return watch

    def of_index(self, part: ex.Expr) -> bool:
        """Return whether the index itself decides which of its entries satisfy a conjunct."""
        places = () if self.index is None else self.index.columns
        if any(self.bounds(part, place) for place in places):
            return True
        if isinstance(part, ex.Not):
            return isinstance(part.operand, ex.IsNull) and self.of_index(part.operand)
        if not isinstance(part, ex.In) or not self.own(part.operand):
            return False
        return any(column.index in places for column in columns_in(part.operand))

    def own(self, part: ex.Expr) -> bool:
        """Return whether an expression is a column of the scanned table."""
        return isinstance(part, ex.ColumnRef) and part.side == len(self.outer)

    def range(self) -> Iterator[ex.Expr]:
        """Yield the conjuncts that delimit the scanned range of the index."""
        for place in () if self.index is None else self.index.columns:
            about = [part for part in self.where if self.bounds(part, place)]
            yield from about
            if not any(
                isinstance(p, ex.IsNull) or (isinstance(p, ex.Compare) and p.op == "=")
                for p in about
            ):
                return

    def bounds(self, part: ex.Expr, place: int) -> bool:
        """Return whether a conjunct bounds a column from one side, or to one value."""
        if isinstance(part, ex.IsNull):
            return (
                self.own(part.operand)
                and isinstance(part.operand, ex.ColumnRef)
                and part.operand.index == place
            )
        if not isinstance(part, ex.Compare) or part.op == "<>":
            return False
        for column, other in ((part.left, part.right), (part.right, part.left)):
            mine = isinstance(column, ex.ColumnRef) and self.own(column) and column.index == place
            if mine and not any(c.side == len(self.outer) for c in columns_in(other)):
                return True
        return False

    # Locks

    def place(self, work: SharedState, entry: IndexEntry) -> Resource:
        """Return the resource to lock for an entry."""
        granule = "row" if self.held is None else self.held.granule
        if self.held is not None and self.escalates(work):
            granule = "table"
        if granule == "table":
            return Resource("table", self.table)
        if granule == "page":
            return index_page(work, self.table, self.index, entry.position)
        return Resource("row", self.table, entry.row.id)

    def escalates(self, work: SharedState) -> bool:
        """Return whether to lock the table, because enough rows are locked and it is available."""
        most = work.rules.escalate
        if most is None or self.held is None or self.held.granule == "table":
            return False
        whole = Lock(self.who, Resource("table", self.table), self.held.mode)
        rows = [
            lock
            for lock in work.locks.of(self.who)
            if lock.place.kind == "row" and lock.place.table == self.table
        ]
        return len(rows) >= most and (work.locks.covered(whole) or not work.locks.behind(whole))

    def leaves(self, mine: Lock, place: Resource | None, when: str) -> bool:
        """Return whether the lock of the scan's previous position is released now."""
        if place is not None and place == mine.place:
            return False
        return place is None or (self.held is not None and self.held.until == when)

    def keeps(self, lock: Lock) -> None:
        """Record a lock that is kept until the end of the statement."""
        if self.held is not None and self.held.until == "statement":
            self.until_statement.append(lock)

    def gap(self, work: SharedState, at: Position | None) -> None:
        """Lock the gap before a position, if next-key locks are taken."""
        if not self.ranges or self.held is None:
            return
        name = "" if self.index is None else self.index.name
        every = work.store.entries(self.table, self.index, "current", 0, self.who, ghosts=True)
        positions = [entry.position for entry in every]
        low = max((p for p in positions if at is None or p < at), default=None)
        work.locks.grant(Lock(self.who, Resource("gap", self.table, name, low, at), "S"))


def index_page(work: SharedState, table: str, index: Index | None, at: Position) -> Resource:
    """Return the page of an index at a position.

    Pages are formed once, of the initial entries.
    """
    first = work.store.pages[table, index]
    rank = max(sum(position <= at for position in first) - 1, 0)
    name = "" if index is None else index.name
    return Resource("page", table, f"{name}:{rank // work.rules.page}")


def all_true(parts: Sequence[ex.Expr], rows: Sequence[Row]) -> bool:
    """Return whether all conditions are TRUE."""
    return all(evaluate(part, rows) is True for part in parts)
