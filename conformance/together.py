"""Several replays at a time, and what becomes of each in their order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from isolitmus.conformance.workers import ends_with

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

__all__ = ["together"]

T = TypeVar("T")
R = TypeVar("R")


def together(work: Callable[[T], R], items: Iterable[T], at_once: int) -> Generator[R, None, None]:
    """The results of some work on each item, in the order of the items and as soon as they are there, so many
    at a time, from 1. Raises what the work raises; when this ends, what has not begun is dropped, and what has
    is interrupted (``threads.interruptible``).

    >>> list(together(abs, [-3, 2, -1], 2))
    [3, 2, 1]
    """
    stop = threading.Event()
    with ThreadPoolExecutor(at_once, initializer=ends_with, initargs=(stop,)) as pool:
        waiting = [pool.submit(work, item) for item in items]
        try:
            for answer in waiting:
                yield answer.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
