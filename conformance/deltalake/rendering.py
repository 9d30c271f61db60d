"""What a statement is in delta-rs: one call of its Python API, whose rows the client has computed.

delta-rs has no SQL that writes. What an INSERT or the source of a MERGE reads, its client reads at the
handle's version, by DuckDB here; conditions and values go to delta-rs as text, in DataFusion's SQL.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import expressions as exp

from isolitmus.checker.running.duck_sql import translate, translated
from isolitmus.model import statement as st
from isolitmus.model.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from isolitmus.model.schema import Schema

__all__ = ["render"]

Request = dict[str, Any]
DIALECT = "postgres"
"""DataFusion's SQL is close to it."""
ZORDER = re.compile(r"(?is)\bZORDER\s+BY\s*\(?([^()]*)\)?\s*$")
TYPES = {
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "HUGEINT": "BIGINT",
    "VARCHAR": "STRING",
    "DATE": "DATE",
    "BOOLEAN": "BOOLEAN",
}
"""What DuckDB's types are in the worker."""


def render(
    statement: st.Statement, schemas: Mapping[str, Schema], duck: duckdb.DuckDBPyConnection
) -> Request:
    """The request to the worker, without its handle; ``duck`` holds the tables as the client sees them.

    Refused for what delta-rs has no call for.
    """
    if any(select.version is not None for select in st.unseen(statement)):
        raise Refused(f"'{statement.sql}': VERSION AS OF is not carried out there")
    match statement:
        case st.Insert():
            return _insert(statement, schemas, duck)
        case st.Delete():
            tree = sqlglot.parse_one(statement.sql, read="databricks")
            return {"do": "delete", "predicate": _where(tree, schemas[statement.target])}
        case st.Truncate():
            return {"do": "delete", "predicate": None}
        case st.Update():
            return _update(statement, schemas[statement.target])
        case st.Merge():
            return _merge(statement, schemas, duck)
        case st.Optimize():
            return _optimize(statement, schemas[statement.target])
        case _:
            raise Refused(f"'{statement.sql}' is no operation that is carried out there")


def _insert(
    statement: st.Insert, schemas: Mapping[str, Schema], duck: duckdb.DuckDBPyConnection
) -> Request:
    schema = schemas[statement.target]
    special = {
        "dynamic partition overwrite": statement.dynamic,
        "dataChange=false": not statement.data_change,
        "mergeSchema by name": statement.grows is not None,
        "a streaming sink": statement.stream,
        "identity columns": bool(statement.generates),
        "replaceUsing": bool(statement.using),
    }
    for what, wanted in special.items():
        if wanted:
            raise Refused(f"'{statement.sql}': {what} is not what its writes have")
    _one_file(statement.sql, statement.query)
    texts = translate(statement, schemas)
    predicate = None
    if statement.overwrite or statement.where is not None:
        for text in texts:
            if text.startswith(("CREATE OR REPLACE TEMP TABLE", "INSERT INTO replacement")):
                duck.execute(text)
        rows = duck.execute("SELECT * FROM replacement").fetchall()
        predicate = _replaced(statement, schema)
    else:
        duck.execute("BEGIN TRANSACTION")
        rows = duck.execute(f"{texts[0]} RETURNING *").fetchall()
        duck.execute("ROLLBACK")
    return {
        "do": "write",
        "mode": "append" if predicate is None and not statement.overwrite else "overwrite",
        "predicate": predicate,
        "columns": [(column.name, column.type) for column in schema.columns],
        "rows": [list(map(_said, row)) for row in rows],
    }


def _one_file(sql: str, query: st.Query) -> None:
    if len(query) > 1:
        raise Refused(f"'{sql}': UNION ALL asks for a file for each branch, and it writes one")


def _replaced(statement: st.Insert, schema: Schema) -> str | None:
    """The condition of the rows that an INSERT replaces; None for all."""
    if statement.where is None:
        return None
    tree = sqlglot.parse_one(statement.sql, read="databricks")
    if tree.args.get("where"):
        return _text(tree.args["where"], schema)
    into = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    parts = into.args["partition"].expressions
    return " AND ".join(_text(part, schema) for part in parts)


def _update(statement: st.Update, schema: Schema) -> Request:
    tree = sqlglot.parse_one(statement.sql, read="databricks")
    sets = {
        _name(pair.this.name, schema): _text(pair.expression, schema)
        for pair in tree.args["expressions"]
    }
    return {"do": "update", "sets": sets, "predicate": _where(tree, schema)}


def _merge(
    statement: st.Merge, schemas: Mapping[str, Schema], duck: duckdb.DuckDBPyConnection
) -> Request:
    schema = schemas[statement.target]
    tree = sqlglot.parse_one(statement.sql, read="databricks")
    using = tree.args["using"]
    _one_file(statement.sql, statement.source)
    source = using.sql(dialect="databricks")
    query = duck.execute(translated(f"SELECT * FROM {source}", schemas))
    columns = [(name, TYPES[str(type_)]) for name, type_, *_ in query.description or ()]
    rows = query.fetchall()
    clauses: list[tuple[str, str | None, dict[str, str] | None]] = []
    for when in tree.args["whens"].expressions:
        then, condition = when.args["then"], when.args.get("condition")
        kind = {(True, False): "matched", (False, False): "not_matched"}.get(
            (bool(when.args["matched"]), bool(when.args.get("source"))), "not_matched_by_source"
        )
        guard = None if condition is None else _sql(condition)
        if isinstance(then, exp.Update):
            clauses.append((f"when_{kind}_update", guard, _assigned(then, schema, using)))
        elif isinstance(then, exp.Insert):
            clauses.append((f"when_{kind}_insert", guard, _inserted(then, schema, using)))
        else:
            clauses.append((f"when_{kind}_delete", guard, None))
    return {
        "do": "merge",
        "columns": columns,
        "rows": [list(map(_said, row)) for row in rows],
        "source": using.alias_or_name,
        "target": tree.this.alias_or_name,
        "on": _sql(tree.args["on"]),
        "clauses": clauses,
    }


def _assigned(then: exp.Update, schema: Schema, using: exp.Expr) -> dict[str, str]:
    pairs = [pair for pair in then.expressions if isinstance(pair, exp.EQ)]
    if not pairs:
        return {c.name: f'"{using.alias_or_name}"."{c.name}"' for c in schema.columns}
    return {_name(pair.this.name, schema): _sql(pair.expression) for pair in pairs}


def _inserted(then: exp.Insert, schema: Schema, using: exp.Expr) -> dict[str, str]:
    if isinstance(then.this, exp.Star):
        return {c.name: f'"{using.alias_or_name}"."{c.name}"' for c in schema.columns}
    names = [c.name for c in schema.columns]
    if then.this is not None:
        names = [_name(column.name, schema) for column in then.this.expressions]
    return dict(zip(names, map(_sql, then.expression.expressions), strict=True))


def _optimize(statement: st.Optimize, schema: Schema) -> Request:
    if statement.rewrite == "vector":
        raise Refused(f"'{statement.sql}': it writes no deletion vectors that could be purged")
    filters = []
    if statement.where is not None:
        clause = re.split(r"(?is)\bWHERE\b", statement.sql, maxsplit=1)[1]
        tree = sqlglot.condition(ZORDER.sub("", clause), dialect="databricks")
        for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
            if not isinstance(part, exp.EQ) or not isinstance(part.expression, exp.Literal):
                raise Refused(f"'{statement.sql}': delta-rs compacts where a column is a value")
            filters.append((_name(part.this.name, schema), "=", part.expression.this))
    found = ZORDER.search(statement.sql) if statement.rewrite == "all" else None
    names = [] if found is None else [_name(n.strip(), schema) for n in found[1].split(",")]
    return {"do": "optimize", "partitions": filters, "zorder": names}


def _where(tree: exp.Expr, schema: Schema) -> str | None:
    where = tree.args.get("where")
    return None if where is None else _text(where.this, schema)


def _text(tree: exp.Expr, schema: Schema) -> str:
    """An expression on the target alone: its columns without the table, as they were declared."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        column.set("table", None)
        column.set("this", exp.to_identifier(_name(column.name, schema)))
    return _sql(tree)


def _sql(tree: exp.Expr) -> str:
    return tree.sql(dialect=DIALECT, identify=True)


def _name(name: str, schema: Schema) -> str:
    index = schema.index(name)
    return name if index is None else schema.columns[index].name


def _said(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
