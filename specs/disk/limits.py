"""How much of anything a file may hold: what is beyond is refused with a sentence, before it takes time or memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "CLAUSES",
    "COLUMNS",
    "DEEPEST",
    "ENTRIES",
    "INITS",
    "LINE",
    "RECORDING",
    "ROWS",
    "STATEMENTS",
    "TEXT",
    "TRANSACTIONS",
    "deeper",
    "inner",
    "read_json",
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
"""The bytes of a history that another tool recorded (a million transactions of 15 operations in dbcop's layout), or of an audit's evidence."""
DEEPEST = 100
"""How deep values, expressions and statements are nested: what reads them goes down to their leaves."""
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


def deeper(tree: T, children: Callable[[T], Iterable[T]], most: int = DEEPEST) -> bool:
    """Whether a tree has more levels than that (a long AND is as deep as it is long).

    >>> deeper([[1], 2], inner, 2), deeper([[1], 2], inner, 3)
    (True, False)
    """
    level = [tree]
    for _ in range(most):
        level = [child for node in level for child in children(node)]
    return bool(level)


def inner(value: Any) -> Iterable[Any]:
    """What is in a list or a table."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def read_json(text: str, *, unique: bool = False) -> Any:
    """The value that a text in JSON holds; ValueError for one that is no JSON or nested too deeply, or, if keys are
    to be ``unique``, that has one twice.

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
    if text.count("[") + text.count("{") > DEEPEST and deeper(value, inner):
        raise ValueError("nested too deeply")
    return value
