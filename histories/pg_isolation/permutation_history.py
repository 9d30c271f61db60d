"""History of a permutation: row versions read and written by its transactions, after Adya.

Only rows that some transaction of the permutation writes are named; all other rows have one
version, which every transaction sees. Reads of a transaction's own writes are left out: its write
determines its order to others. A row is an object; ``t_7`` is the seventh of table t. A read is a
predicate read named after its step, and an item read of each row that it finds. A deleted row has a
last version that no read finds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from isolitmus.histories.pg_isolation.permutation_run import REFUSAL, SpecTables
from isolitmus.histories.readers.pg_isolation import pg_test
from isolitmus.model.errors import RecordingError
from isolitmus.model.history import History
from isolitmus.model.operations import (
    INITIAL,
    ItemRead,
    Match,
    PredicateRead,
    Transaction,
    Version,
    Write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isolitmus.histories.pg_isolation.permutation_run import PermutationRun, PgTransaction
    from isolitmus.histories.pg_isolation.row_versions import RowScan
    from isolitmus.histories.readers.pg_isolation import Permutation
    from isolitmus.model.operations import Operation, Status

SPEC = """
setup { CREATE TABLE t (i int); INSERT INTO t VALUES (1); }
session a
step change { UPDATE t SET i = 2; }
session b
step read { SELECT i FROM t WHERE i > 0; }
"""
OUTPUT = """Parsed test spec with 2 sessions

starting permutation: change read
step change: UPDATE t SET i = 2;
step read: SELECT i FROM t WHERE i > 0;
i
-
2
(1 row)
"""


@dataclass(frozen=True, slots=True)
class PermutationHistory:
    """Permutation with its history."""

    permutation: Permutation
    """Steps, and the printed output."""
    carried: PermutationRun
    """Execution, statement by statement."""
    history: History
    """Reads and writes of rows; transactions are numbered in the order of their sessions."""

    @property
    def name(self) -> str:
        """Name of the permutation with its steps."""
        return f"permutation {self.permutation.number} ({' '.join(self.permutation.steps)})"

    @property
    def ends(self) -> tuple[str, ...]:
        """Texts that name the transactions that PostgreSQL refused, with the errors."""
        by_session = sorted(self.carried.transactions, key=lambda t: (t.session, t.number))
        return tuple(
            f"T{number} ended with '{t.refusal}'"
            for number, t in enumerate(by_session, 1)
            if t.refusal
        )

    @property
    def promised(self) -> bool:
        """True if PostgreSQL promises serializability: all commits, all at SERIALIZABLE."""
        every = self.carried.transactions
        return all((t.level, t.status) == ("SERIALIZABLE", "committed") for t in every)

    @property
    def refused(self) -> tuple[str, ...]:
        """PostgreSQL's errors of transactions that could not be serialized."""
        return tuple(t.refusal for t in self.carried.transactions if t.refusal.startswith(REFUSAL))

    @classmethod
    def of(
        cls, tables: SpecTables, permutation: Permutation, *, supposed: bool = False
    ) -> PermutationHistory:
        """Return the history of a permutation.

        Parameters
        ----------
        tables : SpecTables
            Tables of the test.
        permutation : Permutation
            Steps, and the printed output.
        supposed : bool
            Whether to assume that no transaction was refused for its dependencies.

        Raises
        ------
        RecordingError
            If the history cannot be determined, with the reason.

        Examples
        --------
        >>> from isolitmus.histories.readers.pg_isolation import read_pg_spec
        >>> from isolitmus.histories.readers.pg_isolation import read_pg_output
        >>> spec = read_pg_spec(SPEC, "h.spec")
        >>> [permutation] = read_pg_output(OUTPUT, "h.out", spec)
        >>> PermutationHistory.of(SpecTables(spec), permutation).history.to_table()["T2"]
        'r(P_read: t_1_1* | t_1_0*) r(t_1_1)'
        """
        carried = tables.carried(permutation, supposed=supposed)
        return cls(permutation, carried, _Builder(carried).history())


def permutation_histories(
    path: Path, *, supposed: bool = False
) -> Iterator[PermutationHistory | RecordingError]:
    """Yield the history of each permutation that PostgreSQL executed, or why it is unknown.

    Parameters
    ----------
    path : Path
        Spec of an isolation test.
    supposed : bool
        Whether to assume that no transaction was refused for its dependencies.

    Raises
    ------
    RecordingError
        If the spec cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> next(permutation_histories(Path("nowhere.spec")))
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: cannot read nowhere.spec: No such file or directory
    """
    spec, permutations = pg_test(path)
    tables = SpecTables(spec)
    for permutation in permutations:
        try:
            yield PermutationHistory.of(tables, permutation, supposed=supposed)
        except RecordingError as problem:
            yield problem


class _Builder:
    def __init__(self, carried: PermutationRun) -> None:
        self.carried = carried
        by_session = sorted(carried.transactions, key=lambda t: (t.session, t.number))
        self.number = {t.number: place for place, t in enumerate(by_session, 1)}
        self.transactions = by_session
        self.makers: dict[tuple[str, int], list[int]] = {}
        """Writers of each row that is written, in order."""
        for number, table, row in carried.writes:
            makers = self.makers.setdefault((table, row), [])
            if number not in makers:
                makers.append(number)
        self.names: Counter[str] = Counter()

    def history(self) -> History:
        """Return the history; aborted transactions have no versions in the version order."""
        transactions = tuple(
            Transaction(self.number[t.number], tuple(self._operations(t)), _status(t))
            for t in self.transactions
        )
        sessions: dict[int, list[int]] = {}
        for t in self.transactions:
            sessions.setdefault(t.session, []).append(self.number[t.number])
        order = tuple(
            (self._version(row, first), self._version(row, second))
            for row, makers in self.makers.items()
            for first, second in pairwise(n for n in makers if self._of(n).status != "aborted")
        )
        schedule = tuple((self.number[number], moment) for number, moment in self.carried.moments)
        return History(transactions, tuple(map(tuple, sessions.values())), order, schedule)

    def _of(self, number: int) -> PgTransaction:
        return self.carried.transactions[number - 1]

    def _operations(self, transaction: PgTransaction) -> Iterator[Operation]:
        """Yield the operations of a transaction; only its last write of a row has part 0."""
        own: Counter[tuple[str, int]] = Counter()
        every = Counter((each.table, each.row) for each in transaction.done if each.scan is None)
        for each in transaction.done:
            if each.scan is not None:
                yield from self._read(transaction, each.step, each.scan, own)
                continue
            row = each.table, each.row
            own[row] += 1
            part = 0 if own[row] == every[row] else own[row]
            yield Write(self._version(row, transaction.number, part))

    def _read(
        self,
        transaction: PgTransaction,
        step: str,
        scan: RowScan,
        own: Counter[tuple[str, int]],
    ) -> Iterator[Operation]:
        """Yield the predicate read of a scan, and item reads of the visible versions that match."""
        assert transaction.seen is not None
        holds = self.carried.holds[scan]
        seen: list[Match] = []
        others: list[Match] = []
        for row, makers in self.makers.items():
            if row[0] != scan.table or own[row]:
                continue
            there = [0] if (row[1], 0) in holds else []
            visible = [n for n in (*there, *makers) if n == 0 or n in transaction.seen.committed]
            for maker in (*there, *makers):
                match = Match(self._version(row, maker), holds.get((row[1], maker), False))
                (seen if visible and maker == visible[-1] else others).append(match)
        if not seen and not others:
            return
        name = f"P_{''.join(c if c.isalnum() and c.isascii() else '_' for c in step)}"
        self.names[name] += 1
        again = f"_{self.names[name]}" if self.names[name] > 1 else ""
        yield PredicateRead(f"{name}{again}", tuple(seen), tuple(others))
        yield from (ItemRead(match.version) for match in seen if match.matches)

    def _version(self, row: tuple[str, int], maker: int, part: int = 0) -> Version:
        table, number = row
        return Version(f"{table}_{number}", self.number[maker] if maker else INITIAL, part)


def _status(transaction: PgTransaction) -> Status:
    return "unknown" if transaction.status == "open" else transaction.status
