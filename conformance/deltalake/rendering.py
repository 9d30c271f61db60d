"""What a statement is in delta-rs: one call of its Python API, whose rows the client has computed.

delta-rs has no SQL that writes. What an INSERT or the source of a MERGE reads, its client reads at the
handle's version, by DuckDB here; conditions and values go to delta-rs as text, in DataFusion's SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import expressions as exp

from isolitmus.checker.execution.duckdb_translation import translate, translated
from isolitmus.model.errors import Refused
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.specs.sql.statements import syntax_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from isolitmus.conformance.deltalake.worker import Request
    from isolitmus.model.schema import Schema

__all__ = ["render"]

DIALECT = "postgres"
"""DataFusion's SQL is close to it."""
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
    if any(select.version is not None for select in st.untracked_queries(statement)):
        raise Refused(f"'{statement.sql}': VERSION AS OF is not carried out there")
    match statement:
        case st.Insert():
            return _insert(statement, schemas, duck)
        case st.Delete():
            tree = syntax_of(statement).tree()
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
        "dynamic partition overwrite": statement.options.dynamic,
        "dataChange=false": not statement.options.data_change,
        "mergeSchema by name": statement.options.grows is not None,
        "a streaming sink": statement.options.stream,
        "identity columns": bool(statement.generates),
        "replaceUsing": bool(statement.options.using),
    }
    for what, wanted in special.items():
        if wanted:
            raise Refused(f"'{statement.sql}': {what} is not what its writes have")
    _one_file(statement.sql, statement.query)
    steps = translate(statement, schemas)
    predicate = None
    if statement.overwrite or statement.where is not None:
        for step in steps:
            if step.does in ("plan", "collect"):
                duck.execute(step.sql)
        rows = duck.execute("SELECT * FROM replacement").fetchall()
        predicate = _replaced(statement, schema)
    else:
        duck.execute("BEGIN TRANSACTION")
        *before, write = steps
        for step in before:
            duck.execute(step.sql)
        rows = duck.execute(f"{write.sql} RETURNING *").fetchall()
        duck.execute("ROLLBACK")
    return {
        "do": "write",
        "mode": "append" if predicate is None and not statement.overwrite else "overwrite",
        "predicate": predicate,
        "columns": [(column.name, column.type) for column in schema.columns],
        "rows": [list(map(_said, row)) for row in rows],
    }


def _one_file(sql: str, query: qu.Query) -> None:
    if len(query) > 1:
        raise Refused(f"'{sql}': UNION ALL asks for a file for each branch, and it writes one")


def _replaced(statement: st.Insert, schema: Schema) -> str | None:
    """The condition of the rows that an INSERT replaces; None for all."""
    if statement.where is None:
        return None
    tree = syntax_of(statement).tree()
    if tree.args.get("where"):
        return _text(tree.args["where"], schema)
    into = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    parts = into.args["partition"].expressions
    return " AND ".join(_text(part, schema) for part in parts)


def _update(statement: st.Update, schema: Schema) -> Request:
    tree = syntax_of(statement).tree()
    sets = {
        _name(pair.this.name, schema): _text(pair.expression, schema)
        for pair in tree.args["expressions"]
    }
    return {"do": "update", "sets": sets, "predicate": _where(tree, schema)}


def _merge(
    statement: st.Merge, schemas: Mapping[str, Schema], duck: duckdb.DuckDBPyConnection
) -> Request:
    schema = schemas[statement.target]
    tree = syntax_of(statement).tree()
    using = tree.args["using"]
    _one_file(statement.sql, statement.source)
    query = duck.execute(translated(exp.select(exp.Star()).from_(using.copy()), schemas))
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
        for part in ex.conjuncts(statement.where):
            match part:
                case ex.Compare("=", ex.ColumnRef() as column, ex.Const(type=type_) as value) if (
                    type_ != "BOOLEAN"
                ):
                    filters.append((schema.columns[column.index].name, "=", str(value)))
                case _:
                    raise Refused(f"'{statement.sql}': delta-rs compacts where a column is a value")
    names = [_name(name, schema) for name in statement.zorder]
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
