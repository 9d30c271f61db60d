"""Workloads where they are: a workload file, or a file of plain SQL for each job beside the tables' DDL.

In a file of SQL, ``-- :day DATE`` says the type of a parameter, ``-- where day < today`` what is known of them;
its statements, which semicolons end, are the job's in that order.
"""

from __future__ import annotations

import re
from dataclasses import replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import IsolitmusError, LitmusError, UnknownName, near
from isolitmus.model.workload import Workload
from isolitmus.specs.disk.input_files import read_text
from isolitmus.specs.disk.shelf import shipped
from isolitmus.specs.files.job_text import job_text, parametrised, statements_in
from isolitmus.specs.files.logged_tables import table_in
from isolitmus.specs.files.toml_reader import NAME, Node, Source
from isolitmus.specs.files.workload_file import read_workload, workload_of
from isolitmus.specs.sql.configuration import with_overwrite_mode
from isolitmus.specs.sql.statements import resolve
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.workload import JobStatement
    from isolitmus.specs.files.logged_tables import LoggedDeclaration
    from isolitmus.specs.files.spec_catalogue import NameOrPath

__all__ = ["as_workload", "with_statement", "workload", "workloads"]

TYPED = re.compile(r"^\s*--\s*:(\w+)\s+(\S.*?)\s*$", re.MULTILINE)
KNOWN = re.compile(r"^\s*--\s*where\b\s*(\S.*?)\s*$", re.MULTILINE | re.IGNORECASE)


def workloads() -> list[str]:
    """The names of the workloads that ship, sorted.

    >>> workloads()
    ['shop']
    """
    return list(shipped("workloads"))


def workload(*names: str, ddl: Path | None = None, tables: Sequence[str] = ()) -> Workload:
    """The workload with this name or in this file; or that of these files of SQL on the tables of a DDL. What
    tables there are may also be taken from their logs: each a FOLDER, or a NAME=FOLDER.

    >>> list(workload("shop").jobs)
    ['ingest', 'upsert', 'erase', 'report', 'compact']
    """
    logged = [table_in(given) for given in tables]
    texts = [name for name in names if name.endswith(".sql")]
    if texts:
        other = next((name for name in names if name not in texts), None)
        if other is not None:
            raise IsolitmusError(f"'{other}' is no file of SQL, and the others are; write NAME.sql")
        if ddl is None and not logged:
            raise IsolitmusError(
                "files of SQL do not say what the table is; add --ddl FILE, or --table FOLDER"
            )
        return _of_sql([Path(name) for name in texts], ddl, logged)
    if len(names) != 1:
        raise IsolitmusError(f"{', '.join(names)}: one workload file is wanted, or files of SQL")
    if ddl is not None:
        raise IsolitmusError("--ddl is for files of SQL; a workload file has the DDL in 'ddl'")
    (name,) = names
    known = shipped("workloads")
    path = Path(name) if name.endswith(".toml") else known.get(name)
    if path is None:
        raise UnknownName(
            f"no workload '{name}'{near(name, known)}; a name, a file NAME.toml or files NAME.sql are wanted"
        )
    return read_workload(read_text(path, LitmusError), path.stem, path, logged)


def as_workload(given: Workload | NameOrPath) -> Workload:
    """The workload with this name or in this file; a workload as it is.

    >>> as_workload(as_workload("shop")).name
    'shop'
    """
    return given if isinstance(given, Workload) else workload(fspath(given))


def with_statement(of: Workload, one: JobStatement, sql: str) -> Workload:
    """The workload with another text for one statement, whose parameters are the same."""
    syntax = Syntax(sql, one.name).typed(one.types, opaque=True)
    statement = with_overwrite_mode(resolve(syntax, of.tables), one.conf)
    changed = replace(one, sql=sql, statement=statement)
    job = of.jobs[one.job]
    statements = tuple(changed if each is one else each for each in job.statements)
    return replace(of, jobs={**of.jobs, job.name: replace(job, statements=statements)})


def _of_sql(
    paths: Sequence[Path], ddl: Path | None, logged: Sequence[LoggedDeclaration]
) -> Workload:
    jobs: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    passed_over: list[str] = []
    for path in paths:
        name, text = _job_name(path), parametrised(read_text(path, LitmusError))
        if name in jobs:
            raise LitmusError(f"{path}: another file is called {name}, too; the name is the job's")
        sources[name] = Source(path.name, text)
        found = job_text(sources[name])
        jobs[name] = {"sql": list(found.statements)}
        passed_over += [f"{path.name}: '{one}' changes nothing" for one in found.passed_over]
        if not jobs[name]["sql"]:
            sources[name].refuse(f"{path.name} has no statement in it")
        if typed := dict(TYPED.findall(text)):
            jobs[name]["parameters"] = typed
        if known := KNOWN.findall(text):
            every = " AND ".join(f"({one})" for one in known)
            jobs[name]["where"] = known[0] if len(known) == 1 else every
    name = " ".join(path.stem for path in paths)
    document = Node({"jobs": jobs}, "", Source(name))
    if ddl is not None:
        made = read_text(ddl, LitmusError)
        texts = {"ddl": list(statements_in(made)), "jobs": jobs}
        document = Node(texts, "", Source(ddl.name, made))
    made_of = workload_of(document, name, sources=sources, logged=logged)
    return replace(made_of, left_out=(*made_of.left_out, *passed_over))


def _job_name(path: Path) -> str:
    """What the job of a file is called: as the file, as far as that is a name."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", path.stem)
    return name if NAME.fullmatch(name) else f"job_{name}"
