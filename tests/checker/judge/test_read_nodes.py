"""Reads as nodes: which there are, what relates them and why (laws: test_history.py)."""

from isolitmus.checker.judge.completion import frame_of
from isolitmus.model.history import History


def pairs(frame, kind):
    return [(frame.nodes[i], frame.nodes[j]) for i, j in frame.relations[kind].pairs()]


FRACTURED = frame_of(History.parse("w1(x1) w1(y1) r2(x1) r2(y0) r3(y1)", ["T1 T3"]), reads=True)


def test_nodes():
    assert FRACTURED.nodes == ("T1", "T2", "T3", "T0", "T2 r(x1)", "T2 r(y0)", "T3 r(y1)")
    assert FRACTURED.transactions == 3
    assert [FRACTURED.is_operation(i) for i in range(7)] == [False] * 4 + [True] * 3
    assert FRACTURED.sets == {"Writer": 0b001, "Reader": 0b110, "Aborted": 0, "Initial": 0b1000}


def test_relations():
    assert pairs(FRACTURED, "rf") == [
        ("T1", "T2 r(x1)"),
        ("T1", "T3 r(y1)"),
        ("T0", "T2 r(y0)"),
    ]
    assert pairs(FRACTURED, "po") == [("T2 r(x1)", "T2 r(y0)")]
    assert pairs(FRACTURED, "in") == [
        ("T2 r(x1)", "T2"),
        ("T2 r(y0)", "T2"),
        ("T3 r(y1)", "T3"),
    ]
    assert pairs(FRACTURED, "rival") == [
        ("T1", "T2 r(y0)"),
        ("T0", "T2 r(x1)"),
        ("T0", "T3 r(y1)"),
    ]
    assert pairs(FRACTURED, "so") == [("T1", "T3"), ("T0", "T1"), ("T0", "T2"), ("T0", "T3")]
    assert pairs(FRACTURED, "wr") == [("T1", "T2"), ("T1", "T3"), ("T0", "T2")]


def test_reasons():
    found = {
        (k, FRACTURED.nodes[i], FRACTURED.nodes[j]): str(w)
        for (k, i, j), w in FRACTURED.reasons.items()
    }
    assert found["rf", "T1", "T2 r(x1)"] == "T2 read x1, which T1 wrote"
    assert found["rf", "T0", "T2 r(y0)"] == "T2 read y0, which T0 wrote"
    assert found["po", "T2 r(x1)", "T2 r(y0)"] == "r(x1) comes before r(y0) in T2"
    assert found["in", "T2 r(x1)", "T2"] == "r(x1) is in T2"
    assert found["rival", "T1", "T2 r(y0)"] == "T1 wrote y1"
    assert found["so", "T0", "T1"] == "T0 is the state before T1"


def test_a_predicate_read_is_a_node_for_each_object_of_its_version_set():
    history = History.parse("r1(P: x0* | x2*, x3, y2) w2(x2) w2(y2) w3(x3) r1(z0) [x2 < x3]")
    frame = frame_of(history, reads=True)
    assert frame.nodes[4:] == ("T1 r(P: x0)", "T1 r(P: y0)", "T1 r(z0)")
    assert pairs(frame, "rival") == [("T3", "T1 r(P: x0)")]
    assert pairs(frame, "po") == [("T1 r(P: x0)", "T1 r(z0)"), ("T1 r(P: y0)", "T1 r(z0)")]
    why = "T3 wrote x3, which changes what matches P"
    assert str(frame.reasons["rival", 2, 4]) == why
    assert str(frame.reasons["rf", 3, 4]) == "T1 read P with x0, which T0 wrote"


def test_who_reads_its_own_version_reads_nothing_from_outside():
    history = History.parse("r1(x0) w1(x1) r1(x1) r1(P: x1*, y0)")
    assert frame_of(history, reads=True).nodes == ("T1", "T0", "T1 r(x0)", "T1 r(P: y0)")


def test_reading_twice_is_two_reads():
    frame = frame_of(History.parse("w1(x1) r2(x0) r2(x1) r2(x0)"), reads=True)
    assert frame.nodes[3:] == ("T2 r(x0)", "T2 r(x1)", "T2 r(x0) (2)")


def test_reads_of_the_aborted_are_nodes_without_pairs():
    frame = frame_of(History.parse("w1(x1) r2(x1) r3(x1) w3(x3) a1 a2 c3"), reads=True)
    assert frame.nodes[4:] == ("T2 r(x1)", "T3 r(x1)")
    assert pairs(frame, "rf") == [("T1", "T3 r(x1)")]
    assert pairs(frame, "in") == [("T3 r(x1)", "T3")]
    assert pairs(frame, "rival") == [("T0", "T3 r(x1)")]
    assert pairs(frame, "so") == [("T0", "T3")]
