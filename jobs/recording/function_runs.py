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
from isolitmus.jobs.readers.function_records import FunctionRecord
from isolitmus.model.display import count_of
from isolitmus.model.errors import EngineUnavailable, IsolitmusError, LitmusError, TimeLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.jobs.readers.function_targets import FunctionTarget

MOST_SECONDS = 120.0
"""Time limit of a function, without the start of Spark."""
TICK = 0.05


def run_functions(
    targets: Sequence[FunctionTarget], ddl: str, seconds: float | None = None
) -> list[FunctionRecord]:
    """Run functions on empty tables, one after the other; return their records.

    A function that raises, does not return in time, or ends the process, has an error as its
    `failure`.

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
    LitmusError
        Spark does not create the tables.
    """
    limit = MOST_SECONDS if seconds is None else min(seconds, MOST_SECONDS)
    made: list[FunctionRecord] = []
    left = [*targets]
    while left:
        done = _run_child(left, ddl, limit)
        made += done
        ended = {one.target for one in done}
        left = [one for one in left if one not in ended]
    return made


def _run_child(targets: Sequence[FunctionTarget], ddl: str, limit: float) -> list[FunctionRecord]:
    """Run functions in one child; return the records of those up to one that ends the child."""
    with tempfile.TemporaryDirectory(prefix="isolitmus-", ignore_cleanup_errors=True) as name:
        output = Path(name, "records")
        output.touch()
        request = json.dumps({
            "functions": [f"{one.path.resolve()}:{one.call or one.function}" for one in targets],
            "ddl": ddl,
            "output": str(output),
        })  # fmt: skip
        tools = os.environ.get("JAVA_TOOL_OPTIONS", "")
        with Path(name, "log").open("wb") as log:
            child = subprocess.Popen(  # noqa: S603 - this Python, with a module of this package
                [sys.executable, "-P", "-m", "isolitmus.jobs.recording.child", request],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                env=os.environ | {
                    "TMPDIR": name,
                    "JAVA_TOOL_OPTIONS": f"{tools} -Djava.io.tmpdir={name} -XX:-UsePerfData",
                },
            )  # fmt: skip
        late = ""
        try:
            late = _wait(child, output, targets, limit)
        finally:
            if late or child.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
            end_child(child)
        said = Path(name, "log").read_text("utf-8", "replace").strip()
        last = said.splitlines()[-1] if said else "no output"
        ended = f"ended with status {child.returncode}", last
        return _records(_read(output), targets, ended, late)


def _wait(
    child: subprocess.Popen[bytes], output: Path, targets: Sequence[FunctionTarget], limit: float
) -> str:
    """Wait for the end of the child; return a sentence about a function that takes too long."""
    begun, since = 0, time.monotonic()
    while child.poll() is None:
        time.sleep(TICK)
        paths = _paths(_read(output))
        started = [one for one in paths if any(step["kind"] == "began" for step in one.steps)]
        if len(started) != begun:
            begun, since = len(started), time.monotonic()
        last = started[-1] if started else None
        if last is not None and not last.ended and time.monotonic() - since > limit:
            lines = [one["line"] for one in last.steps if one["line"]]
            after = f", the last in line {lines[-1]}" if lines else ""
            return (
                f"{targets[last.function].function} did not return within {limit:g} s on empty"
                f" tables; it had executed {count_of(last.count, 'statement')}{after}"
            )
    return ""


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
    ended: tuple[str, str],
    late: str,
) -> list[FunctionRecord]:
    """Return the record of each function that began, one for each path.

    Parameters
    ----------
    records : sequence of dict
        What the child told.
    targets : sequence of FunctionTarget
        Functions of the child.
    ended : (str, str)
        How the child ended, and the last line of its output.
    late : str
        Sentence about the function that took too long; empty if none did.
    """
    for one in records:
        if one["kind"] == "failed":
            kind = EngineUnavailable if one["status"] == EngineUnavailable.status else LitmusError
            raise kind(one["problem"])
    paths, made = _paths(records), []
    for number, target in enumerate(targets):
        own = [one for one in paths if one.function == number]
        if not own and number:
            break
        own = own or [_Path(number, 0)]
        failure = _failure(own, target, ended, late)
        made += FunctionRecord.of_paths(
            target,
            [[step for step in one.steps if step["kind"] != "began"] for one in own],
            more=own[-1].more,
            failure=failure,
        )
    return made


def _failure(
    paths: Sequence[_Path], target: FunctionTarget, ended: tuple[str, str], late: str
) -> IsolitmusError | None:
    """Return the error about a run on empty tables that raised, or about any that did not end."""
    first, last = paths[0], paths[-1]
    after = f"; it had executed {count_of(first.count, 'statement')} before"
    if (raised := first.raised) is not None:
        place = f"{target.label}:{raised['line'] or target.line}"
        return LitmusError(
            f"{place}: {target.function} did not return on empty tables: "
            f"{raised['problem'].rstrip('.')}{after}"
        )
    if last.ended:
        return None
    after = f"; it had executed {count_of(last.count, 'statement')} before"
    if late:
        return TimeLimit(f"{target.label}:{target.line}: {late}")
    return IsolitmusError(
        f"{target.label}:{target.line}: the process of {target.function} {ended[0]}{after}"
        f" ({ended[1]})"
    )
