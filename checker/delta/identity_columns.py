"""Identity columns: values that an INSERT does not give are generated from the high-water mark.

The mark is part of the table's metadata, so an INSERT that generates values writes that, too, and
stays the blind append that it may be (IdentityColumn.scala; OptimisticTransaction.scala 566-586).
Of two that missed each other the later one fails; others take no note of a winner that changed the
marks alone (ConflictChecker.scala 681-696). At row level the marks of a table are one item, which
is read and written by whoever generates values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.read_set import accesses
from isolitmus.model.delta.footprint import Actions
from isolitmus.model.execution import Effect, RowWrite
from isolitmus.model.sql.types import fit_integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.delta.header import Metadata
    from isolitmus.model.schema import Identity, Schema
    from isolitmus.model.sql import statement as st
    from isolitmus.model.sql.statement import Definition
    from isolitmus.model.sql.values import Row

__all__ = ["advance_high_water_marks", "generate_values", "high_water_marks", "sync_identity"]


def generate_values(
    snapshot: Snapshot, statement: st.Insert, branches: Sequence[Sequence[Row]]
) -> tuple[tuple[Row, ...], ...]:
    """The rows with their generated values: start, start + step and so on, in their order, which is
    that of one task (GenerateIdentityValues.scala).
    """
    if not statement.generates:
        return tuple(map(tuple, branches))
    name = statement.target
    schema, reached = snapshot.schemas[name], snapshot.header(name).metadata.reached

    def numbered(k: int, row: Row) -> Row:
        values = list(row)
        for index in statement.generates:
            first, step = _next(schema, index, reached)
            values[index] = first + k * step
        return tuple(values)

    return tuple(tuple(numbered(k, row) for k, row in enumerate(rows)) for rows in branches)


def advance_high_water_marks(
    snapshot: Snapshot, statement: st.Insert, rows: int, done: Effect
) -> Effect:
    """The effect of an INSERT that has generated values for so many rows: it writes the marks.

    Without a row, too, if it has written an empty file, as it does where there are no partitions:
    of that the greatest value counts as 0 (DeltaIdentityColumnStatsTracker), which is before the
    start.
    """
    footprint, name = done.footprint, statement.target
    schema = snapshot.schemas[name]
    if not statement.generates or footprint is None or (schema.partition_indexes and not rows):
        return done
    metadata = snapshot.header(name).metadata
    reached = dict(metadata.reached)
    for index in statement.generates if rows else ():
        first, step = _next(schema, index, metadata.reached)
        reached[schema.columns[index].name.lower()] = first + (rows - 1) * step
    after = replace(metadata, reached=reached)
    item = high_water_marks(name)
    write = RowWrite(item, item, next_values(schema, metadata), next_values(schema, after))
    actions = replace(footprint.actions, metadata=after, identity=True)
    footprint = replace(footprint, actions=actions)
    writes = (*done.writes, write) if rows else done.writes
    return replace(done, writes=writes, footprint=footprint)


def sync_identity(snapshot: Snapshot, statement: Definition, name: str, operation: str) -> Effect:
    """The effect of SYNC IDENTITY: the mark becomes the last value of the column, in the direction
    of its steps, or what its steps come to next; not where that is before the start, and never less
    than it was. It is written as it comes out, be it the same, and counts as read: all files, the
    whole table (alterDeltaTableCommands.scala 817-830; IdentityColumn.scala 206-275 and 405-440).
    """
    schema = snapshot.schemas[statement.target]
    index = schema.index(name)
    metadata = snapshot.header(schema.name).metadata
    assert index is not None
    identity = schema.columns[index].identity
    assert identity is not None
    (target,) = accesses(statement, snapshot.schemas)
    read = snapshot.read(target)
    steps = [
        _steps(identity, value)
        for row in read.matched
        if isinstance(value := row.values[index], int)
    ]
    key = schema.columns[index].name.lower()
    last = metadata.reached.get(key, identity.start - identity.step)
    wanted = identity.start + max(steps, default=-1) * identity.step
    after = metadata
    if max(steps, default=-1) > _steps(identity, last):
        after = replace(metadata, reached={**metadata.reached, key: fit_integer(wanted, "BIGINT")})
    footprint = replace(
        snapshot.footprint(schema, [target], ()),
        changes_data=False,
        actions=Actions(after, identity=True),
    )
    writes: tuple[RowWrite, ...] = ()
    if after is not metadata:
        item = high_water_marks(schema.name)
        writes = (RowWrite(item, item, next_values(schema, metadata), next_values(schema, after)),)
    return Effect((read,), writes, footprint=footprint, operation=operation)


def _steps(identity: Identity, value: int) -> int:
    """How many steps after the start a value is, or the next one that the steps come to; below 0
    before it.

    >>> from isolitmus.model.schema import Identity
    >>> [_steps(Identity(True, 10, 5), value) for value in (4, 9, 10, 11, 15)]
    [-1, -1, 0, 1, 1]
    """
    before = (value - identity.start) * identity.step < 0
    return -1 if before else -((identity.start - value) // identity.step)


def high_water_marks(table: str) -> str:
    """What the item is called that stands for the high-water marks of a table."""
    return f"the identity values of {table}"


def next_values(schema: Schema, metadata: Metadata) -> Row:
    """The marks as a row: of each identity column what comes next."""
    return tuple(
        f"next {column.name} {_next(schema, index, metadata.reached)[0]}"
        for index, column in enumerate(schema.columns)
        if column.identity is not None
    )


def _next(schema: Schema, index: int, reached: Mapping[str, int]) -> tuple[int, int]:
    """The next value of an identity column, and its step."""
    column = schema.columns[index]
    assert column.identity is not None
    step = column.identity.step
    last = reached.get(column.name.lower(), column.identity.start - step)
    return last + step, step
