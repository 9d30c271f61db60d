"""What the strategies find, and in how few examples: anomalies, each shrunk to its smallest
form.
"""

import pytest
from hypothesis import Phase, find, given, settings

from isolitmus.checker import run
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.strategies import histories, litmus_tests
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs.files.spec_catalogue import level, protocol
from isolitmus.specs.files.spec_reader import read_spec

SI, SER = "snapshot-isolation", "serializable"
WRITE_SKEW = {"T1": "r(x0) w(y1)", "T2": "r(y0) w(x2)"}
LOST_UPDATE = {"T1": "r(x0) w(x1)", "T2": "r(x0) w(x2)"}
LONG_FORK = {"T1": "r(x0) r(y4)", "T2": "r(x3) r(y0)", "T3": "w(x3)", "T4": "w(y4)"}
PAIRS = {
    (SI, SER): WRITE_SKEW,
    ("prefix-consistency", SI): LOST_UPDATE,
    ("causal", "prefix-consistency"): LONG_FORK,
    ("read-committed", "read-atomic"): {"T1": "r(x0) r(y2)", "T2": "w(x2) w(y2)"},
}


def within(examples):
    """Return settings under which no more than so many examples are tried."""
    return settings(max_examples=examples, phases=[Phase.generate, Phase.shrink])


@pytest.mark.slow
@pytest.mark.parametrize(("pair", "smallest"), PAIRS.items())
def test_what_tells_two_levels_apart_is_the_first_example(pair, smallest):
    """No example is rejected, so one is enough."""
    admits, forbids = pair
    asked = histories(level=admits, forbidden_by=forbids)
    assert find(asked, lambda _: True, settings=within(1)).to_table() == smallest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("admits", "forbids", "smallest", "examples"),
    [(SI, SER, WRITE_SKEW, 1500), ("prefix-consistency", SI, LOST_UPDATE, 800)],
)
def test_what_one_level_admits_breaks_another_within(admits, forbids, smallest, examples):
    """Without saying which level forbids it, as a test of one's own code would find it; perhaps of
    another key.
    """

    def broken(history):
        return isinstance(check_history(history, level(forbids)), Forbidden)

    found = find(histories(level=admits), broken, settings=within(examples))
    assert found.operations == 4
    one_key = str(found.to_table()).replace("y", "x")
    assert one_key == str(smallest).replace("y", "x")


@pytest.mark.slow
def test_the_reorder_is_found_within():
    """A delete that commits after an insert which it has not seen, where Delta keeps
    WriteSerializable.
    """

    def reordered(test):
        done = run(test, protocol("delta-write-serializable"))
        return isinstance(done.levels["log-serializable"], Forbidden)

    table = "CREATE TABLE t (id INT, part INT) USING delta PARTITIONED BY (part)"
    statements = [
        "INSERT INTO t VALUES (1, 0)",
        "DELETE FROM t WHERE part = 0",
        "UPDATE t SET id = id + 1 WHERE part = 0",
        "INSERT INTO t SELECT count(*), 1 FROM t WHERE part = 0",
    ]
    drawn = litmus_tests(table=table, statements=statements)
    found = find(drawn, reordered, settings=within(100))
    named = {statement.sql: name for name, statement in found.transactions.items()}
    assert {*named} == {*statements[:2]}
    insert, delete = (named[sql] for sql in statements[:2])
    steps = [str(step) for step in found.schedule.steps]
    assert steps.index(f"{delete}.start") < steps.index(f"{insert}.commit")
    assert steps.index(f"{insert}.commit") < steps.index(f"{delete}.commit")
    assert len(found.init) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("admits", "forbids"), [*PAIRS, (SI, None), ("serializable", None)])
def test_what_is_drawn_is_what_was_asked(admits, forbids):
    @given(histories(level=admits, forbidden_by=forbids, least=2, most=4, keys="abc"))
    def holds(history):
        assert 2 <= len(history.transactions) <= 4
        assert isinstance(check_history(history, level(admits)), Allowed)
        if forbids is not None:
            assert isinstance(check_history(history, level(forbids)), Forbidden)

    holds()


@pytest.mark.slow
def test_there_are_many_of_them():
    """Not the smallest alone: of other sizes, in sessions, with readers."""
    seen = set()

    @settings(max_examples=100)
    @given(histories(level=SI, forbidden_by=SER, keys="xyz"))
    def collect(history):
        readers = sum(not t.writes for t in history.transactions)
        seen.add((len(history.transactions), history.operations, readers, history.sessions != ()))

    collect()
    assert {n for n, *_ in seen} >= {2, 3, 4}
    assert {readers for *_, readers, _ in seen} >= {0, 1}
    assert {together for *_, together in seen} == {False, True}


@pytest.mark.slow
def test_a_level_of_ones_own():
    own = read_spec('"No reads of others" empty wr as alone', "alone")
    found = find(histories(level=own), lambda h: h.operations == 3, settings=within(100))
    assert isinstance(check_history(found, own), Allowed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"forbidden_by": SER}, "forbidden_by is 'serializable' without a level that admits"),
        ({"level": SER, "forbidden_by": SI}, "no history is known that serializable admits and"),
        ({"level": SI, "predicates": True}, "predicates and observed are drawn without a level"),
        ({"level": SI, "observed": True}, "predicates and observed are drawn without a level"),
        ({"level": "causal", "forbidden_by": "prefix-consistency", "most": 3}, "no history is known that causal .* with at most 3"),
        ({"level": SI, "forbidden_by": SER, "keys": "x"}, "has 2 keys; at most 1 were asked for"),
        ({"level": SI, "forbidden_by": "log-serializable"}, "need log, which drawn histories do not"),
        ({"level": "no-write-skew"}, "no-write-skew needs time, which drawn histories do not"),
        ({"level": "strict-serializable"}, "strict-serializable needs rt, which drawn histories do not"),
        ({"level": "snapshot"}, "snapshot"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn(asked, said):
    with pytest.raises(IsolitmusError, match=said):
        find(histories(**asked), lambda _: True)
