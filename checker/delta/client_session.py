"""What the clients of a litmus test do around their statements, as the model carries it out.

A client may read before its transaction starts (``let``). The program did read then, so the read
counts at row level, at the version that it saw; Delta knows nothing of it, so it is in no footprint.
A query of a cached table reads the newest version (``model.client.CacheTable``) and is in no
footprint, either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.settings import confs, settled
from isolitmus.checker.delta.snapshot import INSIDE, OutsideReads
from isolitmus.checker.delta.statement_effects import effect
from isolitmus.checker.delta.table_creation import folder_made
from isolitmus.model.client import CacheTable
from isolitmus.model.execution import Effect
from isolitmus.model.sql.failing import EvaluationError
from isolitmus.model.sql.statement import Truncate
from isolitmus.specs.sql.binding import bind, scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.execution import Database, RowRead
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schedule import Step
    from isolitmus.model.sql.values import Value

__all__ = ["Clock", "alone", "perform"]


@dataclass(slots=True)
class _Moments:
    """When a client read, when its statement was analysed, and which tables were cached at the start."""

    read: int
    analysed: int | None = None
    cached: frozenset[str] | None = None


class Clock:
    """Follows a schedule, step by step."""

    def __init__(
        self, litmus: Litmus, inits: Sequence[Database], *, documented: bool = False
    ) -> None:
        self._litmus = litmus
        self._documented = documented
        self._inits = inits
        self._cached: frozenset[str] = frozenset()
        self._folders: frozenset[str] = frozenset()
        self._of: dict[str, _Moments] = {}

    def take(self, step: Step, now: int) -> None:
        """Before the step: the newest version is ``now``."""
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
        for aside in self._litmus.client(name).before:
            if isinstance(aside, CacheTable):
                named = {aside.table}
                self._cached = self._cached | named if aside.keep else self._cached - named

    def begun(self, name: str, done: Effect, step: Step) -> None:
        """The transaction, which does this, has come so far: it may have made a table's folder."""
        statement = self._litmus.transactions[name]
        self._folders |= folder_made(statement, done, prepared=step.action != "park-prepare")

    def ended(self, name: str) -> None:
        """The transaction has ended, and not failed: TRUNCATE takes its table out of the cache."""
        statement = self._litmus.transactions[name]
        if isinstance(statement, Truncate):
            self._cached = self._cached - {statement.target}

    def effect(
        self, name: str, states: Sequence[Database], version: int, so_far: Effect | None = None
    ) -> Effect:
        """What the transaction, which is one statement, does when it takes its snapshot of a version."""
        assert so_far is None
        moments = self._of[name]
        driver = moments.read, states[moments.read]
        planned = version if moments.analysed is None else moments.analysed
        outside = OutsideReads(
            moments.cached or frozenset(), states[planned], planned, self._inits, self._folders,
            documented=self._documented,
        )  # fmt: skip
        return perform(self._litmus, name, states[version], driver, outside)


def alone(litmus: Litmus, name: str, snapshot: Database, inits: Sequence[Database] = ()) -> Effect:
    """The effect of a transaction when nothing else goes on, as in a serial order; ``inits`` are the
    databases that VERSION AS OF reads. What only Databricks takes is done: elsewhere it has failed before.
    """
    return perform(litmus, name, snapshot, outside=OutsideReads(inits=inits, documented=True))


def perform(
    litmus: Litmus,
    name: str,
    snapshot: Database,
    driver: tuple[int | None, Database] | None = None,
    outside: OutsideReads = INSIDE,
) -> Effect:
    """The effect of a transaction on a snapshot; ``driver`` is the version that its client read, and
    its database (None: the snapshot, as in a serial order).
    """
    version, database = driver or (None, snapshot)
    reads: list[RowRead] = []
    values: dict[str, Value] = {}
    for parameter, query in litmus.client(name).let.items():
        read = effect(query, database, name, litmus.tables, OutsideReads(inits=outside.inits))
        if read.error is not None:
            return read
        try:
            values[parameter] = scalar(query.sql, read.rows or ())
        except EvaluationError as error:
            return Effect(error=error)
        reads += [replace(r, version=version) for r in read.reads]
    statement = bind(litmus.transactions[name], values)
    if name in litmus.clients:
        outside = replace(outside, confs=confs(litmus, name))
    done = effect(statement, snapshot, name, litmus.tables, outside)
    if name in litmus.clients:
        done = settled(litmus, name, done, snapshot)
    return replace(done, reads=(*reads, *done.reads)) if reads else done
