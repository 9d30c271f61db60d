"""Read ``[transactions]`` of a litmus file: a statement each, and what its client does around it.

What a key is for stands in interface.md, "Litmus file".
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import expressions as exp

from isolitmus.model import statement as st
from isolitmus.model.client import CacheTable, Client, SetConf, Write
from isolitmus.model.definition import (
    Clone,
    Create,
    Definition,
    Late,
    Replace,
)
from isolitmus.model.errors import LitmusError, SqlError, near
from isolitmus.model.expression import Const
from isolitmus.model.raw import Raw
from isolitmus.model.schema import Column
from isolitmus.specs.altered import altered
from isolitmus.specs.binding import bound, parameters
from isolitmus.specs.client_file import CLIENT, ClientReader
from isolitmus.specs.confs import OVERWRITE_MODE
from isolitmus.specs.placeholders import marked
from isolitmus.specs.raw_file import RAW_KEYS
from isolitmus.specs.sql import read_statement
from isolitmus.specs.sql_queries import items_of
from isolitmus.specs.toml_file import NAME, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.schedule import Schedule
    from isolitmus.model.schema import Schema, Type
    from isolitmus.model.values import Value

__all__ = ["TransactionReader"]

WRITE = ("write", "table", "query", "options")
"""Those of a DataFrame write."""
STREAM = ("stream", "table", "query")
"""Those of a micro-batch of a streaming query."""
MODES = ("append", "overwrite")
WORD = re.compile(r"\w+")
OUTPUT_MODES = ("append", "complete")
"""Those of Delta's streaming sink (DeltaDataSource.scala, createSink)."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "replaceWhere": (),
    "replaceUsing": (),
    "dataChange": ("true", "false"),
    "mergeSchema": ("true", "false"),
    "partitionOverwriteMode": ("static", "dynamic"),
}
"""The writer's options, with the values that they take (none: any)."""
REPLACING = ("replaceWhere", "replaceUsing", "partitionOverwriteMode")
"""Those that say what an overwrite replaces."""
IDEMPOTENT = (st.Insert, st.Delete, st.Update, st.Merge, Late)
"""The statements that look up whether they have been executed."""
EXAMPLES: Mapping[Type, Value] = {
    "INT": 1,
    "BIGINT": 1,
    "STRING": "a",
    "DATE": date(2000, 1, 1),
    "BOOLEAN": True,
}
"""What a statement's parameters are while nobody has read them."""


class TransactionReader(ClientReader):
    """Reads transactions; the place to tell another kind of them apart is ``transaction``."""

    wider: dict[str, Schema]
    final: dict[str, Schema]

    def read_transactions(
        self, document: Table, schemas: Mapping[str, Schema]
    ) -> tuple[dict[str, st.Statement], dict[str, Client]]:
        """The statements, and the clients of those that are written as a table."""
        statements: dict[str, st.Statement] = {}
        clients: dict[str, Client] = {}
        given = self.get(document, "", "transactions", dict)
        texts = (v.get("sql") if isinstance(v, dict) else v for v in given.values())
        self.wider, self.final = altered(texts, schemas)
        grows = self.wider == self.final
        for name, value in given.items():
            if isinstance(value, dict) and "write" in value and "stream" not in value:
                self.widen(value, f"transactions.{name}", schemas, grows=grows)
        for name, value in given.items():
            where = f"transactions.{name}"
            if not NAME.fullmatch(name):
                self.refuse(f"transaction '{name}': a name is letters, digits and _", where)
            if isinstance(value, dict):
                statements[name], clients[name] = self.transaction(name, value, where, schemas)
            else:
                text = self.get({name: value}, "transactions", name, str)
                statements[name] = self.sql(text, name, where, schemas, {})
        if not statements:
            self.refuse("[transactions] is empty")
        cached = {a.table for c in clients.values() for a in c.before if isinstance(a, CacheTable)}
        for name, statement in statements.items():
            if isinstance(statement, Replace) and statement.target in cached:
                self.refuse(
                    f"transactions.{name} replaces a table that is cached: what becomes of the"
                    " cache is not modelled"
                )
            if isinstance(statement, Replace | Create | Clone) and not grows:
                self.refuse(
                    f"transactions.{name} makes or replaces a table beside a statement that drops or"
                    " renames columns, which is not modelled"
                )
        return statements, {name: c for name, c in clients.items() if c != Client()}

    def transaction(
        self, name: str, table: Table, where: str, schemas: Mapping[str, Schema]
    ) -> tuple[st.Statement, Client]:
        """One that is a table: its keys tell of which kind it is."""
        kinds = {"sql", "write", "stream"} & table.keys()
        raw = not kinds and {*RAW_KEYS, "app"} & table.keys()
        written = bool({"write", "stream"} & kinds)
        if raw or written:
            self.plain(schemas[self.target(table, where, schemas)], where)
        if raw:
            return self.raw(name, table, where, schemas), Client()
        if written:
            client = self.writer(table, name, where, schemas)
            if client.write is not None and client.write.merges:
                return self.merged(client, name, where, schemas), client
            if self.final:
                self.refuse(
                    f"{where} writes beside a statement that alters columns, which is modelled for"
                    ' options = { mergeSchema = "true" } only'
                )
            return self.written(client, name, where, schemas), client
        self.keys(table, where, ("sql", "write", "stream", *CLIENT))
        client = self.client(table, where, schemas)
        text = self.get(table, where, "sql", str)
        statement = self.sql(text, name, where, schemas, client.let)
        if client.app is not None and not isinstance(statement, IDEMPOTENT):
            self.refuse(f"{where}.app is for INSERT, DELETE, UPDATE and MERGE only")
        return statement, client

    def sql(
        self,
        text: str,
        name: str,
        where: str,
        schemas: Mapping[str, Schema],
        let: Mapping[str, st.Read],
    ) -> st.Statement:
        """The statement of an author's text; parameters stand for a value of their type."""
        for parameter in parameters(text) if let else ():
            if parameter not in let:
                self.refuse(f"{where}: no let gives ':{parameter}'{near(parameter, let)}")
        label = f"{self.place(where)}, transaction {name}"
        examples = {n: EXAMPLES[items_of(read.query[0])[0].type] for n, read in let.items()}
        try:
            read = read_statement(bound(text, examples), schemas, label)
        except SqlError:
            late = self.late(bound(text, examples), schemas, label)
            if late is None:
                raise
            return late
        return replace(read, sql=text)

    def late(
        self, text: str, schemas: Mapping[str, Schema], label: str
    ) -> Late | Definition | None:
        """A statement on columns as a transaction alters them; None if it is not that."""
        if not self.wider and not self.final:
            return None
        try:
            read = read_statement(text, {**schemas, **self.wider}, label)
        except SqlError:
            read = read_statement(text, {**schemas, **self.final}, label)
        if isinstance(read, st.Read | Raw | Replace | Create | Clone):
            raise LitmusError(
                f"{label}: a query of columns that a transaction adds or renames is not modelled,"
                " nor is a table made or replaced with them"
            )
        return read if isinstance(read, Definition) else Late(text, read.target)

    # A DataFrame write, or a micro-batch

    def writer(self, table: Table, name: str, where: str, schemas: Mapping[str, Schema]) -> Client:
        """The client of a write that is no statement."""
        if "stream" not in table:
            self.keys(table, where, (*WRITE, *CLIENT))
            client = self.client(table, where, schemas)
            return replace(client, write=self.write(table, where, schemas))
        self.keys(table, where, (*STREAM, *CLIENT))
        client = self.client(table, where, schemas)
        mode = self.get(table, where, "stream", str)
        if mode not in OUTPUT_MODES:
            self.refuse(f"{where}.stream is '{mode}'; known: {', '.join(OUTPUT_MODES)}")
        target, query = (
            self.target(table, where, schemas),
            self.get(table, where, "query", str),
        )
        batch = Write(target, "append" if mode == "append" else "complete", query, stream=True)
        return replace(client, write=batch, app=client.app or (name, 0))

    def plain(self, schema: Schema, where: str) -> None:
        """Refuse what only SQL writes here: a table that is not there, and identity columns."""
        if not schema.exists:
            self.refuse(
                f"{where} writes {schema.name}, which is not there at the start; only SQL finds that out"
            )
        if schema.generates:
            self.refuse(f"{where}: {schema.name} has identity columns, which only SQL writes here")

    def write(self, table: Table, where: str, schemas: Mapping[str, Schema]) -> Write:
        mode = self.get(table, where, "write", str)
        if mode not in MODES:
            self.refuse(f"{where}.write is '{mode}'; known: {', '.join(MODES)}")
        target = self.target(table, where, schemas)
        options = self.get(table, where, "options", dict, {})
        for key, value in options.items():
            if key not in OPTIONS:
                self.refuse(f"{where}.options: '{key}' is not modelled{near(key, OPTIONS)}")
            if not isinstance(value, str) or (OPTIONS[key] and value.lower() not in OPTIONS[key]):
                known = ", ".join(OPTIONS[key]) or "a text"
                self.refuse(f"{where}.options.{key} is {self.shown(value)}; known: {known}")
        replacing = [key for key in REPLACING if key in options]
        if replacing and replacing != ["partitionOverwriteMode"] and mode != "overwrite":
            self.refuse(f"{where}.options.{replacing[0]} needs write = 'overwrite'")
        if len(replacing) > 1:
            self.refuse(f"{where}.options has {' and '.join(replacing)}; one of them")
        if "replaceUsing" in options and "dataChange" in options:
            self.refuse(f"{where}.options: replaceUsing with dataChange is not modelled")
        query = self.get(table, where, "query", str)
        return Write(target, "append" if mode == "append" else "overwrite", query, options)

    def written(
        self, client: Client, name: str, where: str, schemas: Mapping[str, Schema]
    ) -> st.Statement:
        """The INSERT that does what a DataFrame write does, or a micro-batch."""
        write = client.write
        assert write is not None
        condition = write.options.get("replaceWhere")
        if condition is not None:
            into = f"INSERT INTO {write.table} REPLACE WHERE {condition} "
        else:
            into = f"INSERT {'INTO' if write.mode == 'append' else 'OVERWRITE'} {write.table} "
        query = self.sql(into + write.query, name, f"{where}.query", schemas, client.let)
        if not isinstance(query, st.Insert):
            self.refuse(f"{where}.query is '{write.query}'; a query is wanted")
        using = self.using(write, where, schemas[write.table])
        reads = WORD.findall(write.query.lower())
        if using and write.table.lower() in reads:
            self.refuse(
                f"{where}.query reads {write.table}, which with replaceUsing is not modelled: in which"
                " order Delta asks what was read is not determined"
            )
        return replace(query, data_change=write.data_change, stream=write.stream, using=using)

    def using(self, write: Write, where: str, schema: Schema) -> tuple[int, ...]:
        """The columns of replaceUsing."""
        text = write.options.get("replaceUsing")
        names = [] if text is None else [name.strip() for name in text.split(",")]
        indexes = [schema.index(name) for name in names]
        for name, index in zip(names, indexes, strict=True):
            if index is None:
                columns = [column.name for column in schema.columns]
                self.refuse(
                    f"{where}.options.replaceUsing: no column '{name}'{near(name, columns)}"
                )
        return tuple(dict.fromkeys(index for index in indexes if index is not None))

    def widen(
        self, table: Table, where: str, schemas: Mapping[str, Schema], *, grows: bool
    ) -> None:
        """Take note of the columns that a DataFrame write adds; ``grows`` False: others go."""
        write = self.write(table, where, schemas)
        if not write.merges:
            return
        if not grows:
            self.refuse(f"{where}: mergeSchema beside DROP or RENAME COLUMN is not modelled")
        if write.mode != "append" or not write.data_change:
            self.refuse(f"{where}: mergeSchema is modelled for appends that change data")
        if "let" in table:
            self.refuse(f"{where}: mergeSchema with a let is not modelled")
        known = self.wider.get(write.table, schemas[write.table])
        columns = list(known.columns)
        for column in self.more(write, where, schemas):
            index = known.index(column.name)
            if index is None:
                columns.append(column)
            elif columns[index].type != column.type:
                self.refuse(
                    f"{where} adds the column {column.name} as {column.type}, and another"
                    f" transaction as {columns[index].type}; one type is wanted"
                )
        if len(columns) > len(schemas[write.table].columns):
            self.wider[write.table] = replace(known, columns=tuple(columns))

    def more(self, write: Write, where: str, schemas: Mapping[str, Schema]) -> tuple[Column, ...]:
        """The columns of a query besides those that the table is declared with."""
        label = f"{self.place(where)}, query"
        read = read_statement(write.query, schemas, label)
        tree = sqlglot.parse_one(marked(write.query), read="databricks")
        stars = (isinstance(e, exp.Star) for s in tree.find_all(exp.Select) for e in s.expressions)
        if not isinstance(read, st.Read) or not isinstance(tree, exp.Query) or any(stars):
            self.refuse(f"{where}.query is '{write.query}'; with mergeSchema it names its columns")
        declared = schemas[write.table]
        items = items_of(read.query[0])
        if len(items) < len(declared.columns):
            self.refuse(
                f"{where}.query gives {len(items)} columns; with mergeSchema the"
                f" {len(declared.columns)} of {write.table} come first"
            )
        items = items[len(declared.columns) :]
        names = tree.named_selects[len(declared.columns) :]
        for name, item in zip(names, items, strict=True):
            taken = declared.index(name) is not None
            if taken or not NAME.fullmatch(name) or item == Const(None, "INT"):
                self.refuse(f"{where}.query: '{item}' is no new column; write VALUE AS NAME")
        if len({name.lower() for name in names}) < len(names):
            self.refuse(f"{where}.query adds a column twice")
        return tuple(Column(n, item.type) for n, item in zip(names, items, strict=True))

    def merged(
        self, client: Client, name: str, where: str, schemas: Mapping[str, Schema]
    ) -> st.Statement:
        """The INSERT that does what a DataFrame write with mergeSchema does."""
        write = client.write
        assert write is not None
        more = self.more(write, where, schemas)
        schema = schemas[write.table]
        wider = replace(schema, columns=(*schema.columns, *more))
        query = self.written(client, name, where, {**schemas, write.table: wider})
        assert isinstance(query, st.Insert)
        return replace(query, grows=more)

    def with_confs(
        self,
        statements: Mapping[str, st.Statement],
        clients: Mapping[str, Client],
        schedule: Schedule,
    ) -> dict[str, st.Statement]:
        """The statements as the confs of their sessions have them do what they do."""
        sessions: dict[str, dict[str, str]] = {}
        done = dict(statements)
        for name in dict.fromkeys(step.transaction for step in schedule.steps):
            client = clients.get(name, Client())
            kept = sessions.setdefault(client.session, {}) if client.session is not None else {}
            kept.update({a.key: a.value for a in client.before if isinstance(a, SetConf)})
            confs = kept | dict(client.conf)
            if client.write is not None and "partitionOverwriteMode" in client.write.options:
                confs[OVERWRITE_MODE] = client.write.options["partitionOverwriteMode"]
            statement = statements[name]
            if not isinstance(statement, st.Insert) or not statement.overwrite or statement.stream:
                continue
            dynamic = confs.get(OVERWRITE_MODE, "static").lower() == "dynamic"
            if dynamic and (statement.where is not None or statement.using):
                self.refuse(
                    f"transactions.{name}: a dynamic partition overwrite that names what it"
                    " replaces is not modelled"
                )
            done[name] = replace(statement, dynamic=dynamic)
        return done
