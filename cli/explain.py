"""``isolitmus explain``: why a commit aborted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.auditing.diagnosis import (
    Diagnosis,
    OtherDiagnosis,
    conflicts_after,
    conflicts_of_version,
)
from isolitmus.checker.auditing.diagnosis import explain as explain_text
from isolitmus.checker.render.diagnosis import diagnosis_lines, other_lines, stopped_lines
from isolitmus.cli.conversion import OutputForms
from isolitmus.cli.options import Json, Memory, Time, read_budget
from isolitmus.cli.output import say, warn
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.specs.disk.input_files import TEXT, from_utf_16, is_there, read_bytes
from isolitmus.specs.files.exception_text import NoConflict
from isolitmus.specs.files.exceptions_file import exception_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.checker.auditing.diagnosis import ConflictingCommits

FORMS = OutputForms()
STDIN = "-"


def explain(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help=(
                "File with the text of an exception, including its stack trace; default or -:"
                " standard input."
            ),
        ),
    ] = None,
    *,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help=(
                "Folder of the table. Its log identifies the winning commit and the conflicting"
                " files."
            ),
        ),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --table: version of the winning commit.",
        ),
    ] = None,
    failed_after: Annotated[
        int | None,
        typer.Option(metavar="V", help="With --table: version that your job had read."),
    ] = None,
    as_: Annotated[str | None, FORMS.option] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Without FILE, but with --table and --version or --failed-after, list the transactions that
    conflict with the commits of the table.

    Exit status:
      0  explained
      2  the text contains no known error, or the log does not fit the text
      3  a limit ended the work

    Examples:
      isolitmus explain error.txt
      isolitmus explain error.txt --table /data/events
      isolitmus explain --table /data/events --failed-after 41

    """
    within = read_budget(time, memory)
    form = FORMS.chosen(as_, as_json=as_json)
    if table is None and (version is not None or failed_after is not None):
        raise IsolitmusError(
            f"--{'version' if version is not None else 'failed-after'} needs --table"
        )
    if version is not None and failed_after is not None:
        raise IsolitmusError("--version and --failed-after exclude each other; pass one of them")
    path = None if table is None else Path(table)
    if file is None and path is not None and version is not None:
        found: Diagnosis | OtherDiagnosis | ConflictingCommits = conflicts_of_version(
            path, version, within
        )
    elif file is None and path is not None and failed_after is not None:
        found = conflicts_after(path, failed_after, within)
    else:
        text, label = _text(file)
        found = explain_text(
            text, table=path, version=version, failed_after=failed_after, label=label, budget=within
        )
    form.show([found], found.to_json)
    if not form.quiet:
        for k, line in enumerate(_lines(found)):
            say(line, bold=not k)
    if found.ended is None:
        return 0
    warn(f"{found.ended}; the rest is unknown")
    return Limit.status


def _lines(found: Diagnosis | OtherDiagnosis | ConflictingCommits) -> Iterator[str]:
    """Yield the result in lines."""
    if isinstance(found, Diagnosis):
        return diagnosis_lines(found)
    return other_lines(found) if isinstance(found, OtherDiagnosis) else stopped_lines(found)


def _text(file: str | None) -> tuple[str, str]:
    """Return the text to explain and its name in error messages."""
    if file in (None, STDIN):
        if sys.stdin.isatty():
            warn("paste the exception, then press Ctrl-D")
        found = sys.stdin.buffer.read(TEXT + 1)
        if len(found) > TEXT:
            raise NoConflict(
                f"standard input: larger than {TEXT:,} bytes; pass only the part with the exception"
            )
        return _decoded(found), "standard input"
    path = Path(str(file))
    general = exception_of(str(file))
    if general is not None and not is_there(path):
        raise NoConflict(
            f"no such file: {file}; for the exception in general, run isolitmus show {file}"
        )
    return _decoded(read_bytes(path, NoConflict)), str(file)


def _decoded(found: bytes) -> str:
    """Decode bytes as UTF-16 (as Windows writes it) or UTF-8; replace invalid bytes."""
    text = from_utf_16(found)
    return found.decode("utf-8", "replace") if text is None else text
