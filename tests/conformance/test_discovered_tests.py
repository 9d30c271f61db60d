"""What searches and sweeps find happens on the engine, as the model says, in every respect: the
serial orders are worked out anew from the rows that were observed.
"""

from itertools import product
from pathlib import Path

import pytest

from isolitmus.checker import run, separate
from isolitmus.checker.search.discovered_tests import (
    discover_all,
    distinct_tests,
    portrait_tests,
)
from isolitmus.checker.search.portrait import portray
from isolitmus.cli.demo import QUESTIONS, REMEDIES, UNIVERSE, follow_remedy
from isolitmus.conformance.agreement import find_mismatches
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.conformance.delta.tables import PROTOCOLS
from isolitmus.specs import protocol, scope, spec

ROOT = Path(__file__).parents[2]
LEVELS = ("delta-serializable", "delta-write-serializable")


def differing(cases, session):
    """Those in which Delta is not as the model says, in words."""
    asked = ((test, protocol(under)) for test, under in cases)
    return [str(found) for found in find_mismatches(asked, open_delta(session), DELTA.at_once)]


@pytest.mark.spark
def test_what_portraits_show_happens(session):
    """Holes, needless aborts with each exception, and the layouts in which nothing aborts."""
    portraits = (portray(protocol(name)) for name in LEVELS)
    tests = list(
        distinct_tests(test for portrait in portraits for test in portrait_tests(portrait))
    )
    (hole,) = (test for test in tests if "-hole-" in test.name)
    assert run(hole, protocol("delta-write-serializable")).serial.orders == ()
    needless = [test for test in tests if "-needless-" in test.name]
    for name, exception in product(LEVELS, ("ConcurrentAppend", "ConcurrentDeleteRead")):
        assert any(test.name.startswith(f"{name}-needless-{exception}") for test in needless)
    assert differing(product(tests, LEVELS), session) == []


@pytest.mark.spark
def test_what_the_demo_advises_happens(session):
    """The demo's hole with the MERGE that it advises, at the level that let the hole through."""
    inside, question = scope(UNIVERSE), QUESTIONS[-1]
    found = separate(spec(question.a), spec(question.b), inside, unexplained=True).litmus
    (merge,) = (remedy for remedy in REMEDIES if remedy.sql.startswith("MERGE"))
    test = follow_remedy(found, inside, merge)
    ended = run(test, protocol(question.a)).run.transactions
    assert ended["cleanup"].outcome == "ConcurrentAppendException"
    assert differing([(test, question.a)], session) == []


@pytest.mark.spark
@pytest.mark.wide
@pytest.mark.timeout(4 * 3600)
def test_everything_that_is_found_happens(session):
    tests = list(discover_all(tuple(PROTOCOLS)))
    assert len(tests) > 100
    page = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    assert f"The list has {len(tests)} histories today." in page
    assert differing(product(tests, PROTOCOLS), session) == []
