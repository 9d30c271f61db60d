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
                [sys.executable, "-m", "isolitmus.conformance.pyspark_jobs.child", request],
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
        records = _read(output)
        started = [one for one in records if one["kind"] == "began"]
        ended = [one for one in records if one["kind"] == "ended"]
        if len(started) != begun:
            begun, since = len(started), time.monotonic()
        if len(started) > len(ended) and time.monotonic() - since > limit:
            target = targets[len(ended)]
            own = _of_function(records, len(ended))
            lines = [one["line"] for one in own if one["line"]]
            last = f", the last in line {lines[-1]}" if lines else ""
            count = sum(one["kind"] == "statement" for one in own)
            raise TimeLimit(
                f"{target.label}:{target.line}: {target.function} did not return within {limit:g} s"
                f" on empty tables; it had executed {count_of(count, 'statement')}{last}"
            )


def _read(output: Path) -> list[dict[str, Any]]:
    """Return the records that are complete."""
    whole = output.read_text("utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.split("\n") if line]


def _of_function(records: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Return the records of one function."""
    found: list[list[dict[str, Any]]] = []
    for one in records:
        if one["kind"] == "began":
            found.append([])
        elif found:
            found[-1].append(one)
    return found[number] if number < len(found) else []


def _records(
    records: Sequence[dict[str, Any]],
    targets: Sequence[FunctionTarget],
    status: int | None,
    said: str,
) -> list[FunctionRecord]:
    """Return the record of each function; raise if one did not end well."""
    for one in records:
        if one["kind"] == "failed":
            kind = EngineUnavailable if one["status"] == EngineUnavailable.status else LitmusError
            raise kind(one["problem"])
    made = []
    for number, target in enumerate(targets):
        own = _of_function(records, number)
        count = sum(one["kind"] == "statement" for one in own)
        after = f"; it had executed {count_of(count, 'statement')} before"
        for one in own:
            if one["kind"] == "raised":
                place = f"{target.label}:{one['line'] or target.line}"
                raise LitmusError(
                    f"{place}: {target.function} did not return on empty tables: "
                    f"{one['problem'].rstrip('.')}{after}"
                )
        if not own or own[-1]["kind"] != "ended":
            last = said.splitlines()[-1] if said else "no output"
            raise IsolitmusError(
                f"{target.label}:{target.line}: the process of {target.function} ended with status"
                f" {status}{after} ({last})"
            )
        made.append(FunctionRecord.of(target, own[:-1]))
    return made
