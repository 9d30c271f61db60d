"""Uninterpreted sources: tables that stand for queries of which only the columns are known.

``MERGE … USING (SELECT *, row_number() OVER (…) AS rn FROM updates) s``: whatever the window
returns, reads and writes of the MERGE on its own table depend on the resulting rows, and these may
be any rows. Therefore the query is replaced by ``(SELECT order_id, …, rn FROM updates_rows WHERE
run = :run)`` on a table about which nothing is known. Each run has rows of its own, because its
parameters and the clock may differ, and a window may choose differently among equal rows.

The table over-approximates the query. "never" and "always" therefore hold for the query as well; an
example shows the rows that the query has to return.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from isolitmus.jobs.sql.query_keys import query_conditions, query_keys
from isolitmus.jobs.workload import QueryText
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.types import column_type
from isolitmus.specs.sql.parameters import one_line, with_markers
from isolitmus.specs.sql.quiet_sqlglot import parse_one, quiet_logging
from isolitmus.specs.sql.source_text import DIALECT
from isolitmus.specs.sql.syntax import without_evolution

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from isolitmus.model.sql.types import Type

RUN = "BIGINT"
"""Type of the column that distinguishes runs."""
SURE = ("STRING", "DATE", "TIMESTAMP", "BOOLEAN", "INT", "BIGINT")
"""Types of expressions for which sqlglot is trusted; Spark has its own rules for decimals."""
PASSING = (
    exp.Min, exp.Max, exp.First, exp.Last, exp.AnyValue, exp.Lag, exp.Lead, exp.FirstValue,
    exp.LastValue,
)  # fmt: skip
"""Functions whose value has the type of their operand."""


@dataclass(frozen=True, slots=True)
class UninterpretedSource:
    """Query of a statement, and the table that replaces it."""

    sql: str
    """Statement with the table in place of the query."""
    schema: Schema
    """Schema of the table."""
    types: Mapping[str, Type]
    """Parameter that selects the rows of a run, with its type; any number, different in each run.
    """
    query: str
    """Text of the query."""
    reads: tuple[str, ...] = ()
    """Tables that the query reads, in lower case."""
    keys: tuple[tuple[int, ...], ...] = ()
    """Indices of columns in which no two rows of the table agree."""
    where: str = ""
    """Condition that is true of its rows."""
    text: QueryText | None = None
    """The query with the definitions of WITH that it names, and its columns."""

    @property
    def assumption(self) -> Assumption:
        """Assumption that any rows stand for the query."""
        rows = f"any rows with {self.where}" if self.where else "any rows"
        return AssumptionKind.ANY_VALUE.says(
            f"An uninterpreted source, the table {self.schema.name}, stands for the query"
            f" ({self.query}): it may return {rows}, and other rows in each run."
        )


def written_tables(texts: Collection[str]) -> frozenset[str]:
    """Return the tables that statements write to, in lower case; text that does not parse writes
    none.

    Examples
    --------
    >>> source = "WITH s AS (SELECT 1 AS id FROM v)"
    >>> merge = f"{source} MERGE INTO a.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    >>> sorted(written_tables([merge, "DELETE FROM u"]))
    ['t', 'u']
    """
    found = set()
    for text in texts:
        tree = kept_tree(text)
        if isinstance(tree, exp.Create) and tree.kind != "TABLE":
            continue
        if isinstance(tree, exp.Create | exp.Insert | exp.Merge | exp.Update | exp.Delete):
            found.add(written_table(tree).lower())
        elif isinstance(tree, exp.TruncateTable):
            found |= {table.name.lower() for table in tree.expressions}
    return frozenset(found)


def changed_table(text: str) -> str | None:
    """Return the table, in lower case, of a statement that inserts, deletes or updates rows; None
    for another statement.

    Examples
    --------
    >>> changed_table("DELETE FROM T WHERE id IN (SELECT id FROM s)"), changed_table("DROP TABLE t")
    ('t', None)
    """
    tree = kept_tree(text)
    if not isinstance(tree, exp.Insert | exp.Merge | exp.Update | exp.Delete):
        return None
    return written_table(tree).lower() or None


def written_table(tree: exp.Expr) -> str:
    """Return the table that a statement writes to."""
    into = tree.this.find(exp.Table) if isinstance(tree.this, exp.Expr) else None
    return "" if into is None else into.name


def find_uninterpreted_sources(
    text: str, schemas: Mapping[str, Schema], taken: Collection[str] = (), *, dynamic: bool = False
) -> Iterator[UninterpretedSource]:
    """Yield replacements of a query that a MERGE or INSERT reads from, or that gives a value of an
    UPDATE, the smallest queries first.

    The value of an UPDATE becomes the maximum of the table's column, which may be any value, or
    NULL. The query must not read the table that the statement writes to, because the recorded reads
    depend on it, unless the statement overwrites the whole table and thus reads all of it. Nor may
    an INSERT join its table with others: Spark infers conditions on its columns from those of the
    query (InferFiltersFromConstraints), and Delta records them. The
    conditions that are true of its rows come with the table, and again without them, for a
    statement that is not understood with them.

    Parameters
    ----------
    text : str
        Text of the statement.
    schemas : mapping of str to Schema
        Schemas of the tables.
    taken : collection of str
        Names of existing parameters.
    dynamic : bool
        Whether an overwrite replaces only the partitions that it writes to.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {n: Schema(n, (Column("id", "BIGINT"), Column("day", "DATE"))) for n in ("t", "s")}
    >>> sql = "INSERT INTO t SELECT id + mine(id), :day FROM s WHERE day = :day"
    >>> for found in find_uninterpreted_sources(sql, tables):
    ...     print(found.sql, [str(column.ddl()) for column in found.schema.columns])
    INSERT INTO t SELECT id, :day FROM s_rows WHERE run = :run ['id BIGINT', 'run BIGINT']
    """
    tree = statement_tree(text)
    if not isinstance(tree, exp.Insert | exp.Merge | exp.Update):
        return
    known = folded_schemas(schemas)
    named = {each.alias.lower(): each for each in tree.find_all(exp.CTE)}
    own = set() if _of_all(tree, dynamic=dynamic) else {written_table(tree).lower()}
    stored_by = tree.expression if isinstance(tree, exp.Insert) else None
    if stored_by is not None and _joins(stored_by, own):
        return
    places = [*tree.find_all(exp.Select, exp.SetOperation, bfs=False)]
    if isinstance(tree, exp.Update):
        places = [one for one in places if _is_set_by(tree, one)]
    for place in reversed(places):  # inner queries first
        query = _with_named(place, named)
        read = {table.name.lower() for table in query.find_all(exp.Table)}
        read -= {each.alias.lower() for each in query.find_all(exp.CTE)}
        if not read or read - known.keys() or read & own:
            continue
        if _of_distinct(place) or place.find_ancestor(exp.Whens):
            continue
        stored = stored_columns(tree, schemas) if place is stored_by else None
        made = _made(query, schemas, stored, taken)
        if made is None:
            continue
        schema, instead, run, keys, columns = made
        if isinstance(tree, exp.Update):
            columns = None
        if isinstance(tree, exp.Update):
            instead.set("expressions", [exp.Max(this=one) for one in instead.expressions])
        tables = tuple(sorted(read))
        less = instead.copy().where(is_of_run(run), append=False)
        for rows in (instead, less) if instead != less else (instead,):
            changed = tree.copy()
            _at(changed, _path(place, tree)).replace(rows)
            if statement_tree(changed.sql(DIALECT)) != changed:  # sqlglot loses a part of the rest
                continue
            yield UninterpretedSource(
                statement_text(changed, text),
                schema,
                {run: RUN},
                place.sql(DIALECT),
                tables,
                keys,
                where := "" if rows is less else _conditions(rows),
                None if columns is None else replace(columns, where=where, tables=tables),
            )


def _with_named(query: exp.Expr, named: Mapping[str, exp.CTE]) -> exp.Expr:
    """Return a query with the queries of WITH that it names, in their order; a copy, if there are
    any.
    """
    used: set[str] = set()
    open_ = [query]
    while open_:
        found = {table.name.lower() for table in open_.pop().find_all(exp.Table)}
        new = (found & named.keys()) - used
        used |= new
        open_ += [named[name] for name in new]
    used -= {each.alias.lower() for each in query.find_all(exp.CTE)}
    if not used or query.find_ancestor(exp.CTE) is not None:
        return query
    whole = query.copy()
    parts = [one.copy() for name, one in named.items() if name in used]
    whole.set("with_", exp.With(expressions=parts))
    return whole


def _of_all(tree: exp.Expr, *, dynamic: bool) -> bool:
    """Return whether a statement overwrites its whole table."""
    if not isinstance(tree, exp.Insert) or not tree.args.get("overwrite") or dynamic:
        return False
    into = tree.this.find(exp.Table)
    return into is not None and not into.args.get("partition") and not tree.args.get("where")


def statement_tree(text: str) -> exp.Expr | None:
    """Return the parsed tree of a text, which may be changed, or None if it does not parse."""
    found = kept_tree(text)
    return None if found is None else found.copy()


@lru_cache(maxsize=256)
def kept_tree(text: str) -> exp.Expr | None:
    """Return the parsed tree of a text, which must not be changed, or None if it does not parse.

    Examples
    --------
    >>> kept_tree("DELETE FROM t") is kept_tree("DELETE FROM t")
    True
    """
    try:
        return parse_one(with_markers(one_line(without_evolution(text))), DIALECT)
    except SqlglotError:
        return None


def statement_text(tree: exp.Expr, text: str) -> str:
    """Return the text of a changed tree, with the words of the original that sqlglot lacks."""
    found = tree.sql(DIALECT)
    if without_evolution(text) == text:
        return found
    return found.replace("MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO", 1)


def _conditions(rows: exp.Select) -> str:
    """Return the conditions of a query on a table of any rows, but that on the run."""
    test = rows.args["where"].this
    parts = list(test.flatten())[1:] if isinstance(test, exp.And) else []
    return " AND ".join(one.sql(DIALECT) for one in parts)


def _joins(query: exp.Expr, tables: Collection[str]) -> bool:
    """Return whether a query joins one of some tables, named in lower case, with others."""
    selects = (
        table.find_ancestor(exp.Select)
        for table in query.find_all(exp.Table)
        if table.name.lower() in tables
    )
    return any(one is not None and one.args.get("joins") for one in selects)


def _is_set_by(tree: exp.Update, query: exp.Expr) -> bool:
    """Return whether a query in parentheses is a value that an UPDATE sets, or a part of one."""
    above = query.parent
    if not isinstance(above, exp.Subquery) or isinstance(
        above.parent, exp.From | exp.Join | exp.In
    ):
        return False
    while above.parent not in (None, tree) and not isinstance(above.parent, exp.Query):
        above = above.parent
    return above in tree.expressions


def _of_distinct(query: exp.Expr) -> bool:
    """Return whether a query is a branch of a UNION without ALL; these are replaced as a whole."""
    above = query.parent
    return isinstance(above, exp.SetOperation) and bool(above.args.get("distinct"))


def _path(node: exp.Expr, root: exp.Expr) -> int:
    """Return the index of a node in the traversal of its tree."""
    return next(k for k, each in enumerate(root.walk(bfs=False)) if each is node)


def _at(root: exp.Expr, path: int) -> exp.Expr:
    return next(each for k, each in enumerate(root.walk(bfs=False)) if k == path)


def stored_columns(tree: exp.Expr, schemas: Mapping[str, Schema]) -> tuple[Column, ...] | None:
    """Return the columns into which an INSERT stores its query's columns, in their order."""
    if not isinstance(tree, exp.Insert):
        return None
    schema = folded_schemas(schemas).get(written_table(tree).lower())
    if schema is None or tree.args.get("by_name"):
        return None
    if isinstance(tree.this, exp.Schema):
        places = [schema.index(column.name) for column in tree.this.expressions]
        return tuple(schema.columns[place] for place in places if place is not None)
    return schema.columns


def folded_schemas(schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    return {name.lower(): schema for name, schema in schemas.items()}


def _made(
    query: exp.Expr,
    schemas: Mapping[str, Schema],
    stored: tuple[Column, ...] | None,
    taken: Collection[str],
) -> tuple[Schema, exp.Select, str, tuple[tuple[int, ...], ...], QueryText | None] | None:
    """Return the table for a query, the query on it, the parameter that selects the rows of a run,
    the keys of the table, and the query's text.

    Return None if the type of a column is not known.
    """
    full = qualified_query(query, schemas)
    items = None if full is None else list(full.selects)
    if full is None or items is None or (stored is not None and len(stored) != len(items)):
        return None
    columns: dict[str, Column] = {}
    shown: list[exp.Expr] = []
    places: dict[str, int] = {}
    kept: list[int] = []
    for k, item in enumerate(items):
        name = item.alias_or_name if stored is None else stored[k].name
        inner = item.unalias()
        if _constant(inner) and not isinstance(query, exp.SetOperation):
            shown.append(exp.alias_(inner.copy(), name) if stored is None else inner.copy())
            continue
        type_ = stored[k].type if stored is not None else _type(inner, query)
        if type_ is None or name.lower() in columns:
            return None
        kept.append(k)
        places[item.alias_or_name.lower()] = len(columns)
        columns[name.lower()] = Column(name, type_)
        shown.append(exp.column(name))
    run = free_name("run", {*columns, *map(str.lower, taken)})
    first = next(table.name for table in query.find_all(exp.Table, bfs=False))
    name = free_name(f"{first}_rows", folded_schemas(schemas))
    made = list(columns.values())
    conditions: list[exp.Expr] = [is_of_run(run)]
    for condition in query_conditions(full):
        own = list(condition.find_all(exp.Column))
        if all(column.name.lower() in places for column in own):
            for column in own:
                column.replace(exp.column(made[places[column.name.lower()]].name))
            conditions.append(condition)
    instead = exp.select(*shown).from_(exp.to_table(name)).where(*conditions)
    keys = tuple(
        (*(places[name] for name in key if name in places), len(columns))
        for key in query_keys(full)
    )
    text = QueryText(query.sql(DIALECT), *_names_of(items), tuple(kept))
    return Schema(name, (*columns.values(), Column(run, RUN))), instead, run, keys, text


def _names_of(
    items: Sequence[exp.Expr],
) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
    """Return the names of each item and of the column that it shows, and the names of the columns
    that it is computed from.
    """
    names, parts = [], []
    for item in items:
        inner = item.unalias()
        value = inner.this if isinstance(inner, exp.Window) else inner
        names.append(tuple(sorted({item.alias_or_name.lower(), inner.name.lower()} - {""})))
        parts.append(tuple({one.name.lower(): None for one in value.find_all(exp.Column)}))
    return tuple(names), tuple(parts)


def is_of_run(run: str, table: str | None = None) -> exp.EQ:
    """Return the condition that a row is one of a run, whose number is the parameter ``run``."""
    return exp.EQ(this=exp.column(run, table=table), expression=exp.Placeholder(this=run))


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number if it is taken."""
    names = (name, *(f"{name}_{k}" for k in range(2, len(taken) + 3)))
    return next(one for one in names if one.lower() not in taken)


def _constant(value: exp.Expr) -> bool:
    """Return whether a value is the same in every row and independent of the query's tables."""
    return not value.find(
        exp.Column,
        exp.Star,
        exp.AggFunc,
        exp.Window,
        exp.Query,
        exp.Anonymous,
        exp.UDTF,
        exp.Rand,
        exp.Uuid,
    )


def qualified_query(query: exp.Expr, schemas: Mapping[str, Schema]) -> exp.Query | None:
    """Return a copy of a query in which each column names its table, with sqlglot's types; None if
    that is not possible.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"s": Schema("s", (Column("id", "BIGINT"),))}
    >>> print(qualified_query(statement_tree("SELECT id FROM db.s WHERE id > 1"), tables).sql())
    SELECT s.id AS id FROM s AS s WHERE s.id > 1
    """
    known: dict[str, object] = {
        name: {column.name: str(column.type) for column in schema.columns}
        for name, schema in schemas.items()
    }
    plain = query.copy()
    for table in plain.find_all(exp.Table):
        table.set("db", None)
        table.set("catalog", None)
    try:
        with quiet_logging():
            full = qualify(plain, schema=known, dialect=DIALECT, quote_identifiers=False)
            full = annotate_types(full, schema=known, dialect=DIALECT)
    except (SqlglotError, ValueError, RecursionError):
        return None
    return full if isinstance(full, exp.Query) and not full.is_star else None


def _type(value: exp.Expr, query: exp.Expr) -> Type | None:
    """Return the type of a column of a query if it is certain, or None."""
    if value.type is None:
        return None
    found = column_type(value.type.sql(DIALECT))
    laterals = {each.alias.lower() for each in query.find_all(exp.Lateral)}
    if any(column.table.lower() in laterals for column in value.find_all(exp.Column)):
        return None
    while isinstance(value, (*PASSING, exp.Window, exp.Paren, exp.IgnoreNulls)):
        value = value.this
    return found if found in SURE or isinstance(value, exp.Column | exp.Cast) else None
