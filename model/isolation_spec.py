"""PostgreSQL's isolation tests: sessions with steps of SQL, and what came of their permutations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Happening",
    "IsolationSpec",
    "Permutation",
    "Printed",
    "SpecSession",
    "SpecStep",
    "SqlBlock",
]


@dataclass(frozen=True, slots=True)
class SqlBlock:
    """SQL between braces, and the line of its file on which it begins."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class SpecStep:
    """A step by its name, the place of its session among all, and what it does."""

    name: str
    session: int
    sql: SqlBlock


@dataclass(frozen=True, slots=True)
class SpecSession:
    """A session: what it does before each permutation, and its steps."""

    name: str
    setup: SqlBlock | None
    steps: tuple[SpecStep, ...]


@dataclass(frozen=True)
class IsolationSpec:
    """A test without its permutations."""

    file: str
    """What the file is called in messages."""
    setup: tuple[SqlBlock, ...]
    """What makes the tables, before each permutation."""
    sessions: tuple[SpecSession, ...]
    """In the order of the file."""

    @cached_property
    def steps(self) -> Mapping[str, SpecStep]:
        """The steps of all sessions by name."""
        return {step.name: step for session in self.sessions for step in session.steps}


@dataclass(frozen=True, slots=True)
class Printed:
    """The rows that a query printed, as texts, NULL as an empty one."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Happening:
    """What was reported of a step: that it was sent, that it ended, or both at once."""

    step: str
    """The name of the step."""
    sent: bool
    """Whether it was sent now."""
    ended: bool
    """Whether it ended now; else it waits."""
    printed: tuple[Printed, ...]
    """What its queries gave."""
    error: str
    """What was wrong, empty if nothing was."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """One order of the steps, and what came of it."""

    number: int
    """From 1, in the order of the file."""
    steps: tuple[str, ...]
    """The names, in the order in which they are sent."""
    printed: tuple[Printed, ...]
    """What the queries of the setups gave."""
    happenings: tuple[Happening, ...]
    """What was reported, in its order."""
    problem: str = ""
    """Which line of the report says what is not known, empty if none does."""
