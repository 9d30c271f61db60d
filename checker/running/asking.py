"""What delta-rs takes a statement to read: its condition, as it stands, on partitions and statistics.

Delta's transactions record the files and predicates of their scans. delta-rs has one condition for each
operation and compares it with what winners add and remove (conflict_checker.rs; protocol/mod.rs,
read_predicate and read_whole_table). A frame has these relations only where a protocol asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.running.skipping import command_filters, target_filters_of
from isolitmus.model import statement as st
from isolitmus.model.execution import Asked
from isolitmus.model.frame import Frame
from isolitmus.model.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.running.skipping import Filters
    from isolitmus.model.execution import Event
    from isolitmus.model.schema import Schema
    from isolitmus.model.table import File

__all__ = ["ASKED", "asked", "with_asked"]

ASKED = ("adds-could-match", "removes-could-match")
"""The relations that a frame has besides, if its transactions say what they asked for."""


def asked(statement: st.Statement, schema: Schema, files: Sequence[File]) -> Asked:
    """What a statement asks for in a table that has these files.

    Without a condition an operation reads every file that is there, for what winners remove, and
    nothing, for what they add; a MERGE whose ON says nothing of the target alone reads everything.

    >>> from isolitmus.model.schema import Column, Schema
    >>> from isolitmus.model.table import File, TableRow
    >>> from isolitmus.specs.sql import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> file = File.of("f", (), (TableRow("a", "", (1,)),))
    >>> delete = read_statement("DELETE FROM t WHERE id > 5", {"t": t})
    >>> found = asked(delete, t, [file])
    >>> found.files, found.could_match(file)
    (frozenset(), False)
    """
    match statement:
        case st.Delete(where=where) if where is not None:
            return _filtered(command_filters(schema, where), schema, files)
        case st.Update(where=where):
            return _filtered(command_filters(schema, where), schema, files)
        case st.Insert(where=where) if where is not None:
            return _filtered(command_filters(schema, where), schema, files)
        case st.Merge(on=on, by_source=by_source):
            filters = target_filters_of(schema, on)
            if by_source or filters is None:
                return Asked(None, lambda _: True)
            return _filtered(filters, schema, files)
    return Asked(frozenset(file.path for file in files), lambda _: False)


def _filtered(filters: Filters, schema: Schema, files: Sequence[File]) -> Asked:
    return Asked(
        frozenset(file.path for file in filters.files(schema, files)),
        lambda file: bool(filters.files(schema, (file,))),
    )


def with_asked(events: Sequence[Event], frame: Frame) -> Frame:
    """The frame with the relations of ASKED."""
    rows = {name: [0] * len(events) for name in ASKED}
    why = dict(frame.why)
    for j, loser in enumerate(events):
        wants = loser.asked
        if wants is None:
            continue
        for i, winner in enumerate(events):
            wrote, read = winner.effect.footprint, loser.effect.footprint
            if i == j or wrote is None or read is None or wrote.schema.name != read.schema.name:
                continue
            table = wrote.schema.name
            if any(map(wants.could_match, winner.effect.adds)):
                rows["adds-could-match"][i] |= 1 << j
                why["adds-could-match", i, j] = (
                    f"{winner.name} added a file to {table} that could hold what {loser.name} asks for"
                )
            gone = winner.effect.removes
            if gone and (wants.files is None or not gone.isdisjoint(wants.files)):
                rows["removes-could-match"][i] |= 1 << j
                why["removes-could-match", i, j] = (
                    f"{winner.name} removed a file of {table} that could hold what {loser.name} asks for"
                )
    relations = {name: Relation(tuple(found)) for name, found in rows.items()}
    return Frame(frame.nodes, {**frame.relations, **relations}, frame.sets, why)
