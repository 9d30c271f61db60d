"""Read sets of delta-rs: one condition per operation, evaluated on partition values and statistics.

Delta's transactions record the files and predicates of their scans. delta-rs has one condition for
each operation and compares it with what winning commits add and remove (conflict_checker.rs;
protocol/mod.rs, read_predicate and read_whole_table). A frame has these relations only if a
protocol uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.delta.data_skipping import target_filters_of
from isolitmus.checker.delta.read_set import accesses
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.execution import ReadSet
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import statement as st
from isolitmus.model.vocabulary import relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.delta.data_skipping import Filters
    from isolitmus.model.execution import Event
    from isolitmus.model.frame import FrameBuilder
    from isolitmus.model.sql.data_file import File
    from isolitmus.model.sql.schema import Schema

READ_SETS = relations_of("delta-rs")
"""Relations of frames whose transactions have read sets."""
LEVEL_SETS = sets_of("delta-rs")
"""Sets of such frames, by the level that a table declares."""
SPELLINGS = {"writeSerializable": "RsWriteSerializable", "snapshotIsolation": "RsSnapshotIsolation"}
"""Spellings of levels that delta-rs recognizes, each with its set.

Source: delta_kernel, table_properties.rs. Any other spelling counts as the third level,
serializable.
"""
FILTERED = (st.Delete, st.Insert, st.Merge, st.Update)
"""Statements whose condition is compared with added files."""


def read_set(statement: st.Statement, schema: Schema, files: Sequence[File]) -> ReadSet:
    """Return the read set of a statement on a table with these files.

    Without a condition, an operation reads every existing file (compared with removed files), and
    nothing (compared with added files). A MERGE whose ON has no condition on the target alone reads
    everything.

    Raises
    ------
    UndeterminedError
        If a condition has casts or functions.

    Examples
    --------
    >>> from isolitmus.model.sql.schema import Column, Schema
    >>> from isolitmus.model.sql.data_file import File, TableRow
    >>> from isolitmus.specs.sql.statements import read_statement
    >>> t = Schema("t", (Column("id", "INT"),))
    >>> file = File.of("f", (), (TableRow("a", "", (1,)),))
    >>> delete = read_statement("DELETE FROM t WHERE id > 5", {"t": t})
    >>> found = read_set(delete, t, [file])
    >>> found.files, found.could_match(file)
    (frozenset(), False)
    """
    reads = accesses(statement, {schema.name: schema}) if isinstance(statement, FILTERED) else ()
    target = next((access for access in reads if access.role in ("target", "match")), None)
    unconditional = target is None or target.where is None
    if target is None or (unconditional and isinstance(statement, st.Delete | st.Insert)):
        return ReadSet(frozenset(file.path for file in files), lambda _: False)
    if any(isinstance(part, ex.Call | ex.Opaque) for part in ex.walk(target.where or ex.TRUE)):
        raise UndeterminedError(
            f"'{statement.sql}': what delta-rs makes of casts and functions in '{target.where}' is"
            " not modelled"
        )
    if target.role == "target":
        return _filtered(target.filters(schema), schema, files)
    filters = target_filters_of(schema, target.where)
    return ReadSet(None, lambda _: True) if filters is None else _filtered(filters, schema, files)


def _filtered(filters: Filters, schema: Schema, files: Sequence[File]) -> ReadSet:
    """Return the read set of the files that pass the filters."""
    return ReadSet(
        frozenset(file.path for file in filters.files(schema, files)),
        lambda file: bool(filters.files(schema, (file,))),
    )


def add_read_sets(events: Sequence[Event], builder: FrameBuilder) -> None:
    """Add the relations of READ_SETS and the sets of LEVEL_SETS to a frame."""
    builder.have(*READ_SETS, sets=LEVEL_SETS)
    for j, loser in enumerate(events):
        known, read = loser.read_set, loser.effect.footprint
        if known is None or read is None:
            continue
        declared = read.schema.properties.get(LEVEL_KEY)
        if declared is not None:
            builder.put(SPELLINGS.get(declared, "RsSerializable"), j)
        for i, winner in enumerate(events):
            wrote = winner.effect.footprint
            if i == j or wrote is None or wrote.table != read.table:
                continue
            nouns = {"winner": winner.name, "loser": loser.name, "table": wrote.table}
            if any(map(known.could_match, winner.effect.adds)):
                builder.add("adds-could-match", i, j, "added, read set", **nouns)
            gone = wrote.removes
            if gone and (known.files is None or not gone.isdisjoint(known.files)):
                builder.add("removes-could-match", i, j, "removed, read set", **nouns)
