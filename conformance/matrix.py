"""The matrix on the real engine: each case replayed, and compared with the model in every respect."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from isolitmus.checker.runs import Judged, run
from isolitmus.conformance.agreement import AT_ONCE, unlike
from isolitmus.conformance.delta import ENGINE, replay
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.matrix import NOT_MODELLED, Cell
from isolitmus.specs.matrix_file import case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolitmus.conformance.session import Session
    from isolitmus.model.matrix import Matrix, Place
    from isolitmus.model.spec import Spec

__all__ = ["observe"]


def observe(
    matrix: Matrix,
    places: Iterable[tuple[Place, Spec]],
    session: Session,
    *,
    at_once: int = AT_ONCE,
) -> Iterator[Cell]:
    """The cells at these places as they are seen, in their order, so many cases at a time."""

    def seen(at: tuple[Place, Spec]) -> Cell:
        place, protocol = at
        try:
            test = case(matrix, place)
            predicted = run(test, protocol)
        except IsolitmusError:
            return Cell(place, protocol.name, ENGINE, NOT_MODELLED)
        observed = Judged(test, replay(test, protocol.name, session))
        return Cell(
            place,
            protocol.name,
            ENGINE,
            predicted.run.transactions["a"].outcome,
            observed.run.transactions["a"].outcome,
            unlike(predicted, observed),
        )

    with ThreadPoolExecutor(at_once) as pool:
        waiting = [pool.submit(seen, place) for place in places]
        try:
            for answer in waiting:
                yield answer.result()
        finally:
            pool.shutdown(cancel_futures=True)
