"""Execution of statements as scan plans: generators that proceed row by row.

A plan yields a ``Lock`` when it has to wait for one. It yields a ``MatchingRow`` for each row that
a scan reaches and that satisfies the conditions without subqueries. It yields a ``PassedEntry`` for
other entries and at the end of a scan. A schedule may stop the plan at these.

Uncorrelated subqueries are evaluated once, before the query begins, unless the transaction says
``each``; correlated ones are evaluated for every row. A statement skips rows that it has written
itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.databases.locking.heaps import HeapScan, IndexUpkeep, RowWriter, open_heap
from isolitmus.databases.locking.lock_table import Lock, Resource
from isolitmus.databases.locking.query_plans import (
    Lookup,
    OrderedQuery,
    ScanLocks,
    lookups,
    outer,
    scan_hints,
    scan_locks,
)
from isolitmus.databases.locking.scans import OVER, MatchingRow, PassedEntry, ScanPlan, ScanTrace
from isolitmus.databases.locking.serializable_snapshots import WRITE_CONFLICT
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.types import ARITHMETIC_ERROR, EvaluationError
from isolitmus.model.sql.values import store_value

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from isolitmus.databases.locking.query_plans import SortOrder
    from isolitmus.databases.locking.row_versions import RowImage, StoredRow
    from isolitmus.databases.locking.scans import Going, LockGranted, SharedState
    from isolitmus.model.sql.schema import Index
    from isolitmus.model.sql.values import Row, Value

    Keeper = IndexUpkeep | RowWriter

TOO_LARGE = "OutOfRange"
"""Error of a number that is out of range for its type, or for the column that stores it."""
BY_ZERO = "DivisionByZero"


@dataclass(slots=True)
class RunningTransaction:
    """Active transaction: its reads, results and writes so far."""

    name: str
    """Name in the litmus test."""
    work: SharedState
    """State shared with the other transactions."""
    scan: str | tuple[str, ...]
    """Indexes that its scans use (``model.litmus``)."""
    each: bool
    """True if it evaluates each subquery for each row."""
    began: int | None = None
    """Start time of its first statement; None if none has started."""
    rows: list[Row] | None = None
    """Rows that its queries returned; None if it has run no query."""
    traces: list[ScanTrace] = field(default_factory=list)
    """Scans in the order in which they began."""
    number: int = 0
    """Number of the current statement, from 1."""
    scans: int = 0
    """Number of scans in the previous statements."""
    _at: int = 0
    _written: set[str] = field(default_factory=set)
    _kept: list[Lock] = field(default_factory=list)
    _paths: list[Index | None] = field(default_factory=list)
    _known: dict[Lookup, ex.Expr] = field(default_factory=dict)
    _covered: dict[int, bool] = field(default_factory=dict)
    _hints: tuple[frozenset[str], ...] = ()

    def run(self, one: st.Statement) -> Going:
        """Execute a statement; raise EvaluationError if it fails."""
        try:
            yield from self.carry(one)
        except EvaluationError as error:
            if error.exception != ARITHMETIC_ERROR:
                raise
            by_zero = error.error_class in ("DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO")
            raise EvaluationError(BY_ZERO if by_zero else TOO_LARGE, str(error)) from error

    def carry(self, one: st.Statement) -> Going:
        """Execute one statement, then release the locks that it held for its duration."""
        self.number += 1
        self._at = self.work.store.now
        if self.began is None:
            self.began = self._at
            if self.work.overlaps is not None:
                self.work.overlaps.begin(self.name)
        self._written, self._kept, self._known = set(), [], {}
        self._hints = scan_hints(one.sql)
        self._covered = {}
        tables = [*outer(one), *(lookup.table for lookup in lookups(one))]
        self._paths = [self.path(table, self.scans + k) for k, table in enumerate(tables)]
        match one:
            case st.Read(query=(branch,)):
                yield from self.read(branch)
            case st.Insert(target=target, query=(branch,)):
                yield from self.insert(target, branch)
            case st.Update(target=target, sets=sets, where=where):
                yield from self.change(target, sets, where)
            case st.Delete(target=target, where=where):
                yield from self.change(target, None, where)
        self.scans += len(tables)
        for lock in self._kept:
            self.work.locks.release(lock)

    def path(self, table: str, k: int) -> Index | None:
        """Return the index that the k-th scan of the transaction uses; None for the heap."""
        indexes = self.work.store.schemas[table].indexes
        name = self.scan if isinstance(self.scan, str) else "".join(self.scan[k : k + 1])
        return next((index for index in indexes if index.name == name), None)

    @property
    def moments(self) -> tuple[int, ...]:
        """Times of its possible snapshots: starts of the transaction and of the statement."""
        return () if self.began is None else (self.began, self._at)

    # Scans

    def access(
        self, k: int, table: str, where: Sequence[ex.Expr], around: tuple[Row, ...], *, writes: bool
    ) -> ScanPlan:
        """Return the plan of the k-th scan of the statement, from 0.

        With ``writes`` it searches for the rows that UPDATE or DELETE changes.
        """
        rules = self.work.rules
        sight = rules.searched if writes else rules.see
        moments = {"statement": self._at, "transaction": self.began or 0, "first": 0}
        held = rules.of_scan(indexed=self._paths[k] is not None, writes=writes)
        usual = ScanLocks(sight, held if sight == "current" else None, rules.ranges is not None)
        hints = self._hints[k] if self._hints else frozenset()
        sight, held, ranges, skips = scan_locks(usual, hints, rules, writes=writes)
        plan = ScanPlan(
            self.name, table, self._paths[k], tuple(where), around, sight,
            moments.get(sight, self.work.store.now), held, self.number, self._written, self._kept,
            ranges, skips,
        )  # fmt: skip
        return HeapScan.of(plan, k, self.work, writes=writes) if rules.keep == "heaps" else plan

    def found(self, access: ScanPlan) -> Going:
        if isinstance(access, HeapScan):
            yield from self.opens(access)
        yield from access.scan(self.work, self.traces)

    def opens(self, access: HeapScan) -> Iterator[Lock | LockGranted]:
        """Open a heap for a scan, unless the statement has opened it for this scan before."""
        if access.k not in self._covered:
            covered = yield from open_heap(self.work, self.name, access.table, access.mode)
            self._covered[access.k] = covered
            reads = self.work.rules.reads
            if access.mode == "IS" and (reads is None or reads.until != "commit"):
                self._kept.append(Lock(self.name, Resource("heap", access.table), "IS"))
        access.covered = self._covered[access.k]

    # Subqueries

    def once(
        self, parts: Sequence[ex.Expr], ks: Mapping[Lookup, int]
    ) -> Generator[Lock | LockGranted | MatchingRow | PassedEntry, None, tuple[ex.Expr, ...]]:
        """Replace the subqueries that are evaluated once, before the query, by their values.

        With SIREAD marks none is replaced, because the subqueries are then evaluated when a row
        needs them.
        """
        if self.work.overlaps is not None:
            return tuple(parts)
        known: dict[Lookup, ex.Expr] = {}
        inside = ex.subqueries(*parts)
        for lookup, k in ks.items():
            if lookup in inside and not self.each and not lookup.correlated:
                known[lookup] = yield from self.value(lookup, ((),) * lookup.side, k)
        return tuple(_with(part, known) for part in parts)

    def settled(
        self, one: ex.Expr, rows: tuple[Row, ...], ks: Mapping[Lookup, int]
    ) -> Generator[Lock | LockGranted | MatchingRow | PassedEntry, None, ex.Expr]:
        """Return an expression with the values of all its subqueries at a row."""
        known: dict[Lookup, ex.Expr] = {}
        for lookup in ex.subqueries(one):
            assert isinstance(lookup, Lookup)
            known[lookup] = (
                self._known[lookup]
                if lookup in self._known
                else (yield from self.value(lookup, rows, ks[lookup]))
            )
            if not self.each and not lookup.correlated:
                self._known[lookup] = known[lookup]
        return _with(one, known)

    def value(
        self, lookup: Lookup, around: tuple[Row, ...], k: int
    ) -> Generator[Lock | LockGranted | MatchingRow | PassedEntry, None, ex.Expr]:
        """Return the value of a subquery for given rows of the outer queries."""
        access = self.access(k, lookup.table, ex.conjuncts(lookup.where), around, writes=False)
        limit = 1 if lookup.kind == "exists" else lookup.limit
        rows: list[Row] = []
        yield from self.collect(access, rows, lookup.order, limit)
        if lookup.kind == "exists":
            return ex.Const(bool(rows), "BOOLEAN")
        if lookup.grouped:
            group = [(*around, row) for row in rows]
            return ex.Const(evaluate(lookup.item, (*around, ()), group), lookup.item.type)
        values = tuple(evaluate(lookup.item, (*around, row)) for row in rows)
        if lookup.kind == "in":
            assert lookup.operand is not None
            return ex.In(lookup.operand, values)
        return ex.Const(values[0] if values else None, lookup.item.type)

    def collect(
        self, access: ScanPlan, rows: list[Row], order: SortOrder, limit: int | None
    ) -> Going:
        """Collect the rows of a scan, in an order, up to a limit.

        Over heaps they are always sorted, even if the index has the order.
        """
        heaps = isinstance(access, HeapScan)
        streams = not order or (_goes(access.index, order) and not heaps)
        going = self.found(access)
        for hit in going if limit != 0 else ():
            yield hit
            if isinstance(hit, MatchingRow):
                rows.append(hit.values)
                if streams and limit is not None and len(rows) >= limit:
                    break
        _end(going)
        yield OVER
        if not streams:
            for k, down in reversed(order):
                rows.sort(key=lambda row: (row[k] is not None, row[k] or 0), reverse=down)
        del rows[len(rows) if limit is None else limit :]

    # Statements

    def rows_of(self, branch: qu.Branch, rows: list[Row]) -> Going:
        """Append the rows of a query to a list as they are found."""
        found = tuple(ex.subqueries(*_expressions(branch)))
        first = isinstance(branch, qu.Select)
        ks = {lookup: k for k, lookup in enumerate(_lookups(found), 1 if first else 0)}
        if isinstance(branch, qu.Values):
            for row in branch.rows:
                if branch.where is None or (yield from self.holds(branch.where, (), ks)):
                    rows += [(yield from self.items(row, (), ks))]
            return
        assert isinstance(branch, qu.Select), "joins are refused where engines scan"
        where = yield from self.once(ex.conjuncts(branch.where), ks)
        items = yield from self.once(branch.items, ks)
        pushed = [part for part in where if not ex.subqueries(part)]
        rest = [part for part in where if ex.subqueries(part)]
        order, limit = (
            (branch.order, branch.limit) if isinstance(branch, OrderedQuery) else ((), None)
        )
        access = self.access(0, branch.table, pushed, (), writes=False)
        streams = not order or _goes(access.index, order)
        kept: list[Row] = []
        going = self.found(access)
        for hit in going if limit != 0 else ():
            yield hit
            if not isinstance(hit, MatchingRow) or not (
                yield from self.all(rest, (hit.values,), ks)
            ):
                continue
            kept.append(hit.values)
            if streams and not branch.grouped:
                rows.append((yield from self.items(items, (hit.values,), ks)))
                if limit is not None and len(kept) >= limit:
                    break
        _end(going)
        yield OVER
        if branch.grouped:
            group = [(row,) for row in kept]
            values: list[Value] = []
            for item in items:
                settled = yield from self.settled(item, ((),), ks)
                values.append(evaluate(settled, ((),), group))
            rows.append(tuple(values))
        elif not streams:
            for k, down in reversed(order):
                kept.sort(key=lambda row: (row[k] is not None, row[k] or 0), reverse=down)
            for one in kept[:limit]:
                rows += [(yield from self.items(items, (one,), ks))]

    def items(
        self, items: Sequence[ex.Expr], rows: tuple[Row, ...], ks: Mapping[Lookup, int]
    ) -> Generator[Lock | LockGranted | MatchingRow | PassedEntry, None, Row]:
        """Return the values of expressions at a row."""
        values: list[Value] = []
        for item in items:
            settled = yield from self.settled(item, rows, ks)
            values.append(evaluate(settled, rows))
        return tuple(values)

    def holds(
        self, part: ex.Expr, rows: tuple[Row, ...], ks: Mapping[Lookup, int]
    ) -> Generator[Lock | LockGranted | MatchingRow | PassedEntry, None, bool]:
        """Return whether a condition is TRUE at a row."""
        settled = yield from self.settled(part, rows, ks)
        return evaluate(settled, rows) is True

    def all(
        self, parts: Sequence[ex.Expr], rows: tuple[Row, ...], ks: Mapping[Lookup, int]
    ) -> Generator[Lock | LockGranted | MatchingRow | PassedEntry, None, bool]:
        """Return whether all conditions are TRUE at a row, stopping at the first that is not."""
        for part in parts:
            if not (yield from self.holds(part, rows, ks)):
                return False
        return True

    def read(self, branch: qu.Branch) -> Going:
        """Execute a query and add its rows to the client's result."""
        self.rows = [] if self.rows is None else self.rows
        yield from self.rows_of(branch, self.rows)

    def insert(self, table: str, branch: qu.Branch) -> Going:
        """Insert each row of the query as soon as it is found.

        A heap is opened at the first row, or at the end if there is none. If the query also scans
        that heap, all rows are inserted at the end.
        """
        rows: list[Row] = []
        put = 0
        keeper = self.keeper(table)
        heap = keeper if isinstance(keeper, IndexUpkeep) else None
        later = heap is not None and any(one.table == table for one in _scanned(branch))
        for event in self.rows_of(branch, rows):
            while put < len(rows) and not later:
                if put == 0 and heap is not None:
                    yield from heap.open()
                put += 1
                yield from self.put(rows[put - 1], keeper)
            yield event
        if put == 0 and heap is not None:
            yield from heap.open()
        for row in rows[put:]:
            yield from self.put(row, keeper)

    def change(
        self, table: str, sets: Sequence[tuple[int, ex.Expr]] | None, where: ex.Expr | None
    ) -> Going:
        """Update or delete each row as soon as it is found.

        Rows are written at the end if subqueries of each row scan the same table, since a statement
        does not see its own writes; over a heap also if the statement uses an index whose entries
        move.
        """
        keeper = self.keeper(table)
        heap = keeper if isinstance(keeper, IndexUpkeep) else None
        found = ex.subqueries(*(value for _, value in sets or ()), where)
        ks = {lookup: k for k, lookup in enumerate(_lookups(found), 1)}
        values = yield from self.once([value for _, value in sets or ()], ks)
        parts = yield from self.once(ex.conjuncts(where), ks)
        if heap is not None and sets is not None:
            yield from heap.open()
        rest = [part for part in parts if ex.subqueries(part)]
        pushed = [part for part in parts if not ex.subqueries(part)]
        asks = any(one.table == table for one in _lookups(ex.subqueries(*values, *rest)))
        later: list[tuple[StoredRow, Row, Row | None]] = []
        access = self.access(0, table, pushed, (), writes=True)
        if heap is not None and isinstance(access, HeapScan):
            asks |= access.index is not None and any(
                column in access.index.columns for column, _ in sets or ()
            )
            yield from self.begins(access, heap, updates=sets is not None, later=asks)
        for hit in self.found(access):
            yield hit
            if not isinstance(hit, MatchingRow) or not (
                yield from self.all(rest, (hit.values,), ks)
            ):
                continue
            if self.work.overlaps is not None:
                self.work.overlaps.numbered(self.name)
            # a row with a newer committed version is refused without waiting for its writer
            self.refuse_changed(hit, hit.row.last)
            if isinstance(keeper, RowWriter):
                yield from keeper.exclusive(hit.row, hit.version)
            version = self.present(hit.row)
            self.refuse_changed(hit, version)
            # another transaction changed the row during the wait: recheck the whole condition
            if version is not hit.version:
                if not hit.trace.look_again(hit.row, version, self.work.store.now):
                    continue
                assert version is not None
                assert version.values is not None
                if not (yield from self.all(rest, (version.values,), ks)):
                    continue
            assert version is not None
            assert version.values is not None
            old, new = version.values, None
            if sets is not None:
                given = yield from self.items(values, (old,), ks)
                by_column = dict(zip((column for column, _ in sets), given, strict=True))
                new = tuple(by_column.get(k, value) for k, value in enumerate(old))
                new = self.kept(table, new)
            if asks:
                later.append((hit.row, old, new))
            else:
                yield from self.replaced(hit.row, old, new, keeper)
        yield OVER
        for row, old, new in later:
            yield from self.replaced(row, old, new, keeper)

    def begins(
        self, access: HeapScan, heap: IndexUpkeep, *, updates: bool, later: bool
    ) -> Iterator[Lock | LockGranted]:
        """Open a heap for the scan of an UPDATE or a DELETE.

        An UPDATE has already opened it for writing; a DELETE does so now. With ``later``, rows are
        written after the scan.
        """
        heap.own = None if later else access.index
        access.fetches = updates and access.index is not None
        yield from self.opens(access)
        if not updates:
            yield from heap.open()

    def refuse_changed(self, hit: MatchingRow, now: RowImage | None) -> None:
        """Raise if a row has a version other than the one seen, and ``changed`` is "refuse"."""
        other = now is not hit.version and hit.version.writer != self.name
        if other and self.work.rules.changed == "refuse":
            raise EvaluationError(
                WRITE_CONFLICT, f"a row of {hit.row.table} was changed since the snapshot"
            )

    def replaced(
        self, row: StoredRow, old: Row, new: Row | None, keeper: Keeper
    ) -> Iterator[Lock | LockGranted]:
        """Write a locked row."""
        overlaps, version = self.work.overlaps, self.present(row)
        if overlaps is not None and version is not None:
            overlaps.changes(self.name, row, version)
        yield from keeper.delete(row, old) if new is None else keeper.update(row, old, new)
        self._written.add(row.id)

    # Writes

    def present(self, row: StoredRow) -> RowImage | None:
        """Return the current version of a locked row, which no other transaction writes."""
        return row.seen("current", 0, self.name)

    def keeper(self, table: str) -> Keeper:
        """Return the writer of a table's rows."""
        heaps = self.work.rules.keep == "heaps"
        return (IndexUpkeep if heaps else RowWriter)(self.name, self.work, table)

    def kept(self, table: str, values: Row) -> Row:
        """Return values as the columns of a table store them; raise if a number is out of range."""
        columns = self.work.store.schemas[table].columns
        return tuple(
            None if value is None else store_value(value, column.type, TOO_LARGE)
            for column, value in zip(columns, values, strict=True)
        )

    def put(self, values: Row, keeper: Keeper) -> Iterator[Lock | LockGranted]:
        """Insert a row."""
        row = yield from keeper.insert(self.kept(keeper.table, values))
        self._written.add(row.id)


def _end(going: object) -> None:
    """Close a scan before its end."""
    close = getattr(going, "close", None)
    if close is not None:
        close()


def _with(one: ex.Expr, known: Mapping[Lookup, ex.Expr]) -> ex.Expr:
    """Return an expression with known values in place of its lookups."""

    def value(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        return known.get(part, part) if isinstance(part, Lookup) else part

    return ex.map_columns(one, value) if known else one


def _goes(index: Index | None, order: SortOrder) -> bool:
    """Return whether an index has this sort order."""
    if index is None:
        return False
    return tuple(zip(index.columns, index.descending, strict=True))[: len(order)] == order


def _expressions(branch: qu.Branch) -> Iterator[ex.Expr]:
    """Yield the expressions of a branch of a query."""
    rows = branch.rows if isinstance(branch, qu.Values) else (branch.items,)
    yield from (item for row in rows for item in row)
    if branch.where is not None:
        yield branch.where


def _scanned(branch: qu.Branch) -> Iterator[qu.Select | Lookup]:
    """Yield the scans of a query: itself and its subqueries."""
    yield from [branch] if isinstance(branch, qu.Select) else ()
    yield from _lookups(ex.subqueries(*_expressions(branch)))


def _lookups(found: Sequence[ex.Subquery]) -> list[Lookup]:
    return [part for part in found if isinstance(part, Lookup)]
