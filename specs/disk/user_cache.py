"""The user's cache folder, and files in it that nobody else can have written.

What is read from a cache is believed. So its folders and files belong to the user, can be written
by nobody else, and are no links; and they are outside of what is judged.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.disk.input_files import real_path
from isolitmus.specs.disk.output_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHERS = stat.S_IWGRP | stat.S_IWOTH
OLD = 90 * 24 * 3600.0
"""Seconds after which a file that was not written anew is removed."""
LEFT = 3600.0
"""Seconds after which a file that a killed process has not renamed is removed."""


def user_cache() -> Path | None:
    """Return isolitmus' folder in the user's cache: below ``$XDG_CACHE_HOME``, else ``~/.cache``.

    A relative ``$XDG_CACHE_HOME`` is ignored, as its standard says. None if there is no home.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        above = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return above / "isolitmus"


class OwnFolder:
    """Folder of a kind of files in the user's cache, which only the user can write to.

    Parameters
    ----------
    kind : str
        Name of the folder.
    outside : Path
        Folder in which the cache must not be, nor in the current one, because others write there.
    """

    def __init__(self, kind: str, outside: Path) -> None:
        cache = user_cache()
        judged = [real_path(outside), real_path(Path())]
        inside = cache is None or any(map(real_path(cache).is_relative_to, judged))
        self._path = None if cache is None or inside else cache / kind

    def read(self, name: str, most: int) -> str:
        """Return the text of a file; empty if it is absent, too large, or not the user's own."""
        if self._path is None or not all(map(_is_own, (self._path.parent, self._path))):
            return ""
        try:
            number = os.open(self._path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return ""
        with open(number, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - already open
            state = os.fstat(number)
            fits = stat.S_ISREG(state.st_mode) and state.st_size <= most
            return file.read() if fits and state.st_uid == os.getuid() else ""

    def write(self, name: str, text: str) -> None:
        """Write a file atomically and remove old ones; nothing happens if that is impossible."""
        if self._path is None:
            return
        with suppress(IsolitmusError, OSError):
            self._path.parent.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self._path.parent, self._path):
                with suppress(FileExistsError):
                    folder.mkdir(mode=0o700)
                if not _is_own(folder, writable=True):
                    return
                folder.chmod(0o700)
            write_whole(self._path / name, text)
            for path in self._outdated():
                path.unlink(missing_ok=True)

    def _outdated(self) -> Iterator[Path]:
        """Yield the files that were not written for long, and what killed processes left."""
        assert self._path is not None
        for path in self._path.iterdir():
            age = time() - path.lstat().st_mtime
            if age > (LEFT if path.suffix == ".new" else OLD):
                yield path


def _is_own(folder: Path, *, writable: bool = False) -> bool:
    """Return whether a folder is there, is no link, is the user's own, and, unless `writable`,
    nobody else can write to it.
    """
    try:
        state = folder.lstat()
    except (OSError, ValueError):
        return False
    own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
    return own and (writable or not state.st_mode & OTHERS)
