"""Answers of earlier runs of the linter, in a folder beside the linted files.

A file of another release, of other source code, or with a wrong digest is ignored. An answer is
found only by a key that holds everything it depends on.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.disk.input_files import HOME, read_if_there, read_json
from isolitmus.specs.disk.output_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["AnswerCache", "code_digest"]

FORMAT = 1
FOLDER = ".isolitmus_cache"
FILE = "answers.json"
MOST = 20_000
"""Maximum number of answers that are kept."""
SIZE = 2**26
"""Maximum size of the file in bytes."""
TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This file marks a folder of isolitmus that may be deleted at any time.
# See https://bford.info/cachedir/
"""
SOLVERS = ("z3-solver", "sqlglot", "duckdb")
"""Packages on which answers depend."""


class AnswerCache:
    """Answers by key; with a folder, they are read at the start and written by `save`.

    Examples
    --------
    >>> answers = AnswerCache(None)
    >>> answers.put("key", {"word": "never"})
    >>> answers.get("key"), answers.get("other")
    ({'word': 'never'}, None)
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._kept = {} if folder is None else _read_answers(folder / FILE)
        self._used: dict[str, Any] = {}
        self._changed = False

    @classmethod
    def below(cls, root: Path) -> AnswerCache:
        """Return the cache in the folder for caches below `root`."""
        return cls(root / FOLDER)

    def get(self, key: str | None) -> Any:
        """Return the answer with a key, or None."""
        if key is None:
            return None
        found = self._used.get(key, self._kept.get(key))
        if found is not None:
            self._used[key] = found
        return found

    def put(self, key: str | None, answer: Any) -> None:
        """Keep an answer."""
        if key is not None:
            self._used[key] = answer
            self._changed = True

    def save(self) -> None:
        """Write the answers, those of this run last; a folder that cannot be written is left."""
        if self.folder is None or not self._changed:
            return
        others = {key: one for key, one in self._kept.items() if key not in self._used}
        every = {**others, **self._used}
        kept = dict(list(every.items())[-MOST:])
        body = json.dumps(kept, separators=(",", ":"))
        head = json.dumps(
            {"isolitmus_cache": FORMAT, "code": code_digest(), "digest": _digest(body)}
        )
        with suppress(IsolitmusError, OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", TAG)):
                if not (self.folder / name).exists():
                    write_whole(self.folder / name, text)
            write_whole(self.folder / FILE, f"{head}\n{body}\n")


def _read_answers(path: Path) -> dict[str, Any]:
    """Return the answers in a file; none if it is absent, damaged or of another release."""
    try:
        text = read_if_there(path, IsolitmusError, SIZE) or ""
        first, _, rest = text.partition("\n")
        head, body = read_json(first), rest.rstrip("\n")
        if not isinstance(head, dict) or head.get("isolitmus_cache") != FORMAT:
            return {}
        if head.get("code") != code_digest() or head.get("digest") != _digest(body):
            return {}
        found = read_json(body)
    except (IsolitmusError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


@cache
def code_digest() -> str:
    """Return the digest of the source code that makes answers, and of the releases of solvers.

    Examples
    --------
    >>> len(code_digest())
    64
    """
    found = sha256(repr(sys.version_info[:3]).encode())
    for name in SOLVERS:
        with suppress(PackageNotFoundError):
            found.update(f"{name} {version(name)}\n".encode())
    for path in _sources():
        found.update(path.relative_to(HOME.parent).as_posix().encode())
        found.update(sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _sources() -> Iterator[Path]:
    """Yield the files of the package on which answers depend, sorted."""
    for folder, endings in (
        ("model", ("*.py",)),
        ("specs", ("*.py", "*.cat", "*.lark", "exceptions.toml")),
        ("checker", ("*.py",)),
    ):
        for ending in endings:
            yield from sorted((HOME.parent / folder).rglob(ending))
