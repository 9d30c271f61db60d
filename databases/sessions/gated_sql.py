"""SQL for engines whose statements are stopped at rows, with the indexes that scans use.

Each scan gets a call, the gate, that is evaluated at each row it returns. The call stands after the
conditions without subqueries and before those with subqueries, where a scan returns its rows. Some
engines evaluate uncorrelated scalar subqueries first and once (``Dialect.first``); conditions that
need only these stand before the call, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp

from isolitmus.databases.locking.query_plans import lookups, scan_hints
from isolitmus.model.errors import Refused
from isolitmus.model.sql.statement import Update, statements_of
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.model.litmus import ClientSettings
    from isolitmus.model.sql.schema import Column, Index, Schema
    from isolitmus.model.sql.statement import Statement


class GatedStatement(NamedTuple):
    """Statement with a call at each row of its scans."""

    text: str
    """SQL for the engine."""
    path: str
    """Index that its first scan should use; empty for none."""
    paths: tuple[tuple[str, str], ...]
    """Table and index of each of its scans."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences between an engine's SQL and that of litmus tests."""

    text: Callable[[exp.Expr], str]
    """Function that returns a statement, or a part of it, as text."""
    types: Mapping[str, str]
    """Column type of the engine for each type of the model."""
    cell: Callable[[Column, exp.Expr], exp.Expr]
    """Function that returns an expression for a value as text."""
    hint: Callable[[Index | None], str]
    """Function that returns the hint for a query's table and an index (None: no index)."""
    steer: Callable[[exp.Update | exp.Delete, Schema, Index | None], None]
    """Function that rewrites an UPDATE or DELETE so that it uses an index."""
    read: str
    """Query that reads a table without waiting, with a placeholder for the table's name."""
    dirty: bool
    """True if that query also shows uncommitted changes."""
    snapshot: bool
    """True if a statement reads as of its start, so that it is irrelevant when its subqueries run.
    """
    first: Callable[[exp.Expr], exp.Expr] | None = None
    """Function that returns a condition as text, which the gate then takes as an argument.

    In a subquery that is evaluated first and once, the condition must not be part of a CASE. None:
    the gate takes no condition, and no subquery is evaluated first.
    """
    through: Callable[[str, exp.Column], exp.Expr] | None = None
    """Function that returns a predicate that is true for every row, given index and first column.

    The index is a partial index with this predicate. A statement that should use the index repeats
    the predicate, so that it can use no other index. None: the index is chosen in another way.
    """
    again: Callable[[exp.Table], exp.Expr] | None = None
    """Function that returns whether a row is rechecked because others have changed it.

    No scan has then reached the row. None: the gate does not test that.
    """


def table_statements(dialect: Dialect, schema: Schema) -> Iterator[str]:
    """Yield the statements that create a table and its indexes."""
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
    """Return the name of an index, which is unique among all tables."""
    return f"{schema.name}_{index.name}"


def add_gates(
    dialect: Dialect,
    transaction: str,
    statement: Statement,
    client: ClientSettings,
    tables: Mapping[str, Schema],
) -> tuple[GatedStatement, ...]:
    """Return the statements of a transaction, with a gate at each row of their scans.

    Parameters
    ----------
    dialect : Dialect
        Dialect of the engine.
    transaction : str
        Name of the transaction, which the gates pass on.
    statement : Statement
        Statement of the transaction, or several.
    client : ClientSettings
        Client of the transaction, with the indexes that its scans use.
    tables : mapping of str to Schema
        Tables of the litmus test.

    Raises
    ------
    Refused
        The engine would evaluate the statement in another order than the model.
    """
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
    """Return the predicate of an index in a scan of a table with an alias; None if it has none."""
    if dialect.through is None or index is None:
        return None
    first = schema.columns[index.columns[0]].name
    return dialect.through(index_name(schema, index), exp.column(first, table=table or None))


def is_subquery_late(dialect: Dialect, statement: Statement) -> bool:
    """Return whether an uncorrelated subquery runs only when a scan has reached a row.

    By the model's plan it is evaluated first.
    """
    return any(
        not lookup.correlated and not (dialect.first and lookup.kind == "scalar")
        for part in statements_of(statement)
        for lookup in lookups(part)
    )


def _asked_first(
    dialect: Dialect, transaction: str, statement: Statement, scans: list[exp.Table]
) -> list[exp.Expr]:
    """Return the subqueries that the engine evaluates before all else.

    Raises Refused if the order differs from the model's.
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
    """Return the scanned tables: the statement's own first, then those of subqueries in order."""
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
    """Add the gate to the condition of a scan; ``first``: subqueries that are evaluated first."""
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
    """Return whether a condition has subqueries, all of which are evaluated before all else."""
    inside = list(part.find_all(exp.Select))
    return bool(inside) and all(any(select is one for one in first) for select in inside)


def _hidden(schema: Schema, index: Index | None) -> list[int]:
    """Return the columns that would make an UPDATE or DELETE use another index than this."""
    wanted = None if index is None else index.columns[0]
    return [one.columns[0] for one in schema.indexes if one.columns[0] != wanted]


def _is_comparison(part: exp.Expr, schema: Schema, hidden: list[int]) -> bool:
    """Return whether a condition compares a column with a subquery, for an index lookup."""
    if not isinstance(part, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return False
    column = next((s for s in (part.this, part.expression) if isinstance(s, exp.Column)), None)
    return column is not None and schema.index(column.name) not in hidden


def _around(table: exp.Table) -> exp.Expr:
    """Return the statement or the subquery that scans a table."""
    around = table.find_ancestor(exp.Select, exp.Update, exp.Delete)
    assert around is not None
    return around


def _if(parts: list[exp.Expr], value: exp.Expr) -> exp.Expr:
    """Return the value if all of these hold, else 0, evaluated in this order."""
    if not parts:
        return value
    chosen = exp.If(this=exp.and_(*parts, copy=False), true=value)
    return exp.Case(ifs=[chosen], default=exp.Literal.number(0))
