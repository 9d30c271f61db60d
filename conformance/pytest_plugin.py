"""Plugin that pytest loads where isolitmus is installed: fixtures and litmus files as tests.

A file ``NAME.litmus.toml`` is a test for each protocol with an expectation, on each engine of
``--isolitmus-engine``. A failed test is followed by the timelines and outcomes of its races.

The fixtures are ``delta_spark``, a SparkSession with Delta in which a race takes seconds, and
``delta_race`` and ``delta_level``, which use it. A suite with its own session overrides
``delta_spark`` with a fixture of that name. Each engine is started once and ended after the last
test.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from pathlib import Path

    from _pytest._code.code import TerminalRepr

    from isolitmus.checker.execution.run_result import PossibleRuns
    from isolitmus.checker.render.expectation_report import ComparedRun
    from isolitmus.conformance.delta.session import Session
    from isolitmus.conformance.racing.races import Race
    from isolitmus.model.engine import RunsTests
    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.spec import Spec

ENDING = ".litmus.toml"
"""Suffix of files that hold a litmus test."""
OPTION = "isolitmus_engine"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the engines that run litmus files."""
    said = "Engines that run litmus files, separated by commas: model, delta, …"
    group = parser.getgroup("isolitmus")
    group.addoption("--isolitmus-engine", metavar="E[,E...]", help=f"{said} (default: model).")
    parser.addini(OPTION, said, default="model")


def pytest_configure(config: pytest.Config) -> None:
    """Raise a usage error for an unknown engine, before any test."""
    if config.getoption(OPTION) is None and config.getini(OPTION) == "model":
        return
    from isolitmus.specs.registries import engine_named

    try:
        for name in _engines(config):
            engine_named(name)
    except IsolitmusError as error:
        raise pytest.UsageError(str(error)) from None


def _engines(config: pytest.Config) -> list[str]:
    """Return the names of the selected engines."""
    names: str = config.getoption(OPTION) or config.getini(OPTION)
    return list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LitmusFile | None:
    """Collect litmus files as test files."""
    if file_path.name.endswith(ENDING):
        return LitmusFile.from_parent(parent, path=file_path)
    return None


class _Sentence:
    """Collector or item that shows an error of isolitmus as a sentence, without code."""

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        """Return only the message of isolitmus's errors; other failures as pytest shows them."""
        if isinstance(excinfo.value, IsolitmusError | NotMet):
            return str(excinfo.value)
        more = {} if style is None else {"style": style}
        # a mix-in: its other base class has the method
        shown: str | TerminalRepr = super().repr_failure(excinfo, **more)  # type: ignore[misc]
        return shown


class LitmusFile(_Sentence, pytest.File):
    """Litmus file: a test for each engine and protocol, or one for an abstract history."""

    def collect(self) -> Iterable[pytest.Item]:
        """Read the file and yield its tests."""
        from isolitmus.checker.render.expectation_report import expected_protocols
        from isolitmus.conformance.engines import refuse_format
        from isolitmus.model.litmus import Litmus
        from isolitmus.specs import litmus
        from isolitmus.specs.registries import engine_named

        test = litmus(str(self.path))
        if not isinstance(test, Litmus):
            yield HistoryItem.from_parent(self, name="levels", test=test)
            return
        refused: list[IsolitmusError] = []
        engines = _engines(self.config)
        for engine in engines:
            try:
                refuse_format(engine_named(engine), test.name, test.format)
                _refuse_silence(test, engine)
            except IsolitmusError as error:
                refused.append(error)
                continue
            for spec in expected_protocols(test, engine):
                name = f"{spec.name}[{engine}]"
                yield LitmusItem.from_parent(self, name=name, test=test, spec=spec, engine=engine)
        if len(refused) == len(engines):
            raise refused[0]


def _refuse_silence(test: Litmus, engine: str) -> None:
    """Raise IsolitmusError for a test that would have nothing to compare the model with."""
    from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
    from isolitmus.specs.files.spec_catalogue import protocols
    from isolitmus.specs.registries import format_named

    known = protocols(format_named(test.format).log)
    if engine == MODEL and not any(name in test.expect for name in known):
        raise IsolitmusError(
            f"{test.name} expects nothing under any protocol, so the model has nothing to be"
            " compared with; add an [expect.PROTOCOL], or choose another engine:"
            " --isolitmus-engine delta"
        )


class LitmusItem(_Sentence, pytest.Item):
    """Litmus test under a protocol on an engine."""

    def __init__(self, *, test: Litmus, spec: Spec, engine: str, **more: Any) -> None:
        super().__init__(**more)
        self._test, self._spec, self._engine = test, spec, engine

    def runtest(self) -> None:
        """Run the test; compare the run with the file's expectation and the model's prediction."""
        from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
        from isolitmus.checker.render.expectation_report import PredictedRuns

        answer = None
        if self._engine != MODEL:
            answer = engine_session(self.config).engine(self._engine)(self._test, self._spec)
        compared = PredictedRuns(self._test, self._spec).beside(answer)
        if compared.end in ("not met", "possible"):
            raise NotMet("\n".join(self._words(compared)))

    def _words(self, compared: ComparedRun | PossibleRuns) -> Iterator[str]:
        """Yield the lines of a failure: test, engine, protocol and comparison."""
        run = compared.run
        yield f"{self._test.name}: {self._test.title}"
        yield f"on {run.engine} ({run.engine_version}) under {run.protocol}:"
        yield from (f"  {line}" for line in compared.lines)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location and name for reports."""
        return self.path, None, f"{self._test.name}, {self.name}"


class NotMet(AssertionError):
    """Difference between the run of a litmus test and the file's expectation or the prediction."""


class HistoryItem(_Sentence, pytest.Item):
    """Abstract history with its levels."""

    def __init__(self, *, test: HistoryTest, **more: Any) -> None:
        super().__init__(**more)
        self._test = test

    def runtest(self) -> None:
        """Check each level that the file names."""
        from isolitmus.checker import check
        from isolitmus.specs import level

        expected = dict.fromkeys(self._test.holds, "allowed")
        expected |= dict.fromkeys(self._test.fails, "forbidden")
        if not expected:
            raise IsolitmusError(
                f"{self.path.name} names no level; add [expect] with holds or fails"
            )
        checked = check(self._test, [level(name) for name in expected])
        for name, wanted in expected.items():
            if str(checked.levels[name]) != wanted:
                raise NotMet(
                    f"FAILED: expected {wanted} by {name}, got {checked.levels[name]}:\n{checked!r}"
                )

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location and name for reports."""
        return self.path, None, f"{self._test.name}, {self.name}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the races of a failed test, and its interleavings, to the report."""
    report = yield
    if call.when == "call" and report.failed:
        for race in item.stash.get(RACES, []):
            with suppress(Exception):  # the JVM may be what failed
                report.sections.append((f"race for {race.table.name}", race.story))
        for title, text in _found(call):
            report.sections.append((title, text))
    return report


def _found(call: pytest.CallInfo[None]) -> Iterator[tuple[str, str]]:
    """Yield the results of ``interleave`` in the frames of a failure."""
    from isolitmus.conformance.racing.interleavings import InterleavingsResult

    assert call.excinfo is not None
    held = [value for entry in call.excinfo.traceback for value in entry.frame.f_locals.values()]
    for found in {id(v): v for v in held if isinstance(v, InterleavingsResult)}.values():
        yield f"interleaving {found.table}", str(found)


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
