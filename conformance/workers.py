"""Work beside the caller: threads, processes, several replays at a time.

Work in threads of its own, so that the caller's thread only waits and a Ctrl-C is always heard.

py4j gives each Python thread its own JVM thread and its own connection. A KeyboardInterrupt in the
middle of a call would leave the answer in the connection, for the next call to read: so the main
thread, the only one that is interrupted, makes no calls while a schedule is carried out.

A process of our own in a group of its own, which ends when its standard input does: how it is
always ended.

Several replays at a time, and what becomes of each in their order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

__all__ = [
    "GRACE",
    "Interruption",
    "Worker",
    "end_child",
    "interrupt_by",
    "run_interruptibly",
    "run_together",
]

T = TypeVar("T")

TICK = 0.01
"""Seconds between two looks at a condition."""
CLEAN_UP = 60.0
"""Seconds that interrupted work gets to release what it holds."""


class Interruption:
    """Whether the caller has been interrupted; work that waits looks at it."""

    def __init__(self) -> None:
        self._raised = threading.Event()

    def announce(self) -> None:
        """The caller does not want the result any more."""
        self._raised.set()

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds (True) or the time is over (False).

        Raises KeyboardInterrupt, in whatever thread, once the caller has been interrupted.
        """
        end = time.monotonic() + seconds
        while not condition():
            if self._raised.is_set():
                raise KeyboardInterrupt
            if time.monotonic() > end:
                return False
            time.sleep(TICK)
        return True


class Worker(Generic[T]):
    """A callable in a thread of its own; once ``ended``, it has a value or an error.

    The end is an event and not only the thread's: a KeyboardInterrupt in ``Thread.join`` marks a
    running thread as gone (CPython before 3.13, the handler in ``_wait_for_tstate_lock``).
    """

    def __init__(self, name: str, body: Callable[[], T]) -> None:
        self._body = body
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._over = threading.Event()
        self._value: T | None = None
        self.error: BaseException | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether the callable has returned or raised and its thread is gone."""
        return self._over.is_set() and not self._thread.is_alive()

    def join(self, seconds: float) -> bool:
        """Wait for the end; False if it did not come in time."""
        if self._over.wait(seconds):
            self._thread.join(seconds)
        return self.ended

    def value(self) -> T:
        """What the callable returned; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self._value  # type: ignore[return-value]  # T itself may be None

    def _run(self) -> None:
        try:
            self._value = self._body()
        except BaseException as error:  # noqa: BLE001 - handed over to who waits
            self.error = error
        finally:
            self._over.set()


_here = threading.local()


def _heed(stop: threading.Event) -> None:
    if stop.is_set():
        raise KeyboardInterrupt


def interrupt_by(stop: threading.Event) -> None:
    """What this thread waits for is interrupted once the event is set: a Ctrl-C comes to the main
    thread.
    """
    _here.stop = stop


def run_interruptibly(body: Callable[[Interruption], T]) -> T:
    """The result of the work, done in another thread; a Ctrl-C here ends it there first, as does
    what was said to ``interrupt_by``.

    The body waits through the Interruption that it is given and cleans up when that raises.
    """
    interruption = Interruption()
    worker = Worker("isolitmus", lambda: body(interruption))
    stop: threading.Event = getattr(_here, "stop", None) or threading.Event()
    worker.start()
    try:
        while not worker.join(1.0):
            _heed(stop)
    except BaseException:
        interruption.announce()
        worker.join(CLEAN_UP)
        raise
    return worker.value()


GRACE = 20.0
"""Seconds in which what was told to end must end by itself."""


def end_child(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """Close its standard input; if it does not end by that within so many seconds, it is killed,
    and with it all of its group.

    >>> child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    >>> end_child(child)
    >>> child.returncode
    0
    """
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        pass
    finally:  # also at a Ctrl-C while waiting: the process must not stay
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


R = TypeVar("R")


def run_together(
    work: Callable[[T], R], items: Iterable[T], at_once: int
) -> Generator[R, None, None]:
    """The results of some work on each item, in the order of the items and as soon as they are
    there, so many at a time, from 1. Raises what the work raises; when this ends, what has not
    begun is dropped, and what has is interrupted (``threads.interruptible``).

    >>> list(run_together(abs, [-3, 2, -1], 2))
    [3, 2, 1]
    """
    stop = threading.Event()
    with ThreadPoolExecutor(at_once, initializer=interrupt_by, initargs=(stop,)) as pool:
        waiting = [pool.submit(work, item) for item in items]
        try:
            for answer in waiting:
                yield answer.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
