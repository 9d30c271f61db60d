"""Binding of statement parameters to values that a client has read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.sql.statement import Read
from isolitmus.model.sql.types import EvaluationError
from isolitmus.model.sql.values import literal
from isolitmus.specs.sql.configuration import with_overwrite_mode
from isolitmus.specs.sql.parameters import bind_text, one_line
from isolitmus.specs.sql.statements import resolve, resolve_again, syntax_of
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Rows, Value
    from isolitmus.model.workload import JobStatement

__all__ = ["TooManyRows", "bind_job_statement", "bind_parameters", "scalar_value"]


class TooManyRows(EvaluationError):
    """Query for a parameter that returns more than one row."""

    def __init__(self, sql: str, rows: int) -> None:
        super().__init__(type(self).__name__, f"'{sql}' gives {rows} rows; expected one value")


def scalar_value(sql: str, rows: Rows) -> Value:
    """Return the value of a query with one column: NULL without rows; TooManyRows for several rows.

    Examples
    --------
    >>> scalar_value("SELECT x FROM t", ((5,),)), scalar_value("SELECT x FROM t", ())
    (5, None)
    """
    if len(rows) > 1:
        raise TooManyRows(sql, len(rows))
    return rows[0][0] if rows else None


def bind_parameters(statement: Statement, values: Mapping[str, Value]) -> Statement:
    """Return the statement with values for its parameters; options of its client are kept.

    Raises
    ------
    SqlError
        If the statement is not modelled with these values.
    """
    if not values or isinstance(statement, Raw) or statement.origin is None:
        return statement
    named = ", ".join(f"{name} = {literal(value)}" for name, value in values.items())
    syntax = replace(syntax_of(statement).bound(values), label=f"'{statement.sql}' with {named}")
    return resolve_again(statement, syntax, statement.origin.tables)


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
    >>> from isolitmus.specs.files.workload_file import read_workload
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
