"""Random litmus tests that an engine has run, in reproducible batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

EACH = 100
"""Number of tests that are drawn from one seed."""


@dataclass(frozen=True, slots=True)
class RandomBatch:
    """Batch of random tests of one kind, drawn from one seed."""

    kind: str
    """Name of the kind of tests (``Format.random``)."""
    seed: int
    """Seed of the random numbers."""
    count: int
    """Number of tests."""
    unsaid: int | None = None
    """Number of tests for which the model predicts nothing; the others ran as predicted. None: not
    run.
    """
    several: int = 0
    """Number of tests with several predicted runs, one of which the engine's was."""
    drawn: str = ""
    """Digest of the tests: a seed gives other tests when their generator changes."""

    @property
    def key(self) -> tuple[str, int, int]:
        """Kind, seed and count, which identify the batch."""
        return self.kind, self.seed, self.count

    def to_json(self) -> dict[str, Any]:
        """Return the batch as a JSON object (docs/interface.md, 6)."""
        return {
            "tests": self.kind,
            "seed": self.seed,
            "count": self.count,
            "drawn": self.drawn,
            "unsaid": self.unsaid,
            "several": self.several,
        }


def split_batches(kind: str, seed: int, count: int) -> Iterator[RandomBatch]:
    """Yield batches of `count` tests of a kind, with consecutive seeds from `seed` on.

    Examples
    --------
    >>> [batch.key for batch in split_batches("raw", 7, 130)]
    [('raw', 7, 100), ('raw', 8, 30)]
    """
    while count > 0:
        yield RandomBatch(kind, seed, min(EACH, count))
        seed, count = seed + 1, count - EACH
