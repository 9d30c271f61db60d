"""A sweep as jobs of Spark: the same kernel and the same counts, shards spread over executors.

Shards are counted by ``mapInArrow``, some at a time; their rows go into Delta tables, the counts last, so that a sweep
that was killed goes on after the last commit and counts nothing twice.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from isolitmus.checker.sweeps.table_sweep import LIMIT, finished, sweep_work
from isolitmus.checker.sweeps.tally import shards
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Limit
from isolitmus.pipeline.findings import findings
from isolitmus.pipeline.listable import refuse_unlisted
from isolitmus.pipeline.location import Location
from isolitmus.pipeline.shipping import on_workers
from isolitmus.pipeline.spark import one_job, parallelism
from isolitmus.pipeline.sweep_data import SweepData
from isolitmus.pipeline.sweep_shards import ShardTask, counter, tallies_of
from isolitmus.pipeline.sweep_tables import kept, sweep_tables
from isolitmus.specs import scope as named_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.table_sweep import Sweep
    from isolitmus.checker.sweeps.tally import Shards
    from isolitmus.model.scope import Scope
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = ["sweep"]

FIRST, FEW = 4, 20_000
"""So many shards, or as many as have so many candidates, are counted before the first commit; then as many as take
about PATIENCE seconds."""
PATIENCE = 20.0
FASTER = 4
"""So many times the shards that were counted before are counted next, at most."""
LISTED = 10_000
"""The most candidates of one shard where each has rows of its own."""
USUAL = "findings"
"""What is kept in a folder if nobody says what."""


def sweep(
    spark: Any,
    scope: Scope | NameOrPath,
    transactions: int,
    *,
    out: Location | Path | str | None = None,
    keep: str | None = None,
    protocols: Sequence[SpecLike] | None = None,
    levels: Sequence[SpecLike] | None = None,
    limit: int = LIMIT,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """Count every candidate of the scope with so many ``transactions`` on Spark, as ``checker.sweeps.table_sweep.sweep`` does.

    ``spark`` is a SparkSession of any kind; where there is an ``out``, one with Delta. ``out`` is where Delta tables
    go (``pipeline.sweep_tables``): a folder, an address that Spark reads, or a schema of a catalog, ``cat.db``. They
    are made if they are not there; shards that the counts have are not counted again. ``keep`` is what is kept there:
    ``counts``, ``findings`` (the default), ``executions``, or ``verdicts``, each with all that those before it
    keep. IsolitmusError if something else is there; EngineFailed if Spark fails.
    """
    start, ended, scope = monotonic(), None, named_scope(scope)
    budget, keep = budget or Budget(), (keep or USUAL) if out else "counts"
    work = sweep_work(scope, transactions, protocols=protocols, levels=levels, limit=limit)
    cut = sweep_shards(work, keep)
    words = f"isolitmus sweep {scope.name}, {transactions} transactions"
    data = None
    if out is not None:
        with one_job(spark, f"{words}: tables", budget):
            data = SweepData(spark, Location.of(out), work, keep, cut)
    tables = {name: sweep_tables(scope)[name] for name in kept(keep)}
    task = ShardTask(uuid4().hex, work, cut, tables, kinds=keep != "counts")
    rows: list[Any] = []
    done = set[int]() if data is None else data.done
    left = [index for index in range(len(cut)) if index not in done]
    size = max(FIRST, FEW // cut.each)
    try:
        while left:
            if progress is not None:
                progress((len(cut) - len(left)) * cut.each)
            some = _run_of(left[:size])
            left = left[len(some) :]
            began = monotonic()
            counted = f"{words}: shards {some[0]} to {some[-1]} of {len(cut)}"
            with one_job(spark, counted, budget):
                rows += _count(spark, data, task, some, parallelism(spark))
            passed = monotonic() - began
            size = max(FIRST, min(FASTER * size, int(size * PATIENCE / passed)))
    except Limit as reached:
        ended = str(reached)
    if data is not None:
        rows = data.counts()
    total = tallies_of(work, rows)
    if data is not None and keep != "counts":
        with one_job(spark, f"{words}: findings", Budget()):
            data.write("findings", list(findings(work, total)))
    return finished(work, total, monotonic() - start, ended)


def sweep_shards(work: Work, keep: str) -> Shards:
    """The shards of a sweep that keeps so much; IsolitmusError where that cannot be kept."""
    if len(kept(keep)) == 1:
        return shards(work.scope, work.n)
    refuse_unlisted(work, keep)
    return shards(work.scope, work.n, LISTED)


def _run_of(indexes: Sequence[int]) -> list[int]:
    """The first of some numbers, as long as they follow one another."""
    return [index for place, index in enumerate(indexes) if index == indexes[0] + place]


def _count(
    spark: Any, data: SweepData | None, task: ShardTask, some: Sequence[int], tasks: int
) -> list[Any]:
    """Count some shards in so many tasks, each those that follow one another: what a worker has found out serves most
    for what comes next. Write their rows: the counts last, which say that all is there. Without tables the rows of
    the counts.
    """
    places = spark.range(0, len(some), 1, min(tasks, len(some)))
    rows = on_workers(spark, places, counter(task, some), task.one_of)
    if data is None:
        return [row["counts"] for row in rows.collect()]
    several = len(task.tables) > 1
    if several:
        rows = rows.persist()
    for table in task.tables:
        own = rows.where(f"{table} IS NOT NULL").select(f"{table}.*")
        data.put(table, some[0], some[-1], own)
    if several:
        rows.unpersist()
    return []
