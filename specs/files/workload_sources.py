"""Workloads by name, from a workload file, or from one SQL file for each job, also of a folder.

In an SQL file, ``-- :day DATE`` declares the type of a parameter, and ``-- where day < today`` a
condition on parameters. Semicolons separate the statements of the job.

A template expression is a parameter, and a temporary view is a query that later statements name.
SET of a supported conf is kept. Other session commands are ignored with an assumption, or refused
if they may affect commits.
"""

from __future__ import annotations

import re
from dataclasses import replace
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from isolitmus.model.errors import IsolitmusError, LitmusError, SqlError, UnknownName, near
from isolitmus.model.workload import Workload
from isolitmus.specs.disk.input_files import read_text, real_path, shipped_files
from isolitmus.specs.files.job_reader import unread_job
from isolitmus.specs.files.logged_tables import read_declared_table
from isolitmus.specs.files.project_workload import read_project_workload
from isolitmus.specs.files.table_ddl import read_ddl
from isolitmus.specs.files.toml_reader import NAME, Node, Source
from isolitmus.specs.files.workload_file import build_workload, read_workload, workload_tables
from isolitmus.specs.projects.dbt_project import find_manifest
from isolitmus.specs.sql.configuration import JOB_CONFS, SET, with_overwrite_mode
from isolitmus.specs.sql.job_statements import (
    commits_nothing,
    split_inserts,
    without_block,
)
from isolitmus.specs.sql.parameters import BLANK, PIECE
from isolitmus.specs.sql.source_text import locate_error
from isolitmus.specs.sql.statements import resolve
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.workload import JobStatement, UnreadStatement
    from isolitmus.specs.files.logged_tables import LoggedDeclaration
    from isolitmus.specs.files.spec_catalogue import NameOrPath

__all__ = [
    "JobText",
    "as_workload",
    "files_workload",
    "parametrize_templates",
    "read_job_text",
    "replace_statement",
    "split_statements",
    "sql_files",
    "workload",
    "workloads",
]

NAMED = r"(?:\$\{\s*(?P<{0}a>\w+)\s*\}|\{\{\s*(?P<{0}b>\w+)\s*\}\})"
TEMPLATE = re.compile(
    "|".join(
        f"{quote}{NAMED.replace('{0}', name)}{quote}"
        for quote, name in (("'", "s"), ('"', "d"), ("", "p"))
    )
)
"""Template expression, perhaps in quotes."""
LEFT = re.compile(r"\{\{|\{%|\$\{")
MATTERS = re.compile(r"spark\.databricks\.|partitionOverwriteMode", re.IGNORECASE)
"""Settings that may affect commits."""
CREATES = re.compile(
    rf"{BLANK}CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[\w.`]+\s*\(", re.IGNORECASE
)
"""CREATE TABLE with columns."""
VIEW = re.compile(
    rf"{BLANK}CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+`?(?P<name>\w+)`?\s+AS\s+"
    r"(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
WITH = re.compile(rf"{BLANK}WITH\b", re.IGNORECASE)


class JobText(NamedTuple):
    """Statements of a job, including SET of supported settings, and session commands that are
    ignored.
    """

    statements: tuple[str, ...]
    passed_over: tuple[str, ...]
    spans: tuple[tuple[int, int], ...] = ()
    """Positions of the statements in the text."""


def read_job_text(source: Source) -> JobText:
    """Return the statements of a job's SQL file; SqlError for an unsupported template or setting.

    Examples
    --------
    >>> from isolitmus.specs.files.toml_reader import Source
    >>> text = "USE shop; CREATE TEMP VIEW s AS SELECT 1 AS id; INSERT INTO t SELECT * FROM s"
    >>> found = read_job_text(Source("a.sql", text))
    >>> found.statements
    ('WITH s AS (SELECT 1 AS id) INSERT INTO t SELECT * FROM s',)
    >>> found.passed_over
    ('USE shop',)
    """
    if left := LEFT.search(source.text):
        word = source.text[left.start() :].partition("\n")[0]
        _refuse(
            source, left.start(), f"unsupported template '{word}'; write the SQL that it generates"
        )
    found: list[str] = []
    spans: list[tuple[int, int]] = []
    passed: list[str] = []
    views: dict[str, str] = {}
    for start, statement in without_block([*_statements_at(source.text)]):
        if view := VIEW.fullmatch(statement):
            views[view["name"]] = _with_views(view["query"], views)
        elif (conf := SET.fullmatch(statement)) and conf["key"] in JOB_CONFS:
            found.append(statement)
            spans.append((start, start + len(statement)))
        elif commits_nothing(statement):
            if MATTERS.search(statement):
                problem = f"unsupported: '{statement}' may affect commits"
                _refuse(source, start, f"{problem}; remove it")
            passed.append(statement)
        else:
            for one in split_inserts(statement):
                found.append(_with_views(one, views))
                spans.append((start, start + len(statement)))
    return JobText(tuple(found), tuple(passed), tuple(spans))


def _refuse(source: Source, start: int, problem: str) -> NoReturn:
    raise locate_error(source.label, source.text, start, problem)


def _with_views(statement: str, views: dict[str, str]) -> str:
    """Return the statement with the views that it names as common table expressions."""
    named = {
        name: query
        for name, query in views.items()
        if re.search(rf"(?<![.\w]){name}\b", statement, re.IGNORECASE)
    }
    if not named:
        return statement
    listed = ", ".join(f"{name} AS ({query.strip()})" for name, query in named.items())
    if begun := WITH.match(statement):
        return f"WITH {listed},{statement[begun.end() :]}"
    return f"WITH {listed} {statement}"


def parametrize_templates(text: str) -> str:
    """Return the text with a parameter for each template expression, without moving other
    characters.

    Examples
    --------
    >>> parametrize_templates("DELETE FROM t WHERE day = '{{ ds }}' AND id = ${id}")
    'DELETE FROM t WHERE day = :ds        AND id = :id  '
    """

    def parameter(found: re.Match[str]) -> str:
        name = next(name for name in found.groups() if name)
        return f":{name}".ljust(len(found[0]))

    return TEMPLATE.sub(parameter, text)


def split_statements(text: str) -> Iterator[str]:
    r"""Yield the statements of a text, without the semicolons that end them.

    Examples
    --------
    >>> list(split_statements("DELETE FROM t; -- done;\nINSERT INTO t VALUES (';')"))
    ['DELETE FROM t', "-- done;\nINSERT INTO t VALUES (';')"]
    """
    return (statement for _, statement in _statements_at(text))


def _statements_at(text: str) -> Iterator[tuple[int, str]]:
    """Yield the position and the text of each statement."""
    hidden = PIECE.sub(lambda found: "x" * len(found[0]), text)
    start = 0
    for end in [*(k for k, sign in enumerate(hidden) if sign == ";"), len(text)]:
        statement = text[start:end].strip()
        if re.sub(r"--[^\n]*|/\*.*?\*/", "", statement, flags=re.DOTALL).strip():
            yield text.index(statement, start), statement
        start = end + 1


TYPED = re.compile(r"^\s*--\s*:(\w+)\s+(\S.*?)\s*$", re.MULTILINE)
KNOWN = re.compile(r"^\s*--\s*where\b\s*(\S.*?)\s*$", re.MULTILINE | re.IGNORECASE)


def workloads() -> list[str]:
    """Return the names of the shipped workloads, sorted.

    Examples
    --------
    >>> workloads()
    ['shop']
    """
    return list(shipped_files("workloads"))


def workload(*names: str, ddl: Path | None = None, tables: Sequence[str] = ()) -> Workload:
    """Return the workload with this name, in this file, or of these SQL files.

    Parameters
    ----------
    *names : str
        Name of a shipped workload, path of a workload file, of a folder, or of SQL files. A
        folder may be a dbt project, which a path of its ``manifest.json`` gives as well.
    ddl : Path, optional
        File with the CREATE TABLE statements for SQL files.
    tables : sequence of str
        Folders of Delta tables whose logs declare them, each FOLDER or NAME=FOLDER.

    Examples
    --------
    >>> list(workload("shop").jobs)
    ['ingest', 'upsert', 'erase', 'report', 'compact']
    """
    logged = [read_declared_table(given) for given in tables]
    known = shipped_files("workloads")
    folder = Path(names[0]) if len(names) == 1 and names[0] not in known else None
    if folder is not None and (manifest := find_manifest(folder)) is not None:
        home = folder if folder.is_dir() else folder.absolute().parent.parent
        return read_project_workload(manifest, home, split_statements, ddl, logged)
    if folder is not None and folder.is_dir():
        return _of_sql(sql_files(folder, ddl), ddl, logged, folder)
    texts = [name for name in names if name.endswith(".sql")]
    if texts:
        other = next((name for name in names if name not in texts), None)
        if other is not None:
            raise IsolitmusError(
                f"'{other}' is not an SQL file, but the others are; give only NAME.sql files"
            )
        if ddl is None and not logged:
            raise IsolitmusError(
                "SQL files do not declare the table; add --ddl FILE or --table FOLDER"
            )
        return _of_sql([Path(name) for name in texts], ddl, logged)
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
    return read_workload(read_text(path, LitmusError), path.stem, path, logged)


def files_workload(
    paths: Sequence[Path],
    folder: Path,
    *,
    ddl: Path | None = None,
    tables: Sequence[str] = (),
    schedule: Node | None = None,
    whole: bool = True,
) -> Workload:
    """Return the workload of SQL files; jobs that are not understood are left out.

    Parameters
    ----------
    paths : sequence of Path
        SQL files, in `folder` or below.
    folder : Path
        Folder to which the names of files are relative.
    ddl : Path, optional
        File with CREATE TABLE statements, in addition to those in the files.
    tables : sequence of str
        Folders of Delta tables whose logs declare them, each FOLDER or NAME=FOLDER.
    schedule : Node, optional
        Table with the keys `shared`, `distinct` and `apart`, as in a workload file.
    whole : bool
        Whether these are all jobs of the schedule, so that it must not name others.
    """
    logged = [read_declared_table(given) for given in tables]
    return _of_sql(paths, ddl, logged, folder, schedule, partial=True, whole=whole)


def sql_files(folder: Path, ddl: Path | None = None) -> list[Path]:
    """Return the SQL files in a folder and below, but for hidden ones and that of the DDL."""
    found = [
        path
        for path in sorted(folder.rglob("*.sql"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and (ddl is None or real_path(path) != real_path(ddl))
    ]
    if not found:
        raise IsolitmusError(f"{folder} has no file NAME.sql, nor has a folder in it")
    return found


def as_workload(given: Workload | NameOrPath) -> Workload:
    """Return the workload with this name or in this file; a workload is returned unchanged.

    Examples
    --------
    >>> as_workload(as_workload("shop")).name
    'shop'
    """
    return given if isinstance(given, Workload) else workload(fspath(given))


def replace_statement(of: Workload, one: JobStatement, sql: str) -> Workload:
    """Return the workload with another text for one statement, which has the same parameters."""
    syntax = Syntax(sql, one.name).typed(one.types, opaque=True)
    statement = with_overwrite_mode(resolve(syntax, of.tables), one.conf)
    changed = replace(one, sql=sql, statement=statement)
    job = of.jobs[one.job]
    statements = tuple(changed if each is one else each for each in job.statements)
    return replace(of, jobs={**of.jobs, job.name: replace(job, statements=statements)})


def _of_sql(
    paths: Sequence[Path],
    ddl: Path | None,
    logged: Sequence[LoggedDeclaration],
    folder: Path | None = None,
    schedule: Node | None = None,
    *,
    partial: bool = False,
    whole: bool = True,
) -> Workload:
    """Return the workload of SQL files, one job per file; comments give types and conditions.

    The files of a ``folder`` may also create tables, and what is wrong with one is left out.
    """
    jobs: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    spans: dict[str, list[tuple[int, int]]] = {}
    made = "" if ddl is None else read_text(ddl, LitmusError)
    tables: dict[str, str] = {}
    if folder is not None:
        list(_take_tables([*split_statements(made)], Source(str(ddl), made), tables))
    own = {*tables}
    told: list[str] = []
    unread: list[UnreadStatement] = []
    for path in paths:
        label = path.name if folder is None else path.relative_to(folder).as_posix()
        name, text = _job_name(label), parametrize_templates(read_text(path, LitmusError))
        if name in sources:
            raise LitmusError(
                f"{path}: another file has the name {name} as well, and job names are file names;"
                " rename one of them"
            )
        source = sources[name] = Source(label, text, path)
        try:
            found = read_job_text(source)
        except SqlError as error:
            if folder is None:
                raise
            unread.append(unread_job(name, error, source))
            continue
        statements = [*found.statements]
        spans[name] = [
            span
            for span, one in zip(found.spans, statements, strict=True)
            if folder is None or not CREATES.match(one)
        ]
        if folder is not None:
            told += _take_tables(statements, source, tables)
        told += [f"{label}: '{one}' has no effect on conflicts." for one in found.passed_over]
        if not statements:
            if folder is None:
                source.refuse(f"{label} contains no statement")
            continue
        jobs[name] = {"sql": statements}
        if typed := dict(TYPED.findall(text)):
            jobs[name]["parameters"] = typed
        if known := KNOWN.findall(text):
            every = " AND ".join(f"({one})" for one in known)
            jobs[name]["where"] = known[0] if len(known) == 1 else every
    texts = [*split_statements(made), *(tables[name] for name in tables if name not in own)]
    if not texts and not logged:
        raise IsolitmusError(
            f"no file in {folder} creates a table that is understood; add CREATE TABLE name (column"
            " TYPE, …) USING delta, --ddl FILE or --table FOLDER"
        )
    name = " ".join(path.stem for path in paths) if folder is None else real_path(folder).name
    source = Source(name) if ddl is None else Source(ddl.name, made)
    document = Node({"ddl": texts, "jobs": jobs} if texts else {"jobs": jobs}, "", source)
    work = build_workload(
        document, name, sources=sources, logged=logged, spans=spans, schedule=schedule,
        each=folder is not None, partial=partial, whole=whole,
    )  # fmt: skip
    return replace(work, left_out=(*work.left_out, *told), unread=(*work.unread, *unread))


def _take_tables(statements: list[str], source: Source, tables: dict[str, str]) -> Iterator[str]:
    """Move each CREATE TABLE of a job from its statements to the tables, by name in lower case.

    Yields what is assumed about one that is not understood, or that creates a table again.
    """
    for one in [each for each in statements if CREATES.match(each)]:
        statements.remove(one)
        place = f"{source.label}:{source.text.count(chr(10), 0, source.text.find(one)) + 1}"
        try:
            name = read_ddl(one, place, source=True).name
            workload_tables(Node({"ddl": one}, "", Source(place)), ())
        except (LitmusError, SqlError) as error:
            problem = str(error).partition("\n")[0].partition(": ")[2]
            yield f"The CREATE TABLE of {place} is passed over: {problem}."
            continue
        other = tables.setdefault(name.lower(), one)
        if _plain_text(other) != _plain_text(one):
            yield f"The CREATE TABLE of {place} is passed over: another one creates {name}."


def _plain_text(create: str) -> str:
    """Return a CREATE TABLE in one line, without IF NOT EXISTS."""
    return re.sub(r"\bif not exists ", "", " ".join(create.lower().split()))


def _job_name(label: str) -> str:
    """Return the name of the job of a file."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", label.removesuffix(".sql"))
    return name if NAME.fullmatch(name) else f"job_{name}"
