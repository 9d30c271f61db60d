"""Work in threads and child processes that can be interrupted.

py4j gives each Python thread its own JVM thread and its own connection. A KeyboardInterrupt in the
middle of a call would leave the answer in the connection, for the next call to read. So the main
thread, the only one that is interrupted, makes no calls while a schedule runs: it only waits, and a
Ctrl-C is always noticed.

A child process is in a group of its own, and ends when its standard input does (``end_child``).
Several items of work run at a time, with the results in order (``run_together``).
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

T = TypeVar("T")

TICK = 0.01
"""Interval in seconds between two checks of a condition."""
CLEAN_UP = 60.0
"""Time in seconds for interrupted work to release what it holds."""


class Interruption:
    """Flag that the caller has been interrupted; work that waits checks it."""

    def __init__(self) -> None:
        self._raised = threading.Event()

    def announce(self) -> None:
        """Set the flag: the caller no longer wants the result."""
        self._raised.set()

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until the condition holds (True) or the time is over (False).

        Raises KeyboardInterrupt, in any thread, once the caller has been interrupted.
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
    """Callable in its own thread; once ``ended``, it has a value or an error.

    The end is an event and not only that of the thread: a KeyboardInterrupt in ``Thread.join``
    marks a running thread as ended (CPython before 3.13, the handler in ``_wait_for_tstate_lock``).
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
        """True if the callable has returned or raised and its thread has ended."""
        return self._over.is_set() and not self._thread.is_alive()

    def join(self, seconds: float) -> bool:
        """Wait for the end; return False if it did not come in time."""
        if self._over.wait(seconds):
            self._thread.join(seconds)
        return self.ended

    def value(self) -> T:
        """Return the callable's result, or raise its exception."""
        if self.error is not None:
            raise self.error
        return self._value  # type: ignore[return-value]  # T itself may be None

    def _run(self) -> None:
        """Run the callable and keep its result or exception."""
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
    """Let the event interrupt what this thread waits for; a Ctrl-C reaches only the main thread."""
    _here.stop = stop


def run_interruptibly(body: Callable[[Interruption], T]) -> T:
    """Run the work in another thread and return its result.

    A Ctrl-C here first ends the work there, as does the event of ``interrupt_by``. The body waits
    through the Interruption that it receives, and cleans up when that raises.
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
"""Time in seconds for a child to end by itself after it was told to."""


def end_child(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """Close the standard input of a child; kill its process group if it does not end in time.

    Examples
    --------
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
    finally:  # also after a Ctrl-C while waiting: the process must not survive
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


R = TypeVar("R")


def run_together(
    work: Callable[[T], R], items: Iterable[T], at_once: int
) -> Generator[R, None, None]:
    """Yield the results of some work on each item, in order and as soon as they are known.

    Parameters
    ----------
    work : callable
        Work on one item; its exceptions are passed on.
    items : iterable
        Items.
    at_once : int
        Number of items that are worked on at the same time, at least 1.

    Notes
    -----
    When the generator ends, items that have not begun are dropped, and the others are interrupted
    (``run_interruptibly``).

    Examples
    --------
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
