"""Reader of litmus tests on tables: tables, transactions and schedule, and their combinations.

Every mistake of a user is one LitmusError with the file, the key and the correct form; SQL errors
point into the statement. The format is that of docs/interface.md, 2. The clock of a file, ``clock =
"2026-01-02 10:00:00"``, is the value of ``current_date()`` in all its statements.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from isolitmus.model.display import count_of
from isolitmus.model.errors import LitmusError, UndeterminedError
from isolitmus.model.litmus import CacheTable, ClientSettings, Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.sql.statement import Block, Read, untracked_queries
from isolitmus.model.sql.types import EvaluationError
from isolitmus.model.sql.values import cast_value
from isolitmus.specs.files.expectations import Expected, read_expectations
from isolitmus.specs.files.raw_file import read_raw_table
from isolitmus.specs.files.table_file import read_table, read_tables
from isolitmus.specs.files.toml_reader import DELTA, read_head, show_value
from isolitmus.specs.files.transaction_file import (
    apply_session_confs,
    read_format,
    read_sequences,
    read_transactions,
)
from isolitmus.specs.sql.parameters import CLOCKS, bind_text
from isolitmus.specs.sql.statements import tables_named
from isolitmus.specs.sql.unsupported_pairs import features_of, refuse_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import NoReturn

    from isolitmus.model.format import Format
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Value
    from isolitmus.specs.files.schema_versions import Tables
    from isolitmus.specs.files.toml_reader import Node
    from isolitmus.specs.sql.unsupported_pairs import Feature

STATED = ("table", "tables", "transactions", "postconditions")
"""Keys that contain statements."""


def set_clock(document: Node) -> Node:
    r"""Return the document with ``current_date()`` and ``current_timestamp()`` replaced by its
    clock.

    Examples
    --------
    >>> from isolitmus.specs.files.toml_reader import Source
    >>> text = '''clock = "2026-01-02 10:00:00"
    ... [transactions]
    ... a = "DELETE FROM t WHERE day < current_date()"'''
    >>> set_clock(Source("f.toml", text).node()).value["transactions"]
    {'a': "DELETE FROM t WHERE day < DATE '2026-01-02'"}
    """
    if "clock" not in document:
        return document
    now = _moment(document)
    values = dict(zip(CLOCKS, (now.date(), now), strict=True))
    return replace(
        document,
        value={k: _said(v, values) if k in STATED else v for k, v in document.value.items()},
    )


def _moment(document: Node) -> datetime:
    """Return the time in `clock`; refuse a value that is no time without a time zone."""
    given = document.value["clock"]
    if isinstance(given, date) and getattr(given, "tzinfo", None) is None:
        given = given.isoformat()
    with suppress(EvaluationError, UndeterminedError):
        found = cast_value(given, "TIMESTAMP") if isinstance(given, str) else None
        if isinstance(found, datetime):
            return found
    document.refuse(
        f"clock is {show_value(given)}; expected a time without a zone, '2026-01-02 10:00:00'"
    )


def _said(value: Any, values: Mapping[str, Value]) -> Any:
    """Return a TOML value with the clock functions in its strings replaced by values."""
    match value:
        case str():
            return bind_text(value, values)
        case list():
            return [_said(one, values) for one in value]
        case dict():
            return {key: _said(one, values) for key, one in value.items()}
    return value


CACHES: frozenset[Feature] = frozenset({"CACHE TABLE"})
OTHER: frozenset[Feature] = frozenset({"a statement other than CONVERT TO DELTA"})
ABSENT: frozenset[Feature] = frozenset({"a table that is not there at the start"})
"""Feature that a transaction has because of another part of its test."""


def build_litmus(document: Node, name: str, path: Path | None = None) -> Litmus:
    """Return the test on tables in a document."""
    known = (
        "title", "source", "tags", "format", "clock", "schedule", "table", "tables",
        "transactions", "expect", "postconditions",
    )  # fmt: skip
    document.keys(known)
    document = set_clock(document)
    form = read_format(document)
    title, source, tags = read_head(document)
    of_delta = form.log == DELTA
    read = read_raw_table if of_delta else partial(read_table, indexed=form.steps)
    schemas, inits = read_tables(document, read, form.statement)
    if len(inits) != 1:
        document.refuse("table.init is a list of lists; a litmus test has one initial table")
    reached: tuple[Tables, ...] = (schemas,)
    if of_delta:
        transactions, clients, reached = read_transactions(document, schemas)
        schedule = _schedule(document, transactions, clients)
        _refuse_unconverted(document, transactions, clients, schemas)
        _refuse_steps(document, schedule, transactions, clients, schemas)
        _refuse_commits(document, schedule, clients)
        transactions = apply_session_confs(transactions, clients, schedule, document)
        _refuse_versions(document, inits[0], transactions, clients)
        _refuse_caches(document, transactions, clients)
    else:
        transactions, clients = read_sequences(document, schemas, form)
        schedule = _schedule(document, transactions, clients, scans=form.steps)
        for step in schedule.steps:
            found = features_of(step=step) | {"a format other than Delta's"}
            refuse_together(found, _of_schedule(document), f"schedule step '{step}'")
    postconditions = _postconditions(document, form)
    expect = read_expectations(
        document.inner("expect", {}),
        Expected(transactions, (schemas, *reached[1:]), path, postconditions),
    )
    return Litmus(
        name, title, source, schemas, inits[0], transactions, schedule, expect, tags,
        document.source.text, path, clients, postconditions, format=form.name,
    )  # fmt: skip


def _postconditions(document: Node, form: Format) -> dict[str, str]:
    """Return the queries that must return no row at the end, by name."""
    given = document.inner("postconditions", {})
    if given.value and not form.steps:
        document.refuse(
            "postconditions are of a format whose statements are scans, and this is of format"
            f" {form.name}"
        )
    return {name: given.get(name, str) for name in given.value}


def _schedule(
    document: Node,
    transactions: Mapping[str, Statement],
    clients: Mapping[str, ClientSettings],
    *,
    scans: bool = False,
) -> Schedule:
    """Return the schedule of a test, checked against its transactions and sessions."""
    sessions = {name: c.session for name, c in clients.items() if c.session is not None}
    sequences = {
        name: len(block.statements)
        for name, block in transactions.items()
        if isinstance(block, Block)
    }
    words = document.get("schedule", str)
    try:
        return Schedule.parse(words, transactions, sessions, sequences, scans=scans)
    except LitmusError as error:
        document.refuse(str(error), "schedule")


def _refuse_unconverted(
    document: Node,
    transactions: Mapping[str, Statement],
    clients: Mapping[str, ClientSettings],
    schemas: Mapping[str, Schema],
) -> None:
    """Refuse any operation on a Parquet table except its conversion."""
    found = [(name, features_of(s) & OTHER, tables_named(s)) for name, s in transactions.items()]
    for name, client in clients.items():
        caches = [aside.table for aside in client.before if isinstance(aside, CacheTable)]
        found += [(name, OTHER, frozenset(map(str.lower, caches)))]
        found += [(name, OTHER, tables_named(query)) for query in client.let.values()]
    for schema in schemas.values():
        for name, has, names in found:
            if schema.name.lower() in names:
                both = has | features_of(schema=schema)
                refuse_together(both, document.refuse, f"transactions.{name}", table=schema.name)


def _refuse_versions(
    document: Node,
    init: tuple[Statement, ...],
    transactions: Mapping[str, Statement],
    clients: Mapping[str, ClientSettings],
) -> None:
    """Refuse VERSION AS OF {init[n]} if the table has no such version."""
    for statement in init:
        if any(select.version is not None for select in untracked_queries(statement)):
            found = features_of(statement) | {"an init statement"}
            refuse_together(found, document.refuse, f"'{statement.sql}'")
    read = [(name, statement) for name, statement in transactions.items()]
    read += [(name, query) for name, c in clients.items() for query in c.let.values()]
    for name, statement in read:
        for select in untracked_queries(statement):
            table, number = select.table, select.version
            if number is None:
                continue
            if number > len(init):
                document.refuse(
                    f"transactions.{name}: unknown init statement {{init[{number}]}}; the table"
                    f" has {count_of(len(init), 'init statement')}"
                )
            written = init[number - 1]
            if isinstance(written, Read) or written.target != table:
                document.refuse(
                    f"transactions.{name}: {{init[{number}]}} is not a version of {table};"
                    f" that init statement is '{written.sql}'"
                )


def _refuse_caches(
    document: Node, transactions: Mapping[str, Statement], clients: Mapping[str, ClientSettings]
) -> None:
    """Refuse a cache with statements that do not refresh it: it lacks the newest version of its
    table.
    """
    caches = (
        frozenset().union(*(features_of(client=client) for client in clients.values())) & CACHES
    )
    for name, statement in transactions.items():
        found = features_of(statement) | caches
        refuse_together(found, document.refuse, f"transactions.{name}", sql=statement.sql)


def _refuse_steps(
    document: Node,
    schedule: Schedule,
    transactions: Mapping[str, Statement],
    clients: Mapping[str, ClientSettings],
    schemas: Mapping[str, Schema],
) -> None:
    """Refuse steps that a transaction cannot take."""
    unmade = next((name for name, schema in schemas.items() if not schema.exists), None)
    for step in schedule.steps:
        name, statement = step.transaction, transactions[step.transaction]
        if step.action == "before" and not (name in clients and clients[name].asks):
            document.refuse(
                f"schedule step '{step}': {name} has neither 'before' nor 'let'", "schedule"
            )
        found = features_of(statement, step=step) | (ABSENT if unmade else frozenset())
        at = f"schedule step '{step}'"
        refuse_together(found, _of_schedule(document), at, name=name, table=unmade)


def _refuse_commits(
    document: Node, schedule: Schedule, clients: Mapping[str, ClientSettings]
) -> None:
    """Refuse steps that the commits of one statement cannot take.

    Delta takes the snapshot of each commit but the last as soon as the one before is made
    (BackfillExecutor.scala), and brings it to the transaction, as OPTIMIZE does.
    """
    refuse = _of_schedule(document)
    steps = schedule.steps
    for whole in dict.fromkeys(c.commit_of for c in clients.values() if c.commit_of is not None):
        commits = {whole, *(name for name, c in clients.items() if c.commit_of == whole)}
        taken = [k for k, step in enumerate(steps) if step.transaction in commits]
        last = steps[taken[-1]].transaction
        if last != whole:
            refuse(f"schedule: {last} is a commit of {whole}, which ends first; put it earlier")
        for step in steps[taken[0] : taken[-1]]:
            client = clients.get(step.transaction, ClientSettings())
            if client.session == clients[whole].session and step.transaction not in commits:
                refuse(f"schedule step '{step}' comes before {whole}, in its session, has ended")
        for step in (steps[k] for k in taken if steps[k].action == "park-init"):
            refuse(
                f"schedule step '{step}': {whole} stops at its commits only; use"
                f" {step.transaction}.start"
            )
        for before, k in pairwise(taken):
            step = steps[k]
            begins = step.transaction != steps[before].transaction
            if begins and step.transaction != whole and k > before + 1:
                refuse(
                    f"schedule step '{step}' comes after Delta has taken its snapshot, right after"
                    f" {steps[before]}; put it there"
                )


def _of_schedule(document: Node) -> Callable[[str], NoReturn]:
    return lambda problem: document.refuse(problem, "schedule")
