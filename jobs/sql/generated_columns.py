"""Generated columns in statements of jobs: their values where a statement omits them, and the
conditions that Delta derives for them in queries.

Delta computes a generated column that an INSERT, or a clause of a MERGE, does not name, and
computes it anew if an UPDATE sets a column from which it is computed. A query with a condition on
such a column also gets one on the partition column that is generated from it
(``GeneratedColumn.generatePartitionFilters``, called from ``PrepareDeltaScan``), so it reads fewer
partitions. This matters where a statement reads the table that it writes to. The conditions of
DELETE, UPDATE and MERGE get none: observed on Delta 4.4.0, a DELETE by ``at`` conflicts with an
INSERT of another day.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

from sqlglot import expressions as exp

from isolitmus.jobs.sql.uninterpreted_sources import (
    folded_schemas,
    statement_text,
    statement_tree,
    written_table,
)
from isolitmus.model.errors import SqlError
from isolitmus.model.sql.query import items_of, unknown_parts
from isolitmus.model.sql.schema import GeneratedColumn
from isolitmus.model.sql.statement import Read
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.source_text import DIALECT
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.schema import Schema

COMPARISONS: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ,
}  # fmt: skip
"""Comparisons, with those of exchanged operands."""
WIDER: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.LTE, exp.GT: exp.GTE}
"""Comparisons of days that those of moments imply."""
OPPOSITES: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT, exp.NEQ: exp.EQ,
}  # fmt: skip
"""Comparisons that are the negation of others."""
OF_DAYS: Mapping[type[exp.Expr], Sequence[tuple[type[exp.Expr], int]]] = {
    exp.EQ: ((exp.GTE, 0), (exp.LTE, 1)), exp.LT: ((exp.LTE, 0),), exp.LTE: ((exp.LTE, 1),),
    exp.GT: ((exp.GTE, 1),), exp.GTE: ((exp.GTE, 0),),
}  # fmt: skip
"""Conditions on a day that Delta derives from one on the day of a moment, with days to add."""
DAYS = (exp.TsOrDsToDate, exp.Date)
"""Functions that return the day of a moment, as a cast does."""
ONE_DAY = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY"))
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

    def narrows(self, schema: Schema) -> Literal["same", "day", "other", ""]:
        """Return the kind of conditions that Delta derives for it; "" for none."""
        value = self.value.unnest()
        if isinstance(value, exp.Column):
            return "same"
        if isinstance(value, exp.Cast) and isinstance(value.this, exp.Column):
            base = schema.columns[schema.index(value.this.name) or 0]
            return "day" if value.is_type("date") and base.type in ("TIMESTAMP", "DATE") else ""
        return "other" if isinstance(value, OPTIMIZED) else ""


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
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> columns = (Column("id", "INT"), Column("at", "TIMESTAMP"), Column("day", "DATE"))
    >>> t = with_generated(Schema("t", columns, ("day",)), [("day", "CAST(at AS DATE)")])
    >>> with_generated_columns("INSERT INTO t (id, at) VALUES (1, :at)", {"t": t})
    'INSERT INTO t (id, at, day) VALUES (1, :at, CAST(:at AS DATE))'
    >>> with_generated_columns("UPDATE t SET at = :at WHERE id = 1", {"t": t})
    'UPDATE t SET at = :at, day = CAST(:at AS DATE) WHERE id = 1'
    >>> with_generated_columns("INSERT INTO t SELECT * FROM t WHERE at < :at", {"t": t})
    'INSERT INTO t SELECT * FROM t WHERE at < :at AND (day <= CAST(:at AS DATE) OR day IS NULL)'
    """
    if not any(schema.generated for schema in schemas.values()):
        return text
    tree = statement_tree(text)
    if tree is None:
        return text
    tree, before = tree.copy(), tree
    folded = folded_schemas(schemas)
    written = written_table(tree).lower()
    if written not in folded:
        return text
    _derive(tree, folded[written])
    own = [*_of(folded[written])]
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


def _derive(tree: exp.Expr, schema: Schema) -> None:
    """Add to queries of the written table the conditions on partitions that Delta derives."""
    partitions = {name.lower() for name in schema.partitioned_by}
    own = [one for one in _of(schema) if one.name.lower() in partitions and one.narrows(schema)]
    if not own:
        return
    for select in [*tree.find_all(exp.Select)]:
        from_ = select.args.get("from_")
        joins = select.args.get("joins") or ()
        sides = [] if from_ is None else [from_.this, *(join.this for join in joins)]
        more: list[exp.Expr] = []
        for side in sides:
            if not isinstance(side, exp.Table) or side.name.lower() != schema.name.lower():
                continue
            alias = side.alias_or_name if len(sides) > 1 else ""
            for one in own:
                _refuse_unclear(tree, select, one)
                for part in _conditions(select):
                    more += _derived(part, one, alias, schema)
        if more:
            select.set("where", exp.Where(this=exp.and_(select.args["where"].this, *more)))


def _refuse_unclear(tree: exp.Expr, select: exp.Select, one: _Generated) -> None:
    """Refuse conditions that Spark may bring to the table from another query.

    They are those on columns that are computed from the generated column's. A condition on a
    column that equals one of these may be brought there as well.
    """
    parts = _conditions(select)
    equal = [p for p in parts if isinstance(p, exp.EQ) and isinstance(p.expression, exp.Column)]
    if len(parts) > len(equal) and (own := [p for p in equal if _names(p, one.bases)]):
        _refuse(one, own[0])
    names, common = _carried(tree, one.bases), {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    for other in tree.find_all(exp.Select):
        of_common = any(table.name in common for table in other.find_all(exp.Table))
        if not (of_common or _is_around(other, select)):
            continue
        around = [other.args.get(key) for key in ("having", "qualify")]
        if other is not select:
            around += [other.args.get("where")]
            around += [join.args.get("on") for join in other.args.get("joins") or ()]
        for part in around:
            if part is not None and (not names or _names(part, names)):
                _refuse(one, part.this if isinstance(part.this, exp.Condition) else part)


def _is_around(other: exp.Expr, query: exp.Expr) -> bool:
    """Return whether a query reads from another one, which is not in its conditions."""
    node: exp.Expr | None = query
    while node is not other and node is not None and not isinstance(node, exp.Where | exp.Having):
        node = node.parent
    return node is other


def _carried(tree: exp.Expr, bases: frozenset[str]) -> frozenset[str]:
    """Return columns of queries that are computed from some columns; none if any may be."""
    aliases = (alias for alias in tree.find_all(exp.TableAlias) if alias.columns)
    if tree.find(exp.SetOperation) or next(aliases, None) is not None:
        return frozenset()
    names, before = bases, frozenset[str]()
    items = [item for select in tree.find_all(exp.Select) for item in select.expressions]
    while names != before:
        before = names
        names |= {item.alias_or_name.lower() for item in items if _names(item, before)}
    return names


def _names(node: exp.Expr, names: Collection[str]) -> bool:
    """Return whether an expression names one of these columns, outside of subqueries."""
    parts = node.walk(prune=lambda part: isinstance(part, exp.Query))
    return any(isinstance(part, exp.Column) and part.name.lower() in names for part in parts)


def _refuse(one: _Generated, part: exp.Expr) -> NoReturn:
    """Refuse a condition from which Delta may derive another one."""
    problem = (
        f"the condition on {one.name} that Delta derives from '{part.sql(DIALECT)}' is not"
        f" modelled; write a condition on {one.name} where the table is read"
    )
    raise SqlError(problem, problem=problem)


def _conditions(select: exp.Select) -> list[exp.Expr]:
    """Return the conjuncts of a query's WHERE, as Spark's optimizer leaves them."""
    where = select.args.get("where")
    return [] if where is None else [*_conjuncts(where.this, negated=False)]


def _conjuncts(node: exp.Expr, *, negated: bool) -> Iterator[exp.Expr]:
    """Yield the conjuncts of a condition, or of its negation.

    ``BETWEEN`` is two comparisons, ``IN`` of one value is ``=``, and what both sides of an OR
    have in common holds.
    """
    bare = node.unnest()
    match bare:
        case exp.Not():
            yield from _conjuncts(bare.this, negated=not negated)
        case exp.And() | exp.Or():
            left, right = (
                [*_conjuncts(side, negated=negated)] for side in (bare.this, bare.expression)
            )
            if isinstance(bare, exp.And) != negated:
                yield from (*left, *right)
            else:
                yield from (part for part in left if part in right)
        case exp.Between() if not negated:
            yield exp.GTE(this=bare.this.copy(), expression=bare.args["low"].copy())
            yield exp.LTE(this=bare.this.copy(), expression=bare.args["high"].copy())
        case exp.In(expressions=[only]) if not negated and not isinstance(only, exp.Query):
            yield exp.EQ(this=bare.this.copy(), expression=only.copy())
        case _ if not negated:
            yield bare
        case _ if type(bare) in OPPOSITES:
            yield OPPOSITES[type(bare)](this=bare.this.copy(), expression=bare.expression.copy())


def _derived(part: exp.Expr, one: _Generated, alias: str, schema: Schema) -> Iterator[exp.Expr]:
    """Yield the condition on a generated column that Delta derives from a condition.

    A comparison may be unknown as well, which for a value other than NULL is so for NULL partitions
    only. Spark compares a moment whose day is compared with the first moment of a day
    (UnwrapCastInBinaryComparison).
    """
    kind, left, right = type(part), part.this, part.args.get("expression")
    if kind in COMPARISONS and _is_constant(left):
        kind, left, right = COMPARISONS[kind], right, left
    of_day = (isinstance(left, exp.Cast) and left.is_type("date")) or isinstance(left, DAYS)
    base = left.this if of_day else left
    if (
        not isinstance(base, exp.Column)
        or base.name.lower() not in one.bases
        or base.table.lower() not in ("", alias.lower())
    ):
        return
    if isinstance(part, exp.NullSafeEQ):
        _refuse(one, part)
    null = isinstance(part, exp.Is) and isinstance(right, exp.Null)
    if not null and (kind not in COMPARISONS or right is None or not _is_constant(right)):
        return
    narrows, own = one.narrows(schema), schema.columns[schema.index(base.name) or 0]
    of_day = of_day and own.type == "TIMESTAMP"
    if narrows == "other" or (of_day and (narrows != "day" or null)):
        _refuse(one, part)
    column = exp.column(one.name, table=alias or None)
    if null:
        yield exp.Is(this=column, expression=exp.Null())
        return
    assert right is not None
    given = exp.cast(right.copy(), "DATE") if own.type == "TIMESTAMP" else right.copy()
    plain = ((WIDER.get(kind, kind) if narrows == "day" else kind, 0),)
    for op, later in OF_DAYS[kind] if of_day else plain:
        value = exp.Add(this=given, expression=ONE_DAY.copy()) if later else given
        made = op(this=column.copy(), expression=value.copy())
        yield exp.paren(exp.or_(made, exp.Is(this=column.copy(), expression=exp.Null())))


def _is_constant(node: exp.Expr) -> bool:
    """Return whether an expression has one value in a statement, whatever the row."""
    return node.find(exp.Column, exp.Query, exp.AggFunc) is None
