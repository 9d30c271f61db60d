"""Comments ``-- isolitmus: ignore[CODE]`` in SQL files and workload files.

A comment beside a statement, or on a line before it, concerns that statement. ``ignore-file[CODE]``
concerns all statements of its file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.jobs.lint_rule import codes_of, unknown_code
from isolitmus.model.assumption import Place
from isolitmus.model.errors import near
from isolitmus.specs.sql.parameters import PIECE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DIRECTIVE = re.compile(r"isolitmus:\s*+(?P<word>[\w-]+)\s*+(?:\[(?P<codes>[^\[\]\n]*)\])?")
LINE_COMMENT = re.compile(r"(?:--|#|/\*)[^\n]*")
"""Comment in a line of a TOML file, also within its SQL."""
IGNORE, IGNORE_FILE = "ignore", "ignore-file"
KNOWN = (IGNORE, IGNORE_FILE)


class IgnoreComment(NamedTuple):
    """Comment that suppresses findings."""

    place: Place
    selectors: tuple[str, ...]
    """Codes, or beginnings of codes, that rules have."""
    file: bool
    """Whether it concerns all statements of its file."""
    alone: bool
    """Whether nothing but comments stands on its line."""
    problems: tuple[str, ...] = ()
    """What is wrong with it."""


def read_ignore_comments(
    text: str, label: str, path: Path | None = None
) -> Iterator[IgnoreComment]:
    r"""Yield the comments of a file that suppress findings.

    Parameters
    ----------
    text : str
        Text of the file.
    label : str
        Name of the file; TOML files end with ``.toml``.
    path : Path, optional
        Path of the file.

    Examples
    --------
    >>> text = "-- isolitmus: ignore[ISO201]\nSELECT '-- isolitmus: ignore[ISO202]'"
    >>> [(one.place.line, one.selectors) for one in read_ignore_comments(text, "a.sql")]
    [(1, ('ISO201',))]
    """
    if "isolitmus:" not in text:
        return
    line, counted = 1, 0
    for start, comment in _comments(text, toml=label.endswith(".toml")):
        for found in DIRECTIVE.finditer(comment):
            selectors, problems = _selectors(found)
            if not selectors and not problems:
                continue
            at = start + found.start()
            line, counted = line + text.count("\n", counted, at), at
            begin = text.rfind("\n", 0, at) + 1
            before = text[begin : max(start, begin)]
            place = Place(label, line, at - begin + 1, line, path)
            yield IgnoreComment(
                place, selectors, found["word"] == IGNORE_FILE, not before.strip(), problems
            )


def _comments(text: str, *, toml: bool) -> Iterator[tuple[int, str]]:
    """Yield the position and the text of each comment."""
    for piece in (LINE_COMMENT if toml else PIECE).finditer(text):
        if piece[0].startswith(("--", "/*", "#")):
            yield piece.start(), piece[0]


def _selectors(found: re.Match[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the selectors of a comment and its problems; neither if it is another comment."""
    word, codes = found["word"], found["codes"]
    if word not in KNOWN:
        meant = near(word, KNOWN)
        if "did you mean" not in meant and codes is None:
            return (), ()
        return (), (f"unknown comment 'isolitmus: {word}'{meant}",)
    given = [one.strip() for one in (codes or "").split(",") if one.strip()]
    if not given:
        return (), (f"no rule in '{word}'; write {word}[ISO201]",)
    known = tuple(one for one in given if codes_of(one))
    return known, tuple(unknown_code(one) for one in given if one not in known)


def concerned_statement(comment: IgnoreComment, statements: Sequence[Place]) -> list[Place]:
    """Return the statements of a file, in the order of their lines, that a comment concerns.

    Examples
    --------
    >>> first, second = Place("a.sql", 2, 1, 3), Place("a.sql", 5, 1, 5)
    >>> comment = IgnoreComment(Place("a.sql", 4, 1, 4), ("ISO201",), file=False, alone=True)
    >>> concerned_statement(comment, [first, second]) == [second]
    True
    """
    if comment.file:
        return list(statements)
    line = comment.place.line
    beside = [one for one in statements if one.line <= line <= one.end_line]
    if beside or not comment.alone:
        return beside
    return [one for one in statements if one.line > line][:1]
