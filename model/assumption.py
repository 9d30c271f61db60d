"""Assumptions about workloads of jobs: what an answer takes for granted, in a closed list."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from pathlib import Path


class AssumptionKind(Enum):
    """Kind of an assumption, with what an answer takes for granted."""

    STATEMENTS = "A run of a job executes the statements that were read, and reads nothing else."
    """Also those that a dbt model compiles to, or that a path of a function executed."""
    UNKNOWN_STEPS = "Steps of a function that are not understood change only tables that it names."
    OTHER_WRITERS = "Nothing but the jobs writes to the tables."
    NOT_READ = "Files, settings and tests that are not read have nothing to do with the tables."
    SCHEDULE = "Runs overlap only as the schedule allows."
    LOG_ORDER = "A statement reads one version of a table; commits are versions in log order."
    ONE_MOMENT = "A statement reads all its tables at one moment; commits to them have one order."
    DECLARATION = "Tables have their declared columns, constraints and properties."
    CONSTRAINT = "Rows satisfy what a table declares of them; no statement fails because of that."
    NO_EFFECT = "A setting, a property or a session command has no effect on conflicts."
    SHORT_NAME = "A name that lacks parts, or a folder, is that of the declared table."
    DIFFERENT_NAMES = "Tables with different names are different tables."
    PLACEHOLDER = "A placeholder in a name has one value in all files."
    NO_VIEW = "A source without DDL is no declared table, and no view of one."
    ANY_VALUE = "A source or value that is not interpreted may be any, one in each run."
    NOT_NULL = "A parameter is not NULL, because an invariant says so of its column."
    PARAMETERS = "Parameters are the same in all runs, different, or limited, as stated."
    START = "At the start, the tables satisfy the invariants."
    NO_HANDLER = "A handler of a conflict never runs, because its statement never aborts."
    ONE_CONFLICT = "On a path of a function, conflicts are limited in number, and have one class."

    def says(self, sentence: str) -> Assumption:
        """Return an assumption of this kind."""
        return Assumption(self, sentence)


class Assumption(str):
    """Sentence about what an answer takes for granted, with its kind.

    Examples
    --------
    >>> known = AssumptionKind.PARAMETERS.says("Concurrent runs never have the same :id.")
    >>> known.kind.name, known
    ('PARAMETERS', 'Concurrent runs never have the same :id.')
    """

    __slots__ = ("kind",)
    kind: AssumptionKind

    def __new__(cls, kind: AssumptionKind, sentence: str) -> Self:
        made = super().__new__(cls, sentence)
        made.kind = kind
        return made

    def __getnewargs__(self) -> tuple[AssumptionKind, str]:  # type: ignore[override]
        return self.kind, str(self)


class Place(NamedTuple):
    """Lines of a file, and the column at which a statement begins; both count from 1.

    Examples
    --------
    >>> print(Place("models/load.sql", 3, 1, 7))
    models/load.sql:3:1
    """

    file: str
    """Path relative to the folder that the user named, with slashes; else the file's name."""
    line: int
    """Line of the first word, after comments."""
    column: int
    """Column of the first word."""
    end_line: int
    """Last line."""
    path: Path | None = None
    """Path of the file; None if the text is in no file."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"
