"""Random litmus tests that an engine has carried out, in batches that can be drawn again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["EACH", "KINDS", "Batch", "batches"]

KINDS: Mapping[str, str] = {
    "tables": "SQL statements, two to four, on tables with rows, some in one session",
    "raw": "transactions of which reads and actions are given",
}
"""What is drawn, and what that is."""
EACH = 100
"""So many tests are drawn from one seed."""


@dataclass(frozen=True, slots=True)
class Batch:
    """So many tests of a kind, drawn from a seed; of how many of them the model says nothing, the others
    being as predicted. ``unsaid`` None: not carried out yet.
    """

    kind: str
    seed: int
    count: int
    unsaid: int | None = None

    @property
    def key(self) -> tuple[str, int, int]:
        """What decides which tests are drawn."""
        return self.kind, self.seed, self.count

    def to_json(self) -> dict[str, Any]:
        """The batch as interface.md has documents."""
        return {"tests": self.kind, "seed": self.seed, "count": self.count, "unsaid": self.unsaid}


def batches(kind: str, seed: int, count: int) -> Iterator[Batch]:
    """So many tests of a kind, in batches from this seed on.

    >>> [batch.key for batch in batches("raw", 7, 130)]
    [('raw', 7, 100), ('raw', 8, 30)]
    """
    while count > 0:
        yield Batch(kind, seed, min(EACH, count))
        seed, count = seed + 1, count - EACH
