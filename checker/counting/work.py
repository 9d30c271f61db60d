"""Shards counted one after another, in this process or in several."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.counting.kernel import Kernel
from isolitmus.checker.counting.tally import shards
from isolitmus.checker.processes import process_pool, unheard
from isolitmus.model.errors import Ended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    from isolitmus.checker.counting.tally import Shards, Tallies
    from isolitmus.model.budget import Budget
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

__all__ = ["Work", "counted", "kernel", "parts"]

EACH = 50_000
"""The most candidates of one shard: of a count that is ended, those that are done are known."""
LOOK = 0.1
"""Seconds between two looks at what the work may take, while processes count."""


class Work(NamedTuple):
    """What is to be counted."""

    scope: Scope
    n: int
    protocols: tuple[Spec, ...]
    levels: tuple[Spec, ...]


def kernel(work: Work) -> Kernel:
    """The kernel of some work."""
    return Kernel(work.scope, work.n, work.protocols, work.levels)


def parts(work: Work) -> Shards:
    """What is counted at a time."""
    return shards(work.scope, work.n, EACH)


def counted(
    work: Work, wanted: Iterable[int], processes: int, budget: Budget
) -> Iterator[tuple[int, Tallies]]:
    """The shards of these numbers, each with its tallies as it is done; the processes, if there are
    several, end with the iteration. A Limit once the budget is spent; Ended if a process is ended.
    """
    cut = parts(work)
    if processes == 1:
        own = kernel(work)
        own.check = budget.check
        for index in wanted:
            yield index, own.count(cut[index])
        return
    with process_pool(processes, _begin, work) as pool:
        waiting = iter(wanted)
        running: set[Future[tuple[int, Tallies]]] = set()
        while True:
            for index in islice(waiting, 2 * processes - len(running)):
                with unheard():
                    running.add(pool.submit(_count, index))
            if not running:
                return
            budget.check()
            try:
                done, running = wait(running, LOOK, FIRST_COMPLETED)
                for one in done:
                    yield one.result()
            except BrokenProcessPool:
                raise Ended(
                    "a process of the sweep was ended from outside (out of memory?); fewer at a time,"
                    " --cores 1, need less"
                ) from None


class _Here:
    """What a process of a pool counts with."""

    kernel: Kernel
    cut: Shards


def _begin(work: Work) -> None:
    _Here.kernel, _Here.cut = kernel(work), parts(work)


def _count(index: int) -> tuple[int, Tallies]:
    return index, _Here.kernel.count(_Here.cut[index])
