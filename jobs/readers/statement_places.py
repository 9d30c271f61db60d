"""Places of the statements of jobs in their files, and errors that name them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.jobs.sql.job_statements import unknown_verb
from isolitmus.jobs.workload import UnreadStatement
from isolitmus.model.assumption import Place
from isolitmus.model.errors import IsolitmusError, LitmusError, SqlError, UndeterminedError
from isolitmus.specs.sql.parameters import BLANK
from isolitmus.specs.sql.source_text import locate_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.specs.files.toml_reader import Node, Source

LINE = re.compile(r":(\d+)(?::(\d+))?$")
"""Line and column at the end of a place."""
PRECEDING = re.compile(BLANK)
"""Comments before a statement."""


def statement_label(node: Node, text: str) -> str:
    """Return the place of a statement of a job, for messages."""
    return f"{node.source.place_of(f'{node}.sql', text)}, job {node.path.rpartition('.')[2]}"


def placed_error(error: LitmusError | SqlError, node: Node, text: str) -> SqlError | LitmusError:
    """Return an error about a statement with its place: what is undetermined has none."""
    if isinstance(error, UndeterminedError):
        return locate_error(statement_label(node, text), text, 0, error.problem)
    return error


def begun_wrong(
    error: LitmusError | SqlError, text: str, place: Place, source: Source
) -> LitmusError | SqlError:
    """Return an error about the first word of a text if no statement begins with it, else the
    given error.
    """
    if not isinstance(error, SqlError) or error.kind not in ("syntax", "outside"):
        return error
    if not (problem := unknown_verb(text)):
        return error
    lines = source.text.split("\n")
    start = sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1
    return locate_error(source.label, source.text, start, problem, "syntax")


def unread_job(name: str, error: IsolitmusError, source: Source | None = None) -> UnreadStatement:
    """Return a job that is not understood, with what an error says of it and of its file.

    Examples
    --------
    >>> print(unread_job("load", SqlError("load.sql:3:5, job load: unknown table 's'")))
    load (load.sql:3:5): unknown table 's'
    """
    told, _, problem = str(error).partition("\n")[0].partition(": ")
    place = told.partition(", ")[0]
    location = None
    if source is not None:
        found = LINE.search(place)
        line = int(found[1]) if found else 1
        column = int(found[2] or 1) if found else 1
        location = Place(source.label, line, column, line, source.path)
    return UnreadStatement(name, name, problem, place, location=location)


def word_place(one: UnreadStatement, word: str) -> Place | None:
    """Return the place of the first occurrence of a word in a statement, or of the statement."""
    begun = PRECEDING.match(one.sql)
    start = begun.end() if begun else 0
    found = re.compile(rf"(?<![\w.]){re.escape(word)}(?!\w)").search(one.sql, start)
    if found is None or one.location is None:
        return one.location
    *before, last = one.sql[start : found.start()].split("\n")
    line, column = one.location.line + len(before), len(last) + 1
    column += 0 if before else one.location.column - 1
    return one.location._replace(line=line, column=column, end_line=line)


def statement_places(
    node: Node, texts: Sequence[str], spans: Sequence[tuple[int, int]]
) -> list[Place]:
    """Return the places of the statements of a job, without the comments before each."""
    source, found = node.source, []
    if spans:
        for start, end in spans:
            begun = PRECEDING.match(source.text, start, end)
            found.append(source.span(begun.end() if begun else start, end))
        return found
    after = 0
    for text in texts:
        at = source.text.find(text, after) if after else source.offset(node.under("sql"), text)
        if at is None or at < 0:
            found.append(source.key_place(node.under("sql")))
            continue
        begun = PRECEDING.match(text)
        found.append(source.span(at + (begun.end() if begun else 0), at + len(text.rstrip())))
        after = at + len(text)
    return found
