"""The ways in which reads whose value several wrote may have been: who was read from, as far as it has to be supposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.blackbox.judgement import contradiction, seen_at
from isolitmus.checker.blackbox.read_from import LeftCells, attributed
from isolitmus.checker.blackbox.writers import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.judgement import JudgedRecord
    from isolitmus.checker.blackbox.read_from import Attributed
    from isolitmus.model.budget import Budget

__all__ = ["Attribution", "attributions"]


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Who some reads are supposed to have read from, and why the level forbids that."""

    seen: Attributed
    """Who wrote what each read saw; some may be left unclear, as it does not matter."""
    supposing: tuple[tuple[int, int], ...]
    """Reads, by operation, with their writers."""
    judged: JudgedRecord
    """What the level says of the reads that are not unclear."""


def attributions(judged: JudgedRecord, budget: Budget) -> Iterator[Attribution]:
    """Of a history that a level forbids: each choice of writers is one of these cases, or goes beyond one of them.
    TimeLimit if the ``budget`` ends it.
    """
    seen = seen_at(judged.lists or judged.history, judged.level)
    if judged.flaws or judged.cycle or seen.ambiguous or not len(seen.unclear):
        yield Attribution(seen, (), judged)
    else:
        yield from _attributions(np.full(len(seen.owner), -1), (), judged, budget)


def _attributions(
    given: NDArray[np.int64],
    supposing: tuple[tuple[int, int], ...],
    judged: JudgedRecord,
    budget: Budget,
) -> Iterator[Attribution]:
    seen = attributed(judged.history, given)
    found = contradiction(seen, judged.level, budget)
    if found is not None:
        yield Attribution(seen, supposing, found)
        return
    assert len(seen.unclear), f"{judged.level} does not forbid {judged.history}"
    read, cells = seen.unclear[:1], LeftCells(judged.history)
    for writer in cells.by[ranges(*cells.writers(read))].tolist():
        if writer != seen.owner[read[0]]:
            more = given.copy()
            more[read] = writer
            yield from _attributions(more, (*supposing, (int(read[0]), writer)), judged, budget)
