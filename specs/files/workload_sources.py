"""Workloads by name, from a workload file, or from one SQL file for each job.

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

from isolitmus.model.errors import IsolitmusError, LitmusError, UnknownName, near
from isolitmus.model.workload import Workload
from isolitmus.specs.disk.input_files import read_text, shipped_files
from isolitmus.specs.files.job_reader import PASSED
from isolitmus.specs.files.logged_tables import read_declared_table
from isolitmus.specs.files.toml_reader import NAME, Node, Source
from isolitmus.specs.files.workload_file import build_workload, read_workload
from isolitmus.specs.sql.configuration import JOB_CONFS, SET, with_overwrite_mode
from isolitmus.specs.sql.parameters import BLANK, PIECE
from isolitmus.specs.sql.source_text import locate_error
from isolitmus.specs.sql.statements import resolve
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.workload import JobStatement
    from isolitmus.specs.files.logged_tables import LoggedDeclaration
    from isolitmus.specs.files.spec_catalogue import NameOrPath

__all__ = [
    "JobText",
    "as_workload",
    "parametrize_templates",
    "read_job_text",
    "replace_statement",
    "split_statements",
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
    passed: list[str] = []
    views: dict[str, str] = {}
    for statement in split_statements(source.text):
        if view := VIEW.fullmatch(statement):
            views[view["name"]] = _with_views(view["query"], views)
        elif (conf := SET.fullmatch(statement)) and conf["key"] in JOB_CONFS:
            found.append(statement)
        elif PASSED.match(statement):
            if MATTERS.search(statement):
                problem = f"unsupported: '{statement}' may affect commits"
                _refuse(source, source.text.index(statement), f"{problem}; remove it")
            passed.append(statement)
        else:
            found.append(_with_views(statement, views))
    return JobText(tuple(found), tuple(passed))


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
    hidden = PIECE.sub(lambda found: "x" * len(found[0]), text)
    start = 0
    for end in [*(k for k, sign in enumerate(hidden) if sign == ";"), len(text)]:
        statement = text[start:end].strip()
        if re.sub(r"--[^\n]*|/\*.*?\*/", "", statement, flags=re.DOTALL).strip():
            yield statement
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
        Name of a shipped workload, path of a workload file, or paths of SQL files.
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
    known = shipped_files("workloads")
    path = Path(name) if name.endswith(".toml") else known.get(name)
    if path is None:
        raise UnknownName(
            f"unknown workload '{name}'{near(name, known)}; give a name, a file NAME.toml or files"
            " NAME.sql"
        )
    return read_workload(read_text(path, LitmusError), path.stem, path, logged)


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
    paths: Sequence[Path], ddl: Path | None, logged: Sequence[LoggedDeclaration]
) -> Workload:
    """Return the workload of SQL files, one job per file; comments give types and conditions."""
    jobs: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    passed_over: list[str] = []
    for path in paths:
        name, text = _job_name(path), parametrize_templates(read_text(path, LitmusError))
        if name in jobs:
            raise LitmusError(
                f"{path}: another file has the name {name} as well, and job names are file names;"
                " rename one of them"
            )
        sources[name] = Source(path.name, text)
        found = read_job_text(sources[name])
        jobs[name] = {"sql": list(found.statements)}
        passed_over += [
            f"{path.name}: '{one}' has no effect on conflicts." for one in found.passed_over
        ]
        if not jobs[name]["sql"]:
            sources[name].refuse(f"{path.name} contains no statement")
        if typed := dict(TYPED.findall(text)):
            jobs[name]["parameters"] = typed
        if known := KNOWN.findall(text):
            every = " AND ".join(f"({one})" for one in known)
            jobs[name]["where"] = known[0] if len(known) == 1 else every
    name = " ".join(path.stem for path in paths)
    document = Node({"jobs": jobs}, "", Source(name))
    if ddl is not None:
        made = read_text(ddl, LitmusError)
        texts = {"ddl": list(split_statements(made)), "jobs": jobs}
        document = Node(texts, "", Source(ddl.name, made))
    made_of = build_workload(document, name, sources=sources, logged=logged)
    return replace(made_of, left_out=(*made_of.left_out, *passed_over))


def _job_name(path: Path) -> str:
    """Return the name of the job of a file."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", path.stem)
    return name if NAME.fullmatch(name) else f"job_{name}"
