"""Raw transactions: reads and actions spelled out, for rules of the commit that SQL cannot reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.expression import Expr
    from isolitmus.model.statement import Query
    from isolitmus.model.values import Row

__all__ = [
    "OPERATIONS",
    "Application",
    "Filter",
    "InPartitions",
    "Look",
    "MetadataChange",
    "Operation",
    "ProtocolChange",
    "Raw",
    "RawFile",
    "Scan",
    "WholeTable",
]


@dataclass(frozen=True, slots=True)
class Operation:
    """What a commit says that it is: its name in the log, whether such may change data
    (DeltaOperations.scala, changesData), whether it is a backfill of row tracking.
    """

    name: str
    changes_data: bool = False
    backfill: bool = False


OPERATIONS = {
    "Truncate": Operation("TRUNCATE", changes_data=True),
    "Delete": Operation("DELETE", changes_data=True),
    "ManualUpdate": Operation("Manual Update"),
    "SetTableProperties": Operation("SET TBLPROPERTIES"),
    "ComputeStats": Operation("COMPUTE STATS"),
    "RowTrackingBackfill": Operation("ROW TRACKING BACKFILL", backfill=True),
}
"""The operations that a raw transaction may have, as Delta's classes are called."""


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file that is said to be there: nothing reads it. ``stats`` as in the log, ``vector`` the name
    of its deletion vector.
    """

    path: str
    partition: Row = ()
    stats: Mapping[str, Any] | None = None
    vector: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """``txn.filterFiles(condition)``; no condition (``true``) is a full scan."""

    sql: str
    where: Expr | None


@dataclass(frozen=True, slots=True)
class WholeTable:
    """``txn.readWholeTable()``."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A query of the table while the transaction is the active one."""

    sql: str
    query: Query


@dataclass(frozen=True, slots=True)
class InPartitions:
    """``txn.filterFiles(newFiles)``: a look at the partitions of some files, as a dynamic overwrite has
    it; no file counts as read.
    """

    partitions: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """``txn.txnVersion(id)``."""

    id: str


Look = Filter | WholeTable | Scan | InPartitions | Application
"""One read of a raw transaction."""


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """What a Metadata action has other than the snapshot's; nothing: the same once more."""

    configuration: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    id: str | None = None
    name: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class ProtocolChange:
    """The features that a Protocol action has more than the snapshot's, and those that it has not."""

    features: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Raw:
    """A transaction of Delta's own API: its reads in order, then its actions in one commit.

    ``sql`` says in words what it does. ``removes`` are paths; ``app`` sets an application's version,
    it does not look it up. ``blind`` is what the commit claims, None the truth. ``large``: by
    commitLarge.
    """

    sql: str
    target: str
    reads: tuple[Look, ...] = ()
    adds: tuple[RawFile, ...] = ()
    removes: tuple[RawFile, ...] = ()
    data_change: bool = True
    app: tuple[str, int] | None = None
    metadata: MetadataChange | None = None
    protocol: ProtocolChange | None = None
    domains: tuple[str, ...] = ()
    operation: str = "Truncate"
    blind: bool | None = None
    large: bool = False
