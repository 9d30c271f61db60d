"""Tables without DDL that statements only read: their columns come from use, their rows are any.

Statements name sources that no DDL declares: staging tables, files by path, ``read_files(…)``, and
older versions of a table. What a statement reads and writes of its own table depends on the rows of
such a source, which may be any. So a table about which nothing is known takes its place. It has the
columns that the statement uses, and each run has rows of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from isolitmus.jobs.sql.uninterpreted_sources import (
    RUN,
    folded_schemas,
    free_name,
    is_of_run,
    kept_tree,
    statement_text,
    stored_columns,
    written_table,
)
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.types import type_named
from isolitmus.specs.sql.parameters import BLANK, PIECE, one_line
from isolitmus.specs.sql.source_text import DIALECT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from isolitmus.model.sql.types import Type

UNPARSED = re.compile(
    r"\|>|\bWITH\s+RECURSIVE\b|\bNEAREST\b|[\w`]\s+WITH\s*\(\s*(?:'[^']*'|[\w.`-]+)\s*=",
    re.IGNORECASE,
)
"""Parts of queries that Spark has and sqlglot does not parse: pipes, recursion, nearest rows, and
options of a table.
"""
INTO = re.compile(
    rf"(?P<before>{BLANK}WITH\b.*?\)\s*+)?(?P<head>{BLANK}INSERT\s+(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?"
    r"(?:`?\w++`?\s*+\.\s*+)*+`?(?P<table>\w+)`?(?:\s+PARTITION\s*\([^()]*\))?(?:\s+BY\s+NAME"
    r"|\s*\((?!\s*(?:SELECT|WITH|FROM|TABLE|VALUES)\b)[^()]*\))?\s*+)"
    r"(?P<query>\(?\s*(?:SELECT|WITH|FROM|TABLE|VALUES)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
USING = re.compile(
    rf"(?P<head>{BLANK}MERGE\b(?:(?!\bINTO\s).)*+\bINTO\s++"
    r"(?:`?\w++`?\s*+\.\s*+)*+`?(?P<table>\w++)`?.*?\bUSING\s*+)\(",
    re.IGNORECASE | re.DOTALL,
)

NO_HINTS: Mapping[str, Schema] = MappingProxyType({})
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
    query: str = ""
    """Query that does not parse, if the table takes its place."""

    @property
    def assumption(self) -> Assumption:
        """Assumption that any rows stand for it."""
        columns = ", ".join(column.ddl() for column in self.schema.columns[:-1])
        of = "" if self.older else " has no DDL. It is no view of a declared table, and"
        named = f"The query ({self.query})" if self.query else f"{self.name}{of}"
        anything = self.older or self.query
        kind = AssumptionKind.ANY_VALUE if anything else AssumptionKind.NO_VIEW
        return kind.says(
            f"{named} stands for any rows, others in each run"
            f"{f', with the columns {columns}' if columns else ''}."
        )


def replace_undeclared_sources(
    text: str,
    schemas: Mapping[str, Schema],
    taken: Collection[str] = (),
    *,
    by_run: bool = True,
    versions: bool = True,
    hints: Mapping[str, Schema] = NO_HINTS,
) -> tuple[str, tuple[UndeclaredSource, ...]]:
    """Return a statement with a table of any rows in place of each table without DDL that it reads.

    The columns are those that the statement uses. ``hints`` has the known columns of some
    tables, by name in lower case. Another column has the type of what it is compared with, stored
    into, or cast to, else that of the written table's column of the same name, else STRING. The
    text is returned unchanged if its table has no DDL, or it does not parse. Each run has its own
    rows, unless ``by_run`` is False. With ``versions``, an older version of a table is treated
    alike: a transaction does not record that it reads one, unless no files are skipped.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"t": Schema("t", (Column("id", "BIGINT"), Column("day", "DATE")))}
    >>> sql = "INSERT INTO t SELECT * FROM db.new WHERE kind = 'x'"
    >>> made, (source,) = replace_undeclared_sources(sql, tables)
    >>> made
    "INSERT INTO t SELECT new.id, new.day FROM new_rows AS new WHERE kind = 'x' AND new.run = :run"
    >>> print(source.assumption)
    db.new has no DDL. It is no view of a declared table, and stands for any rows, others in each \
run, with the columns id BIGINT, day DATE, kind STRING.
    """
    first, known = kept_tree(text), folded_schemas(schemas)
    if (
        not isinstance(first, exp.Insert | exp.Merge | exp.Update)
        or written_table(first).lower() not in known
        or not _undeclared(first, known, versions=versions)
    ):
        return text, ()
    tree = first.copy()
    places = _undeclared(tree, known, versions=versions)
    made: list[UndeclaredSource] = []
    names, parameters = {*known}, {*taken, *(p.name for p in tree.find_all(exp.Placeholder))}
    for name, tables in places.items():
        if any(
            value and key not in UNDERSTOOD for table in tables for key, value in table.args.items()
        ):
            return text, ()
        older = known.get(tables[0].name.lower()) if tables[0].args.get("version") else None
        if older is None:
            columns, stars = _used(tree, tables, known, hints.get(tables[0].name.lower()))
        else:
            columns = {older.columns[i].name: older.columns[i].type for i in older.shown}
            stars = [*columns]
        run = free_name("run", {*columns, *map(str.lower, parameters)})
        plain = re.sub(r"\W+", "_", name.rpartition(".")[2]).strip("_") or "source"
        own = free_name(f"{plain}_rows", names)
        names.add(own)
        parameters.add(run)
        for table in tables:
            alias = table.alias or (table.name if table.name.isidentifier() else plain)
            scope = table.find_ancestor(exp.Select, exp.Merge)
            if isinstance(scope, exp.Select):
                _expand_stars(scope, table, alias, stars)
                if by_run and columns and _sources(scope) == [table]:
                    table.replace(exp.to_table(own, alias=alias))
                    scope.where(is_of_run(run, alias), copy=False)
                    continue
            if not by_run:
                table.replace(exp.to_table(own, alias=alias))
                continue
            rows = exp.select(*map(exp.column, columns or [run])).from_(exp.to_table(own))
            table.replace(rows.where(is_of_run(run)).subquery(alias))
        every = tuple(Column(column, type_) for column, type_ in columns.items())
        schema = Schema(own, (*every, Column(run, RUN)))
        made.append(UndeclaredSource(name, schema, run, older is not None))
    return (statement_text(tree, text), tuple(made)) if made else (text, ())


def _undeclared(
    tree: exp.Expr, known: Collection[str], *, versions: bool
) -> dict[str, list[exp.Table]]:
    """Return the tables of a statement that are not declared, by their names as written."""
    named = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    places: dict[str, list[exp.Table]] = {}
    for table in tree.find_all(exp.Table, bfs=False):
        name = table.name.lower()
        given = isinstance(table.this, exp.Placeholder) or (
            isinstance(table.this, exp.Identifier)
            and (name in known or name in named)
            and not (versions and table.args.get("version"))
            and not _is_elsewhere(table, tree)
        )
        if not given:
            places.setdefault(_named_source(table), []).append(table)
    return places


def replace_unparsed_query(text: str, schemas: Collection[str]) -> tuple[str, str, str] | None:
    """Return a statement with a table without DDL in place of its query, its name, and the query.

    That is done for the query of an INSERT and the source of a MERGE, if it has a part that sqlglot
    does not parse, and does not name the written table. Otherwise None is returned.

    Examples
    --------
    >>> replace_unparsed_query("INSERT INTO t FROM s |> WHERE id > 1 |> SELECT id", ["t", "s"])
    ('INSERT INTO t SELECT * FROM query', 'query', 'FROM s |> WHERE id > 1 |> SELECT id')
    >>> replace_unparsed_query("INSERT INTO t FROM t |> SELECT id", ["t"]) is None
    True
    """
    plain = PIECE.sub(lambda piece: "x" * len(piece[0]) if piece[0][0] in "'\"" else piece[0], text)
    if UNPARSED.search(plain) is None:
        return None
    name = free_name("query", [one.lower() for one in schemas])
    if found := INTO.fullmatch(plain):
        start, end = found.span("query")
        query, of_all = text[start:end].strip(), f"{text[found.start('head') : start]}SELECT *"
        named = f"{text[: found.end('before')].strip()} {query}" if found["before"] else query
        made = f"{of_all} FROM {name}"
    elif found := USING.match(plain):
        end = _closing(plain, found.end())
        named = text[found.end() : end].strip()
        made = f"{text[: found.end()]}SELECT * FROM {name}{text[end:]}"
    else:
        return None
    if re.search(rf"\b{found['table']}\b", named, re.IGNORECASE):
        return None
    return (made.strip(), name, one_line(named)) if UNPARSED.search(named) else None


def _closing(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one before ``start``."""
    depth = 1
    for k in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[k], 0)
        if not depth:
            return k
    return len(text)


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
    seen: list[exp.Expr] = []
    while isinstance(scope, exp.Select) and not any(scope is one for one in seen):
        seen.append(scope)
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
        for place in places:
            holder = place.find_ancestor(exp.Select, exp.Merge)
            if holder is None:
                continue
            for column in holder.find_all(exp.Column):
                here = column.find_ancestor(exp.Select, exp.Merge) is holder
                inside = column.find_ancestor(exp.Subquery) is around
                mine = (
                    column.table.lower() == place.alias_or_name.lower()
                    if column.table
                    else (here and not inside and column.name.lower() not in own)
                )
                if mine and not column.is_star and column.name.lower() not in named:
                    found.setdefault(column.name, column)
            scope = holder
    return found


def _named_source(table: exp.Table) -> str:
    """Return a table, function or path as written, without its alias."""
    plain = table.copy()
    plain.set("alias", None)
    plain.set("sample", None)
    return plain.sql(DIALECT)


def _used(
    tree: exp.Expr,
    tables: Sequence[exp.Table],
    known: Mapping[str, Schema],
    hint: Schema | None = None,
) -> tuple[dict[str, Type], list[str]]:
    """Return the columns of an undeclared table that a statement uses, with their types, and the
    names of those that its stars stand for.
    """
    target = known[written_table(tree).lower()]
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
    said = {} if hint is None else {column.name.lower(): column.type for column in hint.columns}
    columns = {
        name: said.get(name.lower()) or found[name] or same.get(name.lower(), "STRING")
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
        stored = stored_columns(tree, {target.name: target})
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
    target = known[written_table(tree).lower()]
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
            values = zip(listed, above.expressions, strict=False)
            name = next((name for name, one in values if one.unnest() is column), "")
            index = target.index(name)
            return None if index is None else target.columns[index].type
        case exp.Select() if above is tree.expression:
            stored = stored_columns(tree, {target.name: target})
            if stored is not None and len(stored) == len(above.expressions):
                values = zip(stored, above.expressions, strict=True)
                return next((c.type for c, one in values if one.unalias() is column), None)
    return None
