"""Litmus tests: tables, transactions with their clients, a schedule, and expectations per engine.

A client is what surrounds the statement of a transaction: its session, its configuration, and
values that it read outside the transaction. Functions write tests as litmus files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.display import Command, ReadableRepr
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
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Read, Statement
    from isolitmus.model.sql.values import Rows, Value


@dataclass(frozen=True, slots=True, repr=False)
class CacheTable(Command):
    """Statement ``CACHE TABLE table``, or ``UNCACHE TABLE table`` if ``keep`` is False.

    A cache belongs to all sessions of the JVM (SharedState.cacheManager). Every statement that
    changes the table refreshes it at its end (recacheByPlan, in DeltaTableV2, DeleteCommand,
    UpdateCommand and MergeIntoCommand), except TRUNCATE, which removes it from the cache. A query
    of a cached table therefore sees its newest version, as without a cache. But the plan no longer
    contains a scan of the table that the transaction could track.
    """

    sql: str
    table: str
    keep: bool


@dataclass(frozen=True, slots=True, repr=False)
class SetConf(Command):
    """Statement ``SET key = value``, for this transaction and later ones in its session."""

    sql: str
    key: str
    value: str


Aside = CacheTable | SetConf
"""Statement that a client runs in its session outside the transaction."""


@dataclass(frozen=True, slots=True)
class DataFrameWrite:
    """Write by the DataFrame API, ``spark.sql(query).write.mode(mode).options(…)``, into a table.

    It may also be a micro-batch of a streaming query, in output mode append or complete, whose rows
    ``query`` gives.
    """

    table: str
    """Target table."""
    mode: Literal["append", "overwrite", "complete"]
    """Mode of the writer, or output mode of the stream."""
    query: str
    """SQL query whose rows are written."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the writer, as written."""
    stream: bool = False
    """True if it is a micro-batch of a streaming query."""

    @property
    def merges(self) -> bool:
        """True if it adds columns that the table lacks (``mergeSchema``)."""
        return self.options.get("mergeSchema", "false").lower() == "true"

    @property
    def data_change(self) -> bool:
        """True if it is marked as changing data (``dataChange``)."""
        return self.options.get("dataChange", "true").lower() == "true"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Client of one transaction: everything except its statement."""

    before: tuple[Aside, ...] = ()
    """Statements that it runs in its session before the transaction."""
    let: Mapping[str, Read] = field(default_factory=dict)
    """Queries whose results it reads into parameters: ``:name`` in its SQL is then the literal
    value.
    """
    conf: Mapping[str, str] = field(default_factory=dict)
    """Configuration of its own."""
    session: str | None = None
    """Session that it shares with other clients; None if it has a session of its own."""
    write: DataFrameWrite | None = None
    """DataFrame write that is the transaction, if any."""
    app: tuple[str, int] | None = None
    """Application id and version of an idempotent write; of a micro-batch, the streaming query and
    the batch number.
    """
    protocol: str | None = None
    """Name of the commit protocol of its own writer, if it differs from the run's."""
    commit_of: str | None = None
    """Transaction whose statement makes this commit before its own; None for a whole statement."""
    scan: str | tuple[str, ...] = ()
    """Indexes that its statements scan: one for every scan of its table, or one for each scan in
    order.
    """
    each: bool = False
    """True if its subqueries are evaluated again for each row, even if they do not depend on it."""

    @property
    def asks(self) -> bool:
        """True if the client does something of its own before the transaction starts."""
        return bool(self.before or self.let)


@dataclass(frozen=True, slots=True)
class Expectation(ReadableRepr):
    """Expectation for one protocol or engine; empty or None fields expect nothing."""

    outcome: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Accepted outcomes of each transaction (``aborted`` is any conflict)."""
    error_class: Mapping[str, str] = field(default_factory=dict)
    """Error class of each transaction that fails."""
    log: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Fields of each transaction's commit in the log, by key."""
    reads: Mapping[str, Rows] = field(default_factory=dict)
    """Rows that each reader gets."""
    emitted: Mapping[str, Rows] = field(default_factory=dict)
    """Rows that the scans of each transaction emit, in order."""
    waits: Mapping[str, tuple[str, ...]] | None = None
    """Transactions that each transaction waits for, in order; a missing one waits for none."""
    tables: Mapping[str, Rows] = field(default_factory=dict)
    """Rows of each table after the last commit."""
    versions: Mapping[int, Mapping[str, Rows]] = field(default_factory=dict)
    """Rows of each table at other versions, by number."""
    breaks: tuple[str, ...] | None = None
    """Postconditions that are violated at the end."""
    serial: tuple[str, ...] | None = None
    """Serial orders of the writers that produce the final table."""
    holds: tuple[str, ...] = ()
    """Levels that admit the run."""
    fails: tuple[str, ...] = ()
    """Levels that forbid the run."""

    def __repr__(self) -> str:
        return "\n".join(expectation_lines(self)) or "nothing is expected"


@dataclass(frozen=True, slots=True)
class Litmus(ReadableRepr):
    """Litmus test: one or several tables, transactions and a schedule, which an engine runs.

    Its text is a litmus file that parses to the same test.

    Examples
    --------
    >>> from isolitmus.specs.files.catalogue import litmus
    >>> print(repr(litmus("insert-last")))  # doctest: +ELLIPSIS
    # insert-last.toml
    title    = ...
    """

    name: str
    """Name of its file."""
    title: str
    """Description in one line."""
    source: str
    """Source: a paper, or a place in Delta's code."""
    tables: Mapping[str, Schema]
    """Declared schemas of the tables, by name."""
    init: tuple[Statement, ...]
    """Statements before the schedule, one commit each; version 0 is the state after the last."""
    transactions: Mapping[str, Statement]
    """Statement of each transaction, by name."""
    schedule: Schedule
    """Order of begins and commits."""
    expect: Mapping[str, Expectation] = field(default_factory=dict)
    """Expectations, by protocol or engine."""
    tags: tuple[str, ...] = ()
    """Tags that select it."""
    text: str = ""
    """Text of the file as it was read."""
    path: Path | None = None
    """Path of the file; None if the test was generated."""
    clients: Mapping[str, ClientSettings] = field(default_factory=dict)
    """Clients of the transactions that are more than a statement."""
    format: str = field(kw_only=True)
    """Name of the format of its statements (``model.format``)."""
    postconditions: Mapping[str, str] = field(default_factory=dict)
    """Conditions at the end, by name: queries that must return no row."""

    @property
    def opaque(self) -> frozenset[str]:
        """Tables whose rows cannot be read, because their files do not exist."""
        from isolitmus.model.sql.raw_transaction import Raw

        raw = [t for t in self.transactions.values() if isinstance(t, Raw)]
        listed = [name for name, schema in self.tables.items() if schema.files]
        return frozenset((*listed, *(t.target for t in raw if t.adds)))

    @property
    def raw(self) -> bool:
        """True if some transaction is a raw one, which no SQL may follow."""
        from isolitmus.model.sql.raw_transaction import Raw

        return any(isinstance(t, Raw) for t in self.transactions.values())

    def client(self, transaction: str) -> ClientSettings:
        """Return the client of a transaction."""
        return self.clients.get(transaction, ClientSettings())

    def commits_of(self, transaction: str) -> tuple[str, ...]:
        """Return the commits of the statement of a transaction, in their order.

        They are transactions, and the last one has the name of the statement.
        """
        whole = self.client(transaction).commit_of or transaction
        earlier = {name for name, client in self.clients.items() if client.commit_of == whole}
        if not earlier:
            return (whole,)
        scheduled = dict.fromkeys(step.transaction for step in self.schedule.steps)
        return (*(name for name in scheduled if name in earlier), whole)

    def __str__(self) -> str:
        if self.raw:  # raw transactions are never generated: they come from files
            return self.text
        return "\n".join(litmus_lines(self)) + "\n"

    def __repr__(self) -> str:
        return _file(self)


@dataclass(frozen=True, slots=True)
class HistoryTest(ReadableRepr):
    """Abstract history with the levels that are expected to admit and to forbid it.

    Examples
    --------
    >>> from isolitmus.specs import litmus
    >>> litmus("history-write-skew").holds[:2]
    ('snapshot-isolation', 'prefix-consistency')
    """

    name: str
    """Name in results and on the command line."""
    title: str
    """Description in one sentence."""
    source: str
    """Paper or place in code that it is from."""
    history: History
    """History that is checked."""
    holds: tuple[str, ...] = ()
    """Levels that admit it."""
    fails: tuple[str, ...] = ()
    """Levels that forbid it."""
    tags: tuple[str, ...] = ()
    """Tags that select it."""
    text: str = ""
    """Text of the file, as its author wrote it."""
    path: Path | None = None
    """Path of the file."""

    def __str__(self) -> str:
        return "\n".join(history_test_lines(self)) + "\n"

    def __repr__(self) -> str:
        return _file(self)


def _file(test: Litmus | HistoryTest) -> str:
    """Return the file, with its name in a comment, so that it can be copied from the output."""
    return f"# {test.name}.toml\n{str(test).rstrip()}"


def litmus_lines(test: Litmus) -> Iterator[str]:
    """Yield the lines of a litmus file: title, schedule, tables, transactions, expectations.

    For transactions in SQL, not for raw transactions.
    """
    yield from _head(test)
    if test.format != "delta":  # the format of a file that names none
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
    """Yield the lines of a history test: title, history, levels."""
    yield from _head(test)
    yield ""
    yield "[history]"
    yield from history_lines(test.history)
    if test.holds or test.fails:
        yield ""
        yield "[expect]"
        yield from _levels(test)


def history_lines(history: History) -> Iterator[str]:
    """Yield the lines of the ``[history]`` table.

    Examples
    --------
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
    """Yield the lines of title, source and tags."""
    yield f"title    = {quoted(test.title)}"
    if test.source:
        yield f"source   = {quoted(test.source)}"
    if test.tags:
        yield f"tags     = {toml_list(map(quoted, test.tags))}"


def _transaction(statement: Statement, client: ClientSettings) -> str:
    """Return a transaction in TOML: its SQL, or an inline table if its client has settings."""
    from isolitmus.model.sql.statement import Block

    if client.commit_of is not None:
        return inline_table({"commit_of": quoted(client.commit_of)})
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
    return inline_table({**table, **_settings(client)})


def _settings(client: ClientSettings) -> dict[str, str]:
    """Return what surrounds the statement of a client, in TOML, by key."""
    table = {}
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
    return table


def _table(schema: Schema, init: list[str]) -> Iterator[str]:
    """Yield the lines of a table: its schema, then its init statements."""
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
    """Yield the lines of a table ``[expect.WHO]``."""
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
    """Return each single name as a string, several names as a list."""
    return {
        key: quoted(names[0]) if len(names) == 1 else toml_list(map(quoted, names))
        for key, names in by.items()
    }


def _contents(tables: Mapping[str, Rows]) -> dict[str, str]:
    return {name: toml_rows(table) for name, table in tables.items()}
