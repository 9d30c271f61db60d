"""``isolitmus explain``: why Delta refused a commit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.auditing.diagnosis import Diagnosis, conflicts_after, conflicts_of_version
from isolitmus.checker.auditing.diagnosis import explain as explain_text
from isolitmus.checker.render.diagnosis import diagnosis_lines, stopped_lines
from isolitmus.cli.conversion import OutputForms
from isolitmus.cli.options import Json, Memory, Time, read_budget
from isolitmus.cli.output import say, warn
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.specs.disk.input_files import TEXT, from_utf_16, is_there, read_bytes
from isolitmus.specs.files.exception_text import NoConflict
from isolitmus.specs.files.exceptions_file import exception_of

if TYPE_CHECKING:
    from isolitmus.checker.auditing.diagnosis import ConflictingCommits

__all__ = ["explain"]

FORMS = OutputForms()
STDIN = "-"


def explain(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The text of an exception as you have it, stack trace and all; without it, or with -, standard input.",
        ),
    ] = None,
    *,
    table: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="The folder of the table: its log says more."),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --table: the version that the other job made, as the message has it.",
        ),
    ] = None,
    failed_after: Annotated[
        int | None,
        typer.Option(metavar="V", help="With --table: the version that your job had read."),
    ] = None,
    as_: Annotated[str | None, FORMS.option] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """With --table and a version alone, no text is read: whom the commits there can have stopped. Exit status 2 if the
    text has no conflict that is known (of other errors of a write a sentence says what they are), or the log does not have
    what it says; 3 if a limit ended the work; else 0.
    """
    within = read_budget(time, memory)
    form = FORMS.chosen(as_, as_json=as_json)
    if table is None and (version is not None or failed_after is not None):
        raise IsolitmusError(
            f"--{'version' if version is not None else 'failed-after'} needs --table"
        )
    if version is not None and failed_after is not None:
        raise IsolitmusError("--version and --failed-after say the same of a log; give one of them")
    path = None if table is None else Path(table)
    if file is None and path is not None and version is not None:
        found: Diagnosis | ConflictingCommits = conflicts_of_version(path, version, within)
    elif file is None and path is not None and failed_after is not None:
        found = conflicts_after(path, failed_after, within)
    else:
        text, label = _text(file)
        found = explain_text(
            text, table=path, version=version, failed_after=failed_after, label=label, budget=within
        )
    form.show([found], found.to_json)
    if not form.quiet:
        lines = diagnosis_lines(found) if isinstance(found, Diagnosis) else stopped_lines(found)
        for line in lines:
            say(line)
    if found.ended is None:
        return 0
    warn(f"{found.ended}; what was not looked at until then is unknown")
    return Limit.status


def _text(file: str | None) -> tuple[str, str]:
    """The text that is to be explained, and what errors call it."""
    if file in (None, STDIN):
        if sys.stdin.isatty():
            warn("paste the exception, then press Ctrl-D")
        found = sys.stdin.buffer.read(TEXT + 1)
        if len(found) > TEXT:
            raise NoConflict(
                f"standard input: it is larger than {TEXT:,} bytes; the part with the exception is wanted"
            )
        return _decoded(found), "standard input"
    path = Path(str(file))
    general = exception_of(str(file))
    if general is not None and not is_there(path):
        raise NoConflict(
            f"there is no file {file}; isolitmus show {file} says what it means in general"
        )
    return _decoded(read_bytes(path, NoConflict)), str(file)


def _decoded(found: bytes) -> str:
    """The text of bytes; what is no UTF-8 in it, nor UTF-16 as Windows writes it, is no part of a message."""
    text = from_utf_16(found)
    return found.decode("utf-8", "replace") if text is None else text
