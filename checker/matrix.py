"""The verb ``matrix``: which statements conflict, by who wins, layout and protocol, as the model has it."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from isolitmus.checker.running.execute import execute, observe
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.matrix import NOT_MODELLED, Cell
from isolitmus.specs.matrix_file import case

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.matrix import Matrix, Place
    from isolitmus.model.spec import Spec

__all__ = ["covering", "grid", "predict"]


def predict(matrix: Matrix, place: Place, protocol: Spec) -> Cell:
    """What the model says of a case.

    >>> from isolitmus.model.matrix import Place
    >>> from isolitmus.specs import protocol
    >>> from isolitmus.specs.catalogue import matrix
    >>> place = Place("delete-row", "insert", "same partition")
    >>> predict(matrix("pairs"), place, protocol("delta-serializable")).predicted
    'ConcurrentAppendException'
    """
    try:
        test = case(matrix, place)
        seen = observe(test, execute(test, protocol), protocol.name)
    except IsolitmusError:
        return Cell(place, protocol.name, "model", NOT_MODELLED)
    return Cell(place, protocol.name, "model", seen.transactions["a"].outcome)


def grid(matrix: Matrix, letters: dict[tuple[str, str], str]) -> list[str]:
    """A layout as lines: rows are parked, columns win, their names above in full.

    >>> from isolitmus.specs.catalogue import matrix
    >>> lines = grid(matrix("pairs"), {("insert", "insert"): "."})
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


def covering(matrix: Matrix, places: Iterable[Place]) -> list[Place]:
    """The places in an order of which a beginning has much: the first layouts · statements places have every
    statement on either side in every layout, and no pair of statements twice unless there are more layouts
    than statements.
    """
    row = {name: k for k, name in enumerate(matrix.statements)}
    layer = {name: k for k, name in enumerate(matrix.layouts)}
    size = len(row)
    step = next(step for step in range(7, size + 8) if gcd(step, size) == 1)

    def diagonal(place: Place) -> tuple[int, int]:
        return (row[place.winner] - row[place.a] * step - layer[place.layout]) % size, row[place.a]

    return sorted(places, key=diagonal)
