"""Delta as a format: Delta Lake 4.4.0 on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.delta.clients import Clock, alone
from isolitmus.checker.delta.commits import (
    after,
    claims_blind,
    empty,
    forestalled,
    refusal,
    retries,
    written,
)
from isolitmus.checker.delta.definitions import definitions
from isolitmus.checker.delta.effects import effect
from isolitmus.checker.delta.frames import RELATIONS, SETS, delta_frame
from isolitmus.checker.delta.locality import scans
from isolitmus.model.format import Format, RandomTests
from isolitmus.model.vocabulary import terms_of
from isolitmus.specs.sql import read_statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

    from isolitmus.checker.templates.frames import Instance
    from isolitmus.checker.templates.template import Template
    from isolitmus.model.format import Executor, ScopeSolver
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.statement import Read

__all__ = ["DELTA"]


def _duck(litmus: Litmus) -> Executor:
    from isolitmus.checker.running.duck import DuckExecutor

    return DuckExecutor(litmus)


def _solver() -> ScopeSolver:
    from isolitmus.checker.delta import table_symbolic

    return table_symbolic


def _instance(template: Template, outside: Sequence[Read], besides: Sequence[str]) -> Instance:
    from isolitmus.checker.delta.templates import DeltaInstance

    return DeltaInstance(template, outside, besides)


def _on_tables() -> SearchStrategy[Litmus]:
    from isolitmus.checker.strategies import litmus_tests

    return litmus_tests(least=2, most=4, sessions=True)


def _raw() -> SearchStrategy[Litmus]:
    from isolitmus.checker.delta.raw_strategies import raw_tests

    return raw_tests()


DELTA = Format(
    name="delta",
    title="Delta Lake on Spark",
    log="delta",
    terms=terms_of(*RELATIONS, *SETS),
    statement=read_statement,
    empty=empty,
    effect=effect,
    after=after,
    frame=delta_frame,
    drive=Clock,
    alone=alone,
    independent=_duck,
    sequences="Delta has no transactions of several statements: each statement commits by itself",
    forestalled=forestalled,
    refusal=refusal,
    written=written,
    retries=retries,
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
