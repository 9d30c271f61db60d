"""Fixtures for pytest, and the engines that a run of pytest has started.

pytest finds the fixtures where isolitmus is installed: ``delta_spark``, a SparkSession with Delta
in which a race takes seconds, and ``delta_race`` and ``delta_level``, which use it. A suite with
its own session overrides ``delta_spark`` with a fixture of that name. Each engine is started once
and ended after the last test.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from isolitmus.conformance.delta.session import Session
    from isolitmus.conformance.racing.races import Race
    from isolitmus.model.engine import RunsTests

__all__ = [
    "RACES",
    "EngineSession",
    "delta_level",
    "delta_race",
    "delta_session",
    "delta_spark",
    "engine_session",
]

ELSE = "; to use a session of your own, define a fixture delta_spark that returns it"


class EngineSession:
    """Engines by name; the one of Delta runs in the session of the fixtures."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self._session: Session | None = None
        self._engines: dict[str, RunsTests] = {}

    def session(self) -> Session:
        """Return Spark with Delta; fail the test, with one sentence, if it cannot be started."""
        from isolitmus.conformance.delta.session import open_session

        if self._session is None:
            try:
                self._session = self.stack.enter_context(open_session())
            except IsolitmusError as error:
                pytest.fail(f"{error}{ELSE}", pytrace=False)
        return self._session

    def engine(self, name: str) -> RunsTests:
        """Return an engine; start it at the first call."""
        from isolitmus.conformance.delta.engine import ENGINE, open_delta
        from isolitmus.conformance.engines import open_engine

        if name not in self._engines:
            self._engines[name] = (
                open_delta(self.session())
                if name == ENGINE
                else self.stack.enter_context(open_engine(name))
            )
        return self._engines[name]


STARTED: pytest.StashKey[EngineSession] = pytest.StashKey()


def engine_session(config: pytest.Config) -> EngineSession:
    """Return the engines of a run of pytest."""
    if STARTED not in config.stash:
        config.stash[STARTED] = EngineSession()
        config.add_cleanup(config.stash[STARTED].stack.close)
    return config.stash[STARTED]


RACES: pytest.StashKey[list[Race]] = pytest.StashKey()
"""Races of a test."""
COMPILING = "spark.sql.codegen.factoryMode", "FALLBACK"
"""Conf without which Spark cannot return typed objects, as ``spark.catalog.listTables()`` does."""


@pytest.fixture(scope="session")
def delta_session(pytestconfig: pytest.Config) -> Session:
    """Return a Session for ``isolitmus.conformance.replay``, the same for all tests.

    It is started once and ended after the last test.
    """
    return engine_session(pytestconfig).session()


@pytest.fixture
def delta_spark(delta_session: Session) -> Iterator[Any]:
    """Yield a SparkSession in a database of the test's own.

    Its tables and views are dropped after the test, and its confs are reset.
    """
    spark = delta_session.spark
    confs, database = spark.conf.getAll, f"test_{uuid4().hex}"
    spark.sql(f"CREATE DATABASE {database}")
    try:
        spark.conf.set(*COMPILING)
        spark.catalog.setCurrentDatabase(database)
        yield spark
    finally:
        for view in spark.sql("SHOW VIEWS").collect():
            if view.isTemporary:
                spark.catalog.dropTempView(view.viewName)
        spark.catalog.setCurrentDatabase("default")
        spark.sql(f"DROP DATABASE {database} CASCADE")
        for key, value in spark.conf.getAll.items():
            if key not in confs:
                spark.conf.unset(key)
            elif value != confs[key]:
                spark.conf.set(key, confs[key])


@pytest.fixture
def delta_race(request: pytest.FixtureRequest, delta_spark: Any) -> Iterator[Callable[..., Race]]:
    """Yield ``delta_race(table)``, which opens a race for a table.

    Everything that is parked at the end of the test is released. The keyword argument ``seconds``
    is that of ``isolitmus.conformance.race``.
    """
    from isolitmus.conformance.racing.races import race

    races: list[Race] = request.node.stash.setdefault(RACES, [])
    with ExitStack() as stack:

        def start(table: str | Path, *, seconds: float = 60.0) -> Race:
            races.append(stack.enter_context(race(delta_spark, table, seconds=seconds)))
            return races[-1]

        yield start


@pytest.fixture
def delta_level(delta_spark: Any) -> Callable[[str | Path, str], None]:
    """Return ``delta_level(table, "WriteSerializable")``, which sets an isolation level.

    It makes one commit, also for levels that SQL rejects.
    """
    from isolitmus.conformance.delta.tables import set_level
    from isolitmus.conformance.racing.races import shared_session, table_path

    def give(table: str | Path, level: str) -> None:
        path = table_path(delta_spark, table)
        set_level(shared_session(delta_spark, path), path, level)

    return give
