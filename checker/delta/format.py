"""Delta as a format: Delta Lake 4.4.0 on Spark, and Delta Lake as Databricks' page has it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from isolitmus.checker.delta.client_session import Clock, alone
from isolitmus.checker.delta.commit import (
    after,
    claims_blind,
    empty,
    forestalled,
    refusal,
    retries,
    unfit_level,
    written,
)
from isolitmus.checker.delta.frame import RELATIONS, SETS, delta_frame
from isolitmus.checker.delta.locality import scans
from isolitmus.checker.delta.metadata_changes import definitions
from isolitmus.checker.delta.snapshot import OutsideReads
from isolitmus.checker.delta.statement_effects import effect
from isolitmus.model.format import Format, RandomTests
from isolitmus.model.vocabulary import terms_of
from isolitmus.specs.sql.properties import LEVELS
from isolitmus.specs.sql.statements import read_statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.checker.templates.instance_frames import Instance
    from isolitmus.checker.templates.statement_template import Template
    from isolitmus.model.execution import Database, Effect
    from isolitmus.model.format import Executor, ScopeSolver
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.schema import Schema
    from isolitmus.model.sql.statement import Read, Statement

__all__ = ["DATABRICKS", "DELTA"]


def _documented(
    statement: Statement, database: Database, writer: str, schemas: Mapping[str, Schema]
) -> Effect:
    return effect(statement, database, writer, schemas, OutsideReads(documented=True))


def _duck(litmus: Litmus) -> Executor:
    from isolitmus.checker.execution.duckdb_executor import DuckExecutor

    return DuckExecutor(litmus)


def _solver() -> ScopeSolver:
    from isolitmus.checker.delta import table_solver as table_symbolic

    return table_symbolic


def _instance(template: Template, outside: Sequence[Read], besides: Sequence[str]) -> Instance:
    from isolitmus.checker.delta.instance import DeltaInstance

    return DeltaInstance(template, outside, besides)


def _on_tables() -> SearchStrategy[Litmus]:
    from isolitmus.checker.delta.random_tests import any_tests

    return any_tests(least=2, most=4, partitioned=None, tracked=False, sessions=True)


def _raw() -> SearchStrategy[Litmus]:
    from isolitmus.checker.delta.raw_strategies import raw_tests

    return raw_tests()


TABLES = Format(
    name="delta",
    title="Delta Lake on Spark",
    log="delta",
    terms=terms_of(*RELATIONS, *SETS),
    statement=read_statement,
    empty=empty,
    effect=_documented,
    after=after,
    frame=delta_frame,
    drive=partial(Clock, documented=True),
    alone=alone,
    independent=_duck,
    sequences="Delta has no transactions of several statements: each statement commits by itself",
    written=written,
    unfit=partial(unfit_level, taken=LEVELS[:2]),
    blind=claims_blind,
    definitions=definitions,
    solver=_solver,
    scans=scans,
    instance=_instance,
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
"""What is common to all that Delta Lake is taken to be."""

DELTA = replace(
    TABLES,
    effect=effect,
    drive=Clock,
    unfit=unfit_level,
    forestalled=forestalled,
    refusal=refusal,
    retries=retries,
)
DATABRICKS = replace(
    TABLES,
    name="databricks",
    title="Delta Lake as Databricks' page on isolation levels has it",
    searched_as="delta",
    random=(),
)
"""Its checks are its protocols', and end as these say; of a second attempt of OPTIMIZE the page says nothing."""
