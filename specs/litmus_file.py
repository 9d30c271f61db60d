"""Read litmus files (TOML) into Litmus tests or HistoryTests.

Everything that a user can get wrong is one LitmusError with the file, the key and what would have
been right; SQL errors point into the statement. The format is that of interface.md.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from isolitmus.model.errors import HistoryError, LitmusError
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.specs.expectations import ExpectationReader
from isolitmus.specs.sql import read_statement
from isolitmus.specs.table_file import NAME, Table, read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.schema import Schema
    from isolitmus.model.statement import Statement

__all__ = ["read_litmus"]

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
    reader = _LitmusReader(label, text)
    document = read_toml(text, label)
    kind = reader.history if "history" in document else reader.litmus
    return kind(document, name, text, path)


class _LitmusReader(ExpectationReader):
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
        transactions = self.statements(document, schemas)
        words = self.get(document, "", "schedule", str)
        try:
            schedule = Schedule.parse(words, transactions)
        except LitmusError as error:
            self.refuse(str(error), "schedule")
        self.transactions, self.schemas = transactions, schemas
        expect = self.expectations(self.get(document, "", "expect", dict, {}), path)
        return Litmus(
            name, title, source, schemas, inits[0], transactions, schedule, expect, tags, text, path
        )

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

    def statements(self, document: Table, schemas: Mapping[str, Schema]) -> dict[str, Statement]:
        statements: dict[str, Statement] = {}
        for name, sql in self.get(document, "", "transactions", dict).items():
            if not NAME.fullmatch(name):
                self.refuse(
                    f"transaction '{name}': a name is letters, digits and _",
                    f"transactions.{name}",
                )
            if isinstance(sql, dict):
                self.keys(sql, f"transactions.{name}", ("sql",))
                text = self.get(sql, f"transactions.{name}", "sql", str)
            else:
                text = self.get({name: sql}, "transactions", name, str)
            statements[name] = read_statement(
                text, schemas, f"{self.place(f'transactions.{name}')}, transaction {name}"
            )
        if not statements:
            self.refuse("[transactions] is empty")
        return statements
