"""Read what a client does around a transaction: ``before``, ``let``, ``conf``, ``session``, ``app``.

What a key is for stands in interface.md, "Litmus file".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model import statement as st
from isolitmus.model.client import CacheTable, Client, SetConf
from isolitmus.model.errors import near
from isolitmus.specs.confs import CONFS
from isolitmus.specs.raw_file import RawReader
from isolitmus.specs.sql import read_statement
from isolitmus.specs.sql_queries import items_of
from isolitmus.specs.toml_file import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.client import Aside
    from isolitmus.model.schema import Schema
    from isolitmus.specs.toml_file import Table

__all__ = ["CLIENT", "ClientReader"]

CLIENT = ("before", "let", "conf", "session", "app")
"""The keys that every transaction may have."""
CACHE = re.compile(r"(?i)\s*CACHE\s+(?:LAZY\s+)?TABLE\s+(`?)(?P<table>\w+)\1\s*")
UNCACHE = re.compile(r"(?i)\s*UNCACHE\s+TABLE\s+(?:IF\s+EXISTS\s+)?(`?)(?P<table>\w+)\1\s*")
SET = re.compile(r"(?i)\s*SET\s+(?P<key>[\w.]+)\s*=\s*(?P<value>[^\s;]+)\s*")


class ClientReader(RawReader):
    """Reads what clients do around their transactions."""

    def client(self, table: Table, where: str, schemas: Mapping[str, Schema]) -> Client:
        session = table.get("session")
        if session is not None and (not isinstance(session, str) or not NAME.fullmatch(session)):
            self.refuse(
                f"{where}.session is {self.shown(session)}; a name, letters, digits and _, is wanted"
            )
        return Client(
            tuple(
                self.aside(text, where, schemas) for text in self.strings(table, where, "before")
            ),
            {
                name: self.let(name, sql, where, schemas)
                for name, sql in self.get(table, where, "let", dict, {}).items()
            },
            {
                key: self.conf(key, value, f"{where}.conf")
                for key, value in self.get(table, where, "conf", dict, {}).items()
            },
            session,
            app=self.app(table, where),
        )

    def aside(self, text: str, where: str, schemas: Mapping[str, Schema]) -> Aside:
        where = f"{where}.before"
        for pattern, keep in ((CACHE, True), (UNCACHE, False)):
            found = pattern.fullmatch(text)
            if found:
                known = {name.lower(): name for name in schemas}
                name = found["table"]
                if name.lower() not in known:
                    self.refuse(f"{where}: no table '{name}'{near(name, schemas)}")
                if not schemas[known[name.lower()]].exists:
                    self.refuse(f"{where}: {name} is not there at the start, and so not cached")
                return CacheTable(text, known[name.lower()], keep)
        found = SET.fullmatch(text)
        if found:
            return SetConf(text, found["key"], self.conf(found["key"], found["value"], where))
        self.refuse(
            f"{where} holds {self.shown(text)}; CACHE TABLE t, UNCACHE TABLE t and"
            " SET key = value are what is run outside a transaction; a query is a let, and a"
            " statement that writes a transaction of its own"
        )

    def let(self, name: str, sql: object, where: str, schemas: Mapping[str, Schema]) -> st.Read:
        where = f"{where}.let.{name}"
        if not NAME.fullmatch(name):
            self.refuse(f"{where}: a name is letters, digits and _")
        if not isinstance(sql, str):
            self.refuse(f"{where} is {self.shown(sql)}; a text is wanted")
        statement = read_statement(sql, schemas, f"{self.place(where)}, let {name}")
        if not isinstance(statement, st.Read) or len(items_of(statement.query[0])) != 1:
            self.refuse(f"{where} is '{sql}'; a query with one column is wanted")
        return statement

    def conf(self, key: str, value: object, where: str) -> str:
        if key not in CONFS:
            self.refuse(f"{where}: '{key}' is not modelled{near(key, CONFS)}")
        if not isinstance(value, str) or value.lower() not in CONFS[key]:
            self.refuse(f"{where}: {key} is {self.shown(value)}; known: {', '.join(CONFS[key])}")
        return value
