"""Which files a read records: partition pruning and skipping by statistics, as Delta does both.

Sources at v4.4.0: DeltaTable.scala ``splitMetadataAndDataPredicates`` and
``extractMetadataPredicates``; stats/DataFiltersBuilder.scala ``constructDataFilters``;
stats/DataSkippingPredicateBuilder.scala. A filter that those rules cannot build keeps the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from isolitmus.model import expression as ex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.schema import Schema
    from isolitmus.model.table import File
    from isolitmus.model.values import Value

__all__ = ["Filters", "command_filters", "merge_filters", "query_filters"]

FLIPPED: dict[ex.CompareOp, ex.CompareOp] = {
    "=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
}  # fmt: skip
NEGATED: dict[ex.CompareOp, ex.CompareOp] = {
    "=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filters:
    """A read's filters: ``partition`` on partition columns only (recorded for conflict detection),
    ``data`` the rest (used for skipping only).
    """

    partition: tuple[ex.Expr, ...]
    data: tuple[ex.Expr, ...]

    def files(self, schema: Schema, files: Iterable[File]) -> tuple[File, ...]:
        """The files that are left after pruning and skipping: what the transaction read."""
        return tuple(
            f
            for f in files
            if all(ex.evaluate(p, (schema.spread(f.partition),)) is True for p in self.partition)
            and all(_may_match(d, f, schema) for d in self.data)
        )


def command_filters(schema: Schema, where: ex.Expr | None) -> Filters:
    """DELETE and UPDATE: conjuncts split by their columns, and what can be extracted on partitions
    from the rest (``(part = 1 AND id = 5) OR (part = 2 AND id = 21)`` gives ``part = 1 OR part = 2``).
    """
    filters = _split(schema, ex.conjuncts(where))
    if not filters.data:
        return filters
    extracted = _extract(schema, reduce(ex.And, filters.data))
    return Filters(filters.partition + ex.conjuncts(extracted), filters.data)


def query_filters(schema: Schema, where: ex.Expr | None) -> Filters:
    """A SELECT: what Spark's optimizer makes of the WHERE before the scan is planned. Negations are
    pushed to the leaves, common factors taken out of OR, and columns that must not be NULL say so
    (BooleanSimplification, InferFiltersFromConstraints).
    """
    parts = _factors(_negate(where, negated=False)) if where is not None else ()
    known = [
        ex.Not(ex.IsNull(column))
        for part in parts
        if isinstance(part, ex.Compare | ex.In)
        for column in ex.walk(part)
        if isinstance(column, ex.ColumnRef)
    ]
    return _split(schema, (*known, *parts))


def merge_filters(schema: Schema, on: ex.Expr, matched_only: tuple[ex.Expr | None, ...]) -> Filters:
    """MERGE: the conjuncts of ON that name the target alone; if all clauses are WHEN MATCHED
    (``matched_only`` lists their conditions) also the OR of theirs (getTargetOnlyPredicates).
    """
    parts = _target_only(on)
    clauses = [_target_only(condition) for condition in matched_only]
    if clauses and all(clauses):
        parts += (reduce(ex.Or, (reduce(ex.And, clause) for clause in clauses)),)
    return _split(schema, parts)


def _target_only(condition: ex.Expr | None) -> tuple[ex.Expr, ...]:
    return tuple(p for p in ex.conjuncts(condition) if all(c.side == 0 for c in _columns(p)))


def _columns(expr: ex.Expr) -> tuple[ex.ColumnRef, ...]:
    return tuple(e for e in ex.walk(expr) if isinstance(e, ex.ColumnRef))


def _on_partitions(schema: Schema, expr: ex.Expr) -> bool:
    return all(c.index in schema.partition_indexes for c in _columns(expr))


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


def _negate(expr: ex.Expr, *, negated: bool) -> ex.Expr:
    """The expression (or its negation) with NOT only at the leaves."""
    match expr:
        case ex.Not(operand):
            return _negate(operand, negated=not negated)
        case ex.And(left, right) | ex.Or(left, right):
            build = ex.And if isinstance(expr, ex.And) != negated else ex.Or
            return build(_negate(left, negated=negated), _negate(right, negated=negated))
        case ex.Compare(op, left, right) if negated and op != "=":
            return ex.Compare(NEGATED[op], left, right)
        case _:
            return ex.Not(expr) if negated else expr


def _factors(expr: ex.Expr) -> tuple[ex.Expr, ...]:
    """The conjuncts, those that all branches of an OR share among them."""
    if isinstance(expr, ex.And):
        return _factors(expr.left) + _factors(expr.right)
    if isinstance(expr, ex.Or):
        left, right = _factors(expr.left), _factors(expr.right)
        common = tuple(p for p in left if p in right)
        rest = [tuple(p for p in side if p not in common) for side in (left, right)]
        if common and all(rest):
            return (*common, ex.Or(reduce(ex.And, rest[0]), reduce(ex.And, rest[1])))
        if common:
            return common
    return (expr,)


class _Unused:
    """No filter can be built: the file stays."""


UNUSED = _Unused()


def _may_match(expr: ex.Expr, file: File, schema: Schema) -> bool:
    """Whether skipping keeps the file: it does unless a filter can be built and is not true of it."""
    value = _filter(expr, file, schema)
    return isinstance(value, _Unused) or value is True


def _filter(expr: ex.Expr, file: File, schema: Schema) -> bool | _Unused | None:
    match expr:
        case ex.And(left, right):
            a, b = _filter(left, file, schema), _filter(right, file, schema)
            if isinstance(a, _Unused) or isinstance(b, _Unused):
                return b if isinstance(a, _Unused) else a
            return ex.kleene_and(a, b)
        case ex.Or(left, right):
            a, b = _filter(left, file, schema), _filter(right, file, schema)
            if isinstance(a, _Unused) or isinstance(b, _Unused):
                return UNUSED
            return ex.kleene_or(a, b)
        case ex.Not(ex.And(left, right)):
            return _filter(ex.Or(ex.Not(left), ex.Not(right)), file, schema)
        case ex.Not(ex.Or(left, right)):
            return _filter(ex.And(ex.Not(left), ex.Not(right)), file, schema)
        case ex.Not(ex.Not(operand)):
            return _filter(operand, file, schema)
        case ex.Not(ex.Compare(op, left, right)):
            return _compare(ex.Compare(NEGATED[op], left, right), file, schema)
        case ex.IsNull(ex.ColumnRef(index=index)) if index not in schema.partition_indexes:
            return file.stats[index].nulls > 0
        case ex.Not(ex.IsNull(ex.ColumnRef(index=index))) if index not in schema.partition_indexes:
            return file.stats[index].nulls < len(file.rows)
        case ex.Compare():
            return _compare(expr, file, schema)
        case ex.In(ex.ColumnRef() as column, values):
            present = [v for v in values if v is not None]
            if not present:
                return False
            low = ex.Const(min(present), column.type)
            high = ex.Const(max(present), column.type)
            within = ex.And(ex.Compare("<=", column, high), ex.Compare(">=", column, low))
            return _filter(within, file, schema)
        case _:
            return UNUSED


def _compare(expr: ex.Compare, file: File, schema: Schema) -> bool | _Unused | None:
    op, left, right = expr.op, expr.left, expr.right
    if isinstance(left, ex.Const):
        op, left, right = FLIPPED[op], right, left
    if not isinstance(left, ex.ColumnRef) or not isinstance(right, ex.Const):
        return UNUSED
    if left.type == "BOOLEAN" or left.index in schema.partition_indexes:
        return UNUSED
    stats = file.stats[left.index]
    least = ex.Const(stats.least, left.type)
    greatest = ex.Const(stats.greatest, left.type)

    def holds(a: ex.Const, op: ex.CompareOp) -> bool | None:
        value: Value = ex.evaluate(ex.Compare(op, a, right), ())
        return None if value is None else bool(value)

    match op:
        case "=":
            return ex.kleene_and(holds(least, "<="), holds(greatest, ">="))
        case "<>":
            return ex.kleene_or(holds(least, "<"), holds(greatest, ">"))
        case "<" | "<=":
            return holds(least, op)
        case ">" | ">=":
            return holds(greatest, op)
