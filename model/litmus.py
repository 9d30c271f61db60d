"""A litmus test: a table, transactions in SQL, a schedule, and what is expected of each engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.client import Client
from isolitmus.model.raw import Raw

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isolitmus.model.history import History
    from isolitmus.model.schedule import Schedule
    from isolitmus.model.schema import Schema
    from isolitmus.model.statement import Statement
    from isolitmus.model.values import Rows, Value

__all__ = ["Expectation", "HistoryTest", "Litmus"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one protocol or engine is expected to do; what is empty or None is not expected.

    ``outcome`` lists for each transaction the outcomes that will do (``aborted`` is any conflict);
    ``serial`` are the serial orders of the writers that explain the final table.
    """

    outcome: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error_class: Mapping[str, str] = field(default_factory=dict)
    log: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    reads: Mapping[str, Rows] = field(default_factory=dict)
    tables: Mapping[str, Rows] = field(default_factory=dict)
    versions: Mapping[int, Mapping[str, Rows]] = field(default_factory=dict)
    serial: tuple[str, ...] | None = None
    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Litmus:
    """A table (or several), transactions and a schedule: what an engine carries out.

    ``init`` are statements, each one commit, run before the schedule starts; version 0 is the state
    after the last of them. ``clients`` tells of the transactions that are more than a statement what
    else they are. ``text`` is the file as it was read.
    """

    name: str
    title: str
    source: str
    tables: Mapping[str, Schema]
    init: tuple[Statement, ...]
    transactions: Mapping[str, Statement]
    schedule: Schedule
    expect: Mapping[str, Expectation] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    text: str = ""
    path: Path | None = None
    clients: Mapping[str, Client] = field(default_factory=dict)

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

    def client(self, transaction: str) -> Client:
        """The client of a transaction."""
        return self.clients.get(transaction, Client())


@dataclass(frozen=True, slots=True)
class HistoryTest:
    """An abstract history with the levels that it is expected to satisfy and to break."""

    name: str
    title: str
    source: str
    history: History
    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    text: str = ""
    path: Path | None = None
