"""Read the expectations of a litmus file; what can never come true is refused, near misses named."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from isolitmus.model.errors import near
from isolitmus.model.litmus import Expectation
from isolitmus.model.statement import Read
from isolitmus.specs.files import is_file
from isolitmus.specs.sql_queries import items_of
from isolitmus.specs.toml_file import FileReader, Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.schema import Schema, Type
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Rows, Value

__all__ = ["ExpectationReader"]

KEYS = frozenset(
    ("outcome", "error_class", "log", "reads", "tables", "versions", "serial", "holds", "fails")
)
LOG_KEYS = {"blind": bool, "level": str, "operation": str}
OUTCOMES = ("committed", "no-op", "unknown", "aborted")
CONFLICTS = (
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentModificationException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
)
"""What Delta calls its conflicts (DeltaConcurrentExceptions.scala); other engines have others."""
CLASS = re.compile(r"[A-Z][A-Za-z0-9_]*")
NAME = re.compile(r"[A-Za-z0-9_.-]+")
RELEASE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*-[0-9][0-9A-Za-z.+_-]*")
VERSION = re.compile(r"0|[1-9][0-9]{0,8}")
LIKE = 0.9
"""From which likeness on a name is taken for a typing error."""


class ExpectationReader(FileReader):
    """Reads ``[expect.…]``, for the transactions and tables of its file."""

    transactions: Mapping[str, Statement]
    schemas: Mapping[str, Schema]
    wider: dict[str, Schema]
    final: dict[str, Schema]

    def expectations(self, tables: Table, path: Path | None) -> dict[str, Expectation]:
        return {who: self.expectation(who, table, path) for who, table in tables.items()}

    def expectation(self, who: str, table: object, path: Path | None) -> Expectation:
        where = f"expect.{who}"
        self.expected_of(who, path)
        if not isinstance(table, dict):
            self.refuse(f"{where} is {self.shown(table)}; a table is wanted")
        self.keys(table, where, KEYS)
        serial = table.get("serial")
        return Expectation(
            self.outcomes(table, where),
            {
                name: self.get({name: value}, f"{where}.error_class", name, str)
                for name, value in self.by_transaction(table, where, "error_class").items()
            },
            self.log(table, where),
            {
                name: self.read(name, rows, f"{where}.reads.{name}")
                for name, rows in self.by_transaction(table, where, "reads").items()
            },
            self.contents(self.get(table, where, "tables", dict, {}), f"{where}.tables"),
            self.versions(table, where),
            None if serial is None else self.serial(table, where),
            *self.levels(table, where),
        )

    def expected_of(self, who: str, path: Path | None) -> None:
        """A protocol of the catalogue or beside the file, or an engine with its release."""
        from isolitmus.specs.catalogue import protocols

        if who in protocols() or RELEASE.fullmatch(who):
            return
        if path is None or not NAME.fullmatch(who) or not is_file(path.parent / f"{who}.cat"):
            self.refuse(f"[expect.{who}] is of no protocol{near(who, protocols())}")

    def by_transaction(self, table: Table, where: str, key: str) -> Table:
        """A table whose keys are transactions."""
        inner: Table = self.get(table, where, key, dict, {})
        self.keys(inner, f"{where}.{key}", self.transactions)
        return inner

    def outcomes(self, table: Table, where: str) -> dict[str, tuple[str, ...]]:
        outcomes = {}
        for name, value in self.by_transaction(table, where, "outcome").items():
            options = value if isinstance(value, list) else [value]
            place = f"{where}.outcome.{name}"
            if not options or not all(isinstance(o, str) for o in options):
                self.refuse(
                    f"{place} is {self.shown(value)}; an outcome or a list of them is wanted"
                )
            for option in options:
                self.outcome(option, place)
            outcomes[name] = tuple(options)
        return outcomes

    def outcome(self, option: str, place: str) -> None:
        if option in OUTCOMES or option in CONFLICTS:
            return
        if CLASS.fullmatch(option.removeprefix("error:")):
            close = get_close_matches(option, CONFLICTS, n=1, cutoff=LIKE)
            if close:
                self.refuse(f"{place}: no outcome '{option}'; did you mean '{close[0]}'?")
        else:
            known = near(option, [*OUTCOMES, *CONFLICTS, "error:CLASS"])
            self.refuse(f"{place}: no outcome '{option}'{known}")

    def log(self, table: Table, where: str) -> dict[str, dict[str, Value]]:
        log = self.by_transaction(table, where, "log")
        for name in log:
            entry = self.get(log, f"{where}.log", name, dict)
            self.keys(entry, f"{where}.log.{name}", LOG_KEYS)
            for key in entry:
                self.get(entry, f"{where}.log.{name}", key, LOG_KEYS[key])
        return log

    def serial(self, table: Table, where: str) -> tuple[str, ...]:
        orders = self.strings(table, where, "serial")
        for order in orders:
            names = order.split()
            for name in names:
                if name not in self.transactions:
                    self.refuse(
                        f"{where}.serial names no transaction: '{name}'"
                        f"{near(name, self.transactions)}"
                    )
            if len(set(names)) < len(names):
                self.refuse(f"{where}.serial: order '{order}' has a transaction twice")
        return orders

    def levels(self, table: Table, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """``holds`` and ``fails``: names of levels, none in both."""
        from isolitmus.specs.catalogue import levels

        known = levels()
        holds, fails = (self.named(table, where, key, "level", known) for key in ("holds", "fails"))
        both = next((name for name in holds if name in fails), None)
        if both is not None:
            self.refuse(f"{where}: '{both}' is in holds and in fails")
        return holds, fails

    # Rows

    def versions(self, table: Table, where: str) -> dict[int, dict[str, Rows]]:
        versions = {}
        for number, tables in self.get(table, where, "versions", dict, {}).items():
            if not VERSION.fullmatch(number):
                self.refuse(f"{where}.versions.{number} is no version; 0 is the table at the start")
            versions[int(number)] = self.contents(tables, f"{where}.versions.{number}")
        return versions

    def contents(self, tables: object, where: str) -> dict[str, Rows]:
        if not isinstance(tables, dict):
            self.refuse(f"{where} is {self.shown(tables)}; a table is wanted")
        self.keys(tables, where, self.schemas)
        return {
            name: self.rows(rows, f"{where}.{name}", self.types(name, rows))
            for name, rows in tables.items()
        }

    def types(self, table: str, rows: object) -> list[Type]:
        """The types of a table's columns: as declared, or as transactions alter them, whichever has so
        many.
        """
        declared = self.schemas[table]
        first = rows[0] if isinstance(rows, list) and rows else None
        for schema in (declared, self.wider.get(table), self.final.get(table)):
            if schema is not None and isinstance(first, list) and len(first) == len(schema.shown):
                return [schema.columns[i].type for i in schema.shown]
        return [c.type for c in declared.columns]

    def read(self, name: str, rows: object, where: str) -> Rows:
        statement = self.transactions[name]
        if not isinstance(statement, Read):
            self.refuse(f"{where}: {name} reads nothing that one sees; '{statement.sql}' writes")
        return self.rows(rows, where, [item.type for item in items_of(statement.query[0])])
