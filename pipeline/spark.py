"""Spark, whatever kind: threads of this machine, executors of a cluster, or a server that one talks to (Spark Connect).

What is used of it is what all kinds have: DataFrames, ``mapInArrow``, SQL. Where they differ stands here.
"""

from __future__ import annotations

import re
import socket
import sys
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from isolitmus.conformance.delta.session import INSTALL, JAVA_OPTIONS, SPEED, open_session
from isolitmus.model.errors import EngineFailed, EngineUnavailable, IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.budget import Budget

__all__ = ["MASTER", "failure", "is_remote", "one_job", "open_spark", "parallelism"]

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
"""Python's workers do the work, and Java's second compiler takes processors from them: most of what it compiles runs too seldom."""
PORTS = {"spark": 7077, "sc": 15002}
ANSWERS = 10.0
"""So many seconds a master is waited for."""


@contextmanager
def open_spark(master: str = MASTER) -> Iterator[Any]:
    """A SparkSession with Delta for jobs, while the block lasts.

    ``master`` is whatever Spark takes: ``local[N]``, N threads of one JVM; ``local-cluster[EXECUTORS,CORES,MEGABYTES]``,
    executors in JVMs of their own on this machine; ``spark://HOST:PORT``, ``yarn``, ``k8s://…``; or ``sc://HOST:PORT``, a
    server of Spark Connect. IsolitmusError if it is none of these; EngineUnavailable if it does not answer, or Spark
    cannot be started.
    """
    if not KNOWN.fullmatch(master):
        raise IsolitmusError(
            f"--master is '{master}'; local[N], local-cluster[EXECUTORS,CORES,MEGABYTES], spark://HOST:PORT, yarn,"
            " k8s://… or sc://HOST:PORT is wanted"
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
        raise IsolitmusError(f"--master is '{master}'; a number is wanted as its port") from None
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
    """How many tasks Spark runs at a time now, as it says itself; spark.default.parallelism may say less. At least one,
    also while no executor has come yet.
    """
    if not is_remote(spark):
        context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark does not say it
        usual = context.resourceProfileManager().defaultResourceProfile()
        return max(1, int(context.maxNumConcurrentTasks(usual)))
    from pyspark.sql.functions import spark_partition_id

    return int(spark.range(1000).select(spark_partition_id()).distinct().count())


@contextmanager
def one_job(spark: Any, words: str, budget: Budget) -> Iterator[None]:
    """While the block lasts, what Spark does is called ``words`` in its UI, and ends once the budget is spent: then a
    Limit. EngineFailed, one sentence, if Spark fails.
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
            f"Spark's workers have another Python than this one, {here}: let PYSPARK_PYTHON name one that they have"
        )
    lacking = re.search(r"No module named '([\w.]+)'", text)
    if lacking:
        return EngineFailed(
            f"Spark's workers have no package {lacking[1]}: where executors run, the same isolitmus[spark] has to be"
            " installed"
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
