"""Row writes, and scans, of tables under locking: in place, or in heaps with indexes.

`RowWriter` writes rows in place. It locks the row, its page or its table, waits for holders of the
gap into which an entry goes, and takes a unique key only once no other transaction may have it.

`HeapScan` and `IndexUpkeep` model heaps with indexes over them, as Apache Derby stores tables (rule
``keep heaps``). A row stays where it was inserted, and index entries lead to it. A deleted row, and
an entry that is removed because its key changes, remains as a ghost: scans reach it, lock its row,
and only then skip it. A reader of a heap has IS on it, a writer IX; or they have S and X instead of
row locks, and then lock no rows.

If ranges are locked by previous keys, there are three more locks. A range scan also locks the row
before the range, or a substitute if there is none. Removing an entry from a non-unique index locks
the row of the previous entry. Inserting an entry requests that lock, and does not keep it.

Each lock is counted as often as it is requested, since the deadlock victim is the transaction with
the fewest locks (Derby's ``LockSpace.deadlockCount``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from isolitmus.databases.locking.lock_table import Lock, Resource
from isolitmus.databases.locking.row_versions import key_of
from isolitmus.databases.locking.scans import (
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

    from isolitmus.databases.locking.row_versions import IndexEntry, Position, RowImage, StoredRow
    from isolitmus.databases.locking.scans import Going, ScanTrace, SharedState
    from isolitmus.model.sql.schema import Index
    from isolitmus.model.sql.values import Row

DUPLICATE = "DuplicateKey"


def open_heap(
    work: SharedState, who: str, table: str, mode: str
) -> Generator[Lock | LockGranted, None, bool]:
    """Lock a heap for reading or writing; return whether its rows need no locks then.

    Parameters
    ----------
    work : SharedState
        Locks and rows of the run.
    who : str
        The transaction.
    table : str
        Name of the table.
    mode : str
        Lock mode on the heap.

    Yields
    ------
    Lock or LockGranted
        A lock that has to be waited for, or that was granted.
    """
    locks = work.locks
    yield from locked(work, Lock(who, Resource("heap", table), mode))
    enough = ("X",) if mode in ("IX", "X") else ("X", "S")
    return any(Lock(who, Resource("heap", table), one) in locks.held for one in enough)


def locked(work: SharedState, wanted: Lock) -> Generator[Lock | LockGranted, None, bool]:
    """Acquire a lock; return whether it had to wait.

    A request that finds the resource unlocked, while its waiters have not noticed that yet, is
    granted (``LockControl.isGrantable``).
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
    """Return the row of the entry before a position, or a substitute if there is none."""
    rows = [e.row.id for e in work.store.standing(table, index) if e.position < at]
    return Resource("row", table, rows[-1] if rows else "")


@dataclass(slots=True)
class HeapScan(ScanPlan):
    """Scan of a heap, or of an index over it."""

    k: int = 0
    """Index of the scan in its statement."""
    mode: str = "IS"
    """Lock mode on the heap."""
    covered: bool = False
    """True if the lock on the heap makes row locks unnecessary."""
    fetches: bool = False
    """True if it locks rows again when it goes from an index to the heap, for an UPDATE."""

    hidden: tuple[int, ...] = ()
    """Columns whose conditions the store does not evaluate.

    Derby would use the index of these columns if they were not part of an expression.
    """

    @classmethod
    def of(cls, plan: ScanPlan, k: int, work: SharedState, *, writes: bool) -> HeapScan:
        """Return the heap scan of a plan; a scan of a whole index locks like one of the heap."""
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
        """Yield locks to wait for, and each entry that the scan reaches."""
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
                        work.locks.grant(mine)  # it re-reads the entry's row, and locks that
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
        """Return the next entry in the range, ghost or not."""
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
        """Return whether the entry is no ghost now and satisfies the store's conditions.

        These compare one column, of an index one of its own, with a value (Derby's ``Qualifier``).
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
        """Return whether the store evaluates a condition."""
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
        """Return whether an expression is a column that the store can evaluate."""
        return (
            isinstance(part, ex.ColumnRef)
            and self.own(part)
            and part.index not in self.hidden
            and (self.index is None or part.index in self.index.columns)
        )

    def range_locked(self, work: SharedState, mode: str) -> Iterator[Lock | LockGranted]:
        """Lock the row before the range, again after each wait.

        No lock is taken if no key can precede the first one.
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
        """Return the values that determine the position of an entry."""
        return entry.values

    def begins_with_a_key(self, standing: Sequence[IndexEntry], bounds: Sequence[ex.Expr]) -> bool:
        """Return whether the index is unique and the range begins with an existing key."""
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
    """Writes of a statement to a heap and to the indexes over it."""

    who: str
    work: SharedState
    """State shared by the transactions."""
    table: str
    """Table stored as the heap."""
    own: Index | None = None
    """Index whose scan removes its entry itself, since it is positioned there."""
    covered: bool = False
    """True if the lock on the heap made row locks unnecessary when it was opened."""
    _covered: dict[tuple[str, str], bool] = field(default_factory=dict)

    @property
    def indexes(self) -> tuple[Index, ...]:
        """Indexes over the heap."""
        return self.work.store.schemas[self.table].indexes

    def open(self) -> Iterator[Lock | LockGranted]:
        """Open the heap for writing."""
        self.covered = yield from open_heap(self.work, self.who, self.table, "IX")

    def insert(self, values: Row) -> Generator[Lock | LockGranted, None, StoredRow]:
        """Insert a row into the heap, then an entry into each index."""
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
        """Remove the entries of a row, then the row."""
        for index in self.indexes:
            if index is not self.own:
                yield from self.take(index, row, old)
        yield from self.write(row, None)

    def update(self, row: StoredRow, old: Row, new: Row) -> Iterator[Lock | LockGranted]:
        """Move the entry in each index in which the key changes, then write the row."""
        for index in self.indexes:
            if key_of(index, old) != key_of(index, new):
                yield from self.take(index, row, old)
                yield from self.put(index, row, new)
        yield from self.write(row, new)

    def write(self, row: StoredRow, values: Row | None) -> Iterator[Lock | LockGranted]:
        """Write the row in the heap."""
        if not self.covered:
            yield from locked(self.work, Lock(self.who, Resource("row", self.table, row.id), "X"))
        self.work.store.write(row, values, self.who)

    def take(self, index: Index, row: StoredRow, values: Row) -> Iterator[Lock | LockGranted]:
        """Remove the entry of a row from an index, which is searched for it."""
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
        """Wait until an entry may be inserted into an index.

        Raises
        ------
        EvaluationError
            If another row has its key in a unique index.
        """
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
        """Return the entry with this key: any one in a unique index, else that of this row."""
        if index.unique and any(values[k] is None for k in index.columns):
            return None
        there = (e for e in self.work.store.standing(self.table, index) if e.position[0] == key)
        return next((e for e in there if index.unique or e.row is row), None)

    def opens(self, index: Index, what: str) -> Generator[Lock | LockGranted, None, bool]:
        """Open an index at its first use; return whether rows need no locks then."""
        if (index.name, what) not in self._covered:
            covered = yield from open_heap(self.work, self.who, self.table, "IX")
            self._covered[index.name, what] = covered
        return self._covered[index.name, what]


@dataclass(slots=True)
class RowWriter:
    """Writes of a statement to rows of a table in place."""

    who: str
    work: SharedState
    """State shared by the transactions."""
    table: str

    def get(self, place: Resource, mode: str, *, loose: bool = False) -> Iterator[Lock]:
        """Wait for a lock, in its queue or ``loose`` (outside of it), and acquire it."""
        wanted = Lock(self.who, place, mode)
        if self.work.locks.covered(wanted):
            if wanted in self.work.locks.held:  # the scan that took it releases it only once
                self.work.locks.grant(wanted)
            return
        if loose:
            self.work.locks.loose.add(wanted)
        while self.work.locks.behind(wanted):
            yield wanted
        self.work.locks.grant(wanted)

    def exclusive(self, row: StoredRow, seen: RowImage) -> Iterator[Lock]:
        """Lock a row before it is written.

        `seen` is the version that the scan saw. If versions are appended, a writer that has to
        follow from there to an uncommitted version waits for its writer, outside of the queue of
        the row.
        """
        granule = self.work.rules.writes.granule
        if granule == "table":
            yield from self.get(Resource("table", self.table), "X")
            return
        follows = row.last is not seen and row.current.committed is None
        yield from self.get(_row(row), "X", loose=self.work.locks.versions and follows)
        version = row.seen("current", 0, self.who)
        if version is None or version.values is None:  # deleted rows do not stay locked
            self.work.locks.release(Lock(self.who, _row(row), "X"))
        elif granule == "page":
            yield from self.pages(row.number, version.values)

    def pages(self, number: int, values: Row) -> Iterator[Lock]:
        """Lock the pages on which the row of this number has entries, if it has these values."""
        for index in (None, *self.indexes):
            at = key_of(index, values), number
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
        if self.work.locks.behind(somewhere):  # the table is locked
            yield somewhere
        number = None
        while number != len(store.rows[self.table]):  # other rows may be inserted during a wait
            number = len(store.rows[self.table])
            if self.work.rules.writes.granule == "page":
                yield from self.pages(number, values)
            yield from self.free(values, number, None)
        self.enters(*self.indexes)
        row = store.insert(self.table, values, self.who)
        self.work.locks.grant(Lock(self.who, _row(row), "X"))
        return row

    def delete(self, row: StoredRow, _old: Row) -> Iterator[Lock]:
        """Delete a locked row."""
        self.work.store.write(row, None, self.who)
        return iter(())

    def update(self, row: StoredRow, old: Row, new: Row) -> Iterator[Lock]:
        """Change a locked row, once its new positions are free."""
        yield from self.free(new, row.number, old)
        if self.work.rules.writes.granule == "page":
            yield from self.pages(row.number, new)
        keys = self.work.store.keys
        if keys(self.table, old) != keys(self.table, new):
            self.enters(*self.indexes)
        self.work.store.write(row, new, self.who)

    @property
    def indexes(self) -> tuple[Index, ...]:
        """Indexes of the table."""
        return self.work.store.schemas[self.table].indexes

    def enters(self, *indexes: Index) -> None:
        """Record new entries in indexes for SIREAD marks."""
        if self.work.overlaps is not None:
            for index in indexes:
                self.work.overlaps.enters(self.who, self.table, index.name)

    def free(self, values: Row, number: int, old: Row | None) -> Iterator[Lock]:
        """Wait until the gaps of new entries are unlocked, and their unique keys unused.

        After a wait everything is checked again, because another transaction may have taken the
        position.
        """
        while wanted := self.taken(values, number, old):
            while self.work.locks.behind(wanted):
                yield wanted

    def taken(self, values: Row, number: int, old: Row | None) -> Lock | None:
        """Return the lock to wait for before a row may have these positions; None if none.

        Raises
        ------
        EvaluationError
            If another row has its key in a unique index.
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
        """Return the lock of a row that has a key, or may have it again after a rollback.

        Raises
        ------
        EvaluationError
            If another row has the key permanently.
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
