"""A worker that runs a release of deltalake, and what is said to it: lines of JSON, one at a time."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.deltalake.environment import ENGINE, interpreter
from isolitmus.model.errors import EngineUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EngineError", "WorkerProcess", "talking"]

WORKER = Path(__file__).with_name("worker.py")


class EngineError(Exception):
    """What deltalake raised: ``kind`` is the name of its class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(slots=True)
class WorkerProcess:
    """A running worker; ``release`` is what it says of itself."""

    process: subprocess.Popen[str]
    release: str = ""

    def ask(self, do: str, **said: Any) -> Any:
        """The reply to a request (worker.py has the verbs); EngineError if deltalake raises,
        EngineUnavailable if the worker has ended.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **said}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise EngineUnavailable(f"the worker of {ENGINE} ended with {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"]["class"], answer["error"]["message"])
        return answer["reply"]


@contextmanager
def talking(release: str) -> Iterator[WorkerProcess]:
    """A worker with this release, which ends with the block; EngineUnavailable if it cannot start."""
    quiet = {**os.environ, "RUST_LOG": "off", "PYTHONWARNINGS": "ignore"}
    command = [str(interpreter(release)), "-I", str(WORKER)]
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=quiet,
    ) as process:
        worker = WorkerProcess(process)
        try:
            worker.release = worker.ask("hello")
            yield worker
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.terminate()
