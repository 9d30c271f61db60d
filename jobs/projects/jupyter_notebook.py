r"""Jupyter notebooks (nbformat 4): their SQL as a text of statements.

Cells of SQL begin with ``%sql`` or ``%%sql``; in a notebook of SQL they need not. Cells of Python
are SQL if they do nothing but ``spark.sql("…")``. The text has the lines of the file, so that the
line of a statement is that in the file; a file that is not laid out as nbformat writes it, with
each line of a cell in a line of its own, is laid out so before.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.projects.databricks_notebook import TEXTS, NotebookText, OtherCell
from isolitmus.jobs.projects.python_cells import read_python_cell
from isolitmus.model.errors import LitmusError
from isolitmus.specs.disk.input_files import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')
"""String or sign of a JSON text."""
MAGIC = re.compile(r"\s*(?P<magic>%%?(?P<language>[\w-]+))(?P<rest>[^\n]*)")
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
        sql, other = _read_cell("".join(lines), language)
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


def _read_cell(cell: str, language: str) -> tuple[str, str | None]:
    """Return the SQL of a cell, and its language if it is no SQL and executes something."""
    magic = MAGIC.match(cell)
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
