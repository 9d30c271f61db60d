"""Execution of litmus tests on a database: the schedule step by step, and the observed run.

A step that has to wait is postponed, and the schedule goes on. As soon as the database lets the
transaction continue, it performs that step and those of its later steps that have come up
meanwhile.

The module also defines the engine of a database, which starts a server of its own.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from isolitmus.databases.sessions.connections import (
    COMMIT,
    IDLE,
    LIMIT,
    ROLLBACK,
    StatementError,
)
from isolitmus.databases.sessions.gated_sql import add_gates, is_subquery_late, table_statements
from isolitmus.model.engine import Engine, RunsTests
from isolitmus.model.errors import Refused, TimeLimit, UndeterminedError, brief
from isolitmus.model.run import ROLLED_BACK, Run, TransactionRun, Wait
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from isolitmus.databases.sessions.connections import Connection, Server
    from isolitmus.databases.sessions.gated_sql import Dialect, GatedStatement
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.sql.schema import Column, Schema
    from isolitmus.model.sql.values import Row, Rows, Value


@dataclass(frozen=True, slots=True)
class SqlEngine:
    """SQL dialect, isolation levels and error codes of a database engine."""

    name: str
    """Name of the engine."""
    product: str
    """Name of the database in messages."""
    dialect: Dialect
    """SQL dialect of the database."""
    levels: Mapping[str, str]
    """SQL isolation level of each protocol."""
    conflicts: Mapping[str, str]
    """Outcome of a transaction that the database aborts, by SQLSTATE."""
    errors: Mapping[str, str]
    """Names of errors, by SQLSTATE; an error without a name is called by its SQLSTATE."""
    unsaid: frozenset[str] = frozenset()
    """Fields of a transaction's run that this engine cannot observe."""
    whole: bool = False
    """True if a client gets the rows of a query only at its end; a cut-off query then has none."""
    planned: frozenset[str] = frozenset()
    """Protocols under which the index of a scan matters even if its rows are the same."""
    plan: Callable[[Server, str], tuple[tuple[str, str], ...]] | None = None
    """Function that returns the tables a statement scans, sorted, with their indexes (empty: none).
    """


@dataclass(slots=True)
class _Transaction:
    """State of a running transaction and the observations of it."""

    texts: tuple[GatedStatement, ...]
    """Statements of the transaction."""
    steps: list[Step] = field(default_factory=list)
    """Requested steps that are not yet done."""
    asked: int = 0
    """Number of its statements that have begun."""
    ending: str = ""
    """COMMIT or ROLLBACK, once requested."""
    busy: bool = False
    """True if a request is not finished yet."""
    seen: Connection = IDLE
    passed: list[tuple[str | None, ...]] = field(default_factory=list)
    """Rows that the scans of its earlier statements returned."""
    rows: list[Row] | None = None
    changed: int = 0
    waits: list[Wait] = field(default_factory=list)
    since: int = 0
    """Time at which it last began to wait; 0 if it has done all requested steps since then."""
    wants: str = ""
    """Lock or transaction that it waits for."""
    cut: bool = False
    """True if one of its queries was cut off."""
    done: TransactionRun | None = None

    @property
    def came(self) -> int:
        """Number of rows that its scans have returned."""
        return len(self.passed) + len(self.seen.passed)

    @property
    def writes(self) -> bool:
        """True if it may have uncommitted changes."""
        begun = self.texts[: self.asked]
        return self.done is None and not all(_reads(one.text) for one in begun)

    def reached(self, step: Step) -> bool:
        """Return whether the transaction has reached the end of a step that does not end it."""
        ran = self.asked - self.busy
        match step.action:
            case "start":
                return True
            case "scan":
                return self.came >= (step.number or 0) or ran == len(self.texts)
            case "statement":
                return ran >= (step.number or 0)
            case _:
                return False


def run_on_database(server: Server, sql: SqlEngine, litmus: Litmus, protocol: str) -> Run:
    """Run a litmus test on a database server and return the observed run.

    All tables and connections of the test are removed afterwards.

    Raises
    ------
    Refused
        The engine cannot run the test.
    TimeLimit
        A statement neither ends nor waits for another transaction in time.
    """
    made: list[str] = []
    try:
        work = _Schedule(server, sql, litmus, protocol)
        try:
            for schema in litmus.tables.values():
                for text in table_statements(sql.dialect, schema):
                    server.run(text)
                    made += [schema.name] if schema.name not in made else []
            for one in litmus.init:
                server.run(sql.dialect.text(Syntax(one.sql).tree()))
            return work.run()
        finally:
            server.close()
            for name in made:
                server.run(f"DROP TABLE {name}")
    except (Refused, StatementError) as error:
        raise Refused(f"{litmus.name}: {sql.product}: {brief(str(error))}") from None


class _Schedule:
    """Execution state of the schedule of a litmus test."""

    def __init__(self, server: Server, sql: SqlEngine, litmus: Litmus, protocol: str) -> None:
        self.server, self.sql, self.litmus, self.protocol = server, sql, litmus, protocol
        self.versions: list[Mapping[str, Rows]] = []
        self.unread: set[int] = set()
        self.clock = 0
        self.known: dict[str, _Transaction] = {}
        for name, statement in litmus.transactions.items():
            found = add_gates(sql.dialect, name, statement, litmus.client(name), litmus.tables)
            self.known[name] = _Transaction(found)
        for step in litmus.schedule.steps:
            self.refuse_unable(step)

    def refuse_unable(self, step: Step) -> None:
        """Raise Refused for a step at which no statement can be stopped on this engine."""
        if step.action == "step":
            raise Refused(
                f"'{step}' would stop a scan at an arbitrary entry; a statement can be"
                f" stopped only at a row that its scan returns, {step.transaction}.scan[N]"
            )
        late = is_subquery_late(self.sql.dialect, self.litmus.transactions[step.transaction])
        if step.action == "scan" and late and not self.sql.dialect.snapshot:
            raise Refused(
                f"'{step}' would stop a statement whose subquery is evaluated when the scan"
                " reaches a row, not before the scan"
            )

    def refuse_planned(self) -> None:
        """Raise UndeterminedError if a scan uses an unexpected index where that matters."""
        for name, one in self.known.items() if self.protocol in self.sql.planned else ():
            for text, _, said in one.texts:
                assert self.sql.plan is not None
                try:
                    found = self.sql.plan(self.server, text)
                except StatementError as error:
                    if error.failure.state not in self.sql.errors:
                        raise
                    continue  # a constant fails while planning, before any scan
                if found != tuple(sorted(said)):
                    went, goes = (
                        " and ".join(f"{table} by {index or 'no index'}" for table, index in scans)
                        for scans in (found, sorted(said))
                    )
                    raise UndeterminedError(
                        f"{self.litmus.name}: {self.sql.product} scans {went} for"
                        f" '{text.partition(' WHERE')[0]}' of {name}; the test expects {goes}"
                    )

    def run(self) -> Run:
        """Run the whole schedule."""
        self.refuse_planned()
        self.versions.append(self.tables())
        for step in self.litmus.schedule.steps:
            one = self.known[step.transaction]
            if one.done is None:
                one.steps.append(step)
                self.go_on()
        if self.unread:  # no transaction is running any more
            self.versions[-1] = self.tables()
        return Run(
            self.litmus.name, self.sql.name, self.server.release, self.protocol, 0,
            {name: self.end_of(name) for name in self.known}, tuple(self.versions),
            frozenset(self.unread - {len(self.versions) - 1}),
        )  # fmt: skip

    def end_of(self, name: str) -> TransactionRun:
        """Return the result of a transaction; raise TimeLimit if it waits beyond the schedule."""
        done = self.known[name].done
        if done is None:
            waits = self.known[name].seen.behind
            raise TimeLimit(
                f"{self.litmus.name}: {self.sql.product}: {name} still waits for"
                f" {' and '.join(waits)} at the end of the schedule; everything was rolled back"
            )
        return done

    def tables(self) -> Mapping[str, Rows]:
        """Return the current rows of all tables."""
        read = self.sql.dialect.read
        return {name: sort_rows(self.server.run(read.format(name))) for name in self.litmus.tables}

    def go_on(self) -> None:
        """Perform the requested steps, longest waiting first, until all are done or wait."""
        while ready := [
            name
            for name, one in self.known.items()
            if one.steps and one.seen.state in ("idle", "held")
        ]:
            name = min(ready, key=lambda name: self.known[name].since or self.clock + 1)
            self.advance(name, self.known[name])
            self.settle()

    def advance(self, name: str, one: _Transaction) -> None:
        """Send a transaction the next request that its current step needs, if any."""
        if one.seen is IDLE:
            self.server.open(name, self.sql.levels[self.protocol])
            one.seen = replace(IDLE)
        step = one.steps[0]
        if one.reached(step):
            del one.steps[0]
            one.since = one.since if one.steps else 0
            return
        stop = (step.number or 0) - len(one.passed) if step.action == "scan" else 0
        if one.seen.state == "held":
            if step.action == "rollback":
                self.server.cancel(name)
            else:
                self.server.let(name, stop)
            return
        one.passed += one.seen.passed
        if step.action == "rollback" or one.asked == len(one.texts):
            one.ending = ROLLBACK if step.action == "rollback" else COMMIT
            text = one.ending
        else:
            text = one.texts[one.asked].text
            one.rows = one.rows or [] if _reads(text) else one.rows
            one.asked += 1
        if step.action == "scan":
            stop = (step.number or 0) - len(one.passed)
        one.busy = True
        self.server.ask(name, text, stop)

    def settle(self) -> None:
        """Poll the connections and process finished requests until none is left."""
        while self.looked():
            pass

    def looked(self) -> bool:
        """Poll all connections once; return whether a request was finished."""
        some = False
        self.clock += 1
        seen = self.server.settle()
        slow = sorted(name for name, found in seen.items() if found.state == "runs")
        if slow:
            raise TimeLimit(
                f"{self.litmus.name}: {self.sql.product} did not finish a statement of"
                f" {' and '.join(slow)} within {LIMIT:g} s, and it waits for no transaction;"
                " everything was rolled back"
            )
        for found in seen.values():
            for name, behind, wants in found.failure.circle if found.failure is not None else ():
                one = self.known[name]
                # this wait began and ended between two polls
                if one.busy and (one.wants != wants if wants else not one.wants):
                    one.waits.append(Wait(str(one.steps[0]), behind))
                    one.wants = wants
        for name, one in self.known.items():
            found = seen.get(name, IDLE)
            if one.seen is not IDLE:
                one.seen = found
            if found.state == "waits" and found.wants != one.wants:
                one.waits.append(Wait(str(one.steps[0]), found.behind))
                one.since = self.clock
            one.wants = found.wants
            if one.busy and found.state == "idle":
                one.busy, some = False, True
                self.through(name, one)
        return some

    def through(self, name: str, one: _Transaction) -> None:
        """Process a finished statement, or the end of the transaction."""
        found = one.seen
        one.cut |= found.failure is not None and not one.ending and self.sql.whole
        one.rows = one.rows if found.rows is None else [*(one.rows or ()), *found.rows]
        if found.failure is not None and one.steps[0].action != "rollback":
            conflict = self.sql.conflicts.get(found.failure.state)
            error = self.sql.errors.get(found.failure.state, found.failure.state)
            if not one.ending:
                self.server.ask(name, ROLLBACK)
            self.over(one, conflict or f"error:{error}", conflict or error, found.failure.message)
        elif one.ending:
            self.over(one, "committed" if one.ending == COMMIT else ROLLED_BACK)
        else:
            one.changed += found.changed
            said = one.texts[one.asked - 1]
            if found.path is not None and found.path.lower() != said.path.lower():
                raise UndeterminedError(
                    f"{self.litmus.name}: {self.sql.product} uses"
                    f" {found.path.lower() or 'no index'} for"
                    f" '{said.text.partition(' WHERE')[0]}' of {name}; the test expects"
                    f" {said.path or 'no index'}"
                )

    def over(
        self,
        one: _Transaction,
        outcome: str,
        exception: str | None = None,
        message: str | None = None,
    ) -> None:
        """Record the end of a transaction."""
        writes = outcome == "committed" and one.changed > 0
        version = len(self.versions) if writes else None
        passed = [*one.passed, *one.seen.passed]
        schemas = tuple(self.litmus.tables.values())
        one.done = TransactionRun(
            outcome,
            exception,
            message=message,
            version=version,
            commits=() if version is None else (version,),
            rows=None if one.rows is None else tuple(one.rows),
            emitted=tuple(_row(cells, schemas) for cells in passed),
            waits=tuple(one.waits),
            unsaid=self.sql.unsaid | ({"rows"} if one.cut else set()),
        )
        one.steps.clear()
        if version is not None:
            dirty = self.sql.dialect.dirty and any(o.writes for o in self.known.values())
            self.unread |= {version} if dirty else set()
            self.versions.append({} if dirty else self.tables())


def _reads(text: str) -> bool:
    """Return whether a statement is a query."""
    return text.split(maxsplit=1)[0].upper() == "SELECT"


def _row(cells: tuple[str | None, ...], schemas: tuple[Schema, ...]) -> Row:
    """Return a row of a table from its cells as texts; the first cell is the table's number."""
    schema = schemas[int(cells[0] or 0)]
    return tuple(
        _value(column, cell) for column, cell in zip(schema.columns, cells[1:], strict=True)
    )


def _value(column: Column, cell: str | None) -> Value:
    """Convert a cell, as the database prints it, to a value of the column's type."""
    if cell is None:
        return None
    match column.type:
        case "INT" | "BIGINT":
            return int(cell)
        case "DATE":
            return date.fromisoformat(cell.strip())
        case "BOOLEAN":
            return cell.strip().lower() in ("t", "true")
        case _:
            return cell


def database_engine(
    sql: SqlEngine,
    title: str,
    serving: Callable[[], AbstractContextManager[Server]],
    ready: Callable[[], object],
    install: Callable[[], Path] | None = None,
) -> Engine:
    """Return the engine of a database, which starts its own server."""

    @contextmanager
    def opened() -> Iterator[RunsTests]:
        with serving() as server:
            yield RunsTests(
                server.release, lambda litmus, spec: run_on_database(server, sql, litmus, spec.name)
            )

    return Engine(
        sql.name,
        title,
        opened,
        product=sql.product,
        format="locking",
        protocols=tuple(sql.levels),
        ready=ready,
        install=install,
    )
