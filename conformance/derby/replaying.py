"""The engine derby: litmus tests of sessions, carried out on Apache Derby."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from isolitmus.conformance.derby.dialect import DERBY_SQL
from isolitmus.conformance.derby.server import derby_serving, jars
from isolitmus.conformance.scheduling import Sql, carried_out_on
from isolitmus.model.engine import Carries, Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    {"23505": "DuplicateKey"},
)


@contextmanager
def _opened() -> Iterator[Carries]:
    with derby_serving() as server:
        yield Carries(
            server.release, lambda litmus, spec: carried_out_on(server, SQL, litmus, spec.name)
        )


DERBY = Engine(
    "derby",
    "Apache Derby, which is among PySpark's jars: locks on rows, held as each of its levels says",
    _opened,
    product="Derby",
    format="locking",
    protocols=tuple(SQL.levels),
    ready=jars,
)
