"""Outcomes of transactions on Delta, in Delta's words.

Why a statement failed, in Delta's own words: the Java class and the error class.

Where Delta's Python package converts a conflict into a Python exception it drops the Java object,
and with it both (delta/exceptions/captured.py); it is kept here, on the Python exception.

How a transaction on the engine ended, as a run has it.
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

__all__ = [
    "Failure",
    "committed_transaction",
    "failed_transaction",
    "first_words",
    "keep_java_exceptions",
    "read_failure",
    "report_jvm_failure",
]

CONFLICTS = "io.delta.exceptions."
"""Delta's package of conflict exceptions (DeltaConcurrentExceptions.scala)."""
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where PySpark reports exceptions that know their place in a query (errors/exceptions/base.py)."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed statement: simple class name, error class if it has one, whether it is a
    conflict.
    """

    exception: str
    error_class: str | None
    conflict: bool

    @property
    def outcome(self) -> str:
        """The outcome of the transaction: the conflict's class, or ``error:CLASS``."""
        return self.exception if self.conflict else f"error:{self.exception}"


@contextmanager
def keep_java_exceptions() -> Iterator[None]:
    """While the block runs, every exception that PySpark converts keeps ``java_exception``.

    Nor does PySpark write each one on standard error: here a failure is an outcome.
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
    """While the block carries out what has this name, EngineUnavailable if the JVM ends, and
    EngineFailed if Delta fails: ``where`` that is no outcome.
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
    """What a failure of a statement was.

    A conflict counts wherever it stands among the causes. Of other failures the innermost that has
    an error class is taken, else the outermost: whether Spark wraps an overflow in
    TASK_WRITE_FAILED depends on where it happened to compute the value. Raises the error itself
    where the JVM is heard no more: that is no outcome of a statement.
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
    """The sentences of an error's text, without what Delta appends of the log and Spark of the
    query.
    """
    return " ".join(re.split(r"Conflicting commit:|\n\nJVM stacktrace", str(error))[0].split())


def _causes(java: Any) -> Iterator[Any]:
    while java is not None:
        yield java
        java = java.getCause()


def _simple_name(java: Any) -> str:
    return str(java.getClass().getName()).rpartition(".")[2]


def _error_class(java: Any, jvm: Any) -> str | None:
    if not jvm.py4j.reflection.TypeUtil.isInstanceOf("org.apache.spark.SparkThrowable", java):
        return None
    name = java.getCondition()
    return None if name is None else str(name)


def failed_transaction(
    error: BaseException, jvm: Any, read_version: int, commits: tuple[int, ...]
) -> TransactionRun:
    """A transaction that raised an error, after the versions that it had made."""
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
    """A transaction that made these versions, and what the last of its commits says of itself."""
    return TransactionRun(
        "committed",
        read_version=read_version,
        version=commits[-1],
        commits=commits,
        blind=last.blind,
        isolation_level=last.level,
        operation=last.operation,
    )
