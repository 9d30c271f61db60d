"""Random litmus tests: the engine does what the model says, in every respect."""

import pytest

from isolitmus.checker import run
from isolitmus.conformance.agreement import TESTS, explore, unlike
from isolitmus.conformance.tables import PROTOCOLS
from isolitmus.specs import litmus, protocol


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "seed", "count"), [("tables", 1, 24), ("raw", 2, 60)])
def test_random_runs_agree(session, kind, seed, count):
    explored = explore(TESTS[kind](), count, seed, session, protocols=tuple(PROTOCOLS))
    assert explored.mismatch is None, str(explored.mismatch)
    assert explored.runs > 0.9 * count


def test_runs_that_differ_are_told_apart():
    test = litmus("reorder")
    a, b = (
        run(test, protocol(name)) for name in ("delta-serializable", "delta-write-serializable")
    )
    assert unlike(a, a) == ()
    assert "delete: outcome predicted ConcurrentAppendException, observed committed" in unlike(a, b)
