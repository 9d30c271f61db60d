"""Snapshot of the tables as a statement sees it: queries, scans, and the files of a write.

In the default layout a write makes one file per partition, split at ``rows_per_file``. File layout
is semantics: which rows share a file decides which commits conflict (TransactionalWrite.scala).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from itertools import count
from typing import TYPE_CHECKING

from isolitmus.checker.delta.read_set import accesses, branch_accesses
from isolitmus.model.delta.footprint import Footprint
from isolitmus.model.delta.header import Header
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.execution import RowRead
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql.conditions import can_fail, columns_in, holds, may_hold
from isolitmus.model.sql.data_file import File, TableRow
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.types import EvaluationError
from isolitmus.model.sql.values import partition_value, sort_rows, store_value
from isolitmus.specs.sql.configuration import EMPTY_TEXTS, SKIPPING, deletion_vectors_conf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from isolitmus.checker.delta.read_set import Access
    from isolitmus.model.delta.table import TableState
    from isolitmus.model.execution import Database
    from isolitmus.model.sql.data_file import RawFile
    from isolitmus.model.sql.nondeterminism import TriedAnswers
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row

RowTest = Callable[..., bool]
"""Test of a condition on rows: ``holds`` or ``may_hold`` of model.condition."""
DELTA_CAST = "DeltaArithmeticException"
"""Exception of casts by Delta itself, in UPDATE and MERGE; INSERT casts by Spark."""
SPARK_CAST = "SparkArithmeticException"
NO_TABLE = "ExtendedAnalysisException"


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of a query by branch, and the row versions that it read."""

    branches: tuple[tuple[Row, ...], ...]
    reads: tuple[RowRead, ...]


NOTHING = Result((), ())
"""Result without a query."""


@dataclass(frozen=True, slots=True)
class OutsideReads:
    """Reads of a statement outside its transaction, and the settings of its session."""

    cached: frozenset[str] = frozenset()
    """Cached tables: queries get their rows from the snapshot, but no scan is recorded."""
    planned: Database | None = None
    """Database when the statement was planned; None for the snapshot."""
    version: int | None = None
    """Version of that database."""
    inits: Sequence[Database] = ()
    """Databases before and after each init statement, which VERSION AS OF reads.

    They are constants, not reads of what transactions write, and Delta does not record them either.
    """
    folders: frozenset[str] = frozenset()
    """Tables that do not exist yet, but whose folders a concurrent statement has created."""
    confs: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Settings of the session."""
    choices: TriedAnswers | None = None
    """Answers that are tried where the model cannot compute a value."""
    documented: bool = False
    """True if statements behave as Databricks' page documents, not as in open-source Delta.

    Statements that open-source Delta rejects are accepted, and everything that a statement reads
    belongs to its snapshot and is recorded.
    """


INSIDE = OutsideReads()
"""No reads outside the transaction, and no settings."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tables as a statement finds them.

    Methods raise EvaluationError for a table that does not exist, as Spark's analysis does.
    """

    database: Database
    """State of each table."""
    writer: str
    """Name of the transaction that took the snapshot, or was planned on it."""
    schemas: Mapping[str, Schema]
    """Schemas of the tables, as altered so far."""
    outside: OutsideReads = INSIDE
    """Reads outside the snapshot."""
    version: int | None = None
    """Version on which the statement was planned; None for the snapshot's own."""

    def planned(self) -> Snapshot:
        """Return the snapshot that subqueries in SET and in the values of a MERGE see.

        It is the database when the statement was planned, before the snapshot is taken
        (PrepareDeltaScan.scala; docs/delta.md, H1). Without skipping nothing is prepared then.
        """
        if self.outside.planned is None or self.outside.documented or not self.skipping:
            return self
        return replace(self, database=self.outside.planned, version=self.outside.version)

    @property
    def skipping(self) -> bool:
        """True if statistics decide which files are read (conf stats.skipping)."""
        return self.outside.confs.get(SKIPPING, "").lower() != "false"

    def vectors(self, schema: Schema, verb: str) -> bool:
        """Return whether a command marks the rows of a table in deletion vectors."""
        return (
            schema.vectors
            and self.outside.confs.get(deletion_vectors_conf(verb), "").lower() != "false"
        )

    def accesses(self, statement: Statement) -> tuple[Access, ...]:
        """Return the reads of a statement, with what is recorded of them here."""
        found = accesses(statement, self.schemas)
        if not self.outside.documented:
            return found
        target = getattr(statement, "target", None)
        return tuple(
            replace(one, tracked="files") if one.role == "value" and one.table == target else one
            for one in found
        )

    def init(self, number: int) -> Snapshot:
        """Return the snapshot of the database after ``number`` init statements."""
        return replace(self, database=self.outside.inits[number])

    def query(self, query: qu.Query) -> Result:
        """Return the result of a query."""
        branches: list[tuple[Row, ...]] = []
        reads: list[RowRead] = []
        for written in query:
            branch = self._bound(written)
            if isinstance(branch, qu.Joined):
                found_rows, own = self._joined(branch)
                branches.append(_given(branch, found_rows))
                reads += own
                continue
            around: list[Row] = []
            found = tuple(branch_accesses(branch))
            for access in found:
                read = self.read(access, around)
                if access.role == "query":
                    around = [row.values for row in read.matched]
                if access.version is None:
                    reads.append(read)
            for access in found:
                subquery = access.subquery
                if subquery is not None and not subquery.correlated:
                    # Spark executes it before the first row, even if no row needs it
                    operand = subquery.operand and ex.Const(None, subquery.item.type)
                    evaluate(replace(subquery, operand=operand), ())
            branches.append(_rows(branch, around))
        return Result(tuple(branches), tuple(reads))

    def _joined(self, branch: qu.Joined) -> tuple[list[tuple[Row, ...]], tuple[RowRead, ...]]:
        """Return the joined rows of a join's sources, as one row per side, and the reads."""
        combined: list[tuple[Row, ...]] = [()]
        nothing: list[Row] = []
        reads: list[RowRead] = []
        for source in branch.sources:
            result = self._nested(source.query)
            reads += result.reads
            rows = [row for part in result.branches for row in part]
            nothing.append((None,) * len(qu.items_of(source.query[0])))
            joined = [
                (*before, row)
                for before in combined
                for row in _partners(source, before, rows, nothing[-1])
            ]
            if source.how in ("right", "full"):
                joined += [
                    (*nothing[:-1], row)
                    for row in rows
                    if not any(holds(source.on, (*before, row)) for before in combined)
                ]
            combined = joined
        return combined, tuple(reads)

    def _nested(self, query: qu.Query) -> Result:
        """Return the result of a query that another one reads.

        UndeterminedError if an expression in it fails: Spark computes only the columns and rows
        that the query around it needs.
        """
        try:
            return self.query(query)
        except EvaluationError as error:
            if error.exception == NO_TABLE:
                raise
            raise UndeterminedError(
                f"whether a nested query fails with {error.exception} depends on the columns and"
                " rows that the query around it needs"
            ) from None

    def _contributes(self, branch: qu.Joined, side: int, file: File) -> bool:
        """Return whether a join's result has a row from a file of one of its tables.

        Then no engine can skip the file.
        """
        table = self._bound(branch.sources[side].query[0])
        combined, _ = self._joined(branch)
        where = self._bound(branch).where
        found = {
            rows[side]
            for rows in combined
            if holds(where, rows) and any(v is not None for v in rows[side])
        }
        there = branch.sources[side].how not in ("semi", "anti") and isinstance(table, qu.Select)
        return there and any(
            tuple(evaluate(item, (row.values,)) for item in qu.items_of(table)) in found
            for row in file.rows
            if holds(table.where, (row.values,))
        )

    def _bound(self, branch: qu.Branch) -> qu.Branch:
        """Return a branch of a query with its expressions bound by `bound`."""
        where = None if branch.where is None else self.bound((branch.where,))[0]
        if isinstance(branch, qu.Values):
            return replace(branch, rows=tuple(map(self.bound, branch.rows)), where=where)
        return replace(branch, items=self.bound(branch.items), where=where)

    def read(self, access: Access, around: Sequence[Row] = ()) -> RowRead:
        """Return the predicate read of an access, with the outer rows ``around`` if correlated."""
        seen = self.planned() if access.planned else self
        if access.version is not None:
            seen = self.init(access.version)
        if access.subquery is not None:
            return seen.lookup(access.subquery, around)
        where = access.where
        if access.role == "query":
            # correlated subqueries are evaluated for the rows that the other conditions leave
            plain = [c for c in ex.conjuncts(where) if not _correlated(c)]
            where = reduce(ex.And, plain) if plain else None
        return seen.select(access.table, where)

    def bound(self, exprs: Iterable[ex.Expr]) -> tuple[ex.Expr, ...]:
        """Return the expressions with the tables of their subqueries bound to rows."""

        def bind(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
            if isinstance(part, ex.ColumnRef):
                return part
            operand = None if part.operand is None else ex.map_columns(part.operand, bind)
            rows = (row.values for file in self.files(part.table) for row in file.rows)
            return replace(part, operand=operand, rows=tuple(rows))

        return tuple(ex.map_columns(expr, bind) for expr in exprs)

    def lookup(self, subquery: ex.Subquery, around: Sequence[Row] = ()) -> RowRead:
        """Return the predicate read of a subquery, with the outer rows ``around``."""
        outers = around if subquery.correlated else [()]

        def tested(test: RowTest) -> Callable[[Row], bool]:
            padded = [_padded(outer, subquery.side) for outer in outers]
            return lambda row: any(test(subquery.where, (*outer, row)) for outer in padded)

        return self._looked(subquery.table, subquery.where, tested)

    def select(self, table: str, where: ex.Expr | None) -> RowRead:
        """Return the predicate read of a WHERE condition."""
        first = self.schemas[table].partition_indexes

        def tested(test: RowTest) -> Callable[[Row], bool]:
            return lambda row: test(where, (row,), first)

        return self._looked(table, where, tested)

    def _looked(
        self, table: str, where: ex.Expr | None, tested: Callable[[RowTest], Callable[[Row], bool]]
    ) -> RowRead:
        """Return a predicate read, with one test for rows that were read and one for other rows."""
        matches = cache(tested(may_hold))
        read = cache(tested(holds)) if where is not None and can_fail(where) else matches
        words = f"{table} WHERE {where}" if where is not None else table
        return RowRead(table, words, matches, self.matching(table, read), self.version)

    def matching(self, table: str, matches: Callable[[Row], bool]) -> tuple[TableRow, ...]:
        """Return the live row versions that match."""
        return tuple(row for file in self.files(table) for row in file.rows if matches(row.values))

    def header(self, table: str) -> Header:
        """Return the header of a table: what the log records besides its files."""
        return self.state(table).header or Header.of(self.schemas[table])

    def files(self, table: str) -> tuple[File, ...]:
        """Return the live files of a table."""
        return self.state(table).files

    def state(self, table: str) -> TableState:
        """Return the full state of a table."""
        found = self.database.get(table)
        if found is None:
            raise EvaluationError(NO_TABLE, f"there is no table {table}")
        return found

    def inserted(
        self, schema: Schema, branches: Iterable[Iterable[Row]], error: str = SPARK_CAST
    ) -> list[tuple[TableRow, ...]]:
        """Return the rows of each branch with new identities, cast to the columns' types."""
        fresh = count()
        return [
            tuple(
                TableRow(
                    f"{self.writer}.{next(fresh)}", self.writer, self._stored(schema, row, error)
                )
                for row in rows
            )
            for rows in branches
        ]

    def assigned(
        self, schema: Schema, sets: tuple[tuple[int, ex.Expr], ...], row: Row, rows: tuple[Row, ...]
    ) -> Row:
        """Return a row of UPDATE or MERGE after SET."""
        values = dict(sets)
        after = tuple(evaluate(values[i], rows) if i in values else v for i, v in enumerate(row))
        return self._stored(schema, after, DELTA_CAST)

    def _stored(self, schema: Schema, row: Row, error: str) -> Row:
        """Return a row after Spark's ANSI store assignment, and after changes in partition columns.

        A value that does not fit into its column is an error.
        """
        kept = tuple(
            store_value(v, c.type, error) for v, c in zip(row, schema.columns, strict=True)
        )
        parts = schema.partition_indexes
        if not parts:
            return kept
        empty = self.outside.confs.get(EMPTY_TEXTS) == "kept"
        return tuple(
            partition_value(schema.columns[i].name, v, empty_kept=empty) if i in parts else v
            for i, v in enumerate(kept)
        )

    def written(self, schema: Schema, branches: Iterable[Iterable[TableRow]]) -> tuple[File, ...]:
        """Return the files of a write, by branch and partition, split at ``rows_per_file``."""
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
        accesses: Iterable[Access],
        adds: Iterable[File | RawFile],
        removes: Iterable[File | RawFile] = (),
        *,
        scanned: bool = False,
    ) -> Footprint:
        """Return the footprint of a statement.

        Parameters
        ----------
        schema : Schema
            The target.
        accesses : iterable of Access
            Reads of the statement.
        adds, removes : iterable of File or RawFile
            Added and removed files.
        scanned : bool
            Whether rows of the target were scanned. Without skipping, a statement that scans the
            target, or has it in a plan, is marked as reading everything (PrepareDeltaScan.scala,
            prepareDeltaScanWithoutFileSkipping). Cached tables are not scanned.
        """
        live = self.files(schema.name)
        adds, removes = tuple(adds), tuple(removes)
        cached = self.outside.cached
        noticed = [
            access
            for access in accesses
            if access.tracked != "nothing" and not (access.scan and access.table in cached)
        ]
        scanned |= any(access.scan for access in noticed)
        predicates: list[tuple[ex.Expr, ...]] = []
        conditions: list[tuple[ex.Expr, ...] | None] = []
        wide: list[tuple[ex.Expr, ...]] = []
        files: set[str] = set()
        doubted: set[str] = set()
        for access in noticed:
            if access.tracked == "plan" or (access.scan and not self.skipping):
                continue
            filters = access.filters(schema)
            unclear = access.doubtful is not None and bool(schema.partition_indexes)
            recorded = wide if unclear or filters.open(schema) else predicates
            recorded.append(self.bound(filters.partition))
            if recorded is predicates:
                narrowed = access.doubtful is not None or access.narrowed
                conditions.append(None if narrowed else filters.data)
            known = filters.certain() if access.scan else filters
            if known != filters:
                wide.append(self.bound(known.partition))
            if access.tracked == "files":
                kept = filters.files(schema, live, skipping=self.skipping)
                unsure = {
                    file.path
                    for file in kept
                    if (
                        not self._contributes(*access.doubtful, file)
                        if access.doubtful
                        else self.skipping
                        and filters.doubted(schema, file)
                        and not _meets(access, file)
                    )
                }
                files.update({file.path for file in kept} - unsure)
                doubted |= unsure
                if known != filters:
                    every = known.files(schema, live, skipping=self.skipping)
                    doubted |= {file.path for file in every}
        if scanned and not self.skipping:
            predicates.append(())
        return Footprint(
            schema,
            predicates=tuple(predicates),
            conditions=tuple(conditions),
            files=frozenset(files),
            doubted=frozenset(doubted - files),
            wide=tuple(wide),
            adds=tuple(f.partition for f in adds),
            removes=frozenset(f.path for f in removes),
            removed=removes,
            data_change=bool(adds or removes),
            whole_table=any(a.whole for a in noticed) or (scanned and not self.skipping),
            choices=self.outside.choices,
        )


def _meets(access: Access, file: File) -> bool:
    """Return whether a file has a matching row of the read, so that no engine can skip it."""
    alone = all(column.side == 0 for column in columns_in(access.where or ex.TRUE))
    return alone and any(may_hold(access.where, (row.values,)) for row in file.rows)


def _rows(branch: qu.Branch, around: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows that a branch gives, from those that its scan left."""
    if isinstance(branch, qu.Values):
        if not holds(branch.where, ()):
            return ()
        return tuple(tuple(evaluate(e, ()) for e in row) for row in branch.rows)
    return _given(branch, [(row,) for row in around])


def _given(branch: qu.Select | qu.Joined, combined: Sequence[tuple[Row, ...]]) -> tuple[Row, ...]:
    """Return the rows that a SELECT gives, from the combined rows of its sources."""
    left = [rows for rows in combined if holds(branch.where, rows)]
    if branch.grouped and not branch.keys:
        return (tuple(evaluate(item, (), left) for item in branch.items),)
    if branch.grouped:
        groups: dict[Row, list[tuple[Row, ...]]] = {}
        for rows in left:
            groups.setdefault(tuple(evaluate(k, rows) for k in branch.keys), []).append(rows)
        return tuple(
            tuple(evaluate(item, groups[key][0], groups[key]) for item in branch.items)
            for key in sort_rows(groups)
        )
    return tuple(tuple(evaluate(item, rows) for item in branch.items) for rows in left)


def _partners(
    source: qu.JoinSource, before: tuple[Row, ...], rows: Sequence[Row], nothing: Row
) -> Sequence[Row]:
    """Return the rows that a source of a join adds to a combined row of the sources before it."""
    found = [row for row in rows if holds(source.on, (*before, row))]
    match source.how:
        case "inner" | "right":
            return found
        case "left" | "full":
            return found or [nothing]
        case "semi":
            return [nothing] if found else []
        case "anti":
            return [] if found else [nothing]


def _correlated(condition: ex.Expr) -> bool:
    return any(subquery.correlated for subquery in ex.subqueries(condition))


def _padded(outer: Row, side: int) -> tuple[Row, ...]:
    return (outer,) + ((),) * (side - 1) if side else ()
