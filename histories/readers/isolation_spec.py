"""PostgreSQL isolation tests: sessions with SQL steps, and the results of their permutations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class SqlBlock:
    """SQL between braces, and the line of its file on which it begins."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class SpecStep:
    """Step: its name, the index of its session, and its SQL."""

    name: str
    session: int
    sql: SqlBlock


@dataclass(frozen=True, slots=True)
class SpecSession:
    """Session: its setup before each permutation, and its steps."""

    name: str
    setup: SqlBlock | None
    steps: tuple[SpecStep, ...]


@dataclass(frozen=True)
class IsolationSpec:
    """Isolation test without its permutations."""

    file: str
    """Name of the file in messages."""
    setup: tuple[SqlBlock, ...]
    """Setup of the tables, run before each permutation."""
    sessions: tuple[SpecSession, ...]
    """Sessions in the order of the file."""

    @cached_property
    def steps(self) -> Mapping[str, SpecStep]:
        """Steps of all sessions, by name."""
        return {step.name: step for session in self.sessions for step in session.steps}


@dataclass(frozen=True, slots=True)
class Printed:
    """Rows that a query printed, as strings; NULL is the empty string."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Happening:
    """Reported event of a step: it was sent, it ended, or both at once."""

    step: str
    """Name of the step."""
    sent: bool
    """True if the step was sent now."""
    ended: bool
    """True if the step ended now; otherwise it waits."""
    printed: tuple[Printed, ...]
    """Results of its queries."""
    error: str
    """Error message; empty if there was none."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """One order of the steps, and its results."""

    number: int
    """Number from 1, in the order of the file."""
    steps: tuple[str, ...]
    """Names of the steps, in the order in which they are sent."""
    printed: tuple[Printed, ...]
    """Results of the queries in the setups."""
    happenings: tuple[Happening, ...]
    """Reported events, in order."""
    problem: str = ""
    """Line of the report that is not understood; empty if there is none."""
