"""Levels on histories: the literature's examples, and what was not observed (laws:
test_levels.py).
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.render.history_notation import adya_notation
from isolitmus.checker.strategies import histories
from isolitmus.model.errors import HistoryError
from isolitmus.model.history import History
from isolitmus.model.verdict import Allowed, Forbidden, Needs, Unknown
from isolitmus.specs.files.spec_catalogue import level
from isolitmus.specs.files.spec_reader import read_spec

SER, WRITE_SER, SI = "serializable", "write-serializable", "snapshot-isolation"

CLASSICS = {  # Berenson et al. 1995, Adya 2000, Fekete et al. 2004; holds at
    "serial": ("r1(x0) w1(x1) c1 r2(x1) w2(x2) c2", {SER, WRITE_SER, SI}),
    "write skew": ("r1(x0) r1(y0) r2(x0) r2(y0) w1(x1) w2(y2) c1 c2", {SI}),
    "lost update": ("r1(x0) r2(x0) w1(x1) w2(x2) c1 c2", set()),
    "dirty read": ("w1(x1) r2(x1) a1 c2", {WRITE_SER}),
    "dirty read of a writer": ("w1(x1) r2(x1) w2(y2) a1 c2", set()),
    "circular flow": ("w1(x1) w2(y2) r1(y2) r2(x1) c1 c2", set()),
    "dirty write": ("w1(x1) w2(x2) w2(y2) w1(y1) c1 c2 [x1 < x2, y2 < y1]", set()),
    "read skew": ("r1(x0) w2(x2) w2(y2) c2 r1(y2) c1", {WRITE_SER}),
    "fuzzy read": ("r1(x0) w2(x2) c2 r1(x2) c1", {WRITE_SER}),
    "long fork": ("w1(x1) w2(y2) r3(x1) r3(y0) r4(x0) r4(y2)", {WRITE_SER}),
    "read-only anomaly": (
        "r2(x0) r2(y0) r1(y0) w1(y1) c1 r3(x0) r3(y1) c3 w2(x2) c2",
        {WRITE_SER, SI},
    ),
    "phantom": ("r1(P: x0*, y0* | z2*) w2(z2) w2(s2) c2 r1(s2) c1", {WRITE_SER}),
    "no phantom": ("r1(P: x0*, y0* | z2) w2(z2) w2(s2) c2 r1(s2) c1", {SER, WRITE_SER, SI}),
    "predicate write skew": (
        "r1(P: x0* | y2*, z1*) r2(P: x0*) w1(z1) w2(y2) c1 c2",
        {SI},
    ),
    "the other order": ("w1(x1) w2(x2) r3(x1) c1 c2 c3", {SER, WRITE_SER, SI}),
}


@pytest.mark.parametrize("name", CLASSICS)
@pytest.mark.parametrize("at", [SER, WRITE_SER, SI])
def test_classics(name, at):
    text, holds = CLASSICS[name]
    assert bool(check_history(History.parse(text), level(at))) == (at in holds)


def test_the_example_of_the_interface():
    history = History.from_table(
        {
            "sessions": ["T1", "T2"],
            "T1": "r(x0) w(y1)",
            "T2": "r(P: x0*, y0) w(x2)",
            "order": ["x0 < x2"],
            "aborted": [],
        }
    )
    assert check_history(history, level(SI))
    verdict = check_history(history, level(SER))
    assert [(e.source, e.kind, e.target) for e in verdict.violations[0].cycle] == [
        ("T1", "rw", "T2"),
        ("T2", "rw", "T1"),
    ]


def test_what_a_session_forbids():
    stale = "w1(x1) r2(x0) c1 c2"
    assert check_history(History.parse(stale), level(SER)) == Allowed(("T2", "T1"))
    together = History.parse(stale, ["T1 T2"])
    verdict = check_history(together, level(SER))
    assert [e.why for e in verdict.violations[0].cycle] == [
        "T1 comes before T2 in their session",
        "T2 read x0 and T1 wrote the next version x1",
    ]
    assert not check_history(together, level(SI))
    assert check_history(together, level(WRITE_SER))


def test_the_violation_that_every_completion_has_is_preferred():
    history = History.parse("r1(y0) r1(z0) r2(y0) r2(z0) w1(x1) w1(y1) w2(x2) w2(z2)")
    verdict = check_history(history, level(SER))
    (violation,) = verdict.violations
    assert all("was not observed" not in edge.why for edge in violation.cycle)
    tangled = History.parse("w1(x1) w2(x2) w1(y1) w2(y2) r3(x1) r3(y2) r4(x2) r4(y1)")
    verdict = check_history(tangled, level(SER))
    assert [tuple(map(str, violation.supposing)) for violation in verdict.violations] == [
        ("x1 came before x2", "y1 came before y2"),
        ("x1 came before x2", "y2 came before y1"),
        ("x2 came before x1", "y1 came before y2"),
    ]
    assert verdict.others == 1


def test_unknown_ends_are_supposed_in_the_favour_of_the_history():
    needed = History.parse("w1(x1) r2(x1) c2")
    assert check_history(needed, level(SER)) == Allowed(("T1", "T2"))
    harmful = History.parse("r1(x0) w1(x1) r2(x0) w2(x2) c2")
    assert check_history(harmful, level(SER)) == Allowed(("T2",))


def test_answers_that_are_no_verdicts():
    unordered = History.parse("w1(x1) w2(x2)")
    plain = read_spec('"Mine" acyclic wr | ww as order', "mine")
    assert check_history(unordered, plain) == Needs(("version order",))
    assert check_history(unordered, read_spec('"Mine" acyclic so | wr as order', "mine"))
    assert check_history(History.parse("w1(x1) w2(x2) [x1 < x2]"), plain)
    assert check_history(unordered, level("log-serializable")) == Needs(("log",))
    never = read_spec('"Never" with ww from versions irreflexive ww? as never', "never")
    assert isinstance(check_history(unordered, never), Forbidden)
    assert check_history(unordered, never, limit=1) == Unknown(
        "none of the first 1 completions is allowed, and there are more"
    )
    by_predicate = History.parse("w1(x1) w2(x2) r3(P: x1*)")
    dirty = read_spec('"Mine" empty wr as x', "mine")
    assert check_history(by_predicate, dirty) == Needs(("version order",))


@given(histories(predicates=True, observed=True), st.sets(st.integers(1, 4)))
def test_a_history_in_one_line_is_read(drawn, aborted):
    """Each read stands after the write that it saw, or the transactions apart."""
    table = drawn.to_table()
    if "order" not in table:
        table["aborted"] = [f"T{n}" for n in sorted(aborted) if f"T{n}" in table]
    history = History.from_table(table)
    line = re.split(r", (?=T\d)", adya_notation(history))[0]
    assert History.parse(line, table.get("sessions", ())).to_table() == history.to_table()


def test_transactions_that_stand_apart():
    cycle = History.parse("T1: r(x2) w(y1); T2 (aborted): r(y1) w(x2) r(P: x2*, y0)")
    assert adya_notation(cycle) == "T1: r(x2) w(y1); T2 (aborted): r(y1) w(x2) r(P: x2*, y0)"
    for text, problem in {
        "T1: r(x2); T1: w(x1)": "T1 stands there twice",
        "T1: r(x2); r2(x0)": "'r2(x0)' is not a transaction; write T1: r(x2)",
        "T1: r1(x2)": "'r1(x2)' is not an operation",
    }.items():
        with pytest.raises(HistoryError, match=re.escape(problem)):
            History.parse(text)
