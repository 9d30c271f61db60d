"""Parameters and placeholders in the text of a statement.

``:name`` is a parameter, and may be replaced by a value. ``{init[n]}``, after VERSION AS OF, is the
version that the n-th init statement made. ``delta.`{alias}` `` or ``delta.`{alias[t]}` ``, in a
FROM, is another path to the files of a table. Each engine has its own text for these.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.sql.types import type_named
from isolitmus.model.sql.values import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sqlglot import expressions as exp

    from isolitmus.model.sql.types import Type
    from isolitmus.model.sql.values import Value

CLOCKS = ("current_date()", "current_timestamp()")
"""Functions that have one value in a statement, without declaration."""
SAME = {"now": "current_timestamp", "curdate": "current_date"}
"""Other names of these functions."""
PIECE = re.compile(
    r"""'(?:[^'\\]|\\.?)*+(?:'|\Z)|"(?:[^"\\]|\\.?)*+(?:"|\Z)|`[^`]*`|--[^\n]*|/\*.*?(?:\*/|\Z)"""
    r"|(?<![:\w)\]]):(?P<name>[A-Za-z_]\w*)"
    r"|(?<![.\w])(?:(?P<clock>current_date|current_timestamp)\b(?:\s*\(\s*\))?"
    r"|(?P<other>now|curdate)\s*\(\s*\))",
    re.DOTALL | re.IGNORECASE,
)
"""Quoted text or comment, in which a colon has no meaning; a parameter; or a function of the clock.

Quotes and comments without an end last to the end of the text: otherwise a search would begin anew
at each, and read the rest of the text again.
"""
SPACES = re.compile(r"\s+")
BLANK = r"(?:\s++|--[^\n]*+(?:\n|\Z)|/\*(?s:.*?)\*/)*+"
"""Blanks and comments before a statement."""


def parameters(sql: str) -> tuple[str, ...]:
    """Return the names of a statement's parameters, in order.

    Examples
    --------
    >>> parameters("UPDATE t SET x = :seen + 1, s = 'a:b' WHERE id = :key")
    ('seen', 'key')
    """
    return tuple(found["name"] for found in PIECE.finditer(sql) if found["name"])


def is_unnamed(parameter: str) -> bool:
    """Return whether a parameter of a run is an expression that stands for itself in the text.

    Examples
    --------
    >>> [is_unnamed(name) for name in ("day", "current_date()", "last_day(:day)")]
    [False, False, True]
    """
    return not parameter.isidentifier() and parameter not in CLOCKS


def _pieces(names: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of pieces, the first of which are expressions among these names."""
    every = "|".join(
        rf"(?<![\w.:`]){re.escape(name)}(?!\w)"
        for name in sorted(filter(is_unnamed, names), key=len, reverse=True)
    )
    if not every:
        return PIECE
    return re.compile(f"(?P<written>(?-i:{every}))|{PIECE.pattern}", PIECE.flags)


def count_in_text(sql: str, expression: str) -> int:
    """Return how often an expression stands in a text of one line, outside strings and comments.

    Examples
    --------
    >>> count_in_text("SELECT f(1), 'f(1)', g.f(1), f(1) + 1", "f(1)")
    2
    """
    return sum(
        found.groupdict().get("written") is not None
        for found in _pieces((expression,)).finditer(sql)
    )


def bind_text(
    sql: str, values: Mapping[str, Value], types: Mapping[str, Type] | None = None
) -> str:
    """Return the text with values in place of its parameters, and of ``current_date()`` if it has
    one.

    Parameters
    ----------
    sql : str
        Text of a statement, in one line if a parameter is an expression of it.
    values : mapping of str to Value
        Value of each parameter.
    types : mapping of str to Type, optional
        Types of the parameters, for NULL as their value.

    Examples
    --------
    >>> bind_text("UPDATE t SET x = :seen - 1, s = ':seen'", {"seen": -2})
    "UPDATE t SET x = (-2) - 1, s = ':seen'"
    >>> from datetime import date
    >>> today = {"current_date()": date(2026, 1, 2)}
    >>> bind_text("DELETE FROM t WHERE day < CURRENT_DATE - 7", today)
    "DELETE FROM t WHERE day < DATE '2026-01-02' - 7"
    >>> bind_text("DELETE FROM t WHERE day < curdate() AND now = 1", today)
    "DELETE FROM t WHERE day < DATE '2026-01-02' AND now = 1"
    >>> bind_text("DELETE FROM t WHERE a = last_day(:d)", {"last_day(:d)": date(2026, 1, 31)})
    "DELETE FROM t WHERE a = DATE '2026-01-31'"
    """
    pieces = _pieces(values)

    def written(found: re.Match[str]) -> str:
        name = _parameter_name(found)
        if name not in values:
            return found[0]
        if values[name] is None and types and type_named(types[name]) is not None:
            return f"CAST(NULL AS {types[name]})"
        return spark_literal(values[name])

    return pieces.sub(written, sql)


LITERAL = (
    r"NULL|TRUE|FALSE|\d++(?:\.\d++)?|\(-\d+(?:\.\d+)?\)"
    r"|CAST\((?:'[^']*'|NULL) AS [A-Z]+(?:\(\d+,\d+\))?\)"
    r"|(?:DATE |TIMESTAMP )?'(?:[^']|'')*+'"
)
"""A literal of `spark_literal`."""


def bound_literals(sql: str, bound: str, names: Iterable[str] = ()) -> dict[str, str] | None:
    """Return the literals in place of parameters in a text that `bind_text` made of ``sql``.

    Parameters
    ----------
    sql : str
        Text with parameters.
    bound : str
        The same text with literals in place of parameters, all of them or some.
    names : iterable of str
        Parameters that are expressions of the text.

    Returns
    -------
    dict of str to str or None
        Literal of each parameter that has one, by name; None if the texts differ in other places.

    Examples
    --------
    >>> bound_literals("UPDATE t SET x = :a - 1, y = :b", "UPDATE t SET x = (-2) - 1, y = :b")
    {'a': '(-2)'}
    >>> bound_literals("DELETE FROM t WHERE day < CURRENT_DATE", "DELETE FROM t") is None
    True
    """
    parts: list[str] = []
    groups: dict[str, str] = {}
    start = 0
    for piece in _pieces(names).finditer(sql):
        if name := _parameter_name(piece):
            again = groups.get(name)
            group = groups.setdefault(name, f"g{len(groups)}")
            value = f"(?P={again})" if again else f"(?P<{group}>{LITERAL})"
            parts.append(
                f"{re.escape(sql[start : piece.start()])}(?:{value}|{re.escape(piece[0])})"
            )
            start = piece.end()
    parts.append(re.escape(sql[start:]))
    found = re.fullmatch("".join(parts), bound)
    if found is None:
        return None
    return {name: found[group] for name, group in groups.items() if found[group] is not None}


def _parameter_name(found: re.Match[str]) -> str:
    """Return the name of the parameter that a piece is; empty if it is none."""
    if written := found.groupdict().get("written"):
        return written
    said = (found["clock"] or found["other"] or "").lower()
    return f"{SAME.get(said, said)}()" if said else found["name"] or ""


def one_line(sql: str) -> str:
    r"""Return the text without comments and line breaks, except for those in its strings.

    Examples
    --------
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

    Examples
    --------
    >>> strip_end("OPTIMIZE t;  -- all"), strip_end("COMMENT ON TABLE t IS '-- a;';")
    ('OPTIMIZE t', "COMMENT ON TABLE t IS '-- a;'")
    """
    plain = PIECE.sub(
        lambda piece: " " * len(piece[0]) if piece[0].startswith(("--", "/*")) else piece[0], sql
    )
    return sql[: len(re.sub(r"(?<![\s;])[\s;]++\Z", "", plain))]


def parameter_places(sql: str) -> dict[str, list[int]]:
    """Return the positions of each parameter, from 0.

    Examples
    --------
    >>> parameter_places("SELECT :a, :b, ':a', :a")
    {'a': [7, 21], 'b': [11]}
    """
    found: dict[str, list[int]] = {}
    for piece in PIECE.finditer(sql):
        if piece["name"]:
            found.setdefault(piece["name"], []).append(piece.start())
    return found


def spark_literal(value: Value) -> str:
    """Return a value as a Spark literal for any place in an expression; backslashes are escaped."""
    text = literal(value)
    if isinstance(value, str):
        return text.replace("\\", "\\\\")
    return f"({text})" if text.startswith("-") else text


INIT = re.compile(r"\{init\[([1-9][0-9]{0,3})\]\}")
"""Version of the n-th init statement in SQL."""
ALIAS = re.compile(r"\{alias(?:\[(\w+)\])?\}")
"""Another path to the files of a table."""


def any_version(sql: str) -> str:
    """Return the text in words where a job restores or reads some earlier version.

    Examples
    --------
    >>> any_version("RESTORE TABLE t TO VERSION AS OF {init[1]}")
    'RESTORE TABLE t TO VERSION AS OF (any earlier version)'
    """
    return INIT.sub("(any earlier version)", sql)


def with_markers(sql: str) -> str:
    """Return the text with each ``{init[n]}`` replaced by an SQL literal of the same length.

    Examples
    --------
    >>> with_markers("SELECT * FROM t VERSION AS OF {init[1]} WHERE id = 1")
    "SELECT * FROM t VERSION AS OF 'init 1'  WHERE id = 1"
    """
    return INIT.sub(lambda found: f"'init {found[1]}' ", sql)


def place_versions(sql: str, versions: Sequence[int], alias: Callable[[str | None], object]) -> str:
    """Return the text with an engine's version numbers and paths in place of ``{init[n]}`` and
    ``{alias}``.

    Parameters
    ----------
    sql : str
        Text of a statement.
    versions : sequence of int
        Version of the engine after each init statement.
    alias : callable
        Function that returns another path to the files of a table (None: the only table).

    Examples
    --------
    >>> place_versions("SELECT * FROM t VERSION AS OF {init[1]}", [2], str)
    'SELECT * FROM t VERSION AS OF 2'
    >>> place_versions("SELECT * FROM delta.`{alias[t]}`", [], "/tmp/{}".format)
    'SELECT * FROM delta.`/tmp/t`'
    """
    numbered = INIT.sub(lambda found: str(versions[int(found[1]) - 1]), sql)
    return ALIAS.sub(lambda found: str(alias(found[1])), numbered)


def tables_by_path(node: exp.Table, names: Collection[str]) -> str | None:
    """Return the table, in lower case, that a FROM names by another path to its files, or None."""
    found = ALIAS.fullmatch(node.name)
    if node.db.lower() != "delta" or found is None:
        return None
    if found[1] is None:
        return next(iter(names)).lower() if len(names) == 1 else None
    return found[1].lower() if found[1].lower() in {name.lower() for name in names} else None


def marked_version(node: exp.Table) -> int | None:
    """Return the number of the init statement in a table's VERSION AS OF, or None."""
    version = node.args["version"]
    text = version.expression.name if version.expression is not None else ""
    if version.name != "VERSION" or version.args.get("kind") != "AS OF":
        return None
    found = re.fullmatch(r"init ([1-9][0-9]*)", text)
    return None if found is None else int(found[1])
