"""A dbt project as a workload: its tables, the statements of its jobs, and what may overlap."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot import expressions as exp

from isolitmus.jobs.projects.dbt_profile import read_dbt_profile
from isolitmus.jobs.projects.dbt_project import read_dbt_project
from isolitmus.jobs.projects.relation_names import (
    RelationRenaming,
    has_word,
    match_relation,
)
from isolitmus.jobs.readers.job_schedule import JobSchedule, find_job_schedule
from isolitmus.jobs.readers.workload_file import build_workload, workload_tables
from isolitmus.jobs.sql.invariant_text import read_invariants_of
from isolitmus.jobs.sql.job_statements import creates_table
from isolitmus.jobs.sql.selected_rows import selected_rows
from isolitmus.jobs.sql.uninterpreted_sources import kept_tree, written_tables
from isolitmus.jobs.workload import UnreadStatement
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.errors import IsolitmusError, LitmusError, SqlError
from isolitmus.specs.disk.input_files import read_text
from isolitmus.specs.files.table_ddl import read_ddl
from isolitmus.specs.files.table_file import read_table
from isolitmus.specs.files.toml_reader import Node, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.jobs.invariant import Invariant
    from isolitmus.jobs.projects.dbt_manifest import DeclaredInvariant
    from isolitmus.jobs.projects.dbt_project import DbtJob, DbtProject, DbtTable
    from isolitmus.jobs.readers.declared_tables import LoggedDeclaration
    from isolitmus.jobs.readers.reading_cache import ReadingStore
    from isolitmus.jobs.workload import StandIn, Workload
    from isolitmus.model.sql.schema import Column
    from isolitmus.specs.files.table_ddl import TableDeclaration


def read_project_workload(
    manifest: Path,
    folder: Path,
    split: Callable[[str], Iterator[str]],
    ddl: Path | None = None,
    logged: Sequence[LoggedDeclaration] = (),
    *,
    schedule: JobSchedule | None = None,
    store: ReadingStore | None = None,
) -> Workload:
    """Return the workload of a dbt project.

    Parameters
    ----------
    manifest : Path
        Its ``manifest.json``.
    folder : Path
        Its folder. A table ``[schedule]`` is looked for in ``isolitmus.toml`` and
        ``pyproject.toml`` there, then in the current folder.
    split : callable
        Function that yields the statements of a text.
    ddl : Path, optional
        File with CREATE TABLE of tables that dbt does not know, or knows without types.
    logged : sequence of LoggedDeclaration
        Existing tables.
    schedule : JobSchedule, optional
        What may overlap, instead of the table ``[schedule]``.
    store : ReadingStore, optional
        Readings of earlier runs.
    """
    made = "" if ddl is None else read_text(ddl, LitmusError)
    created = {_created_relation(one, str(ddl)): one for one in split(made)}
    declared = {name: read_ddl(one, str(ddl), source=True) for name, one in created.items()}
    declared |= {one.declared.name: one.declared for one in logged}
    project = read_dbt_project(manifest, dict(_declared_columns(declared)))
    given = dict(_with_plain_names(created, project))
    known = (schedule or find_job_schedule(folder, Path())).of("dbt projects")
    profile = read_dbt_profile(folder, known.target)
    told: list[Assumption] = []
    if profile is not None:
        told += profile.assumptions
        if not known.threads:
            known = replace(known, threads=profile.threads, threads_place=profile.place)
        if profile.adapter and profile.adapter != project.adapter:
            told.append(
                AssumptionKind.STATEMENTS.says(
                    f"The manifest is that of dbt-{project.adapter}, but the target"
                    f" {profile.target} of the profile has the type {profile.adapter}."
                )
            )
    work = build_project_workload(project, known, given, logged, folder=folder, store=store)
    return replace(work, left_out=(*work.left_out, *told))


def _created_relation(text: str, label: str) -> str:
    """Return the table that a CREATE TABLE creates, with its schema and catalog."""
    name = read_ddl(text, label, source=True).name
    tree = kept_tree(text)
    table = None if tree is None else tree.find(exp.Table)
    parts = () if table is None else (table.catalog, table.db)
    return ".".join(f"`{part}`" for part in (*parts, name) if part)


def _declared_columns(
    declared: Mapping[str, TableDeclaration],
) -> Iterator[tuple[str, tuple[Column, ...]]]:
    """Yield the columns of declared tables; one that is not understood is refused later."""
    for name, one in declared.items():
        with suppress(LitmusError, SqlError):
            node = Node({"columns": one.table["columns"]}, "", Source(name))
            yield name, read_table(one.name, node).columns


def _with_plain_names(created: Mapping[str, str], project: DbtProject) -> Iterator[tuple[str, str]]:
    """Yield the statements that create tables, with the plain names of the project's tables, by
    these names in lower case.
    """
    names = {table.relation: table.name for table in project.tables}
    for written, text in created.items():
        last = written.split("`")[-2]
        name = match_relation(written, names) or last
        same = name == last or written.count("`") == 2
        yield name.lower(), text if same else RelationRenaming({written: name}).apply(text)


def build_project_workload(
    project: DbtProject,
    schedule: JobSchedule,
    ddl: Mapping[str, str] | None = None,
    logged: Sequence[LoggedDeclaration] = (),
    *,
    folder: Path | None = None,
    store: ReadingStore | None = None,
) -> Workload:
    """Return the workload of a project under a schedule.

    Parameters
    ----------
    project : DbtProject
        The project.
    schedule : JobSchedule
        What may overlap.
    ddl : mapping of str to str, optional
        Statements that create other tables, or tables whose columns the project does not have, by
        name in lower case.
    logged : sequence of LoggedDeclaration
        Existing tables.
    folder : Path, optional
        Folder of the project.
    store : ReadingStore, optional
        Readings of earlier runs.
    """
    jobs = [*project.jobs, *(project.refreshes if schedule.full_refresh else ())]
    read = [job for job in jobs if not job.problem]
    told = [*project.assumptions]
    given = dict(ddl or {})
    own = {*given, *(one.declared.name.lower() for one in logged)}
    texts = [text for job in read for text in (*job.statements, *job.opaque)]
    for table in (*project.tables, *project.staging):
        if table.name.lower() in own or not any(has_word(text, table.name) for text in texts):
            continue
        if not table.columns:
            if not table.written:
                continue
            said = f"The columns of {table.name} are not known; run dbt docs generate."
            told.append(AssumptionKind.NOT_READ.says(said))
        elif (problem := _problem(table)) is not None:
            said = f"The table {table.name} is passed over: {problem}."
            told.append(AssumptionKind.NOT_READ.says(said))
        else:
            given[table.name.lower()] = table.ddl()
    for name, text in _created(project, read):
        if name not in own:
            given.setdefault(name, text)
    upkeep = dict(
        _maintenance(
            project, schedule, [text for job in read for text in job.statements], {*given, *own}
        )
    )
    schedule.check_jobs([*(job.name for job in jobs), *upkeep])
    if not read:
        raise IsolitmusError(_nothing(project, jobs))
    if not given and not logged:
        raise IsolitmusError(
            f"the columns of no table of {project.name} are known; run dbt docs generate, or"
            " declare the columns of the models with data_type"
        )
    document = _Document(project, read, upkeep, schedule, [*given.values()], logged, folder, store)
    work = document.best()
    names = {job.name for job in jobs}
    unread = [_unread(job, project, folder) for job in jobs if job.problem]
    apart = {
        pair for pair in schedule.pairs(_before(project, jobs)) if {*pair} <= names | {*upkeep}
    }
    batched = {
        job.name for job in jobs if job.concurrent and job.name not in schedule.one_at_a_time
    }
    apart -= {(name, name) for name in batched}
    apart |= {(a, b) for a in upkeep for b in upkeep}
    work = replace(work, stand_ins=_with_views(work, project))
    invariants, passed = _invariants(project, work)
    told += passed
    meet = batched & work.jobs.keys() and schedule.whole and "batch_start" not in work.distinct
    return replace(
        work,
        invariants=invariants,
        jobs={name: _with_staged(job, project, name) for name, job in work.jobs.items()},
        apart=work.apart | apart,
        left_out=tuple(_of_views(work.left_out, project)) + tuple(told),
        unread=(*(_of_model(one, project, jobs) for one in work.unread), *unread),
        distinct=(*work.distinct, *(["batch_start"] if meet else [])),
        schedule=str(schedule),
    )


def _with_views(work: Workload, project: DbtProject) -> dict[str, tuple[StandIn, ...]]:
    """Return the tables that stand for sources and views.

    Where a statement has the query of a view, and that is one of rows of a table with their
    columns, the rows stand for the view.
    """
    views = {name.lower() for name in project.views}
    found = {name: {*tables} for name, tables in work.stand_ins.items()}
    for one in work.statements:
        tree = kept_tree(one.sql)
        for named in tree.find_all(exp.CTE) if tree is not None else ():
            name = named.alias.lower()
            rows = selected_rows(named.this, work.tables) if name in views else None
            if rows is not None:
                found.setdefault(name, set()).add(rows)
    return {name: tuple(sorted(tables)) for name, tables in found.items()}


def _invariants(
    project: DbtProject, work: Workload
) -> tuple[tuple[Invariant, ...], list[Assumption]]:
    """Return the invariants that tests of a project state, and what is said of other tests."""
    found: dict[str, Invariant] = {}
    told = []
    known = {name.lower(): name for name in work.tables}
    for one in project.invariants:
        named = project.table_names.get(one.node, one.node.rpartition(".")[2]).lower()
        table = known.get(named, named)
        if table not in known.values() and table not in work.stand_ins:
            continue
        parent = project.table_names.get(one.parent, one.parent.rpartition(".")[2]).lower()
        if one.parent and parent not in known:
            told.append(
                AssumptionKind.NOT_READ.says(
                    f"The test that {table}.{', '.join(one.columns)} refers to {parent} is passed"
                    f" over: no job uses {parent}."
                )
            )
            continue
        text = f"{table}: {_invariant_text(one, known.get(parent, ''))}"
        try:
            every = [
                *read_invariants_of(
                    text, work.tables, (table,), one.place, stand_ins=work.stand_ins
                )
            ]
        except LitmusError as error:
            said = f"The test {text} is passed over: {error}."
            told.append(AssumptionKind.NOT_READ.says(said))
        else:
            for stated in every:
                found.setdefault(stated.query, stated)
    return tuple(found.values()), told


def _invariant_text(one: DeclaredInvariant, parent: str) -> str:
    """Return what a test says of its table, as an invariant without the table."""
    columns = ", ".join(one.columns)
    where = "" if one.where is None else f" where {one.where}"
    null = " OR ".join(f"{each} IS NULL" for each in one.columns)
    match one.kind:
        case "unique" if where:
            return f"count per {columns} <= 1 where ({one.where}) AND NOT ({null})"
        case "not null" if where:
            return f"count < 1 where ({one.where}) AND ({null})"
        case "values":
            accepted = f"{columns} IN ({', '.join(one.values)})"
            if where:
                return f"count < 1 where ({one.where}) AND NOT ({accepted})"
            return f"check({accepted})"
        case "references":
            return f"{columns} references {parent}({one.key}){where}"
    return f"{one.kind}({columns})"


def _created(project: DbtProject, jobs: Sequence[DbtJob]) -> Iterator[tuple[str, str]]:
    """Yield the tables that statements of jobs create with their columns, such as hooks, by name in
    lower case.
    """
    known = {table.name.lower() for table in project.tables}
    for job in jobs:
        for text in filter(creates_table, job.statements):
            with suppress(LitmusError, SqlError):
                name = read_ddl(text, job.place, source=True).name.lower()
                workload_tables(Node({"ddl": text}, "", Source(job.place)), ())
                if name not in known:
                    yield name, text


class _Document(NamedTuple):
    """Parts of a workload's document."""

    project: DbtProject
    jobs: Sequence[DbtJob]
    upkeep: Mapping[str, str]
    schedule: JobSchedule
    ddl: list[str]
    logged: Sequence[LoggedDeclaration]
    folder: Path | None
    store: ReadingStore | None

    def best(self) -> Workload:
        """Return the workload in which the most statements are understood.

        First the queries of views are part of the statements. Where a statement is not understood,
        its views are tables of any rows, if that helps.
        """
        every = frozenset(job.name for job in self.jobs if job.opaque)
        try:
            work = self.build(frozenset())
        except (LitmusError, SqlError):
            if not every:
                raise
            return self.build(every)
        failed = Counter(one.job for one in work.unread)
        if not (tried := every & failed.keys()):
            return work
        other = self.build(tried)
        left = Counter(one.job for one in other.unread)
        better = frozenset(name for name in tried if left[name] < failed[name])
        return other if better == tried else self.build(better) if better else work

    def build(self, opaque: frozenset[str]) -> Workload:
        """Return the workload; the jobs in ``opaque`` read views as tables of any rows."""
        found: dict[str, Any] = {}
        sources: dict[str, Source] = {}
        for job in self.jobs:
            statements = job.opaque if job.name in opaque else job.statements
            one: dict[str, Any] = {"sql": list(statements)}
            if job.where:
                one["where"] = job.where
            if job.parameters:
                one["parameters"] = dict(job.parameters)
            found[job.name] = one
            sources[job.name] = _source(job, self.folder)
        for name, statement in self.upkeep.items():
            found[name] = {"sql": [statement]}
            sources[name] = Source(self.schedule.place.partition(":")[0] or "maintenance")
        name = self.project.name
        whole = {"title": name, "jobs": found} | ({"ddl": self.ddl} if self.ddl else {})
        stated = JobSchedule(place=self.schedule.place, node=self.schedule.node)
        return build_workload(
            Node(whole, "", Source(name)), name, sources=sources, logged=self.logged,
            schedule=stated, each=True, store=self.store, hints=self.project.hints,
            relations={table.name: table.relation for table in self.project.tables},
            views=self.project.views,
        )  # fmt: skip


def _maintenance(
    project: DbtProject, schedule: JobSchedule, texts: Sequence[str], known: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield the statements of maintenance, by the names of their jobs."""
    if schedule.maintenance is True:
        written = written_tables(texts)
        for table in project.tables:
            name = table.name.lower()
            if name in written and name in known:
                yield f"optimize_{table.name}", f"OPTIMIZE {table.name}"
    elif schedule.maintenance:
        for number, statement in enumerate(schedule.maintenance, 1):
            yield f"maintenance_{number}", statement


def _before(project: DbtProject, jobs: Sequence[DbtJob]) -> dict[str, frozenset[str]]:
    """Return the jobs that an invocation runs before each job, also those of full refreshes."""
    same = {job.node: job.name for job in project.jobs if job.node is not None}
    refreshed = {
        same[job.node]: job.name for job in jobs if job.node in same and job.name != same[job.node]
    }
    found: dict[str, frozenset[str]] = {}
    for job in jobs:
        plain = job.name if job.name in project.before else same.get(job.node or "", job.name)
        first = project.before.get(plain, frozenset())
        found[job.name] = first | {refreshed[one] for one in first if one in refreshed}
        if job.name != plain:
            found[job.name] |= {plain}
    return found


def _problem(table: DbtTable) -> str | None:
    """Return why the declaration of a table is not understood, or None."""
    try:
        workload_tables(Node({"ddl": table.ddl()}, "", Source(table.name)), ())
    except (LitmusError, SqlError) as error:
        return str(error).partition("\n")[0].partition(": ")[2]
    return None


def _source(job: DbtJob, folder: Path | None) -> Source:
    """Return the file of a job."""
    return Source(job.place, job.text, None if folder is None else folder / job.place)


def _unread(job: DbtJob, project: DbtProject, folder: Path | None) -> UnreadStatement:
    """Return a job whose statements are not known."""
    name = project.table_names.get(job.node or "")
    hooks = "hook" in job.problem or name is None
    tables = None if hooks or name is None else frozenset({name.lower()})
    return UnreadStatement(
        job.name,
        job.name,
        job.problem,
        job.place,
        tables,
        _source(job, folder).span(0, 0),
    )


def _of_model(one: UnreadStatement, project: DbtProject, jobs: Sequence[DbtJob]) -> UnreadStatement:
    """Return a statement that is not understood, with the reason why the table of a model that it
    names is not known.
    """
    named = re.match(r"unknown table '(\w+)'", one.problem)
    table = next((t for t in project.tables if named and t.name.lower() == named[1].lower()), None)
    if named is None or table is None:
        return one
    own = next((job for job in jobs if job.node == table.node), None)
    model = table.node.rpartition(".")[2]
    if own is not None and own.name != one.job and own.problem:
        why = f"{own.place}: {own.problem}"
    elif table.columns:
        why = _problem(table) or "its declaration is not understood"
    else:
        why = "its columns are not known; run dbt docs generate, or declare all with data_type"
    problem = f"the table {table.name} of the model {model} is not known, because {why}"
    return replace(one, problem=problem)


def _with_staged(job: Any, project: DbtProject, name: str) -> Any:
    """Return the job of a snapshot with its table among those that it reads."""
    made = next((one for one in project.jobs if one.name == name and one.staged), None)
    if made is None or made.staged is None:
        return job
    staging, table = made.staged
    statements = tuple(
        replace(one, reads=(*one.reads, table)) if has_word(one.sql, staging) else one
        for one in job.statements
    )
    return replace(job, statements=statements)


def _of_views(assumptions: Sequence[Assumption], project: DbtProject) -> Iterator[Assumption]:
    """Yield assumptions, and say of a view that it is one."""
    for one in assumptions:
        found = re.match(r"(\w+) has no DDL\. It is no view of a declared table, and ", one)
        if found is not None and found[1] in project.views:
            yield AssumptionKind.ANY_VALUE.says(f"The view {found[1]} {one[found.end() :]}")
        else:
            yield one
    for job in project.jobs:
        if job.staged is not None and not job.problem:
            yield AssumptionKind.ANY_VALUE.says(
                f"{job.staged[0]} stands for the rows that {job.name} compares with its table: they"
                " may be any rows, others in each run."
            )


def _nothing(project: DbtProject, jobs: Sequence[DbtJob]) -> str:
    if not jobs:
        return f"{project.name} has no model or snapshot that writes to a table"
    first = jobs[0]
    return f"no job of {project.name} is understood; {first.place}: {first.problem}"
