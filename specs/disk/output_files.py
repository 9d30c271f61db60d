"""Output files, written atomically, by one process at a time, and never through a link.

Who proposes a change to a repository can put a link where a report is to be written, or into the
folders above it. So a file is not written through a link, unless the link is a folder's and stays
in its repository, or only the system or the user can have made it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.model.errors import Ended, IsolitmusError
from isolitmus.specs.disk.input_files import find_repository, is_folder, real_path

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Error numbers that say that nothing more can be written, whatever the path is."""
DEVICES = (Path("/dev"), Path("/dev/fd"))


def write_error(path: Path, problem: OSError | ValueError) -> IsolitmusError:
    """Return the exception for a failed write: Ended if the disk is full or broken, else
    IsolitmusError.

    Examples
    --------
    >>> write_error(Path("page.html"), OSError(errno.EACCES, "Permission denied"))
    IsolitmusError('cannot write page.html: Permission denied')
    """
    kind = Ended if getattr(problem, "errno", None) in FULL else IsolitmusError
    return kind(f"cannot write {path}: {getattr(problem, 'strerror', None) or problem}")


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: an interruption leaves either the old file or the new one.

    A link is refused (`_without_links`). A device or a pipe is written directly. If the write
    fails, the exception of ``write_error`` is raised and the old file remains. Unpaired surrogates,
    which UTF-8 does not have, are escaped.
    """
    whole = text.encode("utf-8", "backslashreplace")
    try:
        place = _without_links(path)
        if _special(place):
            place.write_bytes(whole)
        else:
            _replace(place, whole)
    except (OSError, ValueError) as problem:
        raise write_error(path, problem) from None


class LineAppender:
    """File to which whole lines are appended; each is written at once.

    The file is created if it does not exist. If its last line has no end, because a process was
    killed, that line is ended first. Methods raise the exception of ``write_error``.

    Parameters
    ----------
    path : Path
        Path of the file, a device or a pipe.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            place = _without_links(path)
            cut = not _special(place) and _is_cut(place)
            self._file = place.open("ab", buffering=0)
        except (OSError, ValueError) as problem:
            raise write_error(path, problem) from None
        if cut:
            self.append("")

    def append(self, line: str) -> None:
        """Append a line without its end; unpaired surrogates are escaped."""
        rest = f"{line}\n".encode("utf-8", "backslashreplace")
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError as problem:
            raise write_error(self.path, problem) from None

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as problem:
            raise write_error(self.path, problem) from None


def _is_cut(path: Path) -> bool:
    """Return whether a file exists, and its last line has no end."""
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as there:
        there.seek(-1, os.SEEK_END)
        return there.read(1) != b"\n"


def _without_links(path: Path) -> Path:
    """Return the path without links; OSError if one is not to be followed, or if they form a loop.

    ``/dev/stdout`` and the like are links of the system.
    """
    given = Path(os.path.abspath(path))  # noqa: PTH100 - without following links
    if given.parent in DEVICES:
        return given if _special(given) else real_path(given)
    for above in (*reversed(given.parents), given):
        if above.is_symlink() and (above == given or not _is_followed(above)):
            raise OSError(
                errno.ELOOP,
                f"{'it' if above == given else above} is a link to {above.readlink()}, through"
                " which nothing is written; remove it, or name another file",
            )
    return real_path(given)


def _is_followed(link: Path) -> bool:
    """Return whether a linked folder is one to write in.

    In a repository, and in the current folder, it has to stay there, and out of ``.git``.
    Elsewhere, it is the system's, or the current folder is in it.
    """
    place, folder = real_path(link), real_path(link.parent)
    here = real_path(Path())
    repository = find_repository(folder, here if folder.is_relative_to(here) else None)
    if repository is not None:
        inside = place.relative_to(repository) if place.is_relative_to(repository) else None
        return inside is not None and ".git" not in inside.parts
    is_systems = folder == Path("/") or (link.lstat().st_uid == 0 and os.getuid() != 0)
    return is_systems or here.is_relative_to(place)


def _replace(path: Path, whole: bytes) -> None:
    """Write the bytes to a temporary file next to `path`, keep its mode, and rename the file."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with open(number, "wb") as beside:  # noqa: PTH123 - already open
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
    """Return whether the path is neither a regular file nor a folder, such as a device."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # writing it reports the problem
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def only_writer(path: Path, *, folder: bool = False) -> Iterator[None]:
    """Exclude other processes from writing a file, or into a `folder`, for the duration of the
    block.

    A missing folder is created. IsolitmusError is raised for a second process, or if nothing can be
    written there. A killed process does not keep its lock.
    """
    try:
        place = _without_links(path)
    except (OSError, ValueError) as problem:
        raise write_error(path, problem) from None
    if not folder and _special(place):
        yield
        return
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
        with suppress(OSError):  # rmdir removes the folder only if it is empty
            if folder and mine:
                place.rmdir()
            elif not folder:
                _lock(place).unlink()
        os.close(number)


def _folder(path: Path) -> tuple[int, bool]:
    """Return a lock on a folder, and whether the folder was created."""
    made = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    return _locked(os.open(path, os.O_RDONLY)), made


def _beside(path: Path) -> tuple[int, bool]:
    """Return a lock on a file next to the one that is to be written."""
    while True:
        number = _locked(os.open(_lock(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666))
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), _lock(path).stat()):
                return number, True
        os.close(number)  # the previous owner has removed the lock meanwhile


def _lock(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _locked(number: int) -> int:
    """Take an exclusive lock on a file descriptor without waiting; close it if that fails."""
    import fcntl

    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(number)
        raise
    return number


ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:/")
NAMES = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){1,2}")


@dataclass(frozen=True, slots=True)
class Location:
    """Place of tables of results: a folder, an address that Spark reads, or a schema of a catalog.

    Examples
    --------
    >>> Location("s3a://bucket/data").inside("counts").sql
    'delta.`s3a://bucket/data/counts`'
    >>> Location("main.results").inside("counts").sql
    '`main`.`results`.`counts`'
    """

    text: str
    """Place as the user gave it.

    Names separated by dots are in a catalog, unless there is such a folder.
    """

    @classmethod
    def of(cls, out: Location | Path | str) -> Location:
        """The place that a user names."""
        return out if isinstance(out, Location) else cls(str(out))

    @property
    def path(self) -> Path | None:
        """Folder, if the place is one of this machine."""
        return None if ADDRESS.match(self.text) or self._named else Path(self.text)

    @property
    def address(self) -> str | None:
        """Address for Spark; None for a name in a catalog."""
        if self._named:
            return None
        return self.text if self.path is None else str(real_path(self.path))

    @property
    def sql(self) -> str:
        """Name in SQL."""
        if self.address is None:
            return ".".join(f"`{name}`" for name in self.text.split("."))
        return f"delta.`{self.address.replace('`', '``')}`"

    def inside(self, name: str) -> Location:
        """Return the place of a table with this name in it."""
        return Location(f"{self.text.rstrip('/')}{'.' if self._named else '/'}{name}")

    def __str__(self) -> str:
        return self.text

    @property
    def _named(self) -> bool:
        return NAMES.fullmatch(self.text) is not None and not Path(self.text).exists()
