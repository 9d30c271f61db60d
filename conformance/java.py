"""Search for the Java that Spark 4 needs: 17 or 21, from JAVA_HOME or from PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from isolitmus.model.errors import EngineUnavailable

SUPPORTED = (17, 21)
_NEEDED = "PySpark with Delta needs Java 17 or 21"
_REMEDY = (
    "install one (a package such as openjdk-17-jre-headless) and put it on PATH or set JAVA_HOME"
)


@dataclass(frozen=True, slots=True)
class Java:
    """Java installation.

    ``home`` is None if it was found on PATH; ``version`` is its major version.
    """

    home: Path | None
    version: int

    @property
    def command(self) -> str:
        """Command that starts it."""
        return "java" if self.home is None else str(self.home / "bin" / "java")

    def environment(self) -> dict[str, str]:
        """Return the process environment in which Spark's scripts start this Java and no other."""
        chosen = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
        return chosen if self.home is None else {**chosen, "JAVA_HOME": str(self.home)}


def find_java() -> Java:
    """Return the first Java of a supported version: JAVA_HOME's, then the one on PATH.

    Raises EngineUnavailable with one sentence: what was found, what is needed, how to get it.
    """
    seen: list[str] = []
    home = os.environ.get("JAVA_HOME")
    if home:
        version = _version(str(Path(home, "bin", "java")))
        if version in SUPPORTED:
            return Java(Path(home), version)
        seen.append(f"JAVA_HOME has {_describe(version)}")
    command = shutil.which("java")
    if command is not None:
        version = _version(command)
        if version in SUPPORTED:
            return Java(None, version)
        seen.append(f"PATH has {_describe(version)}")
    if not seen:
        raise EngineUnavailable(f"{_NEEDED}, but this machine has no Java; {_REMEDY}")
    raise EngineUnavailable(f"{_NEEDED}, but {' and '.join(seen)}; {_REMEDY}")


def _describe(version: int | None) -> str:
    return "a Java that does not start" if version is None else f"Java {version}"


def _version(command: str) -> int | None:
    """Return the major version that a ``java`` reports; None if it does not start."""
    try:
        said = subprocess.run(  # noqa: S603 - the user's own java, asked for its version
            [command, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said.stderr + said.stdout)
    if found is None:
        return None
    major, minor = found.groups()
    return int(minor) if major == "1" and minor else int(major)
