"""Litmus tests: tables, transactions with their clients, a schedule, expectations.

A litmus test: a table, transactions in SQL, a schedule, and what is expected of each engine.

What the client of a transaction does around its statement: its session, its confs, what it read
and kept outside the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.defaults import DELTA
from isolitmus.model.delta.raw_transaction import Raw
from isolitmus.model.display import Command, ReadableRepr
from isolitmus.model.sql.statement import Block
from isolitmus.model.toml_text import (
    inline_table,
    is_bare_key,
    quoted,
    quoted_table,
    toml_list,
    toml_rows,
    toml_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from isolitmus.model.history import History
    from isolitmus.model.schedule import Schedule
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.statement import Read, Statement
    from isolitmus.model.sql.values import Rows, Value

__all__ = [
    "Aside",
    "CacheTable",
    "ClientSettings",
    "DataFrameWrite",
    "Expectation",
    "HistoryTest",
    "Litmus",
    "SetConf",
]


@dataclass(frozen=True, slots=True, repr=False)
class CacheTable(Command):
    """``CACHE TABLE table``; with ``keep`` False ``UNCACHE TABLE table``.

    A cache belongs to all sessions of the JVM (SharedState.cacheManager), and every statement that
    changes the table fills it anew when it ends (recacheByPlan, in DeltaTableV2, DeleteCommand,
    UpdateCommand and MergeIntoCommand), but for TRUNCATE, which takes it out of the cache. So
    whoever queries a cached table sees its newest version, as without a cache. But the plan has no
    scan of the table any more that the transaction could notice.
    """

    sql: str
    table: str
    keep: bool


@dataclass(frozen=True, slots=True, repr=False)
class SetConf(Command):
    """``SET key = value``, for this transaction and those that come after it in its session."""

    sql: str
    key: str
    value: str


Aside = CacheTable | SetConf
"""A statement that a client runs in its session, outside the transaction."""


@dataclass(frozen=True, slots=True)
class DataFrameWrite:
    """A write by the DataFrame API: ``spark.sql(query).write.mode(mode).options(…)`` into a table;
    or a micro-batch of a streaming query, in output mode append or complete, that has what
    ``query`` gives.
    """

    table: str
    """The table that is written into."""
    mode: Literal["append", "overwrite", "complete"]
    """Of the writer, or the output mode of the stream."""
    query: str
    """Whose rows are written, in SQL."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the writer, as they are written."""
    stream: bool = False
    """It is a micro-batch of a streaming query."""

    @property
    def merges(self) -> bool:
        """Whether it adds the columns that the table lacks (``mergeSchema``)."""
        return self.options.get("mergeSchema", "false").lower() == "true"

    @property
    def data_change(self) -> bool:
        """Whether it says that it changes data (``dataChange``)."""
        return self.options.get("dataChange", "true").lower() == "true"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """What the client of one transaction does beside its statement."""

    before: tuple[Aside, ...] = ()
    """What it runs in its session before the transaction."""
    let: Mapping[str, Read] = field(default_factory=dict)
    """The queries that it reads into parameters: ``:name`` in its SQL is then the literal value."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Its own confs."""
    session: str | None = None
    """The session that it shares with others; None: one of its own."""
    write: DataFrameWrite | None = None
    """The DataFrame write that the transaction is, if it is one."""
    app: tuple[str, int] | None = None
    """If it is idempotent, the application and its version: of a micro-batch the streaming query
    and the number.
    """
    protocol: str | None = None
    """The name of the commit check of its own writer, if another one than the run's writes it."""
    scan: str | tuple[str, ...] = ()
    """By which indexes its statements go: one for every scan of its table, or one for each scan in
    order.
    """
    each: bool = False
    """Whether its subqueries are evaluated for each row anew, also those that do not depend on
    it.
    """

    @property
    def asks(self) -> bool:
        """Whether it does something of its own before the transaction starts."""
        return bool(self.before or self.let)


@dataclass(frozen=True, slots=True)
class Expectation(ReadableRepr):
    """What one protocol or engine is expected to do; what is empty or None is not expected."""

    outcome: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each transaction the outcomes that will do (``aborted`` is any conflict)."""
    error_class: Mapping[str, str] = field(default_factory=dict)
    """For each transaction that fails, the class of the error."""
    log: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """For each transaction what its commit says of itself, by key."""
    reads: Mapping[str, Rows] = field(default_factory=dict)
    """The rows that each reader gets."""
    emitted: Mapping[str, Rows] = field(default_factory=dict)
    """The rows that the scans of each transaction give, in order."""
    waits: Mapping[str, tuple[str, ...]] | None = None
    """For whom each transaction waits, in order; of one that is not among them: for nobody."""
    tables: Mapping[str, Rows] = field(default_factory=dict)
    """The rows of each table after the last commit."""
    versions: Mapping[int, Mapping[str, Rows]] = field(default_factory=dict)
    """The same at other versions, by number."""
    breaks: tuple[str, ...] | None = None
    """The postconditions that do not hold at the end."""
    serial: tuple[str, ...] | None = None
    """The serial orders of the writers that explain the final table."""
    holds: tuple[str, ...] = ()
    """The levels that allow the run."""
    fails: tuple[str, ...] = ()
    """The levels that forbid it."""

    def __repr__(self) -> str:
        return "\n".join(expectation_lines(self)) or "nothing is expected"


@dataclass(frozen=True, slots=True)
class Litmus(ReadableRepr):
    """A table (or several), transactions and a schedule: what an engine carries out.

    As a text it is a litmus file, which gives the test back when it is read.

    >>> from isolitmus.specs.files.catalogue import litmus
    >>> print(repr(litmus("insert-last")))  # doctest: +ELLIPSIS
    # insert-last.toml
    title    = ...
    """

    name: str
    """The name of its file."""
    title: str
    """What it shows, in a line."""
    source: str
    """Where it comes from: a paper, a place in Delta's source."""
    tables: Mapping[str, Schema]
    """What the tables are declared to be, by name."""
    init: tuple[Statement, ...]
    """Run before the schedule, each one commit; version 0 is the state after the last."""
    transactions: Mapping[str, Statement]
    """Their statements, by name."""
    schedule: Schedule
    """Who starts and who commits when."""
    expect: Mapping[str, Expectation] = field(default_factory=dict)
    """What is expected, by protocol or engine."""
    tags: tuple[str, ...] = ()
    """By which it is picked."""
    text: str = ""
    """The file as it was read."""
    path: Path | None = None
    """Where the file is; None: it was made up."""
    clients: Mapping[str, ClientSettings] = field(default_factory=dict)
    """Of the transactions that are more than a statement, what else they are."""
    format: str = DELTA
    """The name of what its statements are for (``model.format``)."""
    postconditions: Mapping[str, str] = field(default_factory=dict)
    """What is to hold at the end: queries that are to give no row, by name."""

    @property
    def opaque(self) -> frozenset[str]:
        """The tables whose rows nobody can read: they have files that are not there."""
        raw = [t for t in self.transactions.values() if isinstance(t, Raw)]
        listed = [name for name, schema in self.tables.items() if schema.files]
        return frozenset((*listed, *(t.target for t in raw if t.adds)))

    @property
    def raw(self) -> bool:
        """Whether some transaction is a raw one, which no SQL can follow."""
        return any(isinstance(t, Raw) for t in self.transactions.values())

    def client(self, transaction: str) -> ClientSettings:
        """The client of a transaction."""
        return self.clients.get(transaction, ClientSettings())

    def __str__(self) -> str:
        if self.raw:  # nobody makes up raw transactions: they come from files
            return self.text
        return "\n".join(litmus_lines(self)) + "\n"

    def __repr__(self) -> str:
        return _file(self)


@dataclass(frozen=True, slots=True)
class HistoryTest(ReadableRepr):
    """An abstract history with the levels that it is expected to satisfy and to break."""

    name: str
    """What it is called in answers and on the command line."""
    title: str
    """What it shows, in a sentence."""
    source: str
    """The paper, or the place in code, that it is from."""
    history: History
    """What is judged."""
    holds: tuple[str, ...] = ()
    """The levels that it satisfies."""
    fails: tuple[str, ...] = ()
    """The levels that it breaks."""
    tags: tuple[str, ...] = ()
    """Words by which it is found."""
    text: str = ""
    """The file, as its author wrote it."""
    path: Path | None = None
    """Where the file is."""

    def __str__(self) -> str:
        return "\n".join(history_test_lines(self)) + "\n"

    def __repr__(self) -> str:
        return _file(self)


def _file(test: Litmus | HistoryTest) -> str:
    """The file, with its name in a comment, so that it can be copied from where it is printed."""
    return f"# {test.name}.toml\n{str(test).rstrip()}"


def litmus_lines(test: Litmus) -> Iterator[str]:
    """Title, schedule, tables, transactions, expectations, in that order; of SQL, not of raw
    transactions.
    """
    yield from _head(test)
    if test.format != DELTA:
        yield f"format   = {quoted(test.format)}"
    yield f"schedule = {quoted(str(test.schedule))}"
    for name, schema in test.tables.items():
        yield ""
        yield "[table]" if list(test.tables) == ["t"] else f"[tables.{name}]"
        init = [s.sql for s in test.init if getattr(s, "target", None) == name]
        yield from _table(schema, init)
    yield ""
    yield "[transactions]"
    width = max(map(len, test.transactions), default=0)
    for name, statement in test.transactions.items():
        yield f"{name:<{width}} = {_transaction(statement, test.client(name))}"
    if test.postconditions:
        yield ""
        yield "[postconditions]"
        width = max(map(len, test.postconditions))
        for name, query in test.postconditions.items():
            yield f"{name:<{width}} = {quoted(query)}"
    for who, expect in test.expect.items():
        yield ""
        yield f"[expect.{who if is_bare_key(who) else quoted(who)}]"
        yield from expectation_lines(expect)


def history_test_lines(test: HistoryTest) -> Iterator[str]:
    """Title, history, levels, in that order."""
    yield from _head(test)
    yield ""
    yield "[history]"
    yield from history_lines(test.history)
    if test.holds or test.fails:
        yield ""
        yield "[expect]"
        yield from _levels(test)


def history_lines(history: History) -> Iterator[str]:
    """The keys of the ``[history]`` table.

    >>> from isolitmus.model.history import History
    >>> list(history_lines(History.parse("r1(x0) w1(x1) c1")))
    ['T1 = "r(x0) w(x1)"']
    """
    for key, of in history.to_table().items():
        if isinstance(of, dict):
            text = inline_table(
                {name: toml_list(map(quoted, members)) for name, members in of.items()}
            )
        else:
            text = quoted(of) if isinstance(of, str) else toml_list(map(quoted, of))
        yield f"{key} = {text}"


def _head(test: Litmus | HistoryTest) -> Iterator[str]:
    yield f"title    = {quoted(test.title)}"
    if test.source:
        yield f"source   = {quoted(test.source)}"
    if test.tags:
        yield f"tags     = {toml_list(map(quoted, test.tags))}"


def _transaction(statement: Statement, client: ClientSettings) -> str:
    sql = quoted(statement.sql)
    if isinstance(statement, Block) and not (statement.single and len(statement.statements) == 1):
        sql = toml_list(quoted(part.sql) for part in statement.statements)
    if client == ClientSettings():
        return sql
    table = {}
    if client.write is None:
        table["sql"] = sql
    else:
        table["stream" if client.write.stream else "write"] = quoted(client.write.mode)
        table["table"] = quoted(client.write.table)
        table["query"] = quoted(client.write.query)
        if client.write.options:
            table["options"] = quoted_table(client.write.options)
    if client.before:
        table["before"] = toml_list(quoted(aside.sql) for aside in client.before)
    if client.let:
        table["let"] = quoted_table({name: read.sql for name, read in client.let.items()})
    if client.conf:
        table["conf"] = quoted_table(client.conf)
    if client.app is not None:
        table["app"] = f"{{ id = {quoted(client.app[0])}, version = {client.app[1]} }}"
    if client.session is not None:
        table["session"] = quoted(client.session)
    if client.protocol is not None:
        table["protocol"] = quoted(client.protocol)
    if client.scan:
        one = client.scan
        table["scan"] = quoted(one) if isinstance(one, str) else toml_list(map(quoted, one))
    if client.each:
        table["subqueries"] = quoted("each")
    return inline_table(table)


def _table(schema: Schema, init: list[str]) -> Iterator[str]:
    yield f"columns        = {quoted(schema.ddl())}"
    if schema.partitioned_by:
        yield f"partitioned_by = {toml_list(map(quoted, schema.partitioned_by))}"
    if schema.clustered_by:
        yield f"clustered_by   = {toml_list(map(quoted, schema.clustered_by))}"
    if schema.properties:
        yield f"properties     = {quoted_table(schema.properties)}"
    if schema.parquet:
        yield f"parquet        = {toml_rows(schema.parquet)}"
    elif not schema.exists:
        yield "exists         = false"
    if schema.indexes:
        orders = {index.name: quoted(index.text(schema.columns)) for index in schema.indexes}
        yield f"index          = {inline_table(orders)}"
    if schema.rows_per_file is not None:
        yield f"rows_per_file  = {schema.rows_per_file}"
    if init:
        yield f"init           = {toml_list(map(quoted, init))}"


def expectation_lines(expect: Expectation) -> Iterator[str]:
    """The keys of a table ``[expect.WHO]``."""
    if expect.outcome:
        yield f"outcome  = {inline_table(_names(expect.outcome))}"
    if expect.error_class:
        yield f"error_class = {inline_table({n: quoted(c) for n, c in expect.error_class.items()})}"
    if expect.log:
        log = {
            n: inline_table({k: toml_value(v) for k, v in e.items()}) for n, e in expect.log.items()
        }
        yield f"log      = {inline_table(log)}"
    if expect.reads:
        yield f"reads    = {inline_table(_contents(expect.reads))}"
    if expect.emitted:
        yield f"emitted  = {inline_table(_contents(expect.emitted))}"
    if expect.waits is not None:
        yield f"waits    = {inline_table(_names(expect.waits))}"
    if expect.tables:
        yield f"tables   = {inline_table(_contents(expect.tables))}"
    if expect.versions:
        versions = {
            str(k): inline_table(_contents(tables)) for k, tables in expect.versions.items()
        }
        yield f"versions = {inline_table(versions)}"
    if expect.breaks is not None:
        yield f"breaks   = {toml_list(map(quoted, expect.breaks))}"
    if expect.serial is not None:
        yield f"serial   = {toml_list(map(quoted, expect.serial))}"
    yield from _levels(expect)


def _levels(expect: Expectation | HistoryTest) -> Iterator[str]:
    for key, names in (("holds", expect.holds), ("fails", expect.fails)):
        if names:
            yield f"{key:<8} = {toml_list(map(quoted, names))}"


def _names(by: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """One name as a text, others as a list."""
    return {
        key: quoted(names[0]) if len(names) == 1 else toml_list(map(quoted, names))
        for key, names in by.items()
    }


def _contents(tables: Mapping[str, Rows]) -> dict[str, str]:
    return {name: toml_rows(table) for name, table in tables.items()}
