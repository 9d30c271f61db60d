"""Whether a condition holds, where part of it may fail: arithmetic overflows.

SQL does not say in which order the parts of a condition are computed, nor whether all are. A row that
one part excludes while another fails on it is an error in one plan and none in the next (Spark: "Order of
evaluation of subexpressions"). One thing is certain in Delta: of a partition that is pruned no row is read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from isolitmus.model.errors import UndeterminedError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.conditions import columns
from isolitmus.model.sql.evaluation import evaluate, may_fail
from isolitmus.model.sql.failing import EvaluationError
from isolitmus.model.sql.values import show_row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from isolitmus.model.sql.values import Row

__all__ = ["fallible", "holds", "may_hold"]


def holds(condition: ex.Expr | None, rows: Sequence[Row], first: Collection[int] = ()) -> bool:
    """Whether a condition (None: TRUE) is TRUE of rows, one for each side. What it says of the columns
    ``first`` of side 0 alone is computed before the rest.

    EvaluationError if a part fails and all others are TRUE; UndeterminedError if whether it fails depends
    on the order.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))
    >>> where = read_statement("DELETE FROM t WHERE id + 1 > 5 AND part = 0", {"t": t}).where
    >>> holds(where, [(2147483647, 1)], first=t.partition_indexes)
    False
    """
    if condition is None or not fallible(condition):
        return condition is None or evaluate(condition, rows) is True
    return all(_settled(condition, parts, rows) for parts in _stages(condition, first))


def may_hold(condition: ex.Expr | None, rows: Sequence[Row], first: Collection[int] = ()) -> bool:
    """The same of rows that were not there to be read: one on which the condition would have failed
    counts as one that it is about.
    """
    if condition is None or not fallible(condition):
        return condition is None or evaluate(condition, rows) is True
    return all(_lenient(part, rows) for parts in _stages(condition, first) for part in parts)


@lru_cache(maxsize=10_000)
def fallible(condition: ex.Expr) -> bool:
    """Whether some row may make it fail."""
    return any(
        isinstance(part, ex.Arithmetic | ex.Negate | ex.Opaque)
        or (isinstance(part, ex.Call) and may_fail(part))
        or (
            isinstance(part, ex.Subquery) and any(map(fallible, (part.item, part.where or ex.TRUE)))
        )
        for part in ex.walk(condition)
    )


def _stages(condition: ex.Expr, first: Collection[int]) -> Iterator[list[ex.Expr]]:
    """The conjuncts, in the stages in which they are computed."""
    parts = ex.conjuncts(condition)
    early = [p for p in parts if all(c.side == 0 and c.index in first for c in columns(p))]
    yield early
    yield [p for p in parts if p not in early]


def _settled(condition: ex.Expr, parts: Sequence[ex.Expr], rows: Sequence[Row]) -> bool:
    """Whether all of these parts are TRUE."""
    failure, true = None, True
    for part in parts:
        leaves = list(_leaves(part))
        try:
            for leaf in leaves:
                if not isinstance(leaf, ex.Opaque):  # whether that fails is no matter of this row
                    evaluate(leaf, rows)
            true = true and evaluate(part, rows) is True
        except EvaluationError as error:
            failure = failure or error
            true = true and len(leaves) == 1
    if failure is None:
        return true
    if true:
        raise failure
    shown = " and ".join(show_row(row) for row in rows if row)
    raise UndeterminedError(
        f"the condition {condition} fails on row {shown} and has another part that decides, too: whether an"
        " engine computes the part that fails is up to its plan; write a condition that does not fail"
    )


def _leaves(part: ex.Expr) -> Iterator[ex.Expr]:
    """What AND, OR and NOT combine."""
    match part:
        case ex.And(left, right) | ex.Or(left, right):
            yield from _leaves(left)
            yield from _leaves(right)
        case ex.Not(operand):
            yield from _leaves(operand)
        case _:
            yield part


def _lenient(part: ex.Expr, rows: Sequence[Row]) -> bool:
    try:
        return evaluate(part, rows) is True
    except EvaluationError:
        return True
