"""Workload: jobs that repeatedly write to tables, with constraints on their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.display import ReadableRepr, count_of, first_lines
from isolitmus.model.sql.statement import altered_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from isolitmus.jobs.invariant import Invariant
    from isolitmus.model.assumption import Place
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Read, Statement
    from isolitmus.model.sql.types import Type

TEXTS = ("sql", "origin")
"""Attributes of parsed statements that repeat their text."""

PAIRS = 8
"""Maximum number of pairs of jobs that an assumption names."""


@dataclass(frozen=True, slots=True)
class JobStatement(ReadableRepr):
    """Statement of a job; on Delta a transaction of its own."""

    name: str
    """Name of the job, with a number if it has several statements."""
    job: str
    """Name of the job."""
    sql: str
    """SQL as written, with parameters."""
    statement: Statement
    """Parsed statement on the tables, with its parameters."""
    types: Mapping[str, Type]
    """Type of each parameter, including those that a query is read into and those that depend on
    the clock (``current_date()``).
    """
    let: Mapping[str, Read] = field(default_factory=dict)
    """Queries that the client reads into parameters before the transaction starts."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Configuration of its session."""
    reads: tuple[str, ...] = ()
    """Tables that jobs write to and that are read by a query which another table stands in for; any
    of their rows may matter.
    """
    location: Place | None = None
    """Its lines in the file; None if it was generated."""

    def __repr__(self) -> str:
        return f"{self.name}: {self.sql}"

    def named_tables(self, known: Mapping[str, str]) -> frozenset[str]:
        """Return the declared tables that the statement may read or write.

        Parameters
        ----------
        known : mapping of str to str
            Declared name of each table, by its name in lower case.

        Returns
        -------
        frozenset of str
            Declared names. Names of columns may add a table that the statement does not use.
        """
        found: set[str] = set()
        todo: list[object] = [self.statement, self.let, self.reads]
        while todo:
            part = todo.pop()
            if isinstance(part, str):
                if part.lower() in known:
                    found.add(known[part.lower()])
            elif isinstance(part, Mapping):
                todo += part.values()
            elif isinstance(part, tuple | list | frozenset | set):
                todo += part
            elif is_dataclass(part):
                todo += [getattr(part, f.name) for f in fields(part) if f.name not in TEXTS]
        return frozenset(found)


class StandIn(NamedTuple):
    """Table that stands for a source without DDL, or for a view."""

    table: str
    """Name of the table."""
    run: str = ""
    """Its column that distinguishes runs; empty if all runs read the same rows."""
    where: str = ""
    """Condition on its rows; empty: all of them."""


@dataclass(frozen=True, slots=True)
class UnreadStatement(ReadableRepr):
    """Statement of a job that is not understood."""

    name: str
    """Name of the job, with a number if it has several statements."""
    job: str
    """Name of the job."""
    problem: str
    """What is not understood of it."""
    place: str
    """File, line and column of that."""
    tables: frozenset[str] | None = None
    """Names of its tables in lower case, ``*.x`` for a table ``x`` that is not declared; None if
    they are not known.
    """
    location: Place | None = None
    """Its lines in the file; None if it was generated."""
    sql: str = ""
    """SQL as written, if it could be told from the rest of its file."""
    target: str | None = None
    """Table that it changes rows of, in lower case; None if it is not known, or if it does more."""
    mistake: Place | None = None
    """Place of the word that makes it fail, if its text and the DDL show that."""

    def __str__(self) -> str:
        return f"{self.name} ({self.place}): {self.problem}"

    def __repr__(self) -> str:
        return f"{self.name}: not understood"

    def may_concern(self, table: str | None) -> bool:
        """Return whether it may have to do with this table (None: any)."""
        return self.tables is None or table is None or table.lower() in self.tables

    def may_change(self, table: str) -> bool:
        """Return whether this is the table that it changes, or one of those that it names."""
        if self.target is not None:
            return table.lower() == self.target
        return self.tables is not None and table.lower() in self.tables

    def to_json(self) -> dict[str, object]:
        """Return the statement in the format of docs/interface.md, 6."""
        return {"name": self.name, "place": self.place, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class UnreadTable:
    """Table or view that is declared, but not understood; so are statements that name it."""

    name: str
    """Its name."""
    place: str
    """File, line and column of what is not understood."""
    problem: str
    """What is not understood."""
    is_view: bool = False
    """True if it may stand for other tables."""

    def __str__(self) -> str:
        return f"{self.name} is declared, but not understood ({self.place}): {self.problem}"


@dataclass(frozen=True, slots=True)
class QueryText:
    """Query that a table of any rows stands for."""

    sql: str
    """Its text, with parameters."""
    columns: tuple[tuple[str, ...], ...] = ()
    """Names of each of its columns in lower case: its own, and that of the column that it shows.
    None are known of a query that does not parse.
    """
    parts: tuple[tuple[str, ...], ...] = ()
    """Names of the columns that each of its columns is computed from, in lower case."""
    places: tuple[int, ...] = ()
    """Indices of those that the table has, in the order of the table; the table has one more, the
    number of the run.
    """
    where: str = ""
    """Condition on the table that is true of each row of the query."""
    tables: tuple[str, ...] = ()
    """Tables that it reads, in lower case."""


class AbortedStatement(NamedTuple):
    """Statement of a function that aborts on a path."""

    place: str
    """Its file and line."""
    names: tuple[str, ...]
    """Names of the statements of jobs that the function executes there if it commits."""


class ConflictPath(NamedTuple):
    """Path of a function that is taken only if some of its statements abort."""

    function: str
    """Name of the function's job."""
    aborted: tuple[AbortedStatement, ...]
    """The statements: a run takes the path only if each of them may abort."""
    jobs: tuple[str, ...]
    """Jobs of the path."""
    unread: tuple[str, ...]
    """Names of what is not understood of the path."""


@dataclass(frozen=True, slots=True)
class Job(ReadableRepr):
    """Job: repeated runs of its statements, each run with its own parameters."""

    name: str
    statements: tuple[JobStatement, ...]
    """Statements in the order of a run; each starts after the commit of the previous one."""
    parameters: Mapping[str, Type] = field(default_factory=dict)
    """Parameters of a run, including those that it shares with other jobs."""
    where: Expr | None = None
    """Constraint on the parameters: a condition on a row of their values, in their order."""
    known: str = ""
    """Constraint as written."""
    place: str = ""
    """File and line of the job."""
    not_null: frozenset[str] = frozenset()
    """Parameters that are declared NOT NULL."""

    def __repr__(self) -> str:
        return first_lines([f"{self.name}:", *(f"  {one.sql}" for one in self.statements)])


@dataclass(frozen=True, slots=True)
class Workload(ReadableRepr):
    """Workload: tables and jobs."""

    name: str
    """Name of its file."""
    title: str
    """Description in one line."""
    tables: Mapping[str, Schema]
    """Declared schemas of the tables, by name."""
    jobs: Mapping[str, Job]
    """Jobs by name, with the statements that are understood."""
    shared: Mapping[str, Type] = field(default_factory=dict)
    """Parameters that have the same value in all concurrent runs."""
    apart: frozenset[tuple[str, str]] = frozenset()
    """Pairs of jobs whose runs never overlap, in both directions; a job may be paired with itself.
    """
    format: str = field(kw_only=True)
    """Name of the format of the tables that jobs write to (``model.format``)."""
    formats: Mapping[str, str] = field(default_factory=dict)
    """Format of each table that has another one; jobs only read them."""
    distinct: tuple[str, ...] = ()
    """Parameters whose values differ in any two concurrent runs."""
    left_out: tuple[Assumption, ...] = ()
    """Assumptions about what was ignored (table properties, session settings), and about queries
    that tables stand in for.
    """
    unread: tuple[UnreadStatement, ...] = ()
    """Statements that are not understood; the jobs have only the others."""
    invariants: tuple[Invariant, ...] = ()
    """Invariants that the jobs are meant to keep."""
    keys: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    """Column indices in which no two rows of a table agree, by table: those of the tables that
    stand for a query with GROUP BY, DISTINCT or ``row_number() = 1``.
    """
    stand_ins: Mapping[str, tuple[StandIn, ...]] = field(default_factory=dict)
    """Tables that stand for a source without DDL or for a view, by the last part of its name in
    lower case.
    """
    schedule: str = ""
    """Assumption about what may overlap, which an answer names first; empty if there is none."""
    level: str | None = None
    """Value of the tables' property delta.isolationLevel, if it is set."""
    text: str = ""
    """Text of the file as it was read."""
    path: Path | None = None
    """Path of the file; None if the workload was generated."""
    uncertain: Mapping[str, str] = field(default_factory=dict)
    """Jobs of which it is not known what a whole run executes, each with the reason: a run of the
    statements that are understood may be impossible.
    """
    queries: Mapping[str, QueryText] = field(default_factory=dict)
    """Queries that tables of any rows stand for, by table."""
    full_names: Mapping[str, str] = field(default_factory=dict)
    """Name with its schema of each table that has another name here, by that name."""
    not_null: frozenset[str] = frozenset()
    """Shared parameters that are declared NOT NULL."""
    conflict_paths: tuple[ConflictPath, ...] = ()
    """Paths of functions that follow a conflict; their jobs are among the others."""

    @property
    def statements(self) -> tuple[JobStatement, ...]:
        """Statements of all jobs."""
        return tuple(one for job in self.jobs.values() for one in job.statements)

    def named_tables(self, tables: Collection[str]) -> Collection[str | None]:
        """Return the tables that statements name; None (any) if one stands for a source, which may
        have any name.
        """
        sources = {one.table for stand_ins in self.stand_ins.values() for one in stand_ins}
        return tables if sources.isdisjoint(tables) else [None]

    def without_unread(self) -> Workload:
        """Return the workload without what is not understood; the jobs of that are uncertain, if it
        may concern an invariant.
        """
        about = self.named_tables([table for one in self.invariants for table in one.tables])
        uncertain = {
            one.job: f"a run of {one.job} executes {one.name}, too, which is not understood"
            for one in self.unread
            if any(map(one.may_concern, about))
        }
        return replace(self, unread=(), uncertain={**uncertain, **self.uncertain})

    def without_paths(self, paths: Collection[ConflictPath]) -> Workload:
        """Return the workload without the jobs of some paths that follow a conflict."""
        jobs = {name for path in paths for name in path.jobs}
        unread = {name for path in paths for name in path.unread}
        return replace(
            self,
            jobs={name: job for name, job in self.jobs.items() if name not in jobs},
            unread=tuple(one for one in self.unread if one.name not in unread),
            conflict_paths=tuple(one for one in self.conflict_paths if one not in paths),
        )

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions about its tables and about the times of runs."""
        return (
            *([AssumptionKind.SCHEDULE.says(self.schedule)] if self.schedule else self._apart()),
            *(
                AssumptionKind.OTHER_WRITERS.says(
                    f"No program writes to {table} while jobs run: it has the format {format_},"
                    " without a commit protocol."
                )
                for table, format_ in self.formats.items()
            ),
            *self.left_out,
            *self._alterations(),
            *self._parameters(),
        )

    def _apart(self) -> Iterator[Assumption]:
        """Yield the assumption about jobs that never overlap, if no schedule states it."""
        pairs = sorted({(min(pair), max(pair)) for pair in self.apart})
        named = [f"{a} and {b}" if a != b else f"two runs of {a}" for a, b in pairs]
        named[PAIRS:] = [count_of(len(named) - PAIRS, "more pair")] if named[PAIRS:] else []
        if named:
            yield AssumptionKind.SCHEDULE.says(f"Never at the same time: {', '.join(named)}.")

    def _parameters(self) -> Iterator[Assumption]:
        """Yield the assumptions about the values of parameters."""
        said = [f"All concurrent runs have the same :{name}." for name in self.shared]
        said += [f"Concurrent runs never have the same :{name}." for name in self.distinct]
        known = {name: " ".join(job.known.split()) for name, job in self.jobs.items() if job.known}
        said += [f"{condition} in each run of {name}." for name, condition in known.items()]
        yield from map(AssumptionKind.PARAMETERS.says, said)

    def _alterations(self) -> Iterator[Assumption]:
        """Yield the assumptions about statements that alter tables."""
        found: dict[str, list[str]] = {}
        for one in self.statements:
            if (table := altered_table(one.statement)) is not None:
                found.setdefault(table, []).append(one.name)
        for table, names in found.items():
            yield AssumptionKind.DECLARATION.says(
                f"{' and '.join(names)} alter{'s' if len(names) == 1 else ''} {table}; the other"
                " statements run on its declared columns, constraints and properties."
            )

    @property
    def job_names(self) -> tuple[str, ...]:
        """Names of all jobs, also of those without a statement that is understood."""
        return tuple(dict.fromkeys((*self.jobs, *(one.job for one in self.unread))))

    def overlap(self, a: str, b: str) -> bool:
        """Return whether runs of these two jobs may overlap."""
        return (a, b) not in self.apart

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return first_lines(
            [
                f"{self.name}: {self.title}",
                *(f"  {one!r}" for one in (*self.statements, *self.unread)),
            ]
        )
