"""Reader of scope files (TOML): tables as in a litmus file, and a ``[scope]`` of what varies."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from isolitmus.model.scope import FRESH, LARGEST, Scope, fresh
from isolitmus.model.sql.statement import Read
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.spec_catalogue import protocol_names
from isolitmus.specs.files.table_file import read_scan, read_table, read_tables
from isolitmus.specs.files.toml_reader import DELTA, NAME, Node, Source, show_value
from isolitmus.specs.files.transaction_file import read_format, read_sequence
from isolitmus.specs.registries import format_named
from isolitmus.specs.sql.unsupported_pairs import features_of, refuse_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from isolitmus.model.format import Format
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.specs.sql.unsupported_pairs import Feature

SCOPE: frozenset[Feature] = frozenset({"a scope"})
"""Feature that statements and tables of a scope must be compatible with."""


def read_scope(text: str, name: str, path: Path | None = None) -> Scope:
    """Return the scope in a text; LitmusError describes a problem.

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> len(scope("table").inits)
    1
    """
    label = path.name if path is not None else f"{name}.toml"
    document = Source(label, text).node()
    document.keys(("title", "source", "tags", "format", "table", "tables", "scope"))
    form = read_format(document)
    schemas, inits = read_tables(document, partial(read_table, indexed=form.steps), form.statement)
    for table, schema in schemas.items():
        where = "table" if "table" in document else f"tables.{table}"
        if not schema.exists:
            refuse_together(features_of(schema=schema) | SCOPE, document.refuse, where, table=table)
    title = document.get("title", str)
    varied = document.inner("scope")
    known = ("transactions", "statements", "readers", "protocols", "levels", "noops")
    varied.keys((*known, "scan") if form.steps else known)
    sizes = varied.value.get("transactions")
    sizes = sizes if isinstance(sizes, list) else [sizes]
    if not sizes or not all(type(n) is int and 1 <= n <= LARGEST for n in sizes):
        document.refuse(
            f"scope.transactions is {show_value(varied.value.get('transactions'))}; expected an"
            f" integer from 1 to {LARGEST}, or a list of them"
        )
    named, texts = _statements(varied)
    if not texts:
        document.refuse("scope.statements is empty")

    statements = tuple(
        _everywhere(given.value, partial(_transaction, given, schemas, form)) for given in texts
    )
    for first, *_ in statements:
        refuse_together(features_of(first) | SCOPE, document.refuse, "scope", sql=first.sql)
    reading = next((s[0].sql for s in statements if isinstance(s[0], Read)), None)
    if reading is not None:
        document.refuse(f"scope.statements holds a query, '{reading}'; put it into scope.readers")
    readers = tuple(_transaction(given, schemas, form) for given in _listed(varied, "readers"))
    writing = next((s.sql for s in readers if form.log == DELTA and not isinstance(s, Read)), None)
    if writing is not None:
        document.refuse(f"scope.readers holds a statement that writes, '{writing}'")
    for statement in readers:
        refuse_together(features_of(statement) | SCOPE, document.refuse, "scope", sql=statement.sql)
    for table, schema in schemas.items():
        refuse_together(features_of(schema=schema) | SCOPE, document.refuse, "scope", table=table)
    noops = varied.get("noops", str, "skip")
    if noops not in ("skip", "keep"):
        document.refuse(f"scope.noops is '{noops}'; expected 'skip' or 'keep'")
    return Scope(
        name,
        title,
        document.get("source", str, ""),
        schemas,
        inits,
        statements,
        readers,
        tuple(sorted(set(sizes))),
        noops,
        varied.named("protocols", "protocol", shipped_files("protocols"), protocol_names),
        varied.named("levels", "level", shipped_files("levels")),
        text,
        path,
        {s.sql: job for job, each in zip(named, statements, strict=False) for s in each},
        read_scan(varied, schemas),
        format=form.name,
    )


def replace_jobs(scope: Scope, changes: Mapping[str, str | None]) -> Scope:
    """Return the scope with other statements for some of its jobs, or without them (None).

    Examples
    --------
    >>> from isolitmus.specs import scope
    >>> changes = {"report": None, "cleanup": "TRUNCATE TABLE orders"}
    >>> changed = replace_jobs(scope("orders"), changes)
    >>> changed.statements[2][0].sql, "report" in changed.jobs.values()
    ('TRUNCATE TABLE orders', False)
    """
    jobs: dict[str, str] = {}
    statements: list[tuple[Statement, ...]] = []
    for positions in scope.statements:
        job = scope.jobs[positions[0].sql]
        text = changes.get(job, "")
        if text is None:
            continue
        made = positions
        if text:
            made = _everywhere(text, partial(_job, scope, job, text))
        statements.append(made)
        jobs |= {statement.sql: job for statement in made}
    return replace(scope, statements=tuple(statements), jobs=jobs)


def _job(scope: Scope, job: str, text: str, at: int) -> Statement:
    return format_named(scope.format).statement(_fresh(text, at), scope.tables, job)


def _everywhere(written: object, made: Callable[[int], Statement]) -> tuple[Statement, ...]:
    """Return the transaction for each commit position (from 1), all equal without ``{fresh}``."""
    if FRESH not in str(written):
        return (made(1),) * LARGEST
    return tuple(map(made, range(1, LARGEST + 1)))


def _transaction(
    given: Node, schemas: Mapping[str, Schema], form: Format, at: int = 0
) -> Statement:
    """Return a statement, or a list of them if the format allows it, for a commit position (from
    1).
    """
    key = given.path.split(".")[1]

    def read(text: str) -> Statement:
        place = given.source.place_of(f"scope.{key}", text)
        return form.statement(_fresh(text, at) if at else text, schemas, f"{place}, in {key}")

    return read_sequence(given.value, given, form, read)


def _fresh(text: str, position: int) -> str:
    return text.replace(FRESH, str(fresh(position)))


def _statements(varied: Node) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    """Return the names of the transactions, if they have any, and the transactions as written."""
    if not isinstance(varied.value.get("statements"), dict):
        return (), _listed(varied, "statements")
    jobs = varied.inner("statements")
    for job in jobs.value:
        if not NAME.fullmatch(job) or job[-1].isdigit():
            jobs.refuse(
                f"job '{job}': a name is letters, digits and _, and ends with no digit: the second"
                " of a kind gets one",
                f"scope.statements.{job}",
            )
    return tuple(jobs.value), tuple(jobs.nodes())


def _listed(varied: Node, key: str) -> tuple[Node, ...]:
    """Return the entries of a list: strings, and lists of strings."""
    values = varied.get(key, list, [])
    for value in values:
        if not isinstance(value, str | list):
            varied.refuse(f"scope.{key} holds {show_value(value)}; expected strings")
    return tuple(Node(value, f"scope.{key}", varied.source) for value in values)
