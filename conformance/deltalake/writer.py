"""Transactions of a litmus test executed by delta-rs on existing tables.

``x.start`` opens a handle on every table, which fixes its version. ``x.commit`` lets delta-rs
execute the statement on that handle: delta-rs reads at the handle's version and commits, in one
call. So the transaction does not see what commits between the two steps. The reads of the client
itself (the query of an INSERT, the source of a MERGE, a SELECT) are done at ``x.start``.

delta-rs has no SQL that writes, so a statement becomes one call of its Python API. The client
computes the rows of an INSERT or of the source of a MERGE at the handle's version, with DuckDB.
Conditions and values are passed to delta-rs as text, in DataFusion's SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import duckdb
from sqlglot import expressions as exp

from isolitmus.checker.execution.duckdb_dialect import create_table, open_duck_with_macros
from isolitmus.checker.execution.duckdb_translation import translate, translate_query
from isolitmus.conformance.deltalake.environment import EngineError
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.errors import Refused, brief
from isolitmus.model.litmus import ClientSettings
from isolitmus.model.run import TransactionRun
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st
from isolitmus.model.sql.query import source_tables
from isolitmus.model.sql.statement import Insert, Read
from isolitmus.model.sql.types import BASE_TYPES
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.files.exception_text import conflict_in
from isolitmus.specs.sql.binding import bind_parameters, scalar_value
from isolitmus.specs.sql.statements import syntax_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.conformance.delta.table_versions import CommitHistory
    from isolitmus.conformance.deltalake.environment import WorkerProcess
    from isolitmus.conformance.deltalake.worker import Request
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Rows, Value

DIALECT = "postgres"
"""SQL dialect of sqlglot that is close to DataFusion's."""
TYPES = {
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "HUGEINT": "BIGINT",
    "VARCHAR": "STRING",
    "DATE": "DATE",
    "BOOLEAN": "BOOLEAN",
}
"""Type in the worker for each type of DuckDB."""


def api_call(
    statement: st.Statement, schemas: Mapping[str, Schema], duck: duckdb.DuckDBPyConnection
) -> Request:
    """Return the request to the worker for a statement, without its handle.

    Parameters
    ----------
    statement : Statement
        Statement of the litmus test.
    schemas : mapping of str to Schema
        Schema of each table.
    duck : DuckDBPyConnection
        Database with the tables as the client sees them.

    Raises
    ------
    Refused
        delta-rs has no call for the statement.
    """
    if any(select.version is not None for select in st.untracked_queries(statement)):
        raise Refused(f"'{statement.sql}': VERSION AS OF is unsupported on delta-rs")
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
            raise Refused(f"'{statement.sql}' is unsupported on delta-rs")


def _insert(
    statement: st.Insert, schemas: Mapping[str, Schema], duck: duckdb.DuckDBPyConnection
) -> Request:
    """Return the request of an INSERT with rows from DuckDB; raise Refused if unsupported."""
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
            raise Refused(f"'{statement.sql}': {what} is unsupported in writes of delta-rs")
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
    """Raise Refused if a query has several branches, for which delta-rs would write one file."""
    if len(query) > 1:
        raise Refused(
            f"'{sql}': UNION ALL writes one file per branch; delta-rs writes a single file"
        )


def _replaced(statement: st.Insert, schema: Schema) -> str | None:
    """Return the condition of the rows that an INSERT replaces; None for all rows."""
    if statement.where is None:
        return None
    tree = syntax_of(statement).tree()
    if tree.args.get("where"):
        return _text(tree.args["where"], schema)
    into = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    parts = into.args["partition"].expressions
    return " AND ".join(_text(part, schema) for part in parts)


def _update(statement: st.Update, schema: Schema) -> Request:
    """Return the request of an UPDATE, with its assignments as SQL texts."""
    tree = syntax_of(statement).tree()
    sets = {
        _name(pair.this.name, schema): _text(pair.expression, schema)
        for pair in tree.args["expressions"]
    }
    return {"do": "update", "sets": sets, "predicate": _where(tree, schema)}


def _merge(
    statement: st.Merge, schemas: Mapping[str, Schema], duck: duckdb.DuckDBPyConnection
) -> Request:
    """Return the request of a MERGE, with source rows computed by DuckDB."""
    schema = schemas[statement.target]
    tree = syntax_of(statement).tree()
    using = tree.args["using"]
    _one_file(statement.sql, statement.source)
    query = duck.execute(translate_query(exp.select(exp.Star()).from_(using.copy()), schemas))
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
    """Return the SQL assigned to each column; ``UPDATE SET *`` takes the source's columns."""
    pairs = [pair for pair in then.expressions if isinstance(pair, exp.EQ)]
    if not pairs:
        return {c.name: f'"{using.alias_or_name}"."{c.name}"' for c in schema.columns}
    return {_name(pair.this.name, schema): _sql(pair.expression) for pair in pairs}


def _inserted(then: exp.Insert, schema: Schema, using: exp.Expr) -> dict[str, str]:
    """Return the SQL inserted into each column; ``INSERT *`` takes the source's columns."""
    if isinstance(then.this, exp.Star):
        return {c.name: f'"{using.alias_or_name}"."{c.name}"' for c in schema.columns}
    names = [c.name for c in schema.columns]
    if then.this is not None:
        names = [_name(column.name, schema) for column in then.this.expressions]
    return dict(zip(names, map(_sql, then.expression.expressions), strict=True))


def _optimize(statement: st.Optimize, schema: Schema) -> Request:
    """Return the request of an OPTIMIZE; raise Refused for purges and unsupported conditions."""
    if statement.rewrite == "vector":
        raise Refused(f"'{statement.sql}': delta-rs writes no deletion vectors to purge")
    filters = []
    if statement.where is not None:
        for part in ex.conjuncts(statement.where):
            match part:
                case ex.Compare("=", ex.ColumnRef() as column, ex.Const(type=type_) as value) if (
                    type_ != "BOOLEAN"
                ):
                    filters.append((schema.columns[column.index].name, "=", str(value)))
                case _:
                    raise Refused(
                        f"'{statement.sql}': delta-rs supports only conditions column = value in"
                        " OPTIMIZE"
                    )
    names = [_name(name, schema) for name in statement.zorder]
    return {"do": "optimize", "partitions": filters, "zorder": names}


def _where(tree: exp.Expr, schema: Schema) -> str | None:
    where = tree.args.get("where")
    return None if where is None else _text(where.this, schema)


def _text(tree: exp.Expr, schema: Schema) -> str:
    """Return an expression on the target alone as SQL: declared column names, no table name."""
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


UNABLE = ("not implemented", "not supported", "unsupported", "schema error", "not yet")
"""Parts of error messages of delta-rs for statements that it does not support at all."""

UNLOGGED = frozenset(("blind", "isolation_level", "operation"))
UNCLASSED = frozenset(("error_class",))
"""Fields that its failures lack or record differently from Delta; it lacks Spark's exceptions too.
"""

BLIND = {"isBlindAppend": True}
"""Commit information of an INSERT of constants where the level needs it; delta-rs does not add it.
"""
WEAKER = ("writeSerializable", "snapshotIsolation")
"""Levels, as a table spells them, at which an INSERT records it."""


CARRIED = ("session", "let", "write", "protocol")
"""Client settings that are supported."""


@dataclass(slots=True)
class _StartedRequest:
    """Running transaction: the version at its start, its request to the worker, and its outcome.

    ``request`` is None for a reader.
    """

    version: int
    request: dict[str, Any] | None = None
    rows: Rows | None = None
    error: EngineError | None = None
    commits: tuple[int, ...] = ()


def refuse_unlike_table(schema: Schema) -> None:
    """Raise Refused for a table that delta-rs does not write as Spark does."""
    lacking = {
        "creation by a statement": not schema.exists,
        "CONVERT TO DELTA": bool(schema.parquet),
        "raw transactions": bool(schema.files),
        "clustering": bool(schema.clustered_by),
        "identity columns": schema.generates,
        "a limit of rows per file": schema.rows_per_file is not None,
        "a column type that not every format has": any(
            column.type not in BASE_TYPES for column in schema.columns
        ),
    }
    for what, wanted in lacking.items():
        if wanted:
            raise Refused(f"table {schema.name} needs {what}, which is unsupported on delta-rs")


class Writer:
    """Executes transactions of a litmus test on existing tables, step by step.

    Parameters
    ----------
    litmus : Litmus
        Litmus test that the transactions belong to.
    worker : WorkerProcess
        Worker with a release of deltalake.
    paths : mapping of str to Path
        Folder of each table.
    chronicle : CommitHistory
        History that the commits are added to.
    level : str, optional
        Level of the tables that declare none, as their properties spell it.
    """

    def __init__(
        self,
        litmus: Litmus,
        worker: WorkerProcess,
        paths: Mapping[str, Path],
        chronicle: CommitHistory,
        *,
        level: str | None = None,
    ) -> None:
        self._litmus = litmus
        self._worker = worker
        self._paths = paths
        self._chronicle = chronicle
        self._level = level
        self._started: dict[str, _StartedRequest] = {}
        self._values: dict[str, dict[str, Value]] = {}

    def fill(self, number: int, statement: Statement) -> None:
        """Execute an init statement; raise Refused if it fails."""
        handle = f"init {number}"
        error = self._carry_out(handle, self._request(handle, statement))
        if error is not None:
            raise Refused(f"'{statement.sql}': {error_line(error)}")

    def take(self, step: Step) -> None:
        """Execute a step; raise Refused if delta-rs cannot."""
        try:
            self._take(step)
        except EngineError as error:  # a table that delta-rs cannot read
            raise Refused(f"{step}: {error_line(error)}") from None

    def _take(self, step: Step) -> None:
        """Execute a step: start the transaction if it begins, and send its request if it ends."""
        name = step.transaction
        if step.action in ("park-init", "park-prepare"):
            raise Refused(
                f"step {step}: a statement of delta-rs has no phase at which it can be held"
            )
        if name not in self._values:
            self._ask(name)
        if name not in self._started and step.begins:
            self._start(name)
        if step.ends:
            started = self._started[name]
            if started.request is not None:
                started.error = self._carry_out(name, started.request)
                started.commits = self._chronicle.update()

    def _ask(self, name: str) -> None:
        """Evaluate the queries that a client runs before its transaction, on temporary handles."""
        client = self._litmus.client(name)
        plain = replace(ClientSettings(), **{key: getattr(client, key) for key in CARRIED})
        options = () if client.write is None else client.write.options
        if client != plain or set(options) - {"replaceWhere"}:
            raise Refused(f"{name}: its client has settings that only Spark supports")
        self._values[name] = {
            parameter: scalar_value(query.sql, self._read(f"{name} before", query))
            for parameter, query in client.let.items()
        }

    def _start(self, name: str) -> None:
        """Run a query, or prepare a statement's request; record DuckDB's error if it fails."""
        statement = bind_parameters(self._litmus.transactions[name], self._values[name])
        started = self._started[name] = _StartedRequest(self._chronicle.version)
        try:
            if isinstance(statement, Read):
                started.rows = self._read(name, statement)
            else:
                started.request = self._request(name, statement)
        except duckdb.Error as error:  # its client's query fails
            started.error = EngineError(type(error).__name__, str(error))

    def _request(self, handle: str, statement: Statement) -> dict[str, Any]:
        """Return the request of a statement; open its handles and do the reads of its client."""
        target = getattr(statement, "target", "")
        request = api_call(statement, self._litmus.tables, self._snapshot(handle))
        declared = self._litmus.tables[self._name(target)].properties.get(LEVEL_KEY, self._level)
        blind = isinstance(statement, Insert) and request["mode"] == "append"
        if blind and declared in WEAKER and not _reads(statement):
            request["says"] = BLIND
        return {**request, "handle": f"{handle} {self._name(target)}"}

    def _carry_out(self, name: str, request: dict[str, Any]) -> EngineError | None:
        """Send a request and return its error or None; raise Refused if it is unsupported."""
        try:
            self._worker.ask(**request)
        except EngineError as error:
            if any(words in str(error).lower() for words in UNABLE):
                statement = self._litmus.transactions.get(name)
                text = "" if statement is None else f"'{statement.sql}': "
                raise Refused(f"{text}{error_line(error)}") from None
            return error
        return None

    def _snapshot(self, name: str) -> duckdb.DuckDBPyConnection:
        """Open a transaction's handles; return a DuckDB database with their tables."""
        duck = open_duck_with_macros()
        for table, schema in self._litmus.tables.items():
            handle = f"{name} {table}"
            self._worker.ask("open", handle=handle, path=str(self._paths[table]))
            duck.execute(create_table(schema))
            rows = self.rows(handle, schema)
            if rows:
                marks = ", ".join("?" * len(schema.columns))
                duck.executemany(f'INSERT INTO "{schema.name}" VALUES ({marks})', rows)
        return duck

    def _read(self, name: str, statement: Read) -> Rows:
        """Return the sorted rows of a query on the transaction's snapshot."""
        found = self._snapshot(name).execute(
            translate_query(syntax_of(statement).tree(), self._litmus.tables)
        )
        return sort_rows(tuple(row) for row in found.fetchall())

    def rows(self, handle: str, schema: Schema) -> Rows:
        """Return the rows of a table at the version of a handle."""
        names = [column.name for column in schema.columns]
        found = self._worker.ask("rows", handle=handle, columns=names)
        return sort_rows(tuple(map(_value, row)) for row in found)

    def _name(self, table: str) -> str:
        return next(name for name in self._paths if name.lower() == table.lower())

    def observed(self, name: str) -> TransactionRun:
        """Return the observed run of a transaction."""
        started = self._started[name]
        if started.error is not None:
            kind = started.error.kind
            outcome = conflict_in(str(started.error))
            return TransactionRun(
                outcome or f"error:{kind}",
                kind,  # the class that a caller catches, for conflicts too
                message=str(started.error),
                read_version=started.version,
                unsaid=UNCLASSED | {"exception"},
            )
        if started.rows is not None:
            return TransactionRun("committed", read_version=started.version, rows=started.rows)
        if not started.commits:
            return TransactionRun("no-op", read_version=started.version)
        last = self._chronicle.commit(started.commits[-1])
        return TransactionRun(
            "committed",
            read_version=started.version,
            version=started.commits[-1],
            commits=started.commits,
            blind=last.blind,
            isolation_level=last.level,
            operation=last.operation,
            unsaid=UNLOGGED,
        )


def _reads(statement: Statement) -> bool:
    """Return whether an INSERT has a source other than constants."""
    return isinstance(statement, Insert) and bool(source_tables(statement.query))


def error_line(error: EngineError) -> str:
    """Return the error of delta-rs as one line."""
    return f"{error.kind}: {brief(str(error))}"


def _value(value: Any) -> Any:
    return date.fromisoformat(value["date"]) if isinstance(value, dict) else value
