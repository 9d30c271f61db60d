"""Files that a user wants written: whole or not at all, and by one process at a time."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.model.errors import Ended, IsolitmusError
from isolitmus.specs.disk.input_files import is_folder, real_path

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FULL", "only_writer", "write_error", "write_whole"]

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why nothing more can be written, whatever the name is."""


def write_error(path: Path, problem: OSError | ValueError) -> IsolitmusError:
    """That something cannot be written: Ended if the disk is full (or broken), else a name that is
    wrong.

    >>> write_error(Path("page.html"), OSError(errno.EACCES, "Permission denied"))
    IsolitmusError('cannot write page.html: Permission denied')
    """
    kind = Ended if getattr(problem, "errno", None) in FULL else IsolitmusError
    return kind(f"cannot write {path}: {getattr(problem, 'strerror', None) or problem}")


def write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever is stopped meanwhile leaves the old one or the new one, whole. A
    device or a pipe is written as it is. What ``unwritten`` says, if that fails; then the old one
    is there. Half of a pair of surrogates, which UTF-8 does not have, is escaped.
    """
    whole = text.encode("utf-8", "backslashreplace")
    try:
        if _special(path):
            path.write_bytes(whole)
        else:
            _replace(_without_links(path), whole)
    except (OSError, ValueError) as problem:
        raise write_error(path, problem) from None


def _without_links(path: Path) -> Path:
    """The path without links; OSError if they lead to themselves."""
    place = real_path(path)
    if place.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return place


def _replace(path: Path, whole: bytes) -> None:
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with open(number, "wb") as beside:  # noqa: PTH123 - it is open already
            beside.write(whole)
            beside.flush()
            os.fsync(number)
            os.fchmod(number, mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # what it is, its writer says
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def only_writer(path: Path, *, folder: bool = False) -> Iterator[None]:
    """While the block lasts, no other process may write a file, or in a ``folder``, which is made:
    IsolitmusError for the second, and if nothing can be written there. A process that is killed
    keeps nobody out.
    """
    if not folder and _special(path):
        yield
        return
    try:
        place = _without_links(path)
    except OSError as problem:
        raise write_error(path, problem) from None
    if not folder and not is_folder(place.parent):
        raise IsolitmusError(f"cannot write {path}: there is no folder {path.parent}")
    if not folder and is_folder(place):
        raise IsolitmusError(f"cannot write {path}: it is a folder; expected the name of a file")
    try:
        if folder:
            number, mine = _folder(place)
        else:
            number, mine = _beside(place)
    except BlockingIOError:
        raise IsolitmusError(
            f"cannot write {path}: another isolitmus is writing there; wait for its end, or name"
            " another"
        ) from None
    except (OSError, ValueError) as problem:
        raise write_error(path, problem) from None
    try:
        yield
    finally:
        with suppress(OSError):  # a folder is removed only if nothing came to be in it
            if folder and mine:
                place.rmdir()
            elif not folder:
                _lock(place).unlink()
        os.close(number)


def _folder(path: Path) -> tuple[int, bool]:
    """A lock on a folder, and whether it was made."""
    made = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    return _locked(os.open(path, os.O_RDONLY)), made


def _beside(path: Path) -> tuple[int, bool]:
    """A lock on a file beside one that is to be written."""
    while True:
        number = _locked(os.open(_lock(path), os.O_RDWR | os.O_CREAT, 0o666))
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), _lock(path).stat()):
                return number, True
        os.close(number)  # who had it has removed it meanwhile


def _lock(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _locked(number: int) -> int:
    import fcntl

    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(number)
        raise
    return number
