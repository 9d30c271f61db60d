"""Random litmus tests that an engine has carried out, in batches that can be drawn again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EACH", "RandomBatch", "split_batches"]

EACH = 100
"""So many tests are drawn from one seed."""


@dataclass(frozen=True, slots=True)
class RandomBatch:
    """So many tests of a kind, drawn from a seed."""

    kind: str
    """What its tests are called (``Format.random``)."""
    seed: int
    """Of the random numbers."""
    count: int
    """How many tests."""
    unsaid: int | None = None
    """Of how many the model says nothing, the others being as predicted; None: not carried out
    yet.
    """
    several: int = 0
    """Of how many of those the model says several runs, of which the engine's was one."""
    drawn: str = ""
    """A digest of the tests: a seed draws others when what draws them changes."""

    @property
    def key(self) -> tuple[str, int, int]:
        """What the tests are drawn by."""
        return self.kind, self.seed, self.count

    def to_json(self) -> dict[str, Any]:
        """The batch as docs/interface.md, 6, has it."""
        return {
            "tests": self.kind,
            "seed": self.seed,
            "count": self.count,
            "drawn": self.drawn,
            "unsaid": self.unsaid,
            "several": self.several,
        }


def split_batches(kind: str, seed: int, count: int) -> Iterator[RandomBatch]:
    """So many tests of a kind, in batches from this seed on.

    >>> [batch.key for batch in split_batches("raw", 7, 130)]
    [('raw', 7, 100), ('raw', 8, 30)]
    """
    while count > 0:
        yield RandomBatch(kind, seed, min(EACH, count))
        seed, count = seed + 1, count - EACH
