"""Jobs in SQL files: one job for each file, with its statements, parameters and conditions.

In an SQL file, ``-- :day DATE`` declares the type of a parameter, and ``-- where day < today`` a
condition on parameters. Semicolons separate the statements of the job.

A template expression is a parameter, and a temporary view is a query that later statements name.
SET of a supported conf is kept. Other session commands are ignored with an assumption, or refused
if they may affect commits.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from isolitmus.jobs.projects.notebooks import read_jupyter_notebook, read_notebook
from isolitmus.jobs.readers.file_tables import FileTables
from isolitmus.jobs.readers.recorded_functions import add_function_jobs, build_with_functions
from isolitmus.jobs.readers.statement_places import unread_job
from isolitmus.jobs.readers.workload_file import build_workload, run_tables
from isolitmus.jobs.sql.job_statements import (
    commits_nothing,
    creates_table,
    decided_later,
    find_transactions,
    split_inserts,
    without_block,
)
from isolitmus.jobs.sql.relations import SqlSession, definition_of, dropped_view, is_use
from isolitmus.jobs.workload import UnreadStatement
from isolitmus.model.assumption import Assumption, AssumptionKind, Place
from isolitmus.model.errors import IsolitmusError, LitmusError, SqlError
from isolitmus.specs.disk.input_files import read_text, real_path
from isolitmus.specs.disk.repository import find_sql_paths, is_sql, read_inside
from isolitmus.specs.files.toml_reader import NAME, Node, Source
from isolitmus.specs.sql.configuration import JOB_CONFS, SET
from isolitmus.specs.sql.parameters import PIECE, one_line
from isolitmus.specs.sql.source_text import locate_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.jobs.projects.notebooks import NotebookText
    from isolitmus.jobs.readers.declared_tables import LoggedDeclaration
    from isolitmus.jobs.readers.job_schedule import JobSchedule
    from isolitmus.jobs.readers.reading_cache import ReadingStore
    from isolitmus.jobs.readers.recorded_functions import FunctionForms, FunctionRunner
    from isolitmus.jobs.workload import Workload

DOTTED = r"\w+(?:[.:]\w+)*"
"""Name in a template, such as ``ds``, ``params.kind`` or ``hiveconf:day``."""
NAMED = rf"(?:\$\{{\s*(?P<{{0}}a>{DOTTED})\s*\}}|\{{\{{\s*(?P<{{0}}b>{DOTTED})\s*\}}\}})"
TEMPLATE = re.compile(
    "|".join(
        f"{quote}{NAMED.replace('{0}', name)}{quote}"
        for quote, name in (("'", "s"), ('"', "d"), ("", "p"))
    )
)
"""Template expression, perhaps in quotes."""
DIVIDED = re.compile(r"[.:]")
STRING = r"'(?:[^'\\]|\\.)*+'"
TEMPLATE_OR_PIECE = re.compile(
    f"{STRING}(?:{STRING})++|{TEMPLATE.pattern}|{PIECE.pattern}", PIECE.flags
)
"""Adjacent strings, which are one; a template; or a piece of SQL."""
IN_NAME = re.compile(NAMED.replace("{0}", "n"))
"""Template expression in a name."""
UNNAMED = rf"(?:\$\{{\s*{DOTTED}\s*\}}|\{{\{{\s*{DOTTED}\s*\}}\}})"
NAME_PART = rf"(?:`(?:[^`${{]|{UNNAMED})*`|(?:\w|{UNNAMED})+)"
TEMPLATE_NAME = re.compile(
    rf"{STRING}|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*.*?\*/"
    rf"|(?<![\w`$}}.])(?P<name>{NAME_PART}(?:\s*\.\s*{NAME_PART})+)"
    r"|\b(?:FROM|JOIN|INTO|TABLE|UPDATE|USING|OPTIMIZE|VACUUM)\s+"
    rf"(?P<part>\w+{UNNAMED}(?:\w|{UNNAMED})*|{UNNAMED}\w(?:\w|{UNNAMED})*)",
    re.IGNORECASE | re.DOTALL,
)
"""String, comment, or a name of a table in which templates may be parts, or parts of parts."""
LEFT = re.compile(r"\{\{|\{%|\$\{")
ENDS = {"{{": "}}", "{%": "%}", "${": "}"}
MATTERS = re.compile(r"spark\.databricks\.|partitionOverwriteMode", re.IGNORECASE)
"""Settings that may affect commits."""


class SqlFile(NamedTuple):
    """SQL of a job: a file, or the SQL of a notebook."""

    source: Source
    """Its text, with blanks in the place of cells of a notebook that are no SQL."""
    notebook: NotebookText | None = None
    """The notebook, if it is one."""

    def unread(self, job: str) -> Iterator[UnreadStatement]:
        """Yield the cells of the notebook that are no SQL, as statements of a job."""
        for start, language in () if self.notebook is None else self.notebook.others:
            place = self.source.span(start, start)
            problem = f"{language} cell of a notebook; only its SQL cells are understood"
            yield UnreadStatement(job, job, problem, str(place), location=place)

    def with_cell(self, one: UnreadStatement) -> UnreadStatement:
        """Return a statement of the job with the number of its cell, where lines do not tell it."""
        place = one.location
        cell = self.notebook.cell_at(place.line) if self.notebook and place is not None else 0
        return replace(one, problem=f"cell {cell}: {one.problem}") if cell else one


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
    >>> text = "SHOW TABLES; USE shop; INSERT INTO t SELECT * FROM s"
    >>> found = read_job_text(Source("a.sql", text))
    >>> found.statements
    ('USE shop', 'INSERT INTO t SELECT * FROM s')
    >>> found.passed_over
    ('SHOW TABLES',)
    """
    if left := LEFT.search(source.text):
        line = source.text[left.start() :].partition("\n")[0]
        end = ENDS[left[0]]
        word = line[: line.find(end) + len(end)] if end in line else line
        _refuse(
            source, left.start(), f"unsupported template '{word}'; write the SQL that it generates"
        )
    found: list[str] = []
    spans: list[tuple[int, int]] = []
    passed: list[str] = []
    pieces = without_block([*_statements_at(source.text)])
    blocks = find_transactions([statement for _, statement in pieces])
    together = {k for one in blocks for k in range(one.first, one.last + 1)}
    for k, (start, statement) in enumerate(pieces):
        passes = commits_nothing(statement) and not _matters_later(statement)
        if (conf := SET.fullmatch(statement)) and conf["key"] in JOB_CONFS:
            found.append(statement)
            spans.append((start, start + len(statement)))
        elif passes and MATTERS.search(statement):
            problem = f"unsupported: '{statement}' may affect commits"
            _refuse(source, start, f"{problem}; remove it")
        elif passes and k not in together:
            passed.append(statement)
        else:
            for one in split_inserts(statement):
                found.append(one)
                spans.append((start, start + len(statement)))
    return JobText(tuple(found), tuple(passed), tuple(spans))


def _matters_later(statement: str) -> bool:
    """Return whether a statement that commits nothing decides what names in later ones mean, or
    what these do.
    """
    defines = is_use(statement) or definition_of(statement, SqlSession()) is not None
    defines |= bool(dropped_view(statement))
    return defines or bool(decided_later(statement))


def _refuse(source: Source, start: int, problem: str) -> NoReturn:
    raise locate_error(source.label, source.text, start, problem)


def parametrize_templates(text: str) -> str:
    """Return the text with a parameter for each template expression, and for each string with
    templates in it, without moving other characters.

    A dot or a colon in a name becomes an underscore.

    Examples
    --------
    >>> parametrize_templates("DELETE FROM t WHERE day = '{{ ds }}' AND id = ${params.id}")
    'DELETE FROM t WHERE day = :ds        AND id = :params_id  '
    >>> parametrize_templates("DELETE FROM t WHERE part = 'day={{ ds }}'")
    'DELETE FROM t WHERE part = :text_ds      '

    In a name it is a placeholder:

    >>> parametrize_templates("SELECT * FROM ${catalog}.{{ env }}_raw.t")
    'SELECT * FROM `$catalog`.`$env_raw`   .t'
    """
    text = TEMPLATE_NAME.sub(_quoted_name, text)
    spelled: dict[str, str] = {}

    def named(name: str, spelling: str) -> str:
        """Return the parameter for this spelling; different spellings have different ones."""
        names = (name, *(f"{name}_{k}" for k in range(2, len(spelled) + 3)))
        found = next(one for one in names if spelled.setdefault(one, spelling) == spelling)
        return f":{found}"

    def parameter(found: re.Match[str]) -> str:
        name = next(name for name in found.groups() if name)
        return named(DIVIDED.sub("_", name), name).ljust(len(found[0]))

    def piece(found: re.Match[str]) -> str:
        """Replace a template, or a piece of SQL with templates in it."""
        if TEMPLATE.fullmatch(found[0]):
            return TEMPLATE.sub(parameter, found[0])
        inside = [*TEMPLATE.finditer(found[0])]
        if not inside or found[0][0] not in "'\"":
            return TEMPLATE.sub(parameter, found[0])
        if LEFT.search(TEMPLATE.sub("", found[0])):
            return found[0]
        names = "_".join(next(name for name in one.groups() if name) for one in inside)
        return named(f"text_{DIVIDED.sub('_', names)}", found[0]).ljust(len(found[0]))

    return TEMPLATE_OR_PIECE.sub(piece, text)


def _quoted_name(found: re.Match[str]) -> str:
    """Return a name with ``$name`` for each template in it, in quotes, of the same length."""
    name = found["name"] or found["part"]
    if not name or IN_NAME.search(name) is None:
        return found[0]

    def part(piece: re.Match[str]) -> str:
        if IN_NAME.search(piece[0]) is None:
            return piece[0]
        plain = IN_NAME.sub(
            lambda one: "$" + DIVIDED.sub("_", one["na"] or one["nb"]), piece[0].strip("`")
        )
        return f"`{plain}`".ljust(len(piece[0]))

    return found[0][: len(found[0]) - len(name)] + re.sub(NAME_PART, part, name)


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
        if re.sub(r"--[^\n]*|/\*.*?(?:\*/|\Z)", "", statement, flags=re.DOTALL).strip():
            yield text.index(statement, start), statement
        start = end + 1


TYPED = re.compile(r"^[^\S\n]*--\s*:(\w+)\s++(\S(?:.*\S)?)\s*?$", re.MULTILINE)
KNOWN = re.compile(r"^[^\S\n]*--\s*where\b\s*+(\S(?:.*\S)?)\s*?$", re.MULTILINE | re.IGNORECASE)


def sql_files(folder: Path, ddl: Path | None = None) -> list[Path]:
    """Return the SQL files in a folder and below, but for hidden ones and that of the DDL."""
    paths = find_sql_paths(folder)
    files = [path for path in paths.files if ddl is None or real_path(path) != real_path(ddl)]
    if not files:
        skipped = " ".join(("", *paths.skipped(folder))).rstrip(".")
        raise IsolitmusError(f"{folder} has no file NAME.sql, nor has a folder in it.{skipped}")
    return files


def skipped_files(folder: Path) -> tuple[Assumption, ...]:
    """Return the sentence about the SQL files in a folder that are not read, if there are any."""
    return find_sql_paths(folder).skipped(folder)


def read_sql_file(path: Path, label: str, *ends: Path) -> SqlFile | None:
    """Return the SQL of a file, with a parameter for each template.

    The file is SQL or a notebook; None if it is neither. Reading ends at the folders `ends`.
    """
    text = read_inside(path, LitmusError, *ends)
    if path.suffix == ".ipynb":
        notebook: NotebookText | None = read_jupyter_notebook(text, label)
    else:
        notebook = read_notebook(text, path.suffix[1:])
    if notebook is not None:
        text = notebook.sql
    elif not is_sql(path):
        return None
    source = Source(label, parametrize_templates(text), path)
    return SqlFile(source, notebook)


def files_workload(
    paths: Sequence[Path],
    folder: Path | None = None,
    *,
    ddl: Path | None = None,
    logged: Sequence[LoggedDeclaration] = (),
    schedule: JobSchedule | None = None,
    run: FunctionRunner | None = None,
    partial: bool = False,
    whole: bool = True,
    store: ReadingStore | None = None,
    ends: Sequence[Path] = (),
) -> Workload:
    """Return the workload of SQL files, one job per file; comments give types and conditions.

    Parameters
    ----------
    paths : sequence of Path
        SQL files.
    ends : sequence of Path
        Folders where reading ends; by default those of the paths (`end_of_reading`).
    folder : Path, optional
        Folder of the files, to which their names are relative. With one, the files may also create
        tables, and a job that is not understood is left out.
    ddl : Path, optional
        File with CREATE TABLE statements, in addition to those in the files.
    logged : sequence of LoggedDeclaration
        Existing tables.
    schedule : JobSchedule, optional
        What may overlap, and which parameters are shared or distinct.
    run : callable, optional
        Runs functions of PySpark, which are jobs as well, on the tables of a DDL.
    partial : bool
        Whether no statement has to be understood; otherwise that is an error.
    whole : bool
        Whether these are all jobs of the schedule, so that it must not name others.
    store : ReadingStore, optional
        Readings of earlier runs.
    """
    files: dict[str, SqlFile] = {}
    unreadable: list[UnreadStatement] = []
    labels = [
        path.name if folder is None else path.relative_to(folder).as_posix() for path in paths
    ]
    names = _job_names(labels)
    for path, label in zip(paths, labels, strict=True):
        if folder is None and labels.count(label) > 1:
            raise LitmusError(
                f"{path}: another file has the name {label} as well; rename one of them"
            )
        name = names[label]
        try:
            file = read_sql_file(path, label, *ends)
        except LitmusError as error:
            if folder is None:
                raise
            place = Place(label, 1, 1, 1, path)
            problem = str(error).partition("\n")[0].rpartition(": ")[2]
            unreadable.append(
                UnreadStatement(name, name, problem, label, location=place, mistake=place)
            )
            continue
        if file is not None:
            files[name] = file
    records = () if run is None else run(_run_tables(files, folder, ddl, logged))

    def build(forms: FunctionForms) -> Workload:
        work = sql_workload(
            files, name, folder, ddl=ddl, logged=logged, schedule=schedule, functions=forms,
            each=folder is not None or bool(forms), partial=partial or bool(forms), whole=whole,
            store=store,
        )  # fmt: skip
        return replace(work, unread=(*work.unread, *unreadable))

    of = [path.stem for path in paths]
    of += dict.fromkeys(one.target.name for one in records)
    name = " ".join(of) if folder is None else real_path(folder).name
    return build_with_functions(records, build)


def _run_tables(
    files: Mapping[str, SqlFile],
    folder: Path | None,
    ddl: Path | None,
    logged: Sequence[LoggedDeclaration],
) -> str:
    """Return the CREATE TABLE statements of the tables on which functions run."""
    made = "" if ddl is None else read_text(ddl, LitmusError)
    tables = FileTables()
    tables.add_ddl([*split_statements(made)], Source(str(ddl), made))
    for file in files.values():
        with suppress(SqlError):
            found = [*read_job_text(file.source).statements]
            list(tables.take(found, file.source))
    texts = [*split_statements(made), *tables.texts]
    if not texts and not logged:
        raise IsolitmusError(_no_table(folder))
    label = Source(str(folder or "")) if ddl is None else Source(ddl.name, made)
    return run_tables(Node({"ddl": texts} if texts else {}, "", label), logged)


def _no_table(folder: Path | None) -> str:
    if folder is None:
        return (
            "no table is declared; --run creates the tables empty, from --ddl FILE, --table FOLDER,"
            " a workload file, or CREATE TABLE in the SQL files"
        )
    return (
        f"no file in {folder} creates a table that is understood; add CREATE TABLE name (column"
        " TYPE, …) USING delta, --ddl FILE or --table FOLDER"
    )


def sql_workload(
    files: Mapping[str, SqlFile],
    name: str,
    folder: Path | None,
    *,
    ddl: Path | None = None,
    logged: Sequence[LoggedDeclaration] = (),
    created: Sequence[SqlFile] = (),
    schedule: JobSchedule | None = None,
    functions: FunctionForms = MappingProxyType({}),
    each: bool = True,
    partial: bool = False,
    whole: bool = True,
    store: ReadingStore | None = None,
) -> Workload:
    """Return the workload of the SQL of some jobs.

    Parameters
    ----------
    files : mapping of str to SqlFile
        SQL of each job.
    name : str
        Name of the workload.
    folder : Path or None
        Folder of the files, for messages.
    ddl : Path, optional
        File with CREATE TABLE statements, in addition to those of the jobs.
    logged : sequence of LoggedDeclaration
        Existing tables.
    created : sequence of SqlFile
        Other SQL, of which only the CREATE TABLE statements count.
    schedule : JobSchedule, optional
        What may overlap.
    functions : mapping of FunctionRecord to (bool, bool)
        Functions of PySpark, each with the form of its job.
    each : bool
        Whether jobs may create tables, and what is wrong with one is left out; otherwise it is an
        error.
    partial : bool
        Whether no statement has to be understood; otherwise that is an error.
    whole : bool
        Whether these are all jobs of the schedule, so that it must not name others.
    store : ReadingStore, optional
        Readings of earlier runs.
    """
    jobs: dict[str, Any] = {}
    spans: dict[str, list[tuple[int, int]]] = {}
    made = "" if ddl is None else read_text(ddl, LitmusError)
    tables = FileTables(store)
    if each:
        tables.add_ddl([*split_statements(made)], Source(str(ddl), made))
    told: list[Assumption] = []
    unread: list[UnreadStatement] = []
    for one in created:
        with suppress(SqlError):
            texts = [*read_job_text(one.source).statements]
            told += tables.take(texts, one.source)
    for job, file in files.items():
        source = file.source
        unread += file.unread(job)
        try:
            found = read_job_text(source)
        except SqlError as error:
            if not each:
                raise
            unread.append(unread_job(job, error, source))
            continue
        statements = [*found.statements]
        spans[job] = [
            span
            for span, sql in zip(found.spans, statements, strict=True)
            if not each or not creates_table(sql)
        ]
        if each:
            told += tables.take(statements, source)
        told += [
            AssumptionKind.NO_EFFECT.says(
                f"{source.label}: '{one_line(sql)}' has no effect on conflicts."
            )
            for sql in found.passed_over
        ]
        if not statements:
            if not each:
                source.refuse(f"{source.label} contains no statement")
            continue
        jobs[job] = {"sql": statements}
        if typed := dict(TYPED.findall(source.text)):
            jobs[job]["parameters"] = typed
        if known := KNOWN.findall(source.text):
            every = " AND ".join(f"({condition})" for condition in known)
            jobs[job]["where"] = known[0] if len(known) == 1 else every
    sources = {job: file.source for job, file in files.items()}
    add_function_jobs(functions, jobs, sources, spans)
    texts = [*split_statements(made), *tables.texts]
    if not texts and not logged:
        raise IsolitmusError("; ".join((_no_table(folder), *map(str, tables.unread))))
    label = Source(name) if ddl is None else Source(ddl.name, made)
    document = Node({"ddl": texts, "jobs": jobs} if texts else {"jobs": jobs}, "", label)
    work = build_workload(
        document, name, sources=sources, logged=logged, spans=spans, schedule=schedule,
        each=each, partial=partial, whole=whole, store=store,
        unread=tables.unread,
    )  # fmt: skip
    told = [*dict.fromkeys(told)]
    with_cells = [
        files[left.job].with_cell(left) if left.job in files else left
        for left in (*work.unread, *unread)
    ]
    return replace(work, left_out=(*work.left_out, *told), unread=tuple(with_cells))


def _job_names(labels: Sequence[str]) -> dict[str, str]:
    """Return the name of the job of each file, with a number for one that another file has."""
    names: dict[str, str] = {}
    own_name_first = sorted(set(labels), key=lambda one: (f"{sql_job_name(one)}.sql" != one, one))
    for label in own_name_first:
        name = sql_job_name(label)
        numbered = (f"{name}_{number}" for number in count(2))
        taken = names.values()
        names[label] = name if name not in taken else next(n for n in numbered if n not in taken)
    return names


def sql_job_name(label: str) -> str:
    """Return the name of the job of a file.

    Examples
    --------
    >>> sql_job_name("daily/load-orders.sql")
    'daily_load_orders'
    """
    plain = label[: -len(".sql")] if label.lower().endswith(".sql") else label
    name = re.sub(r"[^A-Za-z0-9_]+", "_", plain)
    return name if NAME.fullmatch(name) else f"job_{name}"
