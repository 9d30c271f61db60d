"""Reads as nodes on tables, and what holds of every execution, whatever was checked at its
commits.
"""

import pytest
from hypothesis import given

from isolitmus.checker.checks.history_check import check
from isolitmus.checker.delta.delta_rs_read_set import READ_SETS
from isolitmus.checker.execution.commit_loop import execute, execution_frame, judge_execution
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.judge.graph_semantics import admits, judge
from isolitmus.checker.judge.read_nodes import READ_RELATIONS, needs_reads
from isolitmus.checker.strategies import litmus_tests
from isolitmus.model.relation import bits
from isolitmus.model.verdict import Allowed
from isolitmus.specs import level, litmus, protocol, spec
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import levels, protocols
from isolitmus.specs.files.spec_reader import read_spec

OF_SNAPSHOTS = ["read-committed", "read-atomic", "causal", "prefix-consistency"]

UPDATES = """
title = "Two updates, a reader of each version of one row"
source = "this test"
schedule = "r a s b q"
[table]
columns = "id INT, part INT, x INT"
init = ["INSERT INTO t VALUES (1, 0, 10)"]
[transactions]
a = "UPDATE t SET x = 11 WHERE id = 1"
b = "DELETE FROM t WHERE x = 11"
r = "SELECT * FROM t WHERE x = 11"
s = "SELECT * FROM t WHERE x = 11"
q = "SELECT * FROM t WHERE x = 11"
"""


def pairs(frame, kind):
    return [(frame.nodes[i], frame.nodes[j]) for i, j in frame.relations[kind].pairs()]


def test_a_row_over_its_life():
    frame = execution_frame(execute(read_litmus(UPDATES, "updates")), reads=True)
    before, now, after = (
        "r r(t WHERE x = 11: (1, 0, 10))",
        "s r(t WHERE x = 11: (1, 0, 11))",
        "q r(t WHERE x = 11: (1, 0, 10))",
    )
    sources = dict(map(reversed, pairs(frame, "rf")))
    assert [sources[name] for name in (before, now, after)] == ["init", "a", "b"]
    rivals = pairs(frame, "rival")
    assert [i for i, j in rivals if j == before] == ["a"]
    assert [i for i, j in rivals if j == now] == ["b", "init"]
    assert [i for i, j in rivals if j == after] == ["a"]
    assert pairs(frame, "po") == []
    assert ("init", "q") not in pairs(frame, "wr")
    assert {j for i, j in pairs(frame, "so")} == set("abrsq")
    place = frame.nodes.index
    where = "t WHERE x = 11"
    assert str(frame.reasons["rf", place("init"), place(before)]) == (
        f"r read {where} at version 0, with row (1, 0, 10) of init"
    )
    assert str(frame.reasons["rf", place("b"), place(after)]) == (
        f"q read {where} at version 2, without row (1, 0, 11), which b had removed"
    )
    assert str(frame.reasons["rival", place("b"), place(now)]) == "b removed row (1, 0, 11)"
    assert str(frame.reasons["rival", place("a"), place(before)]) == (
        "a changed row (1, 0, 10) to (1, 0, 11)"
    )
    assert str(frame.reasons["in", place(now), place("s")]) == f"s read {where}"


def test_weak_levels_are_judged_on_tables():
    reorder = litmus("reorder")
    done = run(reorder, protocol("delta-write-serializable"))
    assert {name: str(done.levels[name]) for name in OF_SNAPSHOTS} == dict.fromkeys(
        OF_SNAPSHOTS, "allowed"
    )
    assert done.levels["causal"] == Allowed(("insert", "delete"))
    checked = check(reorder, [level("read-atomic")])
    assert checked.levels["read-atomic"] == Allowed(("insert", "delete"))


def test_a_cycle_by_way_of_a_read_says_why():
    done = run(litmus("reorder"), protocol("delta-write-serializable"))
    fresh = read_spec(
        '"Mine" acyclic so | (rival & ((log | vis) ; in^-1)) ; rf^-1 as no-stale-read', "mine"
    )
    (violation,) = done.verdict(fresh).violations
    assert [(e.source, e.target, e.kind) for e in violation.cycle] == [
        ("insert", "init", "rival & (log ; in^-1) ; rf^-1"),
        ("init", "insert", "so"),
    ]
    assert violation.cycle[0].why == (
        "insert added row (100, 0), and in the log insert is version 1, delete version 2, but"
        " delete read t WHERE part = 0 at version 0, without row (100, 0), as init left the table"
    )
    drawn = done.graph.around(violation.cycle).to_mermaid().splitlines()
    assert drawn[3] == '    n2["init"]'
    assert any(line.startswith("    n1 ==>") and line.endswith(" n2") for line in drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_SNAPSHOTS)
@given(test=litmus_tests(most=4))
def test_whoever_reads_snapshots_of_one_log_is_prefix_consistent_unchecked(test, name):
    """The log is the commit order and every snapshot a prefix of it. Nothing is checked at a
    commit, so two may overwrite one row unseen: snapshot isolation does not follow."""
    assert judge_execution(execute(test), level(name))


@pytest.mark.slow
@given(litmus_tests(most=4))
def test_reads_are_beside_the_transactions(test):
    execution = execute(test)
    plain, frame = execution_frame(execution), execution_frame(execution, reads=True)
    n = len(plain.nodes)
    assert frame.nodes[: n + 1] == (*plain.nodes, "init")
    assert frame.transactions == n
    assert len(set(frame.nodes)) == len(frame.nodes)
    assert frame.sets == plain.sets | {"Initial": 1 << n}
    among = (1 << n) - 1
    for kind, relation in plain.relations.items():
        assert [row & among for row in frame.relations[kind].rows[:n]] == list(relation.rows)
    for kind in READ_RELATIONS:
        assert all(str(frame.reasons[kind, i, j]) for i, j in frame.relations[kind].pairs())
    rf, into, rival, vis = (frame.relations[name] for name in ("rf", "in", "rival", "vis"))
    for k in range(n + 1, len(frame.nodes)):
        (reader,) = bits(into.rows[k])
        (source,) = bits(rf.inverse().rows[k])
        assert source == n or (source, reader) in vis
        assert not set(bits(rival.inverse().rows[k])) & {reader, source}


@pytest.mark.slow
@given(litmus_tests(most=4))
def test_specs_that_do_not_ask_for_reads_do_not_see_them(test):
    execution = execute(test)
    plain, frame = execution_frame(execution), execution_frame(execution, reads=True)
    for name in levels() + protocols():
        if not needs_reads(spec(name)) and spec(name).needs.isdisjoint(READ_SETS):
            assert admits(plain, spec(name)) == admits(frame, spec(name))
            assert str(judge(plain, spec(name))) == str(judge(frame, spec(name)))
