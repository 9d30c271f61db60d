"""Observations: experiments on an engine with expected facts, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.transaction_outcome import read_failure, report_jvm_failure
from isolitmus.conformance.workers import run_interruptibly
from isolitmus.model.display import ReadableRepr

if TYPE_CHECKING:
    from isolitmus.conformance.delta.session import Session
    from isolitmus.conformance.workers import Interruption

Facts = Mapping[str, object]
"""Observed facts by name: numbers, texts, and lists of them."""


@dataclass(frozen=True, slots=True)
class ObservationResult(ReadableRepr):
    """Facts that an observation showed, with the expected ones."""

    name: str
    """Name of the observation."""
    expected: Facts
    """Expected facts."""
    facts: Facts
    """Observed facts."""

    @property
    def as_expected(self) -> bool:
        """True if the observed facts equal the expected ones."""
        return self.expected == self.facts

    def __repr__(self) -> str:
        lines = [f"{self.name}: {'passed' if self.as_expected else 'FAILED'}"]
        for key in dict.fromkeys((*self.expected, *self.facts)):
            wanted, seen = self.expected.get(key), self.facts.get(key)
            lines.append(f"  {key}: {seen}" + ("" if seen == wanted else f" (expected {wanted})"))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Observation:
    """Experiment on real Delta."""

    name: str
    """Name of the experiment."""
    title: str
    """Description in a sentence."""
    expected: Facts
    """Expected facts."""
    observe: Callable[[Session, Path, Interruption], Facts]
    """Function that makes the experiment in an empty folder and returns its facts.

    It leaves no statement and no stream running.
    """
    wide: bool = False
    """True if it takes long, or shows what a shorter one shows as well."""

    def made(self, session: Session) -> ObservationResult:
        """Make the experiment in a session and return the result.

        Raises
        ------
        EngineUnavailable
            The JVM died.
        EngineFailed
            Delta failed outside the observed steps.
        TimeLimit
            A step took too long.
        """
        return run_interruptibly(lambda interruption: self._made(session, interruption))

    def _made(self, session: Session, interruption: Interruption) -> ObservationResult:
        """Make the observation in a temporary folder and return expected and observed facts."""
        with (
            TemporaryDirectory(dir=session.directory, ignore_cleanup_errors=True) as folder,
            report_jvm_failure(self.name, "outside the observed steps", session.jvm),
        ):
            facts = self.observe(session, Path(folder), interruption)
        return ObservationResult(self.name, self.expected, facts)


def make_table(spark: Any, path: Path, *rows: int, properties: str = "") -> str:
    """Create a table with one column and these rows at a path, and return its name in SQL."""
    name = f"delta.`{path}`"
    said = f" TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {name} (id INT) USING delta{said}")
    if rows:
        spark.sql(f"INSERT INTO {name} VALUES {', '.join(f'({row})' for row in rows)}")
    return name


def outcome_of(body: Callable[[], object], session: Session) -> str:
    """Return the outcome of a callable.

    It is ``committed``, the exception of a conflict, or the error class of another error.
    """
    try:
        body()
    except Exception as error:  # noqa: BLE001 - what it is is asked
        failure = read_failure(error, session.jvm)
        return failure.exception if failure.conflict else failure.error_class or failure.exception
    return "committed"
