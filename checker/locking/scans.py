"""Scans through an index under the locks of a protocol.

A scan: entry by entry through an index, in its order, under the locks of its protocol.

What a scan comes by where it is remembered what was read: versions of rows, also those that it does
not see.

As PostgreSQL 15 does it (heapam.c, nbtsearch.c). A table is read page by page, and ours has one: by
no index all versions are met when the scan begins. An index has one entry for each chain of
versions between which no key has changed; those that are asked for are collected when the scan
begins, and a chain is followed up to the version that is seen when the scan comes to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.checker.locking.lock_table import Lock, Resource
from isolitmus.checker.locking.row_versions import key_of
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.conditions import columns_in
from isolitmus.model.sql.evaluation import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from isolitmus.checker.locking.lock_table import LockTable
    from isolitmus.checker.locking.protocol_rules import LockRule, ProtocolRules
    from isolitmus.checker.locking.row_versions import (
        IndexEntry,
        Position,
        RowImage,
        RowStore,
        StoredRow,
    )
    from isolitmus.checker.locking.serializable_snapshots import SireadMarks
    from isolitmus.model.schema import Column, Index
    from isolitmus.model.sql.values import Row

    Going = Generator["Lock | LockGranted | MatchingRow | PassedEntry", None, None]

__all__ = [
    "OVER",
    "EmittedRow",
    "LockGranted",
    "MatchingRow",
    "PassedEntry",
    "ScanPlan",
    "ScanTrace",
    "SharedState",
    "WatchedScan",
    "all_true",
    "index_page",
]


@dataclass(slots=True)
class WatchedScan:
    """A scan, and the entries of its index that it has not come to."""

    overlaps: SireadMarks
    """Where it is remembered."""
    who: str
    """The transaction."""
    table: str
    """What is scanned."""
    sees: Callable[[StoredRow], RowImage | None]
    """The version of a row that it sees."""
    left: list[tuple[StoredRow, RowImage]] = field(default_factory=list)
    """The entries, each with the first version of its chain."""

    def begin(self, store: RowStore, index: Index | None, asks: Callable[[RowImage], bool]) -> None:
        """The scan begins, by an index whose entries it ``asks`` for, or by none."""
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
        """The scan comes to a row; None: to its end."""
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
        """Come to a version; whether it is seen."""
        seen = self.sees(row) is image
        later = row.versions[row.versions.index(image) + 1 :]
        writer = next((version.writer for version in later if version.undone is None), None)
        self.overlaps.version(self.who, image, writer, seen=seen)
        return seen


KEPT = ("read", "statement", "commit")
"""When a lock is given back that does not wait for the next one."""


@dataclass(slots=True)
class EmittedRow:
    """A row that a scan emitted: the version that it read, where that stood, and when."""

    row: StoredRow
    version: RowImage
    position: Position
    at: int


@dataclass(slots=True)
class ScanTrace:
    """What a scan did: which rows it emitted, and when it had come how far."""

    statement: int
    """The number of its statement in the transaction, from 1."""
    table: str
    """What it scans."""
    index: Index | None
    """By which index; None: in the order in which the rows came."""
    words: str
    """Its condition in words."""
    matches: Sequence[ex.Expr]
    """The parts of its condition."""
    outer: tuple[Row, ...]
    """The rows of the queries around it."""
    columns: Sequence[Column]
    """Those of the table."""
    sight: str
    """What it sees (``rules``)."""
    began: int
    """The time of its snapshot; without one, when it began."""
    visits: list[EmittedRow] = field(default_factory=list)
    """The rows that it emitted, in order."""
    passed: list[tuple[Position | None, int]] = field(default_factory=list)
    """Positions, each with when the scan came there; None: to its end."""
    again: dict[str, int] = field(default_factory=dict)
    """The rows of which it looked at the newest version once more, each with when."""
    watch: WatchedScan | None = None
    """What it comes by, where it is remembered what was read."""

    def look_again(self, row: StoredRow, version: RowImage | None, at: int) -> bool:
        """Whether a row, of which there is another version than the one that was emitted, is still
        asked for; from then on that version is what was read.
        """
        self.again[row.id] = at
        (seen,) = (visit for visit in self.visits if visit.row is row)
        if version is None or not self.asks(version.values):
            self.visits.remove(seen)
            return False
        seen.version, seen.at = version, at
        return True

    def asks(self, values: Row | None) -> bool:
        """Whether it is about a row with these values."""
        return values is not None and all_true(self.matches, (*self.outer, values))


@dataclass(frozen=True, slots=True)
class MatchingRow:
    """A row that a scan has come to, and that it is about."""

    row: StoredRow
    version: RowImage
    values: Row
    trace: ScanTrace


@dataclass(frozen=True, slots=True)
class PassedEntry:
    """A scan has come to an entry of a row that it is not about, or (None) to its end."""

    position: Position | None


@dataclass(frozen=True, slots=True)
class LockGranted:
    """A lock was given (over heaps): before the next thing is done, another who goes on too may do
    one.
    """

    waited: bool
    """Whether it had to be waited for."""


OVER = PassedEntry(None)


@dataclass(slots=True)
class SharedState:
    """What the transactions of a run share."""

    store: RowStore
    """The rows."""
    locks: LockTable
    """Who holds what, and who waits."""
    rules: ProtocolRules
    """The clauses of the protocol."""
    overlaps: SireadMarks | None = None
    """What has been read, where snapshots are kept serializable."""


@dataclass(slots=True)
class ScanPlan:
    """A scan to be made."""

    who: str
    """The transaction."""
    table: str
    """What is scanned."""
    index: Index | None
    """By which index; None: in the order in which the rows came."""
    where: tuple[ex.Expr, ...]
    """The parts of its condition, without subqueries."""
    outer: tuple[Row, ...]
    """The rows of the queries around it."""
    sight: str
    """What it sees (``rules``)."""
    at: int
    """The time of its snapshot; without one, when it begins."""
    held: LockRule | None
    """What it locks; None: nothing."""
    statement: int
    """The number of its statement in the transaction, from 1."""
    passing: set[str] = field(default_factory=set)
    """The rows that it passes over: the statement has written them itself."""
    until_statement: list[Lock] = field(default_factory=list)
    """Where it leaves the locks that it keeps for its statement."""
    ranges: bool = False
    """Whether it locks the gaps between what it comes to, of indexes that are no heaps'."""
    skips: bool = False
    """Whether it passes over what others have locked."""

    def scan(self, work: SharedState, traces: list[ScanTrace]) -> Going:
        """A lock where it has to wait for one, and each entry that it comes to."""
        trace = self.trace(work)
        traces.append(trace)
        watch = trace.watch = self.watched(work)
        cursor: Position | None = None
        mine: Lock | None = None
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
        """Wait at an entry that others have locked, or pass over it; where the scan is then."""
        if self.skips:
            return entry.position
        yield wanted
        return cursor

    def come(
        self, store: RowStore, cursor: Position | None, watch: WatchedScan | None
    ) -> tuple[IndexEntry | None, Position | None]:
        """Go to the next entry, by all that is remembered."""
        entry, beyond = self.next(store, cursor)
        if watch is not None:
            watch.upto(None if entry is None else entry.row)
        return entry, beyond

    def trace(self, work: SharedState) -> ScanTrace:
        """What is to be told of it."""
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
        """The next entry in its range; if there is none, where the first one beyond is."""
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
        """The values by which an entry stands where it does."""
        version = entry.row.last if entry.ghost else entry.row.seen(self.sight, self.at, self.who)
        assert version is not None
        assert version.values is not None
        return version.values

    def past(self, entry: IndexEntry, bounds: Sequence[ex.Expr]) -> bool:
        """Whether an entry outside the range comes after all of it."""
        if self.index is None or not bounds:
            return False
        rows = (*self.outer, self.standing(entry))
        first = next((part for part in bounds if evaluate(part, rows) is not True), None)
        return first is not None and self.above(first, rows)

    def above(self, part: ex.Expr, rows: Sequence[Row]) -> bool:
        """Whether a row that a bound excludes comes after what it admits."""
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
        """A comparison with the column of the index first."""
        if self.own(part.left):
            return part.left, part.right, part.op
        turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(part.op, part.op)
        return part.right, part.left, turned

    def down(self, column: ex.Expr) -> bool:
        """Whether the index descends by a column."""
        assert self.index is not None
        assert isinstance(column, ex.ColumnRef)
        return self.index.descending[self.index.columns.index(column.index)]

    def watched(self, work: SharedState) -> WatchedScan | None:
        """What it comes by, from now on; None where nobody remembers that."""
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
        """Whether the index says itself which of its entries satisfy a part of the condition."""
        places = () if self.index is None else self.index.columns
        if any(self.bounds(part, place) for place in places):
            return True
        if isinstance(part, ex.Not):
            return isinstance(part.operand, ex.IsNull) and self.of_index(part.operand)
        if not isinstance(part, ex.In) or not self.own(part.operand):
            return False
        return any(column.index in places for column in columns_in(part.operand))

    def own(self, part: ex.Expr) -> bool:
        """Whether it is a column of the table that is scanned."""
        return isinstance(part, ex.ColumnRef) and part.side == len(self.outer)

    def range(self) -> Iterator[ex.Expr]:
        """The parts of the condition that say which range of the index is scanned."""
        for place in () if self.index is None else self.index.columns:
            about = [part for part in self.where if self.bounds(part, place)]
            yield from about
            if not any(
                isinstance(p, ex.IsNull) or (isinstance(p, ex.Compare) and p.op == "=")
                for p in about
            ):
                return

    def bounds(self, part: ex.Expr, place: int) -> bool:
        """Whether a part of the condition bounds a column from one side, or to one value."""
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
        """What is locked for an entry."""
        granule = "row" if self.held is None else self.held.granule
        if self.held is not None and self.escalates(work):
            granule = "table"
        if granule == "table":
            return Resource("table", self.table)
        if granule == "page":
            return index_page(work, self.table, self.index, entry.position)
        return Resource("row", self.table, entry.row.id)

    def escalates(self, work: SharedState) -> bool:
        """Whether so many rows are locked that the table is locked instead, if that is to be
        had.
        """
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
        """Whether the lock of the place where the scan was is given back now."""
        if place is not None and place == mine.place:
            return False
        return place is None or (self.held is not None and self.held.until == when)

    def keeps(self, lock: Lock) -> None:
        """Take note of a lock that is kept for the statement."""
        if self.held is not None and self.held.until == "statement":
            self.until_statement.append(lock)

    def gap(self, work: SharedState, at: Position | None) -> None:
        """Lock the gap before a position, with next-key locks."""
        if not self.ranges or self.held is None:
            return
        name = "" if self.index is None else self.index.name
        every = work.store.entries(self.table, self.index, "current", 0, self.who, ghosts=True)
        positions = [entry.position for entry in every]
        low = max((p for p in positions if at is None or p < at), default=None)
        work.locks.grant(Lock(self.who, Resource("gap", self.table, name, low, at), "S"))


def index_page(work: SharedState, table: str, index: Index | None, at: Position) -> Resource:
    """The page of an index at a position: of so many of the entries that were there first."""
    first = work.store.pages[table, index]
    rank = max(sum(position <= at for position in first) - 1, 0)
    name = "" if index is None else index.name
    return Resource("page", table, f"{name}:{rank // work.rules.page}")


def all_true(parts: Sequence[ex.Expr], rows: Sequence[Row]) -> bool:
    """Whether all of some conditions are TRUE."""
    return all(evaluate(part, rows) is True for part in parts)
