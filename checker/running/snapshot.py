"""A snapshot as a statement sees it: queries and scans of it, and the files that a write makes.

Default layout: one file per partition and write, cut at ``rows_per_file``. File layout is semantics:
which rows share a file decides which commits conflict (TransactionalWrite.scala).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from itertools import count
from typing import TYPE_CHECKING

from isolitmus.checker.running.skipping import query_filters
from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.condition import fallible, holds, may_hold
from isolitmus.model.execution import RowRead
from isolitmus.model.footprint import Footprint
from isolitmus.model.header import Header
from isolitmus.model.normal import columns
from isolitmus.model.table import File, TableRow
from isolitmus.model.values import sort_rows
from isolitmus.specs.confs import SKIPPING, vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.checker.running.skipping import Filters
    from isolitmus.model.execution import Database
    from isolitmus.model.schema import Schema
    from isolitmus.model.table import TableState
    from isolitmus.model.values import Row

__all__ = ["DELTA_CAST", "INSIDE", "NOTHING", "Outside", "Result", "Snapshot", "assigned"]

Test = Callable[..., bool]
"""``holds`` or ``may_hold`` of model.condition."""
DELTA_CAST = "DeltaArithmeticException"
"""What Delta raises where it casts a value itself, in UPDATE and MERGE; in INSERT Spark does."""
SPARK_CAST = "SparkArithmeticException"


@dataclass(frozen=True, slots=True)
class Result:
    """A query's rows by branch, the row versions that it read, its scans of the target, and whether it
    ``scanned`` the target in any way that marks the whole of it as read without skipping.
    """

    branches: tuple[tuple[Row, ...], ...]
    reads: tuple[RowRead, ...]
    scans: tuple[Filters, ...]
    scanned: bool = False


NOTHING = Result((), (), ())
"""The result of no query."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What of a statement's reads is outside its transaction, and the ``confs`` of its session.

    Queries of the tables ``cached`` give the rows of the snapshot, but no scan that the transaction
    notices. ``planned`` is the database when the statement was planned, which was ``version`` (None:
    the snapshot). ``inits`` are the databases before and after each init statement: what VERSION AS OF
    reads. That is a constant, no read of what transactions write, and Delta does not record it either.
    ``folders``: tables that are not there yet, but somebody who makes them has made their folders.
    """

    cached: frozenset[str] = frozenset()
    planned: Database | None = None
    version: int | None = None
    inits: Sequence[Database] = ()
    folders: frozenset[str] = frozenset()
    confs: Mapping[str, str] = field(default_factory=dict, hash=False)


INSIDE = Outside()
"""Nothing is."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The database that the transaction ``writer`` has taken its snapshot of, or that it was planned
    on; ``version`` is then which. Of a table that is not there each method is an EvaluationError, as
    Spark's analysis has it.
    """

    database: Database
    writer: str
    schemas: Mapping[str, Schema]
    outside: Outside = INSIDE
    version: int | None = None

    def planned(self) -> Snapshot:
        """What subqueries in SET and in the values of a MERGE see: the database when the statement
        was planned, which is before the snapshot is taken (PrepareDeltaScan.scala; delta.md 8, H1).
        Without skipping nothing is prepared then.
        """
        if self.outside.planned is None or not self.skipping:
            return self
        return replace(self, database=self.outside.planned, version=self.outside.version)

    @property
    def skipping(self) -> bool:
        """Whether statistics tell which files to read (the conf stats.skipping)."""
        return self.outside.confs.get(SKIPPING, "").lower() != "false"

    def vectors(self, schema: Schema, verb: str) -> bool:
        """Whether DELETE, UPDATE or MERGE mark the rows of a table in deletion vectors."""
        return schema.vectors and self.outside.confs.get(vectors(verb), "").lower() != "false"

    def init(self, number: int) -> Snapshot:
        """The database after that many init statements."""
        return replace(self, database=self.outside.inits[number])

    def query(self, query: st.Query, target: str | None = None) -> Result:
        """The query's result; its scans of ``target`` are what the transaction is tracked to read."""
        branches: list[tuple[Row, ...]] = []
        reads: list[RowRead] = []
        scans: list[Filters] = []
        scanned = False
        tracked = None if target in self.outside.cached else target
        for branch in query:
            parts = branch.rows if isinstance(branch, st.Values) else (branch.items,)
            bound = [self.bound(items) for items in parts]
            where = None if branch.where is None else self.bound((branch.where,))[0]
            around: list[Row] = []
            if isinstance(branch, st.Select):
                # correlated subqueries are looked up for the rows that the other conditions leave
                plain = [c for c in ex.conjuncts(where) if not _correlated(c)]
                source = self if branch.version is None else self.init(branch.version)
                read = source.select(branch.table, reduce(ex.And, plain) if plain else None)
                around = [row.values for row in read.matched]
                if branch.version is None:
                    reads.append(read)
                if branch.seen and branch.table == tracked:
                    scans.append(query_filters(self.schemas[branch.table], where))
                scanned |= branch.table == tracked and not branch.alias
            for subquery in ex.subqueries(where, *(item for items in bound for item in items)):
                reads.append(self.lookup(subquery, around))
                if subquery.table == tracked:
                    scans.append(query_filters(self.schemas[subquery.table], _own(subquery)))
                    scanned = True
            branches.append(_rows(branch, bound, where, around))
        recorded = tuple(scans) if self.skipping else ()
        return Result(tuple(branches), tuple(reads), recorded, scanned)

    def bound(self, exprs: Iterable[ex.Expr]) -> tuple[ex.Expr, ...]:
        """The expressions with what their subqueries range over."""

        def bind(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
            if isinstance(part, ex.ColumnRef):
                return part
            operand = None if part.operand is None else ex.mapped(part.operand, bind)
            rows = (row.values for file in self.files(part.table) for row in file.rows)
            return replace(part, operand=operand, rows=tuple(rows))

        return tuple(ex.mapped(expr, bind) for expr in exprs)

    def lookup(self, subquery: ex.Subquery, around: Sequence[Row] = ()) -> RowRead:
        """The predicate read of a subquery, for these rows of the query around it."""
        outers = around if subquery.correlated else [()]

        def asked(test: Test) -> Callable[[Row], bool]:
            padded = [_padded(outer, subquery.side) for outer in outers]
            return lambda row: any(test(subquery.where, (*outer, row)) for outer in padded)

        return self._looked(subquery.table, subquery.where, asked)

    def select(self, table: str, where: ex.Expr | None) -> RowRead:
        """The predicate read of a WHERE."""
        first = self.schemas[table].partition_indexes

        def asked(test: Test) -> Callable[[Row], bool]:
            return lambda row: test(where, (row,), first)

        return self._looked(table, where, asked)

    def _looked(
        self, table: str, where: ex.Expr | None, asked: Callable[[Test], Callable[[Row], bool]]
    ) -> RowRead:
        """A predicate read, by a test of rows that were read and one of others."""
        matches = cache(asked(may_hold))
        read = cache(asked(holds)) if where is not None and fallible(where) else matches
        words = f"{table} WHERE {where}" if where is not None else table
        return RowRead(table, words, matches, self.matching(table, read), self.version)

    def matching(self, table: str, matches: Callable[[Row], bool]) -> tuple[TableRow, ...]:
        """The live row versions that match."""
        return tuple(row for file in self.files(table) for row in file.rows if matches(row.values))

    def header(self, table: str) -> Header:
        """What the log says of a table besides its files."""
        return self.state(table).header or Header.of(self.schemas[table])

    def files(self, table: str) -> tuple[File, ...]:
        """The live files of a table."""
        return self.state(table).files

    def state(self, table: str) -> TableState:
        """All that there is of a table."""
        found = self.database.get(table)
        if found is None:
            raise ex.EvaluationError("ExtendedAnalysisException", f"there is no table {table}")
        return found

    def inserted(
        self, schema: Schema, branches: Iterable[Iterable[Row]], error: str = SPARK_CAST
    ) -> list[tuple[TableRow, ...]]:
        """The rows of each branch with fresh identities, stored into the columns' types."""
        fresh = count()
        return [
            tuple(
                TableRow(f"{self.writer}.{next(fresh)}", self.writer, _stored(schema, row, error))
                for row in rows
            )
            for rows in branches
        ]

    def written(self, schema: Schema, branches: Iterable[Iterable[TableRow]]) -> tuple[File, ...]:
        """The files of a write: for each branch one per partition, cut at ``rows_per_file``."""
        files: list[File] = []
        for branch in branches:
            by_partition: dict[Row, list[TableRow]] = {}
            for row in branch:
                by_partition.setdefault(schema.partition_of(row.values), []).append(row)
            for partition in sort_rows(by_partition):
                rows = by_partition[partition]
                folder = f"{schema.folder(partition)}/" if partition else ""
                size = schema.rows_per_file or len(rows)
                for start in range(0, len(rows), size):
                    path = f"{folder}{self.writer}-{len(files)}"
                    files.append(File.of(path, partition, tuple(rows[start : start + size])))
        return tuple(files)

    def footprint(
        self,
        schema: Schema,
        scans: Iterable[Filters],
        adds: tuple[File, ...],
        removes: tuple[File, ...] = (),
        *,
        scanned: bool = False,
    ) -> Footprint:
        """The footprint of a statement that read its target by these scans. If it ``scanned`` rows of the
        target, it is, without skipping, marked as reading everything (PrepareDeltaScan.scala,
        prepareDeltaScanWithoutFileSkipping).
        """
        scans = tuple(scans)
        files = self.files(schema.name)
        read = {f.path for scan in scans for f in scan.files(schema, files, skipping=self.skipping)}
        whole = scanned and not self.skipping
        predicates = tuple(scan.partition for scan in scans)
        return Footprint(
            schema,
            predicates=(*predicates, ()) if whole else predicates,
            files=frozenset(read),
            adds=tuple(f.partition for f in adds),
            removes=frozenset(f.path for f in removes),
            data_change=bool(adds or removes),
            whole_table=whole,
        )


def _rows(
    branch: st.Branch,
    items: Sequence[tuple[ex.Expr, ...]],
    where: ex.Expr | None,
    around: Sequence[Row],
) -> tuple[Row, ...]:
    """The rows that a branch gives, of those that its scan left."""
    if isinstance(branch, st.Values):
        if not holds(where, ()):
            return ()
        return tuple(tuple(ex.evaluate(e, ()) for e in row) for row in items)
    left = [(row,) for row in around if holds(where, (row,))]
    if branch.grouped and not branch.keys:
        return (tuple(ex.evaluate(item, (), left) for item in items[0]),)
    if branch.grouped:
        groups: dict[Row, list[tuple[Row, ...]]] = {}
        for rows in left:
            groups.setdefault(tuple(ex.evaluate(k, rows) for k in branch.keys), []).append(rows)
        return tuple(
            tuple(ex.evaluate(item, groups[key][0], groups[key]) for item in items[0])
            for key in sort_rows(groups)
        )
    return tuple(tuple(ex.evaluate(item, rows) for item in items[0]) for rows in left)


def _correlated(condition: ex.Expr) -> bool:
    return any(subquery.correlated for subquery in ex.subqueries(condition))


def _own(subquery: ex.Subquery) -> ex.Expr | None:
    """What a subquery's condition says of its own table alone, as of a table that stands alone."""

    def alone(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        if isinstance(part, ex.Subquery):
            return part
        return replace(part, side=0, name=part.name.rpartition(".")[2])

    own = [
        ex.mapped(c, alone)
        for c in ex.conjuncts(subquery.where)
        if all(column.side == subquery.side for column in columns(c))
    ]
    return reduce(ex.And, own) if own else None


def _padded(outer: Row, side: int) -> tuple[Row, ...]:
    return (outer,) + ((),) * (side - 1) if side else ()


def _stored(schema: Schema, row: Row, error: str) -> Row:
    """Spark's ANSI store assignment: a BIGINT that does not fit into its INT column is an error."""
    return tuple(
        ex.fit(v, c.type, error) if isinstance(v, int) and c.type in ex.RANGES else v
        for v, c in zip(row, schema.columns, strict=True)
    )


def assigned(
    schema: Schema, sets: tuple[tuple[int, ex.Expr], ...], row: Row, rows: tuple[Row, ...]
) -> Row:
    """A row of UPDATE or MERGE after SET."""
    values = dict(sets)
    after = tuple(ex.evaluate(values[i], rows) if i in values else v for i, v in enumerate(row))
    return _stored(schema, after, DELTA_CAST)
