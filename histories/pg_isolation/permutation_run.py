"""Execution of a permutation on row versions, compared with the output that PostgreSQL printed.

A transaction at REPEATABLE READ or SERIALIZABLE takes its snapshot at its first statement that
reads or writes rows, and a single statement is a transaction of its own (PostgreSQL, Concurrency
Control, 13.2). DuckDB evaluates which rows a statement finds in the snapshot. The rows that a query
printed must equal those that it returns; otherwise the permutation is rejected. A refused
transaction stays aborted. To test whether it had to be refused, it may be ``supposed`` to have gone
on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from sqlglot import expressions as exp

from isolitmus.histories.pg_isolation.pg_sql import Idle, OfRows, PgBegin, PgEnd, pg_statements
from isolitmus.histories.pg_isolation.row_versions import RowScan, RowVersions, SnapshotView
from isolitmus.model.errors import RecordingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Literal

    from isolitmus.histories.pg_isolation.pg_sql import PgStatement
    from isolitmus.histories.readers.pg_isolation import (
        Happening,
        IsolationSpec,
        Permutation,
        Printed,
        SqlBlock,
    )

REFUSAL = "could not serialize access"
SUPPOSED = f"{REFUSAL} due to read/write dependencies among transactions"
"""Error of a transaction that can be refused only at SERIALIZABLE."""
AFTER = ("current transaction is aborted", "prepared transaction with identifier")
"""Beginnings of the errors of statements after a refusal."""
SNAPSHOTS = ("REPEATABLE READ", "SERIALIZABLE")


@dataclass(frozen=True, slots=True)
class RowAccess:
    """Access in a ``step``: a read (``scan``), or a write of a ``row`` of a ``table``."""

    step: str
    scan: RowScan | None = None
    table: str = ""
    row: int = 0


@dataclass(slots=True)
class PgTransaction:
    """Transaction in execution."""

    number: int
    """Number in the order of beginning, from 1."""
    session: int
    """Index of its session."""
    level: str
    """Isolation level in capitals."""
    alone: bool = False
    """True if it is a statement outside of a transaction block."""
    deferrable: bool = False
    """True if it waits for a safe snapshot."""
    waited: int | None = None
    """Number of commits when it began to wait for its snapshot; None if it does not wait."""
    seen: SnapshotView | None = None
    """Snapshot; None before it is taken."""
    status: Literal["open", "committed", "aborted"] = "open"
    refusal: str = ""
    """Error by which PostgreSQL refused it; empty if it did not."""
    done: list[RowAccess] = field(default_factory=list)
    """Reads and writes in order."""
    answers: list[tuple[OfRows, list[tuple[str, ...]]]] = field(default_factory=list)
    """Statements, each with the sorted rows of a query as PostgreSQL prints them."""


@dataclass(frozen=True, slots=True)
class PermutationRun:
    """Result of the execution of a permutation."""

    transactions: tuple[PgTransaction, ...]
    """Transactions in the order of beginning."""
    moments: tuple[tuple[int, Literal["start", "end"]], ...]
    """Starts and ends in order of time, by transaction number."""
    committed: tuple[int, ...]
    """Transaction numbers in commit order."""
    writes: tuple[tuple[int, str, int], ...]
    """Writes in order: transaction number, table and row."""
    holds: Mapping[RowScan, Mapping[tuple[int, int], bool]]
    """For each read, whether it finds a version, by row and writer of the version."""
    tables: Mapping[str, tuple[int, int]]
    """Digest of each table at the end."""


class SpecTables:
    """Tables of a spec, filled once, on which its permutations are executed."""

    def __init__(self, spec: IsolationSpec) -> None:
        self.spec = spec
        self.versions = RowVersions()
        self._read: dict[SqlBlock, tuple[PgStatement, ...]] = {}
        for block in spec.setup:
            found = []
            for statement in self.statements(block):
                if isinstance(statement, PgBegin | PgEnd):
                    raise RecordingError(
                        f"{spec.file}:{block.line}: a transaction in the setup, which is not read"
                    )
                if not isinstance(statement, Idle):
                    found.append(statement)
            self.versions.prepare(found)

    def statements(self, block: SqlBlock) -> tuple[PgStatement, ...]:
        """Return the statements of a block; unsupported ones raise at every call."""
        if block not in self._read:
            self._read[block] = pg_statements(block, self.spec.file)
        return self._read[block]

    def carried(self, permutation: Permutation, *, supposed: bool = False) -> PermutationRun:
        """Return the execution of a permutation.

        Raises
        ------
        RecordingError
            If it cannot be determined, with the reason.
        """
        if permutation.problem:
            raise RecordingError(permutation.problem)
        with self.versions.permutation():
            return _Carrier(self, supposed=supposed).carry(permutation)


class _Carrier:
    """Execution of a permutation: its transactions and their progress."""

    def __init__(self, tables: SpecTables, *, supposed: bool) -> None:
        self.tables, self.spec, self.versions = tables, tables.spec, tables.versions
        self.supposes = supposed
        self.open: dict[int, PgTransaction] = {}
        self.prepared: dict[str, PgTransaction] = {}
        self.every: list[PgTransaction] = []
        self.committed: list[int] = []
        self.supposed: set[int] = set()
        self.moments: list[tuple[int, Literal["start", "end"]]] = []

    def carry(self, permutation: Permutation) -> PermutationRun:
        """Return the run of a permutation; raise RecordingError if a step has no recorded end."""
        printed = list(permutation.printed)
        for number, session in enumerate(self.spec.sessions):
            if session.setup is not None:
                statements = self.tables.statements(session.setup)
                last = statements[-1] if statements else None
                asks = isinstance(last, OfRows) and isinstance(last.tree, exp.Select)
                shown = printed[:1] if asks else []
                del printed[: len(shown)]
                self._do(number, f"{session.name}_setup", statements, tuple(shown), whole=False)
        waiting: set[str] = set()
        for happening in permutation.happenings:
            if happening.sent:
                self._send(happening)
                if not happening.ended:
                    waiting.add(happening.step)
                    continue
            elif happening.step not in waiting:
                raise RecordingError(f"{self.spec.file}: the step {happening.step} ended unsent")
            waiting.discard(happening.step)
            self._end(happening)
        sent = Counter(each.step for each in permutation.happenings if each.sent)
        if waiting or sent != Counter(permutation.steps):
            steps = Counter(permutation.steps)
            left = sorted({*waiting, *(steps - sent), *(sent - steps)})
            raise RecordingError(f"{self.spec.file}: nothing says how the step {left[0]} ended")
        for transaction in self.every:
            if transaction.number in self.supposed and transaction.status == "open":
                self._commit(transaction)
        written: dict[str, set[int]] = {}
        for table, row, _ in self.versions.changed:
            written.setdefault(table, set()).add(row)
        scans = {each.scan for t in self.every for each in t.done if each.scan is not None}
        everyone = SnapshotView(0, frozenset(self.committed))
        return PermutationRun(
            tuple(self.every),
            tuple(self.moments),
            tuple(self.committed),
            tuple((by, table, row) for table, row, by in self.versions.changed),
            {scan: self.versions.matches(scan, written.get(scan.table, ())) for scan in scans},
            {name: self.versions.digest(name, everyone) for name in self.versions.tables},
        )

    def _send(self, happening: Happening) -> None:
        """Start a step; a statement that waits has taken its snapshot before."""
        step = self.spec.steps[happening.step]
        statements = self.tables.statements(step.sql)
        if happening.ended:
            return
        transaction = self.open.get(step.session)
        if len(statements) != 1 or not isinstance(statements[0], OfRows) or transaction is None:
            raise RecordingError(
                f"{self.spec.file}:{step.sql.line}: the step {step.name} waits, which is read of a"
                " single statement in a transaction"
            )
        if transaction.deferrable and transaction.seen is None:
            transaction.waited = len(self.committed)
        else:
            self._snapshot(transaction)

    def _end(self, happening: Happening) -> None:
        """Execute the statements of a step that ended, or abort its transaction if it failed."""
        step = self.spec.steps[happening.step]
        statements = self.tables.statements(step.sql)
        transaction = self.open.get(step.session)
        error = happening.error
        if error and self.supposes and (error == SUPPOSED or error.startswith(AFTER)):
            error = ""
            if transaction is not None and happening.error == SUPPOSED:
                transaction.refusal = happening.error
                self.supposed.add(transaction.number)
        if not error:
            whole = not happening.error
            self._do(step.session, step.name, statements, happening.printed, whole=whole)
        elif len(statements) > 1:
            raise RecordingError(
                f"{self.spec.file}:{step.sql.line}: which statement of the step {step.name} failed"
                " is not said"
            )
        elif transaction is not None and transaction.status == "open":
            transaction.refusal = error
            self._abort(transaction)
        ends = [each for each in statements if isinstance(each, PgEnd)]
        if transaction is not None and error and ends:
            self.open.pop(step.session, None)

    def _do(
        self,
        session: int,
        step: str,
        statements: Sequence[PgStatement],
        printed: tuple[Printed, ...],
        *,
        whole: bool,
    ) -> None:
        """Execute statements; ``whole`` says that all results of their queries were printed."""
        shown = list(printed)
        for statement in statements:
            match statement:
                case PgBegin(level, deferrable):
                    if session in self.open:
                        raise RecordingError(
                            f"{self.spec.file}: {step} begins inside a transaction"
                        )
                    self.open[session] = self._begin(session, level, deferrable=deferrable)
                case PgEnd():
                    self._finish(session, statement)
                case OfRows():
                    asks = isinstance(statement.tree, exp.Select)
                    found = shown.pop(0) if asks and shown else None
                    if asks and found is None and whole:
                        raise RecordingError(
                            f"{statement.place}: nothing says what this query gave"
                        )
                    self._rows(session, step, statement, found)
                case Idle():
                    pass
                case _:
                    raise RecordingError(f"{self.spec.file}: {step} makes or drops a table")
        if shown:
            raise RecordingError(f"{self.spec.file}: {step} printed rows that no query gave")
        transaction = self.open.get(session)
        if transaction is not None and transaction.alone:
            self._commit(self.open.pop(session))

    def _begin(
        self, session: int, level: str, *, deferrable: bool = False, alone: bool = False
    ) -> PgTransaction:
        """Return a new transaction of a session, and record its start."""
        number = len(self.every) + 1
        self.every.append(PgTransaction(number, session, level, alone, deferrable))
        self.moments.append((number, "start"))
        return self.every[-1]

    def _rows(self, session: int, step: str, statement: OfRows, printed: Printed | None) -> None:
        """Execute a statement on a snapshot; raise RecordingError if printed rows differ."""
        transaction = self.open.get(session)
        if transaction is None:
            transaction = self.open[session] = self._begin(session, "READ COMMITTED", alone=True)
        if transaction.status == "aborted":
            return
        if transaction.level not in SNAPSHOTS and not (transaction.alone and not transaction.seen):
            raise RecordingError(
                f"{statement.place}: '{statement.text}' is at {transaction.level}, where each"
                " statement has a snapshot of its own; REPEATABLE READ and SERIALIZABLE are read"
            )
        seen = self._snapshot(transaction)
        transaction.done += [
            RowAccess(step, scan) for scan in self.versions.scanned(statement, seen)
        ]
        if isinstance(statement.tree, exp.Select):
            rows = printed_rows(self.versions.query(statement, seen))
            transaction.answers.append((statement, rows))
            self._refuse_several(transaction, statement, rows)
            known = printed is not None and not self.supposed & {seen.number, *seen.committed}
            if known and printed is not None and sorted(printed.rows) != rows:
                raise RecordingError(
                    f"{statement.place}: '{statement.text}' printed {sorted(printed.rows)}, and its"
                    f" snapshot gives {rows}"
                )
            return
        transaction.answers.append((statement, []))
        before = len(self.versions.changed)
        self.versions.change(statement, seen)
        transaction.done += [
            RowAccess(step, None, table, row) for table, row, _ in self.versions.changed[before:]
        ]

    def _refuse_several(
        self, transaction: PgTransaction, statement: OfRows, rows: list[tuple[str, ...]]
    ) -> None:
        """Raise if a waiting transaction may have taken another snapshot with the same result."""
        first, transaction.waited = transaction.waited, None
        for count in range(len(self.committed) if first is None else first, len(self.committed)):
            earlier = SnapshotView(transaction.number, frozenset(self.committed[:count]))
            found = self.versions.query(statement, earlier)
            if printed_rows(found) == rows:
                raise RecordingError(
                    f"{statement.place}: '{statement.text}' waited for a snapshot, and nothing says"
                    " which it took"
                )

    def _snapshot(self, transaction: PgTransaction) -> SnapshotView:
        if transaction.seen is None:
            transaction.seen = SnapshotView(transaction.number, frozenset(self.committed))
        return transaction.seen

    def _finish(self, session: int, statement: PgEnd) -> None:
        """Execute COMMIT, ROLLBACK or PREPARE TRANSACTION, or end a prepared transaction."""
        if statement.prepared and statement.verb != "PREPARE":
            transaction = self.prepared.pop(statement.prepared, None)
            if transaction is None:
                raise RecordingError(
                    f"{self.spec.file}: no transaction is prepared as '{statement.prepared}'"
                )
            verb = statement.verb
        else:
            transaction, verb = self.open.pop(session, None), statement.verb
        if transaction is None or transaction.status == "aborted":
            return
        match verb:
            case "PREPARE":
                self.prepared[statement.prepared] = transaction
            case "COMMIT":
                self._commit(transaction)
            case _:
                self._abort(transaction)

    def _commit(self, transaction: PgTransaction) -> None:
        transaction.status = "committed"
        self.committed.append(transaction.number)
        self.moments.append((transaction.number, "end"))

    def _abort(self, transaction: PgTransaction) -> None:
        transaction.status = "aborted"
        self.versions.abort(transaction.number)
        self.moments.append((transaction.number, "end"))


def printed_rows(rows: Iterable[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Return rows as PostgreSQL prints them in its own tests, sorted.

    Examples
    --------
    >>> printed_rows([(True, None), (False, date(2008, 12, 22))])
    [('f', '12-22-2008'), ('t', '')]
    """
    return sorted(tuple(map(_cell, row)) for row in rows)


def _cell(value: object) -> str:
    """Return a value as isolationtester prints it; NULL is empty, and dates are MM-DD-YYYY."""
    match value:
        case None:
            return ""
        case bool():
            return "t" if value else "f"
        case date():
            return value.strftime("%m-%d-%Y")  # the date style of isolationtester
    return str(value)
