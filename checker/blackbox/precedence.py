"""Why one transaction comes before another: the steps that a cycle is made of, and the edges as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.naming import operation_name, transaction_name
from isolitmus.model.display import Readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from isolitmus.model.blackbox_history import RegisterHistory

__all__ = ["KINDS", "Arrows", "Precedence", "concatenated"]

KINDS = ("so", "wr", "co", "ww", "rw", "within", "rt")
"""Session order, read from, the commit order by an axiom, version order, anti-dependency; from a
transaction's beginning to its end; and real time."""


@dataclass(frozen=True, slots=True)
class Precedence(Readable):
    """One transaction comes before another, and why."""

    history: RegisterHistory
    """Where."""
    source: int
    """The transaction that comes before."""
    target: int
    """The transaction that comes after."""
    kind: str
    """One of KINDS."""
    read: int | None = None
    """The read that it is about; none for the session order, and for an order of versions."""
    because: tuple[Precedence, ...] = ()
    """Of an axiom's: by which steps the reader sees the source. Of an order of versions that was inferred: the
    cycle that the other order would close.
    """

    def __repr__(self) -> str:
        history, source, target = self.history, self.source, self.target
        head = f"{transaction_name(history, source)} before {transaction_name(history, target)}"
        read = "" if self.read is None else operation_name(history, self.read)
        match self.kind:
            case "so":
                why = "session order"
            case "rt":
                why = "it had ended"
            case "wr":
                why = f"{read}"
            case "co":
                seen = ", ".join(repr(step) for step in self.because)
                why = f"{read}, and sees who wrote the key, too ({seen})"
            case "rw":
                why = f"{read}, which was overwritten"
            case _:
                why = "version order" + (", else there is a cycle" if self.because else "")
        return f"{head} ({self.kind}): {why}"


@dataclass(frozen=True, slots=True, eq=False)
class Arrows:
    """Pairs of transactions as columns, each with what it is about."""

    source: NDArray[np.int64]
    """Who comes before."""
    target: NDArray[np.int64]
    """Who comes after."""
    kind: NDArray[np.int8]
    """The place in KINDS."""
    read: NDArray[np.int64]
    """The read, by operation, or -1."""

    def __len__(self) -> int:
        return len(self.source)

    def only(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Arrows:
        """These of them."""
        return Arrows(self.source[which], self.target[which], self.kind[which], self.read[which])

    @classmethod
    def of(
        cls,
        kind: str,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        read: NDArray[np.int64] | None = None,
    ) -> Arrows:
        """Arrows of one kind."""
        kinds = np.full(len(source), KINDS.index(kind), np.int8)
        return cls(source, target, kinds, np.full(len(source), -1) if read is None else read)


def concatenated(parts: Sequence[Arrows]) -> Arrows:
    """The edges of all parts, one part after another."""
    return Arrows(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.read for part in parts]),
    )
