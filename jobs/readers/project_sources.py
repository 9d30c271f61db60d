"""Projects of other tools as kinds of workloads: plug-ins, each with its files and its jobs.

A kind is asked whether a path is a project of it; those of other packages only if none of ours is
(``model.plugins``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial as bound
from typing import TYPE_CHECKING, NamedTuple, Protocol

from isolitmus.jobs.projects.project_files import find_bundle, find_manifest
from isolitmus.jobs.readers.sql_jobs import split_statements
from isolitmus.model.assumption import AssumptionKind
from isolitmus.model.errors import LitmusError
from isolitmus.model.registry import Registry
from isolitmus.specs.disk.input_files import is_file, is_folder
from isolitmus.specs.disk.repository import end_of_reading, escape, read_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isolitmus.jobs.readers.declared_tables import LoggedDeclaration
    from isolitmus.jobs.readers.job_schedule import JobSchedule
    from isolitmus.jobs.readers.reading_cache import ReadingStore
    from isolitmus.jobs.workload import Workload
    from isolitmus.model.assumption import Assumption


class SourceText(NamedTuple):
    """Text of a file with jobs."""

    text: str
    label: str
    """Name of the file in messages."""
    path: Path


class ProjectSources(NamedTuple):
    """Workload of a project, and how to read the texts in which its jobs stand."""

    workload: Workload
    read_texts: Callable[[], tuple[list[SourceText], list[Assumption]]]
    """Return the texts, and a note on each that is not read."""


class ReadsProject(Protocol):
    """Function that reads a project."""

    def __call__(
        self,
        root: Path,
        home: Path,
        ddl: Path | None,
        logged: Sequence[LoggedDeclaration],
        *,
        schedule: JobSchedule | None = None,
        partial: bool = False,
        store: ReadingStore | None = None,
    ) -> ProjectSources:
        """Return the jobs of a project.

        Parameters
        ----------
        root, home : Path
            Main file and folder of the project.
        ddl : Path or None
            File with CREATE TABLE statements.
        logged : sequence of LoggedDeclaration
            Tables that their logs declare.
        schedule : JobSchedule, optional
            Which jobs run at the same time.
        partial : bool
            Whether what is not understood is left out, with a note.
        store : ReadingStore, optional
            Readings of earlier runs.
        """


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """Kind of project whose jobs can be read, as a record of functions."""

    name: str
    title: str
    """A project of this kind, in words: "a dbt project"."""
    find: Callable[[Path], Path | None]
    """Return the main file of the project that a folder or file is; None if it is none."""
    home: Callable[[Path], Path]
    """Return the folder of the project, by its main file."""
    read: ReadsProject


KINDS: Registry[WorkloadKind] = Registry("workload kind", check=WorkloadKind)


def find_project(path: Path) -> tuple[WorkloadKind, Path, Path] | None:
    """Return the kind, the main file and the folder of the project at a path; None if it is none.

    Examples
    --------
    >>> from pathlib import Path
    >>> find_project(Path("no such folder")) is None
    True
    """
    names = KINDS.own_names()
    for name in names:
        if (found := _found(KINDS.named(name), path)) is not None:
            return found
    others = (name for name in KINDS.names() if name not in names) if is_folder(path) else ()
    here = (_found(KINDS.named(name), path) for name in others)
    return next((found for found in here if found is not None), None)


def _found(kind: WorkloadKind, path: Path) -> tuple[WorkloadKind, Path, Path] | None:
    root = kind.find(path)
    if root is None:
        return None
    return kind, root, path if is_folder(path) else kind.home(root)


def _read_dbt(
    root: Path,
    home: Path,
    ddl: Path | None,
    logged: Sequence[LoggedDeclaration],
    *,
    schedule: JobSchedule | None = None,
    partial: bool = False,  # noqa: ARG001 - models that are not understood are always left out
    store: ReadingStore | None = None,
) -> ProjectSources:
    from isolitmus.jobs.readers.project_workload import read_project_workload

    work = read_project_workload(
        root, home, split_statements, ddl, logged, schedule=schedule, store=store
    )
    return ProjectSources(work, bound(_named_texts, work, home))


def _named_texts(work: Workload, home: Path) -> tuple[list[SourceText], list[Assumption]]:
    """Return the texts of the files that a manifest names."""
    places = [*(one.location for one in work.statements), *(one.location for one in work.unread)]
    files = {
        place.path: place.file for place in places if place is not None and place.path is not None
    }
    there = {path: name for path, name in files.items() if is_file(path)}
    end = end_of_reading(home)
    problems = {path: escape(path, end) for path in there}
    texts = [
        SourceText(read_inside(path, LitmusError, end), name, path)
        for path, name in there.items()
        if not problems[path]
    ]
    told = [
        AssumptionKind.NOT_READ.says(f"Ignore comments of {there[path]} are not read: {problem}.")
        for path, problem in problems.items()
        if problem
    ]
    return texts, told


def _read_bundle(
    root: Path,
    home: Path,  # noqa: ARG001 - the root says it
    ddl: Path | None,
    logged: Sequence[LoggedDeclaration],
    *,
    schedule: JobSchedule | None = None,
    partial: bool = False,
    store: ReadingStore | None = None,
) -> ProjectSources:
    from isolitmus.jobs.readers.bundle_workload import read_bundle_workload

    found = read_bundle_workload(root, ddl, logged, schedule=schedule, partial=partial, store=store)
    sources = {file.source.label: file.source for file in found.files}
    texts = [
        SourceText(source.text, label, source.path)
        for label, source in sources.items()
        if source.path is not None
    ]
    return ProjectSources(found.workload, lambda: (texts, []))


DBT = WorkloadKind(
    "dbt", "a dbt project", find_manifest, lambda root: root.absolute().parent.parent, _read_dbt
)
BUNDLE = WorkloadKind(
    "bundle", "a Databricks bundle", find_bundle, lambda root: root.parent, _read_bundle
)
