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

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from isolitmus.model.schema import Column, Schema
from isolitmus.model.sql.types import type_named
from isolitmus.specs.sql.parameters import one_line, with_markers
from isolitmus.specs.sql.quiet_sqlglot import parse_one, quiet_logging
from isolitmus.specs.sql.syntax import without_evolution

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from isolitmus.model.sql.types import Type

__all__ = [
    "UndeclaredSource",
    "UninterpretedSource",
    "find_uninterpreted_sources",
    "replace_undeclared_sources",
    "written_tables",
]

DIALECT = "databricks"
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

    def __str__(self) -> str:
        return (
            f"An uninterpreted source, the table {self.schema.name}, stands for the query"
            f" ({self.query}): it may return any rows, and other rows in each run."
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
        tree = _tree(text)
        if isinstance(tree, exp.Insert | exp.Merge | exp.Update | exp.Delete):
            found.add(_target(tree).lower())
        elif isinstance(tree, exp.TruncateTable):
            found |= {table.name.lower() for table in tree.expressions}
    return frozenset(found)


def _target(tree: exp.Expr) -> str:
    """Return the table that a statement writes to."""
    into = tree.this.find(exp.Table) if isinstance(tree.this, exp.Expr) else None
    return "" if into is None else into.name


def find_uninterpreted_sources(
    text: str, schemas: Mapping[str, Schema], taken: Collection[str] = (), *, dynamic: bool = False
) -> Iterator[UninterpretedSource]:
    """Yield replacements of a query that a MERGE or INSERT reads from, the smallest queries first.

    The query must not read the table that the statement writes to, because the recorded reads
    depend on it, unless the statement overwrites the whole table and thus reads all of it.

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
    >>> from isolitmus.model.schema import Column, Schema
    >>> tables = {n: Schema(n, (Column("id", "BIGINT"), Column("day", "DATE"))) for n in ("t", "s")}
    >>> sql = "INSERT INTO t SELECT id + mine(id), :day FROM s WHERE day = :day"
    >>> for found in find_uninterpreted_sources(sql, tables):
    ...     print(found.sql, [str(column.ddl()) for column in found.schema.columns])
    INSERT INTO t SELECT id, :day FROM s_rows WHERE run = :run ['id BIGINT', 'run BIGINT']
    """
    tree = _tree(text)
    if not isinstance(tree, exp.Insert | exp.Merge) or _tree(tree.sql(DIALECT)) != tree:
        return
    known = _known(schemas)
    named = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    own = set() if _of_all(tree, dynamic=dynamic) else {_target(tree).lower()}
    kept = own | named
    stored_by = tree.expression if isinstance(tree, exp.Insert) else None
    places = [*tree.find_all(exp.Select, exp.SetOperation, bfs=False)]
    for place in reversed(places):  # inner queries first
        read = {table.name.lower() for table in place.find_all(exp.Table)}
        read -= {each.alias.lower() for each in place.find_all(exp.CTE)}
        if not read or read - known.keys() or read & kept:
            continue
        if _of_distinct(place) or place.find_ancestor(exp.Whens):
            continue
        stored = _stored(tree, schemas) if place is stored_by else None
        made = _made(place, schemas, stored, taken)
        if made is None:
            continue
        schema, instead, run = made
        changed = tree.copy()
        _at(changed, _path(place, tree)).replace(instead)
        yield UninterpretedSource(
            _text(changed, text), schema, {run: RUN}, place.sql(DIALECT), tuple(sorted(read))
        )


def _of_all(tree: exp.Expr, *, dynamic: bool) -> bool:
    """Return whether a statement overwrites its whole table."""
    if not isinstance(tree, exp.Insert) or not tree.args.get("overwrite") or dynamic:
        return False
    into = tree.this.find(exp.Table)
    return into is not None and not into.args.get("partition") and not tree.args.get("where")


def _tree(text: str) -> exp.Expr | None:
    """Return the parsed tree of a text, or None if it does not parse."""
    try:
        return parse_one(with_markers(one_line(without_evolution(text))), DIALECT)
    except SqlglotError:
        return None


def _text(tree: exp.Expr, text: str) -> str:
    """Return the text of a changed tree, with the words of the original that sqlglot lacks."""
    found = tree.sql(DIALECT)
    if without_evolution(text) == text:
        return found
    return found.replace("MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO", 1)


def _of_distinct(query: exp.Expr) -> bool:
    """Return whether a query is a branch of a UNION without ALL; these are replaced as a whole."""
    above = query.parent
    return isinstance(above, exp.SetOperation) and bool(above.args.get("distinct"))


def _path(node: exp.Expr, root: exp.Expr) -> int:
    """Return the index of a node in the traversal of its tree."""
    return next(k for k, each in enumerate(root.walk(bfs=False)) if each is node)


def _at(root: exp.Expr, path: int) -> exp.Expr:
    return next(each for k, each in enumerate(root.walk(bfs=False)) if k == path)


def _stored(tree: exp.Expr, schemas: Mapping[str, Schema]) -> tuple[Column, ...] | None:
    """Return the columns into which an INSERT stores its query's columns, in their order."""
    if not isinstance(tree, exp.Insert):
        return None
    schema = _known(schemas).get(_target(tree).lower())
    if schema is None or tree.args.get("by_name"):
        return None
    if isinstance(tree.this, exp.Schema):
        places = [schema.index(column.name) for column in tree.this.expressions]
        return tuple(schema.columns[place] for place in places if place is not None)
    return schema.columns


def _known(schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    return {name.lower(): schema for name, schema in schemas.items()}


def _made(
    query: exp.Expr,
    schemas: Mapping[str, Schema],
    stored: tuple[Column, ...] | None,
    taken: Collection[str],
) -> tuple[Schema, exp.Select, str] | None:
    """Return the table for a query, the query on it, and the parameter that selects the rows of a
    run.

    Return None if the type of a column is not known.
    """
    items = _items(query, schemas)
    if items is None or (stored is not None and len(stored) != len(items)):
        return None
    columns: dict[str, Column] = {}
    shown: list[exp.Expr] = []
    for k, item in enumerate(items):
        name = item.alias_or_name if stored is None else stored[k].name
        inner = item.unalias()
        if _constant(inner) and not isinstance(query, exp.SetOperation):
            shown.append(exp.alias_(inner.copy(), name) if stored is None else inner.copy())
            continue
        type_ = stored[k].type if stored is not None else _type(inner, query)
        if type_ is None or name.lower() in columns:
            return None
        columns[name.lower()] = Column(name, type_)
        shown.append(exp.column(name))
    run = _free("run", {*columns, *map(str.lower, taken)})
    first = next(table.name for table in query.find_all(exp.Table, bfs=False))
    name = _free(f"{first}_rows", _known(schemas))
    own = exp.EQ(this=exp.column(run), expression=exp.Placeholder(this=run))
    instead = exp.select(*shown).from_(exp.to_table(name)).where(own)
    return Schema(name, (*columns.values(), Column(run, RUN))), instead, run


def _free(name: str, taken: Collection[str]) -> str:
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


def _items(query: exp.Expr, schemas: Mapping[str, Schema]) -> list[exp.Expr] | None:
    """Return the columns of a query with their types as sqlglot infers them, or None."""
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
    return None if full.is_star else list(full.selects)  # type: ignore[attr-defined]


def _type(value: exp.Expr, query: exp.Expr) -> Type | None:
    """Return the type of a column of a query if it is certain, or None."""
    if value.type is None:
        return None
    found = type_named(value.type.sql(DIALECT).replace(" ", ""))
    laterals = {each.alias.lower() for each in query.find_all(exp.Lateral)}
    if any(column.table.lower() in laterals for column in value.find_all(exp.Column)):
        return None
    while isinstance(value, (*PASSING, exp.Window, exp.Paren, exp.IgnoreNulls)):
        value = value.this
    return found if found in SURE or isinstance(value, exp.Column | exp.Cast) else None


UNDERSTOOD = {"this", "db", "catalog", "alias", "sample", "version"}
"""Parts of a table in a query; any sample of any rows are any rows."""


@dataclass(frozen=True, slots=True)
class UndeclaredSource:
    """Table without DDL that a statement only reads, or an older version of a table.

    A table of any rows takes its place.
    """

    name: str
    """Table, version, function or path as written."""
    schema: Schema
    """Columns that the statement uses, with their assumed types, and one that distinguishes runs.
    """
    run: str
    """Parameter that selects the rows of a run."""
    older: bool = False
    """True for an older version of a table with DDL."""

    def __str__(self) -> str:
        columns = ", ".join(column.ddl() for column in self.schema.columns[:-1])
        of = f"{self.name} " if self.older else f"{self.name} has no DDL, and "
        return (
            f"{of}stands for any rows, others in each run"
            f"{f', with the columns {columns}' if columns else ''}."
        )


def replace_undeclared_sources(
    text: str,
    schemas: Mapping[str, Schema],
    taken: Collection[str] = (),
    *,
    by_run: bool = True,
    versions: bool = True,
) -> tuple[str, tuple[UndeclaredSource, ...]]:
    """Return a statement with a table of any rows in place of each table without DDL that it reads.

    The columns are those that the statement uses. A column has the type of what it is compared
    with, stored into, or cast to, else that of the written table's column of the same name, else
    STRING. The text is returned unchanged if its table has no DDL, or it does not parse. Each run
    has its own rows, unless ``by_run`` is False. With ``versions``, an older version of a table is
    treated alike: a transaction does not record that it reads one, unless no files are skipped.

    Examples
    --------
    >>> from isolitmus.model.schema import Column, Schema
    >>> tables = {"t": Schema("t", (Column("id", "BIGINT"), Column("day", "DATE")))}
    >>> sql = "INSERT INTO t SELECT * FROM db.new WHERE kind = 'x'"
    >>> made, (source,) = replace_undeclared_sources(sql, tables)
    >>> made
    "INSERT INTO t SELECT new.id, new.day FROM new_rows AS new WHERE kind = 'x' AND new.run = :run"
    >>> print(source)
    db.new has no DDL, and stands for any rows, others in each run, with the columns id BIGINT, \
day DATE, kind STRING.
    """
    tree = _tree(text)
    known = _known(schemas)
    if (
        not isinstance(tree, exp.Insert | exp.Merge | exp.Update)
        or _target(tree).lower() not in known
    ):
        return text, ()
    named = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    places: dict[str, list[exp.Table]] = {}
    for table in tree.find_all(exp.Table, bfs=False):
        given = isinstance(table.this, exp.Placeholder) or (
            isinstance(table.this, exp.Identifier)
            and table.name.lower() in {*known, *named}
            and not (versions and table.args.get("version"))
            and not _is_elsewhere(table, tree)
        )
        if not given:
            places.setdefault(_named_source(table), []).append(table)
    made: list[UndeclaredSource] = []
    names, parameters = {*known}, {*taken, *(p.name for p in tree.find_all(exp.Placeholder))}
    for name, tables in places.items():
        if any({*_given(table)} - UNDERSTOOD for table in tables):
            return text, ()
        older = known.get(tables[0].name.lower()) if tables[0].args.get("version") else None
        if older is None:
            columns, stars = _used(tree, tables, known)
        else:
            columns = {older.columns[i].name: older.columns[i].type for i in older.shown}
            stars = [*columns]
        run = _free("run", {*columns, *map(str.lower, parameters)})
        plain = re.sub(r"\W+", "_", name.rpartition(".")[2]).strip("_") or "source"
        own = _free(f"{plain}_rows", names)
        names.add(own)
        parameters.add(run)
        for table in tables:
            alias = table.alias or (table.name if table.name.isidentifier() else plain)
            scope = table.find_ancestor(exp.Select, exp.Merge)
            row = exp.EQ(this=exp.column(run, table=alias), expression=exp.Placeholder(this=run))
            if isinstance(scope, exp.Select):
                _expand_stars(scope, table, alias, stars)
                if by_run and columns and _sources(scope) == [table]:
                    table.replace(exp.to_table(own, alias=alias))
                    scope.where(row, copy=False)
                    continue
            if not by_run:
                table.replace(exp.to_table(own, alias=alias))
                continue
            rows = exp.select(*map(exp.column, columns or [run])).from_(exp.to_table(own))
            row.this.set("table", None)
            rows = rows.where(row)
            table.replace(rows.subquery(alias))
        every = tuple(Column(column, type_) for column, type_ in columns.items())
        schema = Schema(own, (*every, Column(run, RUN)))
        made.append(UndeclaredSource(name, schema, run, older is not None))
    return (_text(tree, text), tuple(made)) if made else (text, ())


def _is_elsewhere(table: exp.Table, tree: exp.Expr) -> bool:
    """Return whether a table has the name of the written one, but another database."""
    into = tree.this.find(exp.Table)
    databases = {f"{one.catalog}.{one.db}".lower() for one in (table, into) if one is not None}
    return (
        into is not None
        and into.name.lower() == table.name.lower()
        and bool(into.db and table.db)
        and len(databases) == 2
    )


def _expand_stars(scope: exp.Select, table: exp.Table, alias: str, names: Sequence[str]) -> None:
    """Name the columns that ``*`` and ``s.*`` stand for in a SELECT from an undeclared table."""
    alone = len(_sources(scope)) == 1
    items: list[exp.Expr] = []
    for item in scope.expressions:
        qualified = (
            isinstance(item, exp.Column) and item.table.lower() == table.alias_or_name.lower()
        )
        if not item.is_star or not (qualified or (alone and isinstance(item, exp.Star))):
            items.append(item)
            continue
        star = item.this if isinstance(item, exp.Column) else item
        out = {one.name.lower() for one in star.args.get("except_") or ()}
        items += [exp.column(name, table=alias) for name in names if name.lower() not in out]
    scope.set("expressions", items)


def _outer_names(tree: exp.Expr, scope: exp.Expr, own: Collection[str]) -> dict[str, exp.Column]:
    """Return the columns that outer queries take from the star of a query, by name.

    ``own`` are the names in lower case that the written table has, which an outer query may mean.
    """
    found: dict[str, exp.Column] = {}
    while isinstance(scope, exp.Select):
        named = {item.alias_or_name.lower() for item in scope.expressions if not item.is_star}
        if len(named) == len(scope.expressions):
            break
        around = scope.parent
        while isinstance(around, exp.SetOperation):
            around = around.parent
        if not isinstance(around, exp.Subquery | exp.CTE):
            break
        places: list[exp.Expr] = [around]
        if isinstance(around, exp.CTE):
            alias = around.alias.lower()
            places = [one for one in tree.find_all(exp.Table) if one.name.lower() == alias]
        next_: exp.Expr | None = None
        for place in places:
            holder = place.find_ancestor(exp.Select, exp.Merge)
            for column in holder.find_all(exp.Column) if holder is not None else ():
                here = column.find_ancestor(exp.Select, exp.Merge) is holder
                inside = column.find_ancestor(exp.Subquery) is around
                mine = (
                    column.table.lower() == place.alias_or_name.lower()
                    if column.table
                    else (here and not inside and column.name.lower() not in own)
                )
                if mine and not column.is_star and column.name.lower() not in named:
                    found.setdefault(column.name, column)
            next_ = holder
        if next_ is None:
            break
        scope = next_
    return found


def _given(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value]


def _named_source(table: exp.Table) -> str:
    """Return a table, function or path as written, without its alias."""
    plain = table.copy()
    plain.set("alias", None)
    plain.set("sample", None)
    return plain.sql(DIALECT)


def _used(
    tree: exp.Expr, tables: Sequence[exp.Table], known: Mapping[str, Schema]
) -> tuple[dict[str, Type], list[str]]:
    """Return the columns of an undeclared table that a statement uses, with their types, and the
    names of those that its stars stand for.
    """
    target = known[_target(tree).lower()]
    found: dict[str, Type | None] = {}
    stars: dict[str, Type | None] = {}
    for table in tables:
        alias = table.alias_or_name.lower()
        scope = table.find_ancestor(exp.Select, exp.Merge)
        if scope is None:
            continue
        sources = _sources(scope)
        others = [one for one in sources if one is not table]
        own = {column.name.lower() for one in others for column in _columns_of(one, known)}
        for column in scope.find_all(exp.Column):
            if isinstance(column.this, exp.Star):
                if column.table.lower() == alias:
                    stars |= _starred(column, tree, target)
            elif column.table.lower() == alias or (
                not column.table
                and column.find_ancestor(exp.Select, exp.Merge) is scope
                and column.name.lower() not in own
            ):
                found[column.name] = found.get(column.name) or _met(column, tree, known)
        if isinstance(scope, exp.Merge):
            thens = [when.args["then"] for when in scope.args["whens"].expressions]
            if any(then.find(exp.Star) is not None for then in thens):
                stars |= {target.columns[i].name: target.columns[i].type for i in target.shown}
        else:
            for item in scope.expressions:
                if isinstance(item, exp.Star):
                    stars |= _starred(item, tree, target)
            if stars:
                names = {column.name.lower() for column in target.columns}
                outer = _outer_names(tree, scope, names)
                stars |= {n: _met(c, tree, known) for n, c in outer.items() if n not in stars}
            for join in scope.args.get("joins") or ():
                found |= {name.name: None for name in join.args.get("using") or ()}
    found = stars | {name: type_ or stars.get(name) for name, type_ in found.items()}
    same = {column.name.lower(): column.type for column in target.columns}
    folded = {name.lower(): name for name in reversed([*found])}
    columns = {
        name: found[name] or same.get(name.lower(), "STRING")
        for name in found
        if folded[name.lower()] == name
    }
    return columns, [name for name in columns if name in stars]


def _starred(star: exp.Expr, tree: exp.Expr, target: Schema) -> dict[str, Type | None]:
    """Return the columns that a star of an undeclared table stands for: those of the written table.

    In the query of an INSERT these are the columns at its positions.
    """
    columns = [target.columns[i] for i in target.shown]
    query = tree.expression if isinstance(tree, exp.Insert) else None
    left_out = next(star.find_all(exp.Star)).args.get("except_")
    if isinstance(query, exp.Select) and star.parent is query and not left_out:
        stored = _stored(tree, {target.name: target})
        if stored is not None:
            start = next(k for k, item in enumerate(query.expressions) if item is star)
            columns = list(stored[start : len(stored) - len(query.expressions) + start + 1])
    return {column.name: column.type for column in columns}


def _sources(scope: exp.Expr) -> list[exp.Expr]:
    """Return the tables and queries from which a SELECT or MERGE reads."""
    if isinstance(scope, exp.Merge):
        return [scope.this, scope.args["using"]]
    start = scope.args.get("from_")
    joins = scope.args.get("joins") or ()
    return [one.this for one in (*([] if start is None else [start]), *joins)]


def _columns_of(source: exp.Expr, known: Mapping[str, Schema]) -> tuple[Column, ...]:
    schema = known.get(source.name.lower()) if isinstance(source, exp.Table) else None
    return () if schema is None else schema.columns


def _met(column: exp.Column, tree: exp.Expr, known: Mapping[str, Schema]) -> Type | None:
    """Return the type of what a column is compared with, stored into, or cast to; else None."""
    target = known[_target(tree).lower()]
    above = column.parent
    while isinstance(above, exp.Paren | exp.Alias):
        above = above.parent
    match above:
        case exp.Cast():
            return type_named(above.to.sql(DIALECT).replace(" ", ""))
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.NullSafeEQ():
            other = above.expression if above.this.unnest() is column else above.this
            if isinstance(other, exp.Column):
                named = [
                    known[t.name.lower()]
                    for t in tree.find_all(exp.Table)
                    if t.name.lower() in known
                    and other.table.lower() in ("", t.alias_or_name.lower())
                ]
                types = {
                    one.columns[i].type for one in named if (i := one.index(other.name)) is not None
                }
                return types.pop() if len(types) == 1 else None
            if isinstance(other, exp.Literal):
                return "STRING" if other.is_string else "BIGINT" if other.is_int else "DOUBLE"
            if isinstance(other, exp.Cast):
                return type_named(other.to.sql(DIALECT).replace(" ", ""))
        case exp.Tuple(parent=exp.Insert() as insert) if isinstance(insert.this, exp.Tuple):
            listed = [one.name for one in insert.this.expressions]
            place = next(k for k, one in enumerate(above.expressions) if one.unnest() is column)
            index = target.index(listed[place]) if place < len(listed) else None
            return None if index is None else target.columns[index].type
        case exp.Select() if above is tree.expression:
            stored = _stored(tree, {target.name: target})
            place = next(k for k, one in enumerate(above.expressions) if one.unalias() is column)
            if stored is not None and len(stored) == len(above.expressions):
                return stored[place].type
    return None
