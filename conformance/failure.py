"""Why a statement failed, in Delta's own words: the Java class and the error class.

Where Delta's Python package converts a conflict into a Python exception it drops the Java object,
and with it both (delta/exceptions/captured.py); it is kept here, on the Python exception.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Failure", "keep_java_exceptions", "understand"]

CONFLICTS = "io.delta.exceptions."
"""Delta's package of conflict exceptions (DeltaConcurrentExceptions.scala)."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed statement: simple class name, error class if it has one, and whether it is a conflict.

    ``surface`` is the class of what the caller saw, where ``exception`` was found among its causes.
    """

    exception: str
    error_class: str | None
    conflict: bool
    surface: str

    @property
    def outcome(self) -> str:
        """The outcome of the transaction: the conflict's class, or ``error:CLASS``."""
        return self.exception if self.conflict else f"error:{self.exception}"


@contextmanager
def keep_java_exceptions() -> Iterator[None]:
    """While the block runs, every exception that PySpark converts keeps ``java_exception``."""
    import delta.exceptions  # noqa: F401 - installs its own conversion first, ours goes around it
    from pyspark.errors.exceptions import captured

    module: Any = captured
    convert = module.convert_exception

    def keep(java: Any) -> Any:
        converted: Any = convert(java)
        converted.java_exception = java
        return converted

    module.convert_exception = keep
    try:
        yield
    finally:
        module.convert_exception = convert


def understand(error: BaseException, jvm: Any) -> Failure:
    """What a failure of a statement was.

    A conflict counts wherever it stands among the causes; of other failures the outermost one that
    has an error class is taken, else the outermost.
    """
    java = getattr(error, "java_exception", None)
    if java is None:
        name = type(error).__name__
        return Failure(name, None, conflict=False, surface=name)
    chain = list(_causes(java))
    surface = _simple_name(chain[0])
    for cause in chain:
        if cause.getClass().getName().startswith(CONFLICTS):
            return Failure(_simple_name(cause), _error_class(cause, jvm), True, surface)
    return Failure(surface, _error_class(chain[0], jvm), False, surface)


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
