"""delta-rs as a format: another writer of Delta's log, with read sets and conflict rules of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.checker.delta.commit import after_as_logged
from isolitmus.checker.delta.delta_rs_read_set import LEVEL_SETS, READ_SETS, read_set
from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.delta.snapshot import OutsideReads
from isolitmus.checker.delta.statement_effects import effect
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.delta.table import TableState
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.vocabulary import terms_of
from isolitmus.specs.sql.configuration import EMPTY_TEXTS, vectors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.execution import Database, Effect, Event
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.statement import Statement

__all__ = ["DELTA_RS"]

CONFS = {vectors(verb): "false" for verb in ("delete", "update", "merge")} | {EMPTY_TEXTS: "kept"}
"""It rewrites files, also of a table whose property asks for deletion vectors: it has no code that writes one. And it
writes '' into a partition column as it is, of which others, and its own compactions, make NULL (seen on deltalake 1.6.6
and 1.6.3)."""


def _effect(
    statement: Statement, database: Database, writer: str, schemas: Mapping[str, Schema]
) -> Effect:
    return effect(statement, database, writer, schemas, OutsideReads(confs=CONFS))


def _reads(event: Event, statement: Statement, database: Database) -> Event:
    """The transaction with what delta-rs takes it to have read.

    UndeterminedError for a statement that sets an isolation level: delta-rs has no SQL for it, and takes others
    than Spark does.
    """
    change = getattr(statement, "change", statement)
    if LEVEL_KEY in getattr(change, "properties", ()):
        raise UndeterminedError(
            f"'{statement.sql}': delta-rs sets {LEVEL_KEY} by a call of its own, to any text, which is not"
            " modelled; declare the level in the table's properties"
        )
    footprint = event.effect.footprint
    if footprint is None:
        return event
    table = database.get(footprint.schema.name, TableState())
    return replace(event, read_set=read_set(statement, footprint.schema, table.files))


def _fits(_schema: Schema) -> str:
    """Say of no table that it cannot be: delta-rs takes any text for an isolation level."""
    return ""


def _foreign(event: Event) -> Event:
    """The commit as Spark finds it in the log: by itself delta-rs never says that it is a blind append."""
    footprint = event.effect.footprint
    if footprint is None:
        return event
    silent = replace(footprint, settings=replace(footprint.settings, claims=False))
    return replace(event, effect=replace(event.effect, footprint=silent))


DELTA_RS = replace(
    DELTA,
    name="delta-rs",
    title="delta-rs on the log of Delta",
    terms=terms_of(*DELTA.terms, *READ_SETS, *LEVEL_SETS),
    effect=_effect,
    confs=CONFS,
    after=after_as_logged,
    reads=_reads,
    unfit=_fits,
    foreign=_foreign,
    protocols=("delta-rs-serializable", "delta-rs-write-serializable"),
    random=(),
    unsearched=(
        "what a commit of delta-rs leaves is what the log replays, and in the tables that are searched and"
        " counted the rows decide; isolitmus run carries a litmus test out under it"
    ),
)
