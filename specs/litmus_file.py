"""Read litmus files (TOML) into Litmus tests or HistoryTests.

Everything that a user can get wrong is one LitmusError with the file, the key and what would have
been right; SQL errors point into the statement. The format is that of interface.md.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, cast

from isolitmus.model.errors import HistoryError, LitmusError, near
from isolitmus.model.litmus import Expectation, HistoryTest, Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.model.values import sort_rows
from isolitmus.specs.sql import read_statement
from isolitmus.specs.table_file import NAME, FileReader, Table, read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.schema import Schema
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Row, Rows, Value

__all__ = ["read_litmus"]

EXPECT_KEYS = frozenset(
    ("outcome", "error_class", "log", "reads", "tables", "versions", "serial", "holds", "fails")
)
LOG_KEYS = {"blind": bool, "level": str, "operation": str}


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
    reader = _LitmusReader(label)
    document = read_toml(text, label)
    kind = reader.history if "history" in document else reader.litmus
    return kind(document, name, text, path)


class _LitmusReader(FileReader):
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
        transactions = self.transactions(document, schemas)
        words = self.get(document, "", "schedule", str)
        try:
            schedule = Schedule.parse(words, transactions)
        except LitmusError as error:
            self.refuse(str(error))
        expect = {
            who: self.expectation(table, f"expect.{who}", transactions, schemas)
            for who, table in self.get(document, "", "expect", dict, {}).items()
        }
        return Litmus(
            name, title, source, schemas, inits[0], transactions, schedule, expect, tags, text, path
        )

    def history(self, document: Table, name: str, text: str, path: Path | None) -> HistoryTest:
        from isolitmus.model.history import History

        self.keys(document, "", ("title", "source", "tags", "history", "expect"))
        title, source, tags = self.head(document)
        try:
            history = History.from_table(self.get(document, "", "history", dict))
        except HistoryError as error:
            raise HistoryError(f"{self.label}: {error}") from None
        expect = self.get(document, "", "expect", dict, {})
        self.keys(expect, "expect", ("holds", "fails"))
        holds, fails = (self.strings(expect, "expect", key) for key in ("holds", "fails"))
        return HistoryTest(name, title, source, history, holds, fails, tags, text, path)

    def transactions(self, document: Table, schemas: Mapping[str, Schema]) -> dict[str, Statement]:
        statements: dict[str, Statement] = {}
        for name, sql in self.get(document, "", "transactions", dict).items():
            if not NAME.fullmatch(name):
                self.refuse(f"transaction '{name}': a name is letters, digits and _")
            text = sql["sql"] if isinstance(sql, dict) and set(sql) == {"sql"} else sql
            if not isinstance(text, str):
                self.refuse(
                    f"transactions.{name} is not one SQL text; other forms are not modelled yet"
                )
            statements[name] = read_statement(text, schemas, f"{self.label}, transaction {name}")
        if not statements:
            self.refuse("[transactions] is empty")
        return statements

    def expectation(
        self,
        table: object,
        where: str,
        transactions: Mapping[str, Statement],
        schemas: Mapping[str, Schema],
    ) -> Expectation:
        if not isinstance(table, dict):
            self.refuse(f"{where} is no table")
        self.keys(table, where, EXPECT_KEYS)

        def named(key: str) -> dict[str, Any]:
            inner: dict[str, Any] = self.get(table, where, key, dict, {})
            self.keys(inner, f"{where}.{key}", transactions)
            return inner

        outcome = {}
        for name, value in named("outcome").items():
            options = value if isinstance(value, list) else [value]
            if not options or not all(isinstance(o, str) for o in options):
                self.refuse(
                    f"{where}.outcome.{name} is {value!r}; an outcome or a list of them is wanted"
                )
            outcome[name] = tuple(options)
        error_class = {n: self.get({n: v}, where, n, str) for n, v in named("error_class").items()}
        log = named("log")
        for name, entry in log.items():
            self.keys(entry, f"{where}.log.{name}", LOG_KEYS)
            for key, kind in LOG_KEYS.items():
                if key in entry:
                    self.get(entry, f"{where}.log.{name}", key, kind)
        reads = {n: self.rows(rows, f"{where}.reads.{n}") for n, rows in named("reads").items()}
        versions = {}
        for number, tables in self.get(table, where, "versions", dict, {}).items():
            if not number.isdigit():
                self.refuse(f"{where}.versions.{number} is no version; 0 is the table at the start")
            versions[int(number)] = self.contents(tables, f"{where}.versions.{number}", schemas)
        serial = table.get("serial")
        if serial is not None:
            serial = self.serial(table, where, transactions)
        return Expectation(
            outcome,
            error_class,
            log,
            reads,
            self.contents(self.get(table, where, "tables", dict, {}), f"{where}.tables", schemas),
            versions,
            serial,
            self.strings(table, where, "holds"),
            self.strings(table, where, "fails"),
        )

    def serial(
        self, table: Table, where: str, transactions: Mapping[str, Statement]
    ) -> tuple[str, ...]:
        orders = self.strings(table, where, "serial")
        for order in orders:
            for name in order.split():
                if name not in transactions:
                    self.refuse(
                        f"{where}.serial names no transaction: '{name}'{near(name, transactions)}"
                    )
        return orders

    def contents(
        self, tables: object, where: str, schemas: Mapping[str, Schema]
    ) -> dict[str, Rows]:
        if not isinstance(tables, dict):
            self.refuse(f"{where} is no table")
        self.keys(tables, where, schemas)
        contents = {}
        for name, rows in tables.items():
            contents[name] = self.rows(rows, f"{where}.{name}")
            wrong = next((r for r in contents[name] if len(r) != len(schemas[name].columns)), None)
            if wrong is not None:
                self.refuse(
                    f"{where}.{name}: row {list(wrong)} has not {len(schemas[name].columns)} values"
                )
        return contents

    def rows(self, rows: object, where: str) -> Rows:
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            self.refuse(f"{where} is no list of rows; write [[1, 0], [2, 1]]")
        return sort_rows(self.row(row, where) for row in rows)

    def row(self, row: list[object], where: str) -> Row:
        values: list[Value] = []
        for value in row:
            if value == {"null": True}:
                values.append(None)
            elif isinstance(value, str | bool | int) or type(value) is date:
                values.append(cast("Value", value))
            else:
                self.refuse(
                    f"{where}: {value!r} is no value; write a number, a text, a boolean, a date or {{ null = true }}"
                )
        return tuple(values)
