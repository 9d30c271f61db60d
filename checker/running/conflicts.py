"""What Delta calls a conflict: the error class of an exception (delta-error-classes.json)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.header import CONSTRAINT

if TYPE_CHECKING:
    from isolitmus.model.footprint import Footprint

__all__ = ["error_class", "unbound", "undone"]

HINTED = (
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
)
"""Those that say in which partition."""
PLAIN = (
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
)
WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def error_class(exception: str, winner: Footprint, loser: Footprint) -> str | None:
    """The error class of a conflict; None for an exception that is not Delta's.

    A partition is named where the table has some and one file is to blame: one that was added or
    removed, but not where the loser is marked as reading the whole table (ConflictChecker.scala,
    getPrettyPartitionMessage).

    >>> from isolitmus.model.footprint import Footprint
    >>> from isolitmus.model.schema import Column, Schema
    >>> done = Footprint(Schema("t", (Column("id", "INT"),)), removes=frozenset({"f"}))
    >>> error_class("ConcurrentDeleteDeleteException", done, done)
    'DELTA_CONCURRENT_DELETE_DELETE.WITHOUT_HINT'
    """
    if exception not in HINTED and exception not in PLAIN:
        return None
    name = WORD.sub("_", exception.removesuffix("Exception")).upper()
    if exception in PLAIN:
        return f"DELTA_{name}"
    named = bool(loser.schema.partition_indexes)
    if exception == "ConcurrentDeleteReadException":
        named = named and not winner.removes.isdisjoint(loser.files)
    return f"DELTA_{name}.{'WITH_PARTITION_HINT' if named else 'WITHOUT_HINT'}"


def unbound(exception: str, loser: Footprint) -> bool:
    """Whether the check for added files ends in an internal error: EXISTS on partition columns counts as
    a predicate on partitions, but names columns that only its query has (OptimisticTransaction.scala
    1362-1379; ConflictChecker.scala 1040-1099). In a table read as a whole nothing is evaluated.
    """
    asked = exception == "ConcurrentAppendException" and not loser.whole_table
    return asked and loser.marks.unbound


def undone(winner: Footprint, loser: Footprint) -> bool:
    """Whether the loser takes a feature away that the winner's metadata needs: that is looked at before
    the metadata is, and is no conflict but an error (validateFeatureRemovalAtSnapshot).
    """
    wrote, features = winner.marks.metadata, loser.marks.features
    if wrote is None or winner.marks.features is not None or features is None:
        return False
    gone = "checkConstraints" in loser.known.features - features
    return gone and any(key.startswith(CONSTRAINT) for key in wrote.configuration)
