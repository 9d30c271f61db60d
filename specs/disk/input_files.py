"""Input files, read within limits of size and nesting, and files that ship in the package.

Only regular files of bounded size are read: a pipe or a device may never end, and a file may be
larger than memory. The constants limit the contents of files; input beyond them is refused with a
message before it takes time or memory.

A level or protocol is one ``.cat`` file under ``levels/`` or ``protocols/``. A litmus test, a
scope, a matrix or a part of the claims is one ``.toml`` file. Each is named after its file, and
needs no other registration.
"""

from __future__ import annotations

import json
import os
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from io import BufferedReader

    from isolitmus.model.errors import IsolitmusError


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; ValueError if it has a key twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the key {json.dumps(twice)} twice")
    return found


FROM_THE_START = json.JSONDecoder().raw_decode
UNIQUE = json.JSONDecoder(object_pairs_hook=_unique)
T = TypeVar("T")
TEXT = 2**20
"""The bytes of a file that a person writes, and of a spec with all that it includes."""
LINE = 2**24
"""The bytes of a line of a log (one action)."""
RECORDING = 2**29
"""The bytes of a history that another tool recorded (a million transactions of 15 operations in
dbcop's layout), or of an audit's evidence.
"""
DEEPEST = 100
"""The nesting depth of values, expressions and statements, which are read recursively."""
ENTRIES = 1_000
"""The entries of a list or table in a file, unless a limit below is lower."""
TRANSACTIONS = 100
"""The transactions of a litmus test on tables."""
STATEMENTS = 100
"""The statements of a transaction that is a sequence."""
INITS = 100
"""The statements that fill its tables, and the initial tables of a scope."""
COLUMNS = 100
"""The columns of a table."""
ROWS = 500
"""The rows of a table: a MERGE compares all pairs, in every serial order."""
CLAUSES = 100
"""The clauses of a MERGE."""


def is_deeper(tree: T, children: Callable[[T], Iterable[T]], most: int = DEEPEST) -> bool:
    """Return whether a tree has more than `most` levels (a long AND is as deep as it is long).

    Examples
    --------
    >>> is_deeper([[1], 2], inner_values, 2), is_deeper([[1], 2], inner_values, 3)
    (True, False)
    """
    level = [tree]
    for _ in range(most):
        level = [child for node in level for child in children(node)]
    return bool(level)


def inner_values(value: Any) -> Iterable[Any]:
    """Return the elements of a list or the values of a table."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def read_json(text: str, *, unique: bool = False) -> Any:
    """Return the value of a JSON text.

    Parameters
    ----------
    text : str
        JSON text.
    unique : bool
        Whether a repeated key is an error.

    Raises
    ------
    ValueError
        If the text is not JSON, is nested too deeply, or has a repeated key.

    Examples
    --------
    >>> read_json("[" * 5000)
    Traceback (most recent call last):
    ValueError: nested too deeply
    """
    try:
        try:
            value, end = (UNIQUE.raw_decode if unique else FROM_THE_START)(text)
        except ValueError:
            end = -1
        if end != len(text) and unique:
            value, end = UNIQUE.decode(text), len(text)
        if end != len(text):  # surrounding blanks, or no JSON: json.loads reports it precisely
            value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > DEEPEST and is_deeper(value, inner_values):
        raise ValueError("nested too deeply")
    return value


SMALL = 2**16
"""Size in bytes up to which a file is read at once to split it into lines."""


def is_file(path: Path) -> bool:
    """Return whether a file exists; a name that no file can have gives False.

    Examples
    --------
    >>> from pathlib import Path
    >>> is_file(Path("x" * 1000))
    False
    """
    try:
        return path.is_file()
    except OSError:
        return False


def is_there(path: Path | str) -> bool:
    """Return whether a file or folder of this name exists."""
    return os.path.exists(path)  # noqa: PTH110 - raises for no name


def is_folder(path: Path) -> bool:
    """Return whether a folder of this name exists."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_delta_table(path: Path) -> bool:
    """Return whether a folder with a folder ``_delta_log`` exists."""
    return is_folder(path / "_delta_log")


def is_link(path: Path) -> bool:
    """Return whether a path is a link; a name that no file can have gives False."""
    return os.path.islink(path)  # noqa: PTH114 - raises for no name


def paths_below(folder: Path, ending: str = "") -> list[Path]:
    """Return the files and folders below a folder whose names end with `ending`, sorted.

    Unreadable folders, and files that vanish meanwhile, are skipped.
    """
    found = (
        Path(parent, name)
        for parent, folders, files in os.walk(folder)
        for name in (*folders, *files)
        if name.endswith(ending)
    )
    return sorted(found)


def real_path(path: Path) -> Path:
    r"""Return a path without links; return an unresolvable path as it is (a NUL, a loop of links).

    Opening such a path reports the problem.

    Examples
    --------
    >>> real_path(Path("a\0b"))
    PosixPath('a\x00b')
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def real_place(path: Path) -> Path:
    """Return where a file or link itself is: its path without links in the folders above it."""
    return real_path(path.parent) / path.name if path.name not in {"", ".."} else real_path(path)


def find_repository(folder: Path, otherwise: Path | None = None) -> Path | None:
    """Return the nearest folder with ``.git`` from a folder upwards; if there is none, `otherwise`.

    Examples
    --------
    >>> find_repository(Path("/"), Path("/home"))
    PosixPath('/home')
    """
    above = (one for one in (folder, *folder.parents) if os.path.lexists(one / ".git"))
    return next(above, otherwise)


def open_file(path: Path | str, error: type[IsolitmusError]) -> BufferedReader:
    """Open a regular file for reading; `error` is the class of the exception if that fails.

    Examples
    --------
    >>> from pathlib import Path
    >>> from isolitmus.model.errors import LogError
    >>> open_file(Path("/dev/zero"), LogError)
    Traceback (most recent call last):
    isolitmus.model.errors.LogError: cannot read /dev/zero: it is not a regular file
    """
    number, _ = _opened(path, error)
    return os.fdopen(number, "rb")


def _opened(path: Path | str, error: type[IsolitmusError]) -> tuple[int, int]:
    """Return the descriptor of a regular file opened for reading, and its size in bytes."""
    try:
        found = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # do not wait for a writer of a pipe
    except (OSError, ValueError) as problem:
        raise error(f"cannot read {path}: {getattr(problem, 'strerror', problem)}") from None
    state = os.fstat(found)
    if not stat.S_ISREG(state.st_mode):
        os.close(found)
        why = "Is a directory" if stat.S_ISDIR(state.st_mode) else "it is not a regular file"
        raise error(f"cannot read {path}: {why}")
    return found, state.st_size


def read_text(path: Path, error: type[IsolitmusError], most: int = TEXT) -> str:
    """Return the text of a file with normalized line ends.

    Raise `error` if it has more than `most` bytes or cannot be read.
    """
    found = read_bytes(path, error, most)
    return decode_bytes(found, path, error).replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path, error: type[IsolitmusError], most: int = TEXT) -> bytes:
    """Return the bytes of a file; raise `error` if it is unreadable or longer than `most`."""
    with open_file(path, error) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            found = file.read(min(size, most) + 1)  # read() allocates as much as it is asked for
            if len(found) > size:  # the file grows, or does not report its size
                found += file.read(max(0, most + 1 - len(found)))
        except OSError as problem:
            raise error(f"cannot read {path}: {problem.strerror}") from None
    if len(found) > most:
        raise error(f"cannot read {path}: it is larger than {most:,} bytes")
    return found


def read_if_there(path: Path, error: type[IsolitmusError], most: int = TEXT) -> str | None:
    """Return the text of a file, or None if it does not exist."""
    try:
        path.stat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        pass  # read_text reports the problem
    return read_text(path, error, most)


def read_small(path: Path | str, error: type[IsolitmusError]) -> bytes | None:
    """Return the bytes of a file of at most `SMALL` bytes; None if it is larger, or grows."""
    number, size = _opened(path, error)
    try:
        whole = b"" if size > SMALL else os.read(number, size + 1)
    finally:
        os.close(number)
    return whole if len(whole) == size else None


def read_lines(path: Path | str, error: type[IsolitmusError]) -> Iterator[str]:
    """Yield the lines of a file without their ends; the file may have any size, a line may not."""
    whole = read_small(path, error)
    if whole is not None:  # true of nearly every commit
        lines = decode_bytes(whole, path, error).split("\n")
        yield from (line.rstrip("\r") for line in (lines if lines[-1] else lines[:-1]))
        return
    with open_file(path, error) as file:
        start = 0
        while line := file.readline(LINE + 1):
            if len(line) > LINE:
                raise error(f"cannot read {path}: a line in it is longer than {LINE:,} bytes")
            yield decode_bytes(line, path, error, start).rstrip("\r\n")
            start += len(line)


def from_utf_16(data: bytes) -> str | None:
    r"""Return the text of bytes in UTF-16 with a byte order mark, as Windows writes it, or None.

    Examples
    --------
    >>> from_utf_16("día".encode("utf-16")), from_utf_16(b"d")
    ('día', None)
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") and b"\0" in data:
        return data.decode("utf-16", "replace")
    return None


def decode_bytes(text: bytes, path: Path | str, error: type[IsolitmusError], start: int = 0) -> str:
    """Return the UTF-8 text of bytes; raise `error` with the position of an invalid byte.

    `start` is the position of the bytes in their file.
    """
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise error(
            f"cannot read {path}: it is not UTF-8 text (byte {start + problem.start + 1})"
        ) from None


HOME = Path(__file__).parent.parent
Folder = Literal[
    "levels", "protocols", "litmus", "scopes", "matrices", "claims", "workloads", "equivalent"
]


@cache
def shipped_files(folder: Folder) -> Mapping[str, Path]:
    """Return the files of a kind in the package, by name, in its order.

    Examples
    --------
    >>> "write-serializable" in shipped_files("levels"), shipped_files("scopes")["lattice"].name
    (True, 'lattice.toml')
    """
    ending = ".cat" if folder in ("levels", "protocols") else ".toml"
    found = (HOME / folder).rglob(f"*{ending}")
    return {path.stem: path for path in sorted(found, key=lambda path: path.with_suffix(""))}
