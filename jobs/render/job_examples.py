"""Examples on the pages of jobs: a timeline, and the user's SQL beside the SQL that was executed.

An example is a small litmus test. Its transactions are statements of the workload with literals in
place of parameters. The literals are found by comparing both texts, so that any litmus test that
was made from a workload can be shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.render.run_panels import ShownTable, at_every_version
from isolitmus.checker.render.timeline import timeline_svg
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol
from isolitmus.specs.sql.parameters import any_version, bound_literals, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.jobs.workload import JobStatement, Workload
    from isolitmus.model.litmus import Litmus

AGAIN = r"(?:_2|_run\d+)?"
"""End of the name of a transaction that is another run of a statement."""


@dataclass(frozen=True, slots=True)
class ExampleTransaction:
    """Transaction of an example beside the statement that it was made from."""

    name: str
    """Name in the example."""
    statement: str
    """Name of the statement; empty if the transaction was made from none."""
    place: str
    """File, line and column of the statement; empty if it is in no file."""
    written: tuple[str, ...]
    """SQL as the user wrote it, each text in one line: the queries of ``let``, then the statement.
    """
    executed: tuple[str, ...]
    """SQL that was executed, in the same order."""
    values: tuple[str, ...]
    """Parameters with their literals, such as ``:day = DATE '2026-01-01'``."""


@dataclass(frozen=True, slots=True)
class JobExample:
    """Executed example: picture, tables at the start, transactions, litmus file."""

    picture: str
    """Timeline as SVG, without a style of its own."""
    tables: tuple[ShownTable, ...]
    """Tables at the start that are not empty."""
    init: tuple[str, ...]
    """Statements that made them."""
    transactions: tuple[ExampleTransaction, ...]
    text: str
    """Litmus file."""
    is_one_table: bool = True
    """True if the example has one table."""


def job_example(test: Litmus, protocol: str, workload: Workload) -> JobExample:
    """Return an example of a workload's jobs, with the outcomes under a protocol.

    Parameters
    ----------
    test : Litmus
        Test whose transactions were made from statements of the workload.
    protocol : str
        Name of the commit protocol.
    workload : Workload
        The jobs as the user wrote them.

    Examples
    --------
    >>> from isolitmus.jobs.predict.prediction import predict_workload
    >>> found = predict_workload("shop", "delta-serializable")
    >>> meeting = next(one for one in found.meetings if one.examples)
    >>> test = meeting.examples["ConcurrentAppendException"]
    >>> shown = job_example(test, found.protocol, found.workload)
    >>> upsert, ingest = shown.transactions
    >>> ingest.written, ingest.values[0]
    (('INSERT INTO orders VALUES (:id, :customer, :amount, :day)',), ':id = 1')
    """
    tables: tuple[ShownTable, ...] = ()
    done = None
    try:
        judged = run(test, named_protocol(protocol))
        done = judged.run
        first = next(at_every_version(test, done, judged.executor), ())
        tables = tuple(one for one in first if one.rows)
    except IsolitmusError:
        pass
    return JobExample(
        timeline_svg(test.schedule, done, "page"),
        tables,
        tuple(one.sql for one in test.init),
        tuple(_transaction(test, name, workload) for name in test.transactions),
        str(test),
        len(test.tables) == 1,
    )


def _transaction(test: Litmus, name: str, workload: Workload) -> ExampleTransaction:
    """Return a transaction beside its statement."""
    queries = test.client(name).let
    statement = test.transactions[name].sql
    executed = (*(_set_by(each, query.sql) for each, query in queries.items()), statement)
    named: JobStatement | None = None
    for one in _statements_named(name, workload):
        values = bound_literals(one_line(one.sql), statement, one.types)
        if values is None or one.let.keys() != queries.keys():
            named = named or one
            continue
        for each, query in one.let.items():
            values |= bound_literals(query.sql, queries[each].sql) or {}
        return _beside(name, one, executed, values)
    if named is None:
        return ExampleTransaction(name, "", "", (), executed, ())
    return _beside(name, named, executed, {})


def _statements_named(name: str, workload: Workload) -> Iterator[JobStatement]:
    """Yield the statements of which a transaction may be a run, by its name."""
    every = workload.statements
    yield from (one for one in every if one.name == name)
    for one in every:
        if one.name != name and re.fullmatch(re.escape(one.name) + AGAIN, name):
            yield one


def _beside(
    name: str, one: JobStatement, executed: tuple[str, ...], values: dict[str, str]
) -> ExampleTransaction:
    queries = (_set_by(each, query.sql) for each, query in one.let.items())
    written = (*queries, any_version(one_line(one.sql)))
    place = "" if one.location is None or one.location.path is None else str(one.location)
    shown = (
        f"{f':{parameter}' if parameter.isidentifier() else parameter} = {value}"
        for parameter, value in values.items()
    )
    return ExampleTransaction(name, one.name, place, written, executed, tuple(shown))


def _set_by(parameter: str, query: str) -> str:
    """Return the query that sets a parameter."""
    return f":{parameter} from {query}"


def short_exception(name: str) -> str:
    """Return the name of an exception without its ending.

    Examples
    --------
    >>> short_exception("ConcurrentAppendException"), short_exception("SerializationFailure")
    ('ConcurrentAppend', 'SerializationFailure')
    """
    return name.removesuffix("Exception")
