"""Every litmus test of the catalogue on real Delta: what is expected, what the model predicts, and
what happens are one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from isolitmus.checker import run
from isolitmus.checker.runs import Judged, compare
from isolitmus.conformance import replay
from isolitmus.conformance.tables import PROTOCOLS
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus, protocol
from isolitmus.specs.catalogue import litmus_tests


def cases():
    """Each test under each protocol that Delta has; ``wide`` where another one is to give the same."""
    for test in map(litmus, litmus_tests()):
        seen = []
        for under in PROTOCOLS if isinstance(test, Litmus) else ():
            expected = test.expect.get(under)
            if expected is not None:
                marks = [pytest.mark.wide] if expected in seen else []
                seen.append(expected)
                yield pytest.param(test.name, under, marks=marks)


AT_ONCE = 3


@pytest.fixture(scope="module")
def replays(session, request):
    """The replays of the selected cases, several at a time on tables of their own: each waits for
    Spark more than it keeps a processor busy."""
    selected = [
        (item.callspec.params["name"], item.callspec.params["under"])
        for item in request.session.items
        if item.path == request.path
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {case: pool.submit(replay, litmus(case[0]), case[1], session) for case in selected}
        pool.shutdown(cancel_futures=True)


@pytest.mark.spark
@pytest.mark.parametrize(("name", "under"), list(cases()))
def test_predicted_equals_observed_equals_expected(replays, name, under):
    test = litmus(name)
    observed = Judged(test, replays[name, under].result())
    predicted = run(test, protocol(under))
    assert compare(predicted.run, observed.run) == ()
    assert observed.differences == ()
    assert observed.serial == predicted.serial
    assert observed.levels == predicted.levels
