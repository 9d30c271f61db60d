"""Read litmus files (TOML) into Litmus tests or HistoryTests.

Everything that a user can get wrong is one LitmusError with the file, the key and what would have
been right; SQL errors point into the statement. The format is that of interface.md.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from isolitmus.model.client import CacheTable
from isolitmus.model.definition import Convert
from isolitmus.model.errors import HistoryError, LitmusError
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.statement import (
    Delete,
    Insert,
    Merge,
    Optimize,
    Read,
    Truncate,
    Update,
    unseen,
)
from isolitmus.specs.expectations import ExpectationReader
from isolitmus.specs.toml_file import Table, read_toml
from isolitmus.specs.transaction_file import TransactionReader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.client import Client
    from isolitmus.model.schema import Schema
    from isolitmus.model.statement import Statement

__all__ = ["LitmusReader", "read_litmus"]

FRESH = (Insert, Delete, Update, Merge, Truncate, Optimize, Read)
"""The statements after which a cached table is its newest version (``model.client.CacheTable``)."""
WORD = re.compile(r"\w+")


def read_litmus(text: str, name: str, path: Path | None = None) -> Litmus | HistoryTest:
    """The test that a litmus file holds: on a table, or an abstract history.

    >>> test = read_litmus('''
    ... title = "Two appends"
    ... schedule = "a.start b a.commit"
    ... [table]
    ... columns = "id INT"
    ... [transactions]
    ... a = "INSERT INTO t VALUES (1)"
    ... b = "INSERT INTO t VALUES (2)"
    ... ''', "two-appends")
    >>> str(test.schedule)
    'a.start b a.commit'
    """
    label = path.name if path is not None else f"{name}.toml"
    reader = LitmusReader(label, text)
    document = read_toml(text, label)
    kind = reader.history if "history" in document else reader.litmus
    return kind(document, name, text, path)


class LitmusReader(TransactionReader, ExpectationReader):
    def head(self, document: Table) -> tuple[str, str, tuple[str, ...]]:
        title = self.get(document, "", "title", str)
        source = self.get(document, "", "source", str, "")
        return title, source, self.strings(document, "", "tags")

    def litmus(self, document: Table, name: str, text: str, path: Path | None) -> Litmus:
        known = ("title", "source", "tags", "schedule", "table", "tables", "transactions", "expect")
        self.keys(document, "", known)
        title, source, tags = self.head(document)
        schemas, inits = self.tables(document)
        if len(inits) != 1:
            self.refuse("table.init is a list of lists; a litmus test has one initial table")
        transactions, clients = self.read_transactions(document, schemas)
        words = self.get(document, "", "schedule", str)
        try:
            sessions = {name: c.session for name, c in clients.items() if c.session is not None}
            schedule = Schedule.parse(words, transactions, sessions)
        except LitmusError as error:
            self.refuse(str(error), "schedule")
        self.converts(transactions, clients, schemas)
        self.steps(schedule, transactions, clients, schemas)
        transactions = self.with_confs(transactions, clients, schedule)
        self.travels(inits[0], transactions, clients)
        self.caches(transactions, clients)
        self.transactions, self.schemas = transactions, schemas
        expect = self.expectations(self.get(document, "", "expect", dict, {}), path)
        return Litmus(
            name, title, source, schemas, inits[0], transactions, schedule, expect, tags, text, path,
            clients,
        )  # fmt: skip

    def history(self, document: Table, name: str, text: str, path: Path | None) -> HistoryTest:
        from isolitmus.model.history import History

        self.keys(document, "", ("title", "source", "tags", "history", "expect"))
        title, source, tags = self.head(document)
        table = self.get(document, "", "history", dict)
        try:
            history = History.from_table(table)
        except HistoryError as error:
            named = (word for word in WORD.findall(str(error)) if word in table)
            where = ".".join(["history", *islice(named, 1)])
            raise HistoryError(f"{self.place(where)}: {error}") from None
        expect = self.get(document, "", "expect", dict, {})
        self.keys(expect, "expect", ("holds", "fails"))
        holds, fails = self.levels(expect, "expect")
        return HistoryTest(name, title, source, history, holds, fails, tags, text, path)

    def converts(
        self,
        transactions: Mapping[str, Statement],
        clients: Mapping[str, Client],
        schemas: Mapping[str, Schema],
    ) -> None:
        """Refuse what is done to a Parquet table but its conversion."""
        texts = [(n, s.sql) for n, s in transactions.items() if not isinstance(s, Convert)]
        for name, client in clients.items():
            texts += [(name, text.sql) for text in (*client.before, *client.let.values())]
        for table in (schema.name for schema in schemas.values() if schema.parquet):
            for name, text in texts:
                if table.lower() in WORD.findall(text.lower()):
                    self.refuse(
                        f"transactions.{name} names {table}, a Parquet table: until it is converted"
                        " no check of Delta's sees what is done to it; only CONVERT TO DELTA is modelled"
                    )

    def travels(
        self,
        init: tuple[Statement, ...],
        transactions: Mapping[str, Statement],
        clients: Mapping[str, Client],
    ) -> None:
        """Refuse VERSION AS OF {init[n]} where there is no such version of the table."""
        for statement in init:
            if any(select.version is not None for select in unseen(statement)):
                self.refuse(f"'{statement.sql}': init statements read what there is, no version")
        read = [(name, statement) for name, statement in transactions.items()]
        read += [(name, query) for name, c in clients.items() for query in c.let.values()]
        for name, statement in read:
            for select in unseen(statement):
                table, number = select.table, select.version
                if number is None:
                    continue
                if number > len(init):
                    self.refuse(
                        f"transactions.{name}: {{init[{number}]}} is none; there"
                        f" {'is 1 init statement' if len(init) == 1 else f'are {len(init)} init statements'}"
                    )
                written = init[number - 1]
                if isinstance(written, Read) or written.target != table:
                    self.refuse(
                        f"transactions.{name}: {{init[{number}]}} is no version of {table};"
                        f" that init statement is '{written.sql}'"
                    )

    def caches(self, transactions: Mapping[str, Statement], clients: Mapping[str, Client]) -> None:
        """Refuse a cache beside what leaves it as it was: its table's newest version is not in it."""
        asides = (aside for client in clients.values() for aside in client.before)
        if not any(isinstance(aside, CacheTable) for aside in asides):
            return
        for name, statement in transactions.items():
            stream = isinstance(statement, Insert) and statement.stream
            if stream or not isinstance(statement, FRESH):
                self.refuse(
                    f"transactions.{name}: '{statement.sql}' beside CACHE TABLE, which it does not fill"
                    " anew, is not modelled"
                )

    def steps(
        self,
        schedule: Schedule,
        transactions: Mapping[str, Statement],
        clients: Mapping[str, Client],
        schemas: Mapping[str, Schema],
    ) -> None:
        """Refuse the steps that a transaction cannot take."""
        unmade = next((name for name, schema in schemas.items() if not schema.exists), None)
        for step in schedule.steps:
            name, statement = step.transaction, transactions[step.transaction]
            if step.action == "before" and not (name in clients and clients[name].asks):
                self.refuse(
                    f"schedule step '{step}': {name} has neither 'before' nor 'let'", "schedule"
                )
            if step.action.startswith("park-") and isinstance(statement, Read):
                self.refuse(
                    f"schedule step '{step}': {name} only reads, and so has no commit to park at",
                    "schedule",
                )
            if step.action == "park-init" and unmade is not None:
                self.refuse(
                    f"schedule step '{step}': whether {unmade} is there is settled before, when"
                    f" {name} is analysed, which is not modelled; use {name}.start",
                    "schedule",
                )
            if step.action == "park-init" and isinstance(statement, Optimize):
                self.refuse(
                    f"schedule step '{step}': OPTIMIZE has its snapshot when it comes there;"
                    f" use {name}.start",
                    "schedule",
                )
