"""Conflict matrix: predicted conflicts of statements, by winner, layout and protocol.

Computes the answers of the command ``matrix``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.model.display import ReadableRepr, count_of, first_lines
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.matrix import NOT_MODELLED, MatrixCase, MatrixPlace
from isolitmus.model.records import Records, Tabular
from isolitmus.specs.files.catalogue import matrix as matrix_named
from isolitmus.specs.files.matrix_file import matrix_litmus
from isolitmus.specs.files.spec_catalogue import protocol as named
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isolitmus.model.matrix import Matrix
    from isolitmus.specs.files.spec_catalogue import SpecLike


def predict_case(matrix: Matrix, place: MatrixPlace, protocol: SpecLike) -> MatrixCase:
    """Return the model's prediction for one case of a matrix.

    >>> from isolitmus.model.matrix import MatrixPlace
    >>> from isolitmus.specs import protocol
    >>> from isolitmus.specs.files.catalogue import matrix
    >>> place = MatrixPlace("delete-row", "insert", "same partition")
    >>> predict_case(matrix("pairs"), place, protocol("delta-serializable")).predicted
    'ConcurrentAppendException'
    """
    protocol = named(protocol)
    try:
        test = matrix_litmus(matrix, place)
        seen = observed_run(test, execute(test, protocol), protocol.name)
    except IsolitmusError:
        return MatrixCase(place, protocol.name, "model", NOT_MODELLED)
    return MatrixCase(place, protocol.name, "model", seen.transactions["a"].outcome)


@dataclass(frozen=True, slots=True)
class MatrixCells(ReadableRepr, Tabular):
    """Outcomes of cases of a matrix."""

    matrix: Matrix
    cells: tuple[MatrixCase, ...]

    @property
    def records(self) -> Records:
        """Cases as a table, one row each."""
        return Records(
            (*MatrixPlace._fields, "protocol", "engine", "predicted", "observed", "differences"),
            tuple(
                (*c.place, c.protocol, c.engine, c.predicted, c.observed, "; ".join(c.differences))
                for c in self.cells
            ),
        )

    def __repr__(self) -> str:
        """Return the number of cases with each outcome, by protocol."""
        lines = [f"{self.matrix.name}: {count_of(len(self.cells), 'case')}"]
        for protocol in dict.fromkeys(cell.protocol for cell in self.cells):
            ends = Counter(c.observed or c.predicted for c in self.cells if c.protocol == protocol)
            words = ", ".join(f"{number:,} {end}" for end, number in ends.most_common())
            lines.append(f"  {protocol}: {words}")
        return first_lines(lines)


def predict_cells(
    matrix: Matrix | str = "pairs",
    protocols: Sequence[SpecLike] | None = None,
    places: Iterable[MatrixPlace] | None = None,
) -> MatrixCells:
    """Return the model's predictions for cases of a matrix under each protocol.

    Parameters
    ----------
    matrix : Matrix or str
        The matrix, its name or the path of its file.
    protocols : sequence of Spec, str or path, optional
        Commit protocols; default: those of the format.
    places : iterable of MatrixPlace, optional
        The cases; default: all.

    Returns
    -------
    MatrixCells
        One case for each place and protocol.

    Examples
    --------
    >>> from isolitmus.model.matrix import MatrixPlace
    >>> place = MatrixPlace("insert", "insert", "same partition")
    >>> predict_cells("pairs", ["delta-serializable"], [place])
    pairs: 1 case
      delta-serializable: 1 committed
    """
    if isinstance(matrix, str):
        matrix = matrix_named(matrix)
    if protocols is None:
        protocols = format_named(matrix.format).protocols
    every = list(matrix.places() if places is None else places)
    return MatrixCells(
        matrix,
        tuple(predict_case(matrix, p, under) for under in map(named, protocols) for p in every),
    )


def matrix_grid(matrix: Matrix, letters: dict[tuple[str, str], str]) -> list[str]:
    """Return one layout as lines of text: one row per loser, one column per winner.

    Parameters
    ----------
    matrix : Matrix
        The matrix.
    letters : dict of (str, str) to str
        Letter of each cell, by loser and winner.

    Examples
    --------
    >>> from isolitmus.specs.files.catalogue import matrix
    >>> lines = matrix_grid(matrix("pairs"), {("insert", "insert"): "."})
    >>> len(lines[-1]) - len(lines[-1].rstrip())
    0
    """
    names = list(matrix.statements)
    width = max(map(len, names))
    numbers = [f"{k:>2}" for k in range(1, len(names) + 1)]
    lines = [
        " " * (width + 5) + "".join(f" {number[row]}" for number in numbers)
        for row in range(2)
        if len(names) > 9 or row
    ]
    for k, a in enumerate(names, 1):
        row = "".join(f" {letters.get((a, winner), ' ')}" for winner in names)
        lines.append(f"{k:>3}  {a:<{width}}{row}".rstrip())
    return lines


def covering_order(matrix: Matrix, places: Iterable[MatrixPlace]) -> list[MatrixPlace]:
    """Return the cases in an order of which every prefix covers much.

    The first (layouts · statements) cases contain every statement on either side in every layout.
    They contain no pair of statements twice, unless there are more layouts than statements.
    """
    row = {name: k for k, name in enumerate(matrix.statements)}
    layer = {name: k for k, name in enumerate(matrix.layouts)}
    size = len(row)
    step = next(step for step in range(7, size + 8) if gcd(step, size) == 1)

    def diagonal(place: MatrixPlace) -> tuple[int, int]:
        return (row[place.winner] - row[place.a] * step - layer[place.layout]) % size, row[place.a]

    return sorted(places, key=diagonal)
