"""Histories: the notation, the defects, completions, and Adya's dependencies."""

import re
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isolitmus.checker.judge.completion import completions, frame_of, frames, read_versions
from isolitmus.checker.judge.read_nodes import READ_RELATIONS
from isolitmus.model.errors import HistoryError
from isolitmus.model.history import History
from isolitmus.model.operations import ItemRead, Transaction, Version, Write
from isolitmus.model.relation import Relation, bits


def pairs(history, kind):
    frame = frame_of(history)
    return [(frame.nodes[i], frame.nodes[j]) for i, j in frame.relations[kind].pairs()]


def why(history, kind, first, second):
    frame = frame_of(history)
    return str(frame.reasons[kind, frame.nodes.index(first), frame.nodes.index(second)])


@st.composite
def tables(draw):
    """Valid [history] tables of up to four transactions over two objects and one predicate."""
    numbers = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True).map(sorted))
    writes = {n: draw(st.sets(st.sampled_from("xy"))) for n in numbers}
    versions = {o: [0, *(n for n in numbers if o in writes[n])] for o in "xy"}
    bits = {f"{o}{n}": draw(st.booleans()) for o in "xy" for n in versions[o]}
    parts = {(n, o): draw(st.integers(0, 1)) for n in numbers for o in writes[n]}
    ends = {
        n: draw(st.sampled_from(["committed", "committed", "aborted", "unknown"])) for n in numbers
    }
    table = {}
    for n in numbers:
        words = []
        for name in draw(st.lists(st.sampled_from("xy"), max_size=2)):
            writer = draw(st.sampled_from([v for v in versions[name] if v != n]))
            some = parts.get((writer, name), 0) and draw(st.booleans())
            words.append(f"r({name}{writer}{':1' if some else ''})")
        if draw(st.booleans()):
            seen = [f"{o}{draw(st.sampled_from([v for v in versions[o] if v != n]))}" for o in "xy"]
            others = [v for v in bits if v not in seen and draw(st.booleans())]
            texts = [", ".join(v + "*" * bits[v] for v in some) for some in (seen, others)]
            words.append(f"r(P: {' | '.join(texts) if others else texts[0]})")
        for name in sorted(writes[n]):
            halfway = range(1, parts[n, name] + 1)
            words += [*(f"w({name}{n}:{k})" for k in halfway), f"w({name}{n})"]
        table[f"T{n}"] = " ".join(words)
    for end in ("aborted", "unknown"):
        names = [f"T{n}" for n in numbers if ends[n] == end]
        if names:
            table[end] = names
    order = [n for n in numbers if "x" in writes[n] and ends[n] != "aborted"]
    if len(order) > 1 and draw(st.booleans()):
        chain = draw(st.permutations(order))
        table["order"] = [f"x{a} < x{b}" for a, b in pairwise(chain)]
    if draw(st.booleans()):
        table["sessions"] = [" ".join(f"T{n}" for n in draw(st.permutations(numbers)))]
    if draw(st.booleans()):
        words = draw(schedules({n: table[f"T{n}"].count("(") for n in numbers}))
        if words:
            table["schedule"] = re.sub(r"(T\d)\.start \1\.end", r"\1", " ".join(words))
    if draw(st.booleans()):
        names = draw(st.sets(st.sampled_from(["A", "Read-Committed", "S_2"])))
        who = st.lists(st.sampled_from([f"T{n}" for n in numbers]), unique=True)
        table |= {"sets": {name: draw(who) for name in names}} if names else {}
    return table


@st.composite
def schedules(draw, counts):
    """What began, was done and ended: all of it, or without the operations, or without some."""
    single = draw(st.booleans())
    places = {
        n: [".start", *(f"[{k}]" for k in range(1, count + 1) if single), ".end"]
        for n, count in counts.items()
    }
    turns = draw(st.permutations([n for n, row in places.items() for _ in row]))
    words = [f"T{n}{places[n].pop(0)}" for n in turns]
    return words if draw(st.booleans()) else [word for word in words if draw(st.integers(0, 5))]


@pytest.mark.slow
@given(tables())
def test_a_table_reads_as_it_prints(table):
    history = History.from_table(table)
    assert History.from_table(history.to_table()) == history
    assert history.to_table() == table


def in_turn(history):
    """Its operations on one line, each version written before another transaction reads it; None if
    that cannot be.
    """
    left = {t.number: list(t.operations) for t in history.transactions}
    written, words = set(), []
    while any(left.values()):
        for number, operations in left.items():
            seen = read_versions(operations[0]) if operations else None
            if seen is not None and all(v.writer in (0, number) or v in written for v in seen):
                operation = operations.pop(0)
                written |= {operation.version} if isinstance(operation, Write) else set()
                words.append(re.sub(r"^([rw])", rf"\g<1>{number}", str(operation)))
                break
        else:
            return None
    return words


@pytest.mark.slow
@given(tables())
def test_one_line_says_what_a_table_says(table):
    history = History.from_table(table)
    words = in_turn(history)
    assume(words is not None)  # two that read from one another: only a table has that
    assume(all(t.operations or t.status != "unknown" for t in history.transactions))
    words += [f"{t.status[0]}{t.number}" for t in history.transactions if t.status != "unknown"]
    words += [f"[{one}]" for one in table.get("order", [])]
    beside = {name: table[name] for name in ("sets", "unknown", "schedule") if name in table}
    assert History.parse(" ".join(words), table.get("sessions", ()), **beside) == history


@given(tables())
def test_completions_are_distinct_and_one_if_determined(table):
    history = History.from_table(table)
    found = list(completions(history))
    assert len({(c.committed, tuple(sorted(c.orders.items()))) for c in found}) == len(found)
    if not history.undetermined():
        assert len(found) == 1
    else:
        with pytest.raises(HistoryError, match="does not determine a frame: the "):
            frame_of(history)
    if history.unordered():
        assert len(found) > 1


@pytest.mark.slow
@given(tables())
def test_relations_hold_between_committed_transactions(table):
    for completion in completions(History.from_table(table)):
        frame = completion.frame()
        aborted = frame.sets["Aborted"]
        for kind, relation in frame.relations.items():
            for i, j in relation.pairs():
                assert i != j
                assert not aborted >> j & 1
                assert kind.startswith("wr") or not aborted >> i & 1
                assert str(frame.reasons[kind, i, j])
        assert frame == completion.frame(reasons=True)
        assert frame.relations == completion.frame(reasons=False).relations


@pytest.mark.slow
@given(tables())
def test_the_transactions_stay_as_they_were(table):
    for completion in completions(History.from_table(table)):
        plain, frame = completion.frame(), completion.frame(reads=True)
        n = len(plain.nodes)
        assert frame.nodes[:n] == plain.nodes
        assert frame.transactions == n
        assert len(set(frame.nodes)) == len(frame.nodes)
        assert frame.sets == plain.sets | {"Initial": 1 << n}
        assert frame.relations == completion.frame(reasons=False, reads=True).relations
        among = (1 << n) - 1
        for kind, relation in plain.relations.items():
            assert [row & among for row in frame.relations[kind].rows[:n]] == list(relation.rows)
            assert set(plain.reasons.items()) <= set(frame.reasons.items())


@pytest.mark.slow
@given(tables())
def test_every_read_of_the_committed_is_in_one_and_from_one(table):
    for frame in frames(History.from_table(table), reads=True):
        initial, among = frame.transactions, (1 << frame.transactions + 1) - 1
        reads = range(initial + 1, len(frame.nodes))
        rf, into, po, rival = (frame.relations[name] for name in ("rf", "in", "po", "rival"))
        for kind in READ_RELATIONS:
            assert all(str(frame.reasons[kind, i, j]) for i, j in frame.relations[kind].pairs())
        for read in reads:
            readers = list(bits(into.rows[read]))
            sources = list(bits(rf.inverse().rows[read]))
            rivals = list(bits(rival.inverse().rows[read]))
            assert len(readers) == len(sources) <= 1
            if readers:
                assert not frame.sets["Aborted"] >> readers[0] & 1
                assert not {*rivals} & {*readers}
                overwritten = ":1" in frame.nodes[read].partition("r(")[2].replace("P: ", "")
                assert bool({*rivals} & {*sources}) <= overwritten
            assert all(into.rows[later] == into.rows[read] for later in bits(po.rows[read]))
        assert po.plus() == po
        assert po.acyclic()
        assert all(not row & ~among for row in (rf.inverse() | rival.inverse()).rows)


def test_linear_notation_tells_when_operations_were():
    """Of who did all at once it says that, and no more."""
    history = History.parse("b1 w1(x1) b2 r2(x1) c2 r1(y0) c1 b3 r3(x1) c3")
    assert history.to_table()["schedule"] == "T1.start T1[1] T2 T1[2] T1.end T3"
    assert History.from_table(history.to_table()) == history


@pytest.mark.slow
@given(tables())
def test_all_operations_are_nodes_in_the_order_of_their_transaction(table):
    history = History.from_table(table)
    for completion in completions(history):
        frame, fewer = completion.frame(operations=True), completion.frame(reads=True)
        into, po, loc = (frame.relations[name] for name in ("in", "po", "loc"))
        beside = range(frame.transactions + 1, len(frame.nodes))
        kinds = [frame.sets[name] for name in ("ItemRead", "PredicateRead", "Write")]
        for node in beside:
            assert len(list(bits(into.rows[node]))) == 1
            assert sum(kind >> node & 1 for kind in kinds) == 1
        assert not any(kind & (1 << frame.transactions + 1) - 1 for kind in kinds)
        assert frame.sets["Write"].bit_count() == sum(len(t.written) for t in history.transactions)
        assert po.acyclic()
        assert po.plus() == po
        assert loc == loc.inverse()
        assert all(i != j for i, j in loc.pairs())
        for kind in ("rf", "rival", "so", "wr", "ww", "rw"):
            assert named(frame, kind) == named(fewer, kind)
        for kind in ("in", "po"):
            assert named(fewer, kind) <= named(frame, kind)
        for kind in ("fr", "wr-read", "loc", "in", "po"):
            assert all(str(frame.reasons[kind, i, j]) for i, j in frame.relations[kind].pairs())


def named(frame, kind):
    return {(frame.nodes[i], frame.nodes[j]) for i, j in frame.relations[kind].pairs()}


@pytest.mark.slow
@given(tables())
def test_rw_and_wr_read_by_read(table):
    for frame in frames(History.from_table(table), operations=True):
        made, items = frame.relations, frame.sets["ItemRead"]
        assert (made["wr-read"] @ made["in"]).pairs() == made["wr"].pairs()
        across = (made["in"].inverse() @ made["fr"]).pairs()
        assert across == made["rw"].pairs()
        by_item = Relation.identity(len(frame.nodes), items) @ made["fr"]
        assert (made["in"].inverse() @ by_item).pairs() == made["rw-item"].pairs()


@pytest.mark.slow
@given(tables())
def test_operations_are_in_time_as_the_schedule_says(table):
    history = History.from_table(table)
    moments = history.moments()
    for completion in completions(history):
        frame = completion.frame(operations=True)
        if moments is None:
            assert "time" not in frame.relations
            continue
        made, n = frame.relations, frame.transactions
        time, into, po = made["time"], made["in"], made["po"]
        assert time.plus() == time
        assert time.acyclic()
        assert not (po | into) - time
        assert not time.rows[n] | time.inverse().rows[n]
        if "rt" in made:
            assert not (made["rt"] | made["rt"] @ into.inverse()) - time


def test_linear_notation():
    history = History.parse("r1(x0) w2(x2) w1(x1) r3(P: x0*, y0 | x1) c1 a2 [x0 << x1]", ["T3 T1"])
    assert [t.status for t in history.transactions] == ["committed", "aborted", "unknown"]
    assert history.transactions[0] == Transaction(
        1, (ItemRead(Version("x", 0)), Write(Version("x", 1)))
    )
    assert history.operations == 4
    assert history.to_table() == {
        "sessions": ["T3 T1"],
        "T1": "r(x0) w(x1)",
        "T2": "w(x2)",
        "T3": "r(P: x0*, y0 | x1)",
        "order": ["x0 < x1"],
        "aborted": ["T2"],
        "unknown": ["T3"],
    }


def test_without_any_end_all_committed():
    history = History.parse("w1(x1) r2(x1)")
    assert [t.status for t in history.transactions] == ["committed", "committed"]


def test_item_dependencies():
    history = History.parse("r1(x0) w2(x2) r3(x2) w3(x3) r4(x2) [x2 < x3]")
    assert pairs(history, "wr") == [("T2", "T3"), ("T2", "T4")]
    assert pairs(history, "ww") == [("T2", "T3")]
    assert pairs(history, "rw") == [("T1", "T2"), ("T4", "T3")]
    assert why(history, "wr", "T2", "T4") == "T4 read x2, which T2 wrote"
    assert why(history, "ww", "T2", "T3") == "T3 wrote x3, the next version after x2 of T2"
    assert why(history, "rw", "T4", "T3") == "T4 read x2 and T3 wrote the next version x3"


def test_own_writes_give_no_dependencies():
    history = History.parse("w1(x1) r1(x1) w2(x2) [x1 < x2]")
    assert pairs(history, "wr") == pairs(history, "rw") == []


def test_sessions_are_orders_of_committed_transactions():
    history = History.from_table(
        {"T1": "", "T2": "", "T3": "", "sessions": ["T3 T2 T1"], "aborted": ["T2"]}
    )
    assert pairs(history, "so") == [("T3", "T1")]
    assert why(history, "so", "T3", "T1") == "T3 comes before T1 in their session"


def test_sets():
    history = History.parse("r1(x0) w2(x2) w3(x3) c1 c2 a3")
    assert frame_of(history).sets == {"Reader": 0b001, "Writer": 0b110, "Aborted": 0b100}


def test_predicate_dependencies_follow_the_match_bits():
    """Adya's example of a phantom: z2 is born while T1 has read by predicate."""
    phantom = "r1(P: x0*, y0* | z2{}) w2(z2) c2 c1"
    assert pairs(History.parse(phantom.format("*")), "rw") == [("T1", "T2")]
    assert pairs(History.parse(phantom.format("")), "rw") == []
    assert (
        why(History.parse(phantom.format("*")), "rw", "T1", "T2")
        == "T1 read P without z2 of T2, which changes what matches"
    )


def test_predicate_edges_only_where_matches_change():
    history = History.parse(
        "w1(x1) w2(x2) w3(x3) r4(P: x2* | x0, x1*, x3*) [x1 < x2 < x3] w5(x5) r6(P: x5) [x3 < x5]"
    )
    assert pairs(history, "wr") == [("T1", "T4"), ("T1", "T6"), ("T5", "T6")]
    assert pairs(history, "rw") == [("T4", "T5")]
    assert why(history, "wr", "T1", "T4") == "T4 read P after x1 of T1, which changes what matches"


def test_versions_without_a_stated_bit_count_as_changes():
    history = History.parse("r1(P: x0*, y0) w2(x2) w2(y2)")
    assert pairs(history, "rw") == [("T1", "T2")]
    assert history.assumptions() == ("x2 changes what matches P", "y2 changes what matches P")
    stated = History.parse("r1(P: x0*, y0 | x2*, y2) w2(x2) w2(y2)")
    assert pairs(stated, "rw") == []
    assert stated.assumptions() == ()
    assert History.parse("r1(P: x0*) w1(x1) w2(z2)").assumptions() == ()


def test_reads_of_what_aborted():
    history = History.parse("w1(x1) r2(x1) w2(x2) a1 r3(P: x1*) c2 c3")
    assert pairs(history, "wr") == [("T1", "T2"), ("T1", "T3")]
    assert pairs(history, "ww") == pairs(history, "rw") == []


def test_completions_in_a_fixed_order():
    history = History.parse("w1(x1) w2(x2) w3(x3) w3(y3) c1 c2 [x2 < x1]")
    assert [(sorted(c.committed), dict(c.orders)) for c in completions(history)] == [
        ([1, 2, 3], {"x": (2, 1, 3), "y": (3,)}),
        ([1, 2, 3], {"x": (2, 3, 1), "y": (3,)}),
        ([1, 2, 3], {"x": (3, 2, 1), "y": (3,)}),
        ([1, 2], {"x": (2, 1)}),
    ]
    assert history.undetermined() == (
        "the end of T3 was not observed",
        "the order of x1 and x3 was not observed",
        "the order of x2 and x3 was not observed",
    )
    first = next(frames(history))
    assert (
        str(first.reasons["ww", 1, 0])
        == "T1 wrote x1, the next version after x2 of T2, in a version order that was not observed"
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"T1": "r(P: x0* | y2)"}, "r(P: x0* | y2) of T1 says whether y2 matches, but T2 has no w(y2)"),
        ({"T1": "w(x2)"}, "w(x2) of T1: the version x2 is T2's; T1 writes x1"),
        ({"T1": "w(x1) w(x1)"}, "T1 has w(x1) and then w(x1); the last version that it wrote is x1, those before it are x1:1, x1:2, …"),
        ({"T1": "r(P: x0*, x2) ", "T2": "w(x2)"}, "r(P: x0*, x2) of T1 saw both x0 and x2; a version set has one version of each object"),
        ({"T1": "r(P: x0*)", "T2": "r(P: x0)"}, "r(P: x0*) of T1 and r(P: x0) of T2 differ on whether x0 matches P"),
        ({"T1": "r(P: x0* | x0)"}, "r(P: x0* | x0) of T1 and r(P: x0* | x0) of T1 differ on whether x0 matches P"),
        ({"T1": "w(x1)", "T2": "w(x2)", "order": ["x1 < x2", "x2 < x1"]}, "order x2 < x1 contradicts x1 < x2 before it"),
        ({"T1": "w(x1)", "order": ["x1 < x0"]}, "order x1 < x0 puts x1 before what was there before the history"),
        ({"T1": "w(x1)", "order": ["x1 < x1"]}, "order x1 < x1 contradicts x1 < x1 before it"),
        ({"T1": "w(x1)", "order": ["x1 < x3"]}, "order x1 < x3 names x3, but T3 has no w(x3)"),
        ({"T1": "w(x1)", "order": ["x0 < x1"], "aborted": ["T1"]}, "order x0 < x1 names x1, but T1 aborted"),
        ({"T1": "w(x1)", "order": ["x0 < y1"]}, "order 'x0 < y1' compares x0 with y1: they are versions of two objects"),
        ({"T1": "w(x1)", "order": ["x0"]}, "order 'x0' is not a chain of versions; write x0 < x2 < x1"),
        ({"T1": "", "T2": "", "sessions": ["T1 T2", "T2"]}, "T2 is in sessions 1 and 2; a transaction is in one session, once"),
        ({"T1": "", "sessions": ["T1 T3"]}, "session 1 has T3, which does nothing here; known: T1"),
        ({"T1": "", "sessions": ["T1 b"]}, "sessions: 'b' names no transaction; names are T1, T2, …"),
        ({"T1": "", "aborted": ["T2"]}, "aborted: there is no transaction T2; known: T1"),
        ({"T1": "", "aborted": ["T1"], "unknown": ["T1"]}, "T1 is both aborted and unknown"),
        ({"T1": "", "aborted": ["T1", "T1"]}, "T1 is aborted twice"),
        ({"T1": "", "sets": {"Trusted": ["T2"]}}, "sets.Trusted has T2, which does nothing here; known: T1"),
        ({"T1": "", "sets": {"Trusted": ["T1", "T1"]}}, "sets.Trusted has T1 twice"),
        ({"T1": "", "sets": {"Trusted": "T1"}}, "sets.Trusted is 'T1'; expected a list of strings"),
        ({"T1": "", "sets": {"Trusted": ["b"]}}, "sets.Trusted: 'b' names no transaction; names are T1, T2, …"),
        ({"T1": "", "sets": {"trusted": ["T1"]}}, "sets: 'trusted' is not a name of a set; it begins with a capital, as Trusted"),
        ({"T1": "", "sets": {"Writer": ["T1"]}}, "sets: 'Writer' is a base set of every spec; give it another name"),
        ({"T1": "", "sets": ["T1"]}, "sets is ['T1']; expected names of sets, { Trusted = ['T1'] }"),
        ({"T0": "w(x0)"}, "history: 'T0' names no transaction; names are T1, T2, …"),
        ({"T1": "", "abort": ["T1"]}, "history has no key 'abort'; did you mean 'aborted'?"),
        ({"T1": "", "aborted": "T1"}, "aborted is 'T1'; expected a list of strings"),
        ({"T1": ["r(x0)"]}, "T1 is ['r(x0)']; expected a string such as 'r(x0) w(x1)'"),
    ],
)  # fmt: skip
def test_defects_name_both_operations(table, message):
    with pytest.raises(HistoryError) as error:
        History.from_table(table)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("r1(x0) q1(x0)", 8, "'q1(x0)' is not an operation; use r1(x0), w1(x1), d1(x1), r1(P: x0*, y0 | x1), b1, c1, a1 or an order such as [x0 < x1]"),
        ("r1(x0) w1(x)", 11, "'x' is not a version; write an object and a transaction's number, x0"),
        ("r1(P: x0*, Y)", 11, "'Y' is not a version; write an object and a transaction's number, x0"),
        ("r1(p: x0)", 4, "'p: x0' is not a predicate read; write P: x0*, y0 | x1"),
        ("c1 r1(x0)", 4, "'r1(x0)' comes after T1 has ended"),
        ("w0(x0)", 1, "'w0(x0)' has no transaction; T0 is what was there before the history"),
        ("r2(x1) w1(x1)", 1, "'r2(x1)' reads x1 before w1(x1)"),
    ],
)  # fmt: skip
def test_errors_in_the_linear_notation_show_the_place(text, column, message):
    with pytest.raises(HistoryError) as error:
        History.parse(text)
    first, line, caret = str(error.value).split("\n")
    assert first == f"history, column {column}: {message}"
    assert line == f"  {text}"
    assert caret == " " * (column + 1) + "^"


def test_errors_in_a_table_show_the_place():
    with pytest.raises(HistoryError) as error:
        History.from_table({"T1": "r(x0) r2(x0)"})
    assert (
        str(error.value)
        == "T1, column 7: 'r2(x0)' is not an operation; use r(x0), w(x1), d(x1) or r(P: x0*, y0 |"
        " x1)\n  r(x0) r2(x0)\n        ^"
    )


def test_transactions_of_the_constructor_are_in_order():
    with pytest.raises(
        HistoryError, match="T1 comes after T2; transactions are in order, each once"
    ):
        History((Transaction(2, ()), Transaction(1, ())))
    with pytest.raises(HistoryError, match="T0 is what was there before the history"):
        History((Transaction(0, ()),))
    with pytest.raises(HistoryError, match="order x0 < y1 compares versions of two objects"):
        x, y = Version("x", 0), Version("y", 1)
        History((Transaction(1, (Write(y),)),), (), ((x, y),))


def test_an_intermediate_read():
    """G1b: who reads what its writer overwrote has missed what came next."""
    history = History.parse("w1(x1:1) w1(x1:2) w1(x1) r2(x1:1) c1 c2")
    assert pairs(history, "intermediate") == pairs(history, "wr") == [("T1", "T2")]
    assert pairs(history, "rw") == [("T2", "T1")]
    assert (
        why(history, "intermediate", "T1", "T2")
        == "T2 read x1:1, an intermediate version that T1 itself overwrote"
    )
    assert why(history, "rw", "T2", "T1") == "T2 read x1:1 and T1 wrote the next version x1:2"


def test_what_its_own_writer_reads_halfway_is_nothing():
    history = History.parse("w1(x1:1) r1(x1:1) w1(x1) r1(x1) c1")
    assert not frame_of(history).relations["intermediate"].pairs()
    assert not frame_of(history).relations["wr"].pairs()


def test_of_what_aborted_only_that_is_said():
    frame = frame_of(History.parse("w1(x1:1) w1(x1) r2(x1:1) a1 c2"))
    assert not frame.relations["intermediate"].pairs()
    assert frame.relations["wr"].pairs() == [(0, 1)]


@pytest.mark.parametrize("name", ["x", "k7", "row_12", "k7_", "a1b2", "_"])
def test_names_with_digits_are_told_from_numbers(name):
    version = Version(name, 12, 3)
    text = f"w12({Version(name, 12, 1)}) w12({Version(name, 12)}) r3({Version(name, 12, 1)})"
    reader, writer = History.parse(text.replace("r3", "c12 r3")).transactions
    assert reader.operations[0].version == Version(name, 12, 1)
    assert writer.writes == (Version(name, 12),)
    assert str(version).startswith(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w1(x1) w1(x1)", "T1 has w(x1) and then w(x1); the last version that it wrote is x1, those before"),
        ("w1(x1) w1(x1:1)", "T1 has w(x1) and then w(x1:1)"),
        ("w1(x1:2) w1(x1)", "T1 has w(x1:2), which is its version 1 of x"),
        ("w1(x1:1)", "T1 has w(x1:1) and no w(x1) after it"),
        ("w1(x1:1) w1(x1) r2(P: x1:1*)", "a version set has the last versions of transactions, x1"),
        ("w1(x1:1) w1(x1) [x0 < x1:1]", "names x1:1, which T1 overwrote itself; order x1"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_versions_before_the_last(text, message):
    with pytest.raises(HistoryError) as error:
        History.parse(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "beside", "message"),
    [
        ("w1(x1) c1", {"unknown": ["T1"]}, "unknown: T1 committed on the line"),
        ("w1(x1) a1", {"unknown": ["T1"]}, "unknown: T1 aborted on the line"),
        ("w1(x1)", {"unknown": ["T2"]}, "unknown: there is no transaction T2; known: T1"),
        ("b1 w1(x1) c1", {"schedule": "T1"}, "history says what was when, by b1, and has a schedule, too; leave one of them out"),
        ("w1(x1)", {"sets": {"A": ["T2"]}}, "sets.A has T2, which does nothing here; known: T1"),
    ],
)  # fmt: skip
def test_what_stands_beside_the_line_has_to_suit_it(text, beside, message):
    with pytest.raises(HistoryError) as error:
        History.parse(text, **beside)
    assert str(error.value) == message


def test_nobody_needs_to_have_ended():
    history = History.parse("w1(x1) w2(y2) w3(z3)", unknown=["T1", "T3"])
    assert [t.status for t in history.transactions] == ["unknown", "committed", "unknown"]
