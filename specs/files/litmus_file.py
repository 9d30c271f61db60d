"""Reader of litmus files (TOML): a ``Litmus`` test or a ``HistoryTest``.

Every mistake of a user is one LitmusError with the file, the key and the correct form; SQL errors
point into the statement. The format is that of docs/interface.md, 2 and 3.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from isolitmus.model.errors import HistoryError, NoLitmusTest
from isolitmus.model.history import History
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.specs.files.spec_catalogue import read_levels
from isolitmus.specs.files.toml_reader import Source, read_head

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.specs.files.toml_reader import Node

MARKS = ("history", "schedule", "transactions")
"""Keys that identify a litmus test: each has one of them, and no other TOML file read here has any.
"""
WORD = re.compile(r"\w+")


def read_litmus(text: str, name: str, path: Path | None = None) -> Litmus | HistoryTest:
    """Return the test in a litmus file: on tables, or an abstract history.

    Raises
    ------
    LitmusError
        If the test has a mistake.
    NoLitmusTest
        If the text is not a litmus test.

    Examples
    --------
    >>> test = read_litmus('''
    ... title = "Two appends"
    ... schedule = "a.start b a.commit"
    ... [table]
    ... columns = "id INT"
    ... [transactions]
    ... a = "INSERT INTO t VALUES (1)"
    ... b = "INSERT INTO t VALUES (2)"
    ... ''', "two-appends")
    >>> str(test.schedule)
    'a.start b a.commit'
    """
    label = path.name if path is not None else f"{name}.toml"
    document = Source(label, text).node()
    if document.value.keys().isdisjoint(MARKS):
        other = "not a litmus test: it has neither 'transactions' nor 'history'"
        empty = "the file needs 'title' (a string)"
        raise NoLitmusTest(f"{label}: {other if document.value else empty}")
    if "history" in document:
        return _history(document, name, path)
    from isolitmus.specs.files.table_litmus import build_litmus

    return build_litmus(document, name, path)


def _history(document: Node, name: str, path: Path | None) -> HistoryTest:
    """Return the test of an abstract history; HistoryError names the place of a problem."""
    document.keys(("title", "source", "tags", "history", "expect"))
    title, source, tags = read_head(document)
    table = document.inner("history")
    try:
        history = History.from_table(table.value)
    except HistoryError as error:
        named = (word for word in WORD.findall(str(error)) if word in table)
        where = ".".join(["history", *islice(named, 1)])
        raise HistoryError(f"{document.source.place(where)}: {error}") from None
    expect = document.inner("expect", {})
    expect.keys(("holds", "fails"))
    holds, fails = read_levels(expect)
    if "expect" in document and not (holds or fails):
        expect.refuse(
            '[expect] expects nothing; add holds = ["read-committed"], fails = [...] or both, or'
            " leave it out"
        )
    return HistoryTest(name, title, source, history, holds, fails, tags, document.source.text, path)
