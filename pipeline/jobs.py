"""A sweep as jobs of Spark: the same kernel and the same counts, shards spread over executors.

Shards are counted by ``mapInArrow``, some at a time; their rows go into a Delta table by one commit, so
that a sweep that was killed goes on after the last commit and counts nothing twice.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING
from uuid import uuid4

from isolitmus.checker.counting.tally import shards
from isolitmus.checker.sweeps import LIMIT, finished, sweep_work
from isolitmus.conformance.session import INSTALL, open_session
from isolitmus.model.budget import Budget
from isolitmus.model.errors import EngineUnavailable, IsolitmusError, Limit
from isolitmus.pipeline.counts import Counts
from isolitmus.pipeline.shards import COLUMNS, counter, tallies_of
from isolitmus.pipeline.table import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

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
FIRST = 4
"""So many shards are counted before the first commit; then as many as take about PATIENCE seconds."""
PATIENCE = 20.0


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
    protocols: Sequence[Spec] | None = None,
    levels: Sequence[Spec] | None = None,
    limit: int = LIMIT,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """Count every candidate of the scope with so many ``transactions`` on Spark, as
    ``checker.sweeps.sweep`` does.

    ``out`` is a Delta table, made if there is none; shards whose rows it holds are not counted again.
    By default a temporary one. IsolitmusError if it holds something else.
    """
    start, ended = monotonic(), None
    budget = budget or Budget()
    work = sweep_work(scope, transactions, protocols=protocols, levels=levels, limit=limit)
    name = uuid4().hex
    counts = Counts(session.spark, out or session.directory / f"sweep-{name}", work)
    cut = shards(scope, transactions)
    done = counts.done()
    left = [index for index in range(len(cut)) if index not in done]
    size = FIRST
    try:
        while left:
            if progress is not None:
                progress((len(cut) - len(left)) * cut.each)
            some, left = left[:size], left[size:]
            began = monotonic()
            with budget.stopping(session.spark.sparkContext.cancelAllJobs):
                places = session.spark.range(0, len(some), 1, len(some))
                counts.append(places.mapInArrow(counter(work, some, name), schema(COLUMNS)))
            passed = monotonic() - began
            size = max(FIRST, min(2 * size, int(size * PATIENCE / passed)))
    except Limit as reached:
        ended = str(reached)
    return finished(work, tallies_of(work, counts.rows()), monotonic() - start, ended)
