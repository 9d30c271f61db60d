"""How Spark's Python workers come to have this package: executors elsewhere are sent it as an archive, which they unpack.

What it uses there and is no part of it has to be installed where they run; the versions are looked at.
"""

from __future__ import annotations

import atexit
import re
import zipfile
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from isolitmus.pipeline.spark import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

__all__ = ["NEEDED", "archive", "elsewhere", "on_workers", "with_package"]

NEEDED = (
    "duckdb",
    "lark",
    "networkx",
    "numpy",
    "pandas",
    "pyarrow",
    "python-sat",
    "sqlglot",
)
"""What has to be installed where executors run, besides Python itself and PySpark."""
ROOT = Path(__file__).parent.parent
"""The folder whose folders are the packages."""
SENT = "isolitmus.archive"
"""The setting of a session that says which archive its executors have."""


def on_workers(spark: Any, places: Any, function: Batches, schema: str) -> Any:
    """The DataFrame of what a function makes of the batches of another one."""
    return places.mapInArrow(with_package(spark, function), schema)


def with_package(spark: Any, function: Batches) -> Batches:
    """A function for ``mapInArrow``, as one that Spark's workers can run though this package is not installed there.

    Executors of this machine read the package where it is. Others unpack the archive (``addArchive``; ``addArtifacts`` of
    Spark Connect) into a folder, which comes first of all that Python imports from: what they have of this package
    themselves, of this version or another one, is not asked.
    """
    if not elsewhere(spark):
        return function
    name, pickled, wanted = _send(spark), _pickled(function), _wanted()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # it travels by value, and names nothing of this package: only then may it be unpacked before it is read
        import pickle
        import re
        import sys
        from importlib import metadata
        from pathlib import Path

        from pyspark import SparkFiles

        folder = str(Path(SparkFiles.getRootDirectory(), name))
        if folder not in sys.path:
            for package, least in wanted.items():
                try:
                    there = metadata.version(package)
                except metadata.PackageNotFoundError:
                    there = "none"
                if [*map(int, re.findall(r"\d+", there))] < [*map(int, least.split("."))]:
                    raise ImportError(f"isolitmus wants {package}>={least}, found {there}")
            sys.path.insert(0, folder)
        yield from pickle.loads(pickled)(batches)  # noqa: S301 - our own

    return run


def _pickled(function: Batches) -> bytes:
    from pyspark import cloudpickle

    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    return dumps(function)


def elsewhere(spark: Any) -> bool:
    """Whether the executors of a session may be on other machines, or have another Python."""
    return is_remote(spark) or not spark.sparkContext.master.startswith("local")


def _send(spark: Any) -> str:
    """Let the executors of a session have the archive; its name is that of the folder that they unpack it into."""
    made = archive()
    if spark.conf.get(SENT, None) != made.name:
        if is_remote(spark):
            spark.addArtifacts(str(made), archive=True)
        else:
            spark.sparkContext.addArchive(str(made))
        spark.conf.set(SENT, made.name)
    return made.name


@cache
def archive() -> Path:
    """The package as a zip file, which lasts as long as this process; its name says what is in it."""
    files = sorted(
        path
        for package in ROOT.glob("*/__init__.py")
        for path in package.parent.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    contents = {str(path.relative_to(ROOT)): path.read_bytes() for path in files}
    contents["__init__.py"] = b""  # a checkout has none, and another one's would come first
    digest = sha256(repr(sorted(contents.items())).encode()).hexdigest()
    folder = Path(mkdtemp(prefix="isolitmus-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    made = folder / f"isolitmus-{digest[:12]}.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as into:
        for name, content in contents.items():
            into.writestr(f"isolitmus/{name}", content)
    return made


def _wanted() -> dict[str, str]:
    """What has to be there, with the least version, as the package's own requirements say."""
    said = [
        re.match(r"([\w-]+)[^;]*>=(\d+(?:\.\d+)*)", line)
        for line in metadata.requires("isolitmus") or ()
    ]
    least = {one[1]: one[2] for one in said if one}
    return {name: least[name] for name in NEEDED}
