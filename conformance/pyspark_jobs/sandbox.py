"""Guard of the machine while a user's function runs: files, programs and connections.

Python reports what it is about to do with files, programs and the network to audit hooks (PEP 578).
A hook cannot be removed, so there is one, and a flag turns it on and off. It does not see what a
function does through Spark's JVM; the recorder refuses the writes among these.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ForbiddenEffectError", "guard_machine"]

CHANGES = {
    "os.remove": "removes",
    "os.rename": "renames",
    "os.rmdir": "removes",
    "os.mkdir": "makes",
    "os.truncate": "shortens",
    "os.link": "links",
    "os.symlink": "links",
    "shutil.rmtree": "removes",
    "shutil.move": "moves",
}
"""Events that change a file or folder, whose path comes first."""
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")
"""Events that start a program."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
LOCAL = ("127.0.0.1", "::1", "localhost")


class ForbiddenEffectError(PermissionError):
    """Effect outside the folder of the run that a function was about to have."""


class _Guard:
    """State of the hook."""

    folders: tuple[str, ...] = ()
    """Folders that may be written to; empty if the hook is off."""
    installed = False

    @classmethod
    def hook(cls, event: str, args: tuple[Any, ...]) -> None:
        """Raise ForbiddenEffectError before an effect outside the folders."""
        if not cls.folders:
            return
        if event == "open":
            path, mode, flags = args
            writes = set("wax+") & set(mode) if isinstance(mode, str) else flags & WRITING
            if writes and isinstance(path, str | bytes) and not cls.inside(path):
                raise ForbiddenEffectError(f"it writes to the file '{os.fsdecode(path)}'")
        elif event in CHANGES:
            path = args[0]
            if isinstance(path, str | bytes) and not cls.inside(path):
                raise ForbiddenEffectError(f"it {CHANGES[event]} '{os.fsdecode(path)}'")
        elif event in STARTS:
            raise ForbiddenEffectError("it starts a program")
        elif event == "socket.connect":
            address = args[1]
            if isinstance(address, tuple) and address[0] not in LOCAL:
                raise ForbiddenEffectError(f"it connects to '{address[0]}'")

    @classmethod
    def inside(cls, path: str | bytes) -> bool:
        """Return whether a path is in one of the folders, or is the null device."""
        whole = os.path.realpath(os.fsdecode(path))
        return whole == os.devnull or any(
            whole == one or whole.startswith(one + os.sep) for one in cls.folders
        )


@contextmanager
def guard_machine(*folders: Path) -> Iterator[None]:
    """Let the code of the block, on all threads, write to these folders only, and start nothing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as name, guard_machine(Path(name)):
    ...     _ = Path(name, "a").write_text("kept")
    ...     Path("elsewhere.txt").write_text("lost")
    Traceback (most recent call last):
    isolitmus.conformance.pyspark_jobs.sandbox.ForbiddenEffectError: it writes to the file \
'elsewhere.txt'
    """
    if not _Guard.installed:
        sys.addaudithook(_Guard.hook)
        _Guard.installed = True
    _Guard.folders = tuple(os.path.realpath(one) for one in folders)
    try:
        yield
    finally:
        _Guard.folders = ()
