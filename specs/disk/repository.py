"""Repository that is judged: where reading ends, and which SQL files there are.

Who proposes a change to a repository chooses its files, its links and the paths in them; what is
read may be printed. So reading ends at the repository: the nearest folder with ``.git`` above the
path that is given, else the folder that is given. A link or a path that leads out of it is refused,
and so is a link to something hidden, such as ``.git/config``. Paths of the command line are the
user's own.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.display import count_of
from isolitmus.specs.disk.input_files import (
    TEXT,
    decode_bytes,
    is_folder,
    is_link,
    read_bytes,
    real_path,
)

if TYPE_CHECKING:
    from isolitmus.model.errors import IsolitmusError

FEW = 5
"""Folders that are named in a sentence."""


def end_of_reading(given: Path) -> Path:
    """Return the folder where reading ends for a path that is given.

    A linked folder's own ``.git`` does not count: the link may be a part of a repository.
    """
    named = Path(os.path.abspath(given))  # noqa: PTH100 - without following links
    for folder in (named, *named.parents):
        if os.path.lexists(folder / ".git") and not folder.is_symlink():
            return real_path(folder)
    whole = real_path(named)
    return whole if is_folder(whole) else real_path(named.parent)


def escape(path: Path, *ends: Path) -> str:
    """Return where a path leads if that is in none of the folders `ends`, or hidden; else "".

    Examples
    --------
    >>> escape(Path("/srv/jobs/a.sql"), Path("/srv/jobs"))
    ''
    >>> escape(Path("/srv/jobs/../a.sql"), Path("/srv/jobs"))
    'it leads to /srv/a.sql, outside of /srv/jobs, where reading ends'
    """
    whole = real_path(path)
    end = next((one for one in ends if whole.is_relative_to(one)), None)
    target = path.readlink() if is_link(path) else whole
    if end is None:
        return f"it leads to {target}, outside of {ends[0]}, where reading ends"
    hidden = [part for part in whole.relative_to(end).parts if part.startswith(".")]
    named = Path(os.path.abspath(path))  # noqa: PTH100 - without following links
    if all(part in named.parts for part in hidden) and ".git" not in hidden:
        return ""
    return f"it leads to {target}, which is hidden"


def check_inside(path: Path, error: type[IsolitmusError], *ends: Path) -> None:
    """Raise `error` if a path leads out of the folders `ends`."""
    if problem := escape(path, *ends):
        raise error(f"cannot read {path}: {problem}")


def read_inside(path: Path, error: type[IsolitmusError], *ends: Path, most: int = TEXT) -> str:
    """Return the text of a file of a repository, with normalized line ends.

    Parameters
    ----------
    path : Path
        The file.
    error : type
        Class of the exception if the file cannot be read, or leads out of the repository.
    *ends : Path
        Folders where reading ends; by default that of the path (`end_of_reading`).
    most : int
        Maximum number of bytes.
    """
    check_inside(path, error, *(ends or (end_of_reading(path),)))
    text = decode_bytes(read_bytes(path, error, most), path, error)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_sql(path: Path) -> bool:
    """Return whether a name is that of an SQL file, in any case.

    Examples
    --------
    >>> is_sql(Path("load.SQL")), is_sql(Path("load.sql.txt"))
    (True, False)
    """
    return path.suffix.lower() == ".sql"


class SqlPaths(NamedTuple):
    """SQL files of a folder, and what is not read there."""

    files: tuple[Path, ...]
    hidden: tuple[tuple[Path, int], ...]
    """Hidden files and folders, each with the number of its SQL files."""
    linked: tuple[Path, ...]
    """Linked folders, and those that cannot be listed."""

    def skipped(self, folder: Path) -> tuple[Assumption, ...]:
        """Return the sentence about what is not read; none if nothing is left out."""
        parts = [
            f"{path.relative_to(folder)} ({count_of(number, 'hidden SQL file')})"
            for path, number in self.hidden
        ]
        parts += [
            f"{path.relative_to(folder)} ({'linked' if path.is_symlink() else 'unreadable'} folder)"
            for path in self.linked
        ]
        more = f" and {len(parts) - FEW:,} more" if len(parts) > FEW else ""
        said = f"Not read: {', '.join(parts[:FEW])}{more}."
        return (AssumptionKind.NOT_READ.says(said),) if parts else ()


def find_sql_paths(folder: Path) -> SqlPaths:
    """Return the SQL files in a folder and below; links to folders are not followed."""
    files: list[Path] = []
    hidden: Counter[Path] = Counter()
    linked: list[Path] = []
    top = len(folder.parts)

    def note(problem: OSError) -> None:
        linked.append(Path(problem.filename))

    for parent, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if name != ".git"]
        place = Path(parent)
        concealed = [k for k, part in enumerate(place.parts[top:], top) if part.startswith(".")]
        if not concealed:
            linked += [path for name in folders if (path := place / name).is_symlink()]
        for name in names:
            path = place / name
            if not is_sql(path):
                continue
            if concealed:
                hidden[Path(*place.parts[: concealed[0] + 1])] += 1
            elif name.startswith("."):
                hidden[path] += 1
            else:
                files.append(path)
    return SqlPaths(tuple(sorted(files)), tuple(sorted(hidden.items())), tuple(sorted(linked)))
