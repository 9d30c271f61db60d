"""A sweep as jobs of Spark, its findings, and which sweeps can keep rows.

A sweep as jobs of Spark: the same kernel and the same counts, shards spread over executors.

Shards are counted by ``mapInArrow``, some at a time; their rows go into Delta tables, the counts
last, so that a sweep that was killed goes on after the last commit and counts nothing twice.

Which sweeps can keep a row for each candidate.

What a sweep found, kind by kind: how many, and the first of each as a litmus test.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from isolitmus.checker.sweeps.space import Space
from isolitmus.checker.sweeps.table_sweep import LIMIT, example, finish_sweep, sweep_work
from isolitmus.checker.sweeps.tally import make_shards, shard_number
from isolitmus.checker.universes.recheck import with_expectations
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.pipeline.result_table import Location
from isolitmus.pipeline.spark import job_description, map_on_workers, parallelism
from isolitmus.pipeline.sweep_shards import ShardTask, count_function, tallies_from_rows
from isolitmus.pipeline.sweep_tables import SweepData, kept_tables, sweep_tables
from isolitmus.specs import scope as named_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.table_sweep import Sweep
    from isolitmus.checker.sweeps.tally import First, Shards, Tallies
    from isolitmus.model.scope import Scope
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = ["finding_rows", "rank_within_size", "refuse_unlisted", "sweep"]


def refuse_unlisted(work: Work, keep: str) -> None:
    """IsolitmusError if the candidates of a sweep cannot be kept one by one."""
    scope = work.scope
    less = "counts and findings can be kept"
    if scope.noops != "skip":
        raise IsolitmusError(
            f"--keep {keep}: scope {scope.name} has commits that find nothing to do, which some"
            f" protocols record and others do not, so that a candidate is several histories; {less}"
        )
    space = Space(scope)
    for start in space.starts:
        for statements, number in zip(scope.statements, space.options(start, 1), strict=True):
            after = space.databases[space.after(start, number)] if number >= 0 else {}
            for name, table in after.items():
                declared = scope.tables[name].columns
                if table.header is not None and table.header.metadata.columns != declared:
                    raise IsolitmusError(
                        f"--keep {keep}: '{statements[0].sql}' changes the columns of {name}, and"
                        f" rows are kept by the columns that it has at first; {less}"
                    )


def finding_rows(work: Work, total: Tallies) -> Iterator[dict[str, Any]]:
    """The rows of the table of findings."""
    for protocol, tally in total.of.items():
        for level, kinds in tally.kinds.items():
            for kind, (number, first) in sorted(kinds.items(), key=lambda item: item[1][1]):
                test = with_expectations(example(work, first, protocol, level), protocol, level)
                yield {
                    "size": work.n,
                    "protocol": protocol,
                    "level": level,
                    **kind._asdict(),
                    "candidates": number,
                    "smallest": first == tally.first[level],
                    "rank": rank_within_size(work, first),
                    "litmus": test.text,
                }


def rank_within_size(work: Work, found: First) -> int:
    """The number of a candidate among those of its size.

    >>> from isolitmus.checker.sweeps.table_sweep import sweep_work
    >>> from isolitmus.specs import scope
    >>> rank_within_size(sweep_work(scope("two-partitions"), 2), (1, 0, ((0, 0), (0, 1))))
    99
    """
    init, _, choices = found
    return shard_number(len(work.scope.statements), init, choices)


FIRST, FEW = 4, 20_000
"""So many shards, or as many as have so many candidates, are counted before the first commit; then
as many as take about PATIENCE seconds."""
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
    """Count every candidate of the scope with so many ``transactions`` on Spark, as
    ``checker.sweeps.table_sweep.sweep`` does.

    ``spark`` is a SparkSession of any kind; where there is an ``out``, one with Delta. ``out`` is
    where Delta tables go (``pipeline.sweep_tables``): a folder, an address that Spark reads, or a
    schema of a catalog, ``cat.db``. They are made if they are not there; shards that the counts
    have are not counted again. ``keep`` is what is kept there: ``counts``, ``findings`` (the
    default), ``executions``, or ``verdicts``, each with all that those before it keep.
    IsolitmusError if something else is there; EngineFailed if Spark fails.
    """
    start, ended, scope = monotonic(), None, named_scope(scope)
    budget, keep = budget or Budget(), (keep or USUAL) if out else "counts"
    work = sweep_work(scope, transactions, protocols=protocols, levels=levels, limit=limit)
    cut = sweep_shards(work, keep)
    words = f"isolitmus sweep {scope.name}, {transactions} transactions"
    data = None
    if out is not None:
        with job_description(spark, f"{words}: tables", budget):
            data = SweepData(spark, Location.of(out), work, keep, cut)
    tables = {name: sweep_tables(scope)[name] for name in kept_tables(keep)}
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
            with job_description(spark, counted, budget):
                rows += _count(spark, data, task, some, parallelism(spark))
            passed = monotonic() - began
            size = max(FIRST, min(FASTER * size, int(size * PATIENCE / passed)))
    except Limit as reached:
        ended = str(reached)
    if data is not None:
        rows = data.counts()
    total = tallies_from_rows(work, rows)
    if data is not None and keep != "counts":
        with job_description(spark, f"{words}: findings", Budget()):
            data.write("findings", list(finding_rows(work, total)))
    return finish_sweep(work, total, monotonic() - start, ended)


def sweep_shards(work: Work, keep: str) -> Shards:
    """The shards of a sweep that keeps so much; IsolitmusError where that cannot be kept."""
    if len(kept_tables(keep)) == 1:
        return make_shards(work.scope, work.n)
    refuse_unlisted(work, keep)
    return make_shards(work.scope, work.n, LISTED)


def _run_of(indexes: Sequence[int]) -> list[int]:
    """The first of some numbers, as long as they follow one another."""
    return [index for place, index in enumerate(indexes) if index == indexes[0] + place]


def _count(
    spark: Any, data: SweepData | None, task: ShardTask, some: Sequence[int], tasks: int
) -> list[Any]:
    """Count some shards in so many tasks, each those that follow one another: what a worker has
    found out serves most for what comes next. Write their rows: the counts last, which say that all
    is there. Without tables the rows of the counts.
    """
    places = spark.range(0, len(some), 1, min(tasks, len(some)))
    rows = map_on_workers(spark, places, count_function(task, some), task.one_of)
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
