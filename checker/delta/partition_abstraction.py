"""Partition abstraction: effect of a statement on partitions, for all values in them (its outline).

A statement whose conditions use only partition columns treats all rows of a partition alike: it
reads, removes or rewrites each of them or none. If a condition uses values, the outline says "may",
and execution decides. Statements without an outline are rejected with `UnsupportedScope`: rows that
move between partitions, updates and deletes by value, UNION ALL, MERGE with matched clauses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.delta.statement_kinds import statement_kinds
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import columns_in
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.statement import Clone, Convert, Create, Definition, Replace, Restore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NoReturn

    from isolitmus.checker.delta.data_skipping import Filters
    from isolitmus.checker.delta.read_set import Access
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Row

OTHER = (Raw, Definition, Restore, Replace, Create, Clone, Convert, st.Vacuum, st.Block)
"""Statements that concern more than rows."""


class UnsupportedScope(IsolitmusError):
    """A statement or a table has no outline; the message says why."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """Rows inserted into a partition, always or depending on what the statement reads.

    ``when``: ``always``; ``any``: if there is a row in some partition of ``source``; ``none``: if
    there is none. If ``sure`` is False, the last two cases depend on values as well.
    """

    partition: int
    when: str = "always"
    source: frozenset[int] = frozenset()
    sure: bool = True


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """Partitions of which a read reads every row, and those of which it may read some."""

    whole: frozenset[int] = frozenset()
    partly: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Outline:
    """Abstraction of a statement by partition numbers."""

    partition_reads: tuple[PartitionRead, ...] = ()
    """Abstraction of each of its reads."""
    recorded: frozenset[int] = frozenset()
    """Partitions in which an added file overlaps the recorded read set."""
    files: frozenset[int] = frozenset()
    """Partitions of which all files are recorded as read."""
    may_files: frozenset[int] = frozenset()
    """Partitions of which some files are recorded as read, depending on statistics."""
    kills: frozenset[int] = frozenset()
    """Partitions whose rows are deleted."""
    updates: frozenset[int] = frozenset()
    """Partitions whose rows are rewritten."""
    compacts: frozenset[int] = frozenset()
    """Partitions whose files, if there are several, become one."""
    inserts: tuple[Insertion, ...] = ()
    """Rows that it inserts."""
    blind: bool = False
    """True if it is a blind append."""
    changes_data: bool = True
    """True if it may change rows of the table."""
    kinds: tuple[str, ...] = ()
    """Kinds of its statement (``checker.delta.statement_kinds``)."""

    @property
    def sure(self) -> bool:
        """True if it is independent of values."""
        reads = not any(read.partly for read in self.partition_reads) and not self.may_files
        return reads and all(insertion.sure for insertion in self.inserts)

    def reads(self, partition: int) -> bool:
        """Return whether it reads every row of the partition."""
        return any(partition in read.whole for read in self.partition_reads)

    def may_read(self, partition: int) -> bool:
        """Return whether it may read some rows of the partition."""
        return any(partition in read.partly for read in self.partition_reads)


def partitions(schema: Schema, statements: Sequence[Statement], live: Sequence[Row]) -> list[Row]:
    """Return all partitions that can exist: those of the live files and those inserted into."""
    found = dict.fromkeys(live)
    for statement in statements:
        for row in _constants(schema, statement):
            found[row] = None
    return list(found)


def outline(statement: Statement, schema: Schema, known: Sequence[Row]) -> Outline:
    """Return the outline of a statement on a table with these partitions.

    Raises
    ------
    UnsupportedScope
        If the statement or the table has none.

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> table = scope("table")
    >>> update = table.statements[6][0]
    >>> found = outline(update, table.tables["t"], [(0,), (1,)])
    >>> update.sql, found.updates
    ('UPDATE t SET id = id + 10 WHERE part = 0', frozenset({0}))
    """
    if schema.rows_per_file is not None:
        raise UnsupportedScope(f"table {schema.name} has rows_per_file")
    if schema.vectors:
        raise UnsupportedScope(f"table {schema.name} has deletion vectors")
    return _Outliner(schema, known).outline(statement)


def _constants(schema: Schema, statement: Statement) -> list[Row]:
    """Return the partitions into which a statement inserts constants."""
    match statement:
        case st.Insert(query=query):
            tuples = [
                row for b in query for row in (b.rows if isinstance(b, qu.Values) else [b.items])
            ]
        case st.Merge(source=source, not_matched=clauses):
            values = [row for b in source if isinstance(b, qu.Values) for row in b.rows]
            tuples = [
                tuple(_of_source(value, row) for value in clause.values)
                for clause in clauses
                for row in values
            ]
        case _:
            return []
    found = []
    for items in tuples:
        chosen = [items[i] for i in schema.partition_indexes]
        if not any(map(_varies, chosen)):
            found.append(tuple(evaluate(item, ()) for item in chosen))
    return found


def _of_source(value: ex.Expr, row: tuple[ex.Expr, ...]) -> ex.Expr:
    return row[value.index] if isinstance(value, ex.ColumnRef) and value.side == 1 else value


def _varies(expr: ex.Expr) -> bool:
    return any(isinstance(e, ex.ColumnRef | ex.Aggregate | ex.Subquery) for e in ex.walk(expr))


@dataclass(frozen=True, slots=True)
class _Outliner:
    schema: Schema
    known: Sequence[Row]

    def outline(self, statement: Statement) -> Outline:
        """Return the outline of a statement; raise UnsupportedScope if it has none."""
        if isinstance(statement, OTHER):
            raise UnsupportedScope("a statement is about more than rows")
        if statement.origin is not None:
            table = statement.origin.tables.get(self.schema.name, self.schema)
            if table.columns != self.schema.columns:
                self.refuse(statement, "is about columns that another one alters")
        found = accesses(statement, {self.schema.name: self.schema})
        if any(access.subquery is not None for access in found):
            raise UnsupportedScope(f"'{statement.sql}' has a subquery")
        recorded = [(a.tracked, a.filters(self.schema)) for a in found if a.tracked != "nothing"]
        sure = [f for tracked, f in recorded if tracked == "files" and not f.data]
        maybe = [f for tracked, f in recorded if tracked == "files" and f.data]
        files = self.union(sure)
        known = Outline(
            tuple(self.partition_read(access) for access in found if access.role != "compact"),
            recorded=self.union(filters for _, filters in recorded),
            files=files,
            may_files=self.union(maybe) - files,
            blind=not recorded and not isinstance(statement, st.Read),
            kinds=statement_kinds(statement),
        )
        return self.written(statement, known)

    def written(self, statement: Statement, known: Outline) -> Outline:
        """Return the outline with the statement's writes, given one with its reads."""
        match statement:
            case st.Insert():
                return self.insert(statement, known)
            case st.Delete(where=where):
                return replace(known, kills=self.exactly(where, statement))
            case st.Update(where=where, sets=sets):
                if any(index in self.schema.partition_indexes for index, _ in sets):
                    self.refuse(statement, "moves rows between partitions")
                return replace(known, updates=self.exactly(where, statement))
            case st.Merge():
                return self.merge(statement, known)
            case st.Truncate():
                return replace(known, kills=frozenset(range(len(self.known))))
            case st.Optimize(where=where):
                if statement.rewrite != "several":
                    self.refuse(statement, "rewrites single files")
                there = self.exactly(where, statement)
                return replace(known, compacts=there, changes_data=False)
            case st.Read():
                return known
            case _:  # without a case it would count as a statement that writes nothing
                self.refuse(statement, "is not known to the search by partitions")

    def insert(self, statement: st.Insert, known: Outline) -> Outline:
        """Return the outline of an INSERT: the partitions that it replaces or fills."""
        if len(statement.query) != 1:
            self.refuse(statement, "has UNION ALL")
        if statement.where is not None or statement.options != st.Options():
            self.refuse(statement, "overwrites a part of the table, or with an option")
        if statement.overwrite:
            known = replace(known, kills=frozenset(range(len(self.known))))
        branch = statement.query[0]
        if isinstance(branch, qu.Values):
            inserts = tuple(Insertion(self.into(row, statement)) for row in branch.rows)
        elif isinstance(branch, qu.Joined):
            self.refuse(statement, "has a join or a nested query")
        else:
            inserts = self.copied(branch, known.partition_reads[-1], statement)
        return replace(known, inserts=inserts)

    def copied(
        self, branch: qu.Select, read: PartitionRead, statement: Statement
    ) -> tuple[Insertion, ...]:
        """Return the rows that a SELECT inserts: one aggregate, or one for each row read."""
        if branch.keys:
            self.refuse(statement, "has GROUP BY")
        chosen = [branch.items[i] for i in self.schema.partition_indexes]
        source = read.whole | read.partly
        if branch.grouped:
            return (Insertion(self.into(branch.items, statement)),)
        if not any(map(_varies, chosen)):
            return (Insertion(self.into(branch.items, statement), "any", source, not read.partly),)
        own = [
            isinstance(item, ex.ColumnRef) and item.index == i
            for item, i in zip(chosen, self.schema.partition_indexes, strict=True)
        ]
        if not all(own):
            self.refuse(statement, "computes the partition of a row")
        return tuple(Insertion(p, "any", frozenset((p,)), p in read.whole) for p in sorted(source))

    def merge(self, statement: st.Merge, known: Outline) -> Outline:
        """Return the outline of a MERGE that only inserts literal rows that do not match."""
        if statement.matched or statement.by_source or len(statement.source) != 1:
            self.refuse(statement, "has a clause that changes rows, or UNION ALL")
        source = statement.source[0]
        if not isinstance(source, qu.Values):
            self.refuse(statement, "has a table as its source")
        (target,) = known.partition_reads
        sure = not target.partly and len(source.rows) == 1
        unconditional = all(clause.condition is None for clause in statement.not_matched)
        inserts = tuple(
            Insertion(
                self.into(tuple(_of_source(v, row) for v in clause.values), statement),
                "none", target.whole | target.partly, sure and unconditional,
            )
            for clause in statement.not_matched
            for row in source.rows
        )  # fmt: skip
        if not unconditional:
            self.refuse(statement, "inserts on a condition")
        return replace(known, inserts=inserts)

    def partition_read(self, access: Access) -> PartitionRead:
        """Return the partitions of an access: whole if it uses only partition columns."""
        where = self.union([access.filters(self.schema)])
        return (
            PartitionRead(where)
            if self.on_partitions(access.where)
            else PartitionRead(partly=where)
        )

    def exactly(self, where: ex.Expr | None, statement: Statement) -> frozenset[int]:
        if not self.on_partitions(where):
            self.refuse(statement, "looks at values")
        return self.matching((where,) if where is not None else ())

    def union(self, found: Iterable[Filters]) -> frozenset[int]:
        return frozenset(p for filters in found for p in self.matching(filters.partition))

    def matching(self, parts: tuple[ex.Expr, ...]) -> frozenset[int]:
        """Return the numbers of the partitions that satisfy all these conditions."""
        return frozenset(
            k
            for k, partition in enumerate(self.known)
            if all(evaluate(p, (self.schema.spread(partition),)) is True for p in parts)
        )

    def on_partitions(self, where: ex.Expr | None) -> bool:
        read = () if where is None else columns_in(where)
        return all(c.side == 0 and c.index in self.schema.partition_indexes for c in read)

    def into(self, items: tuple[ex.Expr, ...], statement: Statement) -> int:
        """Return the number of the partition into which a row is inserted."""
        chosen = [items[i] for i in self.schema.partition_indexes]
        if any(map(_varies, chosen)):
            self.refuse(statement, "computes the partition of a row")
        return self.known.index(tuple(evaluate(item, ()) for item in chosen))

    def refuse(self, statement: Statement, why: str) -> NoReturn:
        raise UnsupportedScope(f"'{statement.sql}' {why}")
