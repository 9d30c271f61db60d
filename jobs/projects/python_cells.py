"""Cells of Python in notebooks that do nothing but ``spark.sql("…")``."""

from __future__ import annotations

import ast
import re
import sys

QUOTES = re.compile(r"(?i:r|u|)(?P<quotes>\"\"\"|'''|\"|')")
SHOWN = ("show", "collect", "count", "first", "head", "toPandas", "display")
"""Methods of a result after which nothing else is done with it."""
MODULES = {"pyspark", "delta"} | sys.stdlib_module_names
"""Modules whose import executes no statement."""


def read_python_cell(cell: str) -> str | None:
    r"""Return the SQL of a cell at its places, with a semicolon after each statement.

    Returns None if the cell does anything but import modules, name constants, and execute texts of
    SQL, or if a text is not written as it is or ends in a comment.

    Examples
    --------
    >>> read_python_cell('x = 1\nspark.sql("DELETE FROM t")')
    '     \n           DELETE FROM t; '
    >>> read_python_cell("for n in names: spark.sql(f'DELETE FROM {n}')") is None
    True
    """
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError):
        return None
    lines = cell.split("\n")
    found = [*re.sub(r"[^\n]", " ", cell)]
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = [one.name for one in node.names]
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else named
            if {one.partition(".")[0] for one in modules} <= MODULES:
                continue
            return None
        value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
        if isinstance(node, ast.Assign) and not all(isinstance(t, ast.Name) for t in node.targets):
            return None
        if isinstance(value, ast.Constant):
            continue
        text = _executed(value)
        if text is None or text.end_lineno is None or text.end_col_offset is None:
            return None
        start = _offset(lines, text.lineno, text.col_offset)
        end = _offset(lines, text.end_lineno, text.end_col_offset)
        quoted = QUOTES.match(cell, start, end)
        if quoted is None:
            return None
        last = end - len(quoted["quotes"])
        if cell[quoted.end() : last] != text.value or "--" in text.value.rpartition("\n")[2]:
            return None
        found[quoted.end() : last] = cell[quoted.end() : last]
        found[last] = ";"
    return "".join(found)


def _executed(value: ast.expr | None) -> ast.Constant | None:
    """Return the text of ``spark.sql("…")``, whose result may be shown."""
    while isinstance(value, ast.Call):
        match value.func, value.args:
            case ast.Attribute(ast.Name("spark"), "sql"), [ast.Constant(str()) as text]:
                return text if all(map(_is_args, value.keywords)) else None
            case ast.Attribute(inner, name), _ if name in SHOWN:
                value = inner
            case ast.Name("display"), [inner]:
                value = inner
            case _:
                return None
    return None


def _is_args(given: ast.keyword) -> bool:
    """Return whether an argument gives values to parameters, which may have any."""
    return given.arg == "args" and isinstance(given.value, ast.Dict)


def _offset(lines: list[str], line: int, column: int) -> int:
    """Return the position of a place of Python's parser, whose columns are bytes."""
    before = sum(len(one) + 1 for one in lines[: line - 1])
    return before + len(lines[line - 1].encode()[:column].decode())
