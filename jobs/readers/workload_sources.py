"""Workloads by name, from a workload file, of SQL files, or of a project."""

from __future__ import annotations

from dataclasses import replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.jobs.readers.declared_tables import read_declared_table
from isolitmus.jobs.readers.job_schedule import find_settings_table, read_job_schedule
from isolitmus.jobs.readers.project_sources import find_project
from isolitmus.jobs.readers.sql_jobs import (
    files_workload,
    skipped_files,
    sql_files,
)
from isolitmus.jobs.readers.workload_file import read_workload, with_invariants
from isolitmus.jobs.workload import Workload
from isolitmus.model.errors import IsolitmusError, LitmusError, UnknownName, near
from isolitmus.specs.disk.input_files import HOME, is_folder, is_there, real_path, shipped_files
from isolitmus.specs.disk.repository import check_inside, end_of_reading, is_sql, read_inside
from isolitmus.specs.files.catalogue_titles import Description, of_files
from isolitmus.specs.files.spec_catalogue import (
    databricks_protocol,
    proposals,
    protocol,
    protocols,
)
from isolitmus.specs.registries import format_named
from isolitmus.specs.sql.configuration import with_overwrite_mode
from isolitmus.specs.sql.statements import resolve
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.jobs.readers.declared_tables import LoggedDeclaration
    from isolitmus.jobs.readers.recorded_functions import FunctionRunner
    from isolitmus.jobs.workload import JobStatement
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike


def workloads() -> list[str]:
    """Return the names of the shipped workloads, sorted.

    Examples
    --------
    >>> workloads()
    ['shop']
    """
    return list(shipped_files("workloads"))


def workload(
    *names: str,
    ddl: Path | None = None,
    tables: Sequence[str] = (),
    run: FunctionRunner | None = None,
) -> Workload:
    """Return the workload with this name, in this file, or of these SQL files.

    Parameters
    ----------
    *names : str
        Name of a shipped workload, path of a workload file, of a folder, or of SQL files. A
        folder that is there comes before a shipped workload of its name. It may be a dbt project,
        which a path of its ``manifest.json`` gives as well, or a Databricks bundle, which a path of
        its root file gives as well.
    ddl : Path, optional
        File with the CREATE TABLE statements for SQL files.
    tables : sequence of str
        Folders of Delta tables whose logs declare them, each FOLDER or NAME=FOLDER.
    run : callable, optional
        Runs functions of PySpark on the tables of a DDL; they are jobs beside those of a workload
        file or of SQL files, or alone.

    Returns
    -------
    Workload
        Its tables and jobs; what is not understood is in `unread`.

    Examples
    --------
    >>> list(workload("shop").jobs)
    ['ingest', 'upsert', 'erase', 'report', 'compact']
    """
    logged = [read_declared_table(given) for given in tables]
    known = shipped_files("workloads")
    one = Path(names[0]) if len(names) == 1 else None
    folder = one if one is not None and (is_folder(one) or names[0] not in known) else None
    if folder is not None and (project := find_project(folder)) is not None:
        kind, root, home = project
        _refuse_functions(run, f"{folder} is {kind.title}")
        work = kind.read(root, home, ddl, logged).workload
        return with_invariants(work, find_settings_table("invariants", *_settings_folders(home)))
    if folder is not None and is_folder(folder):
        return _of_folder(folder, ddl, logged, run)
    texts = [name for name in names if is_sql(Path(name))]
    if texts or (run is not None and not names):
        other = next((name for name in names if name not in texts), None)
        if other is not None:
            raise IsolitmusError(
                f"'{other}' is not an SQL file, but the others are; give only NAME.sql files"
            )
        for name in texts:
            if not is_there(Path(name)):
                raise UnknownName(f"no file '{name}'")
        if ddl is None and not logged and run is None:
            raise IsolitmusError(
                "SQL files do not declare the table; add --ddl FILE or --table FOLDER"
            )
        paths = [Path(name) for name in texts]
        return files_workload(paths, ddl=ddl, logged=logged, run=run)
    if len(names) != 1:
        raise IsolitmusError(f"{', '.join(names)}: give one workload file, or SQL files")
    if ddl is not None:
        raise IsolitmusError("--ddl is for SQL files only; a workload file has the key 'ddl'")
    (name,) = names
    path = Path(name) if name.endswith(".toml") else known.get(name)
    if path is None:
        raise UnknownName(
            f"unknown workload '{name}'{near(name, known)}; give a name, a file NAME.toml, files"
            " NAME.sql, or their folder"
        )
    end = real_path(HOME) if path == known.get(name) else end_of_reading(path)
    return read_workload(read_inside(path, LitmusError, end), path.stem, path, logged, run)


def _of_folder(
    folder: Path,
    ddl: Path | None,
    logged: Sequence[LoggedDeclaration],
    run: FunctionRunner | None,
) -> Workload:
    """Return the workload of a folder of SQL files, under the schedule and with the invariants of
    its settings.
    """
    end = end_of_reading(folder)
    check_inside(folder, IsolitmusError, end)
    places = _settings_folders(folder)
    node = find_settings_table("schedule", *places)
    schedule = None if node is None else read_job_schedule(node).of("SQL files")
    own = node is not None and node.source.path == places[0] / node.source.label
    work = files_workload(
        sql_files(folder, ddl),
        folder,
        ddl=ddl,
        logged=logged,
        run=run,
        schedule=schedule,
        whole=own,
        ends=[end],
    )
    work = replace(work, left_out=(*work.left_out, *skipped_files(folder)))
    return with_invariants(work, find_settings_table("invariants", *places))


def _settings_folders(folder: Path) -> tuple[Path, ...]:
    """Return the folders in which settings are looked for: this one, and the current one if that is
    above it.
    """
    above = real_path(folder).is_relative_to(real_path(Path()))
    return (folder, Path()) if above else (folder,)


def _refuse_functions(run: FunctionRunner | None, given: str) -> None:
    """Refuse functions beside the jobs of a project."""
    if run is not None:
        raise IsolitmusError(
            f"{given}, whose jobs are those of the project; --run is for a workload file, SQL files"
            " and their folders, or alone"
        )


def _describe(name: str) -> Description:
    found = workload(name)
    return Description("workload", found.name, found.title, "", found.text)


WORKLOADS = of_files("workloads", "jobs with parameters, for predict and robust", _describe)
"""Kind of the catalogue."""


def as_workload(given: Workload | NameOrPath) -> Workload:
    """Return the workload with this name or in this file; a workload is returned unchanged.

    Examples
    --------
    >>> as_workload(as_workload("shop")).name
    'shop'
    """
    return given if isinstance(given, Workload) else workload(fspath(given))


def choose_protocol(
    of: Workload, level: SpecLike | None = None, wrong: str = "unknown level"
) -> Spec:
    """Return the protocol of a level or of this name, by default that of the workload's tables.

    Parameters
    ----------
    of : Workload
        The jobs.
    level : Spec, str or path, optional
        "Serializable", "WriteSerializable", or a protocol.
    wrong : str
        Beginning of the error for an unknown one.

    Examples
    --------
    >>> shop = workload("shop")
    >>> choose_protocol(shop).name, choose_protocol(shop, "WriteSerializable").name
    ('delta-serializable', 'delta-write-serializable')
    """
    if level is not None and not isinstance(level, str):
        return protocol(level)
    wanted = level or of.level or "Serializable"
    known = format_named(of.format).protocols
    settings = {protocol(name).setting.rpartition("= ")[2]: name for name in known}
    folded = {setting.lower(): name for setting, name in settings.items()}
    name = databricks_protocol(folded.get(wanted.lower(), wanted))
    if name.endswith(".cat") or name in proposals():
        is_what = "a text" if name.endswith(".cat") else "a rule that is being designed"
        raise IsolitmusError(
            f"{wrong} '{wanted}': jobs are asked about rules that ship, and this is {is_what}; ask"
            " isolitmus separate, run or repair about it"
        )
    if name.partition("@")[0] not in protocols():
        meant = near(wanted, [*settings, *protocols()])
        raise IsolitmusError(
            f"{wrong} '{wanted}'{meant if 'did you mean' in meant else ''}; give"
            " Serializable, WriteSerializable or a protocol (isolitmus show protocols)"
        )
    return protocol(name)


def replace_statement(of: Workload, one: JobStatement, sql: str) -> Workload:
    """Return the workload with another text for one statement, which has the same parameters."""
    syntax = Syntax(sql, one.name).typed(one.types, opaque=True)
    statement = with_overwrite_mode(resolve(syntax, of.tables), one.conf)
    changed = replace(one, sql=sql, statement=statement)
    job = of.jobs[one.job]
    statements = tuple(changed if each is one else each for each in job.statements)
    return replace(of, jobs={**of.jobs, job.name: replace(job, statements=statements)})
