"""Shards counted one after another, in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.counting.kernel import Kernel
from isolitmus.checker.counting.tally import shards
from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    from isolitmus.checker.counting.tally import Tallies
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

__all__ = ["Work", "cores", "counted", "kernel"]


class Work(NamedTuple):
    """What is to be counted."""

    scope: Scope
    n: int
    protocols: tuple[Spec, ...]
    levels: tuple[Spec, ...]


def cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def kernel(work: Work) -> Kernel:
    """The kernel of some work."""
    return Kernel(work.scope, work.n, work.protocols, work.levels)


def counted(work: Work, wanted: Iterable[int], processes: int) -> Iterator[tuple[int, Tallies]]:
    """The shards of these numbers, each with its tallies as it is done; the processes, if there are
    several, end with the iteration.
    """
    cut = shards(work.scope, work.n)
    if processes == 1:
        own = kernel(work)
        for index in wanted:
            yield index, own.count(cut[index])
        return
    with _pool(work, processes) as pool:
        waiting = iter(wanted)
        running: set[Future[tuple[int, Tallies]]] = set()
        while True:
            for index in islice(waiting, 2 * processes - len(running)):
                with _unheard():
                    running.add(pool.submit(_count, index))
            if not running:
                return
            try:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for one in done:
                    yield one.result()
            except BrokenProcessPool:
                raise IsolitmusError(
                    "a process of the sweep was ended from outside (out of memory?); fewer at a time,"
                    " --cores 1, need less"
                ) from None


@contextmanager
def _pool(work: Work, processes: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin, (work,))
    before = set(multiprocessing.active_children())
    try:
        yield pool
        pool.shutdown()
    finally:  # also at a Ctrl-C, which the processes do not hear: they must not stay
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()


@contextmanager
def _unheard() -> Iterator[None]:
    """A Ctrl-C waits until the block ends; processes that start in it never hear one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Here:
    """What a process of a pool counts with."""

    kernel: Kernel


def _begin(work: Work) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Here.kernel = kernel(work)


def _count(index: int) -> tuple[int, Tallies]:
    own = _Here.kernel
    return index, own.count(shards(own.scope, own.n)[index])
