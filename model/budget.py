"""Time and memory limits, polled by long-running work or enforced from a thread."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from time import monotonic, thread_time
from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError, Limit, MemoryLimit, TimeLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

SHARE = 0.75
"""Default share of the free memory that a computation may use."""
PACE = 0.05
"""Seconds between two measurements of memory (more if a measurement takes long), and between two
checks of a running solver.
"""
IDLE = 1.0
"""Seconds without a solver after which the watching thread ends."""
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
PROC = Path("/proc")
IMPORTS = "<frozen importlib._bootstrap>"
"""File name of the frames of an import."""


class _Interrupted(KeyboardInterrupt):
    """Interruption of the main thread; clean-up code for Ctrl-C runs for it as well."""


READING = 5.0
"""Seconds that reading has in any case: without it, nothing can be told."""


class Budget:
    """Time and memory limit of a computation, from now on.

    One budget may be shared by several calls. Memory counts this process and all processes that it
    started.

    Parameters
    ----------
    seconds : float, optional
        Time limit, from 0; no limit if None.
    memory : float, optional
        Memory limit in bytes; ``inf`` is no limit. If None, the limit is the memory in use plus
        three quarters of the free memory when it is first measured.

    Raises
    ------
    IsolitmusError
        If a number is outside its range.

    Examples
    --------
    >>> Budget(seconds=0).check()
    Traceback (most recent call last):
    isolitmus.model.errors.TimeLimit: the time limit of 0 s ended it
    """

    def __init__(self, seconds: float | None = None, memory: float | None = None) -> None:
        if seconds is not None and not 0 <= seconds < inf:
            raise IsolitmusError(f"the time is {seconds:g} s; expected a number of seconds from 0")
        if memory is not None and not memory > 0:
            raise IsolitmusError(f"the memory is {memory:g} bytes; expected a number above 0")
        self.seconds = seconds
        self._memory = memory
        now = monotonic()
        self._end = None if seconds is None else now + seconds
        # Measuring memory costs more than short work.
        self._next = now + PACE if memory is None else now
        self._over: Limit | None = None
        self._lock = threading.Lock()
        self._stop: Callable[[], object] | None = None
        self._watching = False

    def for_reading(self) -> Budget:
        """Return the limits of reading what a question is about: those of this budget, but for some
        seconds in any case.

        Examples
        --------
        >>> Budget(seconds=0).for_reading().check()
        """
        if self.seconds is None or self.seconds >= READING:
            return self
        return Budget(READING, self._memory)

    @property
    def memory(self) -> float:
        """Bytes of memory that this process may use."""
        if self._memory is None:
            self._memory = in_use() + SHARE * _free()
        return self._memory

    @property
    def left(self) -> float:
        """Seconds that are left; ``inf`` without a time limit."""
        return inf if self._end is None else max(0.0, self._end - monotonic())

    def within(self, seconds: float) -> Budget:
        """Return the rest of this budget, limited to `seconds` from now on."""
        return self if self.left <= seconds else Budget(seconds, self._memory)

    def spent(self) -> Limit | None:
        """Return the limit that was reached first, or None."""
        now = monotonic()
        if self._over is None and self._end is not None and now >= self._end:
            self._over = TimeLimit(f"the time limit of {self.seconds:g} s ended it")
        if self._over is None and now >= self._next:
            begun = thread_time()  # a wait for Python's lock is no measurement
            most, used = self.memory, in_use()
            self._next = now + max(PACE, 50 * (thread_time() - begun))
            if used > most:
                self._over = MemoryLimit(f"the memory limit of {_words(self.memory)} ended it")
        return self._over

    def check(self) -> None:
        """Raise TimeLimit or MemoryLimit if the budget is spent."""
        limit = self.spent()
        if limit is not None:
            raise type(limit)(str(limit))

    def afford(self, more: float) -> None:
        """Raise TimeLimit or MemoryLimit if the budget is spent or `more` bytes would exceed it.

        Examples
        --------
        >>> Budget(memory=2e9).afford(1e10)
        Traceback (most recent call last):
        isolitmus.model.errors.MemoryLimit: the memory limit of 2 GB ended it
        """
        self.check()
        if in_use() + more > self.memory:
            raise MemoryLimit(f"the memory limit of {_words(self.memory)} ended it")

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """Call `stop` once the budget is spent while the block runs: for work that cannot poll.

        `stop` is called in another thread and perhaps repeatedly. After the block, TimeLimit or
        MemoryLimit is raised if the budget is spent.
        """
        self.check()
        with self._lock:
            self._stop = stop
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="budget", daemon=True).start()
        try:
            yield
        except Exception:
            self.check()  # it failed because it was stopped
            raise
        finally:
            with self._lock:
                self._stop = None
        self.check()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Interrupt the main thread once the budget is spent while the block runs, as by a Ctrl-C.

        The block then raises TimeLimit or MemoryLimit: for work that does not poll. An import is
        not interrupted: half a package would stay. In another thread than the main thread, the
        budget is only checked after the block.

        Examples
        --------
        >>> from time import sleep
        >>> with Budget(seconds=0.1).interrupting():
        ...     sleep(60)
        Traceback (most recent call last):
        isolitmus.model.errors.TimeLimit: the time limit of 0.1 s ended it
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            self.check()
            return
        self.check()
        done, raised = threading.Event(), threading.Event()

        def interrupt(_: int, frame: FrameType | None) -> None:
            if not done.is_set() and not raised.is_set() and not _is_importing(frame):
                raised.set()
                raise _Interrupted

        def watch(main: int) -> None:
            while not done.wait(PACE):
                if not raised.is_set() and self.spent() is not None:
                    signal.pthread_kill(main, signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, interrupt)
        watching = threading.Thread(
            target=watch, args=(threading.get_ident(),), name="limits", daemon=True
        )
        watching.start()
        try:
            with raised_again(_Interrupted, raised.clear):
                yield
        except (Exception, _Interrupted):
            self.check()  # it failed because it was interrupted
            raise
        finally:
            done.set()
            watching.join()
            signal.signal(signal.SIGUSR1, before)

    def _watch(self) -> None:
        """Call the stop function while the budget is spent; end after ``IDLE`` idle seconds."""
        pause, idle = threading.Event(), 0.0
        while not pause.wait(PACE):
            with self._lock:
                idle = 0.0 if self._stop is not None else idle + PACE
                if idle > IDLE:
                    self._watching = False
                    return
                if self._stop is not None and self.spent() is not None:
                    with suppress(Exception):  # work that cannot be stopped goes on
                        self._stop()


@contextmanager
def raised_again(kind: type[BaseException], again: Callable[[], object]) -> Iterator[None]:
    """Call `again` where Python drops an exception of `kind` while the block runs.

    Python drops what a signal handler raises during a finalizer, a callback of the garbage
    collector or of a weak reference, or another call from C that cannot fail. An object that was
    interrupted while it was made lacks attributes that its finalizer looks for: that is not
    reported.

    Examples
    --------
    >>> class Unlucky:
    ...     def __del__(self):
    ...         raise KeyboardInterrupt
    >>> with raised_again(KeyboardInterrupt, lambda: print("dropped")):
    ...     _ = [Unlucky()].clear()
    dropped
    """
    before = sys.unraisablehook

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, kind):
            again()
        elif not _is_half_made(dropped):
            before(dropped)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a frame is executed by an import."""
    while frame is not None and frame.f_code.co_filename != IMPORTS:
        frame = frame.f_back
    return frame is not None


def _is_half_made(dropped: sys.UnraisableHookArgs) -> bool:
    """Return whether a finalizer failed because its object lacks an attribute."""
    in_finalizer = getattr(dropped.object, "__name__", "") == "__del__"
    return in_finalizer and isinstance(dropped.exc_value, AttributeError)


def size(text: str) -> int:
    """Return an amount of memory such as ``4GB`` in bytes.

    Raises
    ------
    IsolitmusError
        If `text` is not such an amount.

    Examples
    --------
    >>> size("1.5GB"), size("800 mb"), size("2G")
    (1500000000, 800000000, 2000000000)
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) *([KMGT])B?", text.strip().upper())
    bytes_ = 0 if found is None else int(float(found[1]) * UNITS[f"{found[2]}B"])
    if not bytes_:
        raise IsolitmusError(f"'{text[:40]}' is not an amount of memory; 800MB or 4GB would be one")
    return bytes_


def _words(memory: float) -> str:
    unit = next(u for u in reversed(UNITS) if memory >= UNITS[u] or u == "KB")
    return f"{memory / UNITS[unit]:.3g} {unit}"


def in_use() -> int:
    """Return the bytes of memory in use by this process and all its descendants.

    Examples
    --------
    >>> in_use() > 10_000_000
    True
    """
    own = str(os.getpid())
    pages, parent = {}, {}
    for process in _numbers(PROC):
        with suppress(OSError):  # it may have ended meanwhile
            with open(f"{PROC}/{process}/stat", "rb", 0) as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
            pages[process], parent[process] = int(fields[21]), fields[1].decode()
    if own not in pages:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    total = 0
    for process, count in pages.items():
        line = process
        while line != own and line in parent:
            line = parent[line]
        total += count * (line == own)
    return total * resource.getpagesize()


def _numbers(folder: Path) -> list[str]:
    """Return the names in a folder that are decimal numbers; empty if it cannot be listed."""
    with suppress(OSError):
        # os.listdir and open are faster than pathlib, and this runs often.
        return [name for name in os.listdir(folder) if name.isdecimal()]  # noqa: PTH208
    return []


def _free() -> float:
    """Return the bytes of free memory: the minimum over machine, container and limit of this
    process, as far as they are known; ``inf`` if none is.
    """
    found = [inf]
    with suppress(OSError):
        lines = (PROC / "meminfo").read_text().splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    for folder, most, used in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):  # "max", or no such file
            here = Path(folder)
            found.append(int((here / most).read_text()) - int((here / used).read_text()))
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY:
        with suppress(OSError):
            held = int((PROC / "self" / "statm").read_text().split()[0]) * resource.getpagesize()
            found.append(allowed - held)
    return max(0.0, min(found))
