"""Wall around the files of the machine while user code runs: Landlock, of Linux 5.13 and later.

A process gives up, for itself and all that it starts, to write outside some folders (landlock(7)).
So the wall holds for libraries in C, for Java, and for other processes, which Python's audit hooks
do not see. It does not cover attributes of files (chmod, utime), sockets, and the network.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CREATE, ADD, RESTRICT = 444, 445, 446
"""Numbers of the system calls, the same on all machines."""
NO_NEW_PRIVILEGES = 38
ASK_VERSION = 1
BENEATH = 1
OF_FILE = 1 << 1
"""Right to write to a file."""
OF_FOLDER = sum(1 << bit for bit in range(4, 13))
"""Rights to make and remove files and folders."""
LATER = {2: 1 << 13, 3: 1 << 14}
"""Rights by the version that has them first: to move between folders, to truncate."""
SIGNALS = 6
"""Version from which signals and abstract sockets stay inside, too."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/tty")


def _call(number: int, *args: object) -> int:
    """Return the result of a system call; raise OSError if it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(ctypes.c_long(number), *args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def wall_version() -> int:
    """Return the version of Landlock of this machine; 0 if it has none.

    Examples
    --------
    >>> wall_version() >= 0
    True
    """
    if not sys.platform.startswith("linux") or platform.machine() not in {"x86_64", "aarch64"}:
        return 0
    try:
        return _call(CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(ASK_VERSION))
    except (OSError, AttributeError):
        return 0


def build_wall(folders: Iterable[Path], *, signals: bool = False) -> bool:
    """Let this thread, and all threads and processes that it starts, write to these folders only.

    Parameters
    ----------
    folders : iterable of Path
        Folders; those that do not exist are left out.
    signals : bool
        Whether it also sends no signal to a process outside, if the machine can do that.

    Returns
    -------
    bool
        False if the machine has no such wall.
    """
    version = wall_version()
    if not version:
        return False
    moved = sum(right for first, right in LATER.items() if version >= first)
    rights = OF_FILE | OF_FOLDER | moved
    scope = 3 if signals and version >= SIGNALS else 0
    size = 24 if version >= SIGNALS else 8
    given = struct.pack("=QQQ", rights, 0, scope)[:size]
    wall = _call(CREATE, given, ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in (*map(str, folders), *DEVICES):
            if os.path.exists(path):  # noqa: PTH110 - a device is no Path
                own = rights if os.path.isdir(path) else rights & (OF_FILE | LATER[3])  # noqa: PTH112
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
                try:
                    rule = struct.pack("=Qi", own, place)
                    _call(ADD, wall, BENEATH, rule, ctypes.c_uint32(0))
                finally:
                    os.close(place)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _call(RESTRICT, wall, ctypes.c_uint32(0))
    finally:
        os.close(wall)
    return True


def unwalled_effects(version: int) -> str:
    """Return what user code may do outside although it is watched, with this version of the wall.

    Examples
    --------
    >>> unwalled_effects(0).startswith("this machine has no wall for files (Landlock)")
    True
    """
    if not version:
        return (
            "this machine has no wall for files (Landlock), so writes by C libraries, other"
            " processes and Java, the network, and reads are not stopped"
        )
    cut = "" if version >= max(LATER) else ", and shorten files"
    return (
        "nothing is written outside its folder; C libraries, other processes and Java can change"
        f" permissions and times of files{cut}, use the network and sockets, and read"
    )
