"""What a transaction read and wrote as the engine sees it (not what it touched at row level)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.model.expression import evaluate

if TYPE_CHECKING:
    from isolitmus.model.expression import Expr
    from isolitmus.model.schema import Schema
    from isolitmus.model.values import Row

__all__ = ["Footprint"]


@dataclass(frozen=True, slots=True)
class Footprint:
    """A transaction's part in conflict detection, on the one table that it commits to.

    ``predicates`` are the partition predicates that it read, each a conjunction; an empty one is
    TRUE. ``files`` are the paths that it read: those left after partition pruning and skipping.
    ``adds`` are the partitions of the files that it adds, ``removes`` paths. ``blind``: only adds,
    and read nothing. ``data_change``: some action changes data. ``changes_data``: the operation may
    (a flag of the command, not of what it did). ``orders``: it rewrites rows in another order. (Delta's OptimisticTransaction; delta.md 4.)
    """

    schema: Schema
    predicates: tuple[tuple[Expr, ...], ...] = ()
    files: frozenset[str] = frozenset()
    adds: tuple[Row, ...] = ()
    removes: frozenset[str] = frozenset()
    data_change: bool = True
    changes_data: bool = True
    orders: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to record."""
        return not self.adds and not self.removes

    @property
    def blind(self) -> bool:
        """isBlindAppend (OptimisticTransaction): only adds, no predicate and no file read."""
        return not self.removes and not self.predicates and not self.files

    def adds_meet_reads_of(self, loser: Footprint) -> bool:
        """Whether a file that this one adds may hold what the loser read (ConflictChecker,
        checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn, before the level is considered).

        In a table without partitions any file does, unless the loser is a blind append.
        """
        if self.schema.name != loser.schema.name or not self.adds or loser.blind:
            return False
        if not loser.schema.partition_indexes:
            return True
        return self.adds_where(loser) is not None

    def adds_where(self, loser: Footprint) -> tuple[Row, tuple[Expr, ...]] | None:
        """The first partition that this one adds a file to and the predicate of the loser that it meets."""
        for predicate in loser.predicates:
            for added in self.adds:
                row = self.schema.spread(added)
                if all(evaluate(part, (row,)) is True for part in predicate):
                    return added, predicate
        return None

    def removes_meet_reads_of(self, loser: Footprint) -> bool:
        """Whether this one removes a file that the loser read."""
        return self.schema.name == loser.schema.name and not self.removes.isdisjoint(loser.files)

    def removes_meet_removes_of(self, loser: Footprint) -> bool:
        """Whether both remove one file."""
        return self.schema.name == loser.schema.name and not self.removes.isdisjoint(loser.removes)
