"""The engine delta: litmus tests executed by PySpark with Delta Lake.

Each transaction has a SparkSession of its own, or one that it shares with others. Its statement is
the author's text with literals in the place of parameters. ``x.start`` runs the statement up to its
commit, ``x.commit`` releases the commit and waits for the end, ``x`` alone runs the whole statement
without holding it. The details of commits are read from the log.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.delta.jvm import class_archive
from isolitmus.conformance.delta.parking import Parking, version_read_by
from isolitmus.conformance.delta.session import TableCache, open_session
from isolitmus.conformance.delta.table_versions import CommitHistory, plain_row, rows_by_version
from isolitmus.conformance.delta.tables import PROTOCOLS, place_tables
from isolitmus.conformance.delta.transaction_outcome import (
    committed_transaction,
    failed_transaction,
    read_failure,
    report_jvm_failure,
)
from isolitmus.conformance.java import find_java
from isolitmus.conformance.workers import run_interruptibly
from isolitmus.model.engine import Engine, RunsTests
from isolitmus.model.errors import EngineUnavailable, LitmusError
from isolitmus.model.litmus import CacheTable, HistoryTest, Litmus
from isolitmus.model.run import Run, TransactionRun
from isolitmus.model.spec import Spec
from isolitmus.model.sql.raw_transaction import Raw
from isolitmus.model.sql.statement import Read
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs import litmus as load_litmus
from isolitmus.specs.logs.delta_log import latest_version
from isolitmus.specs.sql.binding import bind_parameters, scalar_value
from isolitmus.specs.sql.parameters import bind_text, place_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.conformance.delta.parking import HeldTransaction, Phase
    from isolitmus.conformance.delta.session import Session
    from isolitmus.conformance.delta.tables import EngineTables
    from isolitmus.conformance.workers import Interruption
    from isolitmus.model.engine import RunsTransactions
    from isolitmus.model.litmus import DataFrameWrite
    from isolitmus.model.schedule import Action, Step
    from isolitmus.model.sql.statement import Statement
    from isolitmus.model.sql.values import Rows, Value
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

WRITE = "spark.databricks.delta.write"
"""Prefix of the confs of idempotent writes (DeltaSQLConf.scala)."""


class SparkClients:
    """SparkSessions of the transactions of a litmus test, and the statements that run in them."""

    def __init__(self, litmus: Litmus, tables: EngineTables, inits: Sequence[int]) -> None:
        self._litmus = litmus
        self._tables = tables
        self._inits = inits
        self._open: dict[str, Any] = {}
        self._shared: dict[str, Any] = {}
        self._confs: dict[str, dict[str, str | None]] = {}
        self._values: dict[str, dict[str, Value]] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether the client of a transaction has been opened."""
        return name in self._open

    def open(self, name: str) -> None:
        """Open the session of a transaction's client.

        In a shared session, the confs of the client before it are undone.
        """
        session = self._litmus.client(name).session
        if session is None:
            self._open[name] = self._tables.client()
            return
        spark = self._shared.setdefault(session, None) or self._tables.client()
        self._open[name] = self._shared[session] = spark
        for key, value in self._confs.pop(session, {}).items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)

    def asking(self, name: str) -> Callable[[], None]:
        """Return a callable that does what the client runs and reads before the transaction."""
        spark, client = self._open[name], self._litmus.client(name)

        def ask() -> None:
            for aside in client.before:
                spark.sql(aside.sql).collect()
            self._values[name] = {
                parameter: scalar_value(query.sql, self._rows(spark, query.sql))
                for parameter, query in client.let.items()
            }

        return ask

    def statement(self, name: str) -> Callable[[], Rows | None]:
        """Set the confs of a transaction and return a callable that runs its statement."""
        spark, client = self._open[name], self._litmus.client(name)
        statement = self._litmus.transactions[name]
        confs = {**self._tables.layout(target_table(statement)), **client.conf}
        stream = client.write is not None and client.write.stream
        if client.app is not None and not stream:
            app, version = client.app
            confs |= {f"{WRITE}.txnAppId": app, f"{WRITE}.txnVersion": str(version)}
        if client.session is not None:
            self._confs[client.session] = {key: spark.conf.get(key, None) for key in confs}
        for key, value in confs.items():
            spark.conf.set(key, value)
        values = self._values.get(name, {})
        if isinstance(statement, Raw):
            return self._tables.raw_body(statement, spark)
        if client.write is not None:
            query = self._placed(bind_text(client.write.query, values))
            options = {k: bind_text(value, values) for k, value in client.write.options.items()}
            write = replace(client.write, query=query, options=options)
            return _write(write, client.app, spark, self._tables)
        bound_statement = bind_parameters(statement, values)
        return statement_body(
            replace(bound_statement, sql=self._placed(bound_statement.sql)), spark
        )

    def _placed(self, sql: str) -> str:
        return place_versions(sql, self._inits, self._tables.alias)

    def _rows(self, spark: Any, sql: str) -> Rows:
        return tuple(map(plain_row, spark.sql(self._placed(sql)).collect()))

    def close(self) -> None:
        """Uncache the tables that the clients cached; a cache belongs to the whole JVM."""
        for name, spark in self._open.items():
            for aside in self._litmus.client(name).before:
                if isinstance(aside, CacheTable):
                    spark.sql(f"UNCACHE TABLE IF EXISTS `{aside.table}`").collect()


def target_table(statement: Statement) -> str | None:
    """Return the table that a statement writes; None for a query."""
    return None if isinstance(statement, Read) else statement.target


def statement_body(statement: Statement, spark: Any) -> Callable[[], Rows | None]:
    """Return a callable that runs the statement and returns the rows of a query, else None."""

    def run() -> Rows | None:
        rows = spark.sql(statement.sql).collect()
        return sort_rows(map(plain_row, rows)) if isinstance(statement, Read) else None

    return run


def _write(
    write: DataFrameWrite, app: tuple[str, int] | None, spark: Any, tables: EngineTables
) -> Callable[[], Rows | None]:
    """Return a callable that writes into the table's path by the DataFrame API.

    Columns are matched by position, as in INSERT; additional columns keep their own names. A
    streaming write adds a micro-batch with the query and the number of ``app``.
    """
    schema = tables.schemas[write.table]
    names = [c.name for c in schema.columns]
    columns = [f"CAST(`{c.name}` AS {c.type}) AS `{c.name}`" for c in schema.columns]

    def run() -> None:
        query = spark.sql(write.query)
        more = query.columns[len(names) :] if write.merges else []
        frame = query.toDF(*names, *more).selectExpr(*columns, *(f"`{name}`" for name in more))
        if write.stream and app is not None:
            tables.add_batch(frame, write, app, spark)
            return
        writer = frame.write.format("delta").mode(write.mode)
        writer.options(**write.options).save(str(tables.paths[write.table]))

    return run


ENGINE = "delta"
"""Name of this engine on the command line and in results."""
LOADING = ("reorder", "merge-by-source", "restore-loses")
"""Litmus tests that load the classes that most others need."""
AT_ONCE = 3
"""Default number of concurrent replays, each with its own tables; a replay mostly waits for Spark.
"""


def replay(
    litmus: Litmus | NameOrPath,
    protocol: SpecLike,
    session: Session,
    *,
    seconds: float = 180.0,
    logs: Path | None = None,
) -> Run:
    """Execute the schedule of a litmus test on real tables.

    No table, thread or parked statement is left behind, whatever happens.

    Parameters
    ----------
    litmus : Litmus, str or Path
        Litmus test, or its name or path.
    protocol : SpecLike
        Protocol, whose isolation level the tables get.
    session : Session
        Session with Delta.
    seconds : float
        Time limit of each step. The first step of a cold session can take 20 s on a loaded machine.
    logs : Path, optional
        Folder to which the logs of the tables are copied at the end, one folder for each table's
        name.

    Returns
    -------
    Run
        What a client could observe: outcomes, versions, and the rows of every version.

    Raises
    ------
    UnknownName
        Delta does not have the protocol.
    LitmusError
        The test is an abstract history, which has no statements, or an init statement fails.
    TimeLimit
        A step took too long.
    EngineUnavailable
        The JVM ended.
    EngineFailed
        Delta fails outside the transactions. A transaction that fails is an outcome.

    Examples
    --------
    >>> def test_reorder(delta_session):
    ...     done = replay("reorder", "delta-write-serializable", delta_session)
    ...     assert done.transactions["delete"].outcome == "committed"
    """
    test = load_litmus(litmus)
    if isinstance(test, HistoryTest):
        raise LitmusError(f"{test.name} is an abstract history, without statements")
    name = protocol.name if isinstance(protocol, Spec) else str(protocol)
    DELTA.refuse_unable(name)
    level = PROTOCOLS[name]

    def carry_out(interruption: Interruption) -> Run:
        with (
            report_jvm_failure(test.name, "outside its transactions", session.jvm),
            place_tables(test, session) as tables,
            Parking(session, interruption, seconds) as parking,
        ):
            inits = _filled(test, tables, level, parking, session)
            chronicle = CommitHistory(tables.paths)
            with _others(test, tables, chronicle) as others:
                replaying = _SparkReplay(
                    test, tables, parking, session, inits, chronicle=chronicle, others=others
                )
                run = replaying.run(name)
            if logs is not None:
                tables.keep_logs(logs)
            return run

    return run_interruptibly(carry_out)


@contextmanager
def _opened() -> Iterator[RunsTests]:
    with open_session() as session:
        yield open_delta(session)


def open_delta(session: Session) -> RunsTests:
    """Return the engine in an open session."""
    return RunsTests(session.version, lambda litmus, spec: replay(litmus, spec.name, session))


def _install() -> Path:
    """Write the archive of the classes that a session loads (``class_archive``); return its path.

    An existing archive is kept. It takes a minute; raises EngineUnavailable if it fails.
    """
    place = class_archive(find_java())
    if place.is_file():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as beside:
            made = Path(beside) / place.name
            with open_session(archive=made) as session:
                for test in map(load_litmus, LOADING):
                    assert isinstance(test, Litmus)
                    replay(test, "delta-serializable", session)
            made.replace(place)
    except OSError as error:
        raise EngineUnavailable(
            f"cannot create the archive of Spark's classes: {error.strerror or error}"
        ) from None
    return place


DELTA = Engine(
    ENGINE,
    "PySpark with Delta Lake: real writes, parked before their commits",
    _opened,
    product="PySpark with Delta",
    format="delta",
    protocols=tuple(PROTOCOLS),
    at_once=AT_ONCE,
    hosts=True,
    install=_install,
)


@contextmanager
def _others(
    litmus: Litmus, tables: EngineTables, chronicle: CommitHistory
) -> Iterator[Mapping[str, RunsTransactions]]:
    """Yield the executors of the transactions of other writers, by transaction name."""
    from isolitmus.conformance.engines import joinable_engine

    under = {name: c.protocol for name, c in litmus.clients.items() if c.protocol is not None}
    with ExitStack() as stack:
        of: dict[str, RunsTransactions] = {}
        for protocol in dict.fromkeys(under.values()):
            join = joinable_engine(protocol).join
            assert join is not None
            of[protocol] = stack.enter_context(join(litmus, protocol, tables.paths, chronicle))
        yield {name: of[protocol] for name, protocol in under.items()}


def _filled(
    litmus: Litmus, tables: EngineTables, level: str, parking: Parking, session: Session
) -> tuple[int, ...]:
    """Create the tables and run the init statements, or copy the tables that they left before.

    Returns the table version after each init statement, in Delta's own numbers.
    """
    key = None if tables.key is None else (level, tables.key)
    if key in session.kept:
        tables.copy(session.kept[key].folder)
        return session.kept[key].versions
    tables.create(level)
    versions = _initialise(litmus, tables, parking, session)
    if key is not None:
        folder = Path(tempfile.mkdtemp(prefix="kept_", dir=session.directory))
        tables.keep(folder)
        session.kept[key] = TableCache(folder, versions)
    return versions


def _initialise(
    litmus: Litmus, tables: EngineTables, parking: Parking, session: Session
) -> tuple[int, ...]:
    """Run the init statements; return the version after each, or raise LitmusError if one fails."""
    versions = []
    for statement in litmus.init:
        run = statement_body(statement, tables.client(target_table(statement)))
        transaction = parking.start(f"init statement {statement.sql!r}", run)
        if transaction.error is not None:
            failure = read_failure(transaction.error, session.jvm)
            raise LitmusError(
                f"{litmus.name}: init statement '{statement.sql}' fails on Delta with"
                f" {failure.error_class or failure.exception}"
            ) from transaction.error
        versions.append(latest_version(tables.paths[target_table(statement) or ""]))
    return tuple(versions)


STOPS: dict[Action, Phase] = {
    "park-init": "init",
    "park-prepare": "prepare",
    "park-commit": "commit",
    "start": "commit",
}
"""Phase at which each step holds its statement."""


@dataclass(slots=True)
class _StartedThread:
    """Running transaction: its thread, the version at its snapshot, and its commits so far.

    ``held`` is True until its snapshot is taken.
    """

    thread: HeldTransaction[Rows | None] | HeldTransaction[None]
    version: int
    held: bool = False
    commits: tuple[int, ...] = ()


class _SparkReplay:
    """Replay of one test. The commits of one statement are one thread, held before each of them."""

    def __init__(
        self,
        litmus: Litmus,
        tables: EngineTables,
        parking: Parking,
        session: Session,
        inits: Sequence[int],
        *,
        chronicle: CommitHistory,
        others: Mapping[str, RunsTransactions],
    ) -> None:
        self._litmus = litmus
        self._tables = tables
        self._parking = parking
        self._session = session
        self._chronicle = chronicle
        self._others = others
        self._started: dict[str, _StartedThread] = {}
        self._clients = SparkClients(litmus, tables, inits)

    def run(self, protocol: str) -> Run:
        """Execute the schedule and return the observed run."""
        try:
            for step in self._litmus.schedule.steps:
                self._take(step)
        finally:
            self._clients.close()
        return Run(
            litmus=self._litmus.name,
            engine=ENGINE,
            engine_version=self._session.version,
            protocol=protocol,
            base=next(iter(self._chronicle.base.values())),
            transactions={name: self._observed(name) for name in self._litmus.transactions},
            versions=self._chronicle.rows(
                partial(rows_by_version, self._session), without=self._litmus.opaque
            ),
        )

    def _take(self, step: Step) -> None:
        """Execute a step: start the transaction's thread or release it, and record new commits."""
        name = step.transaction
        if name in self._others:
            self._others[name].take(step)
            return
        self._ask(name)
        if not step.begins:
            return
        stop = STOPS.get(step.action)
        started = self._started.get(name)
        commits = self._litmus.commits_of(name)
        if len(commits) > 1:
            started = self._take_commit(step, commits)
        elif started is None:
            if isinstance(self._litmus.transactions[name], Read):
                stop = None
            version = self._chronicle.version
            thread = self._parking.start(self._said(name), self._clients.statement(name), stop)
            self._started[name] = started = _StartedThread(thread, version, held=stop == "init")
        else:
            if started.held and step.reads:
                started.version, started.held = self._chronicle.version, False
            if stop is None:
                self._parking.finish(started.thread)
            else:
                self._parking.move(started.thread, stop)
        started.commits += self._chronicle.update()

    def _take_commit(self, step: Step, commits: Sequence[str]) -> _StartedThread:
        """Execute a step of one of the commits of a statement.

        At the end of each but the last, the next transaction of the thread is held.
        """
        name = step.transaction
        started = self._started.get(name)
        if started is None:
            version = self._chronicle.version
            thread: HeldTransaction[Rows | None] | HeldTransaction[None]
            if name == commits[0]:
                body = self._clients.statement(name)
                thread = self._parking.start(
                    self._said(name), body, STOPS.get(step.action, "commit")
                )
            else:
                thread = self._started[commits[0]].thread
                self._parking.move(thread, STOPS.get(step.action, "commit"))
            self._started[name] = started = _StartedThread(thread, version)
        elif not step.ends:
            self._parking.move(started.thread, STOPS[step.action])
        if step.ends and name == commits[-1]:
            self._parking.finish(started.thread)
        elif step.ends:
            self._parking.next(started.thread, "init")
        return started

    def _ask(self, name: str) -> None:
        """Run what comes before a transaction, once; its failure is the transaction's failure."""
        if name in self._clients or name != self._litmus.commits_of(name)[0]:
            return
        self._clients.open(name)
        if self._litmus.client(name).asks:
            said = f"the preparation of {self._said(name)}"
            asking = self._parking.start(said, self._clients.asking(name))
            if asking.error is not None:
                self._started[name] = _StartedThread(asking, self._chronicle.version, held=True)

    def _said(self, name: str) -> str:
        return f"{name}, {self._litmus.transactions[name].sql!r},"

    def _observed(self, name: str) -> TransactionRun:
        """Return what was observed of a transaction: its outcome with versions, rows or error."""
        if name in self._others:
            return self._others[name].observed(name)
        started, statement = self._started[name], self._litmus.transactions[name]
        commits = self._litmus.commits_of(name)
        attempts = started.thread.attempts
        if len(commits) > 1:
            number = commits.index(name)
            attempts = attempts[number : number + 1]
        table, own = target_table(statement), version_read_by(attempts)
        read = started.version
        if table is not None:
            read = self._chronicle.version_of(table, own, read)
        error = started.thread.error
        if error is not None and not (started.commits and name != commits[-1]):
            return failed_transaction(error, self._session.jvm, read, started.commits)
        if isinstance(statement, Read):
            return TransactionRun("committed", read_version=read, rows=started.thread.result())
        if not started.commits:
            return TransactionRun("no-op", read_version=read)
        last = self._chronicle.commit(started.commits[-1])
        read = self._chronicle.read_version(started.commits[0], started.version)
        return committed_transaction(last, read, started.commits)
