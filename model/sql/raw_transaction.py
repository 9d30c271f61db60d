"""Raw transactions: explicit reads and actions, for rules of the commit that SQL cannot reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isolitmus.model.display import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.sql.data_file import RawFile
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.query import Query
    from isolitmus.model.sql.values import Row


@dataclass(frozen=True, slots=True)
class LogOperation:
    """Operation of a commit.

    ``name`` is its name in the log. ``changes_data`` says whether it may change data
    (DeltaOperations.scala, changesData), ``backfill`` whether it is a backfill of row tracking.
    ``in_place`` says whether it may add a file with a deletion vector although none may be created
    (isInPlaceFileMetadataUpdate).
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
"""Operations of raw transactions, by the names of Delta's classes."""


@dataclass(frozen=True, slots=True, repr=False)
class Filter(Command):
    """``txn.filterFiles(condition)``; without a condition (``true``) it is a full scan."""

    sql: str
    where: Expr | None


@dataclass(frozen=True, slots=True)
class WholeTable:
    """``txn.readWholeTable()``."""


@dataclass(frozen=True, slots=True, repr=False)
class Scan(Command):
    """Query of the table while the transaction is the active one."""

    sql: str
    query: Query


@dataclass(frozen=True, slots=True)
class InPartitions:
    """``txn.filterFiles(newFiles)``: a read of the partitions of some files, as in a dynamic
    overwrite.

    No file counts as read.
    """

    partitions: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Application:
    """``txn.txnVersion(id)``."""

    id: str


RawRead = Filter | WholeTable | Scan | InPartitions | Application
"""Read of a raw transaction."""


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """Changes in a Metadata action relative to the snapshot; if empty, it repeats the latter."""

    configuration: Mapping[str, str] = field(default_factory=dict)
    """Properties that are set."""
    unset: tuple[str, ...] = ()
    """Properties that are removed."""
    id: str | None = None
    """New id of the table."""
    name: str | None = None
    """New name."""
    description: str | None = None
    """New description."""


@dataclass(frozen=True, slots=True)
class ProtocolChange:
    """Features that a Protocol action adds to those of the snapshot, with those that they require.

    Delta removes none in a commit other than DROP FEATURE (ProtocolDowngradeException).
    """

    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, repr=False)
class Raw(Command):
    """Transaction of Delta's own API: reads in order, then actions in one commit."""

    sql: str
    """Description."""
    target: str
    """Table."""
    reads: tuple[RawRead, ...] = ()
    """Reads in order."""
    adds: tuple[RawFile, ...] = ()
    """Files that it adds, each a path with its vector."""
    removes: tuple[RawFile, ...] = ()
    """Files that it removes, each a path with its vector."""
    data_change: bool = True
    """Value of ``dataChange`` in its actions."""
    app: tuple[str, int] | None = None
    """Application and the version that is set for it; the version is not looked up."""
    metadata: MetadataChange | None = None
    """Changes in its Metadata action, if it has one."""
    protocol: ProtocolChange | None = None
    """Features that its Protocol action adds, if it has one."""
    domains: tuple[str, ...] = ()
    """Metadata domains that it sets."""
    operation: str = "Truncate"
    """Operation: a key of ``OPERATIONS``."""
    blind: bool | None = None
    """Value of its blind-append mark; None for the true value."""
    large: bool = False
    """True if it is made by commitLarge."""
