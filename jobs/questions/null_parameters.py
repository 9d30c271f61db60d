"""Parameters of jobs that are never NULL, by declarations, by columns, or by invariants.

A parameter may be NULL unless it is declared NOT NULL. Columns that are NOT NULL hold no NULL, so
no commit stores one there. Of a column of which only an invariant says so (a test of dbt, say), it
is assumed that jobs do not store a NULL parameter there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.invariant import GroupLimit
from isolitmus.jobs.questions.table_alterations import table_alterations
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.sql.expression import Call, ColumnRef, IsNull, Parameter
from isolitmus.model.sql.query import Joined, Select, Values
from isolitmus.model.sql.statement import Definition, DropNotNull, Insert, Merge, Update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.jobs.workload import Workload
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.query import Query
    from isolitmus.model.sql.statement import Statement


class StoredParameter(NamedTuple):
    """Parameter that a job stores in a column that has no NULL by an invariant."""

    job: str
    parameter: str
    column: str
    """Table and column."""
    invariant: str


def with_not_null(workload: Workload, *, invariants: bool = True) -> Workload:
    """Return a workload that knows which columns and parameters are never NULL.

    Columns are NOT NULL by the DDL unless a job alters that. With ``invariants``, parameters that
    are stored in a column that has no NULL by an invariant are not NULL.
    """
    altered = {
        table
        for table, some in table_alterations(workload).items()
        if any(
            not isinstance(one, Definition) or isinstance(one.change, DropNotNull) for one in some
        )
    }
    tables = {
        name: replace(one, not_null=frozenset()) if name in altered else one
        for name, one in workload.tables.items()
    }
    more: dict[str, set[str]] = {}
    for one in _stored(workload) if invariants else ():
        more.setdefault(one.job, set()).add(one.parameter)
    jobs = {
        name: replace(job, not_null=job.not_null | more[name]) if name in more else job
        for name, job in workload.jobs.items()
    }
    return replace(workload, tables=tables, jobs=jobs)


def not_null_assumptions(workload: Workload) -> tuple[Assumption, ...]:
    """Return the assumptions that parameters are not NULL because of invariants.

    Examples
    --------
    >>> from isolitmus.jobs.readers.workload_file import read_workload
    >>> jobs = read_workload('''
    ... ddl = "CREATE TABLE t (id INT, day DATE) USING delta"
    ... [jobs.load]
    ... sql = "INSERT INTO t VALUES (1, :day)"
    ... parameters = { day = "DATE" }
    ... [invariants]
    ... known_day = "not null(day)"
    ... ''', "jobs")
    >>> not_null_assumptions(jobs)
    ("load's :day is not NULL: known_day says that t.day, where it is stored, has no NULL.",)
    """
    return tuple(
        AssumptionKind.NOT_NULL.says(
            f"{one.job}'s :{one.parameter} is not NULL: {one.invariant} says that {one.column},"
            " where it is stored, has no NULL."
        )
        for one in dict.fromkeys(_stored(workload))
    )


def _stored(workload: Workload) -> Iterator[StoredParameter]:
    """Yield the parameters that are stored in columns that have no NULL by an invariant."""
    columns: dict[tuple[str, int], str] = {}
    for invariant in workload.invariants:
        match invariant:
            case GroupLimit(most=0, columns=(), where=IsNull(ColumnRef(index=index))):
                columns[invariant.table, index] = invariant.name
    for one in workload.statements if columns else ():
        table = getattr(one.statement, "target", "")
        for index, expression in _values(one.statement):
            name = _parameter(expression)
            job = workload.jobs[one.job]
            if (table, index) not in columns or name is None or name in workload.shared:
                continue
            if name in one.types and name not in {*one.let, *job.not_null}:
                column = f"{table}.{workload.tables[table].columns[index].name}"
                yield StoredParameter(one.job, name, column, columns[table, index])


def _parameter(expression: Expr) -> str | None:
    """Return the parameter whose value an expression is, or None."""
    while isinstance(expression, Call) and expression.function == "cast":
        expression = expression.operands[0]
    return expression.name if isinstance(expression, Parameter) else None


def _values(statement: Statement) -> Iterator[tuple[int, Expr]]:
    """Yield the values that a statement stores, each with the position of its column."""
    match statement:
        case Insert(query=query):
            for row in _rows(query):
                yield from enumerate(row)
        case Update(sets=sets):
            yield from sets
        case Merge(source=source, matched=matched, not_matched=new, by_source=by_source):
            stored = [pair for clause in (*matched, *by_source) for pair in clause.sets]
            stored += [pair for clause in new for pair in enumerate(clause.values)]
            rows = list(_rows(source))
            for index, value in stored:
                yield index, value
                if isinstance(value, ColumnRef) and value.side == 1:
                    yield from ((index, row[value.index]) for row in rows)


def _rows(query: Query) -> Iterator[tuple[Expr, ...]]:
    """Yield the expressions of each row, or of all rows, of a query's branches."""
    for branch in query:
        if isinstance(branch, Values):
            yield from branch.rows
        elif isinstance(branch, Select | Joined):
            yield branch.items
