"""Plugin that pytest loads where isolitmus is installed: fixtures and litmus files as tests.

A file ``NAME.litmus.toml`` is a test for each protocol with an expectation, on each engine of
``--isolitmus-engine``. A failed test is followed by the timelines and outcomes of its races.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from isolitmus.conformance.pytest_fixtures import (
    RACES,
    delta_level,
    delta_race,
    delta_session,
    delta_spark,
    engine_session,
)
from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from _pytest._code.code import TerminalRepr

    from isolitmus.checker.execution.run_result import PossibleRuns
    from isolitmus.checker.render.expectation_report import ComparedRun
    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.spec import Spec

__all__ = ["delta_level", "delta_race", "delta_session", "delta_spark"]

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
    from isolitmus.specs.registries.engines import engine_named

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
        from isolitmus.specs.registries.engines import engine_named

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
    from isolitmus.specs.files.catalogue import protocols
    from isolitmus.specs.registries.formats import format_named

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
