"""Sets that a history names: what a level says of them, and Adya's mixing of levels by them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import compare
from isolitmus.checker.judge.completion import frames
from isolitmus.checker.judge.completion_search import is_monotone_in_assumptions
from isolitmus.checker.judge.graph_semantics import admits
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.render.verdicts import because
from isolitmus.checker.search.separation import separate
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.checker.strategies import histories
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.history import History
from isolitmus.model.verdict import Needs
from isolitmus.specs import level, protocol
from isolitmus.specs.files.spec_reader import read_spec

MIXED = level("mixing-correct")
TRUSTED = read_spec(
    '"Trusted" given Trusted "who asked for more" with ww from versions'
    " empty [~Trusted] ; rw ; [Trusted] as overtaken",
    "trusted",
)
SKEW = "r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2)"


def at_levels(history, twos, threes):
    return replace(history, sets=(("PL2", tuple(twos)), ("PL3", tuple(threes))))


def allowed(history, spec):
    return bool(check_history(history, spec))


def test_a_verdict_says_who_is_in_a_set():
    verdict = check_history(History.parse(SKEW, sets={"Trusted": ["T2"]}), TRUSTED)
    why, conclusion = because(verdict.violations[0])
    assert why == (
        "T1 leads to T2, because T1 read y0 and T2 wrote the next version y2; T1 is not in Trusted;"
        " T2 is in Trusted"
    )
    assert conclusion == "overtaken forbids an edge from T1 to T2"
    assert check_history(History.parse(SKEW, sets={"Trusted": []}), TRUSTED)


def test_a_history_that_does_not_name_the_set_is_not_judged():
    assert check_history(History.parse(SKEW), TRUSTED) == Needs(("Trusted",))
    assert check_history(History.parse(SKEW, sets={"PL3": ["T1"]}), MIXED) == Needs(("PL2",))


@pytest.mark.parametrize("text", ["w1(x1) w1(y1) r2(x1) r2(y0) c2", "w1(x1) r1(y0) w2(y2) c1 a2"])
def test_whoever_ended_how_is_in_its_sets(text):
    history = History.parse(text, sets={"Trusted": ["T1", "T2"]})
    assert {frame.sets["Trusted"] for frame in frames(history, reads=True)} == {0b11}


@pytest.mark.slow
@given(histories(predicates=True))
def test_all_at_one_level_are_as_at_that_level(history):
    numbers = [t.number for t in history.transactions]
    assert allowed(at_levels(history, [], []), MIXED) == allowed(history, level("pl-1"))
    assert allowed(at_levels(history, numbers, []), MIXED) == allowed(
        history, level("read-committed")
    )
    assert allowed(at_levels(history, [], numbers), MIXED) == allowed(history, level("pl-3"))


@pytest.mark.slow
@given(histories(predicates=True), st.data())
def test_whoever_asks_for_more_is_refused_more(history, data):
    numbers = [t.number for t in history.transactions]
    asked = data.draw(st.lists(st.integers(1, 3), min_size=len(numbers), max_size=len(numbers)))
    more = [data.draw(st.integers(at, 3)) for at in asked]
    less, most = (
        at_levels(
            history, *([n for n, at in zip(numbers, one, strict=True) if at == k] for k in (2, 3))
        )
        for one in (asked, more)
    )
    assert allowed(less, MIXED) or not allowed(most, MIXED)


SERIAL = read_spec(
    '"Serial" given PL3 "transactions at PL-3" with ww from versions'
    " acyclic [PL3] ; (wr | ww | rw) ; [PL3] as order-of-those-at-pl-3",
    "serial",
)


@given(histories(predicates=True), st.data())
def test_those_at_the_highest_level_have_a_serial_order_of_themselves(history, data):
    """What the mixing theorem promises them, of their own conflicts."""
    threes = data.draw(st.sets(st.sampled_from([t.number for t in history.transactions])))
    mixed = at_levels(history, [], sorted(threes))
    assert allowed(mixed, SERIAL) or not allowed(mixed, MIXED)


@pytest.mark.slow
@given(st.data())
def test_with_many_orders_a_solver_says_the_same(data):
    """Of six versions there are 720 orders: a solver proposes some, here all are tried."""
    assert is_monotone_in_assumptions(MIXED)
    reads = [data.draw(st.sampled_from([0, *range(1, n)])) for n in range(1, 7)]
    text = " ".join(f"r{n}(x{seen}) w{n}(x{n})" for n, seen in enumerate(reads, 1))
    levels = data.draw(st.lists(st.integers(1, 3), min_size=6, max_size=6))
    names = {k: [f"T{n}" for n, at in enumerate(levels, 1) if at == k] for k in (2, 3)}
    history = History.parse(text, sets={"PL2": names[2], "PL3": names[3]})
    assert allowed(history, MIXED) == any(admits(frame, MIXED) for frame in frames(history))


SEARCHES = {
    "abstract": lambda: separate(TRUSTED, level("serializable"), "abstract"),
    "table": lambda: separate(level("serializable"), TRUSTED),
    "unbounded": lambda: separate_unbounded(protocol("delta-serializable"), TRUSTED),
}


@pytest.mark.parametrize("universe", SEARCHES)
def test_a_search_has_no_such_sets(universe):
    with pytest.raises(IsolitmusError) as error:
        SEARCHES[universe]()
    who = "abstract histories" if universe == "abstract" else "searches of tables"
    said = f"trusted needs Trusted, which {who} do not have"
    place = "" if universe == "unbounded" else "trusted:1:74: "
    assert str(error.value) == f"{place}{said}"


@pytest.mark.slow
def test_a_comparison_leaves_out_who_asks_for_them():
    found = compare([level("causal"), TRUSTED, level("read-atomic")], "abstract")
    assert found.apart == {"trusted": "search space 'abstract' does not have Trusted"}
