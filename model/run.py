"""A run: a schedule carried out by an engine under a protocol, as anyone can observe it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.values import Rows

__all__ = ["Run", "TransactionRun", "same_bag"]


@dataclass(frozen=True, slots=True)
class TransactionRun:
    """What one transaction did.

    ``outcome`` is ``committed``, ``no-op`` (nothing was recorded), ``unknown``, the class of the
    conflict exception (``ConcurrentAppendException``), or ``error:CLASS``. Versions count from the
    table at the start of the schedule, which is 0; ``version`` is None where nothing was recorded.
    ``blind`` and ``isolation_level`` are what the commit says of itself; ``rows`` is a reader's result.
    """

    outcome: str
    exception: str | None = None
    error_class: str | None = None
    read_version: int | None = None
    version: int | None = None
    commits: tuple[int, ...] = ()
    blind: bool | None = None
    isolation_level: str | None = None
    operation: str | None = None
    rows: Rows | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Every step's outcome and the tables at every version (``versions[k][table]``, bags of rows).

    ``base`` is the engine's own number of version 0.
    """

    litmus: str
    engine: str
    engine_version: str
    protocol: str
    base: int
    transactions: Mapping[str, TransactionRun]
    versions: tuple[Mapping[str, Rows], ...]

    @property
    def tables(self) -> Mapping[str, Rows]:
        """The tables after the last commit."""
        return self.versions[-1]


def same_bag(a: Rows, b: Rows) -> bool:
    """Whether two tables hold the same rows, each as often, in whatever order."""
    return Counter(a) == Counter(b)
