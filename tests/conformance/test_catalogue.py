"""Every litmus test of the catalogue on real Delta: what is expected, what the model predicts, and
what happens are one."""

import pytest

from isolitmus.checker import run
from isolitmus.checker.runs import Judged, compare
from isolitmus.conformance import replay
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus, protocol
from isolitmus.specs.catalogue import litmus_tests, protocols

CASES = [
    (name, expected)
    for name in litmus_tests()
    if isinstance(litmus(name), Litmus)
    for expected in protocols()
    if expected in litmus(name).expect
]


@pytest.mark.spark
@pytest.mark.parametrize(("name", "under"), CASES)
def test_predicted_equals_observed_equals_expected(session, name, under):
    test = litmus(name)
    predicted, observed = run(test, protocol(under)), Judged(test, replay(test, under, session))
    assert compare(predicted.run, observed.run) == ()
    assert observed.differences == ()
    assert observed.serial == predicted.serial
    assert observed.levels == predicted.levels
