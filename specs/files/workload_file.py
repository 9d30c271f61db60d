"""Read workload files (TOML): tables by their DDL, jobs by name, what is known of their parameters.

Everything that a user can get wrong is one sentence with the file, the line, the value and what would have
been right; errors in SQL point into the statement. The format is that of docs/jobs.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import NoLitmusTest, near
from isolitmus.model.workload import Job, Workload
from isolitmus.specs.files.job_reader import JobReader, types_in
from isolitmus.specs.files.toml_reader import Node, Source, shown
from isolitmus.specs.files.workload_tables import tables_of
from isolitmus.specs.sql.uninterpreted_sources import written_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.model.sql.types import Type
    from isolitmus.specs.files.logged_tables import LoggedDeclaration

__all__ = ["read_workload", "workload_of"]

KNOWN = ("title", "ddl", "table", "tables", "shared", "distinct", "jobs", "level")


def read_workload(
    text: str, name: str, path: Path | None = None, logged: Sequence[LoggedDeclaration] = ()
) -> Workload:
    """The workload that a file holds; LitmusError or SqlError for what is wrong with it. ``logged``: tables
    that are there, which the file need not declare.

    >>> found = read_workload('''
    ... ddl = "CREATE TABLE t (id INT, day DATE) USING delta PARTITIONED BY (day)"
    ... [jobs.cleanup]
    ... sql = "DELETE FROM t WHERE day = :day"
    ... parameters = { day = "DATE" }
    ... where = "day < '2026-01-01'"
    ... ''', "w")
    >>> found.jobs["cleanup"].parameters, str(found.jobs["cleanup"].where)
    ({'day': 'DATE'}, "day < DATE '2026-01-01'")
    """
    label = path.name if path is not None else f"{name}.toml"
    return workload_of(Source(label, text).node(), name, path, logged=logged)


def workload_of(
    document: Node,
    name: str,
    path: Path | None = None,
    sources: Mapping[str, Source] | None = None,
    logged: Sequence[LoggedDeclaration] = (),
) -> Workload:
    """The workload that a document is; ``sources``: the files of jobs that have one each; ``logged``: tables
    that are there.
    """
    if "jobs" not in document:
        raise NoLitmusTest(f"{document.source.label}: this is no workload: it has no [jobs.NAME]")
    document.keys(KNOWN)
    schemas, level, formats, left_out = tables_of(document, logged)
    shared = types_in(document.at("shared", document.get("shared", dict, {})))
    besides = (
        f"give the others, too, or this one by its name in SQL: --table NAME={logged[0].folder}"
        if logged
        else "the DDL needs a CREATE TABLE of sources as well"
    )
    given = document.inner("jobs", most=100)
    schemas = dict(schemas)
    reader = JobReader(schemas, shared, formats, besides, written_tables(list(_texts(given.value))))
    jobs: dict[str, Job] = {}
    if not given.value:
        document.refuse('jobs is empty; write [jobs.NAME] with sql = "…"')
    for job, node in given.items():
        if sources is not None:
            node = Node(node.value, node.path, sources[job])  # noqa: PLW2901 - the same job
        jobs[job] = reader.job(job, node)
    _refuse_one_name(jobs, given)
    title = document.get("title", str, name)
    return Workload(
        name, title, schemas, jobs, shared, _apart(given, jobs), formats,
        _distinct(document, jobs, shared), (*left_out, *map(str, reader.instead)), level, document.source.text, path,
    )  # fmt: skip


def _texts(jobs: Mapping[str, Any]) -> Iterator[str]:
    """All texts of all jobs, as far as they are texts."""
    for job in jobs.values():
        sql = job.get("sql") if isinstance(job, dict) else job
        yield from (
            text for text in (sql if isinstance(sql, list) else [sql]) if isinstance(text, str)
        )


def _refuse_one_name(jobs: Mapping[str, Job], given: Node) -> None:
    """Refuse a job that is called like a statement of another one."""
    homes: dict[str, str] = {}
    for job in jobs.values():
        for one in job.statements:
            other = homes.setdefault(one.name, job.name)
            if other != job.name:
                given.refuse(
                    f"jobs.{job.name}: the statement {one.name} of job {other} has that name, too",
                    f"jobs.{job.name}",
                )


def _distinct(
    document: Node, jobs: Mapping[str, Job], shared: Mapping[str, Type]
) -> tuple[str, ...]:
    """The parameters of which no two runs that overlap have the same value."""
    for name in (found := document.strings("distinct")):
        types = {job.parameters[name]: job for job in jobs.values() if name in job.parameters}
        if name in shared:
            document.refuse(f"distinct names '{name}', which is shared: one value for all runs")
        if not types:
            known = [p for job in jobs.values() for p in job.parameters if p not in shared]
            document.refuse(f"distinct names '{name}', which no job has{near(name, known)}")
        if len(types) > 1:
            said = ", ".join(f"{type_} in {job.name}" for type_, job in types.items())
            document.refuse(f"distinct names '{name}', which has several types: {said}")
    return found


def _apart(given: Node, jobs: Mapping[str, Job]) -> frozenset[tuple[str, str]]:
    """Which jobs never overlap: those with ``alone`` themselves, those that run after each other both."""
    found: set[tuple[str, str]] = set()
    after: dict[str, set[str]] = {}
    for name, node in given.items():
        if not isinstance(node.value, dict):
            continue
        if node.get("alone", bool, default=False):
            found.add((name, name))
        said = node.value.get("after", [])
        first = [said] if isinstance(said, str) else said
        if not isinstance(first, list) or not all(isinstance(job, str) for job in first):
            node.refuse(
                f"{node}.after is {shown(said)}; the name of a job, or a list of them, is wanted"
            )
        for job in first:
            if job not in jobs:
                node.refuse(f"{node}.after names no job: '{job}'{near(job, jobs)}")
        after[name] = set(first)
    before = {name: set(first) for name, first in after.items()}
    for _ in before:  # all that come before, also by way of others
        before = {n: f.union(*(before.get(x, set()) for x in f)) for n, f in before.items()}
    for name, first in before.items():
        if name in first:
            around = sorted(x for x in first if name in before.get(x, set()))
            given.refuse(
                f"jobs.{name}.after: {' and '.join(around)} would each have to run after the other;"
                " leave one 'after' out",
                f"jobs.{name}.after",
            )
        for other in first:
            found |= {(name, other), (other, name), (name, name), (other, other)}
    return frozenset(found)
