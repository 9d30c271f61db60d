"""Guard of the machine while a user's function runs: files, programs and connections.

Python reports what it is about to do with files, programs and the network to audit hooks (PEP 578).
A hook cannot be removed, so there is one, and a flag turns it on and off. It says in which line of
a function the effect is. What Python does not report, such as a write of a library in C, of another
process or of Spark's JVM, meets the wall of the machine (``file_wall``), if it has one.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGES = {
    "os.remove": ("removes", (0,)),
    "os.rename": ("renames", (0, 1)),
    "os.rmdir": ("removes", (0,)),
    "os.mkdir": ("makes", (0,)),
    "os.truncate": ("shortens", (0,)),
    "os.link": ("links", (0, 1)),
    "os.symlink": ("links", (1,)),
    "os.chmod": ("changes the permissions of", (0,)),
    "os.chown": ("changes the owner of", (0,)),
    "os.chflags": ("changes the flags of", (0,)),
    "os.utime": ("changes the times of", (0,)),
    "os.setxattr": ("changes attributes of", (0,)),
    "os.removexattr": ("changes attributes of", (0,)),
    "shutil.rmtree": ("removes", (0,)),
    "shutil.move": ("moves", (0, 1)),
    "shutil.copyfile": ("writes to", (1,)),
    "shutil.chown": ("changes the owner of", (0,)),
    "sqlite3.connect": ("opens the database", (0,)),
}
"""Events that change files or folders, with the places of their paths among the arguments."""
OF_FOLDER = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod",
             "os.chown", "os.utime"}  # fmt: skip
"""Events whose last arguments may be folders in which the paths are."""
SENDS = ("socket.connect", "socket.sendto", "socket.sendmsg")
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
            if writes and not isinstance(path, int) and not cls.inside(path):
                raise ForbiddenEffectError(f"it writes to the file '{os.fsdecode(path)}'")
        elif event in CHANGES:
            verb, places = CHANGES[event]
            folders = args[max(places) + 1 :] if event in OF_FOLDER else ()
            for path in (args[place] for place in places):
                if isinstance(path, int) and event == "os.truncate":
                    continue  # the file was opened for writing
                if isinstance(path, int) or path is None:
                    raise ForbiddenEffectError(f"it {verb} an open file")
                if path in (":memory:", "") and event == "sqlite3.connect":
                    continue
                away = not Path(os.fsdecode(path)).is_absolute() and any(
                    _is_folder(one) for one in folders
                )
                if away or not cls.inside(path):
                    raise ForbiddenEffectError(f"it {verb} '{os.fsdecode(path)}'")
        elif event in STARTS:
            raise ForbiddenEffectError("it starts a program")
        elif event in SENDS:
            address = args[1]
            if isinstance(address, tuple) and address[0] not in LOCAL:
                raise ForbiddenEffectError(f"it connects to '{address[0]}'")
            if isinstance(address, str | bytes):
                raise ForbiddenEffectError(f"it connects to '{os.fsdecode(address)}'")

    @classmethod
    def inside(cls, path: str | bytes | os.PathLike[str]) -> bool:
        """Return whether a path is in one of the folders, or is the null device."""
        whole = os.path.realpath(os.fsdecode(path))
        return whole == os.devnull or any(
            whole == one or whole.startswith(one + os.sep) for one in cls.folders
        )


def _is_folder(one: object) -> bool:
    """Return whether an argument is the number of an open folder."""
    return type(one) is int and one >= 0


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
    isolitmus.jobs.recording.sandbox.ForbiddenEffectError: it writes to the file \
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
