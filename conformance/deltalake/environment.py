"""Where the releases of deltalake are: a virtual environment each, outside the project's own."""

from __future__ import annotations

import os
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
    package registry; EngineUnavailable if that fails.
    """
    place = folder(release)
    done = place / "installed"
    if done.is_file():
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    python = place / "bin" / "python"
    steps = (
        [sys.executable, "-m", "venv", str(place)],
        [str(python), "-m", "pip", "install", "--quiet", f"{ENGINE}=={release}", *PINS],
    )
    for step in steps:
        ended = subprocess.run(step, capture_output=True, text=True, check=False)  # noqa: S603
        if ended.returncode:
            raise EngineUnavailable(
                f"{ENGINE} {release} could not be installed:"
                f" {brief(ended.stderr or ended.stdout or 'no reason given')}"
            )
    done.touch()
    return place
