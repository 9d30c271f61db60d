"""Reads that nothing explains: which they are, what a frame has of them, and that texts of
histories may have them.
"""

import pytest

from isolitmus.checker.judge.completion import find_flaws, frame_of, frames
from isolitmus.model.history import History

WORDS = {
    "r(x2)": [("thin-air-read", "r(x2) of T1 reads x2, but there is no T2")],
    "r(x0) w(y1) r(x1)": [("thin-air-read", "r(x1) of T1 reads x1, but T1 has no w(x1)")],
    "w(x1) r(x1:1)": [
        ("lost-own-write", "r(x1:1) of T1 reads x1:1 after its own w(x1), which it must see")
    ],
    "r(P: x2*, y0)": [("thin-air-read", "r(P: x2*, y0) of T1 reads x2, but there is no T2")],
    "r(x1) w(x1)": [("future-read", "r(x1) of T1 reads x1 before its own w(x1)")],
    "w(x1) r(x0)": [
        ("lost-own-write", "r(x0) of T1 reads x0 after its own w(x1), which it must see")
    ],
    "w(x1) r(x2)": [
        ("lost-own-write", "r(x2) of T1 reads x2 after its own w(x1), which it must see")
    ],
    "w(x1) r(P: x0*)": [
        ("lost-own-write", "r(P: x0*) of T1 reads x0 after its own w(x1), which it must see")
    ],
    "w(x1:1) r(x1) w(x1)": [
        ("lost-own-write", "r(x1) of T1 reads x1 after its own w(x1:1), which it must see")
    ],
    "w(x1:1) r(x1:1) w(x1) r(x1) r(P: x1*)": [],
    "r(x0) w(x1) r(y0)": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("text", WORDS)
def test_flaws_name_both_operations(text):
    found = find_flaws(History.from_table({"T1": text}))
    assert [(kind, str(why)) for kind, _, why in found] == WORDS[text]


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.parametrize("nodes", [{}, {"reads": True}, {"operations": True}])
def test_a_frame_has_them_whatever_its_nodes(text, nodes):
    history = History.from_table({"T1": text})
    frame = frame_of(history, **nodes)
    assert [edge.why for flaw in frame.flaws for edge in flaw.cycle] == [w for _, w in WORDS[text]]
    assert all(edge.why in str(frame) for flaw in frame.flaws for edge in flaw.cycle)
    assert [flaw["why"] for flaw in frame.to_json()["flaws"]] == [w for _, w in WORDS[text]]
    assert History.from_table(history.to_table()) == history


def test_what_nobody_wrote_gives_no_dependency():
    """Neither from a transaction of that number, nor to who wrote the object."""
    frame = frame_of(History.parse("w1(x1) w3(y3) r2(x3) r2(P: x3*) c1 c2 c3"), operations=True)
    pairs = {name: relation.pairs() for name, relation in frame.relations.items()}
    about = [name for name, found in pairs.items() if any(i == 1 or j == 1 for i, j in found)]
    assert about == ["so", "in"]  # after what was there before, and with its operations
    assert {frame.nodes[i] for i, _ in pairs["in"]} >= {"T2 r(x3)", "T2 r(P: x3)"}


def test_what_did_not_commit_has_none():
    found = list(frames(History.parse("w1(x1) r1(x0) w2(y2) c2")))
    assert [len(frame.flaws) for frame in found] == [1, 0]  # it committed, or it aborted
    assert not frame_of(History.parse("r1(x2) a1")).flaws


def test_on_one_line_a_version_that_nobody_wrote_may_be_read():
    assert History.parse("w1(x1) r2(x3)").to_table() == {"T1": "w(x1)", "T2": "r(x3)"}
    assert History.parse("w1(x1:1) w1(x1) r2(x1:2)").to_table()["T2"] == "r(x1:2)"
