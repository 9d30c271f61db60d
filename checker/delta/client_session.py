"""Clients of a litmus test: their sessions, settings, and reads outside a transaction.

A client may read before its transaction starts (``let``). The program did read then, so the read
counts at row level, at the version that it saw. Delta does not track it, so it is in no footprint.
A query of a cached table reads the newest version (``model.litmus.CacheTable``) and is in no
footprint either.

Settings that affect a commit are an idempotent write, and confs of the conflict check. An
idempotent write looks up the version that its application has reached. If that is the write's own
or a later one, nothing happens at all; else the new version is recorded with the commit
(DeltaCommand.scala, hasBeenExecuted and createSetTransaction).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.snapshot import INSIDE, OutsideReads
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.checker.delta.table_creation import created_folder
from isolitmus.model.delta.footprint import Footprint, Settings
from isolitmus.model.execution import Effect
from isolitmus.model.litmus import CacheTable, SetConf
from isolitmus.model.sql.statement import Truncate
from isolitmus.model.sql.types import EvaluationError
from isolitmus.specs.sql.binding import bind_parameters, scalar_value
from isolitmus.specs.sql.configuration import ATTEMPTS, EMPTY_COMMITS, RESOLUTION, STRICT_FEATURES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.model.execution import Database, RowRead
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.sql.nondeterminism import TriedAnswers
    from isolitmus.model.sql.values import Value


def confs_in_force(litmus: Litmus, name: str) -> Mapping[str, str]:
    """Return the confs of a transaction: those set earlier in its session, and its own."""
    session = litmus.client(name).session
    kept: dict[str, str] = {}
    for other in dict.fromkeys(step.transaction for step in litmus.schedule.steps):
        client = litmus.client(other)
        if other == name or (session is not None and client.session == session):
            kept |= {a.key: a.value for a in client.before if isinstance(a, SetConf)}
        if other == name:
            return {**kept, **client.conf}
    return litmus.client(name).conf


def apply_settings(litmus: Litmus, name: str, done: Effect, snapshot: Database) -> Effect:
    """Return the effect of a transaction under its client's settings.

    Parameters
    ----------
    litmus : Litmus
        The test.
    name : str
        Name of the transaction.
    done : Effect
        Effect without the settings.
    snapshot : Database
        Tables that the transaction reads.
    """
    footprint = done.footprint
    if footprint is None:
        return done
    held = confs_in_force(litmus, name)
    app = litmus.client(name).app
    if app is not None:
        header = snapshot[footprint.schema.name].header
        reached = -1 if header is None else header.apps.get(app[0], -1)
        if reached >= app[1]:
            idle = Footprint(
                footprint.schema, data_change=False, changes_data=False, header=footprint.header
            )
            return Effect(footprint=idle, operation=done.operation)
        records = done.operation != "DELETE" or not footprint.empty
        actions = replace(footprint.actions, apps=dict([app]) if records else {})
        footprint = replace(footprint, actions=actions, looked_up=frozenset({app[0]}))
    for conf, value, settings in (
        (RESOLUTION, "false", {"resolves": False}),
        (STRICT_FEATURES, "true", {"strict": True}),
        (EMPTY_COMMITS, "false", {"always": True}),
        (ATTEMPTS, "0", {"once": True}),
    ):
        if held.get(conf, "").lower() == value:
            known: Settings = replace(footprint.settings, **settings)
            footprint = replace(footprint, settings=known)
    return done if footprint is done.footprint else replace(done, footprint=footprint)


@dataclass(slots=True)
class _Moments:
    """Versions of a client's reads and of its analysis, and the tables cached at its start."""

    read: int
    analysed: int | None = None
    cached: frozenset[str] | None = None


class ScheduleClock:
    """Clock of a schedule: follows its steps, the caches and the versions that clients see."""

    def __init__(
        self,
        litmus: Litmus,
        inits: Sequence[Database],
        choices: TriedAnswers | None = None,
        *,
        documented: bool = False,
    ) -> None:
        self._litmus, self._choices = litmus, choices
        self._documented = documented
        self._inits = inits
        self._cached: frozenset[str] = frozenset()
        self._folders: frozenset[str] = frozenset()
        self._of: dict[str, _Moments] = {}

    def take(self, step: Step, now: int) -> None:
        """Update the clock before a step; ``now`` is the newest version."""
        name = step.transaction
        if name not in self._of:
            self._of[name] = _Moments(now)
            self._cache(name)
        moments = self._of[name]
        if step.begins and moments.analysed is None:
            moments.analysed = now
        if step.reads and moments.cached is None:
            moments.cached = self._cached

    def _cache(self, name: str) -> None:
        """Apply CACHE TABLE and UNCACHE TABLE statements of a client."""
        for aside in self._litmus.client(name).before:
            if isinstance(aside, CacheTable):
                named = {aside.table}
                self._cached = self._cached | named if aside.keep else self._cached - named

    def begun(self, name: str, done: Effect, step: Step) -> None:
        """Record that a transaction with this effect has reached a step.

        It may have created the folder of a table.
        """
        statement = self._litmus.transactions[name]
        self._folders |= created_folder(statement, done, prepared=step.action != "park-prepare")

    def ended(self, name: str) -> None:
        """Record that a transaction has ended without failing.

        TRUNCATE removes its table from the cache.
        """
        statement = self._litmus.transactions[name]
        if isinstance(statement, Truncate):
            self._cached = self._cached - {statement.target}

    def effect(
        self, name: str, states: Sequence[Database], version: int, so_far: Effect | None = None
    ) -> Effect:
        """Return the effect of a transaction of one statement that takes its snapshot at a version.

        Parameters
        ----------
        name : str
            Name of the transaction.
        states : sequence of Database
            The tables at each version.
        version : int
            Version of its snapshot.
        so_far : Effect, optional
            Always None: a transaction has one statement.
        """
        assert so_far is None
        moments = self._of[name]
        driver = moments.read, states[moments.read]
        planned = version if moments.analysed is None else moments.analysed
        choices = None if self._choices is None else self._choices.of(name)
        outside = OutsideReads(
            moments.cached or frozenset(), states[planned], planned, self._inits, self._folders,
            documented=self._documented, choices=choices,
        )  # fmt: skip
        return perform(self._litmus, name, states[version], driver, outside)


def serial_effect(
    litmus: Litmus, name: str, snapshot: Database, inits: Sequence[Database] = ()
) -> Effect:
    """Return the effect of a transaction in a serial order.

    ``inits`` are the databases that VERSION AS OF reads. Statements that only Databricks supports
    are executed: elsewhere they have failed before.
    """
    return perform(litmus, name, snapshot, outside=OutsideReads(inits=inits, documented=True))


def perform(
    litmus: Litmus,
    name: str,
    snapshot: Database,
    driver: tuple[int | None, Database] | None = None,
    outside: OutsideReads = INSIDE,
) -> Effect:
    """Return the effect of a transaction on a snapshot.

    Parameters
    ----------
    litmus : Litmus
        The test.
    name : str
        Name of the transaction.
    snapshot : Database
        Tables that its statement reads.
    driver : tuple of int and Database, optional
        Version that its client read, and the tables at it; default: the snapshot, as in a serial
        order.
    outside : OutsideReads
        Reads outside the transaction.
    """
    version, database = driver or (None, snapshot)
    reads: list[RowRead] = []
    values: dict[str, Value] = {}
    for parameter, query in litmus.client(name).let.items():
        read = statement_effect(
            query,
            database,
            name,
            litmus.tables,
            OutsideReads(inits=outside.inits, choices=outside.choices),
        )
        if read.error is not None:
            return read
        try:
            values[parameter] = scalar_value(query.sql, read.rows or ())
        except EvaluationError as error:
            return Effect(error=error)
        reads += [replace(r, version=version) for r in read.reads]
    statement = bind_parameters(litmus.transactions[name], values)
    if name in litmus.clients:
        outside = replace(outside, confs=confs_in_force(litmus, name))
    done = statement_effect(statement, snapshot, name, litmus.tables, outside)
    if name in litmus.clients:
        done = apply_settings(litmus, name, done, snapshot)
    return replace(done, reads=(*reads, *done.reads)) if reads else done
