"""Schedules executed on a database, step by step.

A litmus test of sessions carried out on a database: its schedule, step by step, and what was seen.

A step that has to wait is put off, and the schedule goes on; the transaction goes on with it, and
with its later steps that have come up meanwhile, as soon as the database lets it.

An engine that is a database: a server of its own, on which sessions carry litmus tests out.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from isolitmus.conformance.databases.connections import (
    COMMIT,
    IDLE,
    LIMIT,
    ROLLBACK,
    StatementError,
)
from isolitmus.conformance.databases.gated_sql import add_gates, is_subquery_late, table_statements
from isolitmus.model.engine import Engine, RunsTests
from isolitmus.model.errors import Refused, TimeLimit, UndeterminedError, brief
from isolitmus.model.run import ROLLED_BACK, Run, TransactionRun, Wait
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs.sql.syntax import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from isolitmus.conformance.databases.connections import Connection, Server
    from isolitmus.conformance.databases.gated_sql import Dialect, GatedStatement
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.schema import Column, Schema
    from isolitmus.model.sql.values import Row, Rows, Value

__all__ = ["SqlEngine", "database_engine", "run_on_database"]


@dataclass(frozen=True, slots=True)
class SqlEngine:
    """How an engine is spoken to, and what its errors mean."""

    name: str
    """The engine's name."""
    product: str
    """What messages call it."""
    dialect: Dialect
    """What is said otherwise to it."""
    levels: Mapping[str, str]
    """The isolation level that stands for each protocol."""
    conflicts: Mapping[str, str]
    """What a transaction ends with, by SQLSTATE, if the database has ended it."""
    errors: Mapping[str, str]
    """What an error is called, by SQLSTATE; else by that."""
    unsaid: frozenset[str] = frozenset()
    """The fields that it cannot tell of a transaction."""
    whole: bool = False
    """Whether a client has the rows of a query only once it is through: of one that is cut off it
    cannot tell any.
    """
    planned: frozenset[str] = frozenset()
    """The protocols under which it matters by which index a scan goes, though its rows are the
    same.
    """
    plan: Callable[[Server, str], tuple[tuple[str, str], ...]] | None = None
    """The tables that a statement scans, each with the index by which it goes (empty: by none),
    sorted.
    """


@dataclass(slots=True)
class _Transaction:
    """A transaction under way, and what was seen of it."""

    texts: tuple[GatedStatement, ...]
    """Its statements."""
    steps: list[Step] = field(default_factory=list)
    """What it was asked for and has not done."""
    asked: int = 0
    """How many of its statements have begun."""
    ending: str = ""
    """COMMIT or ROLLBACK, once it was told."""
    busy: bool = False
    """Whether it was told something that is not through."""
    seen: Connection = IDLE
    passed: list[tuple[str | None, ...]] = field(default_factory=list)
    """The rows that its statements before have given."""
    rows: list[Row] | None = None
    changed: int = 0
    waits: list[Wait] = field(default_factory=list)
    since: int = 0
    """When it last began to wait; 0: it has done all that it was asked for since then."""
    wants: str = ""
    """For what it waits."""
    cut: bool = False
    """Whether a query of it was cut off."""
    done: TransactionRun | None = None

    @property
    def came(self) -> int:
        """How many rows its scans have given."""
        return len(self.passed) + len(self.seen.passed)

    @property
    def writes(self) -> bool:
        """Whether there may be something of it that is not committed."""
        begun = self.texts[: self.asked]
        return self.done is None and not all(_reads(one.text) for one in begun)

    def reached(self, step: Step) -> bool:
        """Whether it has come as far as a step says that does not end it."""
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
    """What happens to a litmus test; Refused for one that the engine cannot carry out, TimeLimit if
    a statement neither ends nor waits for another in time. Nothing of it stays.
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
    """The schedule of a litmus test, as far as it has come."""

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
        """Refused for a step at which no statement can be stopped here."""
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
        """Undetermined if a scan does not go by the index that is said, where that matters."""
        for name, one in self.known.items() if self.protocol in self.sql.planned else ():
            for text, _, said in one.texts:
                assert self.sql.plan is not None
                try:
                    found = self.sql.plan(self.server, text)
                except StatementError as error:
                    if error.failure.state not in self.sql.errors:
                        raise
                    continue  # a constant of it fails where it is planned, before any scan begins
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
        """All of it."""
        self.refuse_planned()
        self.versions.append(self.tables())
        for step in self.litmus.schedule.steps:
            one = self.known[step.transaction]
            if one.done is None:
                one.steps.append(step)
                self.go_on()
        if self.unread:  # nobody is under way any more
            self.versions[-1] = self.tables()
        return Run(
            self.litmus.name, self.sql.name, self.server.release, self.protocol, 0,
            {name: self.end_of(name) for name in self.known}, tuple(self.versions),
            frozenset(self.unread - {len(self.versions) - 1}),
        )  # fmt: skip

    def end_of(self, name: str) -> TransactionRun:
        """What became of a transaction, once the schedule is over; TimeLimit if it still waits."""
        done = self.known[name].done
        if done is None:
            waits = self.known[name].seen.behind
            raise TimeLimit(
                f"{self.litmus.name}: {self.sql.product}: {name} still waits for"
                f" {' and '.join(waits)} at the end of the schedule; everything was rolled back"
            )
        return done

    def tables(self) -> Mapping[str, Rows]:
        """The tables as they are."""
        read = self.sql.dialect.read
        return {name: sort_rows(self.server.run(read.format(name))) for name in self.litmus.tables}

    def go_on(self) -> None:
        """Do what the transactions were asked for, until each is done or waits; first who has
        waited longest.
        """
        while ready := [
            name
            for name, one in self.known.items()
            if one.steps and one.seen.state in ("idle", "held")
        ]:
            name = min(ready, key=lambda name: self.known[name].since or self.clock + 1)
            self.advance(name, self.known[name])
            self.settle()

    def advance(self, name: str, one: _Transaction) -> None:
        """Ask a transaction for the next that its step wants, if there is something."""
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
        """Look where everybody is, and take up what is through, as long as there is something."""
        while self.looked():
            pass

    def looked(self) -> bool:
        """Whether something was through when this looked."""
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
                if one.busy and (one.wants != wants if wants else not one.wants):  # nobody looked
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
        """A statement is through, or the transaction."""
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
        """A transaction has ended."""
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
    """Whether a statement is a query."""
    return text.split(maxsplit=1)[0].upper() == "SELECT"


def _row(cells: tuple[str | None, ...], schemas: tuple[Schema, ...]) -> Row:
    """A row of a table, the first cell of which is the number of the table, from its texts."""
    schema = schemas[int(cells[0] or 0)]
    return tuple(
        _value(column, cell) for column, cell in zip(schema.columns, cells[1:], strict=True)
    )


def _value(column: Column, cell: str | None) -> Value:
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
    """The engine that speaks to a database in this SQL, and starts its server."""

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
