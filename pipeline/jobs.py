"""A sweep as jobs of Spark: the same kernel and the same counts, shards spread over executors.

Shards are counted by ``mapInArrow``, some at a time; their rows go into a Delta table by one commit, so
that a sweep that was killed goes on after the last commit and counts nothing twice.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from isolitmus.checker.counting.tally import shards
from isolitmus.checker.sweeps import LIMIT, finished, sweep_work
from isolitmus.conformance.session import INSTALL, open_session
from isolitmus.model.budget import Budget
from isolitmus.model.errors import EngineUnavailable, IsolitmusError, Limit
from isolitmus.pipeline.findings import findings
from isolitmus.pipeline.listable import refuse_unlisted
from isolitmus.pipeline.shards import ShardTask, counter, tallies_of
from isolitmus.pipeline.sweep_data import SweepData
from isolitmus.pipeline.sweep_tables import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from isolitmus.checker.counting.tally import Shards
    from isolitmus.checker.counting.work import Work
    from isolitmus.checker.sweeps import Sweep
    from isolitmus.conformance.session import Session
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

__all__ = ["MASTER", "open_for_sweeps", "sweep"]

MASTER = "local[2]"
KNOWN = re.compile(r"local\[(\d+|\*)\]|local-cluster\[\d+,\d+,\d+\]")
CONF = {"spark.python.worker.reuse": "true", "spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
"""What a session for sweeps has besides: a worker keeps what it remembers, and tells of each shard."""
PACKAGES = ("pandas", "pyarrow")
"""What ``mapInArrow`` needs besides PySpark."""
FIRST, FEW = 4, 20_000
"""So many shards, or as many as have so many candidates, are counted before the first commit; then as many as take
about PATIENCE seconds."""
PATIENCE = 20.0
LISTED = 10_000
"""The most candidates of one shard where each has rows of its own."""
USUAL = "findings"
"""What is kept in a folder if nobody says what."""


@contextmanager
def open_for_sweeps(master: str = MASTER) -> Iterator[Session]:
    """A session of Spark for sweeps, while the block lasts.

    ``master``: ``local[N]``, N threads of one JVM, or ``local-cluster[EXECUTORS,CORES,MEMORY]``, that
    many executors in JVMs of their own on this machine, with so many megabytes each. IsolitmusError
    if it is neither; EngineUnavailable if Spark cannot be started.
    """
    if not KNOWN.fullmatch(master):
        raise IsolitmusError(
            f"--master is '{master}'; local[N] or local-cluster[EXECUTORS,CORES,MEGABYTES] is wanted"
        )
    for package in PACKAGES:
        if find_spec(package) is None:
            raise EngineUnavailable(
                f"the Python package {package} is not installed, which work on Spark needs;"
                f" {INSTALL} installs it"
            )
    with open_session(master, CONF) as session:
        yield session


def sweep(
    scope: Scope,
    transactions: int,
    session: Session,
    *,
    out: Path | None = None,
    keep: str | None = None,
    protocols: Sequence[Spec] | None = None,
    levels: Sequence[Spec] | None = None,
    limit: int = LIMIT,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """Count every candidate of the scope with so many ``transactions`` on Spark, as ``checker.sweeps.sweep`` does.

    ``out`` is a folder of Delta tables (``pipeline.sweep_tables``), made if there is none; shards that its counts
    have are not counted again. By default a temporary one. ``keep`` is what is kept there: ``counts``,
    ``findings`` (the default), ``executions``, or ``verdicts``, each with all that those before it keep.
    IsolitmusError if something else is there.
    """
    start, ended = monotonic(), None
    budget, keep = budget or Budget(), keep or (USUAL if out else "counts")
    work = sweep_work(scope, transactions, protocols=protocols, levels=levels, limit=limit)
    cut = sweep_shards(work, keep)
    name = uuid4().hex
    data = SweepData(session.spark, out or session.directory / f"sweep-{name}", work, keep, cut)
    tables = {table: data.declared[table] for table in kept(keep)}
    task = ShardTask(name, work, cut, tables, kinds="findings" in data.tables)
    done = data.done()
    left = [index for index in range(len(cut)) if index not in done]
    size = max(FIRST, FEW // cut.each)
    try:
        while left:
            if progress is not None:
                progress((len(cut) - len(left)) * cut.each)
            some = _run_of(left[:size])
            left = left[len(some) :]
            began = monotonic()
            with budget.stopping(session.spark.sparkContext.cancelAllJobs):
                _count(session.spark, data, task, some)
            passed = monotonic() - began
            size = max(FIRST, min(2 * size, int(size * PATIENCE / passed)))
    except Limit as reached:
        ended = str(reached)
    total = tallies_of(work, data.counts())
    if "findings" in data.tables:
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


def _count(spark: Any, data: SweepData, task: ShardTask, some: Sequence[int]) -> None:
    """Count some shards, and write their rows: the counts last, which say that all is there."""
    places = spark.range(0, len(some), 1, len(some))
    rows = places.mapInArrow(counter(task, some), task.one_of)
    several = len(task.tables) > 1
    if several:
        rows = rows.persist()
    for table in task.tables:
        own = rows.where(f"{table} IS NOT NULL").select(f"{table}.*")
        data.put(table, some[0], some[-1], own)
    if several:
        rows.unpersist()
