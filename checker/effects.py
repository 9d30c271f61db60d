"""What a statement does on a snapshot: rows read and written, files added and removed, footprint.

Command by command as Delta 4.4.0 on Spark does it (delta.md 4; commands/*.scala), in the default
layout: one file per partition and write; a rewrite merges the files that it touched into one per
partition. A statement's effect depends on nothing but the snapshot and the name of its transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from isolitmus.checker.skipping import Filters, command_filters, merge_filters, query_filters
from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.execution import Database, Effect, RowRead, RowWrite
from isolitmus.model.footprint import Footprint
from isolitmus.model.table import File, TableRow
from isolitmus.model.values import Row, Rows, sort_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from isolitmus.model.schema import Schema

__all__ = ["effect"]


def effect(
    statement: st.Statement, database: Database, writer: str, schemas: Mapping[str, Schema]
) -> Effect:
    """The effect of the statement when the transaction ``writer`` runs it on the snapshot.

    A failure at run time (overflow, a MERGE that matches a row twice) is an effect with ``error``.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.model.table import TableState
    >>> from isolitmus.specs.sql import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> insert = read_statement("INSERT INTO t VALUES (1), (2)", {"t": t})
    >>> done = effect(insert, {"t": TableState()}, "a", {"t": t})
    >>> done.footprint.blind, [row.values for row in done.adds[0].rows]
    (True, [(1,), (2,)])
    """
    snapshot = _Snapshot(database, writer, schemas)
    try:
        match statement:
            case st.Read():
                return snapshot.read(statement)
            case st.Insert():
                return snapshot.insert(statement)
            case st.Delete():
                return snapshot.delete(statement)
            case st.Update():
                return snapshot.update(statement)
            case st.Merge():
                return snapshot.merge(statement)
            case st.Optimize():
                return snapshot.optimize(statement)
    except ex.EvaluationError as error:
        return Effect(error=error)


@dataclass(frozen=True, slots=True)
class _Result:
    """A query's rows by branch, the row versions that it read, and its scans of the target."""

    branches: tuple[tuple[Row, ...], ...]
    reads: tuple[RowRead, ...]
    scans: tuple[Filters, ...]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    database: Database
    writer: str
    schemas: Mapping[str, Schema]

    # Reading

    def query(self, query: st.Query, target: str | None = None) -> _Result:
        branches: list[tuple[Row, ...]] = []
        reads: list[RowRead] = []
        scans: list[Filters] = []
        for branch in query:
            if isinstance(branch, st.Values):
                branches.append(tuple(tuple(ex.evaluate(e, ()) for e in r) for r in branch.rows))
                continue
            read = self.select(branch.table, branch.where)
            reads.append(read)
            if branch.table == target:
                scans.append(query_filters(self.schemas[branch.table], branch.where))
            rows = [row.values for row in read.matched]
            if branch.grouped:
                branches.append((tuple(ex.evaluate(item, (), rows) for item in branch.items),))
            else:
                branches.append(
                    tuple(tuple(ex.evaluate(i, (row,)) for i in branch.items) for row in rows)
                )
        return _Result(tuple(branches), tuple(reads), tuple(scans))

    def select(self, table: str, where: ex.Expr | None) -> RowRead:
        """The predicate read of a WHERE."""

        @cache
        def matches(row: Row) -> bool:
            return where is None or ex.evaluate(where, (row,)) is True

        words = f"{table} WHERE {where}" if where is not None else table
        return RowRead(table, words, matches, self.matching(table, matches))

    def matching(self, table: str, matches: Callable[[Row], bool]) -> tuple[TableRow, ...]:
        return tuple(row for file in self.files(table) for row in file.rows if matches(row.values))

    def files(self, table: str) -> tuple[File, ...]:
        return self.database[table].files

    def read(self, statement: st.Read) -> Effect:
        result = self.query(statement.query)
        rows: Rows = sort_rows(row for branch in result.branches for row in branch)
        return Effect(reads=result.reads, rows=rows)

    # Writing

    def inserted(self, schema: Schema, rows: Iterable[Row], start: int) -> tuple[TableRow, ...]:
        """Rows with fresh identities, values stored into the columns' types."""
        return tuple(
            TableRow(f"{self.writer}.{start + k}", self.writer, _store(schema, row))
            for k, row in enumerate(rows)
        )

    def written(self, schema: Schema, branches: Iterable[Iterable[TableRow]]) -> tuple[File, ...]:
        """The files of a write: for each branch one per partition, cut at ``rows_per_file``."""
        files: list[File] = []
        for branch in branches:
            by_partition: dict[Row, list[TableRow]] = {}
            for row in branch:
                by_partition.setdefault(schema.partition_of(row.values), []).append(row)
            for partition in sort_rows(by_partition):
                rows = by_partition[partition]
                size = schema.rows_per_file or len(rows)
                for start in range(0, len(rows), size):
                    path = f"{self.writer}/{len(files)}"
                    files.append(File.of(path, partition, tuple(rows[start : start + size])))
        return tuple(files)

    def footprint(
        self,
        schema: Schema,
        scans: Iterable[Filters],
        adds: tuple[File, ...],
        removes: Iterable[File] = (),
    ) -> Footprint:
        """The footprint of a statement that read its target by these scans."""
        scans = tuple(scans)
        files = self.files(schema.name)
        read = {f.path for scan in scans for f in scan.files(schema, files)}
        return Footprint(
            schema,
            predicates=tuple(scan.partition for scan in scans),
            files=frozenset(read),
            adds=tuple(f.partition for f in adds),
            removes=frozenset(f.path for f in removes),
            data_change=bool(adds) or bool(tuple(removes)),
        )

    def insert(self, statement: st.Insert) -> Effect:
        """Append; with ``overwrite`` everything live is read and removed (WriteIntoDelta.scala)."""
        schema = self.schemas[statement.target]
        result = self.query(statement.query, statement.target)
        branches: list[tuple[TableRow, ...]] = []
        for rows in result.branches:
            branches.append(self.inserted(schema, rows, sum(map(len, branches))))
        adds = self.written(schema, branches)
        writes = tuple(
            RowWrite(schema.name, row.id, None, row.values) for branch in branches for row in branch
        )
        if not statement.overwrite:
            footprint = self.footprint(schema, result.scans, adds)
            return Effect(result.reads, writes, adds, frozenset(), footprint, "WRITE")
        everything = self.select(schema.name, None)
        killed = tuple(RowWrite(schema.name, r.id, r.values, None) for r in everything.matched)
        scans = (Filters((), ()), *result.scans)
        footprint = self.footprint(schema, scans, adds, self.files(schema.name))
        reads = (everything, *result.reads)
        return Effect(reads, killed + writes, adds, footprint.removes, footprint, "WRITE")

    def delete(self, statement: st.Delete) -> Effect:
        """Partition predicates alone remove whole files; else touched files lose their matching
        rows and what is left of them is rewritten together (DeleteCommand.scala).
        """
        schema = self.schemas[statement.target]
        read = self.select(schema.name, statement.where)
        writes = tuple(RowWrite(schema.name, r.id, r.values, None) for r in read.matched)
        filters = command_filters(schema, statement.where)
        touched = self.touched(schema, filters, read)
        kept = [row for file in touched for row in file.rows if not read.matches(row.values)]
        adds = self.written(schema, [kept])
        footprint = self.footprint(schema, [filters], adds, touched)
        return Effect((read,), writes, adds, footprint.removes, footprint, "DELETE")

    def touched(self, schema: Schema, filters: Filters, read: RowRead) -> tuple[File, ...]:
        """The files that a DELETE or UPDATE replaces."""
        candidates = filters.files(schema, self.files(schema.name))
        if not filters.data:
            return candidates
        return tuple(f for f in candidates if any(read.matches(row.values) for row in f.rows))

    def update(self, statement: st.Update) -> Effect:
        """Touched files are rewritten together, rows that move among them (UpdateCommand.scala)."""
        schema = self.schemas[statement.target]
        read = self.select(schema.name, statement.where)
        filters = command_filters(schema, statement.where)
        touched = self.touched(schema, filters, read)
        rewritten: list[TableRow] = []
        writes: list[RowWrite] = []
        for row in (row for file in touched for row in file.rows):
            if read.matches(row.values):
                after = _assign(schema, statement.sets, row.values, (row.values,))
                rewritten.append(TableRow(row.id, self.writer, after))
                writes.append(RowWrite(schema.name, row.id, row.values, after))
            else:
                rewritten.append(row)
        adds = self.written(schema, [rewritten])
        footprint = self.footprint(schema, [filters], adds, touched)
        return Effect((read,), tuple(writes), adds, footprint.removes, footprint, "UPDATE")

    def merge(self, statement: st.Merge) -> Effect:
        """ClassicMergeExecutor.scala and, where all clauses insert, InsertOnlyMergeExecutor.scala.

        Read of the target: ON, for some source row; if no clause inserts, also some condition.
        """
        schema = self.schemas[statement.target]
        source = self.query(statement.source, statement.target)
        rows = [row for branch in source.branches for row in branch]
        matched_only = not statement.not_matched
        conditions = tuple(c.condition for c in statement.matched) if matched_only else ()

        def pairs(values: Row) -> list[Row]:
            return [s for s in rows if ex.evaluate(statement.on, (values, s)) is True]

        @cache
        def concerned(values: Row) -> bool:
            """Whether the file of a target row with these values is rewritten."""
            return any(
                not conditions or any(_true(c, (values, s)) for c in conditions)
                for s in pairs(values)
            )

        words = f"{schema.name} ON {statement.on}"
        read = RowRead(schema.name, words, concerned, self.matching(schema.name, concerned))
        filters = merge_filters(schema, statement.on, conditions)
        live = self.files(schema.name)
        if statement.matched:
            self.refuse_ambiguity(statement, live, pairs)
        touched = tuple(
            f for f in live if statement.matched and any(concerned(r.values) for r in f.rows)
        )
        kept: list[TableRow] = []
        writes: list[RowWrite] = []
        for row in (row for file in touched for row in file.rows):
            after = self.merged(schema, statement, row, pairs(row.values))
            if after is not None:
                kept.append(after)
            if after is not row:
                values = None if after is None else after.values
                writes.append(RowWrite(schema.name, row.id, row.values, values))
        targets = [row.values for file in live for row in file.rows]
        unmatched = [
            s for s in rows if not any(_true(statement.on, (target, s)) for target in targets)
        ]
        fresh: list[Row] = []
        for s in unmatched:
            clause = next((c for c in statement.not_matched if _true(c.condition, ((), s))), None)
            if clause is not None:
                fresh.append(tuple(ex.evaluate(v, ((), s)) for v in clause.values))
        inserted = self.inserted(schema, fresh, 0)
        writes += [RowWrite(schema.name, row.id, None, row.values) for row in inserted]
        adds = self.written(schema, [[*kept, *inserted]])
        footprint = self.footprint(schema, [filters, *source.scans], adds, touched)
        reads = (read, *source.reads)
        return Effect(reads, tuple(writes), adds, footprint.removes, footprint, "MERGE")

    def refuse_ambiguity(
        self,
        statement: st.Merge,
        live: tuple[File, ...],
        pairs: Callable[[Row], list[Row]],
    ) -> None:
        """Two source rows for one target row are an error, but for one unconditional DELETE."""
        one_delete = [(c.action, c.condition) for c in statement.matched] == [("delete", None)]
        if not one_delete and any(len(pairs(r.values)) > 1 for f in live for r in f.rows):
            raise ex.EvaluationError(
                "DeltaUnsupportedOperationException", "several source rows match one target row"
            )

    def merged(
        self, schema: Schema, statement: st.Merge, row: TableRow, pairs: list[Row]
    ) -> TableRow | None:
        """A target row after the MERGE: itself, rewritten, or None where it was deleted."""
        for source in pairs:
            for clause in statement.matched:
                if not _true(clause.condition, (row.values, source)):
                    continue
                if clause.action == "delete":
                    return None
                after = _assign(schema, clause.sets, row.values, (row.values, source))
                return TableRow(row.id, self.writer, after)
        return row

    def optimize(self, statement: st.Optimize) -> Effect:
        """The files of each partition that has more than one become one; no row changes
        (OptimizeTableCommand.scala). It records its predicate and just the files it compacts.
        """
        schema = self.schemas[statement.target]
        filters = command_filters(schema, statement.where)
        by_partition: dict[Row, list[File]] = {}
        for file in filters.files(schema, self.files(schema.name)):
            by_partition.setdefault(file.partition, []).append(file)
        removed = [f for files in by_partition.values() if len(files) > 1 for f in files]
        adds = self.written(schema, [[row for file in removed for row in file.rows]])
        footprint = Footprint(
            schema,
            predicates=(filters.partition,),
            files=frozenset(f.path for f in removed),
            adds=tuple(f.partition for f in adds),
            removes=frozenset(f.path for f in removed),
            data_change=False,
            changes_data=False,
        )
        return Effect((), (), adds, footprint.removes, footprint, "OPTIMIZE")


def _true(condition: ex.Expr | None, rows: tuple[Row, ...]) -> bool:
    return condition is None or ex.evaluate(condition, rows) is True


def _store(schema: Schema, row: Row) -> Row:
    """Spark's ANSI store assignment: a BIGINT that does not fit into its INT column is an error."""
    return tuple(
        ex.fit(v, c.type) if isinstance(v, int) and c.type in ex.RANGES else v
        for v, c in zip(row, schema.columns, strict=True)
    )


def _assign(
    schema: Schema, sets: tuple[tuple[int, ex.Expr], ...], row: Row, rows: tuple[Row, ...]
) -> Row:
    values = dict(sets)
    return _store(
        schema,
        tuple(ex.evaluate(values[i], rows) if i in values else v for i, v in enumerate(row)),
    )
