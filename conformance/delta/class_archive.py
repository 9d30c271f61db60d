"""An archive of the classes that Spark with Delta loads: Java maps it into memory instead of reading, checking and
linking thousands of them from jars, at each start (class data sharing, JEP 350).

It belongs to one Java and one installed PySpark and lies in the Python environment of the latter. Java looks whether it
fits and, if not, starts without it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.model.text_digest import text_digest

if TYPE_CHECKING:
    from isolitmus.conformance.java import Java

__all__ = ["archive_for", "reading"]


def archive_for(java: Java) -> Path:
    """Where the archive for this Java and the installed PySpark is, or is to be."""
    import pyspark

    program = Path(shutil.which(java.command) or java.command).resolve()
    made = program.stat().st_mtime_ns if program.exists() else 0
    key = f"{program} {made} {Path(pyspark.__file__).resolve()}"
    return Path(sys.prefix) / "share" / "isolitmus" / f"delta-{text_digest(key)}.jsa"


def reading(archive: Path) -> str:
    """Java's option to read an archive, empty where there is none.

    >>> reading(Path("nowhere.jsa"))
    ''
    """
    return f"-XX:SharedArchiveFile={archive}" if archive.is_file() else ""
