"""Generated columns in statements of jobs: their values where a statement omits them, and the
conditions that Delta derives for them in queries.

Delta computes a generated column that an INSERT, or a clause of a MERGE, does not name, and
computes it anew if an UPDATE sets a column from which it is computed. A query with a condition on
such a column also gets one on the partition column that is generated from it
(``GeneratedColumn.generatePartitionFilters``, called from ``PrepareDeltaScan``), so it reads fewer
partitions. The conditions of DELETE, UPDATE and MERGE get none: observed on Delta 4.4.0, a DELETE
by ``at`` conflicts with an INSERT of another day.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp

from isolitmus.model.errors import SqlError
from isolitmus.model.schema import GeneratedColumn
from isolitmus.model.sql.query import items_of, unknown_parts
from isolitmus.model.sql.statement import Read
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.statements import read_statement
from isolitmus.specs.sql.uninterpreted_sources import (
    DIALECT,
    folded_schemas,
    statement_text,
    statement_tree,
    written_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.expression import Expr

__all__ = ["with_generated", "with_generated_columns"]

COMPARISONS: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ,
}  # fmt: skip
"""Comparisons, with those of exchanged operands."""
WIDER: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.LTE, exp.GT: exp.GTE}
"""Comparisons of days that those of moments imply."""
OPTIMIZED = (
    exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour, exp.Substring, exp.TimestampTrunc,
    exp.DateTrunc, exp.TimeToStr,
)  # fmt: skip
"""Expressions from which Delta derives other conditions, which are not modelled."""


class _Generated(NamedTuple):
    """Generated column of a table."""

    name: str
    value: exp.Expr
    is_known: bool
    """True if the expression is modelled."""

    @property
    def bases(self) -> frozenset[str]:
        """Names of the columns from which it is computed, in lower case."""
        return frozenset(column.name.lower() for column in self.value.find_all(exp.Column))


def with_generated(schema: Schema, generated: Iterable[tuple[str, str]]) -> Schema:
    """Return the schema with generated columns, each with its expression in SQL.

    Nothing is known of the value of an expression that is not modelled.
    """
    found = [GeneratedColumn(name, sql, _value(schema, name, sql)) for name, sql in generated]
    open_ = {one.name.lower() for one in found if one.value is None}
    columns = (
        replace(column, default=column.default or column.name.lower() in open_)
        for column in schema.columns
    )
    return replace(schema, columns=tuple(columns), generated=tuple(found))


def _value(schema: Schema, name: str, sql: str) -> Expr | None:
    """Return the expression of a generated column; None if it is not modelled."""
    try:
        read = read_statement(f"SELECT {sql} FROM {schema.name}", {schema.name: schema})
    except SqlError:
        return None
    assert isinstance(read, Read)
    (item,) = items_of(read.query[0])
    column = schema.columns[schema.index(name) or 0]
    return None if item.type != column.type or unknown_parts(item) else item


def with_generated_columns(text: str, schemas: Mapping[str, Schema]) -> str:
    """Return a statement that names the values of generated columns, and the derived conditions.

    Parameters
    ----------
    text : str
        Statement.
    schemas : mapping of str to Schema
        Tables, with their generated columns.

    Raises
    ------
    SqlError
        If Delta derives a condition that is not modelled.

    Examples
    --------
    >>> from isolitmus.model.schema import Column, Schema
    >>> columns = (Column("id", "INT"), Column("at", "TIMESTAMP"), Column("day", "DATE"))
    >>> t = with_generated(Schema("t", columns, ("day",)), [("day", "CAST(at AS DATE)")])
    >>> with_generated_columns("INSERT INTO t (id, at) VALUES (1, :at)", {"t": t})
    'INSERT INTO t (id, at, day) VALUES (1, :at, CAST(:at AS DATE))'
    >>> with_generated_columns("UPDATE t SET at = :at WHERE id = 1", {"t": t})
    'UPDATE t SET at = :at, day = CAST(:at AS DATE) WHERE id = 1'
    >>> with_generated_columns("SELECT id FROM t WHERE at < :at", {"t": t})
    'SELECT id FROM t WHERE at < :at AND (day <= CAST(:at AS DATE) OR day IS NULL)'
    """
    if not any(schema.generated for schema in schemas.values()):
        return text
    tree = statement_tree(text)
    if tree is None:
        return text
    tree, before = tree.copy(), tree
    folded = folded_schemas(schemas)
    for select in [*tree.find_all(exp.Select)]:
        _derive(select, folded)
    written = written_table(tree).lower()
    own = [*_of(folded[written])] if written in folded else []
    known = [one for one in own if one.is_known]
    match tree:
        case exp.Insert() if known:
            _insert(tree, known)
        case exp.Update() if own:
            tree.set("expressions", [*tree.expressions, *_recomputed(tree.expressions, own)])
        case exp.Merge() if own:
            target = tree.this.alias_or_name
            for when in tree.args["whens"].expressions:
                _clause(when.args["then"], own, target)
    return text if tree == before else statement_text(tree, text)


def _of(schema: Schema) -> Iterator[_Generated]:
    """Yield the generated columns of a table."""
    for one in schema.generated:
        yield _Generated(one.name, parse_one(one.sql, DIALECT), one.value is not None)


def _substituted(one: _Generated, values: Mapping[str, exp.Expr], table: str = "") -> exp.Expr:
    """Return the value of a generated column: of these values, and of the row's other columns."""

    def value(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        given = values.get(node.name.lower())
        if given is None:
            return exp.column(node.name, table=table or None)
        inner = given.unalias().copy()
        return exp.paren(inner) if isinstance(inner, exp.Binary) else inner

    return one.value.copy().transform(value)


def _insert(tree: exp.Insert, own: Sequence[_Generated]) -> None:
    """Add the generated columns that an INSERT omits."""
    if tree.args.get("by_name"):
        _append(tree.expression, own, None)
        return
    into = tree.this
    if not isinstance(into, exp.Schema):
        return
    names = [column.name.lower() for column in into.expressions]
    missing = [one for one in own if one.name.lower() not in names]
    if missing:
        made = _append(tree.expression, missing, names)
        tree.set("expression", made)
        into.set("expressions", [*into.expressions, *(exp.to_identifier(g.name) for g in missing)])


def _append(
    query: exp.Expr, missing: Sequence[_Generated], names: Sequence[str] | None
) -> exp.Expr:
    """Append the values of columns to the rows of a query, whose columns have these names.

    Without names, each item has its own, and columns that it has are left out.
    """
    match query:
        case exp.Values():
            for row in query.expressions:
                if isinstance(row, exp.Tuple) and names is not None:
                    _extend(row, missing, dict(zip(names, row.expressions, strict=False)))
        case exp.SetOperation():
            query.set("this", _append(query.this, missing, names))
            query.set("expression", _append(query.expression, missing, names))
        case exp.Subquery():
            query.set("this", _append(query.this, missing, names))
        case exp.Select() if not any(item.is_star for item in query.expressions):
            own = [item.alias_or_name.lower() for item in query.expressions]
            left = [g for g in missing if names is not None or g.name.lower() not in own]
            _extend(
                query, left, dict(zip(names or own, query.expressions, strict=False)), named=True
            )
        case exp.Select() if names is not None:
            alias = exp.TableAlias(
                this=exp.to_identifier("given"), columns=[exp.to_identifier(n) for n in names]
            )
            inner = exp.Subquery(this=query.copy(), alias=alias)
            made = exp.select(*(exp.column(n) for n in names)).from_(inner)
            _extend(made, missing, {}, named=True)
            return made
    return query


def _extend(
    node: exp.Expr,
    missing: Sequence[_Generated],
    values: Mapping[str, exp.Expr],
    *,
    named: bool = False,
) -> None:
    """Append the values of columns to the expressions of a row or a query."""
    every = {**dict.fromkeys((b for g in missing for b in g.bases), exp.null()), **values}
    if named and not values:
        every = {}
    made = [_substituted(one, every) for one in missing]
    if named:
        made = [exp.alias_(value, one.name) for value, one in zip(made, missing, strict=True)]
    node.set("expressions", [*node.expressions, *made])


def _recomputed(
    sets: Sequence[exp.Expr], own: Sequence[_Generated], table: str = ""
) -> Iterator[exp.Expr]:
    """Yield the assignments of generated columns that an UPDATE computes anew."""
    given = {one.this.name.lower(): one.expression for one in sets if isinstance(one, exp.EQ)}
    for one in own:
        if one.name.lower() not in given and one.bases & given.keys():
            value = _substituted(one, given, table) if one.is_known else exp.var("DEFAULT")
            yield exp.EQ(this=exp.column(one.name, table=table or None), expression=value)


def _clause(then: exp.Expr, own: Sequence[_Generated], target: str) -> None:
    """Add the generated columns that a clause of a MERGE omits."""
    if isinstance(then, exp.Update) and not isinstance(
        next(iter(then.expressions), None), exp.Star
    ):
        then.set("expressions", [*then.expressions, *_recomputed(then.expressions, own, target)])
    if isinstance(then, exp.Insert) and isinstance(then.this, exp.Tuple):
        names = [column.name.lower() for column in then.this.expressions]
        missing = [one for one in own if one.name.lower() not in names and one.is_known]
        _extend(
            then.expression, missing, dict(zip(names, then.expression.expressions, strict=False))
        )
        named = [exp.column(one.name) for one in missing]
        then.this.set("expressions", [*then.this.expressions, *named])


def _derive(select: exp.Select, folded: Mapping[str, Schema]) -> None:
    """Add to a query the conditions on partitions that Delta derives from those of its WHERE."""
    where, from_ = select.args.get("where"), select.args.get("from_")
    if where is None or from_ is None:
        return
    sides = [from_.this, *(join.this for join in select.args.get("joins") or ())]
    parts = [*where.this.flatten()] if isinstance(where.this, exp.And) else [where.this]
    more: list[exp.Expr] = []
    for side in sides:
        schema = folded.get(side.name.lower()) if isinstance(side, exp.Table) else None
        if schema is None or not schema.generated:
            continue
        partitions = {name.lower() for name in schema.partitioned_by}
        for one in _of(schema):
            if one.name.lower() in partitions:
                alias = side.alias_or_name if len(sides) > 1 else ""
                for part in parts:
                    more += _derived(part, one, alias, schema)
    if more:
        select.set("where", exp.Where(this=exp.and_(where.this, *more)))


def _derived(part: exp.Expr, one: _Generated, alias: str, schema: Schema) -> Iterator[exp.Expr]:
    """Yield the condition on a generated column that Delta derives from a condition.

    A comparison may be unknown as well, which for a value other than NULL is so for NULL partitions
    only.
    """
    kind, left, right = type(part), part.this, part.args.get("expression")
    if kind in COMPARISONS and isinstance(right, exp.Column) and _is_constant(left):
        kind, left, right = COMPARISONS[kind], right, left
    base = left if isinstance(left, exp.Column) else None
    if base is None or base.name.lower() not in one.bases or base.table not in ("", alias):
        return
    null = isinstance(part, exp.Is) and isinstance(right, exp.Null)
    if not null and (kind not in COMPARISONS or right is None or not _is_constant(right)):
        return
    column = exp.column(one.name, table=alias or None)
    value, own = one.value, schema.columns[schema.index(base.name) or 0]
    same = isinstance(value, exp.Column)
    day = (
        isinstance(value, exp.Cast) and isinstance(value.this, exp.Column) and value.is_type("date")
    )
    if not same and not (day and own.type in ("TIMESTAMP", "DATE")):
        if isinstance(value.unnest(), OPTIMIZED):
            problem = (
                f"Delta derives a condition on {one.name} from that on {base.name}, by"
                f" {value.sql(DIALECT)}; only CAST({base.name} AS DATE) is modelled"
            )
            raise SqlError(problem, problem=problem)
        return
    if null:
        yield exp.Is(this=column, expression=exp.Null())
        return
    assert right is not None
    given = right.copy()
    if day and own.type == "TIMESTAMP":
        given = exp.cast(given, "DATE")
    made = (WIDER.get(kind, kind) if day else kind)(this=column, expression=given)
    yield exp.paren(exp.or_(made, exp.Is(this=column.copy(), expression=exp.Null())))


def _is_constant(node: exp.Expr) -> bool:
    """Return whether an expression has one value in a statement, whatever the row."""
    return node.find(exp.Column, exp.Query, exp.AggFunc) is None
