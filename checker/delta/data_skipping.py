"""Files that a read records: partition pruning, skipping by statistics, and filters from joins.

Partition pruning and skipping work as in Delta v4.4.0: DeltaTable.scala
``splitMetadataAndDataPredicates`` and ``extractMetadataPredicates``; stats/DataFiltersBuilder.scala
``constructDataFilters``; stats/DataSkippingPredicateBuilder.scala. Conditions are in Spark's normal
form (model/sql/conditions.py). If Delta's rules cannot build a filter from a condition, the file is
kept.

For a table in a join, the scan has only a part of the join's condition. Spark pushes conditions on
one table to its scan, adds that compared columns are not NULL, and transfers conditions on a column
to columns that equal it (PushPredicateThroughJoin, InferFiltersFromConstraints). If more than the
first two may happen, what Delta records is uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import reduce
from typing import TYPE_CHECKING

from isolitmus.model.memo import memoize_by_identity
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql.conditions import (
    columns_in,
    holds,
    may_be_optimized,
    normalize,
    strict_columns,
    unmodelled_query_rewrite,
)
from isolitmus.model.sql.evaluation import evaluate, kleene_and, kleene_or, like_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolitmus.model.sql.data_file import File
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.values import Row, Value


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a read.

    ``partition`` filters use partition columns only and are recorded for conflict detection;
    ``data`` is the rest, used for skipping only.
    """

    partition: tuple[ex.Expr, ...]
    data: tuple[ex.Expr, ...]

    def doubted(self, schema: Schema, file: File) -> bool:
        """Return whether a kept file may also be skipped, depending on Spark's optimizer."""
        values = _filtered(self.data, file, schema)
        return MISSING not in values and OPEN in values

    def certain(self) -> Filters:
        """Return the filters that a scan records whatever their opaque parts are.

        Conditions computed by Python are not pushed into a scan.
        """
        opaque = [p for p in self.partition if any(isinstance(e, ex.Opaque) for e in ex.walk(p))]
        return Filters(tuple(p for p in self.partition if p not in opaque), self.data)

    def open(self, schema: Schema) -> bool:
        """Return whether Spark may infer a partition filter from a condition on more columns."""
        named = (
            any(column.index in schema.partition_indexes for column in columns_in(part))
            for part in self.data
            if may_be_optimized(part)
        )
        return any(named)

    def files(
        self, schema: Schema, files: Iterable[File], *, skipping: bool = True
    ) -> tuple[File, ...]:
        """Return the files that a transaction reads: those left after pruning and skipping.

        Parameters
        ----------
        schema : Schema
            The table.
        files : iterable of File
            Its files.
        skipping : bool
            Whether files are skipped by statistics (conf stats.skipping). Neither step evaluates a
            filter with a subquery.
        """
        condition = _pruning(self)
        given = tuple(files)
        kept = {
            partition
            for partition in {f.partition for f in given}
            if holds(condition, (schema.spread(partition),))
        }
        return tuple(
            f
            for f in given
            if f.partition in kept and (not skipping or may_match(self.data, f, schema))
        )


@memoize_by_identity
def _pruning(filters: Filters) -> ex.Expr | None:
    """Return the condition by which partitions are pruned."""
    parts = [part for part in filters.partition if not ex.subqueries(part)]
    return reduce(ex.And, parts) if parts else None


def command_filters(schema: Schema, where: ex.Expr | None) -> Filters:
    """Return the filters of a DELETE or UPDATE.

    Conjuncts are split by their columns, and partition filters are extracted from the rest: ``(part
    = 1 AND id = 5) OR (part = 2 AND id = 21)`` gives ``part = 1 OR part = 2``.
    """
    filters = _split(schema, _conjuncts(where))
    if not filters.data:
        return filters
    extracted = _extract(schema, reduce(ex.And, filters.data))
    return Filters(filters.partition + ex.conjuncts(extracted), filters.data)


def query_filters(schema: Schema, where: ex.Expr | None) -> Filters:
    """Return the filters of a SELECT: its conjuncts, and that compared columns are not NULL.

    Source: InferFiltersFromConstraints.
    """
    parts = _conjuncts(where)
    known = [
        ex.Not(ex.IsNull(column))
        for part in parts
        if isinstance(part, ex.Compare | ex.ColumnRef | ex.Call)
        or (isinstance(part, ex.Not) and isinstance(part.operand, ex.ColumnRef | ex.Call))
        for column in strict_columns(part.operand if isinstance(part, ex.Not) else part)
    ]
    return _split(schema, (*known, *parts))


def merge_filters(
    schema: Schema, on: ex.Expr | None, matched_only: tuple[ex.Expr | None, ...]
) -> Filters:
    """Return the filters of a MERGE: the conjuncts of ON that name only the target.

    If all clauses are WHEN MATCHED (``matched_only`` lists their conditions), the OR of their
    target-only conditions is a filter too (getTargetOnlyPredicates).
    """
    parts = _target_only(on)
    clauses = [_target_only(condition) for condition in matched_only]
    if clauses and all(clauses):
        parts += (reduce(ex.Or, (reduce(ex.And, clause) for clause in clauses)),)
    return _split(schema, parts)


def target_filters_of(schema: Schema, on: ex.Expr | None) -> Filters | None:
    """Return the conjuncts of a MERGE's ON that name only the target; None if there are none."""
    parts = _target_only(on)
    return _split(schema, parts) if parts else None


def in_some_partition(schema: Schema, partitions: Iterable[Row]) -> ex.Expr:
    """Return the condition that a row is in one of some partitions; NULL equals NULL."""

    def equals(index: int, value: Value) -> ex.Expr:
        column = schema.columns[index]
        ref = ex.ColumnRef(0, index, column.name, column.type)
        same = ex.Compare("=", ref, ex.Const(value, column.type))
        return ex.IsNull(ref) if value is None else same

    each = [
        reduce(ex.And, map(equals, schema.partition_indexes, partition))
        for partition in dict.fromkeys(partitions)
    ]
    return reduce(ex.Or, each) if each else ex.Const(False, "BOOLEAN")


def equals_some(schema: Schema, using: Iterable[int], rows: Iterable[Row]) -> ex.Expr:
    """Return the condition that a row equals one of these in some columns, as EXISTS like Delta's.

    NULL equals nothing.
    """
    indexes = tuple(using)
    named = [(i, schema.columns[i].name, schema.columns[i].type) for i in indexes]
    same: list[ex.Expr] = [
        ex.Compare("=", ex.ColumnRef(0, i, name, type_), ex.ColumnRef(1, k, name, type_))
        for k, (i, name, type_) in enumerate(named)
    ]
    keys = tuple(dict.fromkeys(tuple(row[i] for i in indexes) for row in rows))
    one = ex.Const(1, "INT")
    return ex.Subquery("exists", "given", one, reduce(ex.And, same), side=1, rows=keys)


@memoize_by_identity
def _conjuncts(where: ex.Expr | None) -> tuple[ex.Expr, ...]:
    return () if where is None else ex.conjuncts(normalize(where))


def _target_only(condition: ex.Expr | None) -> tuple[ex.Expr, ...]:
    return tuple(p for p in _conjuncts(condition) if all(c.side == 0 for c in columns_in(p)))


def _on_partitions(schema: Schema, expr: ex.Expr) -> bool:
    return all(c.index in schema.partition_indexes for c in columns_in(expr))


def _split(schema: Schema, parts: Iterable[ex.Expr]) -> Filters:
    parts = tuple(parts)
    partition = tuple(p for p in parts if _on_partitions(schema, p))
    return Filters(partition, tuple(p for p in parts if p not in partition))


def _extract(schema: Schema, expr: ex.Expr) -> ex.Expr | None:
    """Return the part of a condition that uses only partition columns; None if there is none."""
    match expr:
        case ex.And(left, right):
            found = [e for e in (_extract(schema, left), _extract(schema, right)) if e is not None]
            return reduce(ex.And, found) if found else None
        case ex.Or(left, right):
            a, b = _extract(schema, left), _extract(schema, right)
            return None if a is None or b is None else ex.Or(a, b)
        case _:
            return expr if _on_partitions(schema, expr) else None


class _Unknown(Enum):
    """Value of a filter on a file besides true, false and NULL.

    UNUSED: the filter cannot be built, so it is not evaluated. MISSING: it needs statistics that
    the file does not have.
    """

    UNUSED = 1
    MISSING = 2
    OPEN = 3
    """Spark's optimizer may change the condition."""


UNUSED, MISSING, OPEN = _Unknown


def may_match(data: Iterable[ex.Expr], file: File, schema: Schema) -> bool:
    """Return whether skipping may keep a file.

    It is kept if statistics for any filter are missing, or if every filter that can be built is
    true of it (DataSkippingReader.scala, getDataSkippedFiles).
    """
    values = _filtered(data, file, schema)
    return MISSING in values or all(isinstance(v, _Unknown) or v is True for v in values)


def _filtered(data: Iterable[ex.Expr], file: File, schema: Schema) -> list[bool | _Unknown | None]:
    return [_filter(expr, file, schema) for expr in data if not ex.subqueries(expr)]


def _filter(expr: ex.Expr, file: File, schema: Schema) -> bool | _Unknown | None:
    """Return whether a file's statistics let it match a condition; None is NULL."""
    match expr:
        case ex.And(left, right):
            return _both(_filter(left, file, schema), _filter(right, file, schema))
        case ex.Or(left, right):
            return _either(_filter(left, file, schema), _filter(right, file, schema))
        case _ if may_be_optimized(expr):
            return OPEN
        case ex.IsNull(ex.ColumnRef(index=index)) if index not in schema.partition_indexes:
            stats = file.stats[index]
            return MISSING if stats is None else stats.nulls > 0
        case ex.Not(ex.IsNull(ex.ColumnRef(index=index))) if index not in schema.partition_indexes:
            stats = file.stats[index]
            return MISSING if stats is None else stats.nulls < len(file.rows) + file.dead
        case ex.Compare():
            return _compare(expr, file, schema)
        case ex.Call("like", (ex.ColumnRef() as column, ex.Const(str() as pattern))):
            prefix = like_prefix(pattern)
            return UNUSED if prefix is None else _begins(column, prefix, file, schema)
        case ex.In(ex.ColumnRef() as column, values):
            present = [v for v in values if v is not None]
            low = ex.Const(min(present), column.type)
            high = ex.Const(max(present), column.type)
            within = ex.And(ex.Compare("<=", column, high), ex.Compare(">=", column, low))
            return _filter(within, file, schema)
        case _:
            return UNUSED


def _both(a: bool | _Unknown | None, b: bool | _Unknown | None) -> bool | _Unknown | None:
    """Return the value of a conjunction; if only one part has a filter, its value."""
    if a is UNUSED or b is UNUSED:
        return b if a is UNUSED else a
    if a is MISSING or b is MISSING:
        return MISSING
    if a is OPEN or b is OPEN:
        known = b if a is OPEN else a
        return OPEN if known is OPEN or known is True else known
    assert not isinstance(a, _Unknown)
    assert not isinstance(b, _Unknown)
    return kleene_and(a, b)


def _either(a: bool | _Unknown | None, b: bool | _Unknown | None) -> bool | _Unknown | None:
    """Return the value of a disjunction; it needs filters for both parts."""
    if a is UNUSED or b is UNUSED:
        return UNUSED
    if a is OPEN or b is OPEN:
        return OPEN
    if isinstance(a, _Unknown) or isinstance(b, _Unknown):
        return MISSING
    return kleene_or(a, b)


def _logged(value: Value, *, greatest: bool = False) -> Value:
    """Return a minimum or maximum as the log records it.

    Timestamps are truncated to milliseconds, and the maximum is one millisecond more
    (DataSkippingReader.scala, getAdjustedTimestamp).
    """
    if not isinstance(value, datetime):
        return value
    cut = value.replace(microsecond=value.microsecond // 1000 * 1000)
    return cut + timedelta(milliseconds=1) if greatest else cut


def _begins(
    column: ex.ColumnRef, prefix: str, file: File, schema: Schema
) -> bool | _Unknown | None:
    """Return the value of StartsWith; minimum and maximum are compared up to the prefix's
    length.
    """
    if column.index in schema.partition_indexes:
        return UNUSED
    stats = file.stats[column.index]
    if stats is None:
        return MISSING
    if not isinstance(stats.least, str) or not isinstance(stats.greatest, str):
        return None
    return stats.least[: len(prefix)] <= prefix <= stats.greatest[: len(prefix)]


def _compare(expr: ex.Compare, file: File, schema: Schema) -> bool | _Unknown | None:
    """Return whether a file's statistics let it match a comparison; None is NULL."""
    left, right = expr.left, expr.right
    if not isinstance(left, ex.ColumnRef) or not isinstance(right, ex.Const):
        return UNUSED
    if left.type == "BOOLEAN" or left.index in schema.partition_indexes:
        return UNUSED
    stats = file.stats[left.index]
    if stats is None:
        return MISSING
    least = ex.Const(_logged(stats.least), left.type)
    greatest = ex.Const(_logged(stats.greatest, greatest=True), left.type)

    def holds(a: ex.Const, op: ex.CompareOp) -> bool | None:
        value: Value = evaluate(ex.Compare(op, a, right), ())
        return None if value is None else bool(value)

    match expr.op:
        case "=":
            return kleene_and(holds(least, "<="), holds(greatest, ">="))
        case "<>":
            return kleene_or(holds(least, "<"), holds(greatest, ">"))
        case "<" | "<=" as op:
            return holds(least, op)
        case ">" | ">=" as op:
            return holds(greatest, op)


BOTH = ("inner", "semi")
"""Joins whose condition holds for rows of both sides."""
Said = list[tuple[ex.Expr, qu.JoinSource | None]]
"""Conjuncts, each with the source that it joins; None for those of WHERE."""


def scan_condition(branch: qu.Joined, side: int) -> tuple[ex.Expr | None, bool]:
    """Return the condition of the scan of one side of a join, and whether it is certain.

    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t, s = (Schema(name, (Column("id", "INT"), Column("x", "INT"))) for name in "ts")
    >>> def asked(sql):
    ...     return scan_condition(read_statement(sql, {"t": t, "s": s}).query[0], 0)
    >>> [str(said) for said in asked("SELECT t.id FROM t JOIN s ON t.id = s.id WHERE t.x > 1")]
    ['x > 1 AND NOT (id IS NULL)', 'True']
    >>> asked("SELECT t.id FROM t JOIN s ON t.id = s.id WHERE s.id = 3")[1]
    False
    >>> asked("SELECT t.id FROM t JOIN (SELECT id FROM s WHERE id = 3) q ON t.id = q.id")[1]
    False
    """
    found = [_plain(source) for source in branch.sources]
    table = found[side]
    if table is None or None in found:
        return None, False
    said: Said = [(part, None) for part in ex.conjuncts(branch.where)]
    said += [(part, source) for source in branch.sources for part in ex.conjuncts(source.on)]
    nested = {
        pair
        for k, other in enumerate(found)
        if k != side and other is not None
        for pair in _conditioned(other, k)
    }
    if not _certain(branch, side, said, nested):
        return None, False
    own = ex.conjuncts(table.where)
    pushed = [_pushed(table, part) for part, _ in said if _alone(part, side)]
    if {*own} != {*pushed}:
        return None, False
    compared = [
        _base(table, c)
        for part, _ in _of_both(branch, side, said)
        for c in columns_in(part)
        if c.side == side
    ]
    known = [ex.Not(ex.IsNull(column)) for column in dict.fromkeys(compared)]
    parts = (*own, *known)
    where = reduce(ex.And, parts) if parts else None
    return where, where is None or unmodelled_query_rewrite(where) is None


def _plain(source: qu.JoinSource) -> qu.Select | None:
    """Return the table of a source with all its columns unchanged; None for other sources."""
    branch = source.query[0]
    if not isinstance(branch, qu.Select) or branch.keys or branch.grouped:
        return None
    return branch if all(isinstance(item, ex.ColumnRef) for item in branch.items) else None


def _conditioned(table: qu.Select, side: int) -> Iterator[tuple[int, int]]:
    """Yield the columns of a side that conditions of its own query are about."""
    named = {column.index for part in ex.conjuncts(table.where) for column in columns_in(part)}
    for k, item in enumerate(table.items):
        if isinstance(item, ex.ColumnRef) and item.index in named:
            yield side, k


def _base(table: qu.Select, column: ex.ColumnRef) -> ex.ColumnRef:
    found = table.items[column.index]
    assert isinstance(found, ex.ColumnRef)
    return replace(found, name=column.name.rpartition(".")[2])


def _pushed(table: qu.Select, part: ex.Expr) -> ex.Expr:
    """Return a condition on the columns of a side as one on those of its table."""
    return ex.map_columns(
        part, lambda one: _base(table, one) if isinstance(one, ex.ColumnRef) else one
    )


def _alone(part: ex.Expr, side: int) -> bool:
    return all(column.side == side for column in columns_in(part))


def _equal(part: ex.Expr) -> bool:
    """Return whether a condition equates columns of two sides."""
    match part:
        case ex.Compare("=", ex.ColumnRef() as a, ex.ColumnRef() as b):
            return a.side != b.side
    return False


def _of_columns(part: ex.Expr) -> bool:
    """Return whether a condition compares two columns."""
    match part:
        case ex.Compare(_, ex.ColumnRef(), ex.ColumnRef()):
            return True
    return False


def _of_both(
    branch: qu.Joined, side: int, said: Said
) -> Iterator[tuple[ex.Expr, qu.JoinSource | None]]:
    """Yield conditions on the rows of a side and of others that hold after the join."""
    own = branch.sources[side]
    for part, source in said:
        holds = source is None or source.how in BOTH or source is own
        if holds and not all(_alone(part, k) for k in {c.side for c in columns_in(part)}):
            yield part, source


def _certain(branch: qu.Joined, side: int, said: Said, nested: set[tuple[int, int]]) -> bool:
    """Return whether no further condition can be inferred for a side.

    ``nested`` are columns of other sides that their own queries have conditions on: Spark infers
    these for what they are equated with (InferFiltersFromConstraints).
    """
    own = branch.sources[side]
    outer = {k for k, source in enumerate(branch.sources) if source.how in ("left", "anti")}
    if any(source.how in ("right", "full") for source in branch.sources):
        return False
    named = {
        c.side
        for part, source in said
        if source is None or source.how in BOTH
        for c in columns_in(part)
    }
    if outer & named:  # a condition that NULL does not satisfy turns it into an inner join
        return False
    classes: dict[tuple[int, int], set[tuple[int, int]]] = {}
    others = {*nested}
    for part, source in said:
        if not columns_in(part) or ex.subqueries(part) or may_be_optimized(part):
            return False
        pairs = [(c.side, c.index) for c in columns_in(part)]
        sides = {k for k, _ in pairs}
        if source is not None and source.how not in BOTH and source is not own:
            continue
        if _equal(part):
            both = classes.setdefault(pairs[0], {pairs[0]}) | classes.setdefault(
                pairs[1], {pairs[1]}
            )
            classes.update(dict.fromkeys(both, both))
        elif sides != {side}:
            others.update(pairs)
            if len(sides) > 1 and not _of_columns(part):
                return False
    for members in classes.values():
        mine = [member for member in members if member[0] == side]
        if len(mine) > 1 or (mine and others & (members - set(mine))):
            return False
    return True
