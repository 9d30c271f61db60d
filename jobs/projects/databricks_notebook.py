r"""Databricks notebooks in the source format: their SQL as a text of statements.

A notebook begins with ``-- Databricks notebook source`` (``#`` for Python and R, ``//`` for
Scala). ``COMMAND ----------`` ends a cell. A cell in another language than the notebook's has
``MAGIC`` before each line, and begins with ``%sql``, ``%python`` or the like.

Nothing is moved: blanks take the place of what is no SQL, so that the place of a statement in the
text is its place in the file.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from isolitmus.jobs.projects.python_cells import read_python_cell

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
