"""Virtual environments for the releases of deltalake, and worker processes that run in them.

Each release has an environment of its own, outside the project's. Requests to a worker and its
replies are lines of JSON, one at a time.
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
from isolitmus.specs.disk.user_cache import user_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINE = "deltalake"
"""Name of this engine on the command line and in results; with a release, ``deltalake-1.6.3``."""

RELEASES = ("1.6.6", "1.6.3")
"""Supported releases; the first is the default."""

PINS = (
    "Deprecated==1.3.1",
    "arro3-core==0.9.1",
    "pyarrow==26.0.1",
    "typing_extensions==4.16.0",
    "wrapt==2.5.2",
)
"""Packages installed beside deltalake in its environment."""

WHEELS = Path(__file__).with_name("wheels.txt")
"""File with the allowed wheels and their SHA-256, in the format of ``sha256sum``.

The wheels are for CPython 3.11 to 3.14 on Linux and macOS.
"""
UNLIKE = re.compile(
    r"DO NOT MATCH THE HASHES|--require-hashes mode|no matching distribution", re.IGNORECASE
)
"""Message of pip for a file whose digest is not among the given ones."""


def folder(release: str) -> Path:
    """Return the folder of a release's environment, whether it exists or not.

    It is below ``$ISOLITMUS_ENGINES``, or else below the user's cache.
    """
    own, cache = os.environ.get("ISOLITMUS_ENGINES"), user_cache()
    if own:
        return Path(own) / f"{ENGINE}-{release}"
    if cache is None:
        raise EngineUnavailable("there is no home folder; name a folder in ISOLITMUS_ENGINES")
    return cache / "engines" / f"{ENGINE}-{release}"


def interpreter(release: str) -> Path:
    """Return the Python interpreter of a release's environment.

    Raises EngineUnavailable, with the command that installs it, if there is none.
    """
    place = folder(release)
    if not (place / "installed").is_file():
        raise EngineUnavailable(
            f"{ENGINE} {release} is not installed; `isolitmus install {ENGINE}-{release}`"
            " installs it"
        )
    return place / "bin" / "python"


def install(release: str) -> Path:
    """Create the environment of a release if it is missing, and return its folder.

    It takes some seconds and needs the package registry. Raises EngineUnavailable if that fails, or
    if a file is not one of those in ``WHEELS``.
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
        [sys.executable, "-I", "-m", "venv", str(place)],
        [str(python), "-I", "-m", "pip", "install", "--quiet", *only],
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
    """Return the requirements file of a release, each package with the digests of its files.

    Examples
    --------
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
    """Error that deltalake raised; ``kind`` is the name of its class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(slots=True)
class WorkerProcess:
    """Running worker; ``release`` is the version that it reports."""

    process: subprocess.Popen[str]
    release: str = ""

    def ask(self, do: str, **said: Any) -> Any:
        """Send a request and return its reply; worker.py defines the requests.

        Raises EngineError if deltalake raises, EngineUnavailable if the worker has ended.
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
    """Open a worker with this release, which ends with the block.

    Raises EngineUnavailable if it cannot start.
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
