"""``d1(x1)``: T1 deleted x; what it left is dead, the last version of x, and matches nothing."""

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.strategies import histories
from isolitmus.model.errors import HistoryError
from isolitmus.model.history import History
from isolitmus.specs import level

BESIDE_A_READER = "r1(P: {seen}) {did}2(x2) r2(y0) w1(y1)"
"""T1 reads by P and writes y; T2 deletes x, or writes it, and has read y before."""


def verdict(text):
    return str(check_history(History.parse(text), level("serializable")))


def test_what_is_dead_is_last():
    """Nobody observed that; of a write it would be open, too."""
    history = History.parse("d1(x1) w2(x2) w3(x3)")
    assert history.undetermined() == ("the order of x2 and x3 was not observed",)
    assert verdict("d1(x1) r2(x1) w2(x2)") == "forbidden"
    assert verdict("w1(x1) r2(x1) w2(x2)") == "allowed"


def test_nobody_matches_what_is_dead():
    """Who saw that a row matched misses its delete; who saw that it did not misses nothing."""
    assert verdict(BESIDE_A_READER.format(seen="x0*", did="d")) == "forbidden"
    assert verdict(BESIDE_A_READER.format(seen="x0", did="d")) == "allowed"
    assert verdict(BESIDE_A_READER.format(seen="x0", did="w")) == "forbidden"


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("d1(x1) w2(x2) c1 a2", ()),
        ("d1(x1) w2(x2) a1 c2", ()),
        ("d1(x1) d2(x2) w3(x3) c1 a2 c3", (("x3", "x1"),)),
        ("d1(x1) d2(x2) w3(x3) c1 c3", ()),  # nobody knows whether T2 deleted it
        ("d1(x1) w2(x2) c1", (("x2", "x1"),)),
        ("w1(x1:1) d1(x1) w2(x2)", (("x2", "x1"),)),
        ("d1(x1) w2(x2) [x2 < x1]", (("x2", "x1"),)),
        ("d1(x1) w2(y2)", ()),
    ],
)
def test_what_comes_before_what_is_dead(text, order):
    history = History.parse(text)
    assert tuple((str(a), str(b)) for a, b in history.order) == order
    assert History.from_table(history.to_table()) == history


def deletable(history):
    """Return the transactions and versions that may be deletes: of a key that one alone wrote,
    matched by nobody.
    """
    keys = [version.object for version in history.versions()]
    return [
        (transaction.name, version)
        for transaction in history.transactions
        for version in transaction.writes
        if keys.count(version.object) == 1
        and f"{version}*" not in str(history.to_table())
        and transaction.status == "committed"
    ]


@st.composite
def with_deletable(draw, tries=12):
    """Draw a history with something that may be a delete: the first of some tries."""
    for _ in range(tries):
        history = draw(histories(keys="xy", predicates=True))
        if deletable(history):
            return history
    return reject()


@pytest.mark.slow
@given(with_deletable())
def test_a_delete_is_a_write_with_what_it_means(history):
    """Of a key that one transaction wrote, so that nothing comes after it."""
    table = history.to_table()
    for name, version in deletable(history):
        told = table | {name: table[name].replace(f"w({version})", f"d({version})")}
        dead = History.from_table(told)
        assert dead.versions() == history.versions()
        assert all(matches is False for (_, v), matches in dead.matches().items() if v == version)
        stated = History.from_table(dead.to_table())
        assert stated == dead


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("d1(x1) d2(x2)", "T2 has d(x2), and T1 has d(x1): an object is deleted once"),
        ("d1(x1:1) w1(x1)", "T1 has d(x1:1): what is dead is the last version, d(x1)"),
        ("d1(x1) r2(P: x1*)", "r(P: x1*): x1 is dead, T1 deleted x; what is dead matches nothing"),
        ("d1(x1) w2(x2) [x1 < x2]", "order x2 < x1 contradicts x1 < x2 before it"),
        ("d1(x2)", "d(x2) of T1: the version x2 is T2's; T1 deletes x1"),
    ],
)
def test_what_no_delete_may_be(text, said):
    with pytest.raises(HistoryError) as refused:
        History.parse(text)
    assert said in str(refused.value)
