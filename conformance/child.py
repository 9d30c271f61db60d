"""A process of our own in a group of its own, which ends when its standard input does: how it is always ended."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

__all__ = ["GRACE", "end_child"]

GRACE = 20.0
"""Seconds in which what was told to end must end by itself."""


def end_child(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """Close its standard input; if it does not end by that within so many seconds, it is killed, and with it all
    of its group.

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
