"""The engine postgres: its SQL dialect, isolation levels and error codes."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from sqlglot import expressions as exp

from isolitmus.databases.postgres.server import open_postgres, postgres_programs
from isolitmus.databases.sessions.gated_sql import Dialect
from isolitmus.databases.sessions.schedule_runner import SqlEngine, database_engine
from isolitmus.model.errors import EngineUnavailable, brief

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from isolitmus.databases.sessions.connections import Server
    from isolitmus.model.sql.schema import Column, Index, Schema

TYPES = {"INT": "INT", "BIGINT": "BIGINT", "STRING": "TEXT", "DATE": "DATE", "BOOLEAN": "BOOLEAN"}


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect="postgres")


def _cell(_column: Column, value: exp.Expr) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build("text"))


def _hint(_index: Index | None) -> str:
    """Return no hint; PostgreSQL has none."""
    return ""


def _steer(_tree: exp.Update | exp.Delete, _schema: Schema, _index: Index | None) -> None:
    """Do nothing; PostgreSQL has no hints."""


def _through(index: str, column: exp.Column) -> exp.Expr:
    """Return a predicate that makes the planner use a partial index.

    A partial index is used for any condition if the statement also asks for the predicate of the
    index.
    """
    return exp.Anonymous(this="through", expressions=[exp.Literal.string(index), column])


def _again(table: exp.Table) -> exp.Expr:
    """Return whether a row version is rechecked.

    A version that the statement's snapshot does not see is read because it follows one that it
    sees.
    """
    return exp.Anonymous(this="unseen", expressions=[exp.column("xmin", table=table.alias_or_name)])


def explain_scans(server: Server, text: str) -> tuple[tuple[str, str], ...]:
    """Return the tables that a statement scans, sorted, each with its index; empty for none."""
    found: Any = server.run(f"EXPLAIN (FORMAT JSON, COSTS OFF) {text}")
    return tuple(sorted(_scanned(found[0][0][0]["Plan"])))


def _scanned(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield table and index (or an empty text) of each scan in a plan."""
    if str(node["Node Type"]).endswith("Scan"):
        yield node["Relation Name"], node.get("Index Name", "")
    for inner in node.get("Plans", ()):
        yield from _scanned(inner)


POSTGRES_SQL = Dialect(
    _text, TYPES, _cell, _hint, _steer, "SELECT * FROM {}",
    dirty=False, snapshot=True, through=_through, again=_again,
)  # fmt: skip


SQL = SqlEngine(
    "postgres",
    "PostgreSQL",
    POSTGRES_SQL,
    {
        "postgresql-read-committed": "read committed",
        "postgresql-repeatable-read": "repeatable read",
        "postgresql-serializable": "serializable",
    },
    {"40P01": "Deadlock", "40001": "SerializationFailure"},
    {"23505": "DuplicateKey", "22003": "OutOfRange", "22012": "DivisionByZero"},
    unsaid=frozenset(("emitted",)),
    whole=True,
    planned=frozenset(("postgresql-serializable",)),
    plan=explain_scans,
)
PACKAGE = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "postgresql"]


def _install() -> Path:
    """Return the folder of PostgreSQL's programs; install Debian's package if they are missing.

    Raises EngineUnavailable if that is not possible.
    """
    try:
        return postgres_programs()
    except EngineUnavailable:
        if os.getuid() != 0 or shutil.which(PACKAGE[0]) is None:
            raise
    ended = subprocess.run(PACKAGE, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode:
        why = brief(ended.stderr or ended.stdout or "no reason given")
        raise EngineUnavailable(f"PostgreSQL could not be installed: {why}")
    return postgres_programs()


POSTGRES = database_engine(
    SQL,
    "PostgreSQL, a server of our own: snapshots of statements or of transactions",
    open_postgres,
    ready=postgres_programs,
    install=_install,
)
