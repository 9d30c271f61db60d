"""What fails while a statement runs: values that their type does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from isolitmus.model.sql.types import Type

__all__ = ["ARITHMETIC_ERROR", "RANGES", "UNNAMED", "EvaluationError", "fit"]

RANGES = {"INT": (-(2**31), 2**31 - 1), "BIGINT": (-(2**63), 2**63 - 1)}
ARITHMETIC_ERROR = "SparkArithmeticException"
"""What Spark raises for a number that is too large, and for a division by zero."""
UNNAMED = "its own"
"""In the place of the class of an error of which no more is known than that it is one."""


class EvaluationError(IsolitmusError):
    """A statement that fails while it runs; ``exception`` is the class that Spark raises, ``error_class``
    its error class, where the model knows it.
    """

    def __init__(self, exception: str, text: str, error_class: str | None = None) -> None:
        super().__init__(text)
        self.exception = exception
        self.error_class = error_class


def fit(value: int, type_: Type, error: str = ARITHMETIC_ERROR) -> int:
    """The integer, if the type holds it; else the error that Spark's ANSI mode raises.

    >>> fit(2**31, "INT")
    Traceback (most recent call last):
    isolitmus.model.sql.failing.EvaluationError: 2147483648 does not fit into INT
    """
    low, high = RANGES[type_]
    if not low <= value <= high:
        raise EvaluationError(error, f"{value} does not fit into {type_}")
    return value
