"""Read the format of a file, and transactions as any format has them: a statement, or a sequence of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model.client import Client
from isolitmus.model.defaults import DELTA
from isolitmus.model.errors import UnknownName
from isolitmus.model.sql.statement import Block
from isolitmus.specs.disk.limits import STATEMENTS, TRANSACTIONS
from isolitmus.specs.files.index_file import read_plan
from isolitmus.specs.files.toml_reader import NAME, shown
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from isolitmus.model.format import Format
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.statement import Statement
    from isolitmus.specs.files.toml_reader import Node

__all__ = ["each_transaction", "read_format", "read_sequence", "read_sequences", "refuse_sequence"]


def read_format(document: Node) -> Format:
    """The format that a file names, Delta if it names none."""
    name = document.get("format", str, DELTA)
    try:
        return format_named(name)
    except UnknownName as error:
        document.refuse(str(error), "format")


def read_sequences(
    document: Node, schemas: Mapping[str, Schema], form: Format
) -> tuple[dict[str, Statement], dict[str, Client]]:
    """The transactions of a test whose format knows of clients only their sessions: each is a text, a list
    of texts, or a table with one of these as ``sql`` and a ``session``; where statements are scans, by which
    indexes they go.
    """
    statements: dict[str, Statement] = {}
    clients: dict[str, Client] = {}
    for name, given in each_transaction(document):
        value = given.value
        if isinstance(value, dict):
            given.keys(
                ("sql", "session", "scan", "subqueries") if form.steps else ("sql", "session")
            )
            client = read_plan(given, schemas)
            if "session" in given:
                client = replace(client, session=given.get("session", str))
            if client != Client():
                clients[name] = client
            value = value.get("sql")
        read = _reader(form, schemas, f"{given.place}, transaction {name}")
        one = read_sequence(value, given, form, read)
        if form.steps and not isinstance(one, Block):
            one = Block(one.sql, (one,), single=True)
        statements[name] = one
    return statements, clients


def each_transaction(document: Node) -> Iterator[tuple[str, Node]]:
    """What a file has as ``[transactions]``, by name; refused if that is none, or there are none."""
    transactions = document.inner("transactions", most=TRANSACTIONS)
    for name, given in transactions.items():
        if not NAME.fullmatch(name):
            given.refuse(f"transaction '{name}': a name is letters, digits and _", given.path)
        yield name, given
    if not transactions.value:
        document.refuse("[transactions] is empty")


def _reader(form: Format, schemas: Mapping[str, Schema], place: str) -> Callable[[str], Statement]:
    return lambda text: form.statement(text, schemas, place)


def read_sequence(
    value: object, given: Node, form: Format, read: Callable[[str], Statement]
) -> Statement:
    """What ``read`` makes of a text, or of each of a list of texts, which are one transaction."""
    if isinstance(value, str):
        return read(value)
    if not isinstance(value, list) or not value or not all(isinstance(t, str) for t in value):
        wanted = "a text is wanted" if form.sequences else "a text, or a list of texts, is wanted"
        given.refuse(f"{given} is {shown(value)}; {wanted}")
    refuse_sequence(given, form)
    given.bounded(len(value), "sql", STATEMENTS, "statements")
    parts = tuple(map(read, value))
    return Block("; ".join(part.sql for part in parts), parts)


def refuse_sequence(given: Node, form: Format) -> None:
    """Refuse a list of statements in a format whose transactions are one each."""
    if form.sequences:
        given.refuse(
            f"{given} is a list of statements, and {form.sequences}; write a transaction for each, in one"
            " session"
        )
