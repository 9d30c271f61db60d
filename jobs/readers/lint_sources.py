"""Input of ``isolitmus lint``: the workload of some paths, and the ignore comments in its files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.readers.declared_tables import read_declared_table
from isolitmus.jobs.readers.ignore_comments import read_ignore_comments
from isolitmus.jobs.readers.project_sources import find_project
from isolitmus.jobs.readers.sql_jobs import (
    files_workload,
    skipped_files,
    sql_files,
)
from isolitmus.jobs.readers.workload_file import build_workload, with_invariants
from isolitmus.model.errors import IsolitmusError, LitmusError, UnknownName, near
from isolitmus.specs.disk.input_files import (
    is_file,
    is_folder,
    is_there,
    real_path,
    shipped_files,
)
from isolitmus.specs.disk.repository import (
    check_inside,
    end_of_reading,
    is_sql,
    read_inside,
)
from isolitmus.specs.files.toml_reader import Source

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isolitmus.jobs.readers.ignore_comments import IgnoreComment
    from isolitmus.jobs.readers.lint_settings import LintSettings
    from isolitmus.jobs.readers.reading_cache import ReadingStore
    from isolitmus.jobs.workload import Workload


class LintSources(NamedTuple):
    """Workload to lint, and the ignore comments in its files."""

    workload: Workload
    comments: tuple[IgnoreComment, ...]


def read_lint_sources(
    names: Sequence[str],
    settings: LintSettings,
    *,
    whole: bool = True,
    store: ReadingStore | None = None,
) -> LintSources:
    """Return the workload of some paths and its ignore comments.

    Parameters
    ----------
    names : sequence of str
        Folders and SQL files; or one workload file, or the name of a shipped workload.
    settings : LintSettings
        DDL, tables, excluded files, and schedule.
    whole : bool
        Whether the paths hold all jobs, so that the schedule must not name others.
    store : ReadingStore, optional
        Readings of earlier runs.

    Raises
    ------
    IsolitmusError
        If a path does not exist or holds no SQL, or if no table is declared.
    """
    found = _read_sources(names, settings, store, whole=whole)
    return found._replace(workload=with_invariants(found.workload, settings.invariants))


def _read_sources(
    names: Sequence[str], settings: LintSettings, store: ReadingStore | None, *, whole: bool
) -> LintSources:
    known = shipped_files("workloads")
    if len(names) == 1 and (project := find_project(Path(names[0]))) is not None:
        kind, root, home = project
        logged = [read_declared_table(given) for given in settings.tables]
        work, read_texts = kind.read(
            root, home, settings.ddl, logged, schedule=settings.schedule, partial=True, store=store
        )
        texts, told = read_texts()
        comments = (one for text in texts for one in read_ignore_comments(*text))
        work = replace(work, left_out=(*work.left_out, *told))
        return LintSources(work, tuple(comments))
    if len(names) == 1 and (names[0] in known or names[0].endswith(".toml")):
        return _of_workload_file(known.get(names[0]) or Path(names[0]), settings)
    paths = [Path(name) for name in names]
    ends = [end_of_reading(path) for path in paths]
    found: dict[Path, Path] = {}
    for path in paths:
        for each in _files_of(path, settings, known):
            if not settings.is_excluded(each):
                found.setdefault(real_path(each), each)
    if not found:
        raise IsolitmusError(
            f"{', '.join(names)}: every SQL file is excluded; change 'exclude' in {settings.path}"
        )
    if len(paths) == 1 and is_folder(paths[0]):
        folder, files = paths[0], list(found.values())
    else:
        files = [Path(os.path.abspath(path)) for path in found.values()]  # noqa: PTH100 - as named
        folder = Path(os.path.commonpath([path.parent for path in files]))
    work = files_workload(
        files,
        folder,
        ddl=settings.ddl,
        logged=[read_declared_table(given) for given in settings.tables],
        schedule=None if settings.schedule is None else settings.schedule.of("SQL files"),
        partial=True,
        whole=whole,
        store=store,
        ends=ends,
    )
    comments = (
        one
        for path in files
        for one in read_ignore_comments(
            _text_of(path, ends), path.relative_to(folder).as_posix(), path
        )
    )
    skipped = (one for path in paths if is_folder(path) for one in skipped_files(path))
    work = replace(work, left_out=(*work.left_out, *skipped))
    return LintSources(work, tuple(comments))


def _text_of(path: Path, ends: Sequence[Path]) -> str:
    """Return the text of a file; empty if it is unreadable, which is a finding by itself."""
    try:
        return read_inside(path, LitmusError, *ends)
    except LitmusError:
        return ""


def _files_of(path: Path, settings: LintSettings, known: Collection[str]) -> list[Path]:
    """Return the SQL files of a path; raise IsolitmusError if it has none."""
    if is_folder(path):
        check_inside(path, IsolitmusError, end_of_reading(path))
        return sql_files(path, settings.ddl)
    if str(path) in known:
        raise IsolitmusError(f"'{path}' is a workload; lint it alone")
    if not is_there(path):
        raise UnknownName(
            f"no file or folder '{path}'{near(str(path), known)}; give a folder, files NAME.sql,"
            " or a workload"
        )
    if not is_sql(path) or not is_file(path):
        raise IsolitmusError(
            f"'{path}' is not an SQL file; give folders and files NAME.sql, or one workload file"
        )
    return [path]


def _of_workload_file(path: Path, settings: LintSettings) -> LintSources:
    """Return the workload of a TOML file; jobs that are not understood are left out."""
    if settings.schedule is not None and (node := settings.schedule.node) is not None:
        node.refuse(f"schedule is for SQL files; write its keys into {path.name}", node.path)
    if settings.ddl is not None:
        raise IsolitmusError("--ddl is for SQL files only; a workload file has the key 'ddl'")
    text = read_inside(path, LitmusError)
    logged = [read_declared_table(given) for given in settings.tables]
    source = Source(path.name, text, path)
    work = build_workload(source.node(), path.stem, path, logged=logged, each=True, partial=True)
    return LintSources(work, tuple(read_ignore_comments(text, path.name, path)))
