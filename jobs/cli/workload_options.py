"""Options that ``predict`` and ``robust`` share: the workload, its tables, the isolation level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from isolitmus.cli.output import progress, warn
from isolitmus.jobs.readers.function_targets import check_function_names, read_function_target
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.jobs.readers.function_records import FunctionRecord
    from isolitmus.jobs.workload import Workload
    from isolitmus.model.budget import Budget

UNKNOWN = "unknown --level"
"""Beginning of the error for an unknown level."""
Jobs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="JOBS",
        help=(
            "The name of a workload, a workload file, SQL files, a folder of SQL files, a dbt"
            " project, or a Databricks bundle."
        ),
    ),
]
Ddl = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="For SQL files and dbt: a file with CREATE TABLE of tables."),
]
Functions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]FILE.py:FUNCTION",
        help=(
            "A function of PySpark, which is executed on empty tables; with arguments:"
            " 'jobs.py:load(\"2026-01-01\", batch=3)'. May be repeated, also beside other jobs."
        ),
    ),
]
TableFolder = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]FOLDER",
        help="A Delta table of the jobs; its log declares it. May be repeated.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option(
        metavar="L",
        help=(
            "Serializable, WriteSerializable or a protocol; default: the table's level, else"
            " Serializable; robust asks about every level."
        ),
    ),
]


class ChosenWorkload(NamedTuple):
    """Workload of a command line, and the runs of its functions."""

    workload: Workload
    functions: tuple[FunctionRecord, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the paths that its functions took, and an empty line."""
        for record in self.functions:
            yield from record.lines()
            yield ""


def choose_workload(
    jobs: list[str] | None,
    ddl: str | None,
    table: list[str] | None,
    run: list[str] | None,
    budget: Budget,
) -> ChosenWorkload:
    """Return the workload of a command line; functions of ``--run`` are executed.

    Raises IsolitmusError if a table's log contradicts its declaration, Limit if the budget is spent
    before everything is read.
    """
    if not jobs and not run:
        raise IsolitmusError(
            "no jobs are given; name a workload, a workload file, SQL files, a folder, or --run"
            " FILE.py:FUNCTION"
        )
    targets = [read_function_target(one) for one in run or ()]
    check_function_names(targets)
    records: list[FunctionRecord] = []

    def execute(created: str) -> list[FunctionRecord]:
        from isolitmus.jobs.recording.file_wall import unwalled_effects, wall_version
        from isolitmus.jobs.recording.function_runs import run_functions

        named = ", ".join(one.shown for one in targets)
        warn(f"--run executes {named}: {unwalled_effects(wall_version())}")

        with progress(f"run {', '.join(one.name for one in targets)}"):
            left = None if budget.seconds is None else budget.left
            records.extend(run_functions(targets, created, left))
        return records

    path = None if ddl is None else Path(ddl)
    running = execute if targets else None
    with budget.for_reading().interrupting():
        found = workload(*jobs or (), ddl=path, tables=table or (), run=running)
    return ChosenWorkload(found, tuple(records))
