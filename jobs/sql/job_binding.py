"""Binding of the parameters of a job's statement to values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.sql.statement import Read
from isolitmus.specs.sql.configuration import with_overwrite_mode
from isolitmus.specs.sql.parameters import bind_text, one_line
from isolitmus.specs.sql.statements import resolve
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.jobs.workload import JobStatement
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Value


def bind_job_statement(
    one: JobStatement,
    values: Mapping[str, Value],
    tables: Mapping[str, Schema],
    read: Callable[[str], Statement],
) -> tuple[Statement, dict[str, Read]]:
    """Return a job's statement with values, and the queries of its remaining parameters.

    Parameters
    ----------
    one : JobStatement
        Statement of a job.
    values : mapping of str to Value
        Values of parameters; those that a query of the client sets stay parameters.
    tables : mapping of str to Schema
        Schemas of the tables.
    read : callable
        Parser of a text without parameters.

    Examples
    --------
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> from isolitmus.jobs.readers.workload_file import read_workload
    >>> work = read_workload('''
    ... ddl = "CREATE TABLE t (id INT, day INT) USING delta"
    ... [jobs.append]
    ... sql = "INSERT INTO t VALUES (:seen, :day)"
    ... let = { seen = "SELECT count(*) FROM t WHERE day = :day" }
    ... parameters = { day = "INT" }
    ... ''', "jobs")
    >>> read = lambda sql: read_statement(sql, work.tables)
    >>> statement, queries = bind_job_statement(work.statements[0], {"day": 7}, work.tables, read)
    >>> statement.sql, queries["seen"].sql
    ('INSERT INTO t VALUES (:seen, 7)', 'SELECT count(*) FROM t WHERE day = 7')
    """
    given = {name: value for name, value in values.items() if name not in one.let}
    sql = bind_text(one_line(one.sql), given, one.types)
    if not one.let:
        return with_overwrite_mode(read(sql), one.conf), {}
    queries: dict[str, Read] = {}
    for parameter, query in one.let.items():
        found = read(bind_text(query.sql, given))
        assert isinstance(found, Read)
        queries[parameter] = found
    syntax = Syntax(sql).typed({p: one.types[p] for p in one.let}, opaque=True)
    return with_overwrite_mode(resolve(syntax, tables), one.conf), queries
