"""A Databricks bundle as a workload: a job for each task, and what the scheduler rules out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.projects.databricks_bundle import read_bundle
from isolitmus.jobs.readers.job_schedule import ALL, JobSchedule, find_job_schedule
from isolitmus.jobs.readers.sql_jobs import (
    SqlFile,
    read_sql_file,
    skipped_files,
    sql_files,
    sql_workload,
)
from isolitmus.jobs.workload import UnreadStatement
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.specs.disk.input_files import real_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.jobs.projects.databricks_bundle import Bundle, BundleTask
    from isolitmus.jobs.readers.declared_tables import LoggedDeclaration
    from isolitmus.jobs.readers.reading_cache import ReadingStore
    from isolitmus.jobs.workload import Workload


class BundleWorkload(NamedTuple):
    """Workload of a bundle, and the files of its statements."""

    workload: Workload
    files: tuple[SqlFile, ...]


def read_bundle_workload(
    root: Path,
    ddl: Path | None = None,
    logged: Sequence[LoggedDeclaration] = (),
    *,
    schedule: JobSchedule | None = None,
    partial: bool = False,
    store: ReadingStore | None = None,
) -> BundleWorkload:
    """Return the workload of a Databricks bundle.

    Parameters
    ----------
    root : Path
        Its root file, or the folder ``resources`` of a bundle without one.
    ddl : Path, optional
        File with CREATE TABLE of tables. SQL files of the bundle that no task executes may create
        tables as well.
    logged : sequence of LoggedDeclaration
        Existing tables.
    schedule : JobSchedule, optional
        What is ruled out beside what the bundle says. By default a table ``[schedule]`` of
        ``isolitmus.toml`` or ``pyproject.toml`` in the bundle's folder or in the current one.
    partial : bool
        Whether no task has to be understood; otherwise that is an error.
    store : ReadingStore, optional
        Readings of earlier runs.
    """
    given = (schedule or find_job_schedule(root.parent, Path())).of("Databricks bundles")
    bundle = read_bundle(root, given.target)
    tasks = [task for job in bundle.jobs for task in job.tasks]
    files: dict[str, SqlFile] = {}
    unread: list[UnreadStatement] = []
    end = real_path(bundle.folder)
    for task in tasks:
        if task.path is None:
            if task.problem:
                unread.append(_unread(task, task.problem))
            continue
        try:
            file = read_sql_file(task.path, _label(task.path, bundle.folder), end)
        except LitmusError as error:
            unread.append(_unread(task, str(error)))
            continue
        if file is None:
            unread.append(_unread(task, f"'{task.path.name}' is no notebook in the source format"))
        else:
            files[task.name] = file
    if not files and not partial:
        raise IsolitmusError(_nothing(bundle, unread))
    named: dict[str, tuple[str, ...]] = {task.name: (task.name,) for task in tasks}
    named |= {job.name: tuple(task.name for task in job.tasks) for job in bundle.jobs}
    stated = _expanded(given, named)
    others, told = _other_files(bundle, tasks, ddl)
    work = sql_workload(
        files,
        bundle.name,
        bundle.folder,
        ddl=ddl,
        logged=logged,
        created=others,
        schedule=JobSchedule(place=given.place, node=given.node),
        partial=partial or bool(unread),
        store=store,
    )
    found = replace(
        work,
        unread=(*work.unread, *unread),
        apart=work.apart | {*_apart(bundle)} | {*stated.pairs({task.name: () for task in tasks})},
        left_out=(*work.left_out, *bundle.assumptions, *_assumptions(bundle), *told),
        schedule=_words(bundle, given),
    )
    if not found.jobs and not partial:
        raise IsolitmusError(_nothing(bundle, found.unread))
    return BundleWorkload(found, tuple(files.values()))


def _label(path: Path, folder: Path) -> str:
    """Return the path of a file in a bundle's folder, with slashes."""
    return real_path(path).relative_to(real_path(folder)).as_posix()


def _unread(task: BundleTask, problem: str) -> UnreadStatement:
    """Return a task that is not understood."""
    place = task.location
    return UnreadStatement(task.name, task.name, problem, str(place), location=place)


def _nothing(bundle: Bundle, unread: Sequence[UnreadStatement]) -> str:
    if not unread:
        return f"no task of {bundle.name} executes SQL"
    return f"no task of {bundle.name} is understood; {unread[0].place}: {unread[0].problem}"


def _other_files(
    bundle: Bundle, tasks: Sequence[BundleTask], ddl: Path | None
) -> tuple[list[SqlFile], list[Assumption]]:
    """Return the SQL files of a bundle that no task executes, which may create tables, and what is
    said of those that are not read.
    """
    executed = {real_path(task.path) for task in tasks if task.path is not None}
    found: list[Path] = []
    with suppress(IsolitmusError):
        found = [one for one in sql_files(bundle.folder, ddl) if real_path(one) not in executed]
    files: list[SqlFile] = []
    told = [*skipped_files(bundle.folder)]
    for path in found:
        label = path.relative_to(bundle.folder).as_posix()
        try:
            file = read_sql_file(path, label, real_path(bundle.folder))
        except LitmusError as error:
            told.append(AssumptionKind.NOT_READ.says(f"{error}."))
        else:
            files += [] if file is None else [file]
    return files, told


def _expanded(schedule: JobSchedule, named: dict[str, tuple[str, ...]]) -> JobSchedule:
    """Return a schedule with the tasks of a job in the place of the job.

    Raises LitmusError if it names neither a task nor a job.
    """
    schedule.check_jobs(named)
    return replace(
        schedule,
        apart=tuple((x, y) for a, b in schedule.apart for x in named[a] for y in named[b]),
        one_at_a_time=tuple(
            task for job in schedule.one_at_a_time for task in named.get(job, (ALL,))
        ),
        after={
            task: tuple(x for one in first for x in named[one])
            for job, first in schedule.after.items()
            for task in named[job]
        },
    )


def _apart(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """Yield the pairs of tasks that never overlap, in both directions.

    If no two runs of a job overlap, its tasks overlap only within a run: a task never with one
    that it depends on, and with itself only if its iterations run at the same time.
    """
    for job in bundle.jobs:
        if job.runs > 1:
            continue
        for task in job.tasks:
            if not task.repeated:
                yield task.name, task.name
            for other in task.after:
                yield task.name, other
                yield other, task.name


def _words(bundle: Bundle, schedule: JobSchedule) -> str:
    """Return the assumption about what may overlap."""
    alone = [job.name for job in bundle.jobs if job.runs <= 1]
    several = [job for job in bundle.jobs if job.runs > 1]
    parts = ["Runs of different jobs may overlap, whatever their schedules"]
    if len(bundle.jobs) == 1:
        parts = []
    if alone:
        parts.append(f"no two runs of {_listed(alone, 'or')} overlap (max_concurrent_runs is 1)")
    parts += [f"{job.runs} runs of {job.name} may overlap (max_concurrent_runs)" for job in several]
    if any(task.after for job in bundle.jobs for task in job.tasks):
        parts.append("in one run a task starts after those that it depends on")
    if schedule.whole:
        parts.append("no two runs of a job overlap")
    elif schedule.one_at_a_time:
        parts.append(f"no two runs of {_listed(schedule.one_at_a_time, 'or')} overlap")
    parts += [f"{a} and {b} never overlap" for a, b in schedule.apart]
    parts += [f"{job} runs after {_listed(one, 'and')}" for job, one in schedule.after.items()]
    text = "; ".join(parts)
    target = f", target {bundle.target}" if bundle.target else ""
    place = f"; {schedule.place}" if schedule.place else ""
    return f"{text[0].upper()}{text[1:]} ({bundle.label}{target}{place})."


def _assumptions(bundle: Bundle) -> Iterator[Assumption]:
    """Yield what is assumed about starts and retries of jobs."""
    if paused := [job.name for job in bundle.jobs if job.paused]:
        verb, they = ("is", "it") if len(paused) == 1 else ("are", "they")
        said = f"{_listed(paused)} {verb} paused, but {they} may be started by hand."
        yield AssumptionKind.SCHEDULE.says(said)
    if started := [f"{job.name} {job.started}" for job in bundle.jobs if job.started]:
        yield AssumptionKind.SCHEDULE.says(
            f"What starts the jobs is not taken into account: {'; '.join(started)}. A run may be"
            " late, or started by hand."
        )
    every = [task for job in bundle.jobs for task in job.tasks]
    if retried := [task.name for task in every if task.retries]:
        verb = "is a run" if len(retried) == 1 else "are runs"
        named = _listed(retried, "or")
        said = f"A retry of {named} {verb} like any other, after the one that failed."
        yield AssumptionKind.SCHEDULE.says(said)
    if timed := [task.name for task in every if task.times_out]:
        named = _listed(timed, "or")
        said = f"A run of {named} that timed out commits nothing after its retry starts."
        yield AssumptionKind.SCHEDULE.says(said)


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join(names)
