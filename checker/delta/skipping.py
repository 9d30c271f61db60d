"""Which files a read records: partition pruning and skipping by statistics, as Delta does both.

Sources at v4.4.0: DeltaTable.scala ``splitMetadataAndDataPredicates`` and
``extractMetadataPredicates``; stats/DataFiltersBuilder.scala ``constructDataFilters``;
stats/DataSkippingPredicateBuilder.scala. Conditions come in Spark's normal form (model/normal.py). A
filter that Delta's rules cannot build keeps the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

from isolitmus.model import expression as ex
from isolitmus.model.condition import holds
from isolitmus.model.normal import columns, normal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.file import File
    from isolitmus.model.schema import Schema
    from isolitmus.model.values import Row, Value

__all__ = [
    "Filters",
    "command_filters",
    "in_partitions",
    "like_some",
    "merge_filters",
    "query_filters",
    "target_filters_of",
]


@dataclass(frozen=True, slots=True)
class Filters:
    """A read's filters: ``partition`` on partition columns only (recorded for conflict detection),
    ``data`` the rest (used for skipping only).
    """

    partition: tuple[ex.Expr, ...]
    data: tuple[ex.Expr, ...]

    def files(
        self, schema: Schema, files: Iterable[File], *, skipping: bool = True
    ) -> tuple[File, ...]:
        """The files that are left after pruning and, unless the conf stats.skipping is off, skipping,
        neither of which looks at a filter with a subquery: what the transaction read.
        """
        pruning = [p for p in self.partition if not ex.subqueries(p)]
        condition = reduce(ex.And, pruning) if pruning else None
        given = tuple(files)
        kept = {
            partition
            for partition in {f.partition for f in given}
            if holds(condition, (schema.spread(partition),))
        }
        return tuple(
            f
            for f in given
            if f.partition in kept and (not skipping or _may_match(self.data, f, schema))
        )


def command_filters(schema: Schema, where: ex.Expr | None) -> Filters:
    """DELETE and UPDATE: conjuncts split by their columns, and what can be extracted on partitions
    from the rest (``(part = 1 AND id = 5) OR (part = 2 AND id = 21)`` gives ``part = 1 OR part = 2``).
    """
    filters = _split(schema, _conjuncts(where))
    if not filters.data:
        return filters
    extracted = _extract(schema, reduce(ex.And, filters.data))
    return Filters(filters.partition + ex.conjuncts(extracted), filters.data)


def query_filters(schema: Schema, where: ex.Expr | None) -> Filters:
    """A SELECT: its conjuncts, and that columns which a NULL would disqualify are not NULL
    (InferFiltersFromConstraints).
    """
    parts = _conjuncts(where)
    known = [
        ex.Not(ex.IsNull(column))
        for part in parts
        if isinstance(part, ex.Compare | ex.ColumnRef)
        or (isinstance(part, ex.Not) and isinstance(part.operand, ex.ColumnRef))
        for column in columns(part)
    ]
    return _split(schema, (*known, *parts))


def merge_filters(
    schema: Schema, on: ex.Expr | None, matched_only: tuple[ex.Expr | None, ...]
) -> Filters:
    """MERGE: the conjuncts of ON that name the target alone; if all clauses are WHEN MATCHED
    (``matched_only`` lists their conditions) also the OR of theirs (getTargetOnlyPredicates).
    """
    parts = _target_only(on)
    clauses = [_target_only(condition) for condition in matched_only]
    if clauses and all(clauses):
        parts += (reduce(ex.Or, (reduce(ex.And, clause) for clause in clauses)),)
    return _split(schema, parts)


def target_filters_of(schema: Schema, on: ex.Expr | None) -> Filters | None:
    """The conjuncts of a MERGE's ON that name the target alone; None if there are none."""
    parts = _target_only(on)
    return _split(schema, parts) if parts else None


def in_partitions(schema: Schema, partitions: Iterable[Row]) -> ex.Expr:
    """That a row is in one of some partitions; NULL equals NULL."""

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


def like_some(schema: Schema, using: Iterable[int], rows: Iterable[Row]) -> ex.Expr:
    """That a row equals one of these in some columns; NULL equals nothing. EXISTS, as Delta writes it."""
    indexes = tuple(using)
    named = [(i, schema.columns[i].name, schema.columns[i].type) for i in indexes]
    same: list[ex.Expr] = [
        ex.Compare("=", ex.ColumnRef(0, i, name, type_), ex.ColumnRef(1, k, name, type_))
        for k, (i, name, type_) in enumerate(named)
    ]
    keys = tuple(dict.fromkeys(tuple(row[i] for i in indexes) for row in rows))
    one = ex.Const(1, "INT")
    return ex.Subquery("exists", "given", one, reduce(ex.And, same), side=1, rows=keys)


@lru_cache(maxsize=10_000)
def _conjuncts(where: ex.Expr | None) -> tuple[ex.Expr, ...]:
    return () if where is None else ex.conjuncts(normal(where))


def _target_only(condition: ex.Expr | None) -> tuple[ex.Expr, ...]:
    return tuple(p for p in _conjuncts(condition) if all(c.side == 0 for c in columns(p)))


def _on_partitions(schema: Schema, expr: ex.Expr) -> bool:
    return all(c.index in schema.partition_indexes for c in columns(expr))


def _split(schema: Schema, parts: Iterable[ex.Expr]) -> Filters:
    parts = tuple(parts)
    partition = tuple(p for p in parts if _on_partitions(schema, p))
    return Filters(partition, tuple(p for p in parts if p not in partition))


def _extract(schema: Schema, expr: ex.Expr) -> ex.Expr | None:
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
    """What a filter may be of a file besides true, false and NULL: not to be built, so that it is not
    asked, or about statistics that the file does not have.
    """

    UNUSED = 1
    MISSING = 2


UNUSED, MISSING = _Unknown


def _may_match(data: Iterable[ex.Expr], file: File, schema: Schema) -> bool:
    """Whether skipping keeps the file: if statistics are missing that any filter would look at, or if
    every filter that can be built is true of it (DataSkippingReader.scala, getDataSkippedFiles).
    """
    values = [_filter(expr, file, schema) for expr in data if not ex.subqueries(expr)]
    return MISSING in values or all(value is UNUSED or value is True for value in values)


def _filter(expr: ex.Expr, file: File, schema: Schema) -> bool | _Unknown | None:
    match expr:
        case ex.And(left, right):
            a, b = _filter(left, file, schema), _filter(right, file, schema)
            if a is UNUSED or b is UNUSED:
                return b if a is UNUSED else a
            if isinstance(a, _Unknown) or isinstance(b, _Unknown):
                return MISSING
            return ex.kleene_and(a, b)
        case ex.Or(left, right):
            a, b = _filter(left, file, schema), _filter(right, file, schema)
            if a is UNUSED or b is UNUSED:
                return UNUSED
            if isinstance(a, _Unknown) or isinstance(b, _Unknown):
                return MISSING
            return ex.kleene_or(a, b)
        case ex.IsNull(ex.ColumnRef(index=index)) if index not in schema.partition_indexes:
            stats = file.stats[index]
            return MISSING if stats is None else stats.nulls > 0
        case ex.Not(ex.IsNull(ex.ColumnRef(index=index))) if index not in schema.partition_indexes:
            stats = file.stats[index]
            return MISSING if stats is None else stats.nulls < len(file.rows) + file.dead
        case ex.Compare():
            return _compare(expr, file, schema)
        case ex.In(ex.ColumnRef() as column, values):
            present = [v for v in values if v is not None]
            low = ex.Const(min(present), column.type)
            high = ex.Const(max(present), column.type)
            within = ex.And(ex.Compare("<=", column, high), ex.Compare(">=", column, low))
            return _filter(within, file, schema)
        case _:
            return UNUSED


def _compare(expr: ex.Compare, file: File, schema: Schema) -> bool | _Unknown | None:
    left, right = expr.left, expr.right
    if not isinstance(left, ex.ColumnRef) or not isinstance(right, ex.Const):
        return UNUSED
    if left.type == "BOOLEAN" or left.index in schema.partition_indexes:
        return UNUSED
    stats = file.stats[left.index]
    if stats is None:
        return MISSING
    least = ex.Const(stats.least, left.type)
    greatest = ex.Const(stats.greatest, left.type)

    def holds(a: ex.Const, op: ex.CompareOp) -> bool | None:
        value: Value = ex.evaluate(ex.Compare(op, a, right), ())
        return None if value is None else bool(value)

    match expr.op:
        case "=":
            return ex.kleene_and(holds(least, "<="), holds(greatest, ">="))
        case "<>":
            return ex.kleene_or(holds(least, "<"), holds(greatest, ">"))
        case "<" | "<=" as op:
            return holds(least, op)
        case ">" | ">=" as op:
            return holds(greatest, op)
