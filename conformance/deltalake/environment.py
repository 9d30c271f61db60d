"""Environments of deltalake's releases, and workers that run in them.

Where the releases of deltalake are: a virtual environment each, outside the project's own.

A worker that runs a release of deltalake, and what is said to it: lines of JSON, one at a time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import EngineUnavailable, brief

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ENGINE",
    "RELEASES",
    "EngineError",
    "WorkerProcess",
    "install",
    "interpreter",
    "open_worker",
]

ENGINE = "deltalake"
"""This engine's name on the command line and in results; with a release, ``deltalake-1.6.3``."""

RELEASES = ("1.6.6", "1.6.3")
"""The releases that are known here; the first is meant where none is said."""

PINS = (
    "Deprecated==1.3.1",
    "arro3-core==0.9.1",
    "pyarrow==26.0.1",
    "typing_extensions==4.16.0",
    "wrapt==2.5.2",
)
"""What stands beside deltalake in its environment."""

WHEELS = Path(__file__).with_name("wheels.txt")
"""The files that are installed and their SHA-256, as ``sha256sum`` writes them: for CPython 3.11 to
3.14 on Linux and macOS.
"""
UNLIKE = re.compile(
    r"DO NOT MATCH THE HASHES|--require-hashes mode|no matching distribution", re.IGNORECASE
)
"""What pip says of a file whose digest is none of those that it was given."""


def folder(release: str) -> Path:
    """Where the environment of a release is, or is to be: below ``$ISOLITMUS_ENGINES``, else below
    the user's cache.
    """
    own = os.environ.get("ISOLITMUS_ENGINES")
    cache = os.environ.get("XDG_CACHE_HOME")
    below = Path(cache) if cache else Path.home() / ".cache"
    return (Path(own) if own else below / "isolitmus" / "engines") / f"{ENGINE}-{release}"


def interpreter(release: str) -> Path:
    """The Python of a release's environment; EngineUnavailable, with the line that makes it, if
    there is none.
    """
    place = folder(release)
    if not (place / "installed").is_file():
        raise EngineUnavailable(
            f"{ENGINE} {release} is not installed; `isolitmus install {ENGINE}-{release}`"
            " installs it"
        )
    return place / "bin" / "python"


def install(release: str) -> Path:
    """Make the environment of a release, if it is not there: its folder. It takes some seconds, and
    the package registry; EngineUnavailable if that fails, or if a file is not the one that is known
    (WHEELS).
    """
    place = folder(release)
    done = place / "installed"
    if done.is_file():
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    python = place / "bin" / "python"
    wanted = place / "requirements.txt"
    wanted.write_text(requirements(release), "utf-8")
    only = ["--require-hashes", "--only-binary", ":all:", "--requirement", str(wanted)]
    steps = (
        [sys.executable, "-m", "venv", str(place)],
        [str(python), "-m", "pip", "install", "--quiet", *only],
    )
    for step in steps:
        ended = subprocess.run(step, capture_output=True, text=True, check=False)  # noqa: S603
        if ended.returncode:
            said = ended.stderr or ended.stdout or "no reason given"
            shutil.rmtree(place, ignore_errors=True)
            if UNLIKE.search(said):
                raise EngineUnavailable(
                    f"{ENGINE} {release} was not installed: the SHA-256 of a downloaded file"
                    f" is not in {WHEELS.name}, or no file is listed there for this Python and"
                    f" platform: {brief(said)}"
                )
            raise EngineUnavailable(f"{ENGINE} {release} could not be installed: {brief(said)}")
    done.touch()
    return place


def requirements(release: str) -> str:
    """What pip is to install for a release, each with the digests of its files.

    >>> print(requirements("1.6.6").splitlines()[0])  # doctest: +ELLIPSIS
    deltalake==1.6.6 --hash=sha256:...
    """
    known: dict[str, list[str]] = {}
    for line in WHEELS.read_text("ascii").splitlines():
        digest, name = line.split()
        package, version, _ = name.split("-", 2)
        known.setdefault(f"{package}=={version}".lower(), []).append(f"--hash=sha256:{digest}")
    pinned = (f"{ENGINE}=={release}", *PINS)
    lines = (" ".join([pin, *known[pin.lower().replace("-", "_")]]) for pin in pinned)
    return "\n".join(lines) + "\n"


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
            raise EngineUnavailable(
                f"the worker process of {ENGINE} ended with exit status {self.process.wait()}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"]["class"], answer["error"]["message"])
        return answer["reply"]


@contextmanager
def open_worker(release: str) -> Iterator[WorkerProcess]:
    """A worker with this release, which ends with the block; EngineUnavailable if it cannot
    start.
    """
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
