"""The engine deltalake: a litmus test carried out on delta-rs, and what was seen.

``x.start`` opens a handle on every table: it pins its version. ``x.commit`` has delta-rs carry the
statement out on that handle: delta-rs reads at the handle's version, and commits, in one call. So
what stands between the two steps is what the transaction does not see. What a client reads itself (the
query of an INSERT, the source of a MERGE, a SELECT) is read at ``x.start``.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from isolitmus.checker.running.duck_sql import create_table, translated
from isolitmus.conformance.deltalake.environment import ENGINE
from isolitmus.conformance.deltalake.rendering import render
from isolitmus.conformance.deltalake.talk import EngineError
from isolitmus.conformance.versions import Chronicle
from isolitmus.model.client import Client
from isolitmus.model.delta_log import LEVEL_KEY
from isolitmus.model.errors import Refused, UnknownName, brief, near
from isolitmus.model.run import Run, TransactionRun
from isolitmus.model.statement import Insert, Read
from isolitmus.model.values import sort_rows
from isolitmus.specs.binding import bind, scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.conformance.deltalake.talk import Worker
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.schema import Schema
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Rows, Value

__all__ = ["PROTOCOLS", "replay", "table_level"]

PROTOCOLS: dict[str, dict[str, str | None]] = {
    "1.6.6": {
        "delta-rs-serializable": None,
        "delta-rs-write-serializable": "writeSerializable",
        "delta-rs-snapshot-isolation": "snapshotIsolation",
    },
    "1.6.3": {"delta-rs-1.6.3-serializable": None},
}
"""By release: the protocols that it implements, and how its tables spell ``delta.isolationLevel`` (None:
they do not say it). Any other spelling, Spark's ``WriteSerializable`` among them, is as if it were not
there (delta_kernel's table properties).
"""

CONFLICTS = {
    "a concurrent transactions added new data": "ConcurrentAppendException",
    "a concurrent transaction deleted data this operation read": "ConcurrentDeleteReadException",
    "a concurrent transaction deleted the same data": "ConcurrentDeleteDeleteException",
    "Metadata changed since last commit": "MetadataChangedException",
    "Concurrent transaction failed": "ConcurrentTransactionException",
    "Protocol changed since last commit": "ProtocolChangedException",
}
"""What delta-rs says of a conflict (conflict_checker.rs, CommitConflictError), and Delta's name for it."""

UNABLE = ("not implemented", "not supported", "unsupported", "schema error", "not yet")
"""What it says of statements that it does not carry out at all."""

BLIND = {"isBlindAppend": True}
"""What an INSERT of constants says of itself where the level asks: delta-rs leaves that to its caller."""


def table_level(release: str, protocol: str) -> str | None:
    """How the tables of a protocol spell their level; UnknownName if the release has no such thing."""
    known = PROTOCOLS[release]
    if protocol not in known:
        raise UnknownName(
            f"{ENGINE} {release} does not implement the protocol '{protocol}'{near(protocol, known)}"
        )
    return known[protocol]


def replay(litmus: Litmus, protocol: str, worker: Worker) -> Run:
    """Carry out the schedule on real tables, in a folder that is gone afterwards.

    UnknownName for a protocol that the release does not have; Refused for a test that it cannot carry
    out, with the statement and what the engine said.
    """
    level = table_level(worker.release, protocol)
    folder = Path(tempfile.mkdtemp(prefix="litmus_"))
    try:
        return _Replay(litmus, level, worker, folder).run(protocol)
    except Refused as error:
        raise Refused(f"{litmus.name}: {ENGINE} {worker.release}: {error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class _Started:
    """A transaction under way: the version at its start, and how it ended; ``request`` is what it asks
    of the worker, None for a reader.
    """

    version: int
    request: dict[str, Any] | None = None
    rows: Rows | None = None
    error: EngineError | None = None
    commits: tuple[int, ...] = ()


class _Replay:
    def __init__(self, litmus: Litmus, level: str | None, worker: Worker, folder: Path) -> None:
        self._litmus = litmus
        self._worker = worker
        self._blind = level is not None
        self._paths = {name: folder / name.lower() for name in litmus.tables}
        for name, schema in litmus.tables.items():
            self._create(schema, self._paths[name], level)
        for number, statement in enumerate(litmus.init):
            handle = f"init {number}"
            error = self._carry_out(handle, self._request(handle, statement))
            if error is not None:
                raise Refused(f"'{statement.sql}': {_said(error)}")
        self._chronicle = Chronicle(self._paths)
        self._started: dict[str, _Started] = {}
        self._values: dict[str, dict[str, Value]] = {}

    def run(self, protocol: str) -> Run:
        for step in self._litmus.schedule.steps:
            self._take(step)
        return Run(
            litmus=self._litmus.name,
            engine=ENGINE,
            engine_version=self._worker.release,
            protocol=protocol,
            base=next(iter(self._chronicle.base.values())),
            transactions={name: self._observed(name) for name in self._litmus.transactions},
            versions=self._chronicle.rows(self._rows_by_version),
        )

    def _create(self, schema: Schema, path: Path, level: str | None) -> None:
        lacking = {
            "a table that is made by a statement": not schema.exists,
            "CONVERT TO DELTA": bool(schema.parquet),
            "raw transactions": bool(schema.files),
            "clustering": bool(schema.clustered_by),
            "identity columns": schema.generates,
            "a number of rows per file": schema.rows_per_file is not None,
        }
        for what, wanted in lacking.items():
            if wanted:
                raise Refused(f"table {schema.name} needs {what}, which is not carried out there")
        said = {} if level is None else {LEVEL_KEY: level}
        try:
            self._worker.ask(
                "create",
                path=str(path),
                columns=[(column.name, column.type) for column in schema.columns],
                partitioned_by=list(schema.partitioned_by),
                configuration={**schema.properties, **said},
            )
        except EngineError as error:
            raise Refused(f"table {schema.name}: {_said(error)}") from None

    def _take(self, step: Step) -> None:
        name = step.transaction
        if step.action in ("park-init", "park-prepare"):
            raise Refused(f"the step {step}: a statement of delta-rs stops nowhere inside")
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
        """What a client reads before its transaction, by handles that it does not keep."""
        client = self._litmus.client(name)
        plain = Client(session=client.session, let=client.let, write=client.write)
        options = () if client.write is None else client.write.options
        if client != plain or set(options) - {"replaceWhere"}:
            raise Refused(f"{name}: its client does what only Spark's can, besides the statement")
        self._values[name] = {
            parameter: scalar(query.sql, self._read(f"{name} before", query))
            for parameter, query in client.let.items()
        }

    def _start(self, name: str) -> None:
        statement = bind(self._litmus.transactions[name], self._values[name], self._litmus.tables)
        started = self._started[name] = _Started(self._chronicle.version)
        try:
            if isinstance(statement, Read):
                started.rows = self._read(name, statement)
            else:
                started.request = self._request(name, statement)
        except duckdb.Error as error:  # its client's query fails
            started.error = EngineError(type(error).__name__, str(error))

    def _request(self, handle: str, statement: Statement) -> dict[str, Any]:
        """What a statement asks of the worker; its handle is opened, and what its client reads is read."""
        target = getattr(statement, "target", "")
        request = render(statement, self._litmus.tables, self._snapshot(handle))
        blind = isinstance(statement, Insert) and request["mode"] == "append"
        if blind and self._blind and not _reads(statement):
            request["says"] = BLIND
        return {**request, "handle": f"{handle} {self._name(target)}"}

    def _carry_out(self, name: str, request: dict[str, Any]) -> EngineError | None:
        try:
            self._worker.ask(**request)
        except EngineError as error:
            if any(words in str(error).lower() for words in UNABLE):
                statement = self._litmus.transactions.get(name)
                text = "" if statement is None else f"'{statement.sql}': "
                raise Refused(f"{text}{_said(error)}") from None
            return error
        return None

    def _snapshot(self, name: str) -> duckdb.DuckDBPyConnection:
        """Open a transaction's handles: the tables at its version, for its client to query."""
        duck = duckdb.connect(":memory:")
        for table, schema in self._litmus.tables.items():
            handle = f"{name} {table}"
            self._worker.ask("open", handle=handle, path=str(self._paths[table]))
            duck.execute(create_table(schema))
            rows = self._rows(handle, schema)
            if rows:
                marks = ", ".join("?" * len(schema.columns))
                duck.executemany(f'INSERT INTO "{schema.name}" VALUES ({marks})', rows)
        return duck

    def _read(self, name: str, statement: Read) -> Rows:
        found = self._snapshot(name).execute(translated(statement.sql, self._litmus.tables))
        return sort_rows(tuple(row) for row in found.fetchall())

    def _rows(self, handle: str, schema: Schema) -> Rows:
        names = [column.name for column in schema.columns]
        found = self._worker.ask("rows", handle=handle, columns=names)
        return sort_rows(tuple(map(_value, row)) for row in found)

    def _rows_by_version(self, path: Path, first: int, last: int) -> Mapping[int, Rows]:
        name = next(n for n, p in self._paths.items() if p == path)
        rows = {}
        for version in range(first, last + 1):
            self._worker.ask("open", handle="seen", path=str(path), version=version)
            rows[version] = self._rows("seen", self._litmus.tables[name])
        return rows

    def _name(self, table: str) -> str:
        return next(name for name in self._paths if name.lower() == table.lower())

    def _observed(self, name: str) -> TransactionRun:
        started = self._started[name]
        if started.error is not None:
            kind = started.error.kind
            outcome = next((c for t, c in CONFLICTS.items() if t in str(started.error)), None)
            return TransactionRun(
                outcome or f"error:{kind}", outcome or kind, read_version=started.version
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
            isolation_level=last.isolation_level,
            operation=last.operation,
        )


def _reads(statement: Statement) -> bool:
    """Whether an INSERT is of anything but constants."""
    return " FROM " in f" {' '.join(statement.sql.upper().split())} "


def _said(error: EngineError) -> str:
    return f"{error.kind}: {brief(str(error))}"


def _value(value: Any) -> Any:
    return date.fromisoformat(value["date"]) if isinstance(value, dict) else value
