"""Outcomes of transactions on Delta: the Java class and the error class of failures.

Where Delta's Python package converts a conflict into a Python exception, it drops the Java object
(delta/exceptions/captured.py). Here the Java object is kept on the Python exception.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import EngineFailed, EngineUnavailable, brief
from isolitmus.model.run import TransactionRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.delta.log import LogCommit

CONFLICTS = "io.delta.exceptions."
"""Delta's package of conflict exceptions (DeltaConcurrentExceptions.scala)."""
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers to which PySpark reports exceptions with a place in a query (errors/exceptions/base.py).
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of a statement: class name, error class if any, and whether it is a conflict."""

    exception: str
    error_class: str | None
    conflict: bool

    @property
    def outcome(self) -> str:
        """Outcome of the transaction: the conflict's class, or ``error:CLASS``."""
        return self.exception if self.conflict else f"error:{self.exception}"


@contextmanager
def keep_java_exceptions() -> Iterator[None]:
    """Keep ``java_exception`` on every exception that PySpark converts during the block.

    PySpark does not log these exceptions on standard error either: here a failure is an outcome.
    """
    import delta.exceptions  # noqa: F401 - installs its own conversion first, ours goes around it
    from pyspark.errors.exceptions import captured
    from pyspark.logger import PySparkLogger

    module: Any = captured
    convert = module.convert_exception
    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]

    def keep(java: Any) -> Any:
        converted: Any = convert(java)
        converted.java_exception = java
        return converted

    module.convert_exception = keep
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        module.convert_exception = convert
        for logger in loggers:
            logger.disabled = False


@contextmanager
def report_jvm_failure(name: str, where: str, jvm: Any) -> Iterator[None]:
    """Convert errors of the JVM and of Delta during the block, with the name of what runs.

    Parameters
    ----------
    name : str
        Name of what runs in the block.
    where : str
        Description of the place where a failure of Delta is no outcome.
    jvm : JVMView
        JVM of the session.

    Raises
    ------
    EngineUnavailable
        The JVM ended.
    EngineFailed
        Delta failed.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise EngineUnavailable(f"Spark's JVM ended during '{name}': {error}") from error
    except (Py4JError, PySparkException) as error:
        failure = read_failure(error, jvm)
        raise EngineFailed(
            f"{name}: Delta fails {where}, with {failure.error_class or failure.exception}:"
            f" {brief(str(error), 120)}"
        ) from error


def read_failure(error: BaseException, jvm: Any) -> Failure:
    """Return the failure of a statement.

    A conflict counts wherever it stands among the causes. Of other failures, the innermost cause
    with an error class is taken, else the outermost one: whether Spark wraps an overflow in
    TASK_WRITE_FAILED depends on where it computes the value. Raises the error itself if the JVM
    cannot be reached, which is no outcome of a statement.
    """
    from py4j.protocol import Py4JNetworkError

    if isinstance(error, (Py4JNetworkError, ConnectionError)):
        raise error
    java = getattr(error, "java_exception", None)
    if java is None:
        return Failure(type(error).__name__, None, conflict=False)
    chain = list(_causes(java))
    for cause in chain:
        if cause.getClass().getName().startswith(CONFLICTS):
            return Failure(_simple_name(cause), _error_class(cause, jvm), conflict=True)
    meant = next((c for c in reversed(chain) if _error_class(c, jvm) is not None), java)
    return Failure(_simple_name(meant), _error_class(meant, jvm), conflict=False)


def first_words(error: BaseException) -> str:
    """Return the text of an error without Delta's details of the log and Spark's of the query."""
    return " ".join(re.split(r"Conflicting commit:|\n\nJVM stacktrace", str(error))[0].split())


def _causes(java: Any) -> Iterator[Any]:
    while java is not None:
        yield java
        java = java.getCause()


def _simple_name(java: Any) -> str:
    return str(java.getClass().getName()).rpartition(".")[2]


def _error_class(java: Any, jvm: Any) -> str | None:
    """Return the error class (condition) of a Java exception, or None if it has none."""
    if not jvm.py4j.reflection.TypeUtil.isInstanceOf("org.apache.spark.SparkThrowable", java):
        return None
    name = java.getCondition()
    return None if name is None else str(name)


def failed_transaction(
    error: BaseException, jvm: Any, read_version: int, commits: tuple[int, ...]
) -> TransactionRun:
    """Return the run of a transaction that raised an error, after the versions it had committed."""
    failure = read_failure(error, jvm)
    return TransactionRun(
        failure.outcome,
        failure.exception,
        failure.error_class,
        read_version,
        version=max(commits, default=None),
        commits=commits,
        message=first_words(error),
    )


def committed_transaction(
    last: LogCommit, read_version: int | None, commits: tuple[int, ...]
) -> TransactionRun:
    """Return the run of a transaction with these versions; its details are from its last commit."""
    return TransactionRun(
        "committed",
        read_version=read_version,
        version=commits[-1],
        commits=commits,
        blind=last.blind,
        isolation_level=last.level,
        operation=last.operation,
    )
