"""The engine postgres: litmus tests of sessions, carried out on PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from isolitmus.conformance.databases.database import database
from isolitmus.conformance.databases.schedule_runner import Sql
from isolitmus.conformance.postgres.dialect import POSTGRES_SQL, explained
from isolitmus.conformance.postgres.server import binaries, postgres_serving
from isolitmus.model.errors import EngineUnavailable, brief

if TYPE_CHECKING:
    from pathlib import Path


__all__ = ["POSTGRES"]

SQL = Sql(
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
    plan=explained,
)
PACKAGE = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "postgresql"]


def _install() -> Path:
    """PostgreSQL's programs, by Debian's package where that is possible; EngineUnavailable where it is not."""
    try:
        return binaries()
    except EngineUnavailable:
        if os.getuid() != 0 or shutil.which(PACKAGE[0]) is None:
            raise
    ended = subprocess.run(PACKAGE, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode:
        why = brief(ended.stderr or ended.stdout or "no reason given")
        raise EngineUnavailable(f"PostgreSQL could not be installed: {why}")
    return binaries()


POSTGRES = database(
    SQL,
    "PostgreSQL, a server of our own: snapshots of statements or of transactions",
    postgres_serving,
    ready=binaries,
    install=_install,
)
