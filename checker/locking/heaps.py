"""Heaps with indexes, and rows written in place.

Heaps with indexes over them, as Apache Derby keeps tables (``rules``: ``keep heaps``).

A row stays where it was inserted; an entry of an index leads to it. What is deleted, and an entry
that is taken out because its key changes, stays as a ghost: scans come to it, lock its row, and see
then that it is none. Whoever reads a heap has IS on it, whoever writes it IX, or S and X instead of
locks on rows, and nobody's row is locked who has these. With ranges locked by previous keys,
whoever scans a range locks the row before it, too, or what stands for it where there is none;
whoever takes an entry out of an index in which keys come more than once, the row of the entry
before it; and whoever puts one in asks for that, and does not keep it.

Each lock is counted as often as it is asked for, since the victim of a deadlock is who has the
fewest (Derby's ``LockSpace.deadlockCount``).

Rows that are written in their place, and where they come to stand: what is locked and waited for.

Whoever writes locks the row, its page or its table, waits for whoever holds the gap into which an
entry goes, and has a key of a unique index only once nobody else may have it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from isolitmus.checker.locking.lock_table import Lock, Resource
from isolitmus.checker.locking.row_versions import key_of
from isolitmus.checker.locking.scans import (
    EmittedRow,
    LockGranted,
    MatchingRow,
    PassedEntry,
    ScanPlan,
    all_true,
    index_page,
)
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.conditions import columns_in
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from isolitmus.checker.locking.row_versions import IndexEntry, Position, RowImage, StoredRow
    from isolitmus.checker.locking.scans import Going, ScanTrace, SharedState
    from isolitmus.model.schema import Index
    from isolitmus.model.sql.values import Row

__all__ = ["DUPLICATE", "HeapScan", "IndexUpkeep", "RowWriter", "open_heap"]

DUPLICATE = "DuplicateKey"


def open_heap(
    work: SharedState, who: str, table: str, mode: str
) -> Generator[Lock | LockGranted, None, bool]:
    """Lock a heap that is to be read or written; whether no rows of it need to be locked then."""
    locks = work.locks
    yield from locked(work, Lock(who, Resource("heap", table), mode))
    enough = ("X",) if mode in ("IX", "X") else ("X", "S")
    return any(Lock(who, Resource("heap", table), one) in locks.held for one in enough)


def locked(work: SharedState, wanted: Lock) -> Generator[Lock | LockGranted, None, bool]:
    """Lock something; whether that had to wait. Who comes where nobody has a lock any more, and who
    waits has not looked yet, is given it (``LockControl.isGrantable``).
    """
    waited = False
    while work.locks.behind(wanted):
        waited = True
        if work.locks.left(wanted):
            break
        yield wanted
    work.locks.grant(wanted)
    yield LockGranted(waited)
    return waited


def before(work: SharedState, table: str, index: Index | None, at: Position) -> Resource:
    """The row of the entry before a position, or what stands for it where there is none."""
    rows = [e.row.id for e in work.store.standing(table, index) if e.position < at]
    return Resource("row", table, rows[-1] if rows else "")


@dataclass(slots=True)
class HeapScan(ScanPlan):
    """A scan of a heap, or by an index over it."""

    k: int = 0
    """Which scan of its statement it is."""
    mode: str = "IS"
    """How it locks the heap."""
    covered: bool = False
    """Whether no rows need to be locked then."""
    fetches: bool = False
    """Whether it locks rows once more where it goes from an index to the heap, for an UPDATE."""

    hidden: tuple[int, ...] = ()
    """Columns at which the store does not look: Derby would go by their index, if they did not
    stand in an expression.
    """

    @classmethod
    def of(cls, plan: ScanPlan, k: int, work: SharedState, *, writes: bool) -> HeapScan:
        """The scan that is planned; one that goes through a whole index locks as one through the
        heap does.
        """
        rules, indexes = work.rules, work.store.schemas[plan.table].indexes
        made = cls(**{one.name: getattr(plan, one.name) for one in fields(plan)}, k=k)
        if made.held is not None and not any(made.range()):
            made.held = rules.of_scan(indexed=False, writes=writes)
        made.mode = "IX" if writes else "IS"
        if writes and made.index is None:
            made.hidden = tuple(index.columns[0] for index in indexes)
        if made.held is not None and made.held.granule == "table":
            made.mode = made.held.mode
        return made

    def scan(self, work: SharedState, traces: list[ScanTrace]) -> Going:
        """A lock where it has to wait for one, and each entry that it comes to."""
        trace = self.trace(work)
        traces.append(trace)
        held = None if self.covered else self.held
        until_end: list[Lock] = []
        mine: Lock | None = None
        try:
            if held is not None and self.index is not None and work.rules.ranges is not None:
                yield from self.range_locked(work, held.mode)
            cursor: Position | None = None
            while True:
                entry = self.first(work, cursor)
                if mine is not None:
                    work.locks.release(mine)
                    mine = None
                if entry is None:
                    break
                if held is not None:
                    place = Resource("row", self.table, entry.row.id)
                    mine = Lock(self.who, place, held.mode)
                    waited = yield from locked(work, mine)
                    if waited and self.index is not None and self.index.unique:
                        work.locks.grant(mine)  # it looks whose row that is now, and locks that
                        until_end += [mine] if held.until == "next-asked" else []
                cursor = entry.position
                trace.passed.append((cursor, work.store.now))
                there = self.there(work, entry)
                keeps = held is None or held.until != "next-asked"
                if keeps and (there or held is None or held.mode == "X" or work.rules.ranges):
                    mine = None
                if there and self.fetches and not self.covered:
                    work.locks.grant(Lock(self.who, Resource("row", self.table, entry.row.id), "X"))
                come: MatchingRow | PassedEntry = PassedEntry(cursor)
                version = entry.row.current if there else None
                passing = version is None or entry.row.id in self.passing
                if not passing and version is not None and trace.asks(version.values):
                    assert version.values is not None
                    trace.visits.append(EmittedRow(entry.row, version, cursor, work.store.now))
                    come = MatchingRow(entry.row, version, version.values, trace)
                yield come
        finally:
            for lock in (*until_end, *([] if mine is None else [mine])):
                work.locks.release(lock)
        trace.passed.append((None, work.store.now))

    def first(self, work: SharedState, cursor: Position | None) -> IndexEntry | None:
        """The next entry in its range, be it a ghost."""
        bounds = list(self.range())
        for entry in work.store.standing(self.table, self.index):
            if cursor is not None and entry.position <= cursor:
                continue
            if all_true(bounds, (*self.outer, entry.values)):
                return entry
            if cursor is not None:
                return None
        return None

    def there(self, work: SharedState, entry: IndexEntry) -> bool:
        """Whether an entry that it has come to is no ghost now, and meets what the store itself
        looks at: conditions of one column, of an index one of its own, against a value (Derby's
        ``Qualifier``).
        """
        now = work.store.standing(self.table, self.index)
        found = next((e for e in now if e.position == entry.position), None)
        if found is None or found.ghost or found.row is not entry.row:
            return False
        return all_true(
            [p for p in self.where if self.looked_at(p)],
            (*self.outer, found.row.current.values or ()),
        )

    def looked_at(self, part: ex.Expr) -> bool:
        """Whether the store looks at a condition."""
        match part:
            case ex.Or(left=left, right=right):
                return self.looked_at(left) and self.looked_at(right)
            case ex.IsNull(operand=operand):
                return self.stored(operand)
            case ex.Compare(left=left, right=right):
                pairs = ((left, right), (right, left))
                return any(
                    self.stored(column)
                    and not any(c.side == len(self.outer) for c in columns_in(value))
                    for column, value in pairs
                )
        return False

    def stored(self, part: ex.Expr) -> bool:
        """Whether it is a column of what is scanned."""
        return (
            isinstance(part, ex.ColumnRef)
            and self.own(part)
            and part.index not in self.hidden
            and (self.index is None or part.index in self.index.columns)
        )

    def range_locked(self, work: SharedState, mode: str) -> Iterator[Lock | LockGranted]:
        """Lock the row before its range, anew if it had to wait; nothing if no key can come before
        the first.
        """
        waited = True
        while waited:
            bounds = list(self.range())
            standing = work.store.standing(self.table, self.index)
            if self.begins_with_a_key(standing, bounds):
                return
            low = [
                entry.row.id
                for entry in standing
                if not all_true(bounds, (*self.outer, entry.values))
                and not self.past(entry, bounds)
            ]
            place = Resource("row", self.table, low[-1] if low else "")
            waited = yield from locked(work, Lock(self.who, place, mode))

    def standing(self, entry: IndexEntry) -> Row:
        """The values by which an entry stands where it does."""
        return entry.values

    def begins_with_a_key(self, standing: Sequence[IndexEntry], bounds: Sequence[ex.Expr]) -> bool:
        """Whether its range begins with a key that is there, of an index in which no key comes
        twice.
        """
        assert self.index is not None
        if not self.index.unique:
            return False
        key = []
        for place, down in zip(self.index.columns, self.index.descending, strict=True):
            begins = ("=", "<=" if down else ">=")
            sides = [
                self.sided(p) for p in bounds if isinstance(p, ex.Compare) and self.bounds(p, place)
            ]
            value = next((value for _, value, op in sides if op in begins), None)
            if value is None:
                return False
            key.append(evaluate(value, (*self.outer, ())))
        return any([entry.values[k] for k in self.index.columns] == key for entry in standing)


@dataclass(slots=True)
class IndexUpkeep:
    """What a statement does to keep a heap and the indexes over it in step."""

    who: str
    """The transaction."""
    work: SharedState
    """What the transactions share."""
    table: str
    """The table that is the heap."""
    own: Index | None = None
    """The index whose scan takes its entry out itself, since it stands there."""
    covered: bool = False
    """Whether the heap as a whole was locked already when it was opened."""
    _covered: dict[tuple[str, str], bool] = field(default_factory=dict)

    @property
    def indexes(self) -> tuple[Index, ...]:
        """Those over the heap."""
        return self.work.store.schemas[self.table].indexes

    def open(self) -> Iterator[Lock | LockGranted]:
        """Open the heap."""
        self.covered = yield from open_heap(self.work, self.who, self.table, "IX")

    def insert(self, values: Row) -> Generator[Lock | LockGranted, None, StoredRow]:
        """The row first, then an entry in each index."""
        row = self.work.store.insert(self.table, values, self.who)
        version = row.current
        version.put.update({index.name: None for index in self.indexes})
        if not self.covered:
            self.work.locks.grant(Lock(self.who, Resource("row", self.table, row.id), "I"))
        for index in self.indexes:
            yield from self.put(index, row, values)
            self.work.store.put(version, index)
        return row

    def delete(self, row: StoredRow, old: Row) -> Iterator[Lock | LockGranted]:
        """Its entries first, then the row."""
        for index in self.indexes:
            if index is not self.own:
                yield from self.take(index, row, old)
        yield from self.write(row, None)

    def update(self, row: StoredRow, old: Row, new: Row) -> Iterator[Lock | LockGranted]:
        """First its entry in each index in which its key changes, then the row."""
        for index in self.indexes:
            if key_of(index, old) != key_of(index, new):
                yield from self.take(index, row, old)
                yield from self.put(index, row, new)
        yield from self.write(row, new)

    def write(self, row: StoredRow, values: Row | None) -> Iterator[Lock | LockGranted]:
        """The row itself."""
        if not self.covered:
            yield from locked(self.work, Lock(self.who, Resource("row", self.table, row.id), "X"))
        self.work.store.write(row, values, self.who)

    def take(self, index: Index, row: StoredRow, values: Row) -> Iterator[Lock | LockGranted]:
        """Take the entry of a row out of an index, for which it is looked for there."""
        if not (yield from self.opens(index, "take")):
            waited = self.work.rules.ranges is not None and not index.unique
            while waited:
                place = before(self.work, self.table, index, (key_of(index, values), row.number))
                waited = yield from locked(self.work, Lock(self.who, place, "X"))
            mine = Lock(self.who, Resource("row", self.table, row.id), "X")
            if (yield from locked(self.work, mine)) and index.unique:
                self.work.locks.grant(mine)
        row.taken[index.name] = self.who

    def put(self, index: Index, row: StoredRow, values: Row) -> Iterator[Lock | LockGranted]:
        """Wait until an entry may be put into an index."""
        covered = yield from self.opens(index, "put")
        asks = not covered and self.work.rules.ranges is not None
        key = key_of(index, values)
        while True:
            same = self.same(index, key, row, values)
            at = (key, row.number) if same is None else same.position
            asked = Lock(self.who, before(self.work, self.table, index, at), "P")
            if asks and self.work.locks.refused(asked):
                yield asked
                continue
            if same is None or same.row is row:
                return
            other = Lock(self.who, Resource("row", self.table, same.row.id), "X")
            if not covered and (yield from locked(self.work, other)):
                continue
            if not same.ghost:
                raise EvaluationError(
                    DUPLICATE, f"a row of {self.table} has this key in {index.name} already"
                )
            return

    def same(self, index: Index, key: object, row: StoredRow, values: Row) -> IndexEntry | None:
        """The entry with this key, of an index in which no key comes twice; else that of this
        row.
        """
        if index.unique and any(values[k] is None for k in index.columns):
            return None
        there = (e for e in self.work.store.standing(self.table, index) if e.position[0] == key)
        return next((e for e in there if index.unique or e.row is row), None)

    def opens(self, index: Index, what: str) -> Generator[Lock | LockGranted, None, bool]:
        """Open an index where the statement needs it first; whether no rows need to be locked
        then.
        """
        if (index.name, what) not in self._covered:
            covered = yield from open_heap(self.work, self.who, self.table, "IX")
            self._covered[index.name, what] = covered
        return self._covered[index.name, what]


@dataclass(slots=True)
class RowWriter:
    """What a statement does to write rows of a table."""

    who: str
    """The transaction."""
    work: SharedState
    """What the transactions share."""
    table: str
    """The table that is written."""

    def get(self, place: Resource, mode: str, *, loose: bool = False) -> Iterator[Lock]:
        """Wait for a lock, in a queue or ``loose``, and have it."""
        wanted = Lock(self.who, place, mode)
        if self.work.locks.covered(wanted):
            if wanted in self.work.locks.held:  # the scan that took it gives back only its own
                self.work.locks.grant(wanted)
            return
        if loose:
            self.work.locks.loose.add(wanted)
        while self.work.locks.behind(wanted):
            yield wanted
        self.work.locks.grant(wanted)

    def exclusive(self, row: StoredRow, seen: RowImage) -> Iterator[Lock]:
        """Lock a row that is to be written, of which a version was seen: where versions stand
        behind each other, whoever has to go on from that to what others have not committed waits
        for these, and not in the row's queue.
        """
        granule = self.work.rules.writes.granule
        if granule == "table":
            yield from self.get(Resource("table", self.table), "X")
            return
        follows = row.last is not seen and row.current.committed is None
        yield from self.get(_row(row), "X", loose=self.work.locks.versions and follows)
        version = row.seen("current", 0, self.who)
        if version is None or version.values is None:  # of what is gone nothing stays locked
            self.work.locks.release(Lock(self.who, _row(row), "X"))
        elif granule == "page":
            yield from self.pages(row, version.values)

    def pages(self, row: StoredRow, values: Row) -> Iterator[Lock]:
        """Lock the pages on which a row stands with these values."""
        for index in (None, *self.indexes):
            at = key_of(index, values), row.number
            yield from self.get(index_page(self.work, self.table, index, at), "X")

    def insert(self, values: Row) -> Generator[Lock, None, StoredRow]:
        """Insert a row."""
        store, overlaps = self.work.store, self.work.overlaps
        if overlaps is not None:
            overlaps.numbered(self.who)
            overlaps.puts(self.who, self.table)
        if self.work.rules.writes.granule == "table":
            yield from self.get(Resource("table", self.table), "X")
        somewhere = Lock(self.who, Resource("point", self.table, "anywhere"), "X")
        if self.work.locks.behind(somewhere):  # who has the whole table
            yield somewhere
        number = len(store.rows[self.table])
        yield from self.free(values, number, None)
        while number != len(store.rows[self.table]):  # others came while it waited
            number = len(store.rows[self.table])
            yield from self.free(values, number, None)
        self.enters(*self.indexes)
        row = store.insert(self.table, values, self.who)
        self.work.locks.grant(Lock(self.who, _row(row), "X"))
        if self.work.rules.writes.granule == "page":
            yield from self.pages(row, values)
        return row

    def delete(self, row: StoredRow, _old: Row) -> Iterator[Lock]:
        """Delete a row that is locked."""
        self.work.store.write(row, None, self.who)
        return iter(())

    def update(self, row: StoredRow, old: Row, new: Row) -> Iterator[Lock]:
        """Change a row that is locked, once it may stand where it comes to stand."""
        yield from self.free(new, row.number, old)
        if self.work.rules.writes.granule == "page":
            yield from self.pages(row, new)
        keys = self.work.store.keys
        if keys(self.table, old) != keys(self.table, new):
            self.enters(*self.indexes)
        self.work.store.write(row, new, self.who)

    @property
    def indexes(self) -> tuple[Index, ...]:
        """Those of the table."""
        return self.work.store.schemas[self.table].indexes

    def enters(self, *indexes: Index) -> None:
        """Entries come into some indexes."""
        if self.work.overlaps is not None:
            for index in indexes:
                self.work.overlaps.enters(self.who, self.table, index.name)

    def free(self, values: Row, number: int, old: Row | None) -> Iterator[Lock]:
        """Wait until nobody holds the gaps that an entry goes into, and no other row has its key
        where keys are unique. After a wait all is asked anew: whoever waited before may have taken
        the place.
        """
        while wanted := self.taken(values, number, old):
            while self.work.locks.behind(wanted):
                yield wanted

    def taken(self, values: Row, number: int, old: Row | None) -> Lock | None:
        """What has to be waited for before a row stands there; None: nothing. An error if another
        has its key.
        """
        for index in (None, *self.indexes):
            key = key_of(index, values)
            if old is not None and key == key_of(index, old):
                continue
            name = "" if index is None else index.name
            point = Lock(self.who, Resource("point", self.table, name, (key, number)), "X")
            if self.work.locks.behind(point):
                return point
            if index is not None and index.unique:
                owner = self.owner(index, values, number)
                if owner is not None:
                    return owner
        return None

    def owner(self, index: Index, values: Row, number: int) -> Lock | None:
        """The lock of a row that has a key, or may have it again; an error if it has it for
        good.
        """
        if any(values[k] is None for k in index.columns):
            return None
        key = key_of(index, values)
        for row in self.work.store.rows[self.table]:
            if row.number == number:
                continue
            has = [
                v
                for v in (row.seen("current", 0, self.who), row.last)
                if v is not None and v.values is not None
            ]
            if not any(key_of(index, v.values) == key for v in has if v.values is not None):
                continue
            wanted = Lock(self.who, _row(row), "S")
            if self.work.locks.versions:
                self.work.locks.loose.add(wanted)
            if self.work.locks.behind(wanted) and not self.work.locks.covered(wanted):
                return wanted
            now = row.seen("current", 0, self.who)
            if now is not None and now.values is not None and key_of(index, now.values) == key:
                self.enters(index)
                raise EvaluationError(
                    DUPLICATE, f"a row of {self.table} has this key in {index.name} already"
                )
        return None


def _row(row: StoredRow) -> Resource:
    return Resource("row", row.table, row.id)
