"""An engine that is a database: a server of its own, on which sessions carry litmus tests out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from isolitmus.conformance.databases.schedule_runner import carried_out_on
from isolitmus.model.engine import Carries, Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from isolitmus.conformance.databases.connections import Server
    from isolitmus.conformance.databases.schedule_runner import Sql

__all__ = ["database"]


def database(
    sql: Sql,
    title: str,
    serving: Callable[[], AbstractContextManager[Server]],
    ready: Callable[[], object],
    install: Callable[[], Path] | None = None,
) -> Engine:
    """The engine that speaks to a database in this SQL, and starts its server."""

    @contextmanager
    def opened() -> Iterator[Carries]:
        with serving() as server:
            yield Carries(
                server.release, lambda litmus, spec: carried_out_on(server, sql, litmus, spec.name)
            )

    return Engine(
        sql.name,
        title,
        opened,
        product=sql.product,
        format="locking",
        protocols=tuple(sql.levels),
        ready=ready,
        install=install,
    )
