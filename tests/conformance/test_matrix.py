"""The matrix of statements on real Delta, drawn by the seed: in two runs every statement parked
once and winning once.

Of all its cases ``test_recorded_catalogue`` compares what is recorded.
"""

from itertools import combinations, product

import pytest

from isolitmus.conformance.agreement import observe_cells
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.model.matrix import MatrixPlace
from isolitmus.specs import protocol
from isolitmus.specs.files.catalogue import matrix

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


def sample(seed):
    """Cases by factor: with two seeds, an even one first, each statement is parked once and winning
    once, and places, vectors and levels come as often as the others.

    Seeds in a row park a statement beside every other one, in every place, with and without
    vectors, at both levels.
    """
    statements = FACTORS["a"]
    seed, half = divmod(seed, 2)
    for row, a in enumerate(statements):
        if 2 * row // len(statements) != half:
            continue
        yield {
            "a": a,
            "winner": statements[(7 * row + seed) % len(statements)],
            "place": PLACES[(row + seed) % len(PLACES)],
            "vectors": FACTORS["vectors"][(row + seed) % 2],
            "level": LEVELS[(row // 2 + seed // 2) % 2],
        }


def test_two_samples_have_every_statement_on_either_side_and_each_every_pair_of_the_rest():
    for seed in range(0, 24, 2):
        halves = [list(sample(seed)), list(sample(seed + 1))]
        for side in ("a", "winner"):
            assert sorted(case[side] for half in halves for case in half) == sorted(FACTORS[side])
        for half, (one, other) in product(halves, combinations(("place", "vectors", "level"), 2)):
            seen = {(case[one], case[other]) for case in half}
            assert seen == set(product(FACTORS[one], FACTORS[other])), (seed, one, other)


def test_seeds_in_a_row_draw_every_pair():
    count = len(FACTORS["a"])
    drawn = [case for seed in range(24 * count) for case in sample(seed)]
    for one, other in combinations(FACTORS, 2):
        seen = {(case[one], case[other]) for case in drawn}
        assert seen == set(product(FACTORS[one], FACTORS[other])), (one, other)


@pytest.mark.spark
def test_cases_are_as_predicted(session, seed):
    asked = [
        (
            MatrixPlace(case["a"], case["winner"], case["place"] + case["vectors"]),
            protocol(case["level"]),
        )
        for case in sample(seed)
    ]
    cells = list(observe_cells(PAIRS, asked, DELTA, open_delta(session)))
    assert [
        (cell.place, cell.protocol, cell.differences) for cell in cells if cell.differences
    ] == []
    assert sum(cell.observed is not None for cell in cells) > 0.8 * len(asked)
