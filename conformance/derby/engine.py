"""The engine derby: litmus tests of sessions, carried out on Apache Derby."""

from __future__ import annotations

from isolitmus.conformance.databases.database import database
from isolitmus.conformance.databases.schedule_runner import Sql
from isolitmus.conformance.derby.dialect import DERBY_SQL
from isolitmus.conformance.derby.server import derby_serving, jars

__all__ = ["DERBY"]

SQL = Sql(
    "derby",
    "Derby",
    DERBY_SQL,
    {
        "derby-read-uncommitted": "read uncommitted",
        "derby-read-committed": "read committed",
        "derby-repeatable-read": "repeatable read",
        "derby-serializable": "serializable",
    },
    {"40001": "Deadlock"},
    {"23505": "DuplicateKey", "22003": "OutOfRange", "22012": "DivisionByZero"},
)

DERBY = database(
    SQL,
    "Apache Derby, which is among PySpark's jars: locks on rows, held as each of its levels says",
    derby_serving,
    ready=jars,
)
