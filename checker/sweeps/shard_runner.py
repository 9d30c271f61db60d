"""Runner that counts shards one after another, in this process or in several."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.execution.worker_processes import (
    ignore_interrupts,
    process_pool,
    spawn_context,
)
from isolitmus.checker.sweeps.kernel import Kernel
from isolitmus.checker.sweeps.tally import make_shards
from isolitmus.model.errors import Ended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from isolitmus.checker.sweeps.tally import Shards, Tallies
    from isolitmus.model.budget import Budget
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

EACH = 200_000
"""Maximal number of candidates of a shard; if a count is ended, finished shards are kept."""
LOOK = 0.1
"""Seconds between two checks of the budget while processes count."""


class Work(NamedTuple):
    """Specification of a count: scope, number of writers, protocols, levels."""

    scope: Scope
    n: int
    protocols: tuple[Spec, ...]
    levels: tuple[Spec, ...]


def make_kernel(work: Work) -> Kernel:
    """Return the kernel that counts some work."""
    return Kernel(work.scope, work.n, work.protocols, work.levels)


def work_parts(work: Work) -> Shards:
    """Return the shards of some work."""
    return make_shards(work.scope, work.n, EACH)


def count_shards(
    work: Work, wanted: Iterable[int], processes: int, budget: Budget
) -> Iterator[tuple[int, Tallies]]:
    """Yield the numbers of shards with their tallies, as they are done.

    Parameters
    ----------
    work : Work
        What to count.
    wanted : iterable of int
        Numbers of shards.
    processes : int
        Number of processes; if there are several, they end with the iteration.
    budget : Budget
        Limits of time and memory.

    Raises
    ------
    Limit
        If the budget is spent.
    Ended
        If a process was ended from outside.
    """
    cut = work_parts(work)
    if processes == 1:
        own = make_kernel(work)
        own.check = budget.check
        for index in wanted:
            yield index, own.count(cut[index])
        return
    left = list(wanted)
    shares = Shares(len(left), processes)
    with process_pool(processes, _begin, work, left, shares) as pool:
        given = 0
        running: set[Future[tuple[int, Tallies]]] = set()
        while True:
            while given < len(left) and len(running) < 2 * processes:
                with ignore_interrupts():
                    running.add(pool.submit(_count))
                given += 1
            if not running:
                return
            budget.check()
            try:
                done, running = wait(running, LOOK, FIRST_COMPLETED)
                for one in done:
                    yield one.result()
            except BrokenProcessPool:
                raise Ended(
                    "a process of the sweep was ended from outside (out of memory?); fewer at a"
                    " time, --cores 1, need less"
                ) from None


class Shares:
    """Work, in order, shared by processes; a process that is done takes half of the largest rest.

    Each process has a contiguous part, because what it has memoized is most useful for what comes
    next.

    Examples
    --------
    >>> shares = Shares(6, 2)
    >>> [shares.take(0) for _ in range(4)], [shares.take(1) for _ in range(2)]
    ([0, 1, 2, 4], [3, 5])
    """

    def __init__(self, work: int, processes: int) -> None:
        context = spawn_context()
        cuts = [work * i // processes for i in range(processes + 1)]
        self._bounds = context.Array("q", [*cuts[:-1], *cuts[1:]])
        self._processes = processes
        self._here = context.Value("i", 0)

    def mine(self) -> int:
        """Return a number for each process that asks, different for each."""
        with self._here.get_lock():
            self._here.value += 1
            return int(self._here.value - 1) % self._processes

    def take(self, mine: int) -> int:
        """Return the next item for a process; there must be one left."""
        n = self._processes
        with self._bounds.get_lock():
            bounds: Any = self._bounds.get_obj()
            if bounds[mine] == bounds[mine + n]:
                most = max(range(n), key=lambda i: bounds[i + n] - bounds[i])
                bounds[mine + n] = bounds[most + n]
                bounds[mine] = bounds[most + n] = (bounds[most] + bounds[most + n]) // 2
            bounds[mine] += 1
            return int(bounds[mine]) - 1


class _Here:
    """Globals of a process of the pool."""

    kernel: Kernel
    cut: Shards
    wanted: Sequence[int]
    shares: Shares
    mine: int


def _begin(work: Work, wanted: Sequence[int], shares: Shares) -> None:
    _Here.kernel, _Here.cut = make_kernel(work), work_parts(work)
    _Here.wanted, _Here.shares, _Here.mine = wanted, shares, shares.mine()


def _count() -> tuple[int, Tallies]:
    index = _Here.wanted[_Here.shares.take(_Here.mine)]
    return index, _Here.kernel.count(_Here.cut[index])
