r"""Notebooks of Databricks and of Jupyter: their SQL as a text of statements.

A notebook of Databricks in the source format begins with ``-- Databricks notebook source`` (``#``
for Python and R, ``//`` for Scala). ``COMMAND ----------`` ends a cell. A cell in another language
than the notebook's has ``MAGIC`` before each line, and begins with ``%sql``, ``%python`` or the
like. Nothing is moved: blanks take the place of what is no SQL, so that the place of a statement in
the text is its place in the file.

In a notebook of Jupyter (nbformat 4) cells of SQL begin with ``%sql`` or ``%%sql``; in a notebook
of SQL they need not. Cells of Python are SQL if they do nothing but ``spark.sql("…")``. The text
has the lines of the file, so that the line of a statement is that in the file. A file that is not
laid out as nbformat writes it, with each line of a cell in a line of its own, is first laid out so.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.errors import LitmusError
from isolitmus.specs.disk.input_files import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

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


LANGUAGES = {"sql": "sql", "py": "python", "r": "r", "scala": "scala"}
"""Language of a notebook, by the ending of its file."""
SIGNS = {"sql": "--", "python": "#", "r": "#", "scala": "//"}
"""Beginning of a comment, by language."""
TEXTS = ("md", "md-sandbox", "html")
"""Cells that execute nothing."""
MAGIC = re.compile(r"\s*%(?P<language>[\w-]+)")
HIDDEN = re.compile(r"[^\n]")


class OtherCell(NamedTuple):
    """Cell that is no SQL."""

    start: int
    """Position in the text."""
    language: str
    """Language or command: python, scala, run, sh …"""


class NotebookText(NamedTuple):
    """SQL of a notebook, and the cells that are no SQL."""

    sql: str
    """Text as long as that of the notebook; a semicolon ends each cell."""
    others: tuple[OtherCell, ...]
    cells: tuple[tuple[int, int], ...] = ()
    """First line of each cell, with its number; empty if lines suffice to find a cell."""

    def cell_at(self, line: int) -> int:
        """Return the number of the cell in whose lines a line is; 0 if it is in none."""
        return max((number for first, number in self.cells if first <= line), default=0)


def read_notebook(text: str, ending: str = "sql") -> NotebookText | None:
    r"""Return the SQL of a notebook; None if the text is not a notebook.

    Parameters
    ----------
    text : str
        Text of the file.
    ending : {"sql", "py", "r", "scala"}
        Ending of its name, which gives the language of cells without ``%``.

    Examples
    --------
    >>> found = read_notebook(
    ...     "# Databricks notebook source\n"
    ...     "# MAGIC %sql\n# MAGIC DELETE FROM t\n"
    ...     "# COMMAND ----------\n"
    ...     "print(1)\n", "py")
    >>> found.sql.split()
    ['DELETE', 'FROM', 't', ';']
    >>> [cell.language for cell in found.others]
    ['python']
    """
    language = LANGUAGES.get(ending.lower())
    if language is None:
        return None
    sign = re.escape(SIGNS[language])
    head = re.match(rf"\ufeff?{sign} Databricks notebook source[ \t]*(?:\n|\Z)", text)
    if head is None:
        return None
    parts = [_blank(head[0])]
    others: list[OtherCell] = []
    end = re.compile(rf"^{sign} COMMAND -{{10}}[ \t]*$", re.MULTILINE)
    start = head.end()
    for found in [*end.finditer(text, start), None]:
        stop = len(text) if found is None else found.start()
        cell = text[start:stop]
        sql, other = _read_cell(cell, language)
        parts.append(sql)
        if other is not None:
            others.append(OtherCell(start + len(cell) - len(cell.lstrip()), other))
        if found is not None:
            parts.append(";" + _blank(found[0][1:]))
            start = found.end()
    return NotebookText("".join(parts), tuple(others))


def _read_cell(cell: str, language: str) -> tuple[str, str | None]:
    """Return the SQL of a cell, and its language if it is no SQL and executes something."""
    sign = SIGNS[language]
    prefix = re.compile(rf"^{re.escape(sign)} MAGIC ?", re.MULTILINE)
    begun = prefix.search(cell)
    magic = None if begun is None else MAGIC.match(cell, begun.end())
    if magic is None:
        lines = (line.strip() for line in cell.split("\n"))
        if language == "sql":
            return cell, None
        executes = any(line and not line.startswith(sign) for line in lines)
        found = read_python_cell(cell) if executes and language == "python" else None
        if found is not None:
            return found, None
        return _blank(cell), language if executes else None
    said = magic["language"].lower()
    if said != "sql":
        return _blank(cell), None if said in TEXTS else said
    titles = re.compile(rf"^{re.escape(sign)} DBTITLE .*$", re.MULTILINE)
    found = titles.sub(lambda each: _blank(each[0]), cell)
    found = prefix.sub(lambda each: _blank(each[0]), found)
    return re.sub(r"%sql\b", "    ", found, count=1), None


def _blank(text: str) -> str:
    """Return blanks in the place of a text, with its line ends."""
    return HIDDEN.sub(" ", text)


PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')
"""String or sign of a JSON text."""
JUPYTER_MAGIC = re.compile(r"\s*(?P<magic>%%?(?P<language>[\w-]+))(?P<rest>[^\n]*)")
DATABRICKS = "application/vnd.databricks.v1+notebook"
"""Key of a notebook's metadata with the language of its cells."""
SQL = ("sql", "sparksql")


def read_jupyter_notebook(text: str, label: str) -> NotebookText:
    r"""Return the SQL of a notebook.

    Parameters
    ----------
    text : str
        Text of the file.
    label : str
        Name of the file in messages.

    Raises
    ------
    LitmusError
        If the text is not JSON, or not a notebook.

    Examples
    --------
    >>> cells = [{"cell_type": "code", "source": ["%sql\n", "DELETE FROM t"]}]
    >>> found = read_jupyter_notebook(json.dumps({"cells": cells}, indent=1), "n.ipynb")
    >>> found.sql.split(), found.cell_at(7)
    (['DELETE', 'FROM', 't', ';'], 1)
    """
    try:
        document = read_json(text)
    except ValueError as error:
        raise LitmusError(f"{label}: not a notebook: not JSON: {error}") from None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise LitmusError(f"{label}: not a notebook: it has no list 'cells' (nbformat 4)")
    sources = [[*_lines(cell, k, label)] for k, cell in enumerate(cells, 1)]
    if not _is_laid_out(text, sources):
        for cell, lines in zip(cells, sources, strict=True):
            cell["source"] = lines
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    places: list[list[tuple[int, int]]] = [[] for _ in cells]
    for number, start, end in _places(text):
        places[number].append((start, end))
    language = _language(document)
    found = [*re.sub(r"[^\n]", " ", text)]
    others: list[OtherCell] = []
    begins: list[tuple[int, int]] = []
    for number, (cell, lines, where) in enumerate(zip(cells, sources, places, strict=True), 1):
        if not where:
            continue
        begins.append((text.count("\n", 0, where[0][0]) + 1, number))
        if cell.get("cell_type") != "code":
            continue
        sql, other = _read_jupyter_cell("".join(lines), language)
        for line, (start, _) in zip(sql.split("\n"), where, strict=False):
            found[start + 1 : start + 1 + len(line)] = line
        end = text.find("\n", where[-1][1]) + 1  # not in the last line, which may end in a comment
        found[end or where[-1][1] - 1] = ";"
        if other is not None:
            others.append(OtherCell(where[0][0] + 1, other))
    return NotebookText("".join(found), tuple(others), tuple(begins))


def _lines(cell: Any, number: int, label: str) -> Iterator[str]:
    """Yield the lines of a cell, each with its end; LitmusError if it is not a cell."""
    source = cell.get("source") if isinstance(cell, dict) else None
    given = [source] if isinstance(source, str) else source
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise LitmusError(
            f"{label}: cell {number} has no source (a string, or a list of lines); not a notebook"
        )
    plain = "".join(given).replace("\r\n", "\n").replace("\r", "\n")
    yield from re.findall(r"[^\n]*\n|[^\n]+", plain)


def _is_laid_out(text: str, sources: list[list[str]]) -> bool:
    """Return whether each line of each cell is a string in a line of its own."""
    strings: list[list[int]] = [[] for _ in sources]
    told: list[list[str]] = [[] for _ in sources]
    for number, start, end in _places(text):
        strings[number].append(text.count("\n", 0, start))
        told[number].append(json.loads(text[start:end]))
    return told == sources and all(len({*one}) == len(one) for one in strings)


def _places(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the cell, counted from 0, and the place of each string in the source of a cell."""
    path: list[str | int] = []
    key = ""
    for found in PIECE.finditer(text):
        sign = found[0]
        if sign in "{[":
            path.append(key if sign == "{" else 0)
        elif sign in "}]":
            path.pop()
        elif sign == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
        elif sign == ":":
            path[-1] = key
        else:
            key = sign[1:-1]
            if path[:1] == ["cells"] and path[2:3] == ["source"] and _is_value(text, found.end()):
                yield int(path[1]), found.start(), found.end()


def _is_value(text: str, end: int) -> bool:
    """Return whether a string that ends here is a value, not a key."""
    return text[end : end + 100].lstrip()[:1] != ":"


def _language(document: dict[str, Any]) -> str:
    """Return the language of cells without a magic command."""
    metadata = document.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    keys = ((DATABRICKS, "language"), ("language_info", "name"), ("kernelspec", "language"))
    for key, name in keys:
        one = given.get(key)
        if isinstance(one, dict) and isinstance(one.get(name), str):
            return str(one[name]).lower()
    return "python"


def _read_jupyter_cell(cell: str, language: str) -> tuple[str, str | None]:
    """Return the SQL of a cell, and its language if it is no SQL and executes something."""
    magic = JUPYTER_MAGIC.match(cell)
    blank = re.sub(r"[^\n]", " ", cell)
    if not cell.strip():
        return blank, None
    if magic is not None:
        said = magic["language"].lower()
        of_cell = magic["magic"].startswith("%%") and magic["rest"].strip()
        if said in SQL and not of_cell:
            start = magic.end("language")
            return blank[:start] + cell[start:], None
        return blank, None if said in TEXTS else f"{said}{' with options' if of_cell else ''}"
    if language in SQL:
        return cell, None
    found = read_python_cell(cell) if language.startswith(("python", "ipython")) else None
    return (blank, language) if found is None else (found, None)
