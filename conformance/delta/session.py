"""Spark session with Delta, with deterministic file layout and fast statements.

The confs of parallelism and adaptive execution are part of the semantics: they decide how many
files a statement writes, and the rows that share a file decide which commits conflict. The other
confs make a one-row DELETE take one second instead of ten.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.conformance.delta.jvm import archive_option, class_archive, open_gateway
from isolitmus.conformance.delta.transaction_outcome import keep_java_exceptions
from isolitmus.conformance.java import find_java
from isolitmus.conformance.workers import GRACE
from isolitmus.model.errors import EngineUnavailable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from isolitmus.model.sql.values import Rows

PACKAGES = {"pyspark": "4.2.0", "delta-spark": "4.4.0"}
"""Supported package versions, for which the model is written."""
THREADS = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?")
"""Spark masters that are threads of this machine."""
INSTALL = "pip install 'isolitmus[spark]'"
"""Command that installs the packages and their dependencies."""

LAYOUT = {
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.openCostInBytes": "0",  # else more than 32 files are read as two partitions
}
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SPEED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    # plans run once, so compiling classes for them does not pay
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    "spark.log.level": "OFF",
    # with small heaps and short jobs, parallel collectors cost more than they gain
    JAVA_OPTIONS: "-XX:+UseSerialGC -Duser.timezone=UTC",
}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Spark's own jars have the other dependencies of Delta's POM: 14 MB to download instead of 87
    "spark.jars.excludes": ",".join(
        f"{group}:*"
        for group in (
            "org.apache.*",
            "org.slf4j",
            "org.roaringbitmap",
            "com.fasterxml.*",
            "com.github.*",
            "com.google.*",
        )
    ),
}


class TableCache(NamedTuple):
    """Folder of filled tables, and the version that each init statement made."""

    folder: Path
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """Running Spark with Delta.

    Examples
    --------
    >>> def test_fresh_session(delta_session):
    ...     assert delta_session.fresh().sql("SELECT 1 AS one").first().one == 1
    """

    spark: Any
    """Root SparkSession."""
    jvm: Any
    """py4j's view of its JVM."""
    version: str
    """Description of the engine in results."""
    directory: Path
    """Folder for all files of the session, deleted with it."""
    kept: dict[Hashable, TableCache] = field(default_factory=dict)
    """Filled tables, which are copied when needed again (``conformance.delta.tables``)."""
    rows: dict[Hashable, Rows] = field(default_factory=dict, repr=False)
    """Rows read from tables, by schema and files (``conformance.delta.table_versions``)."""
    _classes: dict[str, Any] = field(default_factory=dict, repr=False)

    def fresh(self, conf: Mapping[str, str] | None = None) -> Any:
        """Return a SparkSession with its own current database, temporary views and confs."""
        spark = self.spark.newSession()
        for key, value in (conf or {}).items():
            spark.conf.set(key, value)
        return spark

    def activate(self, spark: Any) -> None:
        """Make a SparkSession the one that Delta finds on this thread."""
        self.java("org.apache.spark.sql.classic.SparkSession").setActiveSession(java_session(spark))

    def delta_log(self, table: Path) -> Any:
        """Return Delta's own DeltaLog (DeltaLog.scala) of the table at this path."""
        java = java_session(self.spark)
        return self.java("org.apache.spark.sql.delta.DeltaLog").forTable(java, str(table))

    def forget(self, table: Path) -> None:
        """Remove the table at this path from Delta's cache.

        Delta would keep its DeltaLog with the newest state for an hour (DeltaLog.scala,
        deltaLogCache).
        """
        path = self.java("org.apache.hadoop.fs.Path")(str(table))
        self.scala("org.apache.spark.sql.delta.DeltaLog").invalidateCache(
            java_session(self.spark), path
        )

    def delta_action(self, action: Mapping[str, Any]) -> Any:
        """Return an action of the log as Delta's own object (actions/actions.scala)."""
        return self.scala("org.apache.spark.sql.delta.actions.Action").fromJson(json.dumps(action))

    def scala(self, name: str) -> Any:
        """Return a Scala object by its full name.

        The name of its class ends with a dollar sign, which attribute access cannot express.
        """
        return getattr(self.java(f"{name}$"), "MODULE$")

    def java(self, name: str) -> Any:
        """Return a Java class by its full name, cached.

        Without this, py4j looks for a class behind each dot at each access.
        """
        if name not in self._classes:
            self._classes[name] = reduce(getattr, name.split("."), self.jvm)
        return self._classes[name]

    def sequence(self, items: Iterable[Any]) -> Any:
        """Return a Scala Seq of these items."""
        converters = self.java("scala.jdk.javaapi.CollectionConverters")
        return converters.asScala(self.java("java.util.ArrayList")(list(items))).toSeq()

    def mapping(self, items: Mapping[str, str]) -> Any:
        """Return a Scala immutable Map of these items."""
        converters = self.java("scala.jdk.javaapi.CollectionConverters")
        pairs = converters.asScala(self.java("java.util.HashMap")(dict(items)))
        return getattr(self.scala("scala.collection.immutable.Map"), "from")(pairs)


def java_session(spark: Any) -> Any:
    """Return the JVM's object of a SparkSession."""
    return spark._jsparkSession  # noqa: SLF001 - PySpark has no public name for it


@contextmanager
def open_session(
    master: str = "local[8]",
    conf: Mapping[str, str] | None = None,
    *,
    archive: Path | None = None,
    shared: bool = False,
) -> Iterator[Session]:
    """Start Spark with Delta in a JVM of its own; the JVM and its files are gone after the block.

    Parameters
    ----------
    master : str
        Where executors run. By default eight threads: a statement that hangs must not starve the
        others. Python workers are this Python.
    conf : Mapping of str to str, optional
        Spark confs besides those of this module.
    archive : Path, optional
        File for the classes that Java loads (``class_archive``), which makes start and end slow. By
        default Java reads the archive that there is.
    shared : bool
        Until the block ends, each later call in this process, on any thread, yields this JVM
        instead of starting one. Tests use it, so that commands and inner runs of pytest need no
        start of their own.

    Yields
    ------
    Session
        With a shared JVM: its folder, its filled tables (``kept``) and read files (``rows``), and a
        SparkSession of its own, so that confs, temporary views, the current database and relative
        paths are those of a new start.

    Raises
    ------
    EngineUnavailable
        No Java 17 or 21; a package or the jar is missing; or another Spark session is open in this
        Python process, and it is not shared, or cannot serve this call: ``master`` is not threads
        of this machine, ``conf`` has more than confs of speed (``SPEED``), or ``archive`` is given.

    Notes
    -----
    With a shared JVM the number of threads and the confs of ``SPEED`` are those of the first call.
    The end of the block stops nothing: tables of the catalog, cached tables, and jobs that the
    block leaves running stay. If the JVM dies, py4j's error is raised there, and EngineUnavailable
    only at the end of the first block.

    Examples
    --------
    >>> def count_rows(path):
    ...     with open_session() as session:
    ...         return session.spark.read.format("delta").load(str(path)).count()
    """
    versions = _package_versions()
    java = find_java()
    if _shared and _can_serve(master, conf, archive):
        with _borrow(_shared[-1]) as session:
            yield session
        return
    _refuse_a_second()
    with tempfile.TemporaryDirectory(prefix="isolitmus-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        settings = {**_configuration(directory, versions), "spark.master": master, **(conf or {})}
        if archive is None:
            classes, grace = archive_option(class_archive(java)), GRACE
        else:
            classes, grace = f"-XX:ArchiveClassesAtExit={archive}", 10 * GRACE
        if classes:  # in quotes: Spark splits options at blanks
            settings[JAVA_OPTIONS] += f' "{classes}"'
        with (
            open_gateway(java, settings, directory, grace) as opened,
            _spark(opened, settings) as spark,
            keep_java_exceptions(),
        ):
            version = f"delta-spark {versions['delta-spark']}, Spark {spark.version}"
            session = Session(spark, opened.jvm, version, directory)
            with _share(session) if shared else nullcontext():
                yield session


_shared: list[Session] = []
"""The session that later calls of ``open_session`` yield; empty if there is none."""


@contextmanager
def _share(session: Session) -> Iterator[None]:
    """Share the session with calls of ``open_session`` while the block runs."""
    _shared.append(session)
    try:
        yield
    finally:
        _shared.remove(session)


@contextmanager
def _borrow(shared: Session) -> Iterator[Session]:
    """Yield a shared session in the state of a new one.

    Its SparkSession is the default one and active on this thread, and relative paths start in the
    current folder. The working folder of the JVM process stays the one in which it was started.
    """
    from pyspark.sql import SparkSession

    own = replace(shared, spark=shared.fresh())
    sessions = own.java("org.apache.spark.sql.classic.SparkSession")
    files = own.java("org.apache.hadoop.fs.FileSystem").getLocal(
        own.spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - no public name
    )
    path = own.java("org.apache.hadoop.fs.Path")
    default, active = sessions.getDefaultSession(), sessions.getActiveSession()
    folder, in_python = files.getWorkingDirectory(), SparkSession._instantiatedSession  # noqa: SLF001
    sessions.setDefaultSession(java_session(own.spark))
    own.activate(own.spark)
    files.setWorkingDirectory(path(str(Path.cwd())))
    SparkSession._instantiatedSession = own.spark  # noqa: SLF001
    try:
        yield own
    finally:
        SparkSession._instantiatedSession = in_python  # noqa: SLF001
        with suppress(Exception):  # the JVM may be gone already
            files.setWorkingDirectory(folder)
            sessions.setDefaultSession(default.get())
            if active.isDefined():
                sessions.setActiveSession(active.get())
            else:
                sessions.clearActiveSession()


def _can_serve(master: str, conf: Mapping[str, str] | None, archive: Path | None) -> bool:
    """Return whether a shared session meets the request of ``open_session``, apart from speed."""
    return bool(THREADS.fullmatch(master)) and archive is None and set(conf or ()) <= set(SPEED)


@contextmanager
def shared_spark() -> Iterator[Any]:
    """Yield the SparkSession that is open in this process, or one that ends with the block."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None and not _shared:  # noqa: SLF001 - no public name
        yield SparkSession.getActiveSession()
        return
    with open_session() as session:
        yield session.spark


def _package_versions() -> dict[str, str]:
    """Return the versions of the required packages; raise EngineUnavailable if one differs."""
    found = {}
    for package, wanted in PACKAGES.items():
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            raise EngineUnavailable(
                f"the Python package {package} is not installed; {INSTALL} installs it"
            ) from None
        if found[package] != wanted:
            raise EngineUnavailable(
                f"{package} {found[package]} is installed, but isolitmus needs {wanted};"
                f" {INSTALL} installs it"
            )
    return found


def _refuse_a_second() -> None:
    """Raise EngineUnavailable if another Spark session is open in this process."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - no public name
        raise EngineUnavailable(
            "another Spark session is open in this Python process; stop it first, or use another"
            " process"
        )


def _configuration(directory: Path, versions: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's configuration for a session with its files in this directory."""
    spark = ".".join(versions["pyspark"].split(".")[:2])
    return {
        "spark.app.name": "isolitmus",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory / "local"),
        "spark.jars.packages": f"io.delta:delta-spark_{spark}_2.13:{versions['delta-spark']}",
        **LAYOUT,
        **SPEED,
        **DELTA,
    }


@contextmanager
def _spark(opened: Any, conf: Mapping[str, str]) -> Iterator[Any]:
    """Yield a Spark session on an open gateway; afterwards stop it and clear PySpark's globals."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    handler = signal.getsignal(signal.SIGINT)
    spark = None
    try:
        settings = SparkConf(loadDefaults=False)
        settings.setAll(list(conf.items()))
        context = SparkContext(gateway=opened, conf=settings)
        context.pythonExec = sys.executable
        if threading.current_thread() is threading.main_thread():
            # PySpark's own handler calls the JVM in the middle of a call of the main thread, and
            # stays installed after the end
            signal.signal(signal.SIGINT, handler)
        spark = SparkSession(context)
        yield spark
    finally:
        if spark is not None:
            with suppress(Exception):  # the JVM may be gone already, and ends in any case
                spark.stop()
        # PySpark keeps the gateway for the next session of the process, but that JVM is ending
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        SparkContext._active_spark_context = None  # noqa: SLF001
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
