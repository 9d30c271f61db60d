"""What the client of a transaction does around its statement: its session, its confs, what it read
and kept outside the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from isolitmus.model.display import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.statement import Read

__all__ = ["Aside", "CacheTable", "Client", "DataFrameWrite", "SetConf"]


@dataclass(frozen=True, slots=True, repr=False)
class CacheTable(Command):
    """``CACHE TABLE table``; with ``keep`` False ``UNCACHE TABLE table``.

    A cache belongs to all sessions of the JVM (SharedState.cacheManager), and every statement that
    changes the table fills it anew when it ends (recacheByPlan, in DeltaTableV2, DeleteCommand,
    UpdateCommand and MergeIntoCommand), but for TRUNCATE, which takes it out of the cache. So whoever
    queries a cached table sees its newest version, as without a cache. But the plan has no scan of the
    table any more that the transaction could notice.
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
    """A write by the DataFrame API: ``spark.sql(query).write.mode(mode).options(…)`` into a table; or a
    micro-batch of a streaming query, in output mode append or complete, that has what ``query`` gives.
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
class Client:
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
    """If it is idempotent, the application and its version: of a micro-batch the streaming query and the number."""
    protocol: str | None = None
    """The name of the commit check of its own writer, if another one than the run's writes it."""
    scan: str | tuple[str, ...] = ()
    """By which indexes its statements go: one for every scan of its table, or one for each scan in order."""
    each: bool = False
    """Whether its subqueries are evaluated for each row anew, also those that do not depend on it."""

    @property
    def asks(self) -> bool:
        """Whether it does something of its own before the transaction starts."""
        return bool(self.before or self.let)
