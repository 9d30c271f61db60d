"""Invariants in text: ``unique(id)``, ``not null(id)``, ``check(amount >= 0)``, a count, a
reference to another table, a total that does not change, or a query.

Each is read as a query that returns no rows as long as the invariant holds: rows of one table with
a condition, too many of them for some values of columns, rows without one that they refer to, or a
total that differs from that of ``before``, the table at the version before.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp

from isolitmus.jobs.invariant import BEFORE, GroupLimit, Reference, Total
from isolitmus.model.display import count_of
from isolitmus.model.errors import LitmusError, SqlError, near
from isolitmus.model.sql.conditions import NEGATED, columns_in
from isolitmus.model.sql.expression import subqueries
from isolitmus.model.sql.query import Select, unknown_parts
from isolitmus.model.sql.statement import Read
from isolitmus.model.sql.types import INTEGERS, decimal_of
from isolitmus.specs.sql.parameters import one_line
from isolitmus.specs.sql.statements import read_statement
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.jobs.invariant import Invariant, TotalOp
    from isolitmus.jobs.workload import StandIn
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.schema import Schema

FORMS = (
    "unique(a, b), not null(a), check(condition), count per a <= 3 where condition, a references"
    " other(b), sum(a) unchanged, or a query SELECT … FROM t WHERE … that returns no rows"
)
"""Forms of an invariant, for messages."""
NAME = r"[A-Za-z_]\w*"
OF_TABLE = re.compile(rf"\s*(?P<table>`?{NAME}`?)\s*:\s*(?P<rest>\S.*)", re.DOTALL)
CALL = re.compile(
    r"\s*(?P<kind>unique|not\s+null|check)\s*\((?P<inside>.*)\)\s*", re.IGNORECASE | re.DOTALL
)
COUNT = re.compile(
    r"\s*count\s+(?:per\s++(?P<columns>[^<\s](?:[^<]*[^<\s])?)\s*+)?(?P<op><=|<)\s*(?P<most>\d{1,9})"
    r"(?:\s+where\s+(?P<where>.+))?\s*",
    re.IGNORECASE | re.DOTALL,
)
REFERENCE = re.compile(
    rf"\s*+(?P<columns>\([^()]*\)|[\w`.]++(?:\s++(?!references\b)[\w`.]++)*+)\s++references\s+(?P<parent>`?{NAME}`?)\s*"
    r"\((?P<keys>[^()]*)\)(?:\s+where\s+(?P<where>.+))?\s*",
    re.IGNORECASE | re.DOTALL,
)
TOTAL = re.compile(
    r"\s*(?:count\s*\(\s*\*\s*\)|sum\s*\((?P<value>(?:(?!\)\s*+(?:unchanged|[<>]?=\s*+before)).)++)\))\s*"
    r"(?:(?P<same>unchanged)|(?P<op><=|>=|=)\s*before(?:\s*\((?P<of>.+)\))?)"
    r"(?:\s+where\s+(?P<where>.+))?\s*",
    re.IGNORECASE | re.DOTALL,
)
COUNTED = "count(*)"
OTHER = "other"
"""Name of the other row of a reference within one table."""
QUERY = re.compile(r"\s*SELECT\b", re.IGNORECASE)


class _Stated(NamedTuple):
    """Parts of an invariant as text: table, perhaps empty, columns, largest count, condition."""

    table: str
    columns: tuple[str, ...] = ()
    most: int = 0
    where: str = ""
    parent: str = ""
    """Table of a reference."""
    keys: tuple[str, ...] = ()
    """Its columns."""
    total: str = ""
    """Aggregate of a total."""
    op: TotalOp = "="
    """How a total compares with the one before."""


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
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"t": Schema("t", (Column("id", "INT"), Column("day", "DATE")))}
    >>> read_invariant("unique(id)", tables, ["t"])
    unique(id): no rows from SELECT id, count(*) FROM t WHERE id IS NOT NULL GROUP BY id HAVING \
count(*) > 1
    >>> read_invariant("not null(t.day)", tables, ["t"]).query
    'SELECT * FROM t WHERE day IS NULL'
    >>> read_invariant("count per day <= 3 where id > 0", tables, ["t"]).query
    'SELECT day, count(*) FROM t WHERE id > 0 GROUP BY day HAVING count(*) > 3'
    """
    stated = _stated(text, label)
    return _resolved(stated, _InvariantText(text, schemas, written, label, name))


def _stated(text: str, label: str) -> _Stated:
    """Return the parts of a text without its comments, which would end the query made of it."""
    plain = one_line(text)
    return _of_query(plain, label) if QUERY.match(plain) else _of_shorthand(plain, label)


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
    place = f"{label}: '{shown}'"
    schema = _table(stated, schemas, written, place)
    columns = tuple(_column(each, schema, place) for each in stated.columns)
    where = _condition(schema, stated.where, label, shown)
    indices = tuple(dict.fromkeys(map(_names_of(schema).index, columns)))
    called = (name or shown, shown, schema.name)
    if stated.total:
        value = _summed(schema, stated.total, place)
        return Total(
            *called, _total_query(schema, stated, schemas, place), where, (), value, stated.op
        )
    if stated.parent:
        parent = _parent(stated, schemas, place)
        keys = tuple(_column(each, parent, place) for each in stated.keys)
        _refuse_unlike(schema, columns, parent, keys, place)
        query = _reference_query(schema, stated._replace(columns=columns, keys=keys), parent)
        found = tuple(map(_names_of(parent).index, keys))
        own = tuple(map(_names_of(schema).index, columns))
        return Reference(*called, query, where, own, parent.name, found)
    query = _query(schema, stated._replace(columns=columns))
    return GroupLimit(*called, query, where, indices, stated.most)


def _names_of(schema: Schema) -> list[str]:
    return [column.name for column in schema.columns]


def _parent(stated: _Stated, schemas: Mapping[str, Schema], place: str) -> Schema:
    """Return the table of a reference."""
    folded = {name.lower(): schema for name, schema in schemas.items()}
    if stated.parent.lower() not in folded:
        raise LitmusError(f"{place}: unknown table '{stated.parent}'{near(stated.parent, schemas)}")
    return folded[stated.parent.lower()]


def _refuse_unlike(
    schema: Schema, columns: Sequence[str], parent: Schema, keys: Sequence[str], place: str
) -> None:
    """Refuse a reference whose columns cannot be compared one by one."""
    if len(columns) != len(keys):
        raise LitmusError(
            f"{place}: {count_of(len(columns), 'column')} and {count_of(len(keys), 'key column')};"
            " write as many on both sides"
        )
    types = [{column.name: column.type for column in each.columns} for each in (schema, parent)]
    for column, key in zip(columns, keys, strict=True):
        own, other = types[0][column], types[1][key]
        if own != other:
            raise LitmusError(
                f"{place}: {schema.name}.{column} is {own} and {parent.name}.{key} is {other};"
                " columns of one type are compared"
            )


def _summed(schema: Schema, total: str, place: str) -> Expr | None:
    """Return the summed expression of a total; None for a count."""
    if total == COUNTED:
        return None
    inner = total.removeprefix("sum(").removesuffix(")")
    branch = _branch(schema, f"SELECT {inner} FROM {schema.name}", place)
    item = branch.items[0]
    several = branch.grouped or len(branch.items) > 1
    if several or subqueries(item) or unknown_parts(item) or not columns_in(item):
        raise LitmusError(f"{place}: '{total}' is not modelled; write sum(column)")
    if item.type not in INTEGERS and not decimal_of(item.type):
        raise LitmusError(
            f"{place}: '{total}' is {item.type}; sums of integers and decimals are modelled"
        )
    _branch(schema, f"SELECT {total} FROM {schema.name}", place)
    return item


def _branch(schema: Schema, sql: str, place: str) -> Select:
    """Return a query on the table of an invariant; LitmusError if it is not understood."""
    try:
        found = read_statement(sql, {schema.name: schema}, f"{place}, in {sql}")
    except SqlError as error:
        raise LitmusError(f"{place}: {error.problem}") from None
    assert isinstance(found, Read)
    (branch,) = found.query
    if not isinstance(branch, Select):
        raise LitmusError(f"{place}: '{sql}' is not a query on {schema.name}")
    return branch


def _total_query(schema: Schema, stated: _Stated, schemas: Mapping[str, Schema], place: str) -> str:
    """Return the query that returns a row if a total does not compare with the one before."""
    if BEFORE in {name.lower() for name in schemas}:
        raise LitmusError(
            f"{place}: a table is named '{BEFORE}', as the version before is; rename it"
        )
    value = stated.total if stated.total == COUNTED else f"coalesce({stated.total}, 0)"
    where = f" WHERE {stated.where}" if stated.where else ""
    now, then = (f"(SELECT {value} FROM {each}{where})" for each in (schema.name, BEFORE))
    return f"SELECT 1 WHERE {now} {NEGATED[stated.op]} {then}"


def _reference_query(schema: Schema, stated: _Stated, parent: Schema) -> str:
    """Return the query of the rows that refer to no row."""
    own, other = schema.name, parent.name
    alias = "" if own != other else f" AS {OTHER}"
    named = other if own != other else OTHER
    known = [f"{own}.{column} IS NOT NULL" for column in stated.columns]
    if stated.where:
        known.append(f"({stated.where})")
    same = " AND ".join(
        f"{named}.{key} = {own}.{column}"
        for column, key in zip(stated.columns, stated.keys, strict=True)
    )
    exists = f"EXISTS (SELECT 1 FROM {other}{alias} WHERE {same})"
    return f"SELECT * FROM {own} WHERE {' AND '.join(known)} AND NOT {exists}"


def read_invariants_of(
    text: str,
    schemas: Mapping[str, Schema],
    written: Sequence[str],
    label: str = "invariant",
    *,
    name: str | None = None,
    stand_ins: Mapping[str, tuple[StandIn, ...]] | None = None,
) -> Iterator[Invariant]:
    """Yield the invariant of a text, or for a source without DDL or a view one for each table in
    its place.

    A key of a source is one of the rows of a run.

    Parameters
    ----------
    text, schemas, written, label, name
        As of `read_invariant`.
    stand_ins : mapping of str to tuple of StandIn, optional
        Tables that stand for a source or a view, by its name in lower case.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> tables = {"s_rows": Schema("s_rows", (Column("id", "INT"), Column("run", "BIGINT")))}
    >>> from isolitmus.jobs.workload import StandIn
    >>> given = {"s": (StandIn("s_rows", "run"),)}
    >>> (one,) = read_invariants_of("s: unique(id)", tables, [], stand_ins=given)
    >>> one.name, one.table, one.columns
    ('s: unique(id)', 's_rows', (0, 1))
    """
    stated = _stated(text, label)
    named = stated.table.lower()
    tables = (stand_ins or {}).get(named, ())
    if not tables or stated.total or named in {known.lower() for known in schemas}:
        yield read_invariant(text, schemas, written, label, name)
        return
    shown = name or " ".join(text.split())
    for number, (table, run, where) in enumerate(tables, 1):
        keys = (*stated.columns, run) if run and (stated.columns or stated.most) else stated.columns
        both = f"({where}) AND ({stated.where})" if where and stated.where else ""
        called = shown if number == 1 else f"{shown} ({number})"
        given = _InvariantText(text, schemas, written, label, called)
        found = stated._replace(table=table, columns=keys, where=both or where or stated.where)
        yield _resolved(found, given)


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
    if found := REFERENCE.fullmatch(rest):
        owner, columns = _columns(found["columns"].strip("() \n\t"), label)
        _, keys = _columns(found["keys"], label)
        parent = found["parent"].strip("`")
        where = (found["where"] or "").strip()
        return _Stated(table or owner, columns, where=where, parent=parent, keys=keys)
    if found := TOTAL.fullmatch(rest):
        total = COUNTED if found["value"] is None else f"sum({found['value'].strip()})"
        if found["of"] and "".join(found["of"].lower().split()) != "".join(total.lower().split()):
            raise LitmusError(
                f"{label}: '{text.strip()}' compares {total} with another total before; write"
                f" {total} = before"
            )
        where = (found["where"] or "").strip()
        ops: Mapping[str, TotalOp] = {"<=": "<=", ">=": ">="}
        return _Stated(table, where=where, total=total, op=ops.get(found["op"] or "=", "="))
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
    """Return the parts of a query on one table, perhaps with GROUP BY and HAVING count(*) > n, of
    one with NOT EXISTS or an anti join, or of one that compares a total with the one before.
    """
    try:
        tree = Syntax(text, label).tree()
    except SqlError as error:
        raise LitmusError(str(error)) from None
    if found := _reference_of(tree, label) or _total_of(tree):
        return found
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


def _reference_of(tree: exp.Expr, label: str) -> _Stated | None:
    """Return the parts of a query of rows that refer to no row; None for another query."""
    match tree.args:
        case {"from_": exp.From(this=exp.Table() as own)}:
            pass
        case _:
            return None
    where = tree.args.get("where")
    parts = (
        []
        if where is None
        else [*where.this.flatten()]
        if isinstance(where.this, exp.And)
        else [where.this]
    )
    joins = tree.args.get("joins") or []
    if len(joins) == 1 and joins[0].args.get("kind") == "ANTI" and joins[0].args.get("on"):
        other, on = joins[0].this, joins[0].args["on"]
    else:
        inner = [p for p in parts if isinstance(p, exp.Not) and isinstance(p.this, exp.Exists)]
        if joins or len(inner) != 1:
            return None
        select = inner[0].this.this
        parts.remove(inner[0])
        if (
            not isinstance(select, exp.Select)
            or not select.args.get("from_")
            or not select.args.get("where")
            or select.args.get("joins")
        ):
            return None
        other, on = select.args["from_"].this, select.args["where"].this
    pairs = [*on.flatten()] if isinstance(on, exp.And) else [on]
    named = other.alias_or_name.lower()
    columns, keys = [], []
    for pair in pairs:
        sides = (pair.this, pair.expression) if isinstance(pair, exp.EQ) else ()
        own_side = [
            each
            for each in sides
            if isinstance(each, exp.Column) and each.table.lower() == own.alias_or_name.lower()
        ]
        other_side = [
            each for each in sides if isinstance(each, exp.Column) and each.table.lower() == named
        ]
        if len(own_side) != 1 or len(other_side) != 1:
            return None
        columns.append(own_side[0].name)
        keys.append(other_side[0].name)
    known = {part.this.this.name.lower() for part in parts if _is_known(part, columns)}
    if unknown := [column for column in columns if column.lower() not in known]:
        raise LitmusError(
            f"{label}: a row with NULL refers to no row; add {unknown[0]} IS NOT NULL to the query"
        )
    rest = [part for part in parts if not _is_known(part, columns)]
    condition = " AND ".join(_without_table(part).sql("databricks") for part in rest)
    return _Stated(own.name, tuple(columns), where=condition, parent=other.name, keys=tuple(keys))


def _is_known(part: exp.Expr, columns: Sequence[str]) -> bool:
    """Return whether a condition is that one of some columns is not NULL."""
    if not isinstance(part, exp.Not) or not isinstance(part.this, exp.Is):
        return False
    one = part.this
    null = isinstance(one.expression, exp.Null) and isinstance(one.this, exp.Column)
    return null and one.this.name.lower() in {column.lower() for column in columns}


def _without_table(part: exp.Expr) -> exp.Expr:
    """Return a condition whose columns are named without their table."""
    found = part.copy()
    for column in found.find_all(exp.Column):
        column.set("table", None)
    return found.unnest()


def _total_of(tree: exp.Expr) -> _Stated | None:
    """Return the parts of a query that compares a total with the one before; None for another."""
    where = tree.args.get("where")
    if tree.args.get("from_") is not None or where is None:
        return None
    ops: Mapping[type, TotalOp] = {exp.NEQ: "=", exp.LT: ">=", exp.GT: "<="}
    op = ops.get(type(where.this))
    sides = [where.this.this, where.this.expression] if op else []
    found = []
    for side in sides:
        select = side.this if isinstance(side, exp.Subquery) else None
        if not isinstance(select, exp.Select) or len(select.expressions) != 1:
            return None
        table = select.args["from_"].this if select.args.get("from_") else None
        item = select.expressions[0]
        if isinstance(item, exp.Coalesce):
            item = item.this
        if not isinstance(table, exp.Table) or not isinstance(item, exp.Sum | exp.Count):
            return None
        condition = select.args.get("where")
        text = _without_table(condition.this).sql("databricks") if condition else ""
        total = (
            COUNTED
            if isinstance(item, exp.Count)
            else f"sum({_without_table(item.this).sql('databricks')})"
        )
        if isinstance(item, exp.Count) and not isinstance(item.this, exp.Star):
            return None
        found.append((table.name, total, text))
    if len(found) != 2 or found[0][1:] != found[1][1:] or found[1][0].lower() != BEFORE:
        return None
    table, total, condition = found[0]
    return _Stated(table, where=condition, total=total, op=op or "=")


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
    branch = _branch(schema, sql, f"{label}: '{shown}'")
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
