"""Statement matrix: outcome of each statement if another commits in between, by table layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.display import ReadableRepr, count_of, text_digest
from isolitmus.model.run import SILENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class MatrixPlace(NamedTuple):
    """Case of a matrix: parked statement, winning statement, and layout."""

    a: str
    winner: str
    layout: str


@dataclass(frozen=True, slots=True)
class Matrix(ReadableRepr):
    """Statements to run in pairs.

    Tables, layouts and statements are templates as in their file, filled in by
    ``specs.files.matrix_file.matrix_litmus``.
    """

    name: str
    """Name on the command line."""
    title: str
    """Description in one sentence."""
    source: str
    """Source of its statements."""
    tables: Mapping[str, Any]
    """Tables by name; ``t`` is the one that has layouts."""
    layouts: Mapping[str, Any]
    """Layouts of the table ``t``, by name."""
    statements: Mapping[str, Any]
    """Statements by name."""
    text: str = ""
    """Text of the file, as its author wrote it."""
    format: str = field(kw_only=True)
    """Format of the tables."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """Return the name, the title and the size."""
        each = count_of(len(self.statements), "statement")
        return (
            f"{self.name}: {self.title}\n  {each}, every pair, in"
            f" {count_of(len(self.layouts), 'layout')}"
        )

    @property
    def digest(self) -> str:
        """Digest of its text."""
        return text_digest(self.text)

    def places(self, layout: str | None = None) -> Iterator[MatrixPlace]:
        """Yield the cases, row by row, of one layout or of all."""
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
"""Letter of each outcome in a grid."""
OTHER = "x"
"""Letter of a conflict that has none of its own."""
NOT_MODELLED = "not modelled"
"""Outcome of a case that the model does not support."""


def outcome_letter(outcome: str | None) -> str:
    """Return the letter of an outcome: ``e`` for an error, a blank for one not run or not modelled.

    Examples
    --------
    >>> outcome_letter("committed"), outcome_letter("error:SparkException"), outcome_letter(None)
    ('.', 'e', ' ')
    >>> outcome_letter("WriteConflict")
    'x'
    """
    if outcome is None or outcome == NOT_MODELLED:
        return " "
    return LETTERS.get(outcome, "e" if outcome.startswith(("error:", "unknown")) else OTHER)


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """Outcome of one statement while another one committed in between."""

    place: MatrixPlace
    """Statements and layout of the case."""
    protocol: str
    """Commit protocol."""
    engine: str
    """Engine that ran the case."""
    predicted: str
    """Outcome that the model predicts."""
    observed: str | None = None
    """Observed outcome; None if no engine ran the case."""
    differences: tuple[str, ...] = ()
    """Differences between the two runs in any respect, a sentence each."""

    def to_json(self) -> dict[str, object]:
        """Return the case as a JSON object (docs/interface.md, 6)."""
        return {
            **self.place._asdict(),
            "protocol": self.protocol,
            "engine": self.engine,
            "predicted": self.predicted,
            "observed": self.observed,
            "differences": list(self.differences),
        }
