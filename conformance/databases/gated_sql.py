"""SQL for an engine that is to stop at a row: a call at each row that a scan gives, and the index
by which it goes.

The call stands behind the conditions that need no subquery, and before those that do, as a scan
gives its rows. Where an engine evaluates subqueries of one value first, once, if they depend on
nothing (``Dialect.first``), what needs only these stands before the call, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp

from isolitmus.checker.locking.query_plans import lookups, scan_hints
from isolitmus.model.errors import Refused
from isolitmus.model.sql.statement import Update, statements_of
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.model.litmus import ClientSettings
    from isolitmus.model.schema import Column, Index, Schema
    from isolitmus.model.sql.statement import Statement

__all__ = [
    "Dialect",
    "GatedStatement",
    "add_gates",
    "index_name",
    "is_subquery_late",
    "table_statements",
]


class GatedStatement(NamedTuple):
    """A statement with a call at each row of its scans."""

    text: str
    """What is said to the engine."""
    path: str
    """The index by which its first scan is to go; empty: by none."""
    paths: tuple[tuple[str, str], ...]
    """The tables of all its scans, each with the index."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is said otherwise to an engine than in a litmus test."""

    text: Callable[[exp.Expr], str]
    """A statement, or a part of it."""
    types: Mapping[str, str]
    """The types of columns, by ours."""
    cell: Callable[[Column, exp.Expr], exp.Expr]
    """A value as a text."""
    hint: Callable[[Index | None], str]
    """What stands behind the table of a query that goes by an index (None: by none)."""
    steer: Callable[[exp.Update | exp.Delete, Schema, Index | None], None]
    """Makes an UPDATE or DELETE one that goes by an index."""
    read: str
    """What reads a table and waits for nobody; the table's name is put into it."""
    dirty: bool
    """Whether that also shows what is not committed."""
    snapshot: bool
    """Whether a statement reads as of its beginning: then it is all the same when its subqueries
    are asked.
    """
    first: Callable[[exp.Expr], exp.Expr] | None = None
    """A condition as a text, which the call then takes: in a subquery that is to be evaluated
    first, once, the condition may stand in no CASE. None: the call takes none, and no subquery is
    evaluated first."""
    through: Callable[[str, exp.Column], exp.Expr] | None = None
    """What holds of every row, by the name of an index and its first column: the index is said to
    be of such rows only, and whoever is to go by it repeats that, so that he can go by no other;
    None: an index is chosen otherwise."""
    again: Callable[[exp.Table], exp.Expr] | None = None
    """Whether a row of a table is looked at once more since others have changed it, and no scan has
    come to it; None: that is not asked."""


def table_statements(dialect: Dialect, schema: Schema) -> Iterator[str]:
    """The statements that make a table, with its indexes."""
    columns = ", ".join(f"{c.name} {dialect.types[c.type]}" for c in schema.columns)
    yield f"CREATE TABLE {schema.name} ({columns})"
    for index in schema.indexes:
        unique = "UNIQUE " if index.unique else ""
        order = index.text(schema.columns).removeprefix("unique ")
        name = index_name(schema, index)
        own = _through(dialect, schema, index)
        where = "" if own is None else f" WHERE {dialect.text(own)}"
        yield f"CREATE {unique}INDEX {name} ON {schema.name} ({order}){where}"


def index_name(schema: Schema, index: Index) -> str:
    """What an index is called where two tables may have none of one name."""
    return f"{schema.name}_{index.name}"


def add_gates(
    dialect: Dialect,
    transaction: str,
    statement: Statement,
    client: ClientSettings,
    tables: Mapping[str, Schema],
) -> tuple[GatedStatement, ...]:
    """The statements of a transaction, each with a call at each row of its scans."""
    schemas = tuple(tables.values())
    known = {schema.name.lower(): k for k, schema in enumerate(schemas)}
    if client.each:
        raise Refused(f"{transaction}: this engine evaluates uncorrelated subqueries only once")
    texts: list[GatedStatement] = []
    before = 0
    for part in statements_of(statement):
        if any(scan_hints(part.sql)):
            raise Refused(f"{transaction}: only SQL Server has table hints")
        tree = Syntax(part.sql).tree().copy()
        found = _scans(tree)
        first = _asked_first(dialect, transaction, part, found)
        hints: list[str] = []
        paths: list[tuple[str, str]] = []
        for k, table in enumerate(found):
            number = known[table.name.lower()]
            schema = schemas[number]
            name = (
                client.scan
                if isinstance(client.scan, str)
                else "".join(client.scan[before + k :][:1])
            )
            index = next((one for one in schema.indexes if one.name == name), None)
            _gate(dialect, (transaction, str(number)), table, schema, index, first=first)
            through = _through(dialect, schema, index, table.alias_or_name)
            if through is not None:
                where = _around(table).args["where"]
                where.set("this", exp.and_(through, where.this, copy=False))
            if isinstance(table.parent, exp.Update | exp.Delete):
                dialect.steer(table.parent, schema, index)
            else:
                table.add_comments([f"scan {k} of"])
            called = None if index is None else replace(index, name=index_name(schema, index))
            hints.append(dialect.hint(called))
            paths.append((schema.name, "" if called is None else called.name))
        text = dialect.text(tree)
        for k, hint in enumerate(hints):
            text = text.replace(f"/* scan {k} of */", hint)
        texts.append(GatedStatement(text, paths[0][1] if paths else "", tuple(paths)))
        before += len(found)
    return tuple(texts)


def _through(
    dialect: Dialect, schema: Schema, index: Index | None, table: str = ""
) -> exp.Expr | None:
    """What the rows of an index are said to be, in a scan of a table by an alias; None: nothing."""
    if dialect.through is None or index is None:
        return None
    first = schema.columns[index.columns[0]].name
    return dialect.through(index_name(schema, index), exp.column(first, table=table or None))


def is_subquery_late(dialect: Dialect, statement: Statement) -> bool:
    """Whether a subquery that depends on nothing, and comes first by the plan, is asked here once a
    scan has come to a row.
    """
    return any(
        not lookup.correlated and not (dialect.first and lookup.kind == "scalar")
        for part in statements_of(statement)
        for lookup in lookups(part)
    )


def _asked_first(
    dialect: Dialect, transaction: str, statement: Statement, scans: list[exp.Table]
) -> list[exp.Expr]:
    """The subqueries that the engine evaluates before all else; Refused where it does so in another
    order.
    """
    if dialect.first is None:
        return []
    inside = lookups(statement)
    tables = scans[len(scans) - len(inside) :]
    found = [
        _around(table)
        for table, lookup in zip(tables, inside, strict=True)
        if lookup.kind == "scalar" and not lookup.correlated
    ]
    places = {select.find_ancestor(exp.Where) is None for select in found}
    if isinstance(statement, Update) and len(places) > 1:
        raise Refused(
            f"{transaction}: this engine evaluates subqueries of WHERE before those of SET"
        )
    return found


def _scans(tree: exp.Expr) -> list[exp.Table]:
    """Where tables are scanned: the statement's own first, then those of subqueries from left to
    right.
    """
    own = tree.expression if isinstance(tree, exp.Insert) else tree
    found = [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.parent, exp.From | exp.Update | exp.Delete)
    ]
    return sorted(
        found,
        key=lambda table: (
            table.parent is not tree and table.find_ancestor(exp.Select) is not own,
            table.this.meta["start"],
        ),
    )


def _gate(
    dialect: Dialect,
    words: tuple[str, str],
    table: exp.Table,
    schema: Schema,
    index: Index | None,
    *,
    first: list[exp.Expr],
) -> None:
    """Put the call into the condition of a scan; ``first`` are the subqueries that are evaluated
    before all else.
    """
    around = _around(table)
    where = around.args.get("where")
    parts = (
        list(where.this.flatten()) if where is not None and isinstance(where.this, exp.And) else []
    )
    if where is not None and not parts:
        parts = [where.this]
    early = [part for part in parts if part.find(exp.Select) is None]
    known = [part for part in parts if _is_known(part, first)]
    late = [part for part in parts if not any(part is one for one in (*early, *known))]
    hidden = [] if isinstance(around, exp.Select) else _hidden(schema, index)
    keys = [part for part in known if _is_comparison(part, schema, hidden)]
    if keys and known[0] is not keys[0]:
        raise Refused(
            f"{words[0]}: this engine evaluates the subquery in '{keys[0].sql()}' before the rest"
            " of the condition"
        )
    alone = any(select is around for select in first)
    told = exp.and_(*early) if alone and early else exp.true()
    who, number = map(exp.Literal.string, words)
    passing: exp.Expr = exp.Anonymous(
        this="pass",
        expressions=[
            who,
            *([] if dialect.first is None else [dialect.first(told)]),
            number,
            *(
                dialect.cell(c, exp.column(c.name, table=table.alias_or_name))
                for c in schema.columns
            ),
        ],
    )
    if dialect.again is not None:
        looked = exp.If(this=dialect.again(table), true=exp.Literal.number(1))
        passing = exp.Case(ifs=[looked], default=passing)
    one = exp.Literal.number(1)
    call = exp.EQ(this=passing, expression=one)
    if not alone:
        before = [part for part in known if not any(part is key for key in keys)]
        again = [part.copy() for part in early]
        call = exp.EQ(this=_if([*again, *before, call], _if(late, one)), expression=one.copy())
    around.set("where", exp.Where(this=exp.and_(*early, *keys, call, copy=False)))


def _is_known(part: exp.Expr, first: list[exp.Expr]) -> bool:
    """Whether a condition has subqueries, all of which are evaluated before all else."""
    inside = list(part.find_all(exp.Select))
    return bool(inside) and all(any(select is one for one in first) for select in inside)


def _hidden(schema: Schema, index: Index | None) -> list[int]:
    """The columns by which an UPDATE or DELETE would go by another index than this."""
    wanted = None if index is None else index.columns[0]
    return [one.columns[0] for one in schema.indexes if one.columns[0] != wanted]


def _is_comparison(part: exp.Expr, schema: Schema, hidden: list[int]) -> bool:
    """Whether a condition compares a column with a subquery, and the engine looks for rows by
    that.
    """
    if not isinstance(part, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return False
    column = next((s for s in (part.this, part.expression) if isinstance(s, exp.Column)), None)
    return column is not None and schema.index(column.name) not in hidden


def _around(table: exp.Table) -> exp.Expr:
    """The statement or the subquery that scans a table."""
    around = table.find_ancestor(exp.Select, exp.Update, exp.Delete)
    assert around is not None
    return around


def _if(parts: list[exp.Expr], value: exp.Expr) -> exp.Expr:
    """The value if all of these hold, else 0: one after another, whatever the engine prefers."""
    if not parts:
        return value
    chosen = exp.If(this=exp.and_(*parts, copy=False), true=value)
    return exp.Case(ifs=[chosen], default=exp.Literal.number(0))
