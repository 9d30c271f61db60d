"""Random litmus tests: the engine does what the model says, in every respect."""

import pytest

from isolitmus.checker import run
from isolitmus.conformance.agreement import describe_differences, explore
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.specs import litmus, protocol
from isolitmus.specs.registries import format_named


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "count"), [("tables", 8), ("raw", 20)])
def test_random_runs_agree(session, seed, kind, count):
    (tests,) = (each.strategy() for each in format_named("delta").random if each.name == kind)
    explored = explore(
        tests,
        count,
        seed,
        open_delta(session),
        protocols=[*map(protocol, DELTA.protocols)],
        at_once=DELTA.at_once,
    )
    assert explored.mismatch is None, str(explored.mismatch)
    assert explored.runs > 0.9 * count


def test_runs_that_differ_are_told_apart():
    test = litmus("reorder")
    a, b = (
        run(test, protocol(name)) for name in ("delta-serializable", "delta-write-serializable")
    )
    assert describe_differences(a, a) == ()
    assert (
        "delete: outcome predicted ConcurrentAppendException, observed committed"
        in describe_differences(a, b)
    )
