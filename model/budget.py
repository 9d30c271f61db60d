"""What work may take: so many seconds, so much memory. Who works asks from time to time whether it
is spent.
"""

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
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError, Limit, MemoryLimit, TimeLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["Budget", "finalizing", "in_use", "size"]

SHARE = 0.75
"""The share of the memory that is free which work may have, where nobody says."""
PACE = 0.05
"""Seconds between two looks at memory (more where a look takes long), and at a solver that
works.
"""
IDLE = 1.0
"""Seconds without a solver after which nobody watches any more."""
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
PROC = Path("/proc")


class _Interrupted(KeyboardInterrupt):
    """What the main thread is interrupted with: who cleans up after a Ctrl-C does so now."""


class Budget:
    """How long work may take, from now on, and how much memory this process may have, with all that
    it has started.

    ``seconds``: from 0; None is no limit. ``memory``: in bytes; None is three quarters of what is
    free when it is first looked at, besides what is in use then, ``inf`` no limit. One budget may
    be handed to several verbs, which then share it. IsolitmusError for a number that is none of
    these.

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
        self._next = now + PACE if memory is None else now  # a look costs more than short work
        self._over: Limit | None = None
        self._lock = threading.Lock()
        self._stop: Callable[[], object] | None = None
        self._watching = False

    @property
    def memory(self) -> float:
        """The bytes that this process may have."""
        if self._memory is None:
            self._memory = in_use() + SHARE * _free()
        return self._memory

    @property
    def left(self) -> float:
        """The seconds that are left, ``inf`` without a limit."""
        return inf if self._end is None else max(0.0, self._end - monotonic())

    def within(self, seconds: float) -> Budget:
        """What is left of it, from now on at most so many seconds."""
        return self if self.left <= seconds else Budget(seconds, self._memory)

    def spent(self) -> Limit | None:
        """The limit that was reached first, if one was."""
        now = monotonic()
        if self._over is None and self._end is not None and now >= self._end:
            self._over = TimeLimit(f"the time limit of {self.seconds:g} s ended it")
        if self._over is None and now >= self._next:
            most, used = self.memory, in_use()
            self._next = now + max(PACE, 50 * (monotonic() - now))
            if used > most:
                self._over = MemoryLimit(f"the memory limit of {_words(self.memory)} ended it")
        return self._over

    def check(self) -> None:
        """TimeLimit or MemoryLimit if it is spent."""
        limit = self.spent()
        if limit is not None:
            raise type(limit)(str(limit))

    def afford(self, more: float) -> None:
        """TimeLimit if it is spent; MemoryLimit, too, if so many bytes more than now are in use
        would be too many.

        >>> Budget(memory=2e9).afford(1e10)
        Traceback (most recent call last):
        isolitmus.model.errors.MemoryLimit: the memory limit of 2 GB ended it
        """
        self.check()
        if in_use() + more > self.memory:
            raise MemoryLimit(f"the memory limit of {_words(self.memory)} ended it")

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """While the block lasts, ``stop`` is called, in another thread and maybe again, once it is
        spent: for work that cannot ask. After the block TimeLimit or MemoryLimit, if it is spent.
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
        """While the block lasts, whatever the main thread does is interrupted once it is spent, as
        by a Ctrl-C, and the block raises TimeLimit or MemoryLimit: for work that does not ask. In
        another thread, after the block only.

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
        over = threading.Event()

        def interrupt(_: int, frame: FrameType | None) -> None:
            if not over.is_set() and not finalizing(frame):
                over.set()
                raise _Interrupted

        def watch(main: int) -> None:
            while not over.wait(PACE):
                if self.spent() is not None:
                    signal.pthread_kill(main, signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, interrupt)
        watching = threading.Thread(
            target=watch, args=(threading.get_ident(),), name="limits", daemon=True
        )
        watching.start()
        try:
            yield
        except (Exception, _Interrupted):
            self.check()  # it failed because it was interrupted
            raise
        finally:
            over.set()
            watching.join()
            signal.signal(signal.SIGUSR1, before)

    def _watch(self) -> None:
        pause, idle = threading.Event(), 0.0
        while not pause.wait(PACE):
            with self._lock:
                idle = 0.0 if self._stop is not None else idle + PACE
                if idle > IDLE:
                    self._watching = False
                    return
                if self._stop is not None and self.spent() is not None:
                    with suppress(Exception):  # whoever cannot be stopped goes on
                        self._stop()


def finalizing(frame: FrameType | None) -> bool:
    """Whether a frame belongs to a finalizer: what a signal's handler raises there is dropped."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def size(text: str) -> int:
    """An amount of memory as people write it, in bytes; IsolitmusError if it is none.

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
    """The bytes of memory that this process has, with those that it started and those that they
    did.

    >>> in_use() > 10_000_000
    True
    """
    own = str(os.getpid())
    pages, parent = {}, {}
    for process in _numbers(PROC):
        with suppress(OSError):  # it may have ended meanwhile
            with open(f"{PROC}/{process}/stat", "rb", 0) as file:  # noqa: PTH123 - often, so fast
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
    with suppress(OSError):
        return [name for name in os.listdir(folder) if name.isdecimal()]  # noqa: PTH208 - often, so fast
    return []


def _free() -> float:
    """The bytes of memory that are free, for all that is known: of the machine, of the container,
    of what this process may have.
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
