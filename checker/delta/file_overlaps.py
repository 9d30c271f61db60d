"""Overlaps of two commits as released Delta compares them: files, and partitions of added files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.nondeterminism import choose
from isolitmus.model.sql.types import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.delta.footprint import Footprint
    from isolitmus.model.sql.expression import Expr
    from isolitmus.model.sql.values import Row


def adds_meet_reads(winner: Footprint, loser: Footprint) -> bool:
    """Return whether a file that the winner adds may contain rows of the loser's read set.

    This is checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn, before the level is considered. In
    a table without partitions every file may, unless the loser is a blind append; the same holds
    for a loser that is marked as reading everything.
    """
    if winner.table != loser.table or not winner.adds or loser.blind:
        return False
    if loser.whole_table or not loser.schema.partition_indexes:
        return True
    if first_added_partition(winner, loser) is not None:
        return True
    if first_added_partition(winner, loser, loser.wide) is not None:
        why = (
            "whether a file that was added meets what was read of partitions is up to what Spark's"
            " optimizer makes of a join, or of a condition on other columns, too: say apart what is"
            " said of partitions"
        )
        return bool(choose(loser.choices, ("added", winner.adds), (False, True), why))
    return False


def first_added_partition(
    winner: Footprint, loser: Footprint, predicates: Sequence[tuple[Expr, ...]] | None = None
) -> tuple[Row, tuple[Expr, ...]] | None:
    """Return the first partition of an added file that matches a predicate, and that predicate.

    Parameters
    ----------
    winner, loser : Footprint
        The two commits.
    predicates : sequence, optional
        The predicates; default: those that the loser has read.

    Raises
    ------
    LitmusError
        If a predicate cannot be evaluated on an added partition.
    """
    schema = winner.schema
    for predicate in loser.predicates if predicates is None else predicates:
        for added in winner.adds:
            try:
                met = all(evaluate(part, (schema.spread(added),)) is True for part in predicate)
            except EvaluationError as error:
                raise LitmusError(
                    f"{error}: a condition on partitions fails on partition"
                    f" {schema.folder(added)}, which was added; the outcome of the conflict"
                    " check is not modelled"
                ) from None
            if met:
                return added, predicate
    return None


def removes_meet_reads(winner: Footprint, loser: Footprint) -> bool:
    """Return whether the winner removes a file that the loser read.

    If the loser is marked as reading everything, any removed file counts. A backfill of row
    tracking has not read files that others remove (resolveRowTrackingBackfillConflicts).
    """
    if winner.table != loser.table or not winner.removes:
        return False
    met = not loser.settings.backfill and not winner.removes.isdisjoint(loser.files)
    if loser.whole_table or met:
        return True
    doubted = winner.removes & loser.doubted
    if doubted and not loser.settings.backfill:
        why = (
            f"whether {min(doubted)}, which was removed, had been read is up to what Spark's"
            " optimizer makes of a condition or a join"
        )
        return bool(choose(loser.choices, ("removed", doubted), (False, True), why))
    return False


def removes_meet_removes(winner: Footprint, loser: Footprint) -> bool:
    """Return whether both commits remove the same file."""
    return winner.table == loser.table and not winner.removes.isdisjoint(loser.removes)
