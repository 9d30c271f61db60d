"""Input files, read within limits of size and depth; what ships in the package.

Files that a user names: whether they are there, and their text or one sentence that says why not.

What is read is a regular file of bounded size: a pipe or a device may never end, and a file may be
larger than memory.

How much of anything a file may hold: what is beyond is refused with a sentence, before it takes
time or memory.

What ships in the package, names to files: below all that reads them.

A level or protocol is one ``.cat`` file under ``levels/`` or ``protocols/``, a litmus test, a
scope, a matrix or a part of the claims one ``.toml`` file, each called by its file name; nothing
else registers it.
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

__all__ = [
    "CLAUSES",
    "COLUMNS",
    "DEEPEST",
    "ENTRIES",
    "HOME",
    "INITS",
    "LINE",
    "RECORDING",
    "ROWS",
    "STATEMENTS",
    "TEXT",
    "TRANSACTIONS",
    "Folder",
    "decode_bytes",
    "from_utf_16",
    "inner_values",
    "is_deeper",
    "is_file",
    "is_folder",
    "is_there",
    "open_file",
    "paths_below",
    "read_bytes",
    "read_if_there",
    "read_json",
    "read_lines",
    "read_text",
    "real_path",
    "shipped_files",
]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; ValueError if it has a key twice."""
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
"""The bytes of a line of a log: an action."""
RECORDING = 2**29
"""The bytes of a history that another tool recorded (a million transactions of 15 operations in
dbcop's layout), or of an audit's evidence.
"""
DEEPEST = 100
"""How deep values, expressions and statements are nested: what reads them goes down to their
leaves.
"""
ENTRIES = 1_000
"""The entries of a list or table in a file, where nothing below says less."""
TRANSACTIONS = 100
"""The transactions of a litmus test on tables."""
STATEMENTS = 100
"""The statements of a transaction that is a sequence."""
INITS = 100
"""The statements that fill its tables; and so many ways to fill them has a scope."""
COLUMNS = 100
"""The columns of a table."""
ROWS = 500
"""The rows of a table: a MERGE compares each with each, in every serial order."""
CLAUSES = 100
"""The clauses of a MERGE."""


def is_deeper(tree: T, children: Callable[[T], Iterable[T]], most: int = DEEPEST) -> bool:
    """Whether a tree has more levels than that (a long AND is as deep as it is long).

    >>> is_deeper([[1], 2], inner_values, 2), is_deeper([[1], 2], inner_values, 3)
    (True, False)
    """
    level = [tree]
    for _ in range(most):
        level = [child for node in level for child in children(node)]
    return bool(level)


def inner_values(value: Any) -> Iterable[Any]:
    """What is in a list or a table."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def read_json(text: str, *, unique: bool = False) -> Any:
    """The value that a text in JSON holds; ValueError for one that is no JSON or nested too deeply,
    or, if keys are to be ``unique``, that has one twice.

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
        if end != len(text):  # spaces around it, or no JSON: that is said with all care
            value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > DEEPEST and is_deeper(value, inner_values):
        raise ValueError("nested too deeply")
    return value


SMALL = 2**16
"""The bytes of a file whose lines are read at once."""


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that no file can have is none.

    >>> from pathlib import Path
    >>> is_file(Path("x" * 1000))
    False
    """
    try:
        return path.is_file()
    except OSError:
        return False


def is_there(path: Path | str) -> bool:
    """Whether there is anything of this name."""
    return os.path.exists(path)  # noqa: PTH110 - it raises for no name


def is_folder(path: Path) -> bool:
    """Whether there is such a folder."""
    try:
        return path.is_dir()
    except OSError:
        return False


def paths_below(folder: Path, ending: str = "") -> list[Path]:
    """Return the files and folders in a folder, and in those, whose names end so, sorted; what
    cannot be looked into, or is gone meanwhile, is passed over.
    """
    found = (
        Path(parent, name)
        for parent, folders, files in os.walk(folder)
        for name in (*folders, *files)
        if name.endswith(ending)
    )
    return sorted(found)


def real_path(path: Path) -> Path:
    r"""Return a path without links; one that has none (a NUL, links that lead to themselves) as it
    is, for whoever opens it says what is wrong with it.

    >>> real_path(Path("a\0b"))
    PosixPath('a\x00b')
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def open_file(path: Path | str, error: type[IsolitmusError]) -> BufferedReader:
    """A regular file, to be read; the error says what is wrong with it.

    >>> from pathlib import Path
    >>> from isolitmus.model.errors import LogError
    >>> open_file(Path("/dev/zero"), LogError)
    Traceback (most recent call last):
    isolitmus.model.errors.LogError: cannot read /dev/zero: it is not a regular file
    """
    number, _ = _opened(path, error)
    return os.fdopen(number, "rb")


def _opened(path: Path | str, error: type[IsolitmusError]) -> tuple[int, int]:
    """The number of a regular file that is open to be read, and how many bytes it has."""
    try:
        found = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # nobody may be writing to a pipe
    except (OSError, ValueError) as problem:
        raise error(f"cannot read {path}: {getattr(problem, 'strerror', problem)}") from None
    state = os.fstat(found)
    if not stat.S_ISREG(state.st_mode):
        os.close(found)
        why = "Is a directory" if stat.S_ISDIR(state.st_mode) else "it is not a regular file"
        raise error(f"cannot read {path}: {why}")
    return found, state.st_size


def read_text(path: Path, error: type[IsolitmusError], most: int = TEXT) -> str:
    """The text of a file, so many bytes at most (as a person writes); the error says what is wrong
    with it.
    """
    found = read_bytes(path, error, most)
    return decode_bytes(found, path, error).replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path, error: type[IsolitmusError], most: int = TEXT) -> bytes:
    """The bytes of a file, so many at most; the error says what is wrong with it."""
    with open_file(path, error) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            found = file.read(min(size, most) + 1)  # as much memory as is asked for is taken
            if len(found) > size:  # it grows, or is no file that says its size
                found += file.read(max(0, most + 1 - len(found)))
        except OSError as problem:
            raise error(f"cannot read {path}: {problem.strerror}") from None
    if len(found) > most:
        raise error(f"cannot read {path}: it is larger than {most:,} bytes")
    return found


def read_if_there(path: Path, error: type[IsolitmusError], most: int = TEXT) -> str | None:
    """The text of a file, None if there is none."""
    try:
        path.stat()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        pass  # the reader says what it is
    return read_text(path, error, most)


def read_lines(path: Path | str, error: type[IsolitmusError]) -> Iterator[str]:
    """The lines of a file one at a time, without their ends: the file may be of any size, a line
    not.
    """
    number, size = _opened(path, error)
    if size <= SMALL:  # at once, as nearly every commit is
        try:
            whole = os.read(number, size + 1)
        finally:
            os.close(number)
        if len(whole) <= size:
            lines = decode_bytes(whole, path, error).split("\n")
            yield from (line.rstrip("\r") for line in (lines if lines[-1] else lines[:-1]))
            return
        number, _ = _opened(path, error)  # it grows, or is no file that says its size
    with os.fdopen(number, "rb") as file:
        start = 0
        while line := file.readline(LINE + 1):
            if len(line) > LINE:
                raise error(f"cannot read {path}: a line in it is longer than {LINE:,} bytes")
            yield decode_bytes(line, path, error, start).rstrip("\r\n")
            start += len(line)


def from_utf_16(data: bytes) -> str | None:
    r"""Return the text of bytes that are UTF-16 as Windows writes it; None if they are none.

    >>> from_utf_16("día".encode("utf-16")), from_utf_16(b"d")
    ('día', None)
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") and b"\0" in data:
        return data.decode("utf-16", "replace")
    return None


def decode_bytes(text: bytes, path: Path | str, error: type[IsolitmusError], start: int = 0) -> str:
    """The text that bytes of a file stand for, which begin at ``start`` in it; the error says where
    they are none.
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
    """The package's files of a kind, by name and in its order.

    >>> "write-serializable" in shipped_files("levels"), shipped_files("scopes")["lattice"].name
    (True, 'lattice.toml')
    """
    ending = ".cat" if folder in ("levels", "protocols") else ".toml"
    found = (HOME / folder).rglob(f"*{ending}")
    return {path.stem: path for path in sorted(found, key=lambda path: path.with_suffix(""))}
