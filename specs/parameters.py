"""Parameters of a statement's text (``:name``), and values in their place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.values import literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.values import Value

__all__ = ["bound", "one_line", "parameters", "places", "spark_literal"]

PIECE = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?<![:\w]):(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL,
)
"""What a colon means nothing in, or a parameter."""
SPACES = re.compile(r"\s+")


def parameters(sql: str) -> tuple[str, ...]:
    """The names of a statement's parameters, in order.

    >>> parameters("UPDATE t SET x = :seen + 1, s = 'a:b' WHERE id = :key")
    ('seen', 'key')
    """
    return tuple(found["name"] for found in PIECE.finditer(sql) if found["name"])


def bound(sql: str, values: Mapping[str, Value]) -> str:
    """The text with literals in the place of its parameters.

    >>> bound("UPDATE t SET x = :seen - 1, s = ':seen'", {"seen": -2})
    "UPDATE t SET x = (-2) - 1, s = ':seen'"
    """
    return PIECE.sub(
        lambda found: spark_literal(values[found["name"]]) if found["name"] in values else found[0],
        sql,
    )


def one_line(sql: str) -> str:
    r"""The text without comments and line breaks, but for those in its strings.

    >>> one_line("DELETE FROM t\n  WHERE s = 'a  b'  -- all")
    "DELETE FROM t WHERE s = 'a  b'"
    """
    parts, start = [], 0
    for piece in PIECE.finditer(sql):
        parts.append(SPACES.sub(" ", sql[start : piece.start()]))
        if not piece[0].startswith(("--", "/*")):
            parts.append(piece[0])
        start = piece.end()
    parts.append(SPACES.sub(" ", sql[start:]))
    return "".join(parts).strip()


def places(sql: str) -> dict[str, list[int]]:
    """Where each parameter stands, positions from 0.

    >>> places("SELECT :a, :b, ':a', :a")
    {'a': [7, 21], 'b': [11]}
    """
    found: dict[str, list[int]] = {}
    for piece in PIECE.finditer(sql):
        if piece["name"]:
            found.setdefault(piece["name"], []).append(piece.start())
    return found


def spark_literal(value: Value) -> str:
    """A value as Spark's SQL has it anywhere in an expression: its strings know the backslash."""
    text = literal(value)
    if isinstance(value, str):
        return text.replace("\\", "\\\\")
    return f"({text})" if text.startswith("-") else text
