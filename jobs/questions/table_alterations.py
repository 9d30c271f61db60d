"""Statements of jobs that alter a table: those that can commit, and those that cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.jobs.workload import UnreadStatement
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.statement import Definition, Replace, Restore

if TYPE_CHECKING:
    from isolitmus.jobs.workload import JobStatement, Workload
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement


def altering_statements(workload: Workload) -> tuple[JobStatement, ...]:
    """Return the statements of a workload that alter a table.

    Examples
    --------
    >>> from isolitmus.jobs.readers.workload_sources import as_workload
    >>> altering_statements(as_workload("shop"))
    ()
    """
    return tuple(
        one
        for one in workload.statements
        if isinstance(one.statement, Definition | Replace | Restore)
    )


def table_alterations(workload: Workload) -> dict[str, tuple[Statement, ...]]:
    """Return the statements that alter each table of a workload; equal ones once.

    Examples
    --------
    >>> from isolitmus.jobs.readers.workload_sources import as_workload
    >>> table_alterations(as_workload("shop"))
    {}
    """
    found: dict[str, list[Statement]] = {}
    for one in altering_statements(workload):
        statement = one.statement
        assert isinstance(statement, Definition | Replace | Restore)
        known = found.setdefault(statement.target, [])
        if statement not in known:
            known.append(statement)
    return {table: tuple(some) for table, some in found.items()}


def leave_out_failing(workload: Workload) -> Workload:
    """Return a workload with altering statements that cannot commit, or are not modelled, left out.

    They are listed as not understood, with the reason.

    Raises
    ------
    LitmusError
        If no statement is left.

    Examples
    --------
    >>> from isolitmus.jobs.readers.workload_file import read_workload
    >>> work = leave_out_failing(read_workload('''
    ... ddl = "CREATE TABLE t (id INT) USING delta"
    ... [jobs]
    ... append = "INSERT INTO t VALUES (1)"
    ... alter = "ALTER TABLE t DROP CONSTRAINT few"
    ... ''', "jobs"))
    >>> [str(one) for one in work.unread]
    ['alter (jobs.toml:5): always fails with DeltaAnalysisException (no constraint few)']
    """
    refused: dict[str, str] = {}
    for table, statements in table_alterations(workload).items():
        why = _refused(workload.tables[table], statements)
        for one in altering_statements(workload):
            for statement, problem in why:
                if one.statement == statement:
                    refused[one.name] = problem
    if not refused:
        return workload
    unread = [
        UnreadStatement(
            one.name,
            one.job,
            refused[one.name],
            workload.jobs[one.job].place,
            frozenset((one.statement.target.lower(),)),  # type: ignore[union-attr]
            one.location,
            one.sql,
        )
        for one in workload.statements
        if one.name in refused
    ]
    jobs = {
        name: replace(job, statements=left)
        for name, job in workload.jobs.items()
        if (left := tuple(one for one in job.statements if one.name not in refused))
    }
    if not jobs:
        raise LitmusError(str(unread[0]))
    return replace(workload, jobs=jobs, unread=(*workload.unread, *unread))


def _refused(schema: Schema, statements: tuple[Statement, ...]) -> list[tuple[Statement, str]]:
    """Return the statements that no job can execute on a table, each with the reason."""
    from isolitmus.jobs.templates.header_states import alteration_problem, header_states

    found: list[tuple[Statement, str]] = []
    modelled: list[Statement] = []
    for one in statements:
        try:
            header_states(schema, (one,))
        except LitmusError as error:
            found.append((one, str(error)))
        else:
            modelled.append(one)
    try:
        states = header_states(schema, tuple(modelled))
    except LitmusError as error:
        return [*found, *((one, str(error)) for one in modelled)]
    for one in modelled:
        changes = states.changes(one)
        if changes is not None and not any(changes):
            found.append((one, f"always fails with {alteration_problem(schema, one)}"))
    return found
