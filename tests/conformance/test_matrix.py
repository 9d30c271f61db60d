"""The matrix of statements on real Delta, a sample that has every statement on either side."""

import pytest

from isolitmus.checker.matrix import covering
from isolitmus.conformance.matrix import observe
from isolitmus.specs import protocol
from isolitmus.specs.catalogue import matrix

LEVELS = ("delta-serializable", "delta-write-serializable")


@pytest.mark.spark
def test_cases_are_as_predicted(session):
    pairs = matrix("pairs")
    layouts = list(pairs.layouts)
    rows = {name: k for k, name in enumerate(pairs.statements)}
    diagonal = covering(pairs, pairs.places())[: len(rows) * len(layouts)]
    sample = [place for place in diagonal if layouts[rows[place.a] % len(layouts)] == place.layout]
    asked = [(place, protocol(LEVELS[k % 2])) for k, place in enumerate(sample)]
    cells = list(observe(pairs, asked, session))
    assert {cell.place.a for cell in cells} == {cell.place.winner for cell in cells} == set(rows)
    assert [
        (cell.place, cell.protocol, cell.differences) for cell in cells if cell.differences
    ] == []
    assert sum(cell.observed is not None for cell in cells) > 0.9 * len(rows)
