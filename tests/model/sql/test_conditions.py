"""Conditions that fail on some rows: what is certain is said, what is up to a plan is refused."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_result import run
from isolitmus.model.errors import LitmusError
from isolitmus.model.sql import expression as ex
from isolitmus.model.sql.conditions import can_fail, columns_in, holds, may_hold
from isolitmus.model.sql.evaluation import evaluate
from isolitmus.model.sql.types import EvaluationError
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

X, Y = (ex.ColumnRef(0, i, name, "INT") for i, name in enumerate("xy"))
LARGEST = 2**31 - 1
numbers = st.sampled_from([None, 0, 1, 5, LARGEST - 1, LARGEST])
operands = st.one_of(
    st.sampled_from([X, Y]),
    st.builds(ex.Const, numbers, st.just("INT")),
    st.builds(ex.Arithmetic, st.sampled_from("+-*%"), st.sampled_from([X, Y]), st.sampled_from([X, Y]), st.just("INT")),
)  # fmt: skip
comparisons = st.builds(
    ex.Compare, st.sampled_from(["=", "<>", "<", ">="]), operands, operands
).filter(columns_in)  # the reader refuses a part of a condition that names no column
parts = st.one_of(
    comparisons, st.builds(ex.Or, comparisons, comparisons), st.builds(ex.Not, comparisons)
)
conditions = st.lists(parts, min_size=1, max_size=3)
rows = st.tuples(numbers, numbers)


def answer(found, row, first=()):
    try:
        return holds(reduce(ex.And, found), [row], first)
    except EvaluationError:
        return "fails"
    except LitmusError:
        return "open"


@given(conditions, rows, st.sampled_from([(), (0,), (0, 1)]))
def test_the_order_of_the_parts_makes_no_difference(found, row, first):
    said = answer(found, row, first)
    assert answer(found[::-1], row, first) == said
    assert answer(found[1:] + found[:1], row, first) == said


@given(conditions, rows)
def test_what_is_said_is_what_every_plan_gives(found, row):
    """Plans: any part first, and any part left out once another decides."""
    said = answer(found, row)
    outcomes = set()
    for part in found:
        leaves = [part.left, part.right] if isinstance(part, ex.Or) else [part]
        for leaf in leaves:
            try:
                evaluate(leaf, [row])
            except EvaluationError:
                outcomes.add("fails")
    if not outcomes:
        assert said is (evaluate(reduce(ex.And, found), [row]) is True)
    elif said != "open":
        assert said == "fails"
        others = [answer([part], row) for part in found]
        assert all(other in (True, "fails") for other in others)


@given(conditions, rows, st.sampled_from([(), (0,)]))
def test_a_row_that_was_not_there_never_fails_a_condition(found, row, first):
    said, may = answer(found, row, first), may_hold(reduce(ex.And, found), [row], first)
    if isinstance(said, bool):
        assert may is said
    if said == "fails":
        assert may
    assert can_fail(reduce(ex.And, found)) or isinstance(said, bool)


FILE = """
title = "T"
schedule = "{}"
[table]
columns = "id INT, part INT"
partitioned_by = ["part"]
init = ["INSERT INTO t VALUES (1, 0), (2147483647, 1)"]
[transactions]
a = "{}"
b = "INSERT INTO t VALUES (2147483647, 2)"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "outcome"),
    [
        ("DELETE FROM t WHERE id + 1 > 1 AND part = 0", "committed"),
        ("DELETE FROM t WHERE part = 0 AND id + 1 > 1", "committed"),
        ("UPDATE t SET id = 0 WHERE id * 2 > 1 AND part = 0", "committed"),
        ("INSERT INTO t SELECT id, 5 FROM t WHERE -id - 2 > -5 AND part < 1", "committed"),
        ("DELETE FROM t WHERE id + 1 > 5 AND part < 2", "error:SparkArithmeticException"),
        ("DELETE FROM t WHERE id + 1 > 5", "error:SparkArithmeticException"),
        ("DELETE FROM t WHERE id + 1 < 5", "error:SparkArithmeticException"),
        ("DELETE FROM t WHERE part + 2147483647 > 5", "error:SparkArithmeticException"),
        ("DELETE FROM t WHERE id % part = 0 AND part = 1", "committed"),
        ("DELETE FROM t WHERE id % part = 0", "error:SparkArithmeticException"),
    ],
)
def test_both_executors_agree_on_what_fails(sql, outcome):
    done = run(read_litmus(FILE.format("a b", sql), "t"), protocol("delta-serializable"))
    assert done.run.transactions["a"].outcome == outcome
    assert done.serial.unexplained == ()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t WHERE id + 1 > 5 AND id < 3",
        "DELETE FROM t WHERE id < 3 AND id + 1 > 5",
        "UPDATE t SET id = 0 WHERE id + 1 > 5 OR part = 1",
        "DELETE FROM t WHERE part + 2147483647 > 5 AND part = 0",
        (
            "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id AND t.id + 1 > 0 WHEN MATCHED"
            " THEN DELETE"
        ),
        "INSERT INTO t SELECT max(id), 0 FROM t WHERE id + 1 > 5 AND id < 3",
    ],
)
def test_what_is_up_to_a_plan_is_refused(sql):
    with pytest.raises(
        LitmusError, match=r"fails on row \(.*and has another part that decides, too"
    ):
        execute(read_litmus(FILE.format("a b", sql), "t"), protocol("delta-serializable"))


def test_a_row_that_comes_later_and_would_fail_the_condition_is_a_dependency():
    """Before, the frame of this execution could not be made: an overflow ended the command."""
    test = read_litmus(
        FILE.format("a.start b a.commit", "DELETE FROM t WHERE id + 1 > 5 AND part <> 1"), "t"
    )
    done = run(test, protocol("delta-write-serializable"))
    assert [done.run.transactions[name].outcome for name in "ab"] == ["committed", "committed"]
    assert "rw" in {edge.kind for edge in done.frame.edges()}
