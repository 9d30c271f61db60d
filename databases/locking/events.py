"""Events and effects of transactions under locking.

An effect states what a transaction has read and written, in a schedule or when it runs alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.databases.locking.lock_table import LockTable
from isolitmus.databases.locking.protocol_rules import rules_of
from isolitmus.databases.locking.row_versions import RowStore
from isolitmus.databases.locking.scans import MatchingRow, SharedState
from isolitmus.databases.locking.statement_execution import RunningTransaction
from isolitmus.model.execution import Effect, RowRead, RowWrite
from isolitmus.model.sql.data_file import TableRow
from isolitmus.model.sql.statement import statements_of
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.databases.locking.scans import ScanTrace
    from isolitmus.model.execution import Database, Event
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import TransactionRun, Wait
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row, Rows

DEADLOCK = "Deadlock"
"""Error with which the victim of a deadlock aborts."""


@dataclass(frozen=True, slots=True)
class CommitWrites:
    """Public record of a commit: one of the tables that it wrote, and whether it is empty."""

    table: str
    empty: bool = False


@dataclass(frozen=True, slots=True)
class ScanRecord(Effect):
    """Reads and writes of a transaction, scan by scan, and its waits."""

    emitted: Rows = ()
    """Matching rows that its scans reached, in order."""
    waits: tuple[Wait, ...] = ()
    """Waits of the transaction: the step, and the transactions waited for."""
    traces: tuple[ScanTrace, ...] = ()
    """Scans in the order in which they began."""
    store: RowStore | None = None
    """Row versions of all transactions of the run."""


def transaction_run(event: Event, seen: TransactionRun) -> TransactionRun:
    """Return an observer's view of a transaction; there are no snapshot numbers under locking."""
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
    """Return the effect of a transaction of a litmus test that runs alone."""
    client = litmus.client(name)
    one = RunningTransaction(name, _work(database, litmus.tables), client.scan, client.each)
    return _through(one, litmus.transactions[name])


def effect_of(
    statement: Statement, database: Database, name: str, tables: Mapping[str, Schema]
) -> ScanRecord:
    """Return the effect of a statement, or of a sequence of statements, that runs alone."""
    return _through(RunningTransaction(name, _work(database, tables), (), each=False), statement)


def _work(database: Database, tables: Mapping[str, Schema]) -> SharedState:
    return SharedState(RowStore(database, tables), LockTable(), rules_of(None))


def _through(one: RunningTransaction, statement: Statement) -> ScanRecord:
    """Run a statement to its end, and return its reads, results and writes, or its error."""
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
    """Return the reads and writes of a transaction before its end.

    Parameters
    ----------
    one : RunningTransaction
        The transaction.
    emitted : tuple of Row
        Matching rows that its scans reached.
    waits : tuple of Wait
        Its waits so far.
    error : EvaluationError, optional
        Error that ends it.
    """
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
    """Return a scan as a predicate read: the versions read of the rows that it visited."""
    matched = (TableRow(v.row.id, v.version.writer, v.version.values or ()) for v in trace.visits)
    return RowRead(trace.table, trace.words, trace.asks, tuple(matched))


def _writes(one: RunningTransaction) -> Iterator[RowWrite]:
    """Yield the net write to each row that the transaction wrote."""
    for row in one.work.store.wrote(one.name):
        mine = [v for v in row.versions if v.writer == one.name and v.undone is None]
        first = row.versions.index(mine[0])
        before = next(
            (v.values for v in reversed(row.versions[:first]) if v.committed is not None), None
        )
        if before != mine[-1].values or before is not None:
            yield RowWrite(row.table, row.id, before, mine[-1].values)
