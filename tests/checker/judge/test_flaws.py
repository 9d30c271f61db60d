"""What no level allows: reads that nothing explains, by the definitions, and as recorded histories
have them.
"""

from itertools import product

import pytest
from case_checks import check_cases
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.completion import find_flaws, frames
from isolitmus.checker.judge.graph_semantics import admits, judge
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.strategies import histories
from isolitmus.checker.universes.catalogue_histories import shipped_history
from isolitmus.histories.blackbox.read_from import attribute_reads
from isolitmus.histories.readers.plume import read_plume
from isolitmus.model.history import History
from isolitmus.model.verdict import Forbidden, Needs
from isolitmus.specs import level
from isolitmus.specs.files.spec_catalogue import every_level
from isolitmus.specs.files.spec_reader import read_spec

FLAWED = {  # they say what was when, for the levels that ask
    "b1 w1(x1) c1 b2 r2(x3) c2": "thin-air read",
    "b1 w1(x1) r1(x0) c1": "own write missed",
    "b1 r1(x1) w1(x1) c1": "future read",
}
EVERYTHING = read_spec('"Everything" empty wr \\ wr as nothing', "everything")


def test_every_level_forbids_them_or_is_not_asked():
    def forbid(name, text):
        named = {one: ["T1", "T2"] if "2(" in text else ["T1"] for one in level(name).given}
        verdict = check_history(History.parse(text, sets=named), level(name))
        if "log" in level(name).needs:
            assert isinstance(verdict, Needs)
            return False
        assert isinstance(verdict, Forbidden)
        assert anomaly_names(verdict) == (FLAWED[text],)
        assert [violation.kind for violation in verdict.violations] == ["flaw"]
        return True

    forbidden = check_cases(forbid, product(every_level(), FLAWED))
    assert sum(forbidden) >= 150


@pytest.mark.parametrize("text", FLAWED)
def test_a_spec_that_asks_nothing_forbids_them_by_each_reading(text):
    history = History.parse(text)
    (frame,) = frames(history)
    assert not admits(frame, EVERYTHING)
    assert not compile_spec(EVERYTHING)(frame)
    assert isinstance(judge(frame, EVERYTHING), Forbidden)
    assert isinstance(check_history(history, EVERYTHING), Forbidden)


def test_they_are_shown_once_whatever_else_nobody_observed():
    """Thirty versions in any order: none of them is tried."""
    writers = " ".join(f"w{n}(x{n})" for n in range(1, 31))
    verdict = check_history(History.parse(f"{writers} r31(x99)"), level("serializable"))
    assert [violation.supposing for violation in verdict.violations] == [()]
    assert verdict.others == 0


def test_without_an_observed_order_they_are_forbidden_all_the_same():
    observed = read_spec('"Observed" acyclic wr | ww as order', "observed")
    assert isinstance(check_history(History.parse("w1(x1) w2(x2)"), observed), Needs)
    assert isinstance(check_history(History.parse("w1(x1) w2(x2) r3(x9)"), observed), Forbidden)


@pytest.mark.parametrize(
    ("name", "many"),
    [
        ("serializable", 1),
        ("serializable", 9),
        ("read-atomic", 1),
        ("read-atomic", 9),
        ("serializable-crooks", 1),
    ],
)
def test_who_may_have_aborted_is_supposed_to_have(name, many):
    """With few completions, and with so many that a solver proposes them."""
    unknown = " ".join(f"w{n}(x{n}) r{n}(x0)" for n in range(1, many + 1))
    assert check_history(History.parse(f"{unknown} w10(y10) c10"), level(name))


def test_who_was_read_from_cannot_have():
    verdict = check_history(
        History.parse("w1(x1) w1(y1) r1(x0) r2(y1) c2"), level("read-committed")
    )
    assert isinstance(verdict, Forbidden)
    assert {violation.axiom for violation in verdict.violations} == {
        "own write missed",  # if it committed
        "no-aborted-read",  # if it aborted
    }


def test_no_search_finds_them_though_the_catalogue_has_them():
    assert shipped_history(EVERYTHING, level("pl-1")).test.name == "history-write-cycle"


@given(histories(predicates=True, observed=True))
def test_what_is_drawn_has_none(history):
    assert list(find_flaws(history)) == []


@pytest.mark.slow
@given(histories(level="snapshot-isolation", forbidden_by="serializable"))
def test_what_grows_between_levels_has_none(history):
    assert list(find_flaws(history)) == []


@st.composite
def said_twice(draw):
    """Transactions that read anything, as versions and as recorded values; 0 is the state
    before.
    """
    numbers = range(1, draw(st.integers(1, 3)) + 1)
    steps = st.tuples(st.sampled_from("rrw"), st.sampled_from("xy"), st.integers(0, 4))
    versions, values = {f"T{n}": "" for n in numbers}, []
    for n in numbers:
        wrote = set()
        for kind, key, other in draw(st.lists(steps, max_size=5)):
            if kind == "r" or key not in wrote:
                value = other if kind == "r" else n
                versions[f"T{n}"] += f"{kind}({key}{value}) "
                values.append(f"{kind}({'xy'.index(key)},{value},{n},{n})")
                wrote |= {key} if kind == "w" else set()
    return History.from_table(versions), read_plume("\n".join(values), "drawn")


@given(said_twice())
def test_recorded_histories_have_the_same(both):
    written, values = both
    found = [(kind, t.name, why["read"]) for kind, t, why in find_flaws(written)]
    words = [str(operation) for t in written.transactions for operation in t.operations]
    who = [t.name for t in written.transactions for _ in t.operations]
    said = [(flaw.kind, who[flaw.read], words[flaw.read]) for flaw in attribute_reads(values).flaws]
    assert found == said
