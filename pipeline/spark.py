"""Spark of any kind, what its workers are sent, and work of which each item has rows.

Spark, whatever kind: threads of this machine, executors of a cluster, or a server that one talks to
(Spark Connect).

What is used of it is what all kinds have: DataFrames, ``mapInArrow``, SQL. Where they differ stands
here.

How Spark's Python workers come to have this package: executors elsewhere are sent it as an archive,
which they unpack.

What it uses there and is no part of it has to be installed where they run; the versions are looked
at.

Work of which each item has rows of its own: some items at a time, and what runs in Spark's Python
workers.
"""

from __future__ import annotations

import atexit
import re
import socket
import sys
import zipfile
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from isolitmus.conformance.delta.session import INSTALL, JAVA_OPTIONS, SPEED, open_session
from isolitmus.model.errors import EngineFailed, EngineUnavailable, IsolitmusError, Limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from isolitmus.model.budget import Budget

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from isolitmus.pipeline.result_table import ResultTable

__all__ = [
    "MASTER",
    "NEEDED",
    "failure",
    "is_cluster",
    "is_remote",
    "job_description",
    "map_on_workers",
    "open_spark",
    "package_archive",
    "parallelism",
    "rows_function",
    "ship_package",
    "write_parts",
]

MASTER = "local[2]"
KNOWN = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s|sc)://\S+"
)
"""What a master may be called."""
PACKAGES = {"pandas": "spark", "pyarrow": "spark"}
"""What ``mapInArrow`` needs besides PySpark, by the extra that installs it."""
REMOTE = {"grpc": "connect", "grpc_status": "connect"}
"""What a client of Spark Connect needs."""
JOBS = {JAVA_OPTIONS: f"{SPEED[JAVA_OPTIONS]} -XX:TieredStopAtLevel=1"}
"""Python's workers do the work, and Java's second compiler takes processors from them: most of what
it compiles runs too seldom.
"""
PORTS = {"spark": 7077, "sc": 15002}
ANSWERS = 10.0
"""So many seconds a master is waited for."""


@contextmanager
def open_spark(master: str = MASTER) -> Iterator[Any]:
    """A SparkSession with Delta for jobs, while the block lasts.

    ``master`` is whatever Spark takes: ``local[N]``, N threads of one JVM;
    ``local-cluster[EXECUTORS,CORES,MEGABYTES]``, executors in JVMs of their own on this machine;
    ``spark://HOST:PORT``, ``yarn``, ``k8s://…``; or ``sc://HOST:PORT``, a server of Spark Connect.
    IsolitmusError if it is none of these; EngineUnavailable if it does not answer, or Spark cannot
    be started.
    """
    if not KNOWN.fullmatch(master):
        raise IsolitmusError(
            f"--master is '{master}'; expected local[N],"
            " local-cluster[EXECUTORS,CORES,MEGABYTES], spark://HOST:PORT, yarn, k8s://… or"
            " sc://HOST:PORT"
        )
    remote = master.startswith("sc:")
    for package, extra in (PACKAGES | REMOTE if remote else PACKAGES).items():
        if find_spec(package) is None:
            raise EngineUnavailable(
                f"the Python package {package} is not installed, which work on Spark needs;"
                f" {INSTALL.replace('spark', extra)} installs it"
            )
    _knock(master)
    if remote:
        with _connected(master) as spark:
            yield spark
        return
    with open_session(master, JOBS) as session:
        yield session.spark


def _knock(master: str) -> None:
    """EngineUnavailable if nobody listens where a master is said to be."""
    parts = urlsplit(master)
    if parts.scheme not in PORTS:
        return
    try:
        at = parts.hostname or "", parts.port or PORTS[parts.scheme]
    except ValueError:
        raise IsolitmusError(f"--master is '{master}'; expected a number as its port") from None
    try:
        socket.create_connection(at, ANSWERS).close()
    except OSError as error:
        raise EngineUnavailable(
            f"--master {master}: nobody answers there ({error.strerror or error})"
        ) from None


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.builder.remote(address).create()
    except PySparkException as error:
        raise EngineUnavailable(f"--master {address}: {_first_line(error)}") from None
    try:
        yield spark
    finally:
        with suppress(Exception):  # the server may be gone
            spark.stop()


def is_remote(spark: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def parallelism(spark: Any) -> int:
    """How many tasks Spark runs at a time now, as it says itself; spark.default.parallelism may say
    less. At least one, also while no executor has come yet.
    """
    if not is_remote(spark):
        context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark does not say it
        usual = context.resourceProfileManager().defaultResourceProfile()
        return max(1, int(context.maxNumConcurrentTasks(usual)))
    from pyspark.sql.functions import spark_partition_id

    return int(spark.range(1000).select(spark_partition_id()).distinct().count())


@contextmanager
def job_description(spark: Any, words: str, budget: Budget) -> Iterator[None]:
    """While the block lasts, what Spark does is called ``words`` in its UI, and ends once the
    budget is spent: then a Limit. EngineFailed, one sentence, if Spark fails.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    name = f"isolitmus-{uuid4().hex}"
    if is_remote(spark):
        spark.addTag(name)
        stop = lambda: spark.interruptTag(name)  # noqa: E731
    else:
        context = spark.sparkContext
        context.setJobGroup(name, words, True)
        stop = lambda: context.cancelJobGroup(name)  # noqa: E731
    try:
        with budget.stopping(stop):
            yield
    except (PySparkException, Py4JError) as error:
        raise failure(error) from None
    finally:
        with suppress(Exception):  # Spark may be gone
            if is_remote(spark):
                spark.removeTag(name)
            else:
                for key in (
                    "spark.jobGroup.id",
                    "spark.job.description",
                    "spark.job.interruptOnCancel",
                ):
                    context.setLocalProperty(key, None)


def failure(error: Exception) -> IsolitmusError:
    """Why a job of Spark failed, in one sentence."""
    text = str(error)
    if "PYTHON_VERSION_MISMATCH" in text:
        here = ".".join(map(str, sys.version_info[:2]))
        return EngineFailed(
            f"Spark's workers have another Python than this one, {here}: let PYSPARK_PYTHON name"
            " one that they have"
        )
    lacking = re.search(r"No module named '([\w.]+)'", text)
    if lacking:
        return EngineFailed(
            f"Spark's workers have no package {lacking[1]}: where executors run, the same"
            " isolitmus[spark] has to be installed"
        )
    older = re.search(r"isolitmus wants (\S+), found ([\w.+]+)", text)
    if older:
        return EngineFailed(
            f"where Spark's workers run, {older[1]} has to be installed, and there is {older[2]}"
        )
    if re.search(
        r"Concurrent\w+Exception|DELTA_CONCURRENT|CREATE_TABLE_WITH_NON_EMPTY_LOCATION", text
    ):
        return IsolitmusError(
            "somebody else writes these tables: wait for the end, or name another folder"
        )
    if re.search(r"No space left on device", text):
        return EngineFailed(
            "the disk is full: what was written until then is whole, and the same command goes on"
        )
    return EngineFailed(f"Spark failed: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


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


def map_on_workers(spark: Any, places: Any, function: Batches, schema: str) -> Any:
    """The DataFrame of what a function makes of the batches of another one."""
    return places.mapInArrow(ship_package(spark, function), schema)


def ship_package(spark: Any, function: Batches) -> Batches:
    """A function for ``mapInArrow``, as one that Spark's workers can run though this package is not
    installed there.

    Executors of this machine read the package where it is. Others unpack the archive
    (``addArchive``; ``addArtifacts`` of Spark Connect) into a folder, which comes first of all that
    Python imports from: what they have of this package themselves, of this version or another one,
    is not asked.
    """
    if not is_cluster(spark):
        return function
    name, pickled, wanted = _send(spark), _pickled(function), _wanted()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # it travels by value, and names nothing of this package: only then may it be unpacked
        # before it is read
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


def is_cluster(spark: Any) -> bool:
    """Whether the executors of a session may be on other machines, or have another Python."""
    return is_remote(spark) or not spark.sparkContext.master.startswith("local")


def _send(spark: Any) -> str:
    """Let the executors of a session have the archive; its name is that of the folder that they
    unpack it into.
    """
    made = package_archive()
    if spark.conf.get(SENT, None) != made.name:
        if is_remote(spark):
            spark.addArtifacts(str(made), archive=True)
        else:
            spark.sparkContext.addArchive(str(made))
        spark.conf.set(SENT, made.name)
    return made.name


@cache
def package_archive() -> Path:
    """The package as a zip file, which lasts as long as this process; its name says what is in
    it.
    """
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


T = TypeVar("T")
MOST = 256
"""So many items are dealt with between two commits."""
SHARES = 4
"""So many tasks for each that runs at one time: one is a good part of a second of Spark's own."""


def write_parts(
    spark: Any,
    items: Sequence[T],
    words: str,
    write: Callable[[Sequence[T], Any], None],
    *,
    budget: Budget,
    progress: Callable[[int], None] | None = None,
) -> str | None:
    """Have some of the items written at a time, given with the places of each as a DataFrame. What
    ended that before its time, if something did; what was written until then is there.
    """
    for first in range(0, len(items), MOST):
        if progress is not None:
            progress(first)
        some = items[first : first + MOST]
        job = f"isolitmus {words} {first + 1:,} to {first + len(some):,} of {len(items):,}"
        try:
            with job_description(spark, job, budget):
                tasks = min(len(some), SHARES * parallelism(spark))
                write(some, spark.range(0, len(some), 1, tasks))
        except Limit as limit:
            return str(limit)
    return None


def rows_function(
    items: Sequence[T], rows: Callable[[T], Iterable[dict[str, Any]]], declared: ResultTable
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: of batches of places in ``items`` the rows that those have in
    a table.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from isolitmus.pipeline.arrow_types import arrow_type

        schema = pa.schema(list(arrow_type(declared.type)))
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist(list(rows(items[place])), schema)

    return run
