"""Invariants in text: ``unique(id)``, ``not null(id)``, ``check(amount >= 0)``, a count, a query.

Each is read as a query that returns no rows as long as the invariant holds: rows of one table with
a condition, or too many of them for some values of columns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp

from isolitmus.model.errors import LitmusError, SqlError, near
from isolitmus.model.invariant import Invariant
from isolitmus.model.sql.conditions import columns_in
from isolitmus.model.sql.expression import subqueries
from isolitmus.model.sql.query import Select, unknown_parts
from isolitmus.model.sql.statement import Read
from isolitmus.specs.sql.statements import read_statement
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.expression import Expr

__all__ = ["FORMS", "read_invariant", "read_invariants_of"]

FORMS = (
    "unique(a, b), not null(a), check(condition), count per a <= 3 where condition, or a query"
    " SELECT … FROM t WHERE … that returns no rows"
)
"""Forms of an invariant, for messages."""
NAME = r"[A-Za-z_]\w*"
OF_TABLE = re.compile(rf"\s*(?P<table>`?{NAME}`?)\s*:\s*(?P<rest>\S.*)", re.DOTALL)
CALL = re.compile(
    r"\s*(?P<kind>unique|not\s+null|check)\s*\((?P<inside>.*)\)\s*", re.IGNORECASE | re.DOTALL
)
COUNT = re.compile(
    r"\s*count\s+(?:per\s+(?P<columns>.+?)\s*)?(?P<op><=|<)\s*(?P<most>\d{1,9})"
    r"(?:\s+where\s+(?P<where>.+))?\s*",
    re.IGNORECASE | re.DOTALL,
)
COLUMN = re.compile(rf"\s*(?:(?P<table>`?{NAME}`?)\s*\.\s*)?(?P<column>`?{NAME}`?)\s*")
QUERY = re.compile(r"\s*SELECT\b", re.IGNORECASE)


class _Stated(NamedTuple):
    """Parts of an invariant as text: table, perhaps empty, columns, largest count, condition."""

    table: str
    columns: tuple[str, ...]
    most: int
    where: str


def read_invariant(
    text: str,
    schemas: Mapping[str, Schema],
    written: Sequence[str],
    label: str = "invariant",
    name: str | None = None,
) -> Invariant:
    """Return the invariant of a text.

    Parameters
    ----------
    text : str
        Invariant, perhaps with its table before a colon.
    schemas : mapping of str to Schema
        Schemas of the tables.
    written : sequence of str
        Tables that jobs write to; an invariant without a table is about one of them.
    label : str
        Place for messages.
    name : str, optional
        Name in results; by default the text.

    Raises
    ------
    LitmusError
        If the text has no known form, or names an unknown table or column.

    Examples
    --------
    >>> from isolitmus.model.schema import Column, Schema
    >>> tables = {"t": Schema("t", (Column("id", "INT"), Column("day", "DATE")))}
    >>> read_invariant("unique(id)", tables, ["t"])
    unique(id): no rows from SELECT id, count(*) FROM t WHERE id IS NOT NULL GROUP BY id HAVING \
count(*) > 1
    >>> read_invariant("not null(t.day)", tables, ["t"]).query
    'SELECT * FROM t WHERE day IS NULL'
    >>> read_invariant("count per day <= 3 where id > 0", tables, ["t"]).query
    'SELECT day, count(*) FROM t WHERE id > 0 GROUP BY day HAVING count(*) > 3'
    """
    stated = _of_query(text, label) if QUERY.match(text) else _of_shorthand(text, label)
    return _resolved(stated, _InvariantText(text, schemas, written, label, name))


class _InvariantText(NamedTuple):
    """Text of an invariant, and what it may name."""

    text: str
    schemas: Mapping[str, Schema]
    written: Sequence[str]
    label: str
    name: str | None


def _resolved(stated: _Stated, given: _InvariantText) -> Invariant:
    """Return an invariant with its table and columns."""
    text, schemas, written, label, name = given
    shown = " ".join(text.split())
    schema = _table(stated, schemas, written, f"{label}: '{shown}'")
    columns = tuple(_column(each, schema, f"{label}: '{shown}'") for each in stated.columns)
    query = _query(schema, stated._replace(columns=columns))
    where = _condition(schema, stated.where, label, shown)
    names = [column.name for column in schema.columns]
    keys = tuple(dict.fromkeys(names.index(each) for each in columns))
    return Invariant(name or shown, shown, schema.name, query, where, keys, stated.most)


def read_invariants_of(
    text: str,
    schemas: Mapping[str, Schema],
    written: Sequence[str],
    label: str = "invariant",
    *,
    name: str | None = None,
    stand_ins: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
) -> Iterator[Invariant]:
    """Yield the invariant of a text, or for a source without DDL one for each table in its place.

    A key of a source is one of the rows of a run.

    Parameters
    ----------
    text, schemas, written, label, name
        As of `read_invariant`.
    stand_ins : mapping of str to tuple of (str, str), optional
        Tables that stand for a source, each with its column that distinguishes runs, by the name of
        the source in lower case.

    Examples
    --------
    >>> from isolitmus.model.schema import Column, Schema
    >>> tables = {"s_rows": Schema("s_rows", (Column("id", "INT"), Column("run", "BIGINT")))}
    >>> given = {"s": (("s_rows", "run"),)}
    >>> (one,) = read_invariants_of("s: unique(id)", tables, [], stand_ins=given)
    >>> one.name, one.table, one.columns
    ('s: unique(id)', 's_rows', (0, 1))
    """
    stated = _of_query(text, label) if QUERY.match(text) else _of_shorthand(text, label)
    named = stated.table.lower()
    tables = (stand_ins or {}).get(named, ())
    if not tables or named in {known.lower() for known in schemas}:
        yield read_invariant(text, schemas, written, label, name)
        return
    shown = name or " ".join(text.split())
    for number, (table, run) in enumerate(tables, 1):
        keys = (*stated.columns, run) if stated.columns or stated.most else ()
        called = shown if number == 1 else f"{shown} ({number})"
        given = _InvariantText(text, schemas, written, label, called)
        yield _resolved(stated._replace(table=table, columns=keys), given)


def _of_shorthand(text: str, label: str) -> _Stated:
    """Return the parts of a shorthand."""
    table, rest = "", text
    if (named := OF_TABLE.fullmatch(text)) is not None:
        table, rest = named["table"].strip("`"), named["rest"]
    if call := CALL.fullmatch(rest):
        kind, inside = " ".join(call["kind"].lower().split()), call["inside"].strip()
        if not inside:
            raise LitmusError(f"{label}: '{text.strip()}' names no column; write one of {FORMS}")
        if kind == "check":
            return _Stated(table, (), 0, f"NOT ({inside})")
        owner, columns = _columns(inside, label)
        table = table or owner
        if kind == "unique":
            return _Stated(
                table, columns, 1, " AND ".join(f"{each} IS NOT NULL" for each in columns)
            )
        return _Stated(table, (), 0, " OR ".join(f"{each} IS NULL" for each in columns))
    if count := COUNT.fullmatch(rest):
        owner, columns = _columns(count["columns"], label) if count["columns"] else ("", ())
        most = int(count["most"]) - (count["op"] == "<")
        if most < 0:
            raise LitmusError(
                f"{label}: '{text.strip()}' allows no count at all; write < 1 or <= 0"
            )
        return _Stated(table or owner, columns, most, (count["where"] or "").strip())
    raise LitmusError(f"{label}: '{text.strip()}' is no invariant; write {FORMS}")


def _columns(text: str, label: str) -> tuple[str, tuple[str, ...]]:
    """Return the table that names of columns give, if any, and the columns."""
    owners: dict[str, None] = {}
    found = []
    for part in text.split(","):
        name = re.fullmatch(
            rf"\s*(?:(?P<table>`?{NAME}`?)\s*\.\s*)?(?P<column>`?{NAME}`?)\s*", part
        )
        if name is None:
            raise LitmusError(f"{label}: '{part.strip()}' is no column; write {FORMS}")
        owners[(name["table"] or "").strip("`")] = None
        found.append(name["column"].strip("`"))
    if len(owners) > 1:
        raise LitmusError(
            f"{label}: '{text.strip()}' names several tables; an invariant is about one table"
        )
    return next(iter(owners)), tuple(found)


def _of_query(text: str, label: str) -> _Stated:
    """Return the parts of a query on one table, perhaps with GROUP BY and HAVING count(*) > n."""
    try:
        tree = Syntax(text, label).tree()
    except SqlError as error:
        raise LitmusError(str(error)) from None
    unknown = [
        key for key, value in tree.args.items()
        if value and key not in ("expressions", "from_", "where", "group", "having")
    ]  # fmt: skip
    tables = list(tree.find_all(exp.Table))
    if not isinstance(tree, exp.Select) or unknown or len(tables) != 1 or tree.find(exp.Subquery):
        raise LitmusError(
            f"{label}: '{' '.join(text.split())}' is not a query on one table with WHERE, GROUP BY"
            f" and HAVING count(*) > n; write {FORMS}"
        )
    where = tree.args.get("where")
    condition = where.this.sql("databricks") if where is not None else ""
    group, having = tree.args.get("group"), tree.args.get("having")
    if group is None and having is None and not tree.find(exp.AggFunc):
        return _Stated(tables[0].name, (), 0, condition)
    keys = tuple(each for each in (group.expressions if group is not None else ()))
    most = _largest_count(having)
    if most is None or not all(isinstance(key, exp.Column) for key in keys):
        raise LitmusError(
            f"{label}: '{' '.join(text.split())}' is not modelled as an invariant; GROUP BY has"
            " columns, and HAVING is count(*) > n"
        )
    return _Stated(tables[0].name, tuple(key.name for key in keys), most, condition)


def _largest_count(having: exp.Expr | None) -> int | None:
    """Return the largest count that HAVING does not select, or None if it has another form."""
    test = having.this if having is not None else None
    if not isinstance(test, exp.GT | exp.GTE) or not isinstance(test.this, exp.Count):
        return None
    if not isinstance(test.this.this, exp.Star) or not isinstance(test.expression, exp.Literal):
        return None
    if test.expression.is_string or not test.expression.name.isdecimal():
        return None
    most = int(test.expression.name) - isinstance(test, exp.GTE)
    return most if most >= 0 else None


def _table(
    stated: _Stated, schemas: Mapping[str, Schema], written: Sequence[str], shown: str
) -> Schema:
    """Return the table of an invariant: the named one, or the written one with its columns."""
    folded = {name.lower(): schema for name, schema in schemas.items()}
    if stated.table:
        if stated.table.lower() not in folded:
            raise LitmusError(
                f"{shown}: unknown table '{stated.table}'{near(stated.table, schemas)}"
            )
        return folded[stated.table.lower()]
    own = [folded[name.lower()] for name in written] or [*schemas.values()]
    fitting = [s for s in own if all(_has(s, column) for column in stated.columns)]
    if stated.where and len(fitting) > 1:
        fitting = [s for s in fitting if _is_readable(s, stated.where)]
    if len(fitting) > 1:
        names = " or ".join(schema.name for schema in fitting)
        raise LitmusError(
            f"{shown} may be about {names}; put the table first: {fitting[0].name}: …"
        )
    return fitting[0] if fitting else own[0]


def _has(schema: Schema, column: str) -> bool:
    return column.lower() in {each.name.lower() for each in schema.columns}


def _is_readable(schema: Schema, where: str) -> bool:
    try:
        read_statement(f"SELECT * FROM {schema.name} WHERE {where}", {schema.name: schema})
    except SqlError:
        return False
    return True


def _column(name: str, schema: Schema, shown: str) -> str:
    """Return the name of a column as declared."""
    for column in schema.columns:
        if column.name.lower() == name.lower():
            return column.name
    known = [column.name for column in schema.columns]
    raise LitmusError(f"{shown}: {schema.name} has no column '{name}'{near(name, known)}")


def _query(schema: Schema, stated: _Stated) -> str:
    """Return the query of the rows, or of the values, that violate an invariant."""
    where = f" WHERE {stated.where}" if stated.where else ""
    if not stated.most and not stated.columns:
        return f"SELECT * FROM {schema.name}{where}"
    shown = ", ".join((*stated.columns, "count(*)"))
    group = f" GROUP BY {', '.join(stated.columns)}" if stated.columns else ""
    return f"SELECT {shown} FROM {schema.name}{where}{group} HAVING count(*) > {stated.most}"


def _condition(schema: Schema, where: str, label: str, shown: str) -> Expr | None:
    """Return the condition on the rows that count."""
    if not where:
        return None
    sql = f"SELECT * FROM {schema.name} WHERE {where}"
    try:
        found = read_statement(sql, {schema.name: schema}, f"{label}, in {sql}")
    except SqlError as error:
        raise LitmusError(f"{label}: '{shown}': {error.problem}") from None
    assert isinstance(found, Read)
    (branch,) = found.query
    assert isinstance(branch, Select)
    if subqueries(branch.where) or (branch.where is not None and unknown_parts(branch.where)):
        raise LitmusError(
            f"{label}: '{shown}' is not modelled as an invariant; write a condition on the columns"
            f" of {schema.name}"
        )
    if branch.where is not None and not columns_in(branch.where):
        raise LitmusError(
            f"{label}: '{shown}' depends on no column of {schema.name}; it always holds, or never"
        )
    return branch.where
