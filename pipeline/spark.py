"""Spark of any kind: sessions, the package on its workers, and work whose items have rows.

A session may be threads of this machine, executors of a cluster, or a server of Spark Connect. Only
features that all kinds have are used: DataFrames, ``mapInArrow`` and SQL. Differences are handled
here.

Executors on other machines get this package as an archive, which they unpack. Its dependencies have
to be installed there; their versions are checked.
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

MASTER = "local[2]"
KNOWN = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|(spark|k8s|sc)://\S+"
)
"""Accepted masters."""
PACKAGES = {"pandas": "spark", "pyarrow": "spark"}
"""Packages that ``mapInArrow`` needs besides PySpark, with the extra that installs each."""
REMOTE = {"grpc": "connect", "grpc_status": "connect"}
"""Packages that a client of Spark Connect needs."""
JOBS = {JAVA_OPTIONS: f"{SPEED[JAVA_OPTIONS]} -XX:TieredStopAtLevel=1"}
"""Confs for jobs, without Java's second compiler.

Python's workers do the work, and the compiler would take processors from them; most of what it
compiles runs too seldom.
"""
PORTS = {"spark": 7077, "sc": 15002}
ANSWERS = 10.0
"""Time limit in seconds for a master to accept a connection."""


@contextmanager
def open_spark(master: str = MASTER) -> Iterator[Any]:
    """Open a SparkSession with Delta for jobs.

    Parameters
    ----------
    master : str
        ``local[N]``, N threads of one JVM; ``local-cluster[EXECUTORS,CORES,MEGABYTES]``, executors
        in their own JVMs on this machine; ``spark://HOST:PORT``, ``yarn`` or ``k8s://…``, a
        cluster; or ``sc://HOST:PORT``, a server of Spark Connect.

    Yields
    ------
    SparkSession
        Session with Delta; it is stopped at the end of the block.

    Raises
    ------
    IsolitmusError
        ``master`` is none of these.
    EngineUnavailable
        The master does not answer, or Spark cannot be started.

    Examples
    --------
    >>> def count(scope):
    ...     from isolitmus.pipeline import sweep
    ...     with open_spark("local[4]") as spark:
    ...         return sweep(spark, scope, 2).candidates
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
    """Raise EngineUnavailable if a master does not accept connections."""
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
            f"--master {master}: no answer ({error.strerror or error})"
        ) from None


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Yield a Spark Connect session and stop it; raise EngineUnavailable if none is created."""
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
    """Return whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def parallelism(spark: Any) -> int:
    """Return the number of tasks that Spark currently runs at a time, at least 1.

    It is asked of Spark, as spark.default.parallelism may be less. It is 1 while no executor has
    connected yet.
    """
    if not is_remote(spark):
        context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark does not say it
        usual = context.resourceProfileManager().defaultResourceProfile()
        return max(1, int(context.maxNumConcurrentTasks(usual)))
    from pyspark.sql.functions import spark_partition_id

    return int(spark.range(1000).select(spark_partition_id()).distinct().count())


@contextmanager
def job_description(spark: Any, words: str, budget: Budget) -> Iterator[None]:
    """Name Spark's jobs during the block, and end them once the budget is spent.

    Raises
    ------
    Limit
        The budget is spent.
    EngineFailed
        Spark failed; the message is one sentence.
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
    """Return why a Spark job failed, as an error with one sentence."""
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
"""Packages that executors need besides Python and PySpark."""
ROOT = Path(__file__).parent.parent
"""Folder that contains the packages."""
SENT = "isolitmus.archive"
"""Conf of a session with the name of the archive that its executors have."""


def map_on_workers(spark: Any, places: Any, function: Batches, schema: str) -> Any:
    """Return the DataFrame that a function makes from the batches of another DataFrame."""
    return places.mapInArrow(ship_package(spark, function), schema)


def ship_package(spark: Any, function: Batches) -> Batches:
    """Return a function for ``mapInArrow`` that workers without this package can run.

    Executors of this machine read the package where it is. Others unpack the archive
    (``addArchive``, or ``addArtifacts`` of Spark Connect) into a folder that comes first on
    Python's path, so that another version of the package on the executor is not used.
    """
    if not is_cluster(spark):
        return function
    name, pickled, wanted = _send(spark), _pickled(function), _wanted()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # this function is pickled by value and refers to nothing of this package, so it can
        # unpack the package before the pickled function is loaded
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
    """Serialize a function with PySpark's cloudpickle."""
    from pyspark import cloudpickle

    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    return dumps(function)


def is_cluster(spark: Any) -> bool:
    """Return whether executors of a session may be on other machines, or have another Python."""
    return is_remote(spark) or not spark.sparkContext.master.startswith("local")


def _send(spark: Any) -> str:
    """Send the archive to the executors of a session; return the name of its unpacked folder."""
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
    """Return the package as a zip file, which exists as long as this process.

    Its name contains a digest of the contents.
    """
    files = sorted(
        path
        for package in ROOT.glob("*/__init__.py")
        for path in package.parent.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    contents = {str(path.relative_to(ROOT)): path.read_bytes() for path in files}
    contents["__init__.py"] = (
        b""  # a checkout has none, and another installation's would be found first
    )
    digest = sha256(repr(sorted(contents.items())).encode()).hexdigest()
    folder = Path(mkdtemp(prefix="isolitmus-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    made = folder / f"isolitmus-{digest[:12]}.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as into:
        for name, content in contents.items():
            into.writestr(f"isolitmus/{name}", content)
    return made


def _wanted() -> dict[str, str]:
    """Return the minimum versions of the required packages, from the package's own metadata."""
    said = [
        re.match(r"([\w-]+)[^;]*>=(\d+(?:\.\d+)*)", line)
        for line in metadata.requires("isolitmus") or ()
    ]
    least = {one[1]: one[2] for one in said if one}
    return {name: least[name] for name in NEEDED}


T = TypeVar("T")
MOST = 256
"""Maximum number of items between two commits."""
SHARES = 4
"""Tasks per concurrent task; each costs Spark a good part of a second."""


def write_parts(
    spark: Any,
    items: Sequence[T],
    words: str,
    write: Callable[[Sequence[T], Any], None],
    *,
    budget: Budget,
    progress: Callable[[int], None] | None = None,
) -> str | None:
    """Write the items in parts, one Spark job for each part.

    Parameters
    ----------
    spark : SparkSession
        Session of any kind.
    items : sequence
        Items.
    words : str
        Description of the jobs.
    write : callable
        Called with the items of a part and a DataFrame with their indexes in the part.
    budget : Budget
        Limit of the work.
    progress : callable, optional
        Called with the number of finished items.

    Returns
    -------
    str or None
        The limit that ended the work early, if any; finished parts are written.
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
    """Return a function for ``mapInArrow`` from indexes into ``items`` to their rows in a table."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from isolitmus.pipeline.result_table import arrow_type

        schema = pa.schema(list(arrow_type(declared.type)))
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist(list(rows(items[place])), schema)

    return run
