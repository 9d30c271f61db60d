"""What Delta calls its conflicts: the exceptions that axioms of its protocols are named after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CONFLICTS", "Conflict"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """An exception: the letter that stands for it in a grid, and whether its message names a partition."""

    letter: str
    hinted: bool = False


CONFLICTS: Mapping[str, Conflict] = {
    "ConcurrentAppendException": Conflict("A", hinted=True),
    "ConcurrentDeleteReadException": Conflict("R", hinted=True),
    "ConcurrentDeleteDeleteException": Conflict("D", hinted=True),
    "ConcurrentTransactionException": Conflict("T"),
    "ConcurrentWriteException": Conflict("W"),
    "MetadataChangedException": Conflict("M"),
    "ProtocolChangedException": Conflict("P"),
}
"""By name (DeltaConcurrentExceptions.scala, which has the class that they share besides)."""
