"""Worker processes that end with this one, and import no module of the current folder.

A process that multiprocessing starts has the current folder first among the folders of modules
(``python -c``), before it gets those of its parent. There, a file with the name of one of Python's
modules would be executed in its place. The environment variable ``PYTHONSAFEPATH`` leaves the
folder out.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.context import SpawnContext

GONE = 5.0
"""Maximum time to wait for a process that was told to end, in seconds."""
SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable with which a new Python has no current folder among those of modules."""


def available_cores() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def process_pool(
    processes: int, begin: Callable[..., None], *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes, each initialized by ``begin(*given)``; they end with the block.

    Submit work within `ignore_interrupts`.
    """
    context = spawn_context()
    pool = ProcessPoolExecutor(processes, context, _begin, (begin, given))
    before = set(multiprocessing.active_children())
    try:
        with _safe_path():  # a process starts when work is submitted
            yield pool
            pool.shutdown()
    finally:  # also at Ctrl-C, which the worker processes ignore
        pool.shutdown(wait=False, cancel_futures=True)
        started = set(multiprocessing.active_children()) - before
        for process in started:
            process.terminate()
        for process in started:  # else a starting process would report that its files are gone
            process.join(GONE)


def spawn_context() -> SpawnContext:
    """Return multiprocessing's context for new processes, with its process that counts resources.

    Examples
    --------
    >>> spawn_context().get_start_method()
    'spawn'
    """
    with _safe_path():
        resource_tracker.ensure_running()
    return multiprocessing.get_context("spawn")


@contextmanager
def _safe_path() -> Iterator[None]:
    """Start Python without the current folder among those of modules until the block ends."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Block Ctrl-C and the signal of a limit until the block ends.

    A process whose start is interrupted would print a traceback. Processes that start in the block
    never receive a Ctrl-C.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGUSR1})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(begin: Callable[..., None], given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    begin(*given)


def _end_with_parent() -> None:
    """End this process when its parent ends; a killed parent would leave it waiting for work."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
