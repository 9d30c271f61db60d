"""Options `--metrics` and `--jsonl` of ``audit``: what other programs read while it runs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Self

from isolitmus.checker.render.audit_metrics import prometheus_text
from isolitmus.cli.output import json_line, say_unwrapped, warn
from isolitmus.model.audit import AuditRound
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.disk.output_files import LineAppender, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from isolitmus.model.audit import Audit, Finding


@dataclass(frozen=True, slots=True)
class LinesPath:
    """File of JSON lines as the user gave it.

    Examples
    --------
    >>> LinesPath("-").path, LinesPath("audit.jsonl").path
    (None, PosixPath('audit.jsonl'))
    """

    text: str

    @property
    def path(self) -> Path | None:
        """Path of the file; None for standard output."""
        return None if self.text == "-" else Path(self.text)


class AuditFeed:
    """Metrics file and JSON lines of an audit.

    The metrics file is written whole after each round. If that fails, a message says so once, and
    the next round tries again; ``problem`` is the last error. JSON lines must not be lost: if they
    cannot be written, the exception of ``write_error`` is raised.

    Parameters
    ----------
    metrics : Path or None
        File for the metrics as Prometheus text.
    lines : LinesPath or None
        File to which a line is appended for each finding, error and changed round.
    """

    def __init__(self, metrics: Path | None, lines: LinesPath | None) -> None:
        self.problem: IsolitmusError | None = None
        self._metrics, self._lines = metrics, lines
        self._number = 0
        self._shown: object = None
        self._append: Callable[[str], None] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._lines is not None and self._lines.path is None:
            self._append = say_unwrapped
        elif self._lines is not None and self._lines.path is not None:
            file = LineAppender(self._lines.path)
            self._stack.callback(file.close)
            self._append = file.append
        return self

    def __exit__(
        self, _: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._stack.close()

    def listener(self, table: str) -> Callable[[Finding], None] | None:
        """Return the function that writes each finding of a table; None if nothing is written."""
        if self._append is None:
            return None
        return lambda finding: self._write("finding", {"table": table, **finding.to_json()})

    def tell_error(self, table: str, error: IsolitmusError) -> None:
        """Write that the log of a table cannot be read."""
        self._write("error", {"table": table, "reason": str(error)})

    def tell_round(
        self,
        audits: Mapping[str, Audit],
        errors: Mapping[str, IsolitmusError],
        seconds: float,
        *,
        closing: bool = False,
    ) -> None:
        """Write the metrics, and a line if a commit, an error or an end is new.

        ``closing`` is True if this is no look at the logs: what is written already is not repeated.
        """
        reasons = {table: str(error) for table, error in errors.items()}
        shown = {table: (audit.last, audit.ended) for table, audit in audits.items()}, reasons
        if closing and shown == self._shown and self.problem is None:
            return
        self._number += not closing
        done = AuditRound(self._number, time(), seconds, audits, reasons)
        if shown != self._shown:
            self._write("round", done.to_json())
            self._shown = shown
        if self._metrics is not None:
            self._write_metrics(self._metrics, prometheus_text(done))

    def _write_metrics(self, path: Path, text: str) -> None:
        before = self.problem
        try:
            write_whole(path, text)
        except IsolitmusError as problem:
            self.problem = problem
            if before is None or str(before) != str(problem):
                warn(str(problem))
        else:
            self.problem = None

    def _write(self, event: str, fields: Mapping[str, object]) -> None:
        """Append a line, if lines are written: kind of event, time, and fields."""
        if self._append is not None:
            moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            self._append(json_line({"event": event, "time": moment, **fields}))
