"""What searches and sweeps find happens on the engine, as the model says, in every respect: the serial orders
are worked out anew from the rows that were observed.
"""

from itertools import product

import pytest

from isolitmus.checker import run
from isolitmus.checker.finds import distinct, everything, of_portrait
from isolitmus.checker.portrait import portray
from isolitmus.conformance.agreement import mismatches
from isolitmus.conformance.tables import PROTOCOLS
from isolitmus.specs import protocol

LEVELS = ("delta-serializable", "delta-write-serializable")


@pytest.mark.spark
def test_what_portraits_show_happens(session):
    """Holes, needless aborts with each exception, and the layouts in which nothing aborts."""
    portraits = (portray(protocol(name)) for name in LEVELS)
    tests = list(distinct(test for portrait in portraits for test in of_portrait(portrait)))
    (hole,) = (test for test in tests if "-hole-" in test.name)
    assert run(hole, protocol("delta-write-serializable")).serial.orders == ()
    needless = [test for test in tests if "-needless-" in test.name]
    for name, exception in product(LEVELS, ("ConcurrentAppend", "ConcurrentDeleteRead")):
        assert any(test.name.startswith(f"{name}-needless-{exception}") for test in needless)
    assert [str(found) for found in mismatches(product(tests, LEVELS), session)] == []


@pytest.mark.spark
@pytest.mark.wide
@pytest.mark.timeout(4 * 3600)
def test_everything_that_is_found_happens(session):
    tests = list(everything(tuple(PROTOCOLS)))
    assert len(tests) > 100
    assert [str(found) for found in mismatches(product(tests, PROTOCOLS), session)] == []
