"""A matrix of statements: the outcome of each statement if another one commits in between, by
layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.defaults import DELTA
from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.display import ReadableRepr, count_of, text_digest
from isolitmus.model.run import SILENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "LETTERS",
    "NOT_MODELLED",
    "OTHER",
    "Matrix",
    "MatrixCase",
    "MatrixPlace",
    "outcome_letter",
]


class MatrixPlace(NamedTuple):
    """A case: the statement that is parked, the one that wins, and the layout."""

    a: str
    winner: str
    layout: str


@dataclass(frozen=True, slots=True)
class Matrix(ReadableRepr):
    """Statements to be run beside each other. Tables, layouts and statements are as their file has
    them, with places to be filled in (``specs.files.matrix_file.matrix_litmus``).
    """

    name: str
    """What it is called on the command line."""
    title: str
    """What it is about, in a sentence."""
    source: str
    """Where its statements are from."""
    tables: Mapping[str, Any]
    """By name; ``t`` is the one that has layouts."""
    layouts: Mapping[str, Any]
    """Of the table ``t``, by name."""
    statements: Mapping[str, Any]
    """By name."""
    text: str = ""
    """The file, as its author wrote it."""
    format: str = DELTA
    """Of the tables."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """What it is called, and how large it is."""
        each = count_of(len(self.statements), "statement")
        return (
            f"{self.name}: {self.title}\n  {each}, every pair, in"
            f" {count_of(len(self.layouts), 'layout')}"
        )

    @property
    def digest(self) -> str:
        """What tells its text from others."""
        return text_digest(self.text)

    def places(self, layout: str | None = None) -> Iterator[MatrixPlace]:
        """The cases, row by row, of one layout or of all."""
        for name in self.layouts if layout is None else [layout]:
            for a in self.statements:
                for winner in self.statements:
                    yield MatrixPlace(a, winner, name)


LETTERS: Mapping[str, str] = {
    "committed": ".",
    "no-op": "o",
    SILENT: "?",
    **{name: conflict.letter for name, conflict in CONFLICTS.items()},
}
"""How a grid shows an outcome."""
OTHER = "x"
"""How it shows a conflict that has no letter of its own."""
NOT_MODELLED = "not modelled"
"""The outcome of a case that the model refuses."""


def outcome_letter(outcome: str | None) -> str:
    """An outcome as a letter: ``e`` for an error, a blank for what was not asked or is not
    modelled.

    >>> outcome_letter("committed"), outcome_letter("error:SparkException"), outcome_letter("WriteConflict"), outcome_letter(None)
    ('.', 'e', 'x', ' ')
    """
    if outcome is None or outcome == NOT_MODELLED:
        return " "
    return LETTERS.get(outcome, "e" if outcome.startswith(("error:", "unknown")) else OTHER)


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """Outcome of one statement while another one committed in between."""

    place: MatrixPlace
    """Which two, and on which layout."""
    protocol: str
    """Under which commit check."""
    engine: str
    """Who was asked."""
    predicted: str
    """How it ended, as the model has it."""
    observed: str | None = None
    """How it was seen to end; None: no engine was asked."""
    differences: tuple[str, ...] = ()
    """Between the two runs, in anything, a sentence each."""

    def to_json(self) -> dict[str, object]:
        """The cell as docs/interface.md, 6, has it."""
        return {
            **self.place._asdict(),
            "protocol": self.protocol,
            "engine": self.engine,
            "predicted": self.predicted,
            "observed": self.observed,
            "differences": list(self.differences),
        }
