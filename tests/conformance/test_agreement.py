"""Random litmus tests: the engine does what the model says, in every respect."""

import pytest

from isolitmus.checker import run
from isolitmus.checker.raw_strategies import raw_tests
from isolitmus.checker.strategies import litmus_tests
from isolitmus.conformance.agreement import explore, unlike
from isolitmus.conformance.tables import PROTOCOLS
from isolitmus.specs import litmus, protocol

TABLES = litmus_tests(least=2, most=4, sessions=True)
HOURS = [pytest.mark.wide, pytest.mark.timeout(4 * 3600)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("tests", "seed", "count"),
    [
        pytest.param(TABLES, 1, 24, id="tables"),
        pytest.param(raw_tests(), 2, 60, id="raw"),
        pytest.param(TABLES, 3, 1000, id="many-tables", marks=HOURS),
        pytest.param(raw_tests(), 4, 5000, id="many-raw", marks=HOURS),
    ],
)
def test_random_runs_agree(session, tests, seed, count):
    explored = explore(tests, count, seed, session, protocols=tuple(PROTOCOLS))
    assert explored.mismatch is None, str(explored.mismatch)
    assert explored.runs > 0.9 * count


def test_runs_that_differ_are_told_apart():
    test = litmus("reorder")
    a, b = (
        run(test, protocol(name)) for name in ("delta-serializable", "delta-write-serializable")
    )
    assert unlike(a, a) == ()
    assert "delete: outcome predicted ConcurrentAppendException, observed committed" in unlike(a, b)
