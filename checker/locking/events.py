"""Events of transactions among locks, and their effects.

What a transaction did among others, besides what any does.

What a transaction has read and written, as an effect: one of a schedule, or one that is all by
itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.locking.lock_table import LockTable
from isolitmus.checker.locking.protocol_rules import rules_of
from isolitmus.checker.locking.row_versions import RowStore
from isolitmus.checker.locking.scans import MatchingRow, SharedState
from isolitmus.checker.locking.statement_execution import RunningTransaction
from isolitmus.model.delta.data_file import TableRow
from isolitmus.model.execution import Effect, RowRead, RowWrite
from isolitmus.model.sql.statement import statements_of
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.locking.scans import ScanTrace
    from isolitmus.model.execution import Database, Event
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import TransactionRun, Wait
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row, Rows

__all__ = [
    "DEADLOCK",
    "CommitWrites",
    "ScanRecord",
    "done_so_far",
    "effect_of",
    "serial_effect_of",
    "transaction_run",
]

DEADLOCK = "Deadlock"
"""What the victim of a deadlock ends with."""


@dataclass(frozen=True, slots=True)
class CommitWrites:
    """What others may know of a commit: where it is (in one of its tables), and that there is
    something.
    """

    table: str
    empty: bool = False


@dataclass(frozen=True, slots=True)
class ScanRecord(Effect):
    """What a transaction has read and written, scan by scan, and for whom it waited."""

    emitted: Rows = ()
    """The rows that its scans came to, in order."""
    waits: tuple[Wait, ...] = ()
    """When it waited, and for whom."""
    traces: tuple[ScanTrace, ...] = ()
    """Its scans, in the order in which they began."""
    store: RowStore | None = None
    """The rows with their versions, of all who were under way."""


def transaction_run(event: Event, seen: TransactionRun) -> TransactionRun:
    """What an observer sees of a transaction: there are no snapshots that have numbers."""
    done = event.effect
    assert isinstance(done, ScanRecord)
    return replace(
        seen,
        read_version=None,
        rows=done.rows,
        emitted=done.emitted,
        waits=done.waits,
        operation=None,
    )


def serial_effect_of(litmus: Litmus, name: str, database: Database, _inits: object) -> ScanRecord:
    """What a transaction does all by itself."""
    client = litmus.client(name)
    one = RunningTransaction(name, _work(database, litmus.tables), client.scan, client.each)
    return _through(one, litmus.transactions[name])


def effect_of(
    statement: Statement, database: Database, name: str, tables: Mapping[str, Schema]
) -> ScanRecord:
    """What a statement, or a sequence of them, does all by itself."""
    return _through(RunningTransaction(name, _work(database, tables), (), each=False), statement)


def _work(database: Database, tables: Mapping[str, Schema]) -> SharedState:
    return SharedState(RowStore(database, tables), LockTable(), rules_of(None))


def _through(one: RunningTransaction, statement: Statement) -> ScanRecord:
    try:
        emitted = [
            hit.values
            for part in statements_of(statement)
            for hit in one.run(part)
            if isinstance(hit, MatchingRow)
        ]
    except EvaluationError as error:
        return ScanRecord(error=error)
    return done_so_far(one, tuple(emitted), ())


def done_so_far(
    one: RunningTransaction,
    emitted: tuple[Row, ...],
    waits: tuple[Wait, ...],
    error: EvaluationError | None = None,
) -> ScanRecord:
    """What a transaction has done before it ends."""
    tables = sorted({row.table for row in one.work.store.wrote(one.name)})
    return ScanRecord(
        reads=tuple(map(_read, one.traces)),
        writes=tuple(_writes(one)),
        footprint=CommitWrites(tables[0]) if tables else None,  # type: ignore[arg-type]
        rows=None if one.rows is None else tuple(one.rows),
        error=error,
        emitted=emitted,
        waits=waits,
        traces=tuple(one.traces),
        store=one.work.store,
    )


def _read(trace: ScanTrace) -> RowRead:
    """A scan as a read by predicate: of rows that it emitted, the versions that it read."""
    matched = (TableRow(v.row.id, v.version.writer, v.version.values or ()) for v in trace.visits)
    return RowRead(trace.table, trace.words, trace.asks, tuple(matched))


def _writes(one: RunningTransaction) -> Iterator[RowWrite]:
    """What it leaves of each row that it wrote."""
    for row in one.work.store.wrote(one.name):
        mine = [v for v in row.versions if v.writer == one.name and v.undone is None]
        first = row.versions.index(mine[0])
        before = next(
            (v.values for v in reversed(row.versions[:first]) if v.committed is not None), None
        )
        if before != mine[-1].values or before is not None:
            yield RowWrite(row.table, row.id, before, mine[-1].values)
