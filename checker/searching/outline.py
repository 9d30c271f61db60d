"""What a statement does to partitions, whatever the values in them: the outline a solver can follow.

A statement that looks at partition columns only does to all rows of a partition the same: it reads,
removes or rewrites each of them or none. Where a condition looks at values, the outline says "may",
and execution decides. Statements that do not fit at all (rows that move between partitions, updates
and deletes by value, UNION ALL, MERGE with matched clauses) are refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.running.skipping import (
    Filters,
    command_filters,
    merge_filters,
    query_filters,
)
from isolitmus.model import expression as ex
from isolitmus.model import statement as st
from isolitmus.model.definition import (
    Clone,
    Convert,
    Create,
    Definition,
    Late,
    Replace,
    Restore,
)
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.normal import columns
from isolitmus.model.raw import Raw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from isolitmus.model.schema import Schema
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Row

__all__ = ["Insertion", "Look", "Outline", "Unfit", "outline", "partitions"]


class Unfit(IsolitmusError):
    """A statement or a table that has no outline; the message says why."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """Rows put into a partition: always, or depending on what the statement reads.

    ``when``: ``always``; ``any``: if there is a row in some partition of ``source``; ``none``: if
    there is none. ``sure`` False: in the last two cases values have a say, too.
    """

    partition: int
    when: str = "always"
    source: frozenset[int] = frozenset()
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Look:
    """One read: the partitions of which it reads every row, and those of which it may read some."""

    whole: frozenset[int] = frozenset()
    partly: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Outline:
    """A statement on partitions, by their numbers.

    ``looks`` are its reads. ``recorded``: a file added there
    meets what the commit has recorded as read. ``files``: files there are recorded as read, ``all``
    of them or, by statistics, some. ``kills`` and ``updates``: rows there are deleted or rewritten.
    ``compacts``: where there are several files they become one.
    """

    looks: tuple[Look, ...] = ()
    recorded: frozenset[int] = frozenset()
    files: frozenset[int] = frozenset()
    may_files: frozenset[int] = frozenset()
    kills: frozenset[int] = frozenset()
    updates: frozenset[int] = frozenset()
    compacts: frozenset[int] = frozenset()
    inserts: tuple[Insertion, ...] = ()
    blind: bool = False
    changes_data: bool = True

    @property
    def sure(self) -> bool:
        """Whether values have no say in it at all."""
        looks = not any(look.partly for look in self.looks) and not self.may_files
        return looks and all(insertion.sure for insertion in self.inserts)

    def reads(self, partition: int) -> bool:
        """Whether it reads every row of the partition."""
        return any(partition in look.whole for look in self.looks)

    def may_read(self, partition: int) -> bool:
        """Whether it may read some rows of the partition."""
        return any(partition in look.partly for look in self.looks)


def partitions(schema: Schema, statements: Sequence[Statement], live: Sequence[Row]) -> list[Row]:
    """The partitions that there can ever be: those of the live files and those inserted into."""
    found = dict.fromkeys(live)
    for statement in statements:
        for row in _constants(schema, statement):
            found[row] = None
    return list(found)


def outline(statement: Statement, schema: Schema, known: Sequence[Row]) -> Outline:
    """The outline of a statement on a table with these partitions. Unfit says why there is none.

    >>> from isolitmus.specs import scope
    >>> table = scope("table")
    >>> update = table.statements[6][0]
    >>> found = outline(update, table.tables["t"], [(0,), (1,)])
    >>> update.sql, found.updates
    ('UPDATE t SET id = id + 10 WHERE part = 0', frozenset({0}))
    """
    if schema.rows_per_file is not None:
        raise Unfit(f"table {schema.name} has rows_per_file")
    if schema.vectors:
        raise Unfit(f"table {schema.name} has deletion vectors")
    if ex.subqueries(*_expressions(statement)):
        raise Unfit(f"'{statement.sql}' has a subquery")
    return _Outliner(schema, known).outline(statement)


def _constants(schema: Schema, statement: Statement) -> list[Row]:
    """The partitions that a statement inserts into, as far as they are constants."""
    match statement:
        case st.Insert(query=query):
            tuples = [
                row for b in query for row in (b.rows if isinstance(b, st.Values) else [b.items])
            ]
        case st.Merge(source=source, not_matched=clauses):
            values = [row for b in source if isinstance(b, st.Values) for row in b.rows]
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
            found.append(tuple(ex.evaluate(item, ()) for item in chosen))
    return found


def _of_source(value: ex.Expr, row: tuple[ex.Expr, ...]) -> ex.Expr:
    return row[value.index] if isinstance(value, ex.ColumnRef) and value.side == 1 else value


def _varies(expr: ex.Expr) -> bool:
    return any(isinstance(e, ex.ColumnRef | ex.Aggregate | ex.Subquery) for e in ex.walk(expr))


def _expressions(statement: Statement) -> list[ex.Expr | None]:
    """The expressions of a statement in which a subquery may stand."""
    match statement:
        case st.Insert(query=query) | st.Read(query=query) | st.Merge(source=query):
            rows = [r for b in query for r in (b.rows if isinstance(b, st.Values) else [b.items])]
            found = [*(branch.where for branch in query), *(e for row in rows for e in row)]
            if isinstance(statement, st.Merge):
                found += [v for clause in statement.matched for _, v in clause.sets]
                found += [v for clause in statement.not_matched for v in clause.values]
            return found
        case st.Update(sets=sets):
            return [value for _, value in sets]
        case _:
            return []


@dataclass(frozen=True, slots=True)
class _Outliner:
    schema: Schema
    known: Sequence[Row]

    def outline(self, statement: Statement) -> Outline:
        match statement:
            case Raw() | Definition() | Restore() | Replace() | Create() | Clone() | Convert():
                raise Unfit("a statement is about more than rows")
            case Late() | st.Vacuum():
                raise Unfit("a statement is about more than rows")
            case st.Read(query=query):
                return self.reader(query)
            case st.Insert():
                return self.insert(statement)
            case st.Delete(where=where):
                there = self.exactly(where, statement)
                recorded = self.where(command_filters(self.schema, where))
                return Outline((Look(there),), recorded, files=there, kills=there)
            case st.Update(where=where, sets=sets):
                if any(index in self.schema.partition_indexes for index, _ in sets):
                    self.refuse(statement, "moves rows between partitions")
                there = self.exactly(where, statement)
                recorded = self.where(command_filters(self.schema, where))
                return Outline((Look(there),), recorded, files=there, updates=there)
            case st.Merge():
                return self.merge(statement)
            case st.Truncate():
                every = frozenset(range(len(self.known)))
                return Outline((Look(every),), every, files=every, kills=every)
            case st.Optimize(where=where):
                if statement.rewrite != "several":
                    self.refuse(statement, "rewrites single files")
                there = self.exactly(where, statement)
                return Outline(recorded=there, compacts=there, changes_data=False)

    def reader(self, query: st.Query) -> Outline:
        return Outline(tuple(self.look(b.where) for b in query if isinstance(b, st.Select)))

    def insert(self, statement: st.Insert) -> Outline:
        if len(statement.query) != 1:
            self.refuse(statement, "has UNION ALL")
        if statement.where is not None or statement.dynamic or not statement.data_change:
            self.refuse(statement, "overwrites a part of the table, or with an option")
        everything = frozenset(range(len(self.known)))
        kills = everything if statement.overwrite else frozenset[int]()
        overwritten = (Look(everything),) if statement.overwrite else ()
        branch = statement.query[0]
        if isinstance(branch, st.Values):
            inserts = tuple(Insertion(self.into(row, statement)) for row in branch.rows)
            return Outline(
                overwritten, kills, files=kills, kills=kills, inserts=inserts,
                blind=not statement.overwrite,
            )  # fmt: skip
        look = self.look(branch.where)
        filters = query_filters(self.schema, branch.where)
        files = self.where(filters)
        return Outline(
            (*overwritten, look),
            recorded=files | kills,
            files=kills if filters.data else files | kills,
            may_files=files - kills if filters.data else frozenset(),
            kills=kills,
            inserts=self.copied(branch, look, statement),
        )

    def copied(self, branch: st.Select, look: Look, statement: Statement) -> tuple[Insertion, ...]:
        """The rows that a SELECT puts in: one aggregate, or one for each row read."""
        if branch.keys:
            self.refuse(statement, "has GROUP BY")
        chosen = [branch.items[i] for i in self.schema.partition_indexes]
        source = look.whole | look.partly
        if branch.grouped:
            return (Insertion(self.into(branch.items, statement)),)
        if not any(map(_varies, chosen)):
            return (Insertion(self.into(branch.items, statement), "any", source, not look.partly),)
        own = [
            isinstance(item, ex.ColumnRef) and item.index == i
            for item, i in zip(chosen, self.schema.partition_indexes, strict=True)
        ]
        if not all(own):
            self.refuse(statement, "computes the partition of a row")
        return tuple(Insertion(p, "any", frozenset((p,)), p in look.whole) for p in sorted(source))

    def merge(self, statement: st.Merge) -> Outline:
        if statement.matched or statement.by_source or len(statement.source) != 1:
            self.refuse(statement, "has a clause that changes rows, or UNION ALL")
        source = statement.source[0]
        if not isinstance(source, st.Values):
            self.refuse(statement, "has a table as its source")
        filters = merge_filters(self.schema, statement.on, ())
        there = self.where(filters)
        by_partition = not filters.data and all(c.side == 0 for c in columns(statement.on))
        sure = by_partition and len(source.rows) == 1
        unconditional = all(clause.condition is None for clause in statement.not_matched)
        inserts = tuple(
            Insertion(
                self.into(tuple(_of_source(v, row) for v in clause.values), statement),
                "none", there, sure and unconditional,
            )
            for clause in statement.not_matched
            for row in source.rows
        )  # fmt: skip
        if not unconditional:
            self.refuse(statement, "inserts on a condition")
        return Outline(
            (Look(there) if by_partition else Look(partly=there),),
            recorded=there,
            files=frozenset() if filters.data else there,
            may_files=there if filters.data else frozenset(),
            inserts=inserts,
        )

    def look(self, where: ex.Expr | None) -> Look:
        if where is None or self.on_partitions(where):
            return Look(self.matching((where,) if where is not None else ()))
        return Look(partly=self.where(query_filters(self.schema, where)))

    def exactly(self, where: ex.Expr | None, statement: Statement) -> frozenset[int]:
        if where is not None and not self.on_partitions(where):
            self.refuse(statement, "looks at values")
        return self.matching((where,) if where is not None else ())

    def where(self, filters: Filters) -> frozenset[int]:
        return self.matching(filters.partition)

    def matching(self, parts: tuple[ex.Expr, ...]) -> frozenset[int]:
        return frozenset(
            k
            for k, partition in enumerate(self.known)
            if all(ex.evaluate(p, (self.schema.spread(partition),)) is True for p in parts)
        )

    def on_partitions(self, where: ex.Expr) -> bool:
        return all(c.index in self.schema.partition_indexes for c in columns(where))

    def into(self, items: tuple[ex.Expr, ...], statement: Statement) -> int:
        chosen = [items[i] for i in self.schema.partition_indexes]
        if any(map(_varies, chosen)):
            self.refuse(statement, "computes the partition of a row")
        return self.known.index(tuple(ex.evaluate(item, ()) for item in chosen))

    def refuse(self, statement: Statement, why: str) -> NoReturn:
        raise Unfit(f"'{statement.sql}' {why}")
