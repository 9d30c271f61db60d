"""Formats on Delta's log: Delta on Spark, Databricks, delta-rs.

DELTA is Delta Lake 4.4.0 on Spark. DATABRICKS is Delta Lake as documented on Databricks' page on
isolation levels. DELTA_RS is another writer of Delta's log, with its own read sets and conflict
rules.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from isolitmus.checker.delta.client_session import ScheduleClock, serial_effect
from isolitmus.checker.delta.commit import (
    apply_commit,
    error_before_conflict,
    initial_table,
    is_blind_append,
    refuse_second_attempt,
    replay_commit,
    retries_compaction,
    supposed_writer,
    unfit_level,
    write_commit,
)
from isolitmus.checker.delta.delta_rs_read_set import LEVEL_SETS, READ_SETS, read_set
from isolitmus.checker.delta.frame import RELATIONS, ROW_RELATIONS, SETS, delta_frame
from isolitmus.checker.delta.metadata_changes import read_definitions
from isolitmus.checker.delta.read_set import scanned_tables
from isolitmus.checker.delta.snapshot import OutsideReads
from isolitmus.checker.delta.statement_effects import statement_effect
from isolitmus.model.delta.log import LEVEL_KEY
from isolitmus.model.delta.table import TableState
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.format import Format, RandomTests
from isolitmus.model.sql.statement import EarlierCommit
from isolitmus.model.vocabulary import terms_of
from isolitmus.specs.sql.configuration import EMPTY_TEXTS, LEVELS, deletion_vectors_conf
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import SearchStrategy

    from isolitmus.model.execution import Database, Effect, Event
    from isolitmus.model.format import Executor, ScopeSolver
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement


def _documented(
    statement: Statement, database: Database, writer: str, schemas: Mapping[str, Schema]
) -> Effect:
    return statement_effect(statement, database, writer, schemas, OutsideReads(documented=True))


def _duck(litmus: Litmus) -> Executor:
    from isolitmus.checker.execution.duckdb_executor import DuckExecutor

    return DuckExecutor(litmus)


def _solver() -> ScopeSolver:
    from isolitmus.checker.delta import table_solver as table_symbolic

    return table_symbolic


def _on_tables() -> SearchStrategy[Litmus]:
    from isolitmus.checker.delta.random_tests import table_tests

    return table_tests(least=2, most=4, partitioned=None, tracked=False, sessions=True)


def _raw() -> SearchStrategy[Litmus]:
    from isolitmus.checker.delta.random_tests import raw_tests

    return raw_tests()


TABLES = Format(
    name="delta",
    title="Delta Lake on Spark",
    log="delta",
    terms=terms_of(*RELATIONS, *SETS),
    statement=read_statement,
    empty=initial_table,
    effect=_documented,
    after=apply_commit,
    frame=delta_frame,
    drive=partial(ScheduleClock, documented=True),
    alone=serial_effect,
    independent=_duck,
    sequences="Delta has no transactions of several statements: each statement commits by itself",
    written=write_commit,
    unfit=partial(unfit_level, taken=LEVELS[:2]),
    blind=is_blind_append,
    definitions=read_definitions,
    supposed=supposed_writer,
    solver=_solver,
    scans=scanned_tables,
    protocols=("delta-serializable", "delta-write-serializable"),
    levels=("log-serializable", "write-serializable"),
    random=(
        RandomTests(
            "tables", "SQL statements on tables with rows, some in one session", _on_tables
        ),
        RandomTests("raw", "transactions of which reads and actions are given", _raw),
    ),
    universe="table",
)
"""Base of the two Delta Lake formats."""

DELTA = replace(
    TABLES,
    effect=statement_effect,
    drive=ScheduleClock,
    unfit=unfit_level,
    forestalled=refuse_second_attempt,
    refusal=error_before_conflict,
    retries=retries_compaction,
)
"""Delta Lake 4.4.0 on Spark."""
DATABRICKS = replace(
    TABLES,
    name="databricks",
    title="Delta Lake as Databricks' page on isolation levels has it",
    searched_as="delta",
    random=(),
)
"""Delta Lake on Databricks.

Its conflict checks and their outcomes are those of its protocols; the page does not mention a
second attempt of OPTIMIZE.
"""


CONFS = {deletion_vectors_conf(verb): "false" for verb in ("delete", "update", "merge")} | {
    EMPTY_TEXTS: "kept"
}
"""Confs that describe how delta-rs writes files.

It rewrites files, even of a table whose property asks for deletion vectors, because it cannot write
them. It keeps '' in a partition column, which other writers, and its own compactions, change to
NULL (observed on deltalake 1.6.6 and 1.6.3).
"""


def _effect(
    statement: Statement, database: Database, writer: str, schemas: Mapping[str, Schema]
) -> Effect:
    return statement_effect(statement, database, writer, schemas, OutsideReads(confs=CONFS))


def _reads(event: Event, statement: Statement, database: Database) -> Event:
    """Return the transaction with its delta-rs read set.

    UndeterminedError for a statement that sets an isolation level: delta-rs has no SQL for it, and
    accepts other levels than Spark. The same for a commit that only Spark makes.
    """
    change = getattr(statement, "change", statement)
    if LEVEL_KEY in getattr(change, "properties", ()):
        raise UndeterminedError(
            f"'{statement.sql}': delta-rs sets {LEVEL_KEY} by a call of its own, to any text, which"
            " is not modelled; declare the level in the table's properties"
        )
    if isinstance(change, EarlierCommit):
        raise UndeterminedError(
            f"'{statement.sql}': delta-rs sets the property alone; only Delta on Spark makes other"
            " commits before"
        )
    footprint = event.effect.footprint
    if footprint is None:
        return event
    table = database.get(footprint.schema.name, TableState())
    return replace(event, read_set=read_set(statement, footprint.schema, table.files))


def _fits(_schema: Schema) -> str:
    """Return the empty string, since delta-rs accepts any text as isolation level."""
    return ""


def _foreign(event: Event) -> Event:
    """Return the commit as Spark reads it: delta-rs itself never marks a blind append."""
    footprint = event.effect.footprint
    if footprint is None:
        return event
    silent = replace(footprint, settings=replace(footprint.settings, claims=False))
    return replace(event, effect=replace(event.effect, footprint=silent))


DELTA_RS = replace(
    DELTA,
    name="delta-rs",
    title="delta-rs on the log of Delta",
    # delta-rs writes no deletion vectors and records no reads by row
    terms=terms_of(
        *(name for name in DELTA.terms if name not in ROW_RELATIONS), *READ_SETS, *LEVEL_SETS
    ),
    effect=_effect,
    confs=CONFS,
    after=replay_commit,
    reads=_reads,
    unfit=_fits,
    foreign=_foreign,
    protocols=("delta-rs-serializable", "delta-rs-write-serializable"),
    random=(),
    unsearched=(
        "what a commit of delta-rs leaves is what the log replays, and in the tables that are"
        " searched and counted the rows decide; isolitmus run carries a litmus test out under it"
    ),
)
"""delta-rs on Delta's log."""
