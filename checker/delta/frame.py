"""The frame of an execution on Delta: what any engine with versions has, and what Delta adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.delta import relations
from isolitmus.checker.delta.delta_rs_read_set import add_read_sets
from isolitmus.checker.delta.metadata_changes import with_definitions
from isolitmus.checker.delta.relations import FLAGS, add_relations
from isolitmus.checker.execution import frame as frames
from isolitmus.checker.execution.frame import dependencies
from isolitmus.checker.execution.row_reads import add_row_reads
from isolitmus.checker.judge.read_nodes import READ_RELATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.execution import Event
    from isolitmus.model.frame import Frame

__all__ = ["BASIC", "BASIC_SETS", "RELATIONS", "SETS", "delta_frame"]

BASIC = (*frames.BASIC, *relations.RELATIONS)
RELATIONS = (*BASIC, *READ_RELATIONS)
BASIC_SETS = (*frames.BASIC_SETS, *FLAGS)
SETS = (*frames.SETS, *FLAGS)


def delta_frame(events: Sequence[Event], *, reasons: bool = True, reads: bool = False) -> Frame:
    """The frame of the transactions that took effect, in the order in which they ended.

    As that of ``checker.execution.frame``, with what statements read and write of a table's definition,
    the relations and sets of ``checker.delta.relations``, and those of delta-rs where a transaction has
    a read set. Relations: RELATIONS; sets: SETS.
    """
    events = with_definitions(events)
    builder = dependencies(events, relations.RELATIONS, FLAGS, reasons=reasons)
    add_relations(events, builder)
    if any(event.read_set is not None for event in events):
        add_read_sets(events, builder)
    if reads:
        add_row_reads(events, builder)
    return builder.build()
