"""An append that may add columns: a DataFrame write with ``mergeSchema``.

Its columns are the table's by name. Those that the table lacks come at its end, with a metadata in
the same commit, which is a blind append all the same; those that it does not give are NULL
(ImplicitMetadataOperation.scala 63-160).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.metadata_changes import rebased, redefined
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql import query as qu
from isolitmus.model.sql import statement as st

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.execution import Effect
    from isolitmus.model.schema import Schema

__all__ = ["grown"]


def grown(
    snapshot: Snapshot,
    declared: Mapping[str, Schema],
    statement: st.Insert,
    insert: Callable[[Snapshot, st.Insert], Effect],
) -> Effect:
    """The effect of such an append, whose rows ``insert`` puts in; its query gives the columns as
    declared, and then those of ``statement.options.grows``.
    """
    schema = snapshot.schemas[statement.target]
    given = (*declared[statement.target].columns, *(statement.options.grows or ()))
    lacking = tuple(column for column in given if schema.index(column.name) is None)
    wider = replace(schema, columns=(*schema.columns, *lacking))
    order = {column.name.lower(): k for k, column in enumerate(given)}

    def placed(items: tuple[ex.Expr, ...]) -> tuple[ex.Expr, ...]:
        return tuple(
            items[order[c.name.lower()]] if c.name.lower() in order else ex.Const(None, c.type)
            for c in wider.columns
        )

    query = tuple(
        replace(branch, rows=tuple(map(placed, branch.rows)))
        if isinstance(branch, qu.Values)
        else replace(branch, items=placed(branch.items))
        for branch in statement.query
    )
    widened = replace(snapshot, schemas={**snapshot.schemas, schema.name: wider})
    done = rebased(snapshot, insert(widened, replace(statement, query=query)))
    footprint = done.footprint
    if not lacking or footprint is None:
        return done
    header = snapshot.header(schema.name)
    metadata = replace(header.metadata, columns=wider.columns)
    footprint = replace(footprint, actions=replace(footprint.actions, metadata=metadata))
    writes = (*done.writes, *redefined(schema.name, header.metadata, metadata))
    return replace(done, writes=writes, footprint=footprint)
