"""Each example that is printed, read from its text, has the outcome that it prints."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import run
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.questions.query_witnesses import computed_value
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.model.budget import Budget
from isolitmus.model.errors import TimeLimit
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

SPEC = protocol("delta-serializable")
TABLES = [
    "CREATE TABLE orders (id INT, day DATE, x INT) USING delta PARTITIONED BY (day)",
    "CREATE TABLE events (id INT, day DATE) USING delta",
]
STATEMENTS = [
    "RESTORE TABLE orders TO VERSION AS OF 3",
    "RESTORE TABLE events TO VERSION AS OF 3",
    "ALTER TABLE orders ADD COLUMN y INT",
    "ALTER TABLE events SET TBLPROPERTIES ('delta.appendOnly' = 'false')",
    "CREATE OR REPLACE TABLE events (id INT, day DATE) USING delta",
    "MERGE INTO orders USING events ON orders.id = events.id WHEN MATCHED THEN DELETE",
    "UPDATE orders SET x = DEFAULT WHERE day = DATE '2026-01-01'",
    "UPDATE orders SET x = x + 1 WHERE id = :id",
    "DELETE FROM orders WHERE id IN (SELECT id FROM events)",
    "WITH e AS (SELECT id, day FROM events) INSERT OVERWRITE orders SELECT id, day, 1 FROM e",
    "INSERT INTO orders VALUES (:id, :day, NULL)",
    "INSERT INTO events SELECT id, day FROM orders WHERE x > 1",
    "DELETE FROM events WHERE day < DATE '2026-01-01'",
    "TRUNCATE TABLE events",
    "OPTIMIZE orders",
]


def jobs(statements):
    lines = [f"ddl = {json.dumps(TABLES)}"]
    lines += [f"[jobs.j{k}]\nsql = {json.dumps(sql)}" for k, sql in enumerate(statements)]
    return read_workload("\n".join(lines), "jobs")


def assert_text_is_executed(test):
    judged = run(read_litmus(str(test), "again"), SPEC)
    for name, outcomes in test.expect[SPEC.name].outcome.items():
        assert judged.run.transactions[name].outcome in outcomes, str(test)
    assert judged.serial is not None  # both executors agree


@pytest.mark.slow
@given(st.lists(st.sampled_from(STATEMENTS), min_size=2, max_size=3, unique=True))
def test_examples_of_predict(statements):
    for test in predict_workload(jobs(statements), SPEC).examples:
        assert_text_is_executed(test)


@pytest.mark.slow
@given(st.lists(st.sampled_from(STATEMENTS), min_size=2, max_size=2, unique=True))
def test_counterexamples_of_robust(statements):
    for answer in decide_all(jobs(statements), [SPEC], ["log-serializable"]):
        assert not any("a defect of isolitmus" in why for why in answer.why), statements
        for one in answer.counterexamples:
            assert_text_is_executed(one.test)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (STATEMENTS[5], STATEMENTS[0]),
        (STATEMENTS[7], STATEMENTS[0]),
        (STATEMENTS[6], STATEMENTS[6]),
    ],
)
def test_examples_with_versions_and_defaults(one, other):
    """A RESTORE numbers the statements that fill the tables, which a file lists table by table."""
    found = predict_workload(jobs([one, other, STATEMENTS[2]]), SPEC)
    tests = [test for meeting in found.meetings for test in meeting.examples.values()]
    assert any(meeting.loser == "j0" and meeting.examples for meeting in found.meetings)
    for test in tests:
        assert_text_is_executed(test)


def test_restore_to_other_columns_keeps_the_files():
    """The rows have the earlier columns, and no file is rewritten."""
    text = """
title = "restore"
schedule = "r"
[tables.t]
columns = "id INT"
init = ["INSERT INTO t VALUES (1)", "ALTER TABLE t ADD COLUMN x INT"]
[transactions]
r = "RESTORE TABLE t TO VERSION AS OF {init[1]}"
"""
    judged = run(read_litmus(text, "restore"), SPEC)
    assert judged.run.versions[-1] == {"t": ((1,),)}
    assert judged.serial.orders == ("r",)


LOADED = """ddl = [
  "CREATE TABLE t (id INT, part INT) USING delta",
  "CREATE TABLE s (id INT, part INT) USING delta",
]
[jobs]
upsert = "MERGE INTO t USING (SELECT id, max(part) AS part FROM s GROUP BY id HAVING {}) q ON \
t.id = q.id WHEN MATCHED THEN UPDATE SET part = q.part WHEN NOT MATCHED THEN INSERT *"
load = "INSERT INTO t SELECT id, part FROM s WHERE part > :p EXCEPT SELECT id, 5 FROM s"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("having", "unshown"),
    [("count(*) > 0", set()), ("count(*) > 3 AND count(*) < 2", {"s_rows"})],
)
def test_an_example_says_whether_its_queries_return_its_rows(having, unshown):
    """Rows of a query that is not understood are made up; DuckDB executes the query as written."""
    work = read_workload(LOADED.format(having), "loaded")
    found = predict_workload(work, SPEC)
    shown = [one for one in found.meetings if one.examples]
    assert {table for one in shown for table in one.unshown if one.loser == "upsert"} == unshown
    said = [one for one in found.assumptions if one.startswith("It is not shown that the query of")]
    assert bool(said) == bool(unshown)
    weak = [protocol("delta-write-serializable")]
    (robust,) = decide_all(work, weak, ["log-serializable"])
    assert robust.worst is not None
    assert ("s_rows" in robust.worst.unshown) == bool(unshown)


def test_a_limit_ends_the_search_for_rows_of_a_query():
    """DuckDB raises an ordinary exception when it is interrupted."""
    slow = "(SELECT count(*) FROM range(100000) AS a, range(1000000) AS b)"
    with pytest.raises(TimeLimit), Budget(seconds=0.2).interrupting():
        computed_value(slow, "BIGINT", {})
