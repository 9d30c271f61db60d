"""A matrix of statements: what becomes of each one that another one overtakes, in some layouts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LETTERS", "NOT_MODELLED", "Cell", "Matrix", "Place", "letter"]


class Place(NamedTuple):
    """A case: the statement that is parked, the one that wins, and the layout."""

    a: str
    winner: str
    layout: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """Tables, layouts of the table ``t`` and statements, by name, as their file has them: with places to be
    filled in (``specs.matrix_file.case``).
    """

    name: str
    title: str
    source: str
    tables: Mapping[str, Any]
    layouts: Mapping[str, Any]
    statements: Mapping[str, Any]
    text: str = ""

    @property
    def digest(self) -> str:
        """What tells its text from others."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def places(self, layout: str | None = None) -> Iterator[Place]:
        """The cases, row by row, of one layout or of all."""
        for name in self.layouts if layout is None else [layout]:
            for a in self.statements:
                for winner in self.statements:
                    yield Place(a, winner, name)


LETTERS: Mapping[str, str] = {
    "committed": ".",
    "no-op": "o",
    "ConcurrentAppendException": "A",
    "ConcurrentDeleteReadException": "R",
    "ConcurrentDeleteDeleteException": "D",
    "ConcurrentTransactionException": "T",
    "ConcurrentWriteException": "W",
    "MetadataChangedException": "M",
    "ProtocolChangedException": "P",
}
"""How a grid shows an outcome."""
NOT_MODELLED = "not modelled"
"""The outcome of a case that the model refuses."""


def letter(outcome: str | None) -> str:
    """An outcome as a letter: ``e`` for an error, a blank for what was not asked or is not modelled.

    >>> letter("committed"), letter("error:SparkException"), letter(None)
    ('.', 'e', ' ')
    """
    return " " if outcome in {None, NOT_MODELLED} else LETTERS.get(outcome, "e")


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of ``a`` at a place under a protocol: as the model has it and, if an engine was asked, as it
    was seen; ``differences`` between the two runs, in anything, a sentence each.
    """

    place: Place
    protocol: str
    engine: str
    predicted: str
    observed: str | None = None
    differences: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The cell as interface.md has it."""
        return {
            **self.place._asdict(),
            "protocol": self.protocol,
            "engine": self.engine,
            "predicted": self.predicted,
            "observed": self.observed,
            "differences": list(self.differences),
        }
