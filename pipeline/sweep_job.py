"""Sweeps as Spark jobs, with the same kernel and counts as on one machine.

Shards are spread over executors and counted by ``mapInArrow``, some at a time. Their rows are
written to Delta tables, with the counts last, so that a killed sweep goes on after the last commit
and counts nothing twice. The findings are the numbers of each kind of forbidden history, with the
first of each as a litmus test.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from isolitmus.checker.sweeps.space import Space
from isolitmus.checker.sweeps.table_sweep import LIMIT, example, finish_sweep, sweep_work
from isolitmus.checker.sweeps.tally import make_shards, shard_number
from isolitmus.checker.universes.recheck import with_expectations
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.pipeline.spark import (
    MASTER,
    job_description,
    map_on_workers,
    open_spark,
    parallelism,
)
from isolitmus.pipeline.sweep_shards import ShardTask, count_function, tallies_from_rows
from isolitmus.pipeline.sweep_tables import SweepData, kept_tables, sweep_tables
from isolitmus.specs import scope as named_scope
from isolitmus.specs.disk.output_files import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.table_sweep import Sweep
    from isolitmus.checker.sweeps.tally import First, Shards, Tallies
    from isolitmus.model.scope import Scope
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike


def refuse_unlisted(work: Work, keep: str) -> None:
    """Raise IsolitmusError if a sweep cannot keep a row for each candidate."""
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
    """Yield the rows of the table of findings."""
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
    """Return the rank of a candidate among those of its size.

    Examples
    --------
    >>> from isolitmus.checker.sweeps.table_sweep import sweep_work
    >>> from isolitmus.specs import scope
    >>> rank_within_size(sweep_work(scope("two-partitions"), 2), (1, 0, ((0, 0), (0, 1))))
    99
    """
    init, _, choices = found
    return shard_number(len(work.scope.statements), init, choices)


FIRST, FEW = 4, 20_000
"""Minimum number of shards, and of candidates, that are counted before the first commit.

Later parts have as many shards as take about ``PATIENCE`` seconds.
"""
PATIENCE = 20.0
FASTER = 4
"""Maximum growth of the number of shards from one part to the next."""
LISTED = 10_000
"""Maximum number of candidates in a shard if each candidate has its own rows."""
USUAL = "findings"
"""Default of what is kept in a folder."""


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
    """Count every candidate of a scope on Spark, as ``checker.sweeps.table_sweep.sweep`` does.

    Parameters
    ----------
    spark : SparkSession
        Session of any kind; with ``out``, one with Delta.
    scope : Scope, str or Path
        Scope, or its name or path.
    transactions : int
        Number of transactions of each candidate.
    out : Location, Path or str, optional
        Place for Delta tables (``pipeline.sweep_tables``): a folder, an address that Spark reads,
        or a schema of a catalog, ``cat.db``. Tables are created if missing; shards that were
        counted there are not counted again.
    keep : {"counts", "findings", "executions", "verdicts"}, optional
        Rows that are kept; each value includes those before it. Default: "findings".
    protocols, levels : sequence of SpecLike, optional
        Protocols and levels of the sweep; by default those of the scope.
    limit : int
        Maximum number of candidates.
    budget : Budget, optional
        Limit of the work.
    progress : callable, optional
        Called with the number of finished candidates.

    Returns
    -------
    Sweep
        Counts, and the smallest example of each pair of protocol and level.

    Raises
    ------
    IsolitmusError
        If there are more than ``limit`` candidates, or if ``out`` holds something else.
    EngineFailed
        Spark failed.

    Examples
    --------
    >>> def count_reorders(spark, out):
    ...     done = sweep(spark, "two-partitions", 2, out=out)
    ...     return done.protocols["delta-write-serializable"].forbidden["log-serializable"]
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


@contextmanager
def open_sweep(
    master: str | None, out: Location | None, keep: str | None
) -> Iterator[Callable[..., Sweep]]:
    """Open Spark, and yield `sweep` on it with these tables."""
    with open_spark(master or MASTER) as spark:
        yield partial(sweep, spark, out=out, keep=keep)


def sweep_shards(work: Work, keep: str) -> Shards:
    """Return the shards of a sweep that keeps these rows; raise IsolitmusError if impossible."""
    if len(kept_tables(keep)) == 1:
        return make_shards(work.scope, work.n)
    refuse_unlisted(work, keep)
    return make_shards(work.scope, work.n, LISTED)


def _run_of(indexes: Sequence[int]) -> list[int]:
    """Return the longest prefix of consecutive numbers."""
    return [index for place, index in enumerate(indexes) if index == indexes[0] + place]


def _count(
    spark: Any, data: SweepData | None, task: ShardTask, some: Sequence[int], tasks: int
) -> list[Any]:
    """Count some shards and write their rows; without tables, return the rows of the counts.

    Each task gets consecutive shards, since a worker's caches help most for the next shard. The
    counts are written last: they say that all other rows are there.
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
