"""The matrix of statements on real Delta: a sample that has every statement, layout and level with each other,
and every statement on either side.
"""

from itertools import product

import pytest

from isolitmus.checker.matrix import covering
from isolitmus.conformance.matrix import observe
from isolitmus.specs import protocol
from isolitmus.specs.catalogue import matrix

PAIRS = matrix("pairs")
LEVELS = ("delta-serializable", "delta-write-serializable")
KINDS = {
    "a": PAIRS.statements,
    "winner": PAIRS.statements,
    "layout": PAIRS.layouts,
    "level": LEVELS,
}


def sample():
    """Places and levels: every two of a statement parked, a layout and a level, or of a winner and these."""
    size = len(PAIRS.statements) * len(PAIRS.layouts)
    places = covering(PAIRS, PAIRS.places())[:size]
    return [(place, LEVELS[k // len(PAIRS.layouts) % 2 ^ k % 2]) for k, place in enumerate(places)]


def test_the_sample_covers_pairs():
    chosen = [place._asdict() | {"level": level} for place, level in sample()]
    for one, other in (
        ("a", "layout"),
        ("winner", "layout"),
        ("a", "level"),
        ("winner", "level"),
        ("layout", "level"),
    ):
        seen = {(case[one], case[other]) for case in chosen}
        assert seen == set(product(KINDS[one], KINDS[other])), (one, other)


@pytest.mark.spark
def test_cases_are_as_predicted(session):
    asked = [(place, protocol(level)) for place, level in sample()]
    cells = list(observe(PAIRS, asked, session))
    assert [
        (cell.place, cell.protocol, cell.differences) for cell in cells if cell.differences
    ] == []
    assert sum(cell.observed is not None for cell in cells) > 0.9 * len(asked)
