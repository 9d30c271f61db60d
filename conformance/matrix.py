"""A matrix on an engine: each case carried out, and compared with the model in every respect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.execution.run_result import Judged, run
from isolitmus.conformance.agreement import unlike
from isolitmus.conformance.together import together
from isolitmus.model.errors import IsolitmusError, Refused
from isolitmus.model.matrix import NOT_MODELLED, Cell
from isolitmus.specs.files.catalogue import protocol as named_protocol
from isolitmus.specs.files.matrix_file import case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolitmus.model.engine import Carries, Engine
    from isolitmus.model.matrix import Matrix, Place
    from isolitmus.specs.files.spec_catalogue import SpecLike

__all__ = ["observe"]


def observe(
    matrix: Matrix,
    places: Iterable[tuple[Place, SpecLike]],
    engine: Engine,
    carry: Carries,
    *,
    at_once: int | None = None,
) -> Iterator[Cell]:
    """The cells at these places as they are seen on an engine that was started, in their order, so many cases at
    a time. Nothing is observed where it refuses the case.
    """

    def seen(at: tuple[Place, SpecLike]) -> Cell:
        place, protocol = at[0], named_protocol(at[1])
        try:
            test = case(matrix, place)
            predicted = run(test, protocol)
        except IsolitmusError:
            return Cell(place, protocol.name, engine.name, NOT_MODELLED)
        outcome = predicted.run.transactions["a"].outcome
        try:
            observed = Judged(test, carry(test, protocol))
        except Refused:
            return Cell(place, protocol.name, engine.name, outcome)
        return Cell(
            place,
            protocol.name,
            engine.name,
            outcome,
            observed.run.transactions["a"].outcome,
            unlike(predicted, observed),
        )

    yield from together(seen, places, engine.most(at_once))
