"""A history that is written in another checker's format has the same levels when it is read back."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from isolitmus.checker.checks.history_check import check
from isolitmus.checker.strategies import histories
from isolitmus.cli.conversion import HISTORIES, WRITERS
from isolitmus.histories.blackbox.check import ASKED, EVERY, check_recorded
from isolitmus.histories.readers.recorded_history import read_recorded
from isolitmus.histories.readers.written_history import write_elle
from isolitmus.model import History
from isolitmus.model.errors import HistoryError
from isolitmus.model.litmus import HistoryTest
from isolitmus.specs import level, litmus
from isolitmus.specs.files.catalogue import litmus_names

CATALOGUE = [name for name in litmus_names() if isinstance(litmus(name), HistoryTest)]


def verdicts(history, form):
    """Verdicts of the levels on a history, and on what is read of its text; None if refused."""
    try:
        text = WRITERS.named(form)(history)
    except HistoryError:
        return None
    found = read_recorded(text.encode(), Path("h"))
    names = EVERY if found.registers.started is not None else ASKED
    before = check(HistoryTest("h", "", "", history), [level(name) for name in names]).levels
    after = check_recorded("h", found, names).levels
    return tuple({name: str(v) for name, v in levels.items()} for levels in (before, after))


@pytest.mark.slow
@pytest.mark.parametrize(("form", "least"), [("elle", 25), ("awdit", 15)])
def test_the_catalogue_s_histories_have_the_same_levels(form, least):
    done = {name: verdicts(litmus(name).history, form) for name in CATALOGUE}
    written = {name: both for name, both in done.items() if both is not None}
    assert {name: both for name, both in written.items() if both[0] != both[1]} == {}
    assert len(written) >= least, sorted(written)


@pytest.mark.slow
@pytest.mark.parametrize("form", HISTORIES)
def test_drawn_histories_have_the_same_levels(form):
    @settings(max_examples=60)
    @given(histories())
    def holds(history):
        both = verdicts(history, form)
        assert both is None or both[0] == both[1]

    holds()


def test_the_order_of_versions_is_that_of_lists():
    text = write_elle(History.parse("w1(x1) w2(x2) r3(x2) c1 c2 c3 [x1 < x2]"))
    assert "[:append :x 1]" in text
    assert "[[:r :x [1 2]]]" in text


def test_real_time_is_that_of_invocations():
    text = write_elle(History.parse("b1 b2 w1(x1) r2(x0) c1 a2"))
    kinds = [line.split()[1].strip(",") for line in text.splitlines()]
    assert kinds == [":invoke", ":invoke", ":ok", ":fail"]
    assert ":value [[:r :x nil]], :index 1" in text


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        ("w1(x1) r2(P: x1*)", "elle", "T2 reads by a predicate, r(P: x1*)"),
        ("w1(x1) r2(P: x1*)", "awdit", "AWDIT's format has reads of single keys"),
        ("w1(x1) r2(x0) a1 c2", "awdit", "T1 is aborted; in AWDIT's format every transaction is"),
        ("b1 w1(x1) c1", "awdit", "no place for real time"),
        ("w1(x1) w2(x2) [x1 < x2]", "awdit", "no place for an order of versions"),
        ("w1(x1) w2(x2) [x1 < x2]", "elle", "no transaction reads x1 or x2"),
        ("w1(x1) w2(x2) w3(x3) r4(x3) [x1 < x3]", "elle", "was not observed"),
        (
            "w1(x1) w2(x2) r3(x2) w4(y4) a4 c1 c2 c3 [x1 < x2]",
            "elle",
            "T4 is aborted, which lists do not show",
        ),
    ],
)
def test_what_a_format_cannot_say_is_refused(text, form, said):
    with pytest.raises(HistoryError) as refused:
        WRITERS.named(form)(History.parse(text))
    assert said in str(refused.value)


def test_a_session_that_goes_on_after_an_unknown_end_is_refused():
    history = History.parse("w1(x1) w2(y2)", sessions=["T1 T2"], unknown=["T1"])
    with pytest.raises(HistoryError, match="the session of T1 goes on"):
        write_elle(history)
    with pytest.raises(HistoryError, match="named sets"):
        write_elle(History.parse("w1(x1)", sets={"Trusted": ["T1"]}))
    with pytest.raises(HistoryError, match="the schedule has no start of T2"):
        write_elle(History.parse("w1(x1) w2(y2)", schedule="T1"))
