"""Raw transactions: reads and actions spelled out, for rules of the commit that SQL cannot
reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.display import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.delta.data_file import RawFile
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.query import Query
    from isolitmus.model.sql.values import Row

__all__ = [
    "OPERATIONS",
    "Application",
    "Filter",
    "InPartitions",
    "LogOperation",
    "MetadataChange",
    "ProtocolChange",
    "Raw",
    "RawRead",
    "Scan",
    "WholeTable",
]


@dataclass(frozen=True, slots=True)
class LogOperation:
    """What a commit says that it is: its name in the log, whether such may change data
    (DeltaOperations.scala, changesData), whether it is a backfill of row tracking, whether it may
    add a file with a vector although none may be made (isInPlaceFileMetadataUpdate).
    """

    name: str
    changes_data: bool = False
    backfill: bool = False
    in_place: bool = False


OPERATIONS = {
    "Truncate": LogOperation("TRUNCATE", changes_data=True),
    "Delete": LogOperation("DELETE", changes_data=True),
    "ManualUpdate": LogOperation("Manual Update"),
    "SetTableProperties": LogOperation("SET TBLPROPERTIES"),
    "ComputeStats": LogOperation("COMPUTE STATS", in_place=True),
    "RowTrackingBackfill": LogOperation("ROW TRACKING BACKFILL", backfill=True, in_place=True),
    "Optimize": LogOperation("OPTIMIZE"),
    "UpgradeProtocol": LogOperation("UPGRADE PROTOCOL"),
}
"""The operations that a raw transaction may have, as Delta's classes are called."""


@dataclass(frozen=True, slots=True, repr=False)
class Filter(Command):
    """``txn.filterFiles(condition)``; no condition (``true``) is a full scan."""

    sql: str
    where: Expr | None


@dataclass(frozen=True, slots=True)
class WholeTable:
    """``txn.readWholeTable()``."""


@dataclass(frozen=True, slots=True, repr=False)
class Scan(Command):
    """A query of the table while the transaction is the active one."""

    sql: str
    query: Query


@dataclass(frozen=True, slots=True)
class InPartitions:
    """``txn.filterFiles(newFiles)``: a look at the partitions of some files, as a dynamic overwrite
    has it; no file counts as read.
    """

    partitions: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """``txn.txnVersion(id)``."""

    id: str


RawRead = Filter | WholeTable | Scan | InPartitions | Application
"""One read of a raw transaction."""


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """What a Metadata action has other than the snapshot's; nothing: the same once more."""

    configuration: Mapping[str, str] = field(default_factory=dict)
    """Properties that are set."""
    unset: tuple[str, ...] = ()
    """Properties that are taken away."""
    id: str | None = None
    """Another id for the table."""
    name: str | None = None
    """Another name."""
    description: str | None = None
    """Another description."""


@dataclass(frozen=True, slots=True)
class ProtocolChange:
    """The features that a Protocol action has more than the snapshot's, with those that they
    require; Delta lets none go by a commit of another kind than DROP FEATURE
    (ProtocolDowngradeException).
    """

    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, repr=False)
class Raw(Command):
    """A transaction of Delta's own API: its reads in order, then its actions in one commit."""

    sql: str
    """What it does, in words."""
    target: str
    """The table."""
    reads: tuple[RawRead, ...] = ()
    """What it reads, in order."""
    adds: tuple[RawFile, ...] = ()
    """The files that it adds, each a path with its vector."""
    removes: tuple[RawFile, ...] = ()
    """The files that it removes, in the same way."""
    data_change: bool = True
    """What its actions say of themselves (``dataChange``)."""
    app: tuple[str, int] | None = None
    """An application and the version that is set for it; it is not looked up."""
    metadata: MetadataChange | None = None
    """What its Metadata action changes, if it has one."""
    protocol: ProtocolChange | None = None
    """What its Protocol action adds, if it has one."""
    domains: tuple[str, ...] = ()
    """The domains that it has metadata of."""
    operation: str = "Truncate"
    """A key of ``OPERATIONS``."""
    blind: bool | None = None
    """What the commit claims of itself; None: the truth."""
    large: bool = False
    """Whether it is made by commitLarge."""
