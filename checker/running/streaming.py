"""A micro-batch of Delta's streaming sink, as its transaction sees it (DeltaSink.scala 113-175).

Spark has planned the batch, and so chosen the files that it reads, before the transaction starts
(MicroBatchExecution.scala, runBatch): the transaction notices no scan. One that finds the target in the
plan, by whatever version, is marked as reading the whole table; a subquery is an expression, in which
it does not look. In output mode complete it reads and removes all files. The commit always has the
application id of the query, with the number of the batch, and so is always recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.model import statement as st

if TYPE_CHECKING:
    from isolitmus.model.execution import Effect
    from isolitmus.model.footprint import Footprint

__all__ = ["micro_batch"]

OPERATION = "STREAMING UPDATE"


def micro_batch(statement: st.Insert, done: Effect, footprint: Footprint) -> Effect:
    """The effect of a micro-batch, given that of the INSERT that writes its rows without a tracked scan.

    >>> from isolitmus.model.execution import Effect
    >>> from isolitmus.model.footprint import Footprint
    >>> from isolitmus.model.schema import Column, Schema
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> copy = st.Insert("", "t", (st.Select("t", (), None, False),), stream=True)
    >>> micro_batch(copy, Effect(), Footprint(t)).footprint.whole_table
    True
    """
    sources = (branch for branch in statement.query if isinstance(branch, st.Select))
    if any(source.table == statement.target and not source.alias for source in sources):
        predicates = (*footprint.predicates, ())
        footprint = replace(footprint, predicates=predicates, whole_table=True)
    return replace(done, footprint=footprint, operation=OPERATION)
