"""What CREATE TABLE does, and where there is no table CREATE OR REPLACE TABLE and a DataFrame write.

The new table is version 0 of its log: metadata, protocol and the rows of the query, if there is one.
Of the table it has read nothing, but that it was not there; who makes it, too, in the meantime meets its
protocol. It says no isolation level, for that cannot be said: the table is Serializable
(CreateDeltaTableCommand.scala 117-541).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from isolitmus.checker.delta.metadata_changes import idle, redefined, refuse_level
from isolitmus.checker.delta.snapshot import NOTHING
from isolitmus.model.delta.footprint import Actions, Footprint, Settings
from isolitmus.model.delta.header import Header
from isolitmus.model.execution import Effect, births
from isolitmus.model.sql.definition import Clone, Create, Replace
from isolitmus.model.sql.failing import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.checker.delta.snapshot import Snapshot
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.query import Query
    from isolitmus.model.sql.statement import Insert, Statement

__all__ = ["created", "first_written", "folder_made", "operation"]

EARLY = (
    "AnalysisException",
    "CannotReplaceMissingTableException",
    "TableAlreadyExistsException",
)
"""How the failures end that come before anything is done."""


def created(
    snapshot: Snapshot, declared: Mapping[str, Schema], statement: Create | Replace
) -> Effect:
    """The effect of a CREATE, or of a REPLACE of a table that is not there, on a snapshot.

    A CREATE without a query wants its folder empty. Who makes the table with a query, or clones, puts
    up with what is there, for it may be left from an attempt that failed; and a CREATE OR REPLACE of
    rows removes what is there: nothing, but that counts as a read.
    """
    name, query = statement.target, statement.query
    if isinstance(statement, Create) and name in snapshot.database:
        if statement.if_not_exists:
            return idle(snapshot, name, operation(statement))
        raise EvaluationError("TableAlreadyExistsException", f"there is a table {name}")
    if isinstance(statement, Replace) and not statement.create:
        raise EvaluationError("CannotReplaceMissingTableException", f"there is no table {name}")
    refuse_level(
        statement.properties,
        "IllegalArgumentException",
        documented=snapshot.outside.documented,
    )
    schema = replace(declared[name], properties=statement.properties)
    if query is None and name in snapshot.outside.folders:
        raise EvaluationError("DeltaAnalysisException", f"the folder of {name} is not empty")
    removes = query is not None and isinstance(statement, Replace)
    return _made(snapshot, schema, query, operation(statement), removes=removes)


def first_written(snapshot: Snapshot, declared: Mapping[str, Schema], statement: Insert) -> Effect:
    """The effect of a DataFrame write to a path where there is no table (WriteIntoDelta.scala): an overwrite
    looks for files there, which is a read.
    """
    schema = replace(declared[statement.target], properties={})
    return _made(snapshot, schema, statement.query, "WRITE", removes=statement.overwrite)


def _made(
    snapshot: Snapshot, schema: Schema, query: Query | None, name: str, *, removes: bool
) -> Effect:
    """The effect of what makes a table, with what a query gives; ``removes``: it would remove what is there."""
    result = NOTHING if query is None else snapshot.query(query)
    branches = snapshot.inserted(schema, result.branches)
    adds = snapshot.written(schema, branches)
    header = Header.of(schema)
    writer = snapshot.writer
    metadata = replace(header.metadata, id=writer, created=writer, levelled=False)
    footprint = Footprint(
        schema,
        predicates=((),) if removes else (),
        adds=tuple(file.partition for file in adds),
        data_change=bool(adds),
        actions=Actions(metadata, header.features),
        settings=Settings(default_level=True),
        header=Header(),
    )
    writes = (
        *births(schema.name, chain(*branches)),
        *redefined(schema.name, None, metadata),
    )
    return Effect(result.reads, writes, adds, footprint=footprint, operation=name)


def operation(statement: Create | Replace) -> str:
    """What the log calls it (CreateDeltaTableCommand.scala, getOperation)."""
    verb = "REPLACE TABLE" if isinstance(statement, Replace) else "CREATE TABLE"
    verb = f"CREATE OR {verb}" if isinstance(statement, Replace) and statement.create else verb
    return verb if statement.query is None else f"{verb} AS SELECT"


def folder_made(statement: Statement, done: Effect, *, prepared: bool) -> frozenset[str]:
    """The table whose folder is there once a statement has come so far, if it is one that makes it: with
    a query, or as a clone, as soon as it has read, though it should fail; else when it has ``prepared``
    its commit.
    """
    match statement:
        case Create(target=target, query=query) | Replace(target=target, query=query):
            early = done.error is not None and done.error.exception.endswith(EARLY)
            made = not early if query is not None else done.error is None and prepared
        case Clone(target=target):
            made = done.error is None
        case _:
            return frozenset()
    return frozenset((target,)) if made else frozenset()
