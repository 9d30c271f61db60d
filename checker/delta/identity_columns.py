"""Identity columns: values that an INSERT does not give are generated from the high-water mark.

The mark is part of the table's metadata. An INSERT that generates values therefore writes metadata,
and may still be a blind append (IdentityColumn.scala; OptimisticTransaction.scala 566-586). Of two
such INSERTs that missed each other the later one fails; other commits ignore a winner that changed
only marks (ConflictChecker.scala 681-696). At row level the marks of a table are one item, which is
read and written by every statement that generates values.
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
    from isolitmus.model.sql import statement as st
    from isolitmus.model.sql.schema import Identity, Schema
    from isolitmus.model.sql.statement import Definition
    from isolitmus.model.sql.values import Row


def generate_values(
    snapshot: Snapshot, statement: st.Insert, branches: Sequence[Sequence[Row]]
) -> tuple[tuple[Row, ...], ...]:
    """Return the rows with their generated values: start, start + step and so on, in row order.

    The order is that of one task (GenerateIdentityValues.scala).
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
    """Return the effect of an INSERT that has generated values and writes the marks.

    If it writes an empty file, as it does without rows in a table without partitions, it writes
    marks too: the maximum of an empty file counts as 0 (DeltaIdentityColumnStatsTracker), which is
    before the start.
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
    """Return the effect of SYNC IDENTITY.

    The mark becomes the last value of the column in step direction, rounded up to the next step. It
    never becomes one before the start, nor one before the old mark. It is written even if it is
    unchanged, and the statement counts as reading all files (alterDeltaTableCommands.scala 817-830;
    IdentityColumn.scala 206-275 and 405-440).
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
    """Return the steps from the start to a value, rounded up; −1 if it is before the start.

    >>> from isolitmus.model.sql.schema import Identity
    >>> [_steps(Identity(True, 10, 5), value) for value in (4, 9, 10, 11, 15)]
    [-1, -1, 0, 1, 1]
    """
    before = (value - identity.start) * identity.step < 0
    return -1 if before else -((identity.start - value) // identity.step)


def high_water_marks(table: str) -> str:
    """Return the name of the item that stands for the high-water marks of a table."""
    return f"the identity values of {table}"


def next_values(schema: Schema, metadata: Metadata) -> Row:
    """Return the marks as a row: the next value of each identity column."""
    return tuple(
        f"next {column.name} {_next(schema, index, metadata.reached)[0]}"
        for index, column in enumerate(schema.columns)
        if column.identity is not None
    )


def _next(schema: Schema, index: int, reached: Mapping[str, int]) -> tuple[int, int]:
    """Return the next value of an identity column, and its step."""
    column = schema.columns[index]
    assert column.identity is not None
    step = column.identity.step
    last = reached.get(column.name.lower(), column.identity.start - step)
    return last + step, step
