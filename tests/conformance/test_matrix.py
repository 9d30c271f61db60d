"""The matrix of statements on real Delta: a sample that is pairwise covering but for two statements, and every
statement on either side.
"""

from itertools import combinations, product

import pytest

from isolitmus.conformance.delta import DELTA, carries
from isolitmus.conformance.matrix import observe
from isolitmus.model.matrix import Place
from isolitmus.specs import protocol
from isolitmus.specs.catalogue import matrix

PAIRS = matrix("pairs")
LEVELS = ("delta-serializable", "delta-write-serializable")
WITH_VECTORS = " with vectors"
PLACES = [layout for layout in PAIRS.layouts if not layout.endswith(WITH_VECTORS)]
FACTORS = {
    "a": list(PAIRS.statements),
    "winner": list(PAIRS.statements),
    "place": PLACES,
    "vectors": ["", WITH_VECTORS],
    "level": LEVELS,
}


def sample():
    """Cases by factor: each statement parked in each place, beside one that no other case has beside it."""
    statements = FACTORS["a"]
    for row, a in enumerate(statements):
        for k, place in enumerate(PLACES):
            yield {
                "a": a,
                "winner": statements[(7 * row + 3 * k) % len(statements)],
                "place": place,
                "vectors": FACTORS["vectors"][(row + k) % 2],
                "level": LEVELS[(row // 2 + k) % 2],
            }


def test_the_sample_covers_pairs():
    chosen = list(sample())
    for one, other in combinations(FACTORS, 2):
        if {one, other} != {"a", "winner"}:
            seen = {(case[one], case[other]) for case in chosen}
            assert seen == set(product(FACTORS[one], FACTORS[other])), (one, other)
    assert len({(case["a"], case["winner"]) for case in chosen}) == len(chosen)


@pytest.mark.spark
def test_cases_are_as_predicted(session):
    asked = [
        (Place(case["a"], case["winner"], case["place"] + case["vectors"]), protocol(case["level"]))
        for case in sample()
    ]
    cells = list(observe(PAIRS, asked, DELTA, carries(session)))
    assert [
        (cell.place, cell.protocol, cell.differences) for cell in cells if cell.differences
    ] == []
    assert sum(cell.observed is not None for cell in cells) > 0.9 * len(asked)
