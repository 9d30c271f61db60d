"""What the client of a transaction does around its statement: its session, its confs, what it read
and kept outside the transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.statement import Read

__all__ = ["Aside", "CacheTable", "Client", "SetConf", "Write"]


@dataclass(frozen=True, slots=True)
class CacheTable:
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


@dataclass(frozen=True, slots=True)
class SetConf:
    """``SET key = value``, for this transaction and those that come after it in its session."""

    sql: str
    key: str
    value: str


Aside = CacheTable | SetConf
"""A statement that a client runs in its session, outside the transaction."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write by the DataFrame API: ``spark.sql(query).write.mode(mode).options(…)`` into a table; or a
    micro-batch of a streaming query, in output mode append or complete, that has what ``query`` gives.
    """

    table: str
    mode: Literal["append", "overwrite", "complete"]
    query: str
    options: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False

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
    """Of one transaction: what is run ``before`` it, the queries that it reads into parameters
    (``let``; ``:name`` in its SQL is then the literal value), its own confs, the session that it
    shares with others (None: one of its own), the DataFrame write that it is, if it is one, and the
    application with the version that it writes for, if it is to be idempotent: of a micro-batch, the
    streaming query and the number of the batch.
    """

    before: tuple[Aside, ...] = ()
    let: Mapping[str, Read] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    session: str | None = None
    write: Write | None = None
    app: tuple[str, int] | None = None

    @property
    def asks(self) -> bool:
        """Whether it does something of its own before the transaction starts."""
        return bool(self.before or self.let)
