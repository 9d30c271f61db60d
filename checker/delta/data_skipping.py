"""Data skipping: partition pruning, statistics, filters from joins.

Which files a read records: partition pruning and skipping by statistics, as Delta does both.

Sources at v4.4.0: DeltaTable.scala ``splitMetadataAndDataPredicates`` and
``extractMetadataPredicates``; stats/DataFiltersBuilder.scala ``constructDataFilters``;
stats/DataSkippingPredicateBuilder.scala. Conditions come in Spark's normal form
(model/sql/conditions.py). A filter that Delta's rules cannot build keeps the file.

What Spark filters a table by that stands in a join and is written to: what its scan, and so Delta,
has of the join.

Spark moves what a condition says of one table alone to the scan of that table, adds that columns
which are compared are not NULL, and carries what is said of one column over to those that equal it
(PushPredicateThroughJoin, InferFiltersFromConstraints). Where more than the first two may happen,
what Delta records is not certain.
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

    from isolitmus.model.delta.data_file import File
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.values import Row, Value

__all__ = [
    "Filters",
    "command_filters",
    "equals_some",
    "in_some_partition",
    "merge_filters",
    "query_filters",
    "scan_condition",
    "target_filters_of",
]


@dataclass(frozen=True, slots=True)
class Filters:
    """A read's filters: ``partition`` on partition columns only (recorded for conflict detection),
    ``data`` the rest (used for skipping only).
    """

    partition: tuple[ex.Expr, ...]
    data: tuple[ex.Expr, ...]

    def doubted(self, schema: Schema, file: File) -> bool:
        """Whether a file that is left may as well be skipped: that is up to Spark's optimizer."""
        values = _filtered(self.data, file, schema)
        return MISSING not in values and OPEN in values

    def certain(self) -> Filters:
        """Those that a scan records whatever their opaque parts are: what Python computes is not
        pushed into it.
        """
        opaque = [p for p in self.partition if any(isinstance(e, ex.Opaque) for e in ex.walk(p))]
        return Filters(tuple(p for p in self.partition if p not in opaque), self.data)

    def open(self, schema: Schema) -> bool:
        """Whether Spark's optimizer may find something that is said of partitions alone in a
        condition that names other columns, too.
        """
        named = (
            any(column.index in schema.partition_indexes for column in columns_in(part))
            for part in self.data
            if may_be_optimized(part)
        )
        return any(named)

    def files(
        self, schema: Schema, files: Iterable[File], *, skipping: bool = True
    ) -> tuple[File, ...]:
        """The files that are left after pruning and, unless the conf stats.skipping is off,
        skipping, neither of which looks at a filter with a subquery: what the transaction read.
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
            if f.partition in kept and (not skipping or _may_match(self.data, f, schema))
        )


@memoize_by_identity
def _pruning(filters: Filters) -> ex.Expr | None:
    """What partitions are pruned by."""
    parts = [part for part in filters.partition if not ex.subqueries(part)]
    return reduce(ex.And, parts) if parts else None


def command_filters(schema: Schema, where: ex.Expr | None) -> Filters:
    """DELETE and UPDATE: conjuncts split by their columns, and what can be extracted on partitions
    from the rest (``(part = 1 AND id = 5) OR (part = 2 AND id = 21)`` gives ``part = 1 OR part =
    2``).
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
        if isinstance(part, ex.Compare | ex.ColumnRef | ex.Call)
        or (isinstance(part, ex.Not) and isinstance(part.operand, ex.ColumnRef | ex.Call))
        for column in strict_columns(part.operand if isinstance(part, ex.Not) else part)
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


def in_some_partition(schema: Schema, partitions: Iterable[Row]) -> ex.Expr:
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


def equals_some(schema: Schema, using: Iterable[int], rows: Iterable[Row]) -> ex.Expr:
    """That a row equals one of these in some columns; NULL equals nothing. EXISTS, as Delta writes
    it.
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
    """What a filter may be of a file besides true, false and NULL: not to be built, so that it is
    not asked, or about statistics that the file does not have.
    """

    UNUSED = 1
    MISSING = 2
    OPEN = 3
    """Spark's optimizer may make something else of it, or not."""


UNUSED, MISSING, OPEN = _Unknown


def _may_match(data: Iterable[ex.Expr], file: File, schema: Schema) -> bool:
    """Whether skipping may keep the file: if statistics are missing that any filter would look at,
    or if every filter that can be built is true of it (DataSkippingReader.scala,
    getDataSkippedFiles).
    """
    values = _filtered(data, file, schema)
    return MISSING in values or all(isinstance(v, _Unknown) or v is True for v in values)


def _filtered(data: Iterable[ex.Expr], file: File, schema: Schema) -> list[bool | _Unknown | None]:
    return [_filter(expr, file, schema) for expr in data if not ex.subqueries(expr)]


def _filter(expr: ex.Expr, file: File, schema: Schema) -> bool | _Unknown | None:
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
    """A conjunction: a filter of one part serves for the whole."""
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
    """A disjunction: it needs a filter of both parts."""
    if a is UNUSED or b is UNUSED:
        return UNUSED
    if a is OPEN or b is OPEN:
        return OPEN
    if isinstance(a, _Unknown) or isinstance(b, _Unknown):
        return MISSING
    return kleene_or(a, b)


def _logged(value: Value, *, greatest: bool = False) -> Value:
    """A least or greatest value as the log has it: timestamps are cut to milliseconds, to which one
    is added for the greatest (DataSkippingReader.scala, getAdjustedTimestamp).
    """
    if not isinstance(value, datetime):
        return value
    cut = value.replace(microsecond=value.microsecond // 1000 * 1000)
    return cut + timedelta(milliseconds=1) if greatest else cut


def _begins(
    column: ex.ColumnRef, prefix: str, file: File, schema: Schema
) -> bool | _Unknown | None:
    """StartsWith: of the least and greatest value only so many characters are compared."""
    if column.index in schema.partition_indexes:
        return UNUSED
    stats = file.stats[column.index]
    if stats is None:
        return MISSING
    if not isinstance(stats.least, str) or not isinstance(stats.greatest, str):
        return None
    return stats.least[: len(prefix)] <= prefix <= stats.greatest[: len(prefix)]


def _compare(expr: ex.Compare, file: File, schema: Schema) -> bool | _Unknown | None:
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
"""Joins after which their condition holds of rows on both sides."""
Said = list[tuple[ex.Expr, qu.JoinSource | None]]
"""Conjuncts, each with the source that it joins; None: of WHERE."""


def scan_condition(branch: qu.Joined, side: int) -> tuple[ex.Expr | None, bool]:
    """By which condition the table of a side is scanned, and whether that is certain.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t, s = (Schema(name, (Column("id", "INT"), Column("x", "INT"))) for name in "ts")
    >>> def asked(sql):
    ...     return scan_condition(read_statement(sql, {"t": t, "s": s}).query[0], 0)
    >>> [str(said) for said in asked("SELECT t.id FROM t JOIN s ON t.id = s.id WHERE t.x > 1")]
    ['x > 1 AND NOT (id IS NULL)', 'True']
    >>> asked("SELECT t.id FROM t JOIN s ON t.id = s.id WHERE s.id = 3")[1]
    False
    """
    found = [_plain(source) for source in branch.sources]
    table = found[side]
    if table is None or None in found:
        return None, False
    said: Said = [(part, None) for part in ex.conjuncts(branch.where)]
    said += [(part, source) for source in branch.sources for part in ex.conjuncts(source.on)]
    if not _certain(branch, side, said):
        return None, False
    own = ex.conjuncts(table.where)
    if len(own) != sum(_alone(part, side) for part, _ in said):
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
    """The table that a source is, with all of its columns as they are."""
    branch = source.query[0]
    if not isinstance(branch, qu.Select) or branch.keys or branch.grouped:
        return None
    return branch if all(isinstance(item, ex.ColumnRef) for item in branch.items) else None


def _base(table: qu.Select, column: ex.ColumnRef) -> ex.ColumnRef:
    found = table.items[column.index]
    assert isinstance(found, ex.ColumnRef)
    return replace(found, name=column.name.rpartition(".")[2])


def _alone(part: ex.Expr, side: int) -> bool:
    return all(column.side == side for column in columns_in(part))


def _equal(part: ex.Expr) -> bool:
    """Whether it equates columns of two sides."""
    match part:
        case ex.Compare("=", ex.ColumnRef() as a, ex.ColumnRef() as b):
            return a.side != b.side
    return False


def _of_columns(part: ex.Expr) -> bool:
    """Whether it compares columns as they are."""
    match part:
        case ex.Compare(_, ex.ColumnRef(), ex.ColumnRef()):
            return True
    return False


def _of_both(
    branch: qu.Joined, side: int, said: Said
) -> Iterator[tuple[ex.Expr, qu.JoinSource | None]]:
    """The conditions that hold of the rows of a side and of others, as they come out of the
    join.
    """
    own = branch.sources[side]
    for part, source in said:
        holds = source is None or source.how in BOTH or source is own
        if holds and not all(_alone(part, k) for k in {c.side for c in columns_in(part)}):
            yield part, source


def _certain(branch: qu.Joined, side: int, said: Said) -> bool:
    """Whether nothing else can be inferred of a side."""
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
    if outer & named:  # a condition that NULL does not meet makes an inner join of it
        return False
    classes: dict[tuple[int, int], set[tuple[int, int]]] = {}
    others: set[tuple[int, int]] = set()
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
