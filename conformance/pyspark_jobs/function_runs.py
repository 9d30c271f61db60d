"""Runs of functions of PySpark in a child process with a time limit.

The functions are other people's code: they may never return, end the process, or change its state.
The child has one Spark for all functions, with a warehouse in a temporary folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.workers import end_child
from isolitmus.model.display import count_of
from isolitmus.model.errors import EngineUnavailable, IsolitmusError, LitmusError, TimeLimit
from isolitmus.specs.files.recorded_functions import FunctionRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.specs.files.function_targets import FunctionTarget

__all__ = ["MOST_SECONDS", "run_functions"]

MOST_SECONDS = 120.0
"""Time limit of a function, without the start of Spark."""
TICK = 0.05


def run_functions(
    targets: Sequence[FunctionTarget], ddl: str, seconds: float | None = None
) -> list[FunctionRecord]:
    """Run functions on empty tables, one after the other; return their records.

    Parameters
    ----------
    targets : sequence of FunctionTarget
        Functions.
    ddl : str
        CREATE TABLE statements, separated by semicolons.
    seconds : float, optional
        Time limit of each function.

    Raises
    ------
    EngineUnavailable
        Spark is not installed or does not start.
    TimeLimit
        A function did not return in time.
    LitmusError
        A function raised, or was about to write outside the run.
    """
    limit = MOST_SECONDS if seconds is None else min(seconds, MOST_SECONDS)
    with tempfile.TemporaryDirectory(prefix="isolitmus-", ignore_cleanup_errors=True) as name:
        output = Path(name, "records")
        output.touch()
        request = json.dumps({
            "functions": [f"{one.path.resolve()}:{one.call or one.function}" for one in targets],
            "ddl": ddl,
            "output": str(output),
        })  # fmt: skip
        with Path(name, "log").open("wb") as log:
            child = subprocess.Popen(  # noqa: S603 - this Python, with a module of this package
                [sys.executable, "-P", "-m", "isolitmus.conformance.pyspark_jobs.child", request],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "TMPDIR": name},
            )  # fmt: skip
        done = False
        try:
            _wait(child, output, targets, limit)
            done = True
        finally:
            if not done:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
            end_child(child)
        said = Path(name, "log").read_text("utf-8", "replace").strip()
        return _records(_read(output), targets, child.returncode, said)


def _wait(
    child: subprocess.Popen[bytes], output: Path, targets: Sequence[FunctionTarget], limit: float
) -> None:
    """Wait for the end of the child; raise TimeLimit if a function takes too long."""
    begun, since = 0, time.monotonic()
    while child.poll() is None:
        time.sleep(TICK)
        paths = _paths(_read(output))
        started = [one for one in paths if any(step["kind"] == "began" for step in one.steps)]
        if len(started) != begun:
            begun, since = len(started), time.monotonic()
        last = started[-1] if started else None
        if last is not None and not last.ended and time.monotonic() - since > limit:
            target = targets[last.function]
            lines = [one["line"] for one in last.steps if one["line"]]
            after = f", the last in line {lines[-1]}" if lines else ""
            raise TimeLimit(
                f"{target.label}:{target.line}: {target.function} did not return within {limit:g} s"
                f" on empty tables; it had executed {count_of(last.count, 'statement')}{after}"
            )


def _read(output: Path) -> list[dict[str, Any]]:
    """Return the records that are complete."""
    whole = output.read_text("utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.split("\n") if line]


@dataclass(slots=True)
class _Path:
    """Run of a function, from its records."""

    function: int
    number: int
    steps: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False
    more: bool = False
    """Whether other outcomes are left."""

    @property
    def count(self) -> int:
        """Number of its statements."""
        return sum(one["kind"] == "statement" for one in self.steps)

    @property
    def raised(self) -> dict[str, Any] | None:
        """Record of its exception, if it raised one."""
        return next((one for one in self.steps if one["kind"] == "raised"), None)


def _paths(records: Sequence[dict[str, Any]]) -> list[_Path]:
    """Return the runs of all functions."""
    found: list[_Path] = []
    for one in records:
        if one["kind"] == "path":
            found.append(_Path(one["function"], one["path"]))
        elif one["kind"] == "ended":
            found[-1].ended, found[-1].more = True, one["more"]
        elif found:
            found[-1].steps.append(one)
    return found


def _records(
    records: Sequence[dict[str, Any]],
    targets: Sequence[FunctionTarget],
    status: int | None,
    said: str,
) -> list[FunctionRecord]:
    """Return the record of each function, one for each path; raise if one did not end well."""
    for one in records:
        if one["kind"] == "failed":
            kind = EngineUnavailable if one["status"] == EngineUnavailable.status else LitmusError
            raise kind(one["problem"])
    paths, made = _paths(records), []
    for number, target in enumerate(targets):
        own = [one for one in paths if one.function == number]
        for path in own or [_Path(number, 0)]:
            _check(path, target, status, said)
        made += FunctionRecord.of_paths(
            target,
            [[step for step in one.steps if step["kind"] != "began"] for one in own],
            more=own[-1].more,
        )
    return made


def _check(path: _Path, target: FunctionTarget, status: int | None, said: str) -> None:
    """Raise if a run on empty tables raised, or if any run did not end."""
    after = f"; it had executed {count_of(path.count, 'statement')} before"
    raised = path.raised
    if raised is not None and not path.number:
        place = f"{target.label}:{raised['line'] or target.line}"
        raise LitmusError(
            f"{place}: {target.function} did not return on empty tables: "
            f"{raised['problem'].rstrip('.')}{after}"
        )
    if not path.ended:
        last = said.splitlines()[-1] if said else "no output"
        raise IsolitmusError(
            f"{target.label}:{target.line}: the process of {target.function} ended with status"
            f" {status}{after} ({last})"
        )
