"""Parameters and placeholders in a statement's text.

Parameters of a statement's text (``:name``), and values in their place.

What stands in a statement for something that each engine has its own name for.

``{init[n]}``, after VERSION AS OF, is the version that the n-th init statement made, and
``delta.`{alias}` `` or ``delta.`{alias[t]}` ``, in a FROM, another path to the files of a table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.sql.values import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sqlglot import expressions as exp

    from isolitmus.model.sql.values import Value

__all__ = [
    "BLANK",
    "CLOCKS",
    "bind_text",
    "marked_version",
    "one_line",
    "parameter_places",
    "parameters",
    "place_versions",
    "spark_literal",
    "strip_end",
    "tables_by_path",
    "with_markers",
]

CLOCKS = ("current_date()", "current_timestamp()")
"""What is one value in a statement, and nobody declares."""
SAME = {"now": "current_timestamp", "curdate": "current_date"}
"""Other names of the same."""
PIECE = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?<![:\w]):(?P<name>[A-Za-z_]\w*)"""
    r"""|(?<![.\w])(?:(?P<clock>current_date|current_timestamp)\b(?:\s*\(\s*\))?|(?P<other>now|curdate)\s*\(\s*\))""",
    re.DOTALL | re.IGNORECASE,
)
"""What a colon means nothing in, a parameter, or what the clock says."""
SPACES = re.compile(r"\s+")
BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*(?s:.*?)\*/)*"
"""What may stand before a statement: spaces and comments."""


def parameters(sql: str) -> tuple[str, ...]:
    """The names of a statement's parameters, in order.

    >>> parameters("UPDATE t SET x = :seen + 1, s = 'a:b' WHERE id = :key")
    ('seen', 'key')
    """
    return tuple(found["name"] for found in PIECE.finditer(sql) if found["name"])


def bind_text(sql: str, values: Mapping[str, Value]) -> str:
    """The text with literals in the place of its parameters, and of ``current_date()`` if it has a
    value.

    >>> bind_text("UPDATE t SET x = :seen - 1, s = ':seen'", {"seen": -2})
    "UPDATE t SET x = (-2) - 1, s = ':seen'"
    >>> from datetime import date
    >>> bind_text("DELETE FROM t WHERE day < CURRENT_DATE - 7", {"current_date()": date(2026, 1, 2)})
    "DELETE FROM t WHERE day < DATE '2026-01-02' - 7"
    >>> bind_text("DELETE FROM t WHERE day < curdate() AND now = 1", {"current_date()": date(2026, 1, 2)})
    "DELETE FROM t WHERE day < DATE '2026-01-02' AND now = 1"
    """

    def written(found: re.Match[str]) -> str:
        said = (found["clock"] or found["other"] or "").lower()
        clock = f"{SAME.get(said, said)}()" if said else ""
        name = clock or found["name"]
        return spark_literal(values[name]) if name in values else found[0]

    return PIECE.sub(written, sql)


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


def strip_end(sql: str) -> str:
    """Return the text without the semicolons, blanks and comments at its end.

    >>> strip_end("OPTIMIZE t;  -- all"), strip_end("COMMENT ON TABLE t IS '-- a;';")
    ('OPTIMIZE t', "COMMENT ON TABLE t IS '-- a;'")
    """
    plain = PIECE.sub(
        lambda piece: " " * len(piece[0]) if piece[0].startswith(("--", "/*")) else piece[0], sql
    )
    return sql[: len(re.sub(r"[\s;]+\Z", "", plain))]


def parameter_places(sql: str) -> dict[str, list[int]]:
    """Where each parameter stands, positions from 0.

    >>> parameter_places("SELECT :a, :b, ':a', :a")
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


INIT = re.compile(r"\{init\[([1-9][0-9]{0,3})\]\}")
"""The version of the n-th init statement, where it stands in SQL."""
ALIAS = re.compile(r"\{alias(?:\[(\w+)\])?\}")
"""Another path to the files of a table."""


def with_markers(sql: str) -> str:
    """The text with each ``{init[n]}`` as a SQL literal as long as itself.

    >>> with_markers("SELECT * FROM t VERSION AS OF {init[1]} WHERE id = 1")
    "SELECT * FROM t VERSION AS OF 'init 1'  WHERE id = 1"
    """
    return INIT.sub(lambda found: f"'init {found[1]}' ", sql)


def place_versions(sql: str, versions: Sequence[int], alias: Callable[[str | None], object]) -> str:
    """The text with an engine's own number in the place of each ``{init[n]}``, and another path to
    a table (None: to the only one) in the place of each ``{alias}``.

    >>> place_versions("SELECT * FROM t VERSION AS OF {init[1]}", [2], str)
    'SELECT * FROM t VERSION AS OF 2'
    >>> place_versions("SELECT * FROM delta.`{alias[t]}`", [], "/tmp/{}".format)
    'SELECT * FROM delta.`/tmp/t`'
    """
    numbered = INIT.sub(lambda found: str(versions[int(found[1]) - 1]), sql)
    return ALIAS.sub(lambda found: str(alias(found[1])), numbered)


def tables_by_path(node: exp.Table, names: Collection[str]) -> str | None:
    """Which of the tables (names in lower case) a FROM names by another path to its files."""
    found = ALIAS.fullmatch(node.name)
    if node.db.lower() != "delta" or found is None:
        return None
    if found[1] is None:
        return next(iter(names)).lower() if len(names) == 1 else None
    return found[1].lower() if found[1].lower() in {name.lower() for name in names} else None


def marked_version(node: exp.Table) -> int | None:
    """The init statement that a table's VERSION AS OF names."""
    version = node.args["version"]
    text = version.expression.name if version.expression is not None else ""
    if version.name != "VERSION" or version.args.get("kind") != "AS OF":
        return None
    found = re.fullmatch(r"init ([1-9][0-9]*)", text)
    return None if found is None else int(found[1])
