"""A workload: jobs that write to tables, over and over, with parameters of which something is
known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.display import ReadableRepr, first_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.statement import Read, Statement
    from isolitmus.model.sql.types import Type

__all__ = ["Job", "JobStatement", "Workload"]


@dataclass(frozen=True, slots=True)
class JobStatement(ReadableRepr):
    """One statement of a job: on Delta a transaction of its own."""

    name: str
    """The job's, with a number if it has several."""
    job: str
    """Whose it is."""
    sql: str
    """As written, with parameters."""
    statement: Statement
    """What it is on the tables, its parameters in it."""
    types: Mapping[str, Type]
    """The type of each parameter, also of those that a query is read into, and of what the clock
    says (``current_date()``).
    """
    let: Mapping[str, Read] = field(default_factory=dict)
    """Queries that the client reads into parameters before the transaction starts."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """The confs of the session that it runs in."""
    reads: tuple[str, ...] = ()
    """Tables that jobs write to and that a query reads in whose place a table stands: any row of
    them may count.
    """

    def __repr__(self) -> str:
        return f"{self.name}: {self.sql}"


@dataclass(frozen=True, slots=True)
class Job(ReadableRepr):
    """A job: one run after another of its statements, each run with parameters of its own."""

    name: str
    """What it is called."""
    statements: tuple[JobStatement, ...]
    """In the order of a run; the next begins when the one before has committed."""
    parameters: Mapping[str, Type] = field(default_factory=dict)
    """The parameters of a run, those that it shares with the others among them."""
    where: Expr | None = None
    """What is known of them: a condition on a row of their values, in their order."""
    known: str = ""
    """The same as written."""
    place: str = ""
    """The file and the line where it stands."""

    def __repr__(self) -> str:
        return first_lines([f"{self.name}:", *(f"  {one.sql}" for one in self.statements)])


@dataclass(frozen=True, slots=True)
class Workload(ReadableRepr):
    """Tables and jobs."""

    name: str
    """The name of its file."""
    title: str
    """What it is, in a line."""
    tables: Mapping[str, Schema]
    """What the tables are declared to be, by name."""
    jobs: Mapping[str, Job]
    """By name."""
    shared: Mapping[str, Type] = field(default_factory=dict)
    """Parameters that have one value in all runs that overlap."""
    apart: frozenset[tuple[str, str]] = frozenset()
    """Pairs of jobs of which no two runs ever overlap, either way around; of a job with itself,
    too.
    """
    formats: Mapping[str, str] = field(default_factory=dict)
    """Of tables that are not Delta's the format; jobs only read them."""
    distinct: tuple[str, ...] = ()
    """Parameters of which no two runs that overlap have the same value."""
    left_out: tuple[str, ...] = ()
    """What is taken for granted of what was passed over (properties of tables, settings of
    sessions), and of queries that tables stand in for."""
    level: str | None = None
    """What the tables' property delta.isolationLevel says, if it is there."""
    text: str = ""
    """The file as it was read."""
    path: Path | None = None
    """Where the file is; None: it was made up."""

    @property
    def statements(self) -> tuple[JobStatement, ...]:
        """Those of all jobs."""
        return tuple(one for job in self.jobs.values() for one in job.statements)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted of its tables and of when jobs run."""
        return (
            *(
                f"Nobody writes to {table} while jobs run: it has the format {format_}, without a"
                " commit protocol."
                for table, format_ in self.formats.items()
            ),
            *self.left_out,
            *(f"Concurrent runs never have the same :{name}." for name in self.distinct),
        )

    def overlap(self, a: str, b: str) -> bool:
        """Whether a run of the one job and a run of the other may be under way at a time."""
        return (a, b) not in self.apart

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return first_lines(
            [f"{self.name}: {self.title}", *(f"  {one!r}" for one in self.statements)]
        )
