"""Where the releases of deltalake are: a virtual environment each, outside the project's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from isolitmus.model.errors import EngineUnavailable, brief

__all__ = ["ENGINE", "RELEASES", "install", "interpreter"]

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
"""The files that are installed and their SHA-256, as ``sha256sum`` writes them: for CPython 3.11 to 3.14 on Linux and macOS."""
UNLIKE = re.compile(
    r"DO NOT MATCH THE HASHES|--require-hashes mode|no matching distribution", re.IGNORECASE
)
"""What pip says of a file whose digest is none of those that it was given."""


def folder(release: str) -> Path:
    """Where the environment of a release is, or is to be: below ``$ISOLITMUS_ENGINES``, else below the
    user's cache.
    """
    own = os.environ.get("ISOLITMUS_ENGINES")
    cache = os.environ.get("XDG_CACHE_HOME")
    below = Path(cache) if cache else Path.home() / ".cache"
    return (Path(own) if own else below / "isolitmus" / "engines") / f"{ENGINE}-{release}"


def interpreter(release: str) -> Path:
    """The Python of a release's environment; EngineUnavailable, with the line that makes it, if there
    is none.
    """
    place = folder(release)
    if not (place / "installed").is_file():
        raise EngineUnavailable(
            f"{ENGINE} {release} is not installed; `isolitmus install {ENGINE}-{release}` installs it"
        )
    return place / "bin" / "python"


def install(release: str) -> Path:
    """Make the environment of a release, if it is not there: its folder. It takes some seconds, and the
    package registry; EngineUnavailable if that fails, or if a file is not the one that is known (WHEELS).
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
                    f"{ENGINE} {release} was not installed: a file that was offered for it is none of those that are known"
                    f" here by their SHA-256 ({WHEELS.name}), or none is known for this Python and platform: {brief(said)}"
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
