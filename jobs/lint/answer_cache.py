"""Answers of earlier runs of the linter, in a file of the user's cache for each repository.

A file of another repository or release, of other source code, or with a wrong digest is ignored. An
answer is found only by a key that holds everything it depends on. Nothing in a repository is read:
who can change the jobs must not be able to change the answers.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from isolitmus.specs.disk.input_files import HOME, read_json, real_path
from isolitmus.specs.disk.user_cache import OwnFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = 2
MOST = 20_000
"""Maximum number of answers that are kept."""
SIZE = 2**26
"""Maximum size of the file in bytes."""
SOLVERS = ("z3-solver", "sqlglot", "duckdb")
"""Packages on which answers depend."""


class AnswerCache:
    """Answers by key; with a repository, they are read at the start and written by `save`.

    Examples
    --------
    >>> answers = AnswerCache(None)
    >>> answers.put("key", {"word": "never"})
    >>> answers.get("key"), answers.get("other")
    ({'word': 'never'}, None)
    """

    def __init__(self, repository: Path | None) -> None:
        self._head = {} if repository is None else _head(repository)
        self._folder = None if repository is None else OwnFolder("lint", repository)
        self._kept = {} if self._folder is None else _read_answers(self._folder, self._head)
        self._used: dict[str, Any] = {}
        self._changed = False

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
        if self._folder is None or not self._changed:
            return
        others = {key: one for key, one in self._kept.items() if key not in self._used}
        every = {**others, **self._used}
        kept = dict(list(every.items())[-MOST:])
        body = json.dumps(kept, separators=(",", ":"))
        head = json.dumps({**self._head, "digest": _digest(body)})
        self._folder.write(_file_name(self._head), f"{head}\n{body}\n")


def _head(repository: Path) -> dict[str, Any]:
    """Return what a file of answers says of itself."""
    return {
        "isolitmus_cache": FORMAT,
        "release": version("isolitmus"),
        "repository": str(real_path(repository)),
        "code": code_digest(),
    }


def _file_name(head: dict[str, Any]) -> str:
    """Return the name of the file of a repository and a release."""
    return f"{_digest(json.dumps([head['release'], head['repository']]))[:32]}.json"


def _read_answers(folder: OwnFolder, head: dict[str, Any]) -> dict[str, Any]:
    """Return the answers in the file with a head; none if it is absent, damaged or another's."""
    first, _, rest = folder.read(_file_name(head), SIZE).partition("\n")
    body = rest.rstrip("\n")
    try:
        if read_json(first) != {**head, "digest": _digest(body)}:
            return {}
        answers = read_json(body)
    except ValueError:
        return {}
    return answers if isinstance(answers, dict) else {}


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
