"""Statements with symbolic parameters as Delta's commit check sees them: files and recorded reads.

The rules are those of ``checker.delta.statement_effects`` for concrete values. A file is
represented by the rows of its partition: which of them share a file depends on the table, so files
may overlap wherever partitions do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from isolitmus.checker.delta.frame import FLAGS
from isolitmus.checker.delta.identity_columns import high_water_marks
from isolitmus.checker.delta.metadata_changes import definition_item
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.statement_kinds import statement_kinds
from isolitmus.jobs.templates.delta_headers import InstanceHeader
from isolitmus.jobs.templates.folded_conditions import (
    fold_access,
    fold_condition,
    has_null,
    scans_left_out,
)
from isolitmus.jobs.templates.instance_frames import (
    AssumedChange,
    Instance,
    InstanceBuilder,
    ItemAccess,
    TemplateRead,
)
from isolitmus.jobs.templates.statement_template import are_in_one_partition
from isolitmus.model.delta.footprint import Footprint, Settings
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import columns_in, disjuncts, may_be_optimized, normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.checker.delta.read_set import Access
    from isolitmus.jobs.templates.expression_formulas import RowTerm
    from isolitmus.jobs.templates.header_states import HeaderChange
    from isolitmus.jobs.templates.statement_template import SourceRow, Template
    from isolitmus.model.sql.schema import Schema


def _has(name: str, change: HeaderChange) -> bool:
    """Return whether the footprint of a change is in a set."""
    return FLAGS[name](change.footprint)


@dataclass
class DeltaInstance:
    """Symbolic instance of a statement on Delta.

    ``outside`` are queries of its client, which read outside its transaction. ``besides`` are
    tables of which any row may affect the result of its query. ``alterations`` are the statements
    of all jobs that alter its table.
    """

    template: Template
    outside: Sequence[st.Read] = ()
    besides: Sequence[str] = ()
    alterations: tuple[st.Statement, ...] = ()

    @cached_property
    def header(self) -> InstanceHeader:
        """Metadata of its table."""
        return InstanceHeader(self.template, self.alterations)

    @cached_property
    def _accesses(self) -> tuple[Access, ...]:
        return accesses(self.template.statement, self.template.schemas)

    @property
    def parts(self) -> Sequence[object]:
        """Statements and queries, what each reads, and the filters that Delta derives from them."""
        schemas = self.template.schemas
        statements = (self.template.statement, *self.outside)
        read = [access for one in statements for access in accesses(one, schemas)]
        filters = [access.filters(schemas[access.table]) for access in read]
        return self.template.written, *statements, *read, *filters, *self.besides

    @cached_property
    def reads(self) -> tuple[TemplateRead, ...]:
        """Reads of the statement, including those outside its transaction."""
        found = [self._read(access) for access in self._accesses if access.role != "compact"]
        for query in self.outside:
            found += [
                self._read(access)._replace(recorded=None, files=False, outside=True)
                for access in accesses(query, self.template.schemas)
            ]
        true = self.template.z3.BoolVal(True)
        found += [TemplateRead(table, lambda _: true) for table in self.besides]
        return tuple(found)

    def _read(self, access: Access) -> TemplateRead:
        """Return the symbolic read of an access: its matching rows and recorded files."""
        schema = self.template.schemas[access.table]
        removed = access.role in ("target", "using") and not self._defines
        matches = partial(self._matches, access)
        read = TemplateRead(
            access.table, matches, removed=removed, doubtful=access.doubtful is not None
        )
        if access.tracked not in ("files", "predicate"):
            return read
        if removed and access.tracked == "predicate":  # a dynamic overwrite: partitions written to
            recorded = self.template.removes
        else:
            filters = () if access.whole else access.filters(schema).partition
            recorded = partial(self._all_hold, filters)
        if access.role != "match" and not access.doubtful:
            recorded = partial(
                self._unless, fold_access(access, self.template.terms).surely, recorded
            )
        read = read._replace(recorded=recorded, files=access.tracked == "files")
        if access.doubtful:
            return read
        every = read.files and (access.whole or not access.filters(schema).data)
        return read._replace(surely=partial(self._certain, access, recorded), every_file=every)

    def _all_hold(self, conditions: Sequence[ex.Expr], row: RowTerm) -> Any:
        return self.template.z3.And(*(self._holds(part, (row,)) for part in conditions))

    def _unless(self, folded: Any, recorded: Callable[[RowTerm], Any], row: RowTerm) -> Any:
        z3 = self.template.z3
        return recorded(row) if z3.is_false(folded) else z3.And(z3.Not(folded), recorded(row))

    def _certain(self, access: Access, recorded: Callable[[RowTerm], Any], row: RowTerm) -> Any:
        """Return what is recorded of a row if the formula is exact; else false.

        Of a data filter with a parameter that is NULL, Spark may leave a partition filter.
        """
        terms = self.template.terms
        before, terms.exact = terms.exact, True
        said = recorded(row)
        certain, terms.exact = terms.exact, terms.exact and before
        if not certain:
            return terms.z3.BoolVal(False)
        data = () if access.whole else access.filters(self.template.schemas[access.table]).data
        may_narrow = (self._may_narrow(access, part, row) for part in data)
        may_fold = access.role != "match" and fold_access(access, terms).perhaps
        either = terms.z3.Or(*may_narrow, may_fold)
        return terms.z3.simplify(terms.z3.And(said, terms.z3.Not(either)))

    def _may_narrow(self, access: Access, data_filter: ex.Expr, row: RowTerm) -> Any:
        """Return the formula that a NULL may leave a filter of partitions of a data filter, which a
        row does not pass.

        Each disjunct without a partition column is then folded to FALSE.
        """
        terms, partitions = (
            self.template.terms,
            self.template.schemas[access.table].partition_indexes,
        )
        z3, null = terms.z3, has_null((data_filter,), terms)
        if access.role == "match" or ex.subqueries(data_filter):
            return null
        folded, passed = [], []
        for part in disjuncts(normalize(data_filter)):
            by_partition = [column.index in partitions for column in columns_in(part)]
            if not any(by_partition):
                folded.append(fold_condition(part, terms).perhaps)
            elif all(by_partition):
                terms.exact, before = True, terms.exact
                passes = self._holds(part, (row,))
                passed += [passes] * terms.exact
                terms.exact = terms.exact and before
        return z3.And(bool(partitions), null, *folded, z3.Not(z3.Or(*passed)))

    def _holds(self, condition: ex.Expr | None, rows: Sequence[RowTerm | None]) -> Any:
        return self.template.terms.holds(condition, rows)

    def _matches(self, access: Access, row: RowTerm) -> Any:
        """Return the formula that a row matches an access."""
        if access.role == "match" and isinstance(self.template.statement, st.Merge):
            return self.template.pairs(row)
        if access.role in ("target", "using") and isinstance(self.template.statement, st.Insert):
            return self.template.removes(row)
        if access.subquery is not None:
            around = [None] * access.subquery.side
            return self._holds(access.subquery.where, (*around, row))
        return self._holds(access.where, (row,))

    @property
    def _schema(self) -> Schema:
        schema = self.template.target
        assert schema is not None
        return schema

    @cached_property
    def blind(self) -> Any:
        """Formula that it only adds, and no read of it is recorded."""
        statement = self.template.statement
        z3 = self.template.z3
        if not isinstance(statement, st.Insert) or statement.overwrite:
            reads = self._defines and any(one.tracked != "nothing" for one in self._accesses)
            return z3.BoolVal(isinstance(statement, st.Vacuum) or (self._defines and not reads))
        terms = self.template.terms
        scans = [one for one in self._accesses if one.tracked in ("predicate", "files")]
        ways = scans_left_out(scans, statement, terms)
        if any(access.tracked == "plan" for access in self._accesses):
            ways.append(terms.some("blind"))
        return z3.simplify(z3.And(*ways))

    @cached_property
    def empty(self) -> Any:
        """Formula that it commits nothing."""
        if self.header.changes is not None:
            return self.header.where(lambda change: change.footprint.empty)
        reads = isinstance(self.template.statement, st.Read)
        if reads or self.template.always:
            return self.template.z3.BoolVal(reads)
        return self.template.z3.Bool(f"{self.template.terms.name} is empty")

    @property
    def writes(self) -> Any:
        """Formula that it commits changed rows or changed metadata."""
        if self._defines and not self._rewrites_all:
            return self.header.where(lambda change: change.changes)
        return self.template.z3.Not(self.empty)

    @cached_property
    def added(self) -> RowTerm:
        """Row in whose partition it adds a file, if it writes anything."""
        return self.template.terms.row(self._schema, f"{self._schema.name} beside what is added")

    @cached_property
    def removed(self) -> RowTerm:
        """Row whose file it removes, if it removes any."""
        return self.template.terms.row(self._schema, f"{self._schema.name} in what is removed")

    @cached_property
    def adds_file(self) -> Any:
        """Formula that its commit adds a file."""
        if self._defines and not self._rewrites_all:
            return self.template.z3.BoolVal(False)
        if self.adding:
            return self.writes
        return self.template.z3.Bool(f"{self.template.terms.name} adds a file")

    @cached_property
    def removes_file(self) -> Any:
        """Formula that its commit removes a file."""
        if self._defines and not self._rewrites_all:
            return self.template.z3.BoolVal(False)
        return self.template.z3.Bool(f"{self.template.terms.name} removes a file")

    @cached_property
    def known(self) -> list[Any]:
        """Formulas that a nonempty commit adds or removes a file, and which files these may be."""
        z3 = self.template.z3
        if self._defines and not self._rewrites_all:
            return []
        found = [z3.Implies(self.adds_file, self.puts(self.added))]
        if not self.adding and not isinstance(self.template.statement, st.Vacuum):
            found.append(z3.Implies(self.removes_file, self.touches(self.removed)))
            either = z3.Or(self.adds_file, self.removes_file)
            if self.header.changes is None:
                found.append(z3.Implies(self.writes, either))
            elif self._restores:
                found.append(z3.Implies(either, self.writes))
        return found

    @property
    def adding(self) -> bool:
        """True if its commit adds a file unless it is empty."""
        match self.template.statement:
            case st.Insert(overwrite=True, options=options):
                by_partition = bool(self._schema.partition_indexes) and not options.using
                return options.dynamic and by_partition
            case st.Insert():
                return True
            case st.Merge(matched=matched, by_source=by_source):
                return all(clause.action == "update" for clause in (*matched, *by_source))
        return isinstance(self.template.statement, st.Update | st.Optimize)

    @property
    def busy(self) -> Any:
        """Formula that there is a row that it adds, or whose file it touches."""
        if self.header.changes is not None:
            return self.writes
        if self.template.certain or isinstance(self.template.statement, st.Vacuum):
            return self.template.z3.BoolVal(True)
        row = self.template.terms.row(self._schema, f"{self._schema.name} that it is about")
        return self.template.z3.Or(self.touches(row), self.template.adds(row))

    def sets(self) -> Mapping[str, Any]:
        """Return for each set of a frame the formula that it is a member."""
        z3 = self.template.z3
        reader = isinstance(self.template.statement, st.Read)
        found = {"Writer": z3.BoolVal(not reader), "Reader": z3.BoolVal(reader)}
        if reader:
            always = ("NoData", "Empty")
            return found | {name: z3.BoolVal(name in always) for name in FLAGS}
        if self.header.changes is not None:
            return found | self._sets_of_changes()
        full, none = self._footprint(empty=False), self._footprint(empty=True)
        for name, holds in FLAGS.items():
            found[name] = z3.BoolVal(holds(full))
            if holds(none) != holds(full):
                found[name] = self.empty if holds(none) else z3.Not(self.empty)
        found["Default"] = self.header.replaced
        if isinstance(statement := self.template.statement, st.Insert) and statement.generates:
            # without rows, only a table without partitions gets a file, and so metadata
            always = z3.BoolVal(not self._schema.partition_indexes)
            found["Meta"] = found["Marked"] = z3.Or(always, self.writes)
            found["Empty"] = z3.Not(found["Meta"])
        return found | {"Blind": self.blind}

    def _sets_of_changes(self) -> dict[str, Any]:
        """Return the sets of a statement that alters its table; rows decide no other one."""
        z3 = self.template.z3
        found = {name: self.header.where(partial(_has, name)) for name in FLAGS}
        if self._rewrites_all:
            found["NoData"] = z3.BoolVal(True)
        if isinstance(self.template.statement, st.Insert):
            found["NoData"] = z3.Not(z3.Or(self.adds_file, self.removes_file))
        return found | {"Blind": self.blind}

    @property
    def _defines(self) -> bool:
        """True if it is a definition, which changes no row."""
        return isinstance(self.template.statement, st.Definition)

    @property
    def _rewrites_all(self) -> bool:
        """True if it rewrites all files without changing a row."""
        statement = self.template.statement
        return isinstance(statement, st.Definition) and isinstance(
            statement.change, st.RemoveMapping
        )

    @property
    def _restores(self) -> bool:
        """True if it restores an earlier version, which may be the newest one."""
        return isinstance(self.template.statement, st.Restore)

    @property
    def persists(self) -> str | None:
        """Relation without which the statement retries by itself instead of aborting, if any.

        A compaction retries while all its files are there.
        """
        compacts = isinstance(self.template.statement, st.Optimize)
        return "removes-meets-removes" if compacts and self.alterations else None

    @cached_property
    def items(self) -> Mapping[str, ItemAccess]:
        """Items besides rows that it reads or writes: definitions, and last generated values."""
        z3 = self.template.z3
        schema = self.template.target
        true, false = z3.BoolVal(True), z3.BoolVal(False)
        tables = {read.table for read in self.reads} | ({schema.name} if schema else set())
        found = {definition_item(table): ItemAccess(true, false) for table in tables}
        if schema is not None and self.header.changes is not None:
            redefines = self.header.where(lambda change: change.redefines)
            found[definition_item(schema.name)] = ItemAccess(true, redefines)
        statement = self.template.statement
        generates = isinstance(statement, st.Insert) and bool(statement.generates)
        syncs = isinstance(statement, st.Definition) and isinstance(
            statement.change, st.SyncIdentity
        )
        if schema is not None and (generates or syncs):
            found[high_water_marks(schema.name)] = ItemAccess(
                true, self.writes if generates else true
            )
        return found

    def _footprint(self, *, empty: bool) -> Footprint:
        """Return the footprint of the statement without rows."""
        statement = self.template.statement
        kinds = statement_kinds(statement)
        moves = isinstance(statement, st.Optimize | st.Vacuum)
        kept = isinstance(statement, st.Insert) and not statement.options.data_change
        unchecked = isinstance(statement, st.Truncate) and empty
        return Footprint(
            self._schema,
            adds=() if empty else ((),),
            removes=frozenset() if empty else frozenset({"some file"}),
            data_change=not (empty or moves or kept),
            changes_data=not (moves or unchecked),
            orders=isinstance(statement, st.Optimize) and statement.rewrite == "all",
            kinds=kinds,
            settings=Settings(always=isinstance(statement, st.Vacuum)),
        )

    def touches(self, row: RowTerm) -> Any:
        """Return the formula that it may remove the file of a row, judging by the row."""
        match self.template.statement:
            case st.Optimize(where=where):
                return self._holds(where, (row,))
            case st.Merge(matched=matched, by_source=by_source):
                if by_source:
                    return self.template.z3.BoolVal(True)
                return self.template.pairs(row) if matched else self.template.z3.BoolVal(False)
        if self._rewrites_all:
            return self.template.z3.BoolVal(True)
        if self._restores:
            return self.template.z3.And(self.writes, self.template.removes(row))
        return self.template.removes(row)

    def puts(self, row: RowTerm) -> Any:
        """Return the formula that it may add a file in the partition of a row."""
        template = self.template
        z3 = template.z3
        new = template.adds(row)
        if self._restores:
            return z3.And(self.writes, new)
        if not self._rewrites:
            return new
        gone = template.terms.row(self._schema, "rewritten")
        near = are_in_one_partition(template.terms, self._schema, gone, row)
        return z3.Or(new, z3.And(self.touches(gone), near, self._keeps(gone)))

    def _keeps(self, gone: RowTerm) -> Any:
        """Return the formula that a rewritten file with this row may contain another, kept one."""
        template = self.template
        z3 = template.z3
        if isinstance(template.statement, st.Merge | st.Optimize | st.Definition):
            return z3.BoolVal(True)
        kept = template.terms.row(self._schema, "kept")
        near = are_in_one_partition(template.terms, self._schema, kept, gone)
        return z3.And(near, z3.Not(template.removes(kept)))

    def clears(
        self, row: RowTerm, seen: Callable[[RowTerm], Any], sources: Sequence[SourceRow] = ()
    ) -> Any:
        """Return the formula that it may remove the file of a row and add none that is ``seen``.

        Then the file has only rows that it deletes, or moves to partitions that are not seen.
        ``sources`` are existing rows, each with its table.
        """
        template = self.template
        z3, schema = template.z3, self._schema
        match template.statement:
            case st.Optimize() | st.Vacuum() | st.Definition():
                return z3.Not(seen(row))
            case st.Insert(options=options):
                if options.dynamic and schema.partition_indexes and not options.using:
                    return z3.Not(seen(row))
                put = [seen(one) for one in template.certain]
                for table, known in ((schema.name, row), *sources):
                    made = template.made_of(table, known)
                    put += [z3.And(given.when, seen(given.values)) for given in made]
                return z3.Not(z3.Or(*put))
            case st.Update() | st.Merge():
                ends = [
                    z3.And(way.when, way.after is None or z3.Not(seen(way.after)))
                    for way in template.ends(row)
                ]
                as_it_was = isinstance(template.statement, st.Merge)
                return z3.Or(*ends, z3.And(as_it_was, z3.Not(seen(row))))
        return z3.BoolVal(True)

    def _source(self) -> tuple[list[SourceRow], Any]:
        """Return a row of another table that it needs to write anything, and facts about it."""
        template = self.template
        table = template.needs_row_of
        if table is None or table == self._schema.name:
            return [], template.z3.BoolVal(True)
        row = template.terms.row(template.schemas[table], f"{table} that is needed")
        given = (made.when for made in template.made_of(table, row))
        return [(table, row)], template.z3.Or(*given)

    @property
    def _rewrites(self) -> bool:
        """True if unchanged rows may be rewritten into the same partition."""
        match self.template.statement:
            case st.Update() | st.Merge() | st.Optimize():
                return True
            case st.Delete() | st.Insert(overwrite=True):
                return any(access.filters(self._schema).data for access in self._accesses[:1])
        return self._rewrites_all

    def may(self, relation: str, winner: Instance) -> Any | None:
        """Return the necessary condition for a relation from the winner; None if there is none."""
        assert isinstance(winner, DeltaInstance)
        z3, terms, schema = self.template.z3, self.template.terms, self._schema
        row = terms.row(schema, f"{schema.name} of both")
        match relation:
            case "adds-meets-reads":
                known = z3.Or(*self._recorded(row)) if schema.partition_indexes else True
                return z3.And(winner.puts(row), z3.Not(self.blind), known)
            case "removes-meets-reads":
                return z3.And(winner.touches(row), self._reads_file(row))
            case "removes-meets-removes":
                other = terms.row(schema, f"{schema.name} beside it")
                near = are_in_one_partition(terms, schema, row, other)
                return z3.And(winner.touches(row), self.touches(other), near)
        return None

    def without(
        self, relation: str, winner: Instance, *, measured: bool = False
    ) -> tuple[str, Any] | None:
        """Return another relation, and the condition under which this one holds without it.

        If a removed file has been read by this statement, it was replaced by one that overlaps the
        read, unless the file is cleared, or the recorded read is not certain. A statement that
        removes a file has read it, except a dynamic overwrite. With ``measured``, the statistics of
        a file are those of its rows, which are all cleared.
        """
        assert isinstance(winner, DeltaInstance)
        z3, terms, schema = self.template.z3, self.template.terms, self._schema
        if relation == "removes-meets-removes" and self._reads_what_it_removes:
            return "removes-meets-reads", z3.BoolVal(False)
        if relation not in ("removes-meets-reads", "removes-meets-removes"):
            return None
        row = terms.row(schema, f"{schema.name} whose file goes")
        # Reads are recorded as predicates of partitions: one that returned the removed file is met
        # by each file that is added to its partition. A dynamic overwrite records the partitions
        # that it writes to.
        if relation == "removes-meets-reads":
            by_partition = not isinstance(self.template.statement, st.Optimize)
            by_partition = by_partition and not self._rewrites_all
        else:
            by_partition = any(access.tracked == "predicate" for access in self._accesses)

        def seen(added: RowTerm) -> Any:
            here = z3.And(by_partition, are_in_one_partition(terms, schema, added, row))
            return z3.And(z3.Not(self.blind), z3.Or(here, self._surely_recorded(added)))

        sources, known = self._source()
        # some levels check a statement that writes nothing, which needs no source row
        cleared = z3.Or(
            z3.And(known, self.writes, winner.clears(row, seen, sources)),
            z3.And(self.empty, winner.clears(row, seen)),
        )
        met = z3.BoolVal(True)
        if relation == "removes-meets-reads":

            def goes(other: RowTerm) -> Any:
                deletes = isinstance(winner.template.statement, st.Delete)
                return z3.And(
                    are_in_one_partition(terms, schema, other, row),
                    winner.clears(other, seen, sources),
                    z3.Or(z3.Not(deletes), z3.Not(seen(row)), winner.template.removes(other)),
                )

            met = self._reads_file(row, goes if measured else None)
        return "adds-meets-reads", z3.And(winner.writes, winner.touches(row), met, cleared)

    @property
    def _own_reads(self) -> list[TemplateRead]:
        """Reads of the table that it writes to; a statement that rewrites all files reads all."""
        rewritten = self._accesses if self._rewrites_all else ()
        found = [read for read in self.reads if read.table == self._schema.name]
        return [*found, *map(self._read, rewritten)]

    def _surely_recorded(self, row: RowTerm) -> Any:
        """Return the formula that a file in a row's partition certainly overlaps recorded reads."""
        z3 = self.template.z3
        if not self._schema.partition_indexes:
            return z3.BoolVal(bool(self._own_reads))
        return z3.Or(*(read.surely(row) for read in self._own_reads if read.surely is not None))

    @property
    def _reads_what_it_removes(self) -> bool:
        """True if each file that it removes is recorded as read."""
        if isinstance(self.template.statement, st.Optimize) or self._rewrites_all:
            return True
        return any(
            access.role in ("target", "match") and access.tracked == "files" and not access.doubtful
            for access in self._accesses
        )

    def _recorded(self, row: RowTerm) -> list[Any]:
        """Return formulas that the recorded reads may include a file with this row."""
        compact = [self._read(a) for a in self._accesses if a.role == "compact"]
        return [
            read.recorded(row) for read in (*self._own_reads, *compact) if read.recorded is not None
        ]

    def _reads_file(self, row: RowTerm, holds: Callable[[RowTerm], Any] | None = None) -> Any:
        """Return the formula that a file in a row's partition may be recorded as read.

        If ``holds`` is given, it is true of all rows of the file, and the file is not skipped by
        its statistics.
        """
        if isinstance(self.template.statement, st.Optimize) or self._rewrites_all:
            return self.touches(row)
        z3 = self.template.z3
        found = []
        for access in self._accesses:
            read = self._read(access)
            if access.table == self._schema.name and read.files and read.recorded is not None:
                data = () if access.whole or access.doubtful else access.filters(self._schema).data
                left = [self._not_skipped(part, holds) for part in data] if holds else []
                found.append(z3.And(read.recorded(row), *left))
        return z3.Or(*found)

    def _not_skipped(self, part: ex.Expr, holds: Callable[[RowTerm], Any]) -> Any:
        """Return the formula that a file may have statistics with which it is not skipped.

        ``holds`` is true of all its rows. A minimum or maximum is the value of some row
        (``checker.delta.data_skipping``).
        """
        z3 = self.template.z3

        def some(*conditions: ex.Expr) -> Any:
            name = f"{self._schema.name} in the statistics"
            row = self.template.terms.row(self._schema, name)
            return z3.And(holds(row), z3.Or(*(self._holds(one, (row,)) for one in conditions)))

        match part:
            case ex.And(left, right):
                return z3.And(self._not_skipped(left, holds), self._not_skipped(right, holds))
            case ex.Or(left, right):
                return z3.Or(self._not_skipped(left, holds), self._not_skipped(right, holds))
            case ex.IsNull(ex.ColumnRef()) | ex.Not(ex.IsNull(ex.ColumnRef())):
                return some(part)
            case ex.Compare(op, ex.ColumnRef() as column, ex.Const() | ex.Parameter() as value):
                if not may_be_optimized(part) and column.type not in ("BOOLEAN", "TIMESTAMP"):
                    ways: tuple[ex.CompareOp, ...] = ("<=", ">=") if op == "=" else (op,)
                    return z3.And(*(some(ex.Compare(way, column, value)) for way in ways))
            case ex.In(ex.ColumnRef() as column, values):
                known = [ex.Const(value, column.type) for value in values if value is not None]
                return z3.And(
                    *(some(*(ex.Compare(op, column, v) for v in known)) for op in ("<=", ">="))
                )
        return z3.BoolVal(True)

    def must(self, relation: str, winner: Instance, *, alone: bool) -> Any:
        """Return a condition that suffices for a relation from the winner.

        A file that the winner certainly adds or removes is in the recorded read set. With
        ``alone``, no other transaction commits in between, so both see the same files.
        """
        assert isinstance(winner, DeltaInstance)
        z3 = self.template.z3
        if relation == "removes-meets-reads":
            if not alone:  # a removed file may have been added after this one's snapshot
                return z3.BoolVal(False)
            met = (
                read.surely(winner.removed)
                for read in self._own_reads
                if read.surely is not None and read.every_file
            )
            return z3.And(winner.removes_file, z3.Or(*met))
        if relation != "adds-meets-reads":
            return z3.BoolVal(False)
        said = [read.surely for read in self._own_reads if read.surely is not None]
        found = [
            z3.BoolVal(True) if not self._schema.partition_indexes else surely(row)
            for row in winner.template.certain
            for surely in said
        ]
        found += [z3.And(winner.adds_file, surely(winner.added)) for surely in said]
        return z3.And(z3.Not(self.blind), z3.Or(*found))

    def sure(self, relation: str, winner: Instance, fact: AssumedChange) -> Any:
        """Return the condition under which a changed row makes the relation hold.

        The commit check then compares the file of the row.
        """
        assert isinstance(winner, DeltaInstance)
        z3, read = self.template.z3, fact.read
        own = read.table == self._schema.name
        if relation == "adds-meets-reads" and fact.kind == "came":
            read_it = z3.Not(self.blind)
            if not self._schema.partition_indexes:
                return read_it
            if own and read.surely is not None:
                return z3.And(read_it, read.surely(fact.row))
        if relation == "removes-meets-reads" and fact.kind == "went":
            return z3.BoolVal(own and read.files and not read.doubtful)
        if relation == "removes-meets-removes" and fact.kind == "went":
            return z3.BoolVal(own and read.removed)
        return z3.BoolVal(False)


DELTA = InstanceBuilder("delta", DeltaInstance)
"""Instances of statements on Delta's log."""
