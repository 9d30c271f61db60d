"""Read sets of statements on Delta, and the files that their scans leave.

`accesses` is the only definition of what a statement reads, and what its transaction records. The
predicates and files of a footprint, the files that an effect depends on, the partitions that a
solver follows, the read sets of delta-rs, and the table of docs/statements.md are derived from it.
Accesses have the order of an effect's reads: the target first, then the queries branch by branch,
then the values.

The effect of a statement depends only on the files of the snapshot that its scans leave
(`scanned_tables`). Therefore Delta may compare commits by these files, and a sweep runs a statement
once on all states that agree on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Literal, assert_never

from isolitmus.checker.delta.data_skipping import (
    Filters,
    command_filters,
    in_some_partition,
    merge_filters,
    query_filters,
    scan_condition,
)
from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import raw_transaction as rw
from isolitmus.model.sql import statement as df
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.conditions import columns_in, normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.model.format import Scans
    from isolitmus.model.sql.schema import Schema

Role = Literal["target", "using", "match", "compact", "query", "subquery", "value"]
"""Purpose of an access.

``target``: rows that match a condition and are changed. ``using``: rows that equal a new one in
some columns (replaceUsing). ``match``: rows that ON pairs. ``compact``: files without their rows.
``query``: a table in FROM. ``subquery``: a table in a subquery of a query. ``value``: one in a
subquery in SET or in the values of a MERGE.
"""
Tracked = Literal["nothing", "plan", "predicate", "files"]
"""Part of an access that the transaction records.

``nothing``; ``plan``: only that the table is in a plan, which matters if no files are skipped;
``predicate``: the predicate on partitions; ``files``: also the files that pruning and skipping
leave.
"""


@dataclass(frozen=True, slots=True)
class Access:
    """One read of a table by a statement."""

    table: str
    """Name of the table."""
    where: ex.Expr | None
    """Condition as written; None for all rows.

    Also None if it depends on the written rows (dynamic overwrite, replaceUsing), until they are
    known.
    """
    role: Role
    """Purpose of the access."""
    tracked: Tracked = "files"
    """Part of the access that the transaction records."""
    whole: bool = False
    """True if the transaction is marked as reading the whole table."""
    planned: bool = False
    """True if it reads the database at planning time, before the snapshot is taken."""
    version: int | None = None
    """Init statement whose result it reads: a constant, and no read at row level."""
    clauses: tuple[ex.Expr | None, ...] = ()
    """Conditions of which a row that ON pairs must satisfy at least one."""
    subquery: ex.Subquery | None = None
    """Subquery that makes the access, if any."""
    doubtful: tuple[qu.Joined, int] | None = None
    """Join that contains it, and its side, if what Spark's optimizer makes of it is not modelled.

    Then this access is the most that is recorded.
    """

    narrowed: bool = False
    """True if Spark may add conditions on data to its scan, which ON transfers to a MERGE's source.
    """

    @property
    def scan(self) -> bool:
        """True if Delta prepares the scan while the transaction is active
        (PrepareDeltaScan.scala).
        """
        return self.role in ("query", "subquery") and not self.planned

    def filters(self, schema: Schema) -> Filters:
        """Return the condition as filters for pruning and skipping; ``schema`` is the table's."""
        return _filters(self, schema)


def accesses(statement: st.Statement, schemas: Mapping[str, Schema]) -> tuple[Access, ...]:
    """Return the reads of a statement on tables with these schemas.

    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = {"t": Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))}
    >>> (target, value) = accesses(read_statement(
    ...     "UPDATE t SET id = (SELECT max(id) FROM t) WHERE part = 1", t), t)
    >>> str(target.where), target.role, target.tracked, value.role, value.tracked
    ('part = 1', 'target', 'files', 'value', 'nothing')
    """
    return _remembered(statement, *schemas.values())


@memoize_by_identity
def _filters(access: Access, schema: Schema) -> Filters:
    """Return the filters that Delta derives from an access, by its role."""
    match access.role:
        case "target" | "compact":
            return command_filters(schema, access.where)
        case "using":
            return Filters((), () if access.where is None else (access.where,))
        case "match":
            return merge_filters(schema, access.where, access.clauses)
        case "query":
            return query_filters(schema, None if access.whole else access.where)
        case "subquery" | "value":
            assert access.subquery is not None
            return query_filters(schema, _own(access.subquery))


@memoize_by_identity
def _remembered(statement: st.Statement, *schemas: Schema) -> tuple[Access, ...]:
    return tuple(_accesses(statement, {schema.name: schema for schema in schemas}))


def _accesses(statement: st.Statement, schemas: Mapping[str, Schema]) -> Iterator[Access]:
    """Yield the accesses of a statement: its target first, then its queries."""
    match statement:
        case st.Read(query=query) | df.Create(query=tuple(query)):
            yield from _of_query(query)
        case st.Insert(target=target, query=query, options=st.Options(stream=stream)):
            if statement.overwrite:
                yield _replaced(statement, schemas[target])
            yield from _of_query(query, target, stream=stream)
        case st.Delete(target=target, where=where):
            yield Access(target, where, "target")
            yield from _of_subqueries(target, where)
        case st.Update(target=target, where=where, sets=sets):
            yield Access(target, where, "target")
            yield from _of_subqueries(target, where)
            yield from _of_values(value for _, value in sets)
        case st.Merge(target=target):
            yield _matched(statement)
            narrowed = _transfers_conditions(statement.on)
            for read in _of_query(statement.source, target):
                yield replace(read, narrowed=narrowed and read.role == "query")
            stored = [v for c in (*statement.matched, *statement.by_source) for _, v in c.sets]
            yield from _of_values((*stored, *(v for c in statement.not_matched for v in c.values)))
        case st.Truncate(target=target):
            yield Access(target, None, "target")
        case st.Optimize(target=target, where=where):
            yield Access(target, where, "compact", "predicate")
        case df.Replace(target=target, query=replacing):
            yield Access(target, None, "target")
            yield from _of_query(replacing or (), target)
        case df.Restore(target=target, version=init):
            yield Access(target, None, "target", "nothing")
            yield Access(target, None, "query", "nothing", version=init)
        case df.Clone(source=source, version=past):
            yield Access(source, None, "query", "nothing", planned=past is None, version=past)
        case df.Definition(target=target, change=df.AddConstraint() | df.SyncIdentity() as change):
            yield Access(target, None, "target", whole=isinstance(change, df.SyncIdentity))
        case df.Definition(target=target, change=df.RemoveMapping()):
            yield Access(target, None, "compact")
        case rw.Raw(target=target, reads=reads):
            for written in reads:
                yield from _of_raw(written, schemas[target])
        case st.Vacuum() | st.Block() | df.Create() | df.Convert() | df.Definition():
            pass  # no reads of its own
        case _:
            assert_never(statement)


def _transfers_conditions(on: ex.Expr) -> bool:
    """Return whether ON has a condition on the target alone, whose column equals one of the source.

    Then the same condition holds for the source (InferFiltersFromConstraints).
    """
    parts = [(part, {(c.side, c.index) for c in columns_in(part)}) for part in ex.conjuncts(on)]
    equated = {
        column
        for part, columns in parts
        if isinstance(part, ex.Compare)
        and part.op == "="
        and isinstance(part.left, ex.ColumnRef)
        and isinstance(part.right, ex.ColumnRef)
        for column in columns
    }
    return any({side for side, _ in columns} == {0} and columns & equated for _, columns in parts)


def _replaced(statement: st.Insert, schema: Schema) -> Access:
    """Return the read of the rows that an overwrite replaces.

    A dynamic overwrite finds the partitions that it replaces without recording a file as read.
    """
    if statement.options.using:
        return Access(schema.name, None, "using")
    dynamic = statement.options.dynamic and bool(schema.partition_indexes)
    return Access(schema.name, statement.where, "target", "predicate" if dynamic else "files")


def _matched(statement: st.Merge) -> Access:
    """Return the read of the target by a MERGE.

    It is the whole table if there is a clause WHEN NOT MATCHED BY SOURCE
    (ClassicMergeExecutor.scala, findTouchedFiles).
    """
    if statement.by_source:
        return Access(statement.target, None, "match")
    conditions = () if statement.not_matched else tuple(c.condition for c in statement.matched)
    return Access(statement.target, statement.on, "match", clauses=conditions)


def _of_query(
    query: qu.Query, target: str | None = None, *, stream: bool = False
) -> Iterator[Access]:
    for branch in query:
        yield from branch_accesses(branch, target, stream=stream)


def branch_accesses(
    branch: qu.Branch, target: str | None = None, *, stream: bool = False
) -> Iterator[Access]:
    """Yield the reads of a branch: its FROM, then its subqueries.

    Only reads of ``target`` are recorded, unless they use another path to its files, or another
    version. The query of a micro-batch (``stream``) is planned before its transaction starts, so
    its scans are not recorded. If the target is in its plan, at whatever version, it is marked as
    reading the whole table. Subqueries are expressions, which this check ignores (DeltaSink.scala
    113-175).
    """
    items = branch.rows if isinstance(branch, qu.Values) else (branch.items,)
    if isinstance(branch, qu.Joined):
        for side, source in enumerate(branch.sources):
            for read in _of_query(source.query, target, stream=stream):
                yield _in_join(read, branch, side)
    if isinstance(branch, qu.Select):
        known = branch.table == target and not branch.alias
        access = Access(branch.table, branch.where, "query", "nothing", version=branch.version)
        if _is_false(branch.where):
            yield replace(access, planned=stream)  # Spark plans no scan for a false condition
        elif stream:
            kind: Tracked = "predicate" if known else "nothing"
            yield replace(access, tracked=kind, whole=known, planned=True)
        elif known:
            yield replace(access, tracked="files" if branch.version is None else "plan")
        else:
            yield access
    values = (item for row in items for item in row)
    yield from _of_subqueries(target, branch.where, *values, stream=stream)


def _of_subqueries(
    target: str | None, *exprs: ex.Expr | None, stream: bool = False
) -> Iterator[Access]:
    """Yield an access per subquery; files are tracked only on the target, outside of streams."""
    for subquery in ex.subqueries(*exprs):
        scanned = subquery.table == target and not stream and not _is_false(subquery.where)
        kind: Tracked = "files" if scanned else "nothing"
        yield Access(
            subquery.table, subquery.where, "subquery", kind, planned=stream, subquery=subquery
        )


def _is_false(condition: ex.Expr | None) -> bool:
    return condition is not None and normalize(condition) == ex.Const(False, "BOOLEAN")


def _in_join(access: Access, branch: qu.Joined, side: int) -> Access:
    """Return the read of a source of a join, with the condition that Spark pushes to its scan."""
    if access.tracked != "files" or access.role != "query":
        return access
    where, certain = scan_condition(branch, side)
    return replace(access, where=where, doubtful=None if certain else (branch, side))


def _of_values(values: Iterator[ex.Expr] | tuple[ex.Expr, ...]) -> Iterator[Access]:
    """Yield reads by subqueries in values, which are not recorded (docs/delta.md, H1)."""
    for found in ex.subqueries(*values):
        yield Access(found.table, found.where, "value", "nothing", planned=True, subquery=found)


def _of_raw(read: rw.RawRead, schema: Schema) -> Iterator[Access]:
    """Yield the accesses of a read of a raw transaction."""
    table = schema.name
    match read:
        case rw.Filter(where=where):
            yield Access(table, where, "match")
        case rw.Scan(query=query):
            yield from _of_query(query, table)
        case rw.WholeTable():
            yield Access(table, None, "match", "predicate", whole=True)
        case rw.InPartitions(partitions):
            yield Access(table, in_some_partition(schema, partitions), "target", "predicate")
        case rw.Application():
            pass


def _own(subquery: ex.Subquery) -> ex.Expr | None:
    """Return the part of a subquery's condition that concerns only its own table."""

    def alone(part: ex.ColumnRef | ex.Subquery) -> ex.Expr:
        if isinstance(part, ex.Subquery):
            return part
        return replace(part, side=0, name=part.name.rpartition(".")[2])

    own = [
        ex.map_columns(c, alone)
        for c in ex.conjuncts(subquery.where)
        if all(column.side == subquery.side for column in columns_in(c))
    ]
    return reduce(ex.And, own) if own else None


def scanned_tables(statement: st.Statement, schemas: Mapping[str, Schema]) -> Scans | None:
    """Return the scans that determine a statement's effect; None if they are unknown.

    Each scan is a table with filters: the effect is a function of the files that some filter leaves
    of its table. They are known for appends, DELETE, UPDATE, OPTIMIZE and MERGE without BY SOURCE
    clauses, on unaltered tables, without subqueries, and without arithmetic in conditions (which
    fails on rows of any file). Otherwise the effect is a function of the whole snapshot.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = {"t": Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))}
    >>> delete = read_statement("DELETE FROM t WHERE part = 1", t)
    >>> [(table, list(map(str, filters.partition))) for table, filters in scanned_tables(delete, t)]
    [('t', ['part = 1'])]
    >>> scanned_tables(read_statement("INSERT INTO t VALUES (1, 1)", t), t)
    ()
    >>> scanned_tables(read_statement("INSERT OVERWRITE t VALUES (1, 1)", t), t) is None
    True
    """
    match statement:
        case st.Insert(overwrite=False, options=st.Options(grows=None)):
            conditions: list[ex.Expr | None] = []
        case st.Delete() | st.Update() | st.Optimize():
            conditions = []
        case st.Merge(by_source=()):
            conditions = [clause.condition for clause in statement.matched]
            conditions += [clause.condition for clause in statement.not_matched]
        case _:
            return None
    found = accesses(statement, schemas)
    conditions += [access.where for access in found]
    apart = any(a.subquery is not None or a.version is not None for a in found)
    if apart or not _plain(*conditions):
        return None
    return tuple((access.table, access.filters(schemas[access.table])) for access in found)


def _plain(*conditions: ex.Expr | None) -> bool:
    """Return whether conditions have no subquery and no arithmetic."""
    return not any(
        isinstance(part, ex.Subquery | ex.Arithmetic | ex.Negate)
        for condition in conditions
        if condition is not None
        for part in ex.walk(condition)
    )
